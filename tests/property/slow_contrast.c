/* As test_contrast.c, four times as long. */
#define LENGTH 4
#include "test_contrast.c"
