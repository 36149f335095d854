/* tessera: the table of commands. */
#include "commands/command.h"

#define COMMAND(word) &tsr_command_##word,
#define TOOL(word, text) &(const tsr_command){.name = #word, .doc = (text)},
static const tsr_command *const commands[] = {TSR_COMMANDS(COMMAND)
                                                  TSR_TOOLS(TOOL) NULL};

int main(int argc, char **argv)
{
    return tsr_main(commands, argc, (const char *const *)argv);
}
