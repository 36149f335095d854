/* Signals end a run in good order: SIGINT, SIGTERM, a terminal that goes away
 * (SIGHUP), SIGQUIT, and the limit on processor time (SIGXCPU). SIGUSR1 asks
 * for a checkpoint. */
#ifndef TSR_CORE_INTERRUPT_H
#define TSR_CORE_INTERRUPT_H

#include <stdatomic.h>

/* The signal that asked to stop; 0: none. A signal handler can only reach what
 * has static storage, and the workers read it: so it is atomic. */
extern atomic_int tsr_stop_requested;

/* 1 since SIGUSR1 came; whoever answers makes it 0. */
extern atomic_int tsr_checkpoint_requested;

/* Is SIGHUP ignored, as below nohup? To be asked before a device is opened:
 * PoCL's LLVM puts a handler of its own in its place. */
int tsr_hang_up_is_ignored(void);

/* From here on the first signal sets tsr_stop_requested; more within a second
 * are the same wish (timeout, make and a closing terminal often send two at
 * once), a later one kills. But SIGXCPU never kills: the kernel repeats it
 * after every second of processor time, and kills at the hard limit. SIGABRT,
 * which means a fault in the program itself, kills as it does by default. */
void tsr_interrupt_catch(int ignore_hang_up);

/* Signals wait (1) until they are let through again (0), for while a device is
 * opened: LLVM, in PoCL, has handlers that delete what it compiles and may
 * forget the signal. Threads made in between never get any. */
void tsr_interrupt_block(int hold);

#endif
