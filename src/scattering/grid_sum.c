/* Three passes over the grid, each in parts that any thread takes:
 *
 * (1) planes: particles are spread on the planes of constant z that they touch,
 *     mode by mode, and the planes transformed along x and y;
 * (2) columns: of all modes transformed along z, added up to the amplitudes
 *     A_a(k) of the components with their form factors, whose products, real
 *     and even, are transformed back along z at once; they take the place of
 *     the modes;
 * (3) planes: the products transformed back along y and x, and their values
 *     added up by distance. They are even: planes of z >= 0 do for all.
 *
 * What is zero is neither stored nor transformed: half of each axis before, and
 * beyond k_cut after it. Sums that cross parts are made in the parts' order.
 * FFTW: Frigo & Johnson 2005, Proc. IEEE 93, 216. */
#include "scattering/grid_sum.h"

#include "core/clones.h"
#include "core/parallel.h"

#include <fftw3.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = TSR_GRID_WIDTH,
    BLOCK = 8,    /* columns at a time */
    N_BLOCK = 16, /* of planes and of distances, with sums of their own */
    MAX_MODE = 64,
    TYPICAL_MODE = 7
};

const double tsr_grid_q_most = 1.6;

typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

typedef struct {
    fftw_complex *column, *amplitude; /* [n_z][BLOCK], [n_comp][n_z][BLOCK] */
    double *product;                  /* [n_z][BLOCK] */
    int *at;                          /* [n_z][BLOCK] in the fine curves */
    double *part;                     /* [n_z][BLOCK] between two points */
    double *weight;                   /* [n_z][BLOCK] what spreading did to the
                                         square, inverse; 0 beyond k_cut */
} scratch;

typedef struct {
    const tsr_debye_spec *spec;
    tsr_factor_modes modes;
    tsr_grid_plan plan;
    int n_thread, n_pair, n_half, n_part;
    int n_column;       /* of kx, below the Nyquist one */
    size_t row, plane;  /* complex numbers */
    fftw_complex *grid; /* planes [mode][z], then [pair][z] */
    int *order;         /* [n] particles by their first z, then y */
    int *first;         /* [n_filled z + 1] where each z begins in order */
    fftw_plan rows, lines, depth, depth_back, lines_back, rows_back;
    scratch *scratch; /* [n_thread] */
    int n_shell;
    double *shell;   /* [N_BLOCK][n_pair][n_shell] */
    double *partial; /* [N_BLOCK][n_pair][n_q] */
    double *sinc;    /* [N_BLOCK][n_q] */
} work;

static fftw_complex *plane_of(const work *w, int which, int n_z, int z)
{
    return w->grid + ((size_t)which * (size_t)n_z + (size_t)z) * w->plane;
}

/* ---- making it ---- */

/* FFTW's planner is not for several threads at once. */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

static int plan_transforms(work *w)
{
    const int *n = w->plan.n, row = (int)w->row;
    fftw_complex *g = w->grid, *c = w->scratch[0].column;
    double *real = w->scratch[0].product;
    unsigned flags = FFTW_ESTIMATE;
    pthread_mutex_lock(&planner);
    w->rows = fftw_plan_many_dft_r2c(1, &n[0], w->plan.n_filled[1], (double *)g,
                                     NULL, 1, 2 * row, g, NULL, 1, row, flags);
    w->lines = fftw_plan_many_dft(1, &n[1], w->n_column, g, NULL, row, 1, g,
                                  NULL, row, 1, FFTW_FORWARD, flags);
    w->depth = fftw_plan_many_dft(1, &n[2], BLOCK, c, NULL, BLOCK, 1, c, NULL,
                                  BLOCK, 1, FFTW_FORWARD, flags);
    w->depth_back = fftw_plan_many_dft_r2c(1, &n[2], BLOCK, real, NULL, BLOCK,
                                           1, c, NULL, BLOCK, 1, flags);
    w->lines_back = fftw_plan_many_dft(1, &n[1], w->n_column, g, NULL, row, 1,
                                       g, NULL, row, 1, FFTW_BACKWARD, flags);
    w->rows_back = fftw_plan_many_dft_c2r(1, &n[0], n[1], g, NULL, 1, row,
                                          (double *)g, NULL, 1, 2 * row, flags);
    pthread_mutex_unlock(&planner);
    return w->rows != NULL && w->lines != NULL && w->depth != NULL &&
           w->depth_back != NULL && w->lines_back != NULL &&
           w->rows_back != NULL;
}

static int make_scratch(work *w)
{
    size_t n = (size_t)w->plan.n[2] * BLOCK;
    w->scratch = calloc((size_t)w->n_thread, sizeof *w->scratch);
    for (int t = 0; w->scratch != NULL && t < w->n_thread; t++) {
        scratch *s = &w->scratch[t];
        s->column = fftw_alloc_complex(n);
        s->amplitude = fftw_alloc_complex((size_t)w->spec->n_comp * n);
        s->product = fftw_alloc_real(n);
        s->at = malloc(n * sizeof *s->at);
        s->part = malloc(n * sizeof *s->part);
        s->weight = malloc(n * sizeof *s->weight);
        if (s->column == NULL || s->amplitude == NULL || s->product == NULL ||
            s->at == NULL || s->part == NULL || s->weight == NULL)
            return 0;
    }
    return w->scratch != NULL;
}

static void set_sizes(work *w)
{
    const tsr_grid_plan *p = &w->plan;
    w->n_pair = tsr_debye_n_pair(w->spec);
    w->n_half = p->n[2] / 2 + 1;
    w->n_column = p->n[0] / 2;
    w->row = (size_t)p->n[0] / 2 + 1;
    w->plane = (w->row * (size_t)p->n[1] + 3) / 4 * 4;
    w->n_shell = 1;
    for (int c = 0; c < 3; c++)
        w->n_shell += (p->n[c] / 2) * (p->n[c] / 2);
    w->n_part =
        p->n_filled[2] < 4 * w->n_thread ? p->n_filled[2] : 4 * w->n_thread;
}

static size_t n_plane(const work *w)
{
    size_t before = (size_t)w->modes.n * (size_t)w->plan.n_filled[2];
    size_t after = (size_t)w->n_pair * (size_t)w->n_half;
    return before > after ? before : after;
}

static tsr_status reserve(work *w, tsr_err *err)
{
    size_t n_pair = (size_t)w->n_pair, n = (size_t)w->spec->n;
    w->grid = fftw_alloc_complex(n_plane(w) * w->plane);
    w->order = malloc(n * sizeof *w->order);
    w->first = calloc((size_t)w->plan.n_filled[2] + 1, sizeof *w->first);
    w->shell = calloc(N_BLOCK * n_pair * (size_t)w->n_shell, sizeof *w->shell);
    w->partial =
        calloc(N_BLOCK * n_pair * (size_t)w->spec->n_q, sizeof *w->partial);
    w->sinc = malloc(N_BLOCK * (size_t)w->spec->n_q * sizeof *w->sinc);
    if (w->grid == NULL || w->order == NULL || w->first == NULL ||
        w->shell == NULL || w->partial == NULL || w->sinc == NULL ||
        !make_scratch(w) || !plan_transforms(w))
        return tsr_fail(err, TSR_E_NOMEM,
                        "out of memory for a grid of %d x %d x %d points",
                        w->plan.n[0], w->plan.n[1], w->plan.n[2]);
    return TSR_OK;
}

static void work_clear(work *w)
{
    fftw_plan plans[] = {w->rows,       w->lines,      w->depth,
                         w->depth_back, w->lines_back, w->rows_back};
    pthread_mutex_lock(&planner);
    for (int i = 0; i < 6; i++)
        if (plans[i] != NULL)
            fftw_destroy_plan(plans[i]);
    pthread_mutex_unlock(&planner);
    for (int t = 0; w->scratch != NULL && t < w->n_thread; t++) {
        fftw_free(w->scratch[t].column);
        fftw_free(w->scratch[t].amplitude);
        fftw_free(w->scratch[t].product);
        free(w->scratch[t].at);
        free(w->scratch[t].part);
        free(w->scratch[t].weight);
    }
    free(w->scratch);
    fftw_free(w->grid);
    free(w->order);
    free(w->first);
    free(w->shell);
    free(w->partial);
    free(w->sinc);
    tsr_grid_plan_clear(&w->plan);
    tsr_factor_modes_clear(&w->modes);
}

void tsr_grid_size_of(const tsr_debye_spec *spec, tsr_grid_size *out)
{
    tsr_grid_plan plan;
    int most = TYPICAL_MODE;
    tsr_grid_plan_box(spec, &plan);
    work w = {.spec = spec, .plan = plan};
    set_sizes(&w);
    w.modes.n = spec->n_type < most ? spec->n_type : most;
    w.modes.n += spec->weight != NULL;
    *out = (tsr_grid_size){.n_mode = w.modes.n,
                           .n_pair = w.n_pair,
                           .n_point = (double)plan.n[0] * plan.n[1] * plan.n[2],
                           .bytes = (double)n_plane(&w) * (double)w.plane *
                                    sizeof *w.grid};
    for (int i = 0; i < spec->n; i++)
        out->n_spread +=
            spec->weight != NULL && spec->weight[i] > 0.0 ? 1.0 : w.modes.n;
}

/* ---- (1) particles ---- */

/* By counting: those of the same z stay in the order of the input. */
static tsr_status sort_particles(work *w, tsr_err *err)
{
    const tsr_debye_spec *s = w->spec;
    int n_z = w->plan.n_filled[2];
    int *z = malloc((size_t)s->n * sizeof *z);
    int *next = calloc((size_t)n_z + 1, sizeof *next);
    if (z == NULL || next == NULL) {
        free(z);
        free(next);
        return tsr_no_memory(err);
    }
    for (int i = 0; i < s->n; i++) {
        z[i] = tsr_grid_first(&w->plan, 2, s->xyz[i]);
        w->first[z[i] + 1]++;
    }
    for (int k = 0; k < n_z; k++)
        w->first[k + 1] += w->first[k];
    memcpy(next, w->first, (size_t)n_z * sizeof *next);
    for (int i = 0; i < s->n; i++)
        w->order[next[z[i]]++] = i;
    free(z);
    free(next);
    return TSR_OK;
}

/* The modes that a particle has a part in, and how much: returns how many. */
static int parts_of(const work *w, int i, int mode[MAX_MODE],
                    double amount[MAX_MODE])
{
    const tsr_factor_modes *m = &w->modes;
    const double *value = m->value + (size_t)w->spec->type[i] * (size_t)m->n;
    int n = 0;
    for (int k = 0; k < m->n; k++) {
        double a = value[k];
        if (k >= m->n_group[0])
            a *= w->spec->weight[i];
        mode[n] = k;
        amount[n] = a;
        n += a != 0.0;
    }
    return n;
}

TSR_CLONES static void spread(double *const *to, const double *amount, int n,
                              size_t row, int n_line, const double *line,
                              const double *along)
{
    eight x = *(const eight *)along;
    for (int k = 0; k < n; k++)
        for (int y = 0; y < n_line; y++) {
            eight *at = (eight *)(to[k] + (size_t)y * row);
            *at += amount[k] * line[y] * x;
        }
}

static void spread_particle(const work *w, int i, int low, int high)
{
    int first[3], mode[MAX_MODE] = {0};
    double weight[3][WIDTH], amount[MAX_MODE] = {0.0}, own[MAX_MODE];
    double *to[MAX_MODE];
    size_t row = 2 * w->row;
    int n = parts_of(w, i, mode, amount);
    if (n == 0)
        return;
    tsr_grid_place(&w->plan, w->spec->xyz[i], first, weight);
    for (int z = 0; z < WIDTH; z++) {
        if (first[2] + z < low || first[2] + z >= high)
            continue;
        for (int k = 0; k < n; k++) {
            to[k] = (double *)plane_of(w, mode[k], w->plan.n_filled[2],
                                       first[2] + z) +
                    (size_t)first[1] * row + first[0];
            own[k] = amount[k] * weight[2][z];
        }
        spread(to, own, n, row, WIDTH, weight[1], weight[0]);
    }
}

static void spread_part(void *context, int part, int thread)
{
    const work *w = context;
    int n_z = w->plan.n_filled[2];
    int low = (int)((long)part * n_z / w->n_part);
    int high = (int)((long)(part + 1) * n_z / w->n_part);
    int from = low - WIDTH + 1 < 0 ? 0 : low - WIDTH + 1;
    (void)thread;
    for (int m = 0; m < w->modes.n; m++)
        memset(plane_of(w, m, n_z, low), 0,
               (size_t)(high - low) * w->plane * sizeof *w->grid);
    for (int i = w->first[from]; i < w->first[high]; i++)
        spread_particle(w, w->order[i], low, high);
    for (int m = 0; m < w->modes.n; m++)
        for (int z = low; z < high; z++) {
            fftw_complex *g = plane_of(w, m, n_z, z);
            fftw_execute_dft_r2c(w->rows, (double *)g, g);
            fftw_execute_dft(w->lines, g, g);
        }
}

/* ---- (2) columns ---- */

typedef struct {
    int y, x, n; /* columns x to x + n - 1 */
} columns;

/* Of BLOCK columns: kx^2 + ky^2, and the kernel's inverse along x. */
typedef struct {
    double k2[BLOCK], inverse[BLOCK];
} across;

/* Where |k| lies in the fine curves, in their last piece beyond k_cut. Returns
 * whether any is not beyond. */
TSR_CLONES static int locate(const tsr_grid_plan *p, const across *c,
                             double inverse_y, int *restrict at,
                             double *restrict part, double *restrict weight)
{
    const double scale = (p->n_fine - 1) / p->k_cut, cut2 = p->k_cut * p->k_cut;
    const int last = p->n_fine - 2;
    double any = 0.0;
    for (int z = 0; z < p->n[2]; z++, at += BLOCK, part += BLOCK) {
        const double kz = p->k[2][z],
                     inverse_yz = inverse_y * p->kernel_inv[2][z];
        for (int b = 0; b < BLOCK; b++) {
            double k2 = c->k2[b] + kz * kz, fine = sqrt(k2) * scale;
            double by = inverse_yz * c->inverse[b];
            int i = fine < last ? (int)fine : last;
            at[b] = i;
            part[b] = fine - i;
            weight[z * BLOCK + b] = k2 < cut2 ? by * by : 0.0;
        }
        for (int b = 0; b < BLOCK; b++)
            any += weight[z * BLOCK + b];
    }
    return any > 0.0;
}

static int locate_columns(const work *w, const columns *c, scratch *s)
{
    const tsr_grid_plan *p = &w->plan;
    const double ky = p->k[1][c->y];
    across own;
    for (int b = 0; b < BLOCK; b++) {
        const int x = b < c->n ? c->x + b : c->x;
        own.k2[b] = p->k[0][x] * p->k[0][x] + ky * ky;
        own.inverse[b] = p->kernel_inv[0][x];
    }
    return locate(p, &own, p->kernel_inv[1][c->y], s->at, s->part, s->weight);
}

static void load(const work *w, int mode, const columns *c, scratch *s)
{
    int n_z = w->plan.n_filled[2];
    memset(s->column, 0, (size_t)w->plan.n[2] * BLOCK * sizeof *s->column);
    for (int z = 0; z < n_z; z++)
        memcpy(s->column + (size_t)z * BLOCK,
               plane_of(w, mode, n_z, z) + (size_t)c->y * w->row + c->x,
               (size_t)c->n * sizeof *s->column);
}

/* Adds a mode, by its curve in a component, to the amplitude of that. */
TSR_CLONES static void add_mode(size_t n, const double *restrict curve,
                                const int *restrict at,
                                const double *restrict part,
                                const double *restrict mode,
                                double *restrict amplitude)
{
    for (size_t i = 0; i < n; i++) {
        const double low = curve[at[i]], high = curve[at[i] + 1];
        const double by = low + part[i] * (high - low);
        amplitude[2 * i] += by * mode[2 * i];
        amplitude[2 * i + 1] += by * mode[2 * i + 1];
    }
}

/* The product of two components, less what spreading did to it. */
TSR_CLONES static void multiply(size_t n, const double *restrict weight,
                                const double *a, const double *b,
                                double *restrict product)
{
    for (size_t i = 0; i < n; i++)
        product[i] =
            weight[i] * (a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);
}

static void store(const work *w, int pair, const columns *c, const scratch *s)
{
    for (int z = 0; z < w->n_half; z++)
        memcpy(plane_of(w, pair, w->n_half, z) + (size_t)c->y * w->row + c->x,
               s->column + (size_t)z * BLOCK, (size_t)c->n * sizeof *s->column);
}

static const double *curve_of(const work *w, int comp, int mode)
{
    return w->plan.curve + ((size_t)comp * (size_t)w->modes.n + (size_t)mode) *
                               (size_t)w->plan.n_fine;
}

static void do_columns(const work *w, const columns *c, scratch *s)
{
    int is_in = locate_columns(w, c, s), n_comp = w->spec->n_comp, pair = 0;
    size_t n = (size_t)w->plan.n[2] * BLOCK;
    memset(s->amplitude, 0, (size_t)n_comp * n * sizeof *s->amplitude);
    for (int m = 0; m < w->modes.n && is_in; m++) {
        load(w, m, c, s);
        fftw_execute_dft(w->depth, s->column, s->column);
        for (int a = 0; a < n_comp; a++)
            if (m >= tsr_modes_first(&w->modes, a) &&
                m < tsr_modes_end(&w->modes, a))
                add_mode(n, curve_of(w, a, m), s->at, s->part,
                         (const double *)s->column,
                         (double *)(s->amplitude + (size_t)a * n));
    }
    memset(s->column, 0, n * sizeof *s->column);
    for (int a = 0; a < n_comp; a++)
        for (int b = a; b < n_comp; b++, pair++) {
            if (is_in) {
                multiply(n, s->weight,
                         (const double *)(s->amplitude + (size_t)a * n),
                         (const double *)(s->amplitude + (size_t)b * n),
                         s->product);
                fftw_execute_dft_r2c(w->depth_back, s->product, s->column);
            }
            store(w, pair, c, s);
        }
}

static void column_part(void *context, int part, int thread)
{
    const work *w = context;
    for (int x = 0; x < (int)w->row; x += BLOCK) {
        int left = (int)w->row - x;
        columns c = {part, x, left < BLOCK ? left : BLOCK};
        do_columns(w, &c, &w->scratch[thread]);
    }
}

/* ---- (3) distances ---- */

static void add_plane(const work *w, const double *g, int z, double *shell)
{
    const int *n = w->plan.n;
    double times = z == 0 || 2 * z == n[2] ? 1.0 : 2.0;
    for (int y = 0; y < n[1]; y++) {
        int dy = y <= n[1] / 2 ? y : n[1] - y;
        const double *line = g + (size_t)y * 2 * w->row;
        double *at = shell + z * z + dy * dy;
        at[0] += times * line[0];
        for (int x = 1; x < n[0] / 2; x++)
            at[x * x] += times * (line[x] + line[n[0] - x]);
        at[n[0] / 2 * (n[0] / 2)] += times * line[n[0] / 2];
    }
}

static void plane_part(void *context, int part, int thread)
{
    const work *w = context;
    int low = part * w->n_half / N_BLOCK,
        high = (part + 1) * w->n_half / N_BLOCK;
    (void)thread;
    for (int pair = 0; pair < w->n_pair; pair++) {
        double *shell =
            w->shell + ((size_t)part * (size_t)w->n_pair + (size_t)pair) *
                           (size_t)w->n_shell;
        for (int z = low; z < high; z++) {
            fftw_complex *g = plane_of(w, pair, w->n_half, z);
            fftw_execute_dft(w->lines_back, g, g);
            fftw_execute_dft_c2r(w->rows_back, g, (double *)g);
            add_plane(w, (double *)g, z, shell);
        }
    }
}

/* ---- the profile ---- */

/* sinc(q_k r) by the recurrence of sines, as debye.c. */
static void add_shell(double r, double dq, int n_q, int n_pair,
                      const double *value, double *row, double *profile)
{
    double x = dq * r, two_cos = 2.0 * cos(x), before = 0.0, here = sin(x);
    row[0] = 1.0;
    for (int k = 1; k < n_q; k++) {
        row[k] = x > 0.0 ? here / (k * x) : 1.0;
        double next = two_cos * here - before;
        before = here;
        here = next;
    }
    for (int p = 0; p < n_pair; p++)
        for (int k = 0; k < n_q; k++)
            profile[(size_t)p * (size_t)n_q + (size_t)k] += value[p] * row[k];
}

static void shell_part(void *context, int part, int thread)
{
    const work *w = context;
    size_t n_shell = (size_t)w->n_shell, n_pair = (size_t)w->n_pair;
    size_t low = (size_t)part * n_shell / N_BLOCK,
           high = ((size_t)part + 1) * n_shell / N_BLOCK;
    size_t n_q = (size_t)w->spec->n_q;
    double *to = w->partial + (size_t)part * n_pair * n_q;
    double *row = w->sinc + (size_t)part * n_q;
    (void)thread;
    for (size_t r2 = low; r2 < high; r2++) {
        double value[6] = {0.0}, any = 0.0;
        for (size_t p = 0; p < n_pair; p++) {
            for (size_t b = 0; b < N_BLOCK; b++)
                value[p] += w->shell[(b * n_pair + p) * n_shell + r2];
            any += fabs(value[p]);
        }
        if (any > 0.0)
            add_shell(w->plan.h_ang * sqrt((double)r2), w->spec->dq_inv_ang,
                      w->spec->n_q, w->n_pair, value, row, to);
    }
}

static void finish(const work *w, double *profile)
{
    size_t n_q = (size_t)w->spec->n_q, n = (size_t)w->n_pair * n_q;
    const int *box = w->plan.n;
    double points = (double)box[0] * box[1] * box[2];
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0;
        double q = (double)(i % n_q) * w->spec->dq_inv_ang;
        for (size_t b = 0; b < N_BLOCK; b++)
            sum += w->partial[b * n + i];
        profile[i] = sum / (points * tsr_grid_window(&w->plan, q));
    }
}

static tsr_status tell(const tsr_debye_progress *progress, double done,
                       tsr_err *err)
{
    return progress != NULL && progress->tell != NULL
               ? progress->tell(progress->context, done, err)
               : TSR_OK;
}

static tsr_status run(work *w, const tsr_debye_progress *progress,
                      double *profile, tsr_err *err)
{
    TSR_TRY(sort_particles(w, err));
    tsr_parallel_run(w->n_part, w->n_thread, spread_part, w);
    TSR_TRY(tell(progress, 0.4, err));
    tsr_parallel_run(w->plan.n[1], w->n_thread, column_part, w);
    TSR_TRY(tell(progress, 0.8, err));
    tsr_parallel_run(N_BLOCK, w->n_thread, plane_part, w);
    tsr_parallel_run(N_BLOCK, w->n_thread, shell_part, w);
    finish(w, profile);
    return tell(progress, 1.0, err);
}

static tsr_status check(const tsr_debye_spec *spec, tsr_err *err)
{
    double q_top = (spec->n_q - 1) * spec->dq_inv_ang;
    TSR_TRY(tsr_debye_check(spec, err));
    if (q_top > tsr_grid_q_most)
        return tsr_fail(
            err, TSR_E_RANGE,
            "a grid is exact up to q = %g 1/A, and the profile goes "
            "to %g: --method direct or quadrature",
            tsr_grid_q_most, q_top);
    return TSR_OK;
}

tsr_status tsr_grid_sum(const tsr_debye_spec *spec, int n_thread,
                        const tsr_debye_progress *progress, double *profile,
                        tsr_err *err)
{
    static const double mode_error = 1e-6;
    work w = {.spec = spec, .n_thread = n_thread};
    TSR_TRY(check(spec, err));
    tsr_status status = tsr_factor_modes_make(spec, mode_error, &w.modes, err);
    if (status == TSR_OK && w.modes.n > MAX_MODE)
        status = tsr_fail(err, TSR_E_INTERNAL, "%d modes of form factors",
                          w.modes.n);
    TSR_THEN(status, tsr_grid_plan_make(spec, &w.modes, &w.plan, err));
    if (status == TSR_OK) {
        set_sizes(&w);
        status = reserve(&w, err);
    }
    TSR_THEN(status, run(&w, progress, profile, err));
    work_clear(&w);
    return status;
}
