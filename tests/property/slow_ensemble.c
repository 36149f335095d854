/* As test_ensemble.c, four times as long. */
#define LENGTH 4
#include "test_ensemble.c"
