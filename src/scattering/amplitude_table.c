/* Tables of amplitudes: sums over the group's particles on half of a sphere,
 * two Fourier transforms. */
#include "scattering/plane_wave.h"

#include "core/parallel.h"
#include "core/vec3.h"

#include <fftw3.h>
#include <gsl/gsl_integration.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum {
    WIDTH = TSR_AMPLITUDE_WIDTH,
    TERMS = TSR_AMPLITUDE_TERMS,
    BAND = TSR_AMPLITUDE_BAND,
    BEFORE = WIDTH / 2 - 1, /* rows and columns before the first, */
    AROUND = WIDTH,         /* and in all that are there twice */
    N_NODE = 40
};

static const double beta = 2.30 * WIDTH;

static double kernel(double x)
{
    const double u = 2.0 * x / WIDTH, inside = 1.0 - u * u;
    return inside > 0.0 ? exp(beta * (sqrt(inside) - 1.0)) : 0.0;
}

void tsr_amplitude_kernel(float c[TSR_AMPLITUDE_TERMS][TSR_AMPLITUDE_WIDTH])
{
    for (int i = 0; i < TERMS; i++)
        for (int j = 0; j < WIDTH; j++) {
            double sum = 0.0;
            for (int k = 0; k < TERMS; k++) {
                const double angle = PI * (k + 0.5) / TERMS;
                const double place = 0.5 * (1.0 + cos(angle));
                sum += kernel(place + BEFORE - j) * cos(i * angle);
            }
            c[i][j] = (float)((i == 0 ? 1.0 : 2.0) * sum / TERMS);
        }
}

/* 1 over the kernel's transform at the frequencies 0 to n / 2 of a circle of
 * 2 n points. */
static int kernel_inverse(int n, double *out)
{
    gsl_integration_glfixed_table *rule =
        gsl_integration_glfixed_table_alloc(N_NODE);
    if (rule == NULL)
        return 0;
    for (int f = 0; f <= n / 2; f++) {
        double sum = 0.0;
        for (size_t j = 0; j < N_NODE; j++) {
            double x, w;
            gsl_integration_glfixed_point(0.0, 0.5 * WIDTH, j, &x, &w, rule);
            sum += 2.0 * w * kernel(x) * cos(PI * f * x / n);
        }
        out[f] = 1.0 / sum;
    }
    gsl_integration_glfixed_table_free(rule);
    return 1;
}

/* Points around a circle that the harmonics need: more than twice their degree,
 * a multiple of 4 so that half of the sphere tells the other. */
static int circle(double q, double reach)
{
    const double x = q * reach;
    const int degree = (int)ceil(x + 4.0 * cbrt(x) + 6.0);
    return 4 * ((2 * degree + 2 + 3) / 4);
}

static size_t rows_of(int n_circle)
{
    return (size_t)n_circle / 2 + 1 + AROUND;
}

static size_t columns_of(int n_circle)
{
    return (size_t)n_circle + AROUND;
}

double tsr_amplitude_table_size(double q_inv_ang, double reach_ang, int n_comp)
{
    const int n = 2 * circle(q_inv_ang, reach_ang);
    return (double)rows_of(n) * (double)columns_of(n) * BAND * 2.0 * n_comp;
}

typedef struct {
    const tsr_debye_spec *spec;
    int low, n_k, n;   /* n: points of the coarse circle */
    int n_job, n_room; /* transforms, and threads that have room for one */
    size_t each;       /* numbers of a direction */
    double *half;      /* [n / 4 + 1][n][n_k][n_comp][2] */
    const double *inverse;
    tsr_amplitude_table *table;
    fftw_complex *grid; /* [n_room][2][2 n][2 n] */
    fftw_plan forth, back;
    tsr_err err; /* of sums over particles */
    pthread_mutex_t lock;
} maker;

/* One row of theta of the upper half. */
static void sum_row(void *context, int row, int thread)
{
    maker *m = context;
    const double theta = 2.0 * PI * row / m->n;
    tsr_err err = {0};
    double(*n)[3] = calloc((size_t)m->n, sizeof *n);
    tsr_status status = tsr_allocated(n, &err);
    (void)thread;
    for (int j = 0; j < m->n && n != NULL; j++) {
        const double phi = 2.0 * PI * j / m->n;
        n[j][0] = sin(theta) * cos(phi);
        n[j][1] = sin(theta) * sin(phi);
        n[j][2] = cos(theta);
    }
    if (status == TSR_OK)
        status = tsr_plane_wave_amplitudes(
            m->spec, m->n, (const double(*)[3])n, m->low, m->n_k,
            m->half + (size_t)row * (size_t)m->n * m->each, &err);
    free(n);
    if (status != TSR_OK) {
        pthread_mutex_lock(&m->lock);
        m->err = err;
        pthread_mutex_unlock(&m->lock);
    }
}

/* Where row i, column j of the torus has its numbers; *sign of their imaginary
 * parts: A(-n) is A(n)'s conjugate. */
static const double *torus(const maker *m, int i, int j, double *sign)
{
    const int n = m->n;
    *sign = 1.0;
    if (i > n / 2) {
        i = n - i;
        j += n / 2;
    }
    if (i > n / 4) {
        i = n / 2 - i;
        j += n / 2;
        *sign = -1.0;
    }
    return m->half + ((size_t)i * (size_t)n + (size_t)(j % n)) * m->each;
}

static size_t fold(int f, int n)
{
    return (size_t)(f < 0 ? f + n : f);
}

/* One q and component: its Fourier series on the torus, and from it the values
 * that kernels are summed with. */
static void transform(void *context, int part, int thread)
{
    const maker *m = context;
    const int n = m->n, wide = 2 * n, n_comp = m->spec->n_comp;
    const size_t size = (size_t)wide * (size_t)wide;
    fftw_complex *fine = m->grid + (size_t)thread * 2 * size, *g = fine + size;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sign;
            const double *at = torus(m, i, j, &sign) + 2 * part;
            g[i * n + j][0] = at[0];
            g[i * n + j][1] = sign * at[1];
        }
    fftw_execute_dft(m->forth, g, g);
    memset(fine, 0, size * sizeof *fine);
    for (int a = -n / 2 + 1; a < n / 2; a++)
        for (int b = -n / 2 + 1; b < n / 2; b++) {
            const double *from = g[fold(a, n) * (size_t)n + fold(b, n)];
            double *to = fine[fold(a, wide) * (size_t)wide + fold(b, wide)];
            const double by =
                m->inverse[abs(a)] * m->inverse[abs(b)] / ((double)n * n);
            to[0] = by * from[0];
            to[1] = by * from[1];
        }
    fftw_execute_dft(m->back, fine, fine);
    const tsr_amplitude_table *t = m->table;
    for (int r = 0; r < t->rows; r++)
        for (int c = 0; c < t->columns; c++) {
            const double *from = fine[fold(r - BEFORE, wide) * (size_t)wide +
                                      fold((c - BEFORE + wide) % wide, wide)];
            float *to = t->value +
                        ((size_t)r * (size_t)t->columns + (size_t)c) *
                            (size_t)(2 * BAND * n_comp) +
                        2 * part;
            to[0] = (float)from[0];
            to[1] = (float)from[1];
        }
}

void tsr_amplitude_table_clear(tsr_amplitude_table *table)
{
    free(table->value);
    *table = (tsr_amplitude_table){0};
}

/* All that the maker needs is there. */
static tsr_status make(maker *m, int n_thread, tsr_err *err)
{
    const int wide = 2 * m->n, n = m->n;
    fftw_complex *g = m->grid;
    tsr_parallel_run(n / 4 + 1, n_thread, sum_row, m);
    if (m->err.status != TSR_OK)
        return tsr_fail(err, m->err.status, "%s", m->err.message);
    m->forth = fftw_plan_dft_2d(n, n, g, g, FFTW_FORWARD, FFTW_ESTIMATE);
    m->back = fftw_plan_dft_2d(wide, wide, g, g, FFTW_BACKWARD, FFTW_ESTIMATE);
    if (m->forth == NULL || m->back == NULL)
        return tsr_no_memory(err);
    tsr_parallel_run(m->n_job, m->n_room, transform, m);
    return TSR_OK;
}

tsr_status tsr_amplitude_table_make(const tsr_debye_spec *spec, int low,
                                    int n_thread, tsr_amplitude_table *out,
                                    tsr_err *err)
{
    const int end = low + BAND < spec->n_q ? low + BAND : spec->n_q;
    double reach2 = 0.0;
    for (int i = 0; i < spec->n; i++)
        reach2 = fmax(reach2, tsr_vec3_dot(spec->xyz[i], spec->xyz[i]));
    const int n = circle((end - 1) * spec->dq_inv_ang, sqrt(reach2));
    const size_t wide = 2 * (size_t)n;
    double *inverse = calloc((size_t)n, sizeof *inverse);
    maker m = {.spec = spec,
               .low = low,
               .n_k = end - low,
               .n = n,
               .each = 2 * (size_t)((end - low) * spec->n_comp),
               .n_job = (end - low) * spec->n_comp,
               .inverse = inverse,
               .table = out,
               .lock = PTHREAD_MUTEX_INITIALIZER};
    *out = (tsr_amplitude_table){.n_comp = spec->n_comp,
                                 .n_circle = (int)wide,
                                 .rows = (int)rows_of((int)wide),
                                 .columns = (int)columns_of((int)wide)};
    out->value = calloc((size_t)out->rows * (size_t)out->columns,
                        (size_t)(2 * BAND * spec->n_comp) * sizeof(float));
    m.half = calloc(((size_t)n / 4 + 1) * (size_t)n * m.each, sizeof *m.half);
    m.n_room = n_thread < m.n_job ? n_thread : m.n_job;
    m.grid = fftw_alloc_complex((size_t)m.n_room * 2 * wide * wide);
    tsr_status status = inverse == NULL || out->value == NULL ||
                                m.half == NULL || m.grid == NULL ||
                                !kernel_inverse(n, inverse)
                            ? tsr_no_memory(err)
                            : make(&m, n_thread, err);
    if (m.forth != NULL)
        fftw_destroy_plan(m.forth);
    if (m.back != NULL)
        fftw_destroy_plan(m.back);
    fftw_free(m.grid);
    free(m.half);
    free(inverse);
    if (status != TSR_OK)
        tsr_amplitude_table_clear(out);
    return status;
}
