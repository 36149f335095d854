/* Rigid docking: all shifts of many orientations at a coarse resolution, then
 * refinement of the best poses one by one. */
#include "maps/dock.h"

#include "core/pool.h"
#include "core/vec3.h"
#include "maps/density.h"
#include "maps/fourier.h"

#include <gsl/gsl_multimin.h>
#include <string.h>

enum {
    IN_GROUP = 8,         /* atoms that the search and the first refinements
                             join into one */
    MOST_CANDIDATES = 16, /* poses that are refined */
    MOST_TURNS = 20000    /* orientations that are tried */
};

static const double two_pi = 6.28318530717958648;

/* Weighted points. */
typedef struct {
    int n;
    double (*xyz)[3]; /* Angstrom, relative to the model's centre */
    double *weight;
} cloud;

typedef struct {
    const tsr_map *map;
    double mean;                     /* of the map */
    double centre[3], rg;            /* of the model, Angstrom */
    double coarse_ang, coarse_sigma; /* resolution of the search, and width of
                                        an atom, Angstrom */
    const tsr_dock_options *o;
    tsr_pool pool;
    cloud all, group;     /* atoms, and groups of atoms */
    tsr_blurred *blurred; /* for refinement */
} dock;

void tsr_map_pose_apply(const tsr_map_pose *pose, const double x[3],
                        double out[3])
{
    double d[3];
    tsr_vec3_sub(d, x, pose->from);
    for (int c = 0; c < 3; c++)
        out[c] = pose->to[c] + tsr_vec3_dot(pose->turn[c], d);
}

/* ---- the model ---- */

static tsr_status set_model(dock *d, int n, const double (*xyz)[3],
                            const double *weight, tsr_err *err)
{
    const int n_group = (n + IN_GROUP - 1) / IN_GROUP;
    double sum = 0.0, square = 0.0;
    d->all.n = n;
    d->group.n = n_group;
    tsr_pool_array(&d->pool, d->all.xyz, n);
    tsr_pool_array(&d->pool, d->all.weight, n);
    tsr_pool_array(&d->pool, d->group.xyz, n_group);
    tsr_pool_array(&d->pool, d->group.weight, n_group);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            d->centre[c] += xyz[i][c] / n;
    for (int i = 0; i < n; i++) {
        const int g = i / IN_GROUP;
        tsr_vec3_sub(d->all.xyz[i], xyz[i], d->centre);
        d->all.weight[i] = weight[i];
        d->group.weight[g] += weight[i];
        for (int c = 0; c < 3; c++)
            d->group.xyz[g][c] += weight[i] * d->all.xyz[i][c];
        sum += weight[i];
        square += weight[i] * tsr_vec3_dot(d->all.xyz[i], d->all.xyz[i]);
    }
    for (int g = 0; g < n_group; g++)
        for (int c = 0; c < 3; c++)
            d->group.xyz[g][c] /= d->group.weight[g];
    d->rg = fmax(1.0, sqrt(square / sum));
    if (!(d->rg < 1e5))
        return tsr_fail(err, TSR_E_DATA,
                        "a model with a radius of gyration of %.3g Angstrom "
                        "cannot be docked",
                        d->rg);
    d->coarse_ang = fmax(d->o->resolution_ang, d->rg / 1.5);
    d->coarse_sigma = d->o->sigma_ang * d->coarse_ang / d->o->resolution_ang;
    return TSR_OK;
}

/* ---- orientations ---- */

/* Number of orientations to try, from 500 to MOST_TURNS. The angle between
 * neighbours moves an atom at 1.5 radii of gyration from the centre by about
 * the coarse resolution. */
static int count_turns(const dock *d)
{
    const double step = d->coarse_ang / (1.5 * d->rg);
    const double n = 2.0 * two_pi * two_pi / (step * step * step);
    return n < 500.0 ? 500 : n > MOST_TURNS ? MOST_TURNS : (int)n;
}

/* The rotation of a quaternion with real part a. */
static void quaternion_to_matrix(double a, double b, double c, double e,
                                 double turn[3][3])
{
    const double m[3][3] = {
        {1 - 2 * (c * c + e * e), 2 * (b * c - e * a), 2 * (b * e + c * a)},
        {2 * (b * c + e * a), 1 - 2 * (b * b + e * e), 2 * (c * e - b * a)},
        {2 * (b * e - c * a), 2 * (c * e + b * a), 1 - 2 * (b * b + c * c)}};
    memcpy(turn, m, sizeof m);
}

/* Orientation k of n on a super-Fibonacci spiral (Alexa 2022). */
static void choose_turn(int k, int n, double turn[3][3])
{
    const double psi = 1.533751168755204288118041, s = k + 0.5;
    const double r1 = sqrt(s / n), r2 = sqrt(1.0 - s / n);
    const double alpha = two_pi * s / sqrt(2.0), beta = two_pi * s / psi;
    const double a = r2 * cos(beta), b = r1 * sin(alpha);
    const double c = r1 * cos(alpha), e = r2 * sin(beta);
    quaternion_to_matrix(a, b, c, e, turn);
}

/* out = exp(v) m. */
static void turn_by(const double v[3], const double m[3][3], double out[3][3])
{
    const double angle = tsr_vec3_norm(v), half = 0.5 * angle;
    const double s = angle > 1e-12 ? sin(half) / angle : 0.5;
    const double a = cos(half), b = s * v[0], c = s * v[1], e = s * v[2];
    double r[3][3];
    quaternion_to_matrix(a, b, c, e, r);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[i][j] =
                r[i][0] * m[0][j] + r[i][1] * m[1][j] + r[i][2] * m[2][j];
}

/* Mean square distance between the atoms of two poses, for a model with
 * isotropic inertia, Angstrom squared. */
static double distance2(const dock *d, const tsr_map_pose *a,
                        const tsr_map_pose *b)
{
    double trace = 0.0;
    for (int i = 0; i < 3; i++)
        trace += tsr_vec3_dot(a->turn[i], b->turn[i]);
    return tsr_vec3_distance2(a->to, b->to) +
           2.0 / 3.0 * d->rg * d->rg * (3.0 - trace);
}

static void remove_pose(tsr_map_pose *list, int i, int *n)
{
    --*n;
    memmove(list + i, list + i + 1, (size_t)(*n - i) * sizeof *list);
}

/* Inserts a pose into the list, best first, unless a better pose lies closer to
 * it than `least`. Closer poses with lower scores are removed. */
static void insert_pose(const dock *d, const tsr_map_pose *pose, double least,
                        int most, tsr_map_pose *list, int *n)
{
    int at = 0;
    for (int i = *n - 1; i >= 0; i--)
        if (distance2(d, pose, &list[i]) < least * least) {
            if (list[i].score >= pose->score)
                return;
            remove_pose(list, i, n);
        }
    while (at < *n && list[at].score >= pose->score)
        at++;
    if (at >= most)
        return;
    *n = *n < most ? *n + 1 : most;
    memmove(list + at + 1, list + at, (size_t)(*n - 1 - at) * sizeof *list);
    list[at] = *pose;
}

/* ---- the search ---- */

/* A grid over the map's box, with voxels of about a third of the coarse
 * resolution. */
static tsr_map_grid coarse_grid(const dock *d)
{
    tsr_map_grid g = d->map->grid;
    for (int c = 0; c < 3; c++) {
        const double edge = g.n[c] * g.step[c];
        const int n = 2 * (int)ceil(1.5 * edge / d->coarse_ang);
        g.n[c] = n < g.n[c] ? n : g.n[c];
        g.step[c] = edge / g.n[c];
    }
    return g;
}

/* Copies the frequencies of the coarse grid from the map's transform, and blurs
 * them to the coarse resolution. is_laplacian: applies the Laplacian twice,
 * once for the map and once for the model. */
static void crop_frequencies(const dock *d, const tsr_fourier *from,
                             tsr_fourier *to)
{
    const tsr_map_grid *g = &to->grid, *h = &from->grid;
    const double blur =
        0.5 * two_pi * two_pi *
        (d->coarse_sigma * d->coarse_sigma - pow(d->o->sigma_ang, 2.0));
    size_t at = 0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < to->half; x++, at++) {
                const int zz = z <= g->n[2] / 2 ? z : z + h->n[2] - g->n[2];
                const int yy = y <= g->n[1] / 2 ? y : y + h->n[1] - g->n[1];
                const size_t k = ((size_t)zz * (size_t)h->n[1] + (size_t)yy) *
                                     (size_t)from->half +
                                 (size_t)x;
                const double s2 = tsr_fourier_s2(g, x, y, z);
                const double w =
                    exp(-blur * s2) * (d->o->is_laplacian ? s2 * s2 : 1.0);
                to->f[at][0] = (float)(w * (double)from->f[k][0]);
                to->f[at][1] = (float)(w * (double)from->f[k][1]);
            }
}

/* Density of the turned model, with its centre at the first voxel, on a
 * periodic grid. */
static void compute_density(const dock *d, const tsr_map_grid *g,
                            const double turn[3][3], float *value)
{
    const double rate = 0.5 / (d->coarse_sigma * d->coarse_sigma);
    memset(value, 0, tsr_map_n_voxel(g) * sizeof *value);
    for (int i = 0; i < d->group.n; i++) {
        enum { SIDE = 9 };
        int at[3][SIDE];
        double w[3][SIDE];
        for (int c = 0; c < 3; c++) {
            const double x =
                tsr_vec3_dot(turn[c], d->group.xyz[i]) / g->step[c];
            const int middle = (int)floor(x + 0.5), n = g->n[c];
            for (int k = 0; k < SIDE; k++) {
                const int v = middle + k - SIDE / 2;
                const double far = (v - x) * g->step[c];
                at[c][k] = ((v % n) + n) % n;
                w[c][k] = exp(-rate * far * far);
            }
        }
        for (int z = 0; z < SIDE; z++)
            for (int y = 0; y < SIDE; y++) {
                float *row = value + ((size_t)at[2][z] * (size_t)g->n[1] +
                                      (size_t)at[1][y]) *
                                         (size_t)g->n[0];
                const double wzy = d->group.weight[i] * w[2][z] * w[1][y];
                for (int x = 0; x < SIDE; x++)
                    row[at[0][x]] += (float)(wzy * w[0][x]);
            }
    }
}

/* Finds the best shift of one orientation, and sets pose->to and pose->score.
 * value: scratch. */
static tsr_status find_best_shift(const dock *d, const tsr_fourier *map,
                                  float *value, tsr_map_pose *pose,
                                  tsr_err *err)
{
    const tsr_map_grid *g = &map->grid;
    const size_t n = tsr_map_n_voxel(g);
    const size_t n_f = (size_t)map->half * (size_t)g->n[1] * (size_t)g->n[2];
    tsr_fourier f;
    compute_density(d, g, (const double(*)[3])pose->turn, value);
    TSR_TRY(tsr_fourier_make(g, value, 0.0, &f, err));
    for (size_t k = 0; k < n_f; k++) {
        const float a = map->f[k][0], b = map->f[k][1];
        const float u = f.f[k][0], v = f.f[k][1];
        f.f[k][0] = a * u + b * v;
        f.f[k][1] = b * u - a * v;
    }
    tsr_status status = tsr_fourier_back(&f, value, err);
    tsr_fourier_clear(&f);
    size_t best = 0;
    for (size_t k = 1; k < n && status == TSR_OK; k++)
        best = value[k] > value[best] ? k : best;
    const size_t at[3] = {best % (size_t)g->n[0],
                          best / (size_t)g->n[0] % (size_t)g->n[1],
                          best / (size_t)g->n[0] / (size_t)g->n[1]};
    for (int c = 0; c < 3; c++)
        pose->to[c] = g->origin[c] + (double)at[c] * g->step[c];
    pose->score = (double)value[best];
    return status;
}

/* Lists the best poses over all orientations and shifts. */
static tsr_status search_orientations(dock *d, tsr_map_pose *list, int *n_list,
                                      tsr_err *err)
{
    const tsr_map_grid grid = coarse_grid(d);
    const int n = count_turns(d);
    tsr_fourier full = {.f = NULL}, map = {.f = NULL};
    float *value;
    tsr_pool_array(&d->pool, value, tsr_map_n_voxel(&grid));
    TSR_TRY(tsr_pool_check(&d->pool, err));
    tsr_status status =
        tsr_fourier_make(&d->map->grid, d->map->value, d->mean, &full, err);
    TSR_THEN(status, tsr_fourier_make(&grid, value, 0.0, &map, err));
    if (status == TSR_OK)
        crop_frequencies(d, &full, &map);
    tsr_fourier_clear(&full);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        tsr_map_pose pose;
        tsr_vec3_copy(pose.from, d->centre);
        choose_turn(k, n, pose.turn);
        status = find_best_shift(d, &map, value, &pose, err);
        if (status == TSR_OK)
            insert_pose(d, &pose, 0.5 * d->coarse_ang, MOST_CANDIDATES, list,
                        n_list);
    }
    tsr_fourier_clear(&map);
    return status;
}

/* ---- refinement ---- */

/* What the simplex method maximises: the overlap near one pose. */
typedef struct {
    const dock *d;
    const cloud *model;
    double level;             /* of the blurred map */
    const tsr_map_pose *from; /* pose at which steps begin */
} local;

/* Applies a step in six dimensions: a rotation vector times the radius of
 * gyration, and a shift, both in Angstrom. */
static void step_from(const dock *d, const tsr_map_pose *from,
                      const gsl_vector *step, tsr_map_pose *out)
{
    double v[3];
    for (int c = 0; c < 3; c++)
        v[c] = gsl_vector_get(step, (size_t)c) / d->rg;
    *out = *from;
    turn_by(v, (const double(*)[3])from->turn, out->turn);
    for (int c = 0; c < 3; c++)
        out->to[c] += gsl_vector_get(step, (size_t)c + 3);
}

static double overlap(const local *l, const tsr_map_pose *pose)
{
    double sum = 0.0;
    for (int i = 0; i < l->model->n; i++) {
        double x[3];
        for (int c = 0; c < 3; c++)
            x[c] = pose->to[c] + tsr_vec3_dot(pose->turn[c], l->model->xyz[i]);
        sum += l->model->weight[i] * tsr_blurred_at(l->d->blurred, l->level, x);
    }
    return sum;
}

static double to_minimise(const gsl_vector *step, void *context)
{
    const local *l = context;
    tsr_map_pose pose;
    step_from(l->d, l->from, step, &pose);
    return -overlap(l, &pose);
}

/* Maximises the overlap by the simplex method, with steps from `size` down to a
 * fiftieth of `size`. Returns 0 where the overlap is not finite. */
static int maximise_overlap(local *l, double size,
                            gsl_multimin_fminimizer *simplex, gsl_vector *start,
                            gsl_vector *steps, tsr_map_pose *pose)
{
    gsl_multimin_function f = {.f = to_minimise, .n = 6, .params = l};
    gsl_vector_set_zero(start);
    gsl_vector_set_all(steps, size);
    if (gsl_multimin_fminimizer_set(simplex, &f, start, steps) != 0)
        return 0;
    for (int k = 0; k < 250; k++)
        if (gsl_multimin_fminimizer_iterate(simplex) != 0 ||
            gsl_multimin_fminimizer_size(simplex) < 0.02 * size)
            break;
    step_from(l->d, l->from, simplex->x, pose);
    pose->score = -simplex->fval;
    return 1;
}

/* A pass of refinement at one width of the blur. size: first step, Angstrom. */
typedef struct {
    const cloud *model;
    double sigma_ang, size;
} pass;

static tsr_status refine(const dock *d, const pass *p, tsr_map_pose *pose,
                         tsr_err *err)
{
    const tsr_map_pose from = *pose;
    local l = {d, p->model,
               tsr_blurred_level(d->blurred, p->sigma_ang * p->sigma_ang),
               &from};
    gsl_multimin_fminimizer *simplex =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, 6);
    gsl_vector *start = gsl_vector_alloc(6), *steps = gsl_vector_alloc(6);
    const int is_allocated = simplex != NULL && start != NULL && steps != NULL;
    const int ok = is_allocated &&
                   maximise_overlap(&l, p->size, simplex, start, steps, pose);
    if (simplex != NULL)
        gsl_multimin_fminimizer_free(simplex);
    gsl_vector_free(start);
    gsl_vector_free(steps);
    return ok ? TSR_OK
           : !is_allocated
               ? tsr_fail(err, TSR_E_NOMEM, "out of memory for docking")
               : tsr_fail(err, TSR_E_NUMERIC,
                          "docking: an overlap is not a finite number");
}

static tsr_status find_poses(dock *d, int most, tsr_map_pose *pose, int *n_pose,
                             tsr_err *err)
{
    const double coarse = d->coarse_sigma, map_sigma = d->o->sigma_ang;
    const double middle = sqrt(coarse * map_sigma);
    const pass passes[] = {{&d->group, coarse, 0.3 * d->coarse_ang},
                           {&d->group, middle, middle},
                           {&d->all, map_sigma, 0.5 * map_sigma}};
    const tsr_map_filter plain = {.n = 1, .share = {1.0}};
    tsr_map_pose list[MOST_CANDIDATES], next[MOST_CANDIDATES];
    int n = 0, n_next = 0;
    TSR_TRY(search_orientations(d, list, &n, err));
    TSR_TRY(tsr_blurred_make(d->map, d->mean, &plain, map_sigma * map_sigma,
                             coarse * coarse, &d->pool, &d->blurred, err));
    for (int p = 0; p < 3; p++) {
        n_next = 0;
        for (int k = 0; k < n; k++) {
            TSR_TRY(refine(d, &passes[p], &list[k], err));
            insert_pose(d, &list[k], d->o->resolution_ang, MOST_CANDIDATES,
                        next, &n_next);
        }
        /* The last pass costs most, so it refines only three poses more than
         * the caller wants. */
        n = p == 1 && n_next > most + 3 ? most + 3 : n_next;
        memcpy(list, next, (size_t)n * sizeof *list);
    }
    *n_pose = n < most ? n : most;
    memcpy(pose, list, (size_t)*n_pose * sizeof *pose);
    return TSR_OK;
}

tsr_status tsr_dock(const tsr_map *map, int n, const double (*xyz)[3],
                    const double *weight, const tsr_dock_options *options,
                    int most, tsr_map_pose *pose, int *n_pose, tsr_err *err)
{
    const tsr_map_sums whole = tsr_map_whole(map);
    dock d = {.map = map,
              .mean = whole.n > 0.0 ? whole.e / whole.n : 0.0,
              .o = options};
    *n_pose = 0;
    tsr_status status = set_model(&d, n, xyz, weight, err);
    TSR_THEN(status, find_poses(&d, most, pose, n_pose, err));
    tsr_pool_clear(&d.pool);
    return status;
}
