/* Place: draws a new placement of a mobile chain of a complex, in contact with
 * the other chains (structure.contacts). Half of the proposals are independent
 * of the present placement, half are images of it.
 *
 * Independent: the orientation is uniform, and so is the direction u from the
 * middle of all other bodies to that of the chain. The chain then slides along
 * u to the distance r_c at which the first pair of bodies is at its contact
 * distance, and on by d, uniform in [-DEEPEST, FARTHEST]: r = r_c + d. In the
 * measure of the prior, dx dOmega with dx = r^2 dr du, the proposal has the
 * density
 *
 *     q(x') = h(d') / r'^2    up to constants
 *
 * with h = 1 within the range of d, and 0 outside, so that
 *
 *     log ratio = log h(d) - 2 log r + 2 log r'.
 *
 * From a placement with h(d) = 0, such as inside of a pocket, the move cannot
 * be reversed, and proposes nothing. Other moves lead there and away. Chains
 * that ride on the moving chain move with it, and count as part of it.
 *
 * Image: a curve hardly distinguishes the placements of two ellipsoids that
 * follow from each other by mirror planes. With the principal axes V of all
 * other bodies and W of the chain's, and signs S and T, the middle of the chain
 * goes from x to V S V' x, seen from the middle of the others, and its
 * orientation turns by V S V' W T W', where det S = det T. The same signs lead
 * back. Half of the images have S = T = 1. A rotation follows, by an angle that
 * is log-uniform: of the chain about its middle, or about the line of the
 * middles, or of the placement about the middle of the others. The axis is
 * uniform, so the way back has the same density. The distance of the middles,
 * which a curve determines best, stays. All this keeps the volume dx dOmega,
 * and log ratio = 0.
 *
 * Source: independence sampler (Tierney 1994, Ann. Stat. 22, 1701). */
#include "core/vec3.h"
#include "moves/move.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

/* Angstrom. Soft bodies may overlap by 2 Angstrom where they meet head on, and
 * a first pair that meets at a glance leaves room beyond. */
static const double deepest = 4.0, farthest = 2.0;

static const double least_turn = 0.003; /* of an image, in units of pi */

typedef struct {
    double weight;
} place_options;

static const tsr_field fields[] = {
    TSR_FIELD(DOUBLE, "weight", place_options, weight, .initial = "0.1",
              .min = 0.0, .max = 1e6,
              .doc = "weight of the move among all proposals, where chains are "
                     "docked (structure.contacts); 0: off"),
    {0}};

typedef struct {
    const tsr_topology *topology;
    const tsr_prior *prior;
    int *part;        /* [n_body] the part of the complex that carries a body */
    double (*own)[3]; /* [n_body] scratch: bodies of the moving part, from its
                         middle */
    double widest;    /* largest contact distance, Angstrom */
} place_state;

static int place_targets(const void *options, const tsr_topology *t)
{
    int n = 0;
    (void)options;
    for (int k = 0; k < t->n_chain && t->contacts > 0 && t->n_chain > 1; k++)
        n += 2 * t->mobile[k];
    return n;
}

static void *place_new(tsr_pool *pool, const void *options,
                       const tsr_topology *topology, const tsr_prior *prior)
{
    const tsr_topology *t = topology;
    place_state *s = tsr_pool_new(pool, 1, sizeof *s);
    (void)options;
    if (s == NULL)
        return NULL;
    *s = (place_state){.topology = t, .prior = prior};
    tsr_pool_array(pool, s->part, t->n_body);
    tsr_pool_array(pool, s->own, t->n_body);
    for (int b = 0; b < t->n_body && !pool->failed; b++)
        s->part[b] =
            tsr_topology_part(t, t->residue[t->body[b].residue].in_chain);
    for (int a = 0; a < TSR_MAX_TYPE; a++)
        for (int b = 0; b < TSR_MAX_TYPE; b++)
            s->widest = fmax(s->widest, prior->clash.contact[a][b]);
    return pool->failed ? NULL : s;
}

/* ---- contact along a direction ---- */

/* Middles of the moving part and of all other bodies. */
static void find_middles(const place_state *s, int part,
                         const tsr_conformation *c, double own[3],
                         double others[3])
{
    int n[2] = {0};
    double sum[2][3] = {{0.0}};
    for (int b = 0; b < s->topology->n_body; b++) {
        const int is_own = s->part[b] == part;
        n[is_own]++;
        for (int d = 0; d < 3; d++)
            sum[is_own][d] += c->body[b][d];
    }
    for (int d = 0; d < 3; d++) {
        own[d] = sum[1][d] / n[1];
        others[d] = sum[0][d] / n[0];
    }
}

/* The largest distance of the middles along u at which a body of the part, at
 * s->own from its middle, is at its contact distance from another body; 0: the
 * part passes all others. */
static double first_contact(const place_state *s, int part,
                            const tsr_conformation *c, const double others[3],
                            const double u[3])
{
    const tsr_clash *clash = &s->prior->clash;
    const tsr_body *body = s->topology->body;
    const int n = s->topology->n_body;
    double best = 0.0, reach = 0.0;
    for (int k = 0; k < n; k++)
        if (s->part[k] == part)
            reach = fmax(reach, tsr_vec3_norm(s->own[k]) + s->widest);
    for (int i = 0; i < n; i++) {
        double from[3];
        tsr_vec3_sub(from, c->body[i], others);
        if (s->part[i] == part || tsr_vec3_dot(from, u) + reach <= best)
            continue;
        for (int k = 0; k < n; k++) {
            const double d =
                clash->contact[body[i].contact_type][body[k].contact_type];
            double v[3];
            if (s->part[k] != part)
                continue;
            tsr_vec3_sub(v, from, s->own[k]);
            const double along = tsr_vec3_dot(v, u);
            if (along + d <= best)
                continue;
            const double rest = d * d - tsr_vec3_dot(v, v) + along * along;
            if (rest > 0.0)
                best = fmax(best, along + sqrt(rest));
        }
    }
    return best;
}

/* log of h(d) / r^2 at the present placement; -inf: h is 0. */
static double log_density(const place_state *s, int part,
                          const tsr_conformation *c)
{
    double own[3], others[3], u[3];
    find_middles(s, part, c, own, others);
    for (int k = 0; k < s->topology->n_body; k++)
        tsr_vec3_sub(s->own[k], c->body[k], own);
    tsr_vec3_sub(u, own, others);
    const double r = tsr_vec3_norm(u);
    tsr_vec3_normalize(u);
    const double contact = first_contact(s, part, c, others, u);
    const double past = r - contact;
    return contact > 0.0 && past >= -deepest && past <= farthest
               ? -2.0 * log(r)
               : -(double)INFINITY;
}

/* Draws a placement. Returns 0 where the chain would have to pass through the
 * middle of the others. */
static int draw_motion(const place_state *s, int part,
                       const tsr_conformation *c, gsl_rng *rng,
                       tsr_motion *motion)
{
    double own[3], others[3], u[3], q[4], axis[3];
    find_middles(s, part, c, own, others);
    for (int k = 0; k < 4; k++) /* a uniform direction in four dimensions */
        q[k] = gsl_ran_gaussian_ziggurat(rng, 1.0);
    for (int d = 0; d < 3; d++)
        axis[d] = own[d] + q[d];
    tsr_motion_about(motion, own, axis, 2.0 * atan2(tsr_vec3_norm(q), q[3]));
    gsl_ran_dir_3d(rng, &u[0], &u[1], &u[2]);
    const double d = gsl_ran_flat(rng, -deepest, farthest);
    for (int k = 0; k < s->topology->n_body; k++) {
        tsr_vec3_copy(s->own[k], c->body[k]);
        tsr_motion_apply(motion, s->own[k]);
        tsr_vec3_sub(s->own[k], s->own[k], own);
    }
    const double contact = first_contact(s, part, c, others, u);
    for (int k = 0; k < 3; k++)
        motion->shift[k] += others[k] + (contact + d) * u[k] - own[k];
    return contact > 0.0 && contact + d > 0.0;
}

/* ---- images ---- */

/* Sets `out` to sum_k sign_k v_k v_k' over the principal axes v_k of the bodies
 * of the part (is_own 0: of all others), with random signs (is_plain 1: all are
 * 1), and returns their product. 0: the axes are not determined, and would not
 * turn with the part. */
static int draw_mirror(const place_state *s, int part, int is_own,
                       const tsr_conformation *c, const double middle[3],
                       int is_plain, gsl_rng *rng, double out[3][3])
{
    double square[9] = {0.0}, value[3], axis[3][3], x[3];
    int product = 1;
    for (int b = 0; b < s->topology->n_body; b++) {
        if ((s->part[b] == part) != is_own)
            continue;
        tsr_vec3_sub(x, c->body[b], middle);
        for (int k = 0; k < 9; k++)
            square[k] += x[k / 3] * x[k % 3];
    }
    tsr_eigen(3, square, value, axis[0]);
    memset(out, 0, 9 * sizeof out[0][0]);
    for (int k = 0; k < 3; k++) {
        const int sign = is_plain || gsl_rng_uniform(rng) < 0.5 ? 1 : -1;
        product *= sign;
        for (int i = 0; i < 9; i++)
            out[i / 3][i % 3] += sign * axis[k][i / 3] * axis[k][i % 3];
    }
    const double gap = fmin(value[0] - value[1], value[1] - value[2]);
    return is_own && gap <= 1e-6 * value[0] ? 0 : product;
}

/* Draws an image of the present placement. Returns 0 where the axes of the
 * chain are not determined. */
static int draw_image(const place_state *s, int part, const tsr_conformation *c,
                      gsl_rng *rng, tsr_motion *motion)
{
    double own[3], others[3], to[3], axis[3], of_others[3][3], of_own[3][3];
    tsr_motion turn;
    find_middles(s, part, c, own, others);
    const int plain = gsl_rng_uniform(rng) < 0.5; /* a turn alone */
    const int n = draw_mirror(s, part, 0, c, others, plain, rng, of_others);
    const int sign = n * draw_mirror(s, part, 1, c, own, plain, rng, of_own);
    tsr_vec3_sub(axis, own, others);
    for (int i = 0; i < 3; i++) {
        to[i] = others[i] + tsr_vec3_dot(of_others[i], axis);
        for (int j = 0; j < 3; j++) /* both are symmetric matrices */
            motion->rotation[i][j] =
                sign * tsr_vec3_dot(of_others[i], of_own[j]);
        motion->shift[i] = to[i] - tsr_vec3_dot(motion->rotation[i], own);
    }
    const unsigned long kind = gsl_rng_uniform_int(rng, 3);
    const double *about = kind == 0 ? others : to;
    const double angle = TSR_PI * pow(least_turn, gsl_rng_uniform(rng));
    gsl_ran_dir_3d(rng, &axis[0], &axis[1], &axis[2]);
    for (int i = 0; i < 3; i++)
        axis[i] = about[i] + (kind == 2 ? to[i] - others[i] : axis[i]);
    tsr_motion_about(&turn, about, axis,
                     gsl_rng_uniform(rng) < 0.5 ? angle : -angle);
    tsr_motion_compose(motion, &turn, motion);
    return sign != 0;
}

/* ---- the move ---- */

/* Targets 2 k and 2 k + 1 are independent placements and images of the k-th
 * mobile chain. */
static int chain_of_target(const tsr_topology *t, int target)
{
    int chain = 0;
    target /= 2;
    while (!t->mobile[chain] || target-- > 0)
        chain++;
    return chain;
}

static double place_log_ratio(const void *state,
                              const tsr_conformation *current,
                              const tsr_conformation *proposed,
                              const tsr_proposal *proposal)
{
    const place_state *s = state;
    const int part = chain_of_target(s->topology, proposal->target) + 1;
    return proposal->n_span == 0 || proposal->target % 2 == 1
               ? 0.0
               : log_density(s, part, current) - log_density(s, part, proposed);
}

static void place_propose(void *state, const tsr_conformation *current,
                          tsr_conformation *proposed, gsl_rng *rng,
                          tsr_proposal *proposal)
{
    const place_state *s = state;
    const tsr_topology *t = s->topology;
    const int k =
        (int)gsl_rng_uniform_int(rng, (unsigned long)place_targets(NULL, t));
    const int chain = chain_of_target(t, k), first = t->chain_start[chain];
    const int count = t->chain_start[chain + 1] - first;
    double own[3], others[3];
    tsr_motion motion;
    *proposal = (tsr_proposal){.target = k};
    if (k % 2 == 1) {
        if (!draw_image(s, chain + 1, current, rng, &motion))
            return;
    } else {
        const double back = log_density(s, chain + 1, current);
        if (!draw_motion(s, chain + 1, current, rng, &motion) ||
            !isfinite(back))
            return;
        find_middles(s, chain + 1, current, own, others);
        tsr_motion_apply(&motion, own);
        proposal->log_ratio = back + 2.0 * log(tsr_vec3_distance(own, others));
    }
    proposal->n_span = 1;
    proposal->span[0] = (tsr_span){first, count, 1};
    tsr_conformation_move(t, proposed, first, first + count - 1, &motion);
}

const tsr_move_type tsr_move_place = {
    .name = "place",
    .doc = "draws a new placement of a mobile chain, in contact with the other "
           "chains",
    .source = "Tierney 1994 (independence sampler)",
    .options_size = sizeof(place_options),
    .fields = fields,
    .state_new = place_new,
    .n_target = place_targets,
    .propose = place_propose,
    .log_ratio = place_log_ratio};

/* ---- starts ---- */

int tsr_place_chains(const tsr_prior *prior, gsl_rng *rng,
                     tsr_conformation *conformation)
{
    enum { MOST_DRAWS = 2000 };
    const tsr_topology *t = prior->topology;
    tsr_pool pool = {0};
    char worst[160];
    int found = 0;
    const place_state *s = place_new(&pool, NULL, t, prior);
    for (int n = 0; n < MOST_DRAWS && s != NULL && !found; n++) {
        for (int c = 0; c < t->n_chain; c++) {
            tsr_motion motion;
            if (!t->mobile[c] ||
                !draw_motion(s, c + 1, conformation, rng, &motion))
                continue;
            for (int k = 0; k < t->n_chain; k++) /* those that ride, too */
                if (tsr_topology_part(t, k) == c + 1)
                    tsr_conformation_move(t, conformation, t->chain_start[k],
                                          t->chain_start[k + 1] - 1, &motion);
        }
        found = tsr_prior_is_in_contact(t, conformation) &&
                (tsr_prior_clashes(prior, conformation, worst) == 0 ||
                 n > MOST_DRAWS / 2);
    }
    tsr_pool_clear(&pool);
    return found;
}
