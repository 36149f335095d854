/* Signals that end a run in good order: SIGINT, SIGTERM, SIGHUP (the terminal
 * closes), SIGQUIT and SIGXCPU (limit on processor time). SIGUSR1 requests a
 * checkpoint. */
#ifndef TSR_CORE_INTERRUPT_H
#define TSR_CORE_INTERRUPT_H

#include <stdatomic.h>

/* The signal that requested a stop; 0: no stop was requested. It has static
 * storage, because a signal handler cannot reach other objects, and is atomic,
 * because worker threads read it. */
extern atomic_int tsr_stop_requested;

/* 1 after SIGUSR1. The code that writes the checkpoint sets it to 0. */
extern atomic_int tsr_checkpoint_requested;

/* Is SIGHUP ignored, as under nohup? Call this before a device is opened,
 * because PoCL's LLVM installs its own handler. */
int tsr_hang_up_is_ignored(void);

/* Installs the handlers. The first signal sets tsr_stop_requested. Further
 * signals within one second are ignored, since timeout, make and a closing
 * terminal often send two at once; a later signal kills the process. SIGXCPU
 * never kills through the handler, because the kernel repeats it every second
 * of processor time and kills at the hard limit itself. SIGABRT, which
 * indicates a fault in the program, keeps its default action. */
void tsr_interrupt_catch(int ignore_hang_up);

/* Blocks (1) or unblocks (0) the signals while a device is opened: the handlers
 * of LLVM in PoCL delete the files it compiles and may lose the signal. Threads
 * created while signals are blocked never receive them. */
void tsr_interrupt_block(int block);

#endif
