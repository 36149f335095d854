/* As test_engine_components.c, with every variant. */
#define COMPONENTS_ALL 1
#include "test_engine_components.c"
