/* As test_concerted.c, sixteen times as long. */
#define LENGTH 16
#include "test_concerted.c"
