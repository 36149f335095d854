/* As test_sampler.c, three times as long. */
#define LENGTH 3
#include "test_sampler.c"
