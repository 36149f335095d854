/* tessera: the commands that exist, and what a process must set up once. */
#include "commands/command.h"
#include "store/hdf5_object.h"

#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <signal.h>
#include <string.h>

#define X(name) &tsr_command_##name,
static const tsr_command *const commands[] = {TSR_COMMANDS(X) NULL};
#undef X

/* A stream that was closed before the start would lend its number to the next
 * file opened, and messages would end up in a trace. Opened the wrong way
 * round, so that using it still fails. */
static int hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    if (!hold_streams())
        return tsr_exit_status(TSR_E_IO);
    /* A reader of our output that goes away must not kill a run between two
     * checkpoints; the write fails instead, and tsr_program sees it. So with a
     * file that grows beyond a limit. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    gsl_set_error_handler_off();
    tsr_hdf5_quiet();
    int exit_status =
        tsr_program(commands, argc, (const char *const *)argv, stdout, stderr);
    /* NFS and quotas report at the close */
    if (fclose(stdout) != 0 && exit_status == 0) {
        int code = errno;
        fprintf(stderr, "tessera: cannot close standard output: %s\n",
                strerror(code));
        exit_status = tsr_exit_status(TSR_E_IO);
    }
    return exit_status;
}
