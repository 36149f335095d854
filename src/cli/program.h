/* `tessera`: which command runs, help, version, messages, exit status. */
#ifndef TSR_CLI_PROGRAM_H
#define TSR_CLI_PROGRAM_H

#include "cli/command.h"

/* Runs argv [argc] with the `commands`, which end with NULL. Results go to
 * `out`, messages to `message`. A failure is told once, as
 * "tessera COMMAND: text". Returns the exit status. */
int tsr_program(const tsr_command *const *commands, int argc,
                const char *const *argv, FILE *out, FILE *message);

#endif
