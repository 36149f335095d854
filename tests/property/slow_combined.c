/* As test_combined.c, four times as long. */
#define LENGTH 4
#include "test_combined.c"
