/* As test_moves.c, eight times as long. */
#define LENGTH 8
#include "test_moves.c"
