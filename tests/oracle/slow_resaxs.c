/* As test_resaxs.c, with every variant. */
#define RESAXS_ALL 1
#include "test_resaxs.c"
