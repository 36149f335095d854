/* As test_map_pose.c, with 100 maps instead of some, of adenylate kinase where
 * its file is there. */
#define N_MAP 100
#define PROTEIN SHARED "maps/adk_4ake-target.pdb"
#include "test_map_pose.c"
