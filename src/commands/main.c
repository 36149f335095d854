/* tessera: the table of commands. */
#include "commands/command.h"

extern const char tsr_built_with[]; /* made by the Makefile */

#define COMMAND(word) &tsr_command_##word,
#define TOOL(word, text) &(const tsr_command){.name = #word, .doc = (text)},
static const tsr_command *const commands[] = {TSR_COMMANDS(COMMAND)
                                                  TSR_TOOLS(TOOL) NULL};

int main(int argc, char **argv)
{
    return tsr_main(commands, tsr_built_with, argc, (const char *const *)argv);
}
