/* As test_engine_moves.c, eight times as long and with every variant. */
#define LENGTH 8
#include "test_engine_moves.c"
