/* As test_durable.c, with a fault at every file operation. */
#define DURABLE_ALL 1
#include "test_durable.c"
