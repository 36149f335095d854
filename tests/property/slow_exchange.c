/* As test_tempering.c, three times as long. */
#define LENGTH 3
#include "test_tempering.c"
