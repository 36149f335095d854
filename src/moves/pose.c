/* Pose: turns all torsions of a linker at once, so that the rigid part beyond
 * the linker makes a step that the data allow.
 *
 * A SAXS curve determines the distance between two domains, but hardly their
 * orientation. A pivot changes the distance too much, and closing the linker
 * again allows only small changes. This move draws the turns d of all n
 * torsions together: large in directions that keep the likelihood, small in
 * others.
 *
 * The near part is the rigid part before the linker, the far part the one after
 * the linker. Let xi = J d be the change of pose (rotation vector, shift of the
 * centre c) that small turns give the far part relative to the near part.
 * Column i of J is (u_i, u_i x (c - o_i)), where u_i is the axis of torsion i
 * through o_i, in a frame with its first axis along the line between the
 * centres. At a conformation x the turns are
 *
 *     d ~ N(0, C(x)),  C^-1 = 1 / w^2 + J' S^-1 J,
 *
 * with S [6][6] the covariance of pose changes, learnt in warm-up, and w the
 * width of turns that do not change the pose. d is drawn by conditioning (Rue &
 * Held 2005, 2.3): with d0 ~ N(0, w^2), e ~ N(0, S) and M = S + w^2 J J',
 *
 *     d = d0 - w^2 J' M^-1 (J d0 + e),   |C^-1| = w^-2n |M| / |S|.
 *
 * The reverse move draws -d at the new conformation x', where J and M differ.
 * The density is over torsions, which are coordinates of the prior; other
 * coordinates do not change. So
 *
 *     log_ratio = (log |M(x')| - log |M(x)|) / 2
 *               - (xi' S^-1 xi' - xi S^-1 xi) / 2,   xi' = J(x') d,
 *
 * where w and |S| cancel. A turn by pi or more is not proposed, because its
 * reverse would not be unique.
 *
 * Warm-up learns S from acceptance alone (Vihola 2012, robust adaptive
 * Metropolis). With S = L L' and u = L^-1 xi, the variance in the direction of
 * a step increases if the acceptance probability of the step was above the
 * target, and decreases otherwise. w adapts in the same way: if the data
 * determine the pose closely, turns must be so small that the linear
 * approximation J holds; otherwise no step is accepted, however small S is. */
#include "core/vec3.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { MIN_TORSIONS = 4 };

typedef struct {
    double weight, width, turn, shift, target;
} pose_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", pose_options, weight, .initial = "0",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals; 0: off"),
    TSR_FIELD(DOUBLE, "width", pose_options, width, .unit = "rad",
              .initial = "0.1", .min = 1e-6, .max = 1.0,
              .doc = "largest rotation of a torsion while the pose is kept; "
                     "warm-up reduces it"),
    TSR_FIELD(
        DOUBLE, "turn", pose_options, turn, .unit = "rad", .initial = "0.05",
        .min = 1e-3, .max = 1.0,
        .doc = "width of a rotation of the far part before warm-up adapts it"),
    TSR_FIELD(DOUBLE, "shift", pose_options, shift, .unit = "Angstrom",
              .initial = "0.3", .min = 1e-2, .max = 20.0,
              .doc = "width of a shift of the far part"),
    TSR_FIELD_TARGET(pose_options, "0.25"),
    {0}};

typedef double six[6];

/* Torsions at..at+n-1 of the topology turn the linker. first and last are
 * residues of the rigid parts before [0] and after [1] the linker. */
typedef struct {
    int at, n, c_side;
    int first[2], last[2];
} linker;

typedef struct {
    long n;       /* number of updates */
    double width; /* w, rad */
    six s[6];     /* the covariance S */
    six l[6];     /* its lower Cholesky factor */
} learnt;

typedef struct {
    const tsr_topology *topology;
    pose_options options;
    int n_linker;
    linker *linker; /* [n_linker] */
    learnt *learnt; /* [n_linker] */
    double *turn;   /* [n_torsion + 1] turns d of the torsions of a linker */
    six *jacobian;  /* [n_torsion + 1] columns of J, one for each torsion */
    double (*change)[2]; /* [n_residue] of phi and psi, rad */
    six step;            /* xi of the latest proposal */
} pose_state;

/* ---- small matrices ---- */

/* l: lower Cholesky factor of a positive definite matrix. */
static void cholesky(six a[6], six l[6])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i][j];
            for (int k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
}

static double log_det(six l[6])
{
    double sum = 0.0;
    for (int i = 0; i < 6; i++)
        sum += 2.0 * log(l[i][i]);
    return sum;
}

/* x = L^-1 x */
static void solve_lower(six l[6], six x)
{
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= l[i][k] * x[k];
        x[i] /= l[i][i];
    }
}

/* x = L'^-1 x */
static void solve_upper(six l[6], six x)
{
    for (int i = 5; i >= 0; i--) {
        for (int k = i + 1; k < 6; k++)
            x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
}

/* ---- targets ---- */

/* Reads the linker that begins with torsion `at`. Returns 0 if the linker is an
 * end of a chain or has too few torsions. */
static int read_linker(const tsr_topology *t, int at, linker *out)
{
    int first = t->torsion[at].residue, last;
    while (first > t->residue[first].chain_first &&
           t->residue[first - 1].unit < 0)
        first--;
    last = first;
    while (last < t->residue[first].chain_last && t->residue[last + 1].unit < 0)
        last++;
    *out = (linker){.at = at};
    while (at + out->n < t->n_torsion &&
           t->torsion[at + out->n].residue <= last)
        out->n++;
    out->c_side = t->torsion[at + out->n / 2].c_side;
    const tsr_residue *r = &t->residue[first];
    if (first == r->chain_first || last == r->chain_last)
        return 0;
    int begin = first - 1, end = last + 1;
    while (begin > r->chain_first &&
           t->residue[begin - 1].unit == t->residue[first - 1].unit)
        begin--;
    while (end < r->chain_last &&
           t->residue[end + 1].unit == t->residue[last + 1].unit)
        end++;
    out->first[0] = begin, out->last[0] = first - 1;
    out->first[1] = last + 1, out->last[1] = end;
    return out->n >= MIN_TORSIONS;
}

static int list_linkers(const tsr_topology *t, linker *out)
{
    int n = 0;
    linker one;
    for (int at = 0; at < t->n_torsion; at += one.n)
        if (read_linker(t, at, &one)) {
            if (out != NULL)
                out[n] = one;
            n++;
        }
    return n;
}

static int pose_targets(const void *options, const tsr_topology *topology)
{
    (void)options;
    return list_linkers(topology, NULL);
}

static void *pose_new(tsr_pool *pool, const void *options,
                      const tsr_topology *topology, const tsr_prior *prior)
{
    (void)prior;
    pose_state *s = tsr_pool_new(pool, 1, sizeof *s);
    if (s == NULL)
        return NULL;
    size_t most = (size_t)topology->n_torsion + 1;
    s->topology = topology;
    s->options = *(const pose_options *)options;
    s->n_linker = list_linkers(topology, NULL);
    tsr_pool_array(pool, s->linker, (size_t)s->n_linker + 1);
    tsr_pool_array(pool, s->learnt, (size_t)s->n_linker + 1);
    tsr_pool_array(pool, s->turn, most);
    tsr_pool_array(pool, s->jacobian, most);
    tsr_pool_array(pool, s->change, (size_t)topology->n_residue);
    if (pool->failed)
        return NULL;
    list_linkers(topology, s->linker);
    for (int k = 0; k < s->n_linker; k++) {
        s->learnt[k].width = s->options.width;
        for (int i = 0; i < 6; i++)
            s->learnt[k].s[i][i] =
                pow(i < 3 ? s->options.turn : s->options.shift, 2.0);
        cholesky(s->learnt[k].s, s->learnt[k].l);
    }
    return s;
}

/* ---- the move ---- */

static void centre_of(const tsr_conformation *c, int first, int last,
                      double centre[3])
{
    centre[0] = centre[1] = centre[2] = 0.0;
    for (int i = first; i <= last; i++)
        for (int d = 0; d < 3; d++)
            centre[d] += c->backbone[i][TSR_CA][d] / (last - first + 1);
}

/* Columns of the frame: x points from the near centre to the far centre, z is
 * perpendicular to x and to the bond CA-C of the near part's last residue,
 * which is rigid with the near part. */
static void line_frame(const linker *k, const tsr_conformation *c,
                       double far[3], double frame[3][3])
{
    double near[3], x[3], y[3], z[3], bond[3];
    double(*joint)[3] = c->backbone[k->last[0]];
    centre_of(c, k->first[0], k->last[0], near);
    centre_of(c, k->first[1], k->last[1], far);
    tsr_vec3_sub(x, far, near);
    tsr_vec3_normalize(x);
    tsr_vec3_sub(bond, joint[TSR_C], joint[TSR_CA]);
    tsr_vec3_cross(z, x, bond);
    tsr_vec3_normalize(z);
    tsr_vec3_cross(y, z, x);
    for (int d = 0; d < 3; d++)
        frame[d][0] = x[d], frame[d][1] = y[d], frame[d][2] = z[d];
}

static void set_jacobian(const pose_state *s, const linker *k,
                         const tsr_conformation *c)
{
    double far[3], frame[3][3];
    line_frame(k, c, far, frame);
    for (int i = 0; i < k->n; i++) {
        const tsr_torsion *t = &s->topology->torsion[k->at + i];
        double(*x)[3] = c->backbone[t->residue], u[3], r[3], v[3];
        int from = t->kind == TSR_PHI ? TSR_N : TSR_CA;
        tsr_vec3_sub(u, x[from + 1], x[from]);
        tsr_vec3_normalize(u);
        tsr_vec3_sub(r, far, x[from]);
        tsr_vec3_cross(v, u, r);
        for (int d = 0; d < 3; d++) {
            s->jacobian[i][d] = s->jacobian[i][3 + d] = 0.0;
            for (int e = 0; e < 3; e++) {
                s->jacobian[i][d] += frame[e][d] * u[e];
                s->jacobian[i][3 + d] += frame[e][d] * v[e];
            }
        }
    }
}

/* m: lower Cholesky factor of M = S + w^2 J J'. */
static void factor_m(const pose_state *s, const linker *k, const learnt *own,
                     six m[6])
{
    const double w2 = own->width * own->width;
    six a[6];
    memcpy(a, own->s, sizeof a);
    for (int t = 0; t < k->n; t++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j <= i; j++)
                a[i][j] += w2 * s->jacobian[t][i] * s->jacobian[t][j];
    cholesky(a, m);
}

/* xi = J d */
static void step_of(const pose_state *s, const linker *k, const double *turn,
                    six xi)
{
    memset(xi, 0, sizeof(six));
    for (int t = 0; t < k->n; t++)
        for (int i = 0; i < 6; i++)
            xi[i] += s->jacobian[t][i] * turn[t];
}

/* Log density of the turns at conformation c, without factors that cancel in
 * the ratio. xi (may be NULL) out: the change of pose at c. */
static double log_density(const pose_state *s, int target,
                          const tsr_conformation *c, const double *turn,
                          double *xi)
{
    const linker *k = &s->linker[target];
    learnt *own = &s->learnt[target];
    six m[6], x;
    set_jacobian(s, k, c);
    factor_m(s, k, own, m);
    step_of(s, k, turn, x);
    if (xi != NULL)
        memcpy(xi, x, sizeof x);
    solve_lower(own->l, x);
    double sum = 0.5 * log_det(m);
    for (int i = 0; i < 6; i++)
        sum -= 0.5 * x[i] * x[i];
    return sum;
}

/* Draws the turns; returns 0 if one of them is pi or more. */
static int draw_turns(pose_state *s, const linker *k, const learnt *own,
                      const tsr_conformation *current, gsl_rng *rng)
{
    const double w = own->width;
    six m[6], e, z;
    int within = 1;
    set_jacobian(s, k, current);
    factor_m(s, k, own, m);
    for (int t = 0; t < k->n; t++)
        s->turn[t] = gsl_ran_gaussian_ziggurat(rng, w);
    for (int i = 0; i < 6; i++)
        z[i] = gsl_ran_gaussian_ziggurat(rng, 1.0);
    step_of(s, k, s->turn, e);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++)
            e[i] += own->l[i][j] * z[j];
    solve_lower(m, e);
    solve_upper(m, e);
    for (int t = 0; t < k->n; t++) {
        for (int i = 0; i < 6; i++)
            s->turn[t] -= w * w * s->jacobian[t][i] * e[i];
        within &= fabs(s->turn[t]) < PI;
    }
    return within;
}

static void set_spans(const tsr_topology *t, const linker *k, tsr_proposal *p)
{
    const int first = k->last[0] + 1, last = k->first[1] - 1;
    const tsr_residue *r = &t->residue[first];
    const tsr_span own = {first, last - first + 1, 0};
    p->n_span = 2;
    p->span[k->c_side ? 0 : 1] = own;
    if (k->c_side)
        p->span[1] = (tsr_span){last + 1, r->chain_last - last, 1};
    else
        p->span[0] = (tsr_span){r->chain_first, first - r->chain_first, 1};
}

static void pose_propose(void *state, const tsr_conformation *current,
                         tsr_conformation *proposed, gsl_rng *rng,
                         tsr_proposal *proposal)
{
    pose_state *s = state;
    const tsr_topology *t = s->topology;
    int target = (int)gsl_rng_uniform_int(rng, (unsigned long)s->n_linker);
    const linker *k = &s->linker[target];
    const int first = k->last[0] + 1, last = k->first[1] - 1;
    proposal->target = target;
    proposal->log_ratio = 0.0;
    proposal->n_span = 0;
    int within = draw_turns(s, k, &s->learnt[target], current, rng);
    double there = log_density(s, target, current, s->turn, s->step);
    if (!within)
        return;
    memset(s->change, 0, (size_t)(last - first + 1) * sizeof *s->change);
    for (int i = 0; i < k->n; i++) {
        const tsr_torsion *turned = &t->torsion[k->at + i];
        s->change[turned->residue - first][turned->kind == TSR_PSI] =
            s->turn[i];
    }
    tsr_conformation_turn_many(t, proposed, first, last, k->c_side,
                               (const double(*)[2])s->change);
    set_spans(t, k, proposal);
    proposal->log_ratio =
        log_density(s, target, proposed, s->turn, NULL) - there;
}

static double pose_log_ratio(const void *state, const tsr_conformation *current,
                             const tsr_conformation *proposed,
                             const tsr_proposal *proposal)
{
    const pose_state *s = state;
    if (proposal->n_span == 0)
        return 0.0;
    const linker *k = &s->linker[proposal->target];
    for (int i = 0; i < k->n; i++) {
        const tsr_torsion *t = &s->topology->torsion[k->at + i];
        s->turn[i] =
            remainder(tsr_conformation_torsion(s->topology, proposed,
                                               t->residue, t->kind) -
                          tsr_conformation_torsion(s->topology, current,
                                                   t->residue, t->kind),
                      2.0 * PI);
    }
    return log_density(s, proposal->target, proposed, s->turn, NULL) -
           log_density(s, proposal->target, current, s->turn, NULL);
}

/* Keeps the standard deviation of component i of xi between least and most.
 * Correlations do not change. */
static void clamp_sd(learnt *own, int i, double least, double most)
{
    double sd = sqrt(own->s[i][i]);
    double by = (sd < least ? least : sd > most ? most : sd) / sd;
    for (int j = 0; j < 6; j++) {
        own->s[i][j] *= by;
        own->s[j][i] *= by;
    }
}

static void pose_adapt(void *state, const tsr_proposal *proposal,
                       double accept_probability)
{
    pose_state *s = state;
    learnt *own = &s->learnt[proposal->target];
    double log_width =
        log(own->width) +
        tsr_move_robbins_monro(own->n++, accept_probability, s->options.target);
    double gain = fmin(1.0, 6.0 * pow((double)own->n, -0.6));
    double size = 0.0;
    six u;
    memcpy(u, s->step, sizeof u);
    solve_lower(own->l, u);
    for (int i = 0; i < 6; i++)
        size += u[i] * u[i];
    gain *= (accept_probability - s->options.target) / size;
    for (int i = 0; i < 6; i++) /* L u = xi */
        for (int j = 0; j < 6; j++)
            own->s[i][j] += gain * s->step[i] * s->step[j];
    for (int i = 0; i < 3; i++) {
        clamp_sd(own, i, 0.003, 1.0);
        clamp_sd(own, 3 + i, 0.03, 20.0);
    }
    cholesky(own->s, own->l);
    own->width = fmin(exp(log_width), s->options.width);
}

static void pose_archive(void *state, tsr_archive *archive)
{
    pose_state *s = state;
    for (int k = 0; k < s->n_linker; k++) {
        tsr_archive_long(archive, &s->learnt[k].n, 1);
        tsr_archive_real(archive, &s->learnt[k].width, 1);
        tsr_archive_real(archive, s->learnt[k].s[0], 36);
        cholesky(s->learnt[k].s, s->learnt[k].l);
    }
}

const tsr_move_type tsr_move_pose = {
    .name = "pose",
    .doc = "turns all torsions of a linker at once; the part beyond the linker "
           "makes a step of adapted covariance",
    .source = "Vihola 2012 (the adapted covariance)",
    .options_size = sizeof(pose_options),
    .fields = fields,
    .state_new = pose_new,
    .n_target = pose_targets,
    .propose = pose_propose,
    .log_ratio = pose_log_ratio,
    .adapt = pose_adapt,
    .archive = pose_archive};
