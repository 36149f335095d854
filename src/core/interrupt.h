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

/* Is SIGHUP ignored, as under nohup? Called before a device is opened, because
 * LLVM, a part of PoCL, installs its own handler. */
int tsr_hang_up_is_ignored(void);

/* Installs the handlers. The first signal sets tsr_stop_requested. Further
 * signals within the next one to two seconds are ignored, because timeout, make
 * and a closing terminal often send two at once; a later signal kills the
 * process. SIGXCPU never kills through the handler, because the kernel repeats
 * it every second of processor time and kills at the hard limit itself.
 * SIGABRT, which indicates a fault in the program, gets its default action, and
 * SIGXFSZ is ignored, so that a write beyond a size limit returns an error.
 * ignore_hang_up 1: SIGHUP is ignored. */
void tsr_interrupt_catch(int ignore_hang_up);

/* Blocks (1) or unblocks (0) the signals while a device is opened: the signal
 * handlers of LLVM, a part of PoCL, delete the files that PoCL is compiling,
 * and may lose the signal. Threads created while signals are blocked never
 * receive them. */
void tsr_interrupt_block(int block);

#endif
