/* What the files of the Debye sum share; nothing else includes it. */
#ifndef TSR_GPU_DEBYE_SUM_STATE_H
#define TSR_GPU_DEBYE_SUM_STATE_H

#include "gpu/build_program.h"
#include "gpu/debye_sum.h"
#include "gpu/opencl.h"

struct tsr_debye_sum {
    const tsr_device *device;
    tsr_debye_sum_options options;
    int n_q, has_weight;
    double dq, d_bound;
    int tile, pages, groups, stride; /* stride: pages of all groups */
    int n_sum;                       /* 4 with weights: 1, w_j, w_i, w_i w_j */
    int max_unit;
    size_t real_size;
    tsr_program program;
    cl_kernel kernel;
    cl_command_queue queue;
    cl_mem unit, result;
    cl_int (*host_unit)[4]; /* [max_unit] row, rows, column, columns */
    int *place;             /* [max_unit] which pair of types */
    void *host_result;      /* [max_unit][n_sum][stride] */
    char description[512];
};

#endif
