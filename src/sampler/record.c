/* The columns that chain, ladder, parameters and likelihood terms declare, and
 * the block of draws that collects their values. */
#include "sampler/record.h"

#include "molecule/rigid_pose.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ----
 *
 * Radii and log densities of the chain, temperatures of the ladder, parameters
 * of the table, and chi2, predictions and data of the likelihood terms. When a
 * draw is stored, the record calls the getter of each column. */

/* Rows of a draw for each term: expected values, a replicate of the data, log
 * densities of the points. */
enum { TSR_ROW_MEAN, TSR_ROW_REPLICATE, TSR_ROW_POINTWISE, TSR_N_ROW };

/* A draw as the getters receive it. */
typedef struct {
    const tsr_target *target;
    const tsr_chain_view *view; /* state of the replica at temperature 1, or of
                                   the all-atom chain */
    const tsr_ladder *ladder;   /* the chain's ladder */
    tsr_chain *const *replica;  /* [n_temp] the ladder's replicas */
    const tsr_all_atom_chain *all_atom; /* NULL: the model has none */
    double acceptance_rate;             /* accepted share of the proposals since
                                           the last draw */
    const double *theta; /* [n_parameter] the chain's parameters; parameters
                            that were integrated out are drawn */
    const double *const *row[TSR_N_ROW]; /* [n_term][n_point]; filled after
                                            warm-up only */
} tsr_draw;

/* The third dimension of a column, after chain and draw. */
typedef struct {
    const char *name; /* NULL: a scalar */
    int n;
    const double *coord;
    const char *coord_unit;
    const char *const *label; /* labels of the n entries in place of coord */
} tsr_column_axis;

typedef struct tsr_column tsr_column;
struct tsr_column {
    tsr_trace_group group;
    char name[48], dim[48];
    const char *unit, *doc; /* description; the part before a semicolon is the
                               display name */
    char own_doc[128];      /* used where doc is NULL */
    tsr_column_axis axis;
    int index, state; /* for the getter. index: number of the parameter, term,
                         pose or tail, or byte offset in the view; state: number
                         of the state */
    int part; /* for the getter: number of the row of the term, or of the value
                 of the pose or tail */
    /* Writes value [axis.n]. NULL for observed and constant data, whose values
     * are `constant`. */
    void (*get)(const tsr_column *column, const tsr_draw *draw, double *value);
    const double *constant;
};

typedef struct {
    tsr_pool *pool;
    int n, capacity;
    tsr_column *item; /* [n] */
} tsr_columns;

static tsr_status append(tsr_columns *columns, const tsr_column *column,
                         tsr_err *err)
{
    tsr_columns *c = columns;
    if (c->n == c->capacity) {
        int capacity = 2 * c->capacity + 32;
        tsr_column *more =
            tsr_pool_resize(c->pool, c->item, (size_t)capacity, sizeof *more);
        TSR_TRY(tsr_allocated(more, err));
        c->item = more;
        c->capacity = capacity;
    }
    c->item[c->n++] = *column;
    return TSR_OK;
}

/* Adds a column. A scalar of the group `posterior` or `sample_stats` is also
 * stored in warm-up, as a second column of the group for warm-up. Errors:
 * TSR_E_INTERNAL (neither a getter nor a constant), TSR_E_NOMEM. */
static tsr_status columns_add(tsr_columns *columns, tsr_column column,
                              tsr_err *err)
{
    if (column.get == NULL && column.constant == NULL)
        return tsr_fail(err, TSR_E_INTERNAL,
                        "column '%s' of the trace has no source", column.name);
    TSR_TRY(append(columns, &column, err));
    const int is_scalar = column.axis.name == NULL;
    if (is_scalar && (column.group == TSR_TRACE_POSTERIOR ||
                      column.group == TSR_TRACE_SAMPLE_STATS)) {
        column.group = column.group == TSR_TRACE_POSTERIOR
                           ? TSR_TRACE_WARMUP_POSTERIOR
                           : TSR_TRACE_WARMUP_SAMPLE_STATS;
        TSR_TRY(append(columns, &column, err));
    }
    return TSR_OK;
}

static const tsr_column_axis no_axis = {NULL, 1, NULL, NULL, NULL};

typedef void getter(const tsr_column *column, const tsr_draw *draw,
                    double *value);

/* Adds a column with one number for each draw, or with one for each entry of
 * its axis. */
static tsr_status add_column(tsr_columns *columns, tsr_trace_group group,
                             const char *name, const char *unit,
                             const char *doc, tsr_column_axis axis, int index,
                             getter *get, tsr_err *err)
{
    tsr_column c = {.group = group,
                    .unit = unit,
                    .doc = doc,
                    .axis = axis,
                    .index = index,
                    .get = get};
    snprintf(c.name, sizeof c.name, "%s", name);
    snprintf(c.dim, sizeof c.dim, "%s", axis.name != NULL ? axis.name : "");
    return columns_add(columns, c, err);
}

static tsr_status add_scalar(tsr_columns *columns, tsr_trace_group group,
                             const char *name, const char *unit,
                             const char *doc, int index, getter *get,
                             tsr_err *err)
{
    return add_column(columns, group, name, unit, doc, no_axis, index, get,
                      err);
}

/* ---- the chain ---- */

/* Copies the member of the view, a double, at byte offset c->index. */
static void get_member(const tsr_column *c, const tsr_draw *d, double *value)
{
    memcpy(value, (const char *)d->view + c->index, sizeof *value);
}

#define MEMBER(name) ((int)offsetof(tsr_chain_view, name))

/* Offset of element k of an array member. */
static int element(int member, int k)
{
    return member + k * (int)sizeof(double);
}

static void get_acceptance(const tsr_column *c, const tsr_draw *d,
                           double *value)
{
    (void)c;
    *value = d->acceptance_rate;
}

static double ratio(double sum, long n)
{
    return n > 0 ? sum / (double)n : (double)NAN;
}

static void get_acceptance_by_move(const tsr_column *c, const tsr_draw *d,
                                   double *value)
{
    const tsr_chain_counts *counts = d->view->since_draw;
    for (int m = 0; m < c->axis.n; m++)
        value[m] = ratio((double)counts->accepted[m], counts->proposed[m]);
}

static void get_changed_by_move(const tsr_column *c, const tsr_draw *d,
                                double *value)
{
    const tsr_chain_counts *counts = d->view->since_draw;
    for (int m = 0; m < c->axis.n; m++)
        value[m] = ratio(counts->changed[m], counts->evaluated[m]);
}

/* Weights of state c->state in every mixture. */
static void get_curve_weight(const tsr_column *c, const tsr_draw *d,
                             double *value)
{
    for (int m = 0; m < c->axis.n; m++)
        value[m] = tsr_chain_view_weight(d->view, m, c->state);
}

/* The axis of several samples: their `at`, or where a sample has none, the
 * numbers of their first entries in `data:`. */
static tsr_status make_curve_axis(const tsr_likelihood *l, tsr_pool *pool,
                                  tsr_column_axis *axis, tsr_err *err)
{
    double *at, *entry;
    const char *unit = NULL;
    int is_series = 1;
    tsr_pool_array(pool, at, l->n_mixture);
    tsr_pool_array(pool, entry, l->n_mixture);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int d = l->n_term - 1; d >= 0; d--) {
        const tsr_term *term = l->term[d];
        entry[term->mixture] = term->number;
        at[term->mixture] = term->at;
        is_series &= term->has_own_weights && isfinite(term->at);
        unit = term->at_unit != NULL ? term->at_unit : unit;
    }
    *axis =
        (tsr_column_axis){.name = "curve",
                          .n = l->n_mixture,
                          .coord = is_series ? at : entry,
                          .coord_unit = is_series ? unit : TSR_UNIT_OF_ENTRIES};
    return TSR_OK;
}

/* Adds curve_weight_1, ...: the weights of the states in each of several
 * samples. */
static tsr_status add_curve_weights(const tsr_target *t, tsr_columns *columns,
                                    tsr_err *err)
{
    tsr_column_axis axis;
    TSR_TRY(make_curve_axis(t->likelihood, columns->pool, &axis, err));
    for (int k = 0; k < tsr_target_n_state(t); k++) {
        tsr_column c = {.group = TSR_TRACE_POSTERIOR,
                        .dim = "curve",
                        .axis = axis,
                        .state = k,
                        .get = get_curve_weight};
        snprintf(c.name, sizeof c.name, "curve_weight_%d", k + 1);
        snprintf(c.own_doc, sizeof c.own_doc,
                 "population of state %d in the sample of each curve", k + 1);
        TSR_TRY(columns_add(columns, c, err));
    }
    return TSR_OK;
}

/* Mass fraction of species c->state in every mixture. */
static void get_fraction(const tsr_column *c, const tsr_draw *d, double *value)
{
    double fraction[TSR_MAX_SPECIES];
    for (int m = 0; m < c->axis.n; m++) {
        tsr_likelihood_fractions(d->target->likelihood, d->view->point->theta,
                                 m, fraction);
        value[m] = fraction[c->state];
    }
}

/* Adds fraction_1, ...: the mass fractions of the species, in several samples
 * along their axis. */
static tsr_status add_fractions(const tsr_target *t, tsr_columns *columns,
                                tsr_err *err)
{
    const tsr_likelihood *l = t->likelihood;
    tsr_column_axis axis = no_axis;
    if (l != NULL && l->n_species > 0 && l->n_mixture > 1)
        TSR_TRY(make_curve_axis(l, columns->pool, &axis, err));
    for (int k = 0; l != NULL && k < l->n_species; k++) {
        tsr_column c = {.group = TSR_TRACE_POSTERIOR,
                        .axis = axis,
                        .state = k,
                        .get = get_fraction};
        snprintf(c.dim, sizeof c.dim, "%s", axis.n > 1 ? "curve" : "");
        snprintf(c.name, sizeof c.name, "fraction_%d", k + 1);
        snprintf(c.own_doc, sizeof c.own_doc, "mass fraction of species %s%s",
                 l->species[k].name,
                 axis.n > 1 ? " in the sample of each curve" : "");
        TSR_TRY(columns_add(columns, c, err));
    }
    return TSR_OK;
}

/* Adds the columns rg_1, weight_1, ... of an ensemble, whose states are sorted
 * by Rg. */
static tsr_status add_states(const tsr_target *t, tsr_columns *columns,
                             tsr_err *err)
{
    const int n = tsr_target_n_state(t);
    const int has_samples = t->likelihood != NULL &&
                            t->likelihood->n_mixture > 1 && t->infer_weights;
    tsr_status status = TSR_OK;
    for (int k = 0; k < n && n > 1 && status == TSR_OK; k++) {
        tsr_column c = {.group = TSR_TRACE_POSTERIOR,
                        .unit = "Angstrom",
                        .axis = no_axis,
                        .index = element(MEMBER(state_rg_ang), k),
                        .get = get_member};
        snprintf(c.name, sizeof c.name, "rg_%d", k + 1);
        snprintf(c.own_doc, sizeof c.own_doc,
                 "radius of gyration of state %d; states are ordered by it",
                 k + 1);
        status = columns_add(columns, c, err);
        c.unit = NULL;
        c.index = element(MEMBER(state_weight), k);
        snprintf(c.name, sizeof c.name, "weight_%d", k + 1);
        snprintf(c.own_doc, sizeof c.own_doc, "population of state %d%s", k + 1,
                 has_samples ? "; mean over the samples of all curves" : "");
        if (t->infer_weights)
            TSR_THEN(status, columns_add(columns, c, err));
    }
    if (has_samples && n > 1)
        TSR_THEN(status, add_curve_weights(t, columns, err));
    return status;
}

static void get_pose(const tsr_column *c, const tsr_draw *d, double *value)
{
    tsr_pose pose;
    double all[TSR_N_POSE_VALUE];
    tsr_pose_find(d->target->topology, c->index, &pose);
    tsr_pose_measure(d->view->state[c->state], &pose, all);
    *value = all[c->part];
}

static void get_tail(const tsr_column *c, const tsr_draw *d, double *value)
{
    tsr_tail tail;
    double all[TSR_N_TAIL_VALUE];
    tsr_tail_find(d->target->topology, c->index, &tail);
    tsr_tail_measure(d->view->state[c->state], &tail, all);
    *value = all[c->part];
}

/* Adds the variables of a pose or a tail, such as pose_1_twist; in an ensemble
 * pose_1_twist_2 belongs to the second state by Rg. where: the place of the
 * pose or tail in words; part: names of the two parts of a pose. */
static tsr_status add_shape(const tsr_target *t, const char *kind, int index,
                            const char *where, char part[2][32], int n_variable,
                            const tsr_pose_variable *variable, getter *get,
                            tsr_columns *columns, tsr_err *err)
{
    const int n_state = tsr_target_n_state(t);
    for (int i = 0; i < n_variable * n_state; i++) {
        const tsr_pose_variable *v = &variable[i % n_variable];
        tsr_column c = {.group = TSR_TRACE_POSTERIOR,
                        .unit = v->unit,
                        .axis = no_axis,
                        .index = index,
                        .state = i / n_variable,
                        .part = i % n_variable,
                        .get = get};
        int n = snprintf(c.name, sizeof c.name, "%s_%d_%s", kind, index + 1,
                         v->name);
        if (v->seen_from > 0)
            snprintf(c.own_doc, sizeof c.own_doc,
                     "direction of %s seen from %s, %s", part[2 - v->seen_from],
                     part[v->seen_from - 1], v->doc);
        else
            snprintf(c.own_doc, sizeof c.own_doc, "%s: %s", where, v->doc);
        if (n_state > 1) {
            const size_t used = strlen(c.own_doc);
            snprintf(c.name + n, sizeof c.name - (size_t)n, "_%d", c.state + 1);
            snprintf(c.own_doc + used, sizeof c.own_doc - used, ", state %d",
                     c.state + 1);
        }
        TSR_TRY(columns_add(columns, c, err));
    }
    return TSR_OK;
}

static tsr_status add_shapes(const tsr_target *target, tsr_columns *columns,
                             tsr_err *err)
{
    const tsr_topology *t = target->topology;
    char where[80], part[2][32] = {""};
    tsr_pose pose;
    tsr_tail tail;
    for (int k = 0; tsr_pose_find(t, k, &pose); k++) {
        for (int i = 0; i < 2; i++)
            snprintf(part[i], sizeof part[i], "%s:%d-%d",
                     t->residue[pose.first[i]].chain,
                     t->residue[pose.first[i]].number,
                     t->residue[pose.last[i]].number);
        snprintf(where, sizeof where, "parts %s and %s", part[0], part[1]);
        TSR_TRY(add_shape(target, "pose", k, where, part, TSR_N_POSE_VALUE,
                          tsr_pose_variables, get_pose, columns, err));
    }
    for (int k = 0; tsr_tail_find(t, k, &tail); k++) {
        const tsr_residue *end = &t->residue[tail.end];
        snprintf(where, sizeof where, "tail from %s:%d to %d", end->chain,
                 t->residue[tail.joint].number, end->number);
        TSR_TRY(add_shape(target, "tail", k, where, part, TSR_N_TAIL_VALUE,
                          tsr_tail_variables, get_tail, columns, err));
    }
    return TSR_OK;
}

static tsr_status add_moves(const tsr_target *t, tsr_columns *columns,
                            tsr_err *err)
{
    const char **name = tsr_pool_new(columns->pool, TSR_N_MOVE, sizeof *name);
    TSR_TRY(tsr_allocated(name, err));
    for (int m = 0; m < TSR_N_MOVE; m++)
        name[m] = tsr_move_registry[m]->name;
    const tsr_column_axis move = {"move", TSR_N_MOVE, NULL, NULL, name};
    TSR_TRY(add_column(
        columns, TSR_TRACE_SAMPLE_STATS, "acceptance_by_move", NULL,
        "acceptance rate of each move since the last draw; NaN: no proposals",
        move, 0, get_acceptance_by_move, err));
    if (tsr_likelihood_n_profile(t->likelihood) > 0)
        TSR_TRY(add_column(columns, TSR_TRACE_SAMPLE_STATS, "changed_by_move",
                           NULL,
                           "changed_fraction of each move's proposals; NaN: no "
                           "proposals reached the engine",
                           move, 0, get_changed_by_move, err));
    return TSR_OK;
}

static tsr_status add_chain_columns(const tsr_target *target,
                                    tsr_columns *columns, tsr_err *err)
{
    static const struct {
        tsr_trace_group group;
        const char *name, *unit, *doc;
        int index;
        getter *get;
    } own[] = {{TSR_TRACE_POSTERIOR, "rg", "Angstrom",
                "radius of gyration; mass-weighted, non-hydrogen atoms; of an "
                "ensemble the root of the weighted mean square",
                MEMBER(rg_ang), get_member},
               {TSR_TRACE_POSTERIOR, "d_max", "Angstrom",
                "D_max; largest distance between bodies", MEMBER(d_max_ang),
                get_member},
               {TSR_TRACE_SAMPLE_STATS, "lp", "nat",
                "log posterior density; unnormalised", MEMBER(lp), get_member},
               {TSR_TRACE_SAMPLE_STATS, "log_prior", "nat",
                "log P(X), unnormalised", MEMBER(log_prior), get_member},
               {TSR_TRACE_SAMPLE_STATS, "log_lik", "nat",
                "log likelihood; scale and background integrated out, or at "
                "their sampled values",
                MEMBER(log_lik), get_member},
               {TSR_TRACE_SAMPLE_STATS, "acceptance_rate", NULL,
                "acceptance rate since the last draw", 0, get_acceptance}};
    static const struct {
        const char *name, *doc;
    } terms[TSR_N_TERM] = {
        [TSR_TERM_TORSION] = {"log_prior_torsion", "log prior of phi and psi"},
        [TSR_TERM_ANGLE] = {"log_prior_angle",
                            "log prior of the angles N-CA-C"},
        [TSR_TERM_SIDE] = {"log_prior_side",
                           "log prior of the side-chain centres"},
        [TSR_TERM_CLASH] = {"log_prior_clash", "log prior of excluded volume"},
        [TSR_TERM_RESTRAINT] = {"log_prior_restraint",
                                "log prior of restraints"}};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        TSR_TRY(add_scalar(columns, own[k].group, own[k].name, own[k].unit,
                           own[k].doc, own[k].index, own[k].get, err));
    TSR_TRY(add_states(target, columns, err));
    TSR_TRY(add_fractions(target, columns, err));
    if (!target->is_frozen)
        TSR_TRY(add_shapes(target, columns, err));
    for (int k = 0; k < TSR_N_TERM; k++)
        TSR_TRY(add_scalar(columns, TSR_TRACE_SAMPLE_STATS, terms[k].name,
                           "nat", terms[k].doc, element(MEMBER(term), k),
                           get_member, err));
    if (tsr_likelihood_n_profile(target->likelihood) > 0)
        TSR_TRY(add_scalar(columns, TSR_TRACE_SAMPLE_STATS, "changed_fraction",
                           NULL,
                           "mean fraction of the distances between bodies "
                           "changed by a proposal, among the proposals since "
                           "the last draw that reached the engine",
                           MEMBER(changed), get_member, err));
    return add_moves(target, columns, err);
}

/* ---- the ladder ---- */

/* Greater than 1 during annealing, 1 afterwards. */
static void get_temperature(const tsr_column *c, const tsr_draw *d,
                            double *value)
{
    (void)c;
    *value = 1.0 / d->view->beta;
}

static void get_round_trips(const tsr_column *c, const tsr_draw *d,
                            double *value)
{
    (void)c;
    *value = (double)tsr_ladder_round_trips(d->ladder);
}

static void get_ladder_temperature(const tsr_column *c, const tsr_draw *d,
                                   double *value)
{
    for (int k = 0; k < c->axis.n; k++)
        value[k] = 1.0 / tsr_ladder_beta(d->ladder, k);
}

static void get_ladder_log_lik(const tsr_column *c, const tsr_draw *d,
                               double *value)
{
    for (int k = 0; k < c->axis.n; k++)
        value[k] =
            tsr_chain_log_lik(d->replica[tsr_ladder_replica(d->ladder, k)]);
}

static void get_exchange_rate(const tsr_column *c, const tsr_draw *d,
                              double *value)
{
    for (int k = 0; k < c->axis.n; k++)
        value[k] = tsr_ladder_rate(d->ladder, k);
}

/* ---- the all-atom chain ---- */

static void get_all_atom_log_ratio(const tsr_column *c, const tsr_draw *d,
                                   double *value)
{
    (void)c;
    tsr_all_atom_chain_log_ratio(d->all_atom, value);
}

static void get_all_atom_exchange(const tsr_column *c, const tsr_draw *d,
                                  double *value)
{
    (void)c;
    *value = tsr_all_atom_chain_is_accepted(d->all_atom);
}

static tsr_status add_all_atom(tsr_columns *columns, tsr_err *err)
{
    static const char *const label[] = {"atoms", "bodies"};
    const tsr_column_axis axis = {"model", 2, NULL, NULL, label};
    TSR_TRY(
        add_column(columns, TSR_TRACE_SAMPLE_STATS, "all_atom_log_ratio", "nat",
                   "log likelihood from all atoms minus that from bodies: of "
                   "the draw, and of the offered state of the bodies' chain",
                   axis, 0, get_all_atom_log_ratio, err));
    return add_scalar(columns, TSR_TRACE_SAMPLE_STATS, "all_atom_exchange",
                      NULL,
                      "1: the draw is a new state from the bodies' chain, 0: "
                      "it repeats the previous draw",
                      0, get_all_atom_exchange, err);
}

static tsr_status add_ladder_columns(const tsr_target *target,
                                     tsr_columns *columns, tsr_err *err)
{
    if (target->all_atom != NULL)
        TSR_TRY(add_all_atom(columns, err));
    const int n_temp = tsr_target_n_temp(target);
    const tsr_column_axis rung = {"rung", n_temp, NULL, NULL, NULL};
    const tsr_column_axis pair = {"pair", n_temp - 1, NULL, NULL, NULL};
    const struct {
        const char *name, *unit, *doc;
        tsr_column_axis axis;
        getter *get;
    } all[] = {{"temperature", NULL, "likelihood temperature", no_axis,
                get_temperature},
               {"round_trips", NULL,
                "round trips of replicas between the lowest and the highest "
                "temperature, so far",
                no_axis, get_round_trips},
               {"ladder_temperature", NULL,
                "likelihood temperatures of the chain's replicas", rung,
                get_ladder_temperature},
               {"ladder_log_lik", "nat",
                "log likelihood of the replica at each temperature", rung,
                get_ladder_log_lik},
               {"exchange_rate", NULL,
                "mean acceptance probability of replica exchanges between "
                "neighbouring temperatures, so far",
                pair, get_exchange_rate}};
    for (size_t k = 0; k < (n_temp > 1 ? sizeof all / sizeof *all : 2); k++)
        TSR_TRY(add_column(columns, TSR_TRACE_SAMPLE_STATS, all[k].name,
                           all[k].unit, all[k].doc, all[k].axis, 0, all[k].get,
                           err));
    if (target->n_group > 0) {
        tsr_column c = {
            .group = TSR_TRACE_CONSTANT_DATA,
            .name = "population_log_evidence",
            .dim = "population",
            .unit = "nat",
            .doc = "log marginal likelihood estimated by each population of "
                   "chains",
            .axis = {"population", target->n_group, NULL, NULL, NULL},
            .constant = target->group_log_z};
        TSR_TRY(columns_add(columns, c, err));
    }
    return TSR_OK;
}

/* ---- parameters ---- */

static void get_parameter(const tsr_column *c, const tsr_draw *d, double *value)
{
    const tsr_parameter *p = &d->view->parameters->table[c->index];
    *value = tsr_parameter_value(p, d->theta[c->index]);
}

/* Adds columns of the inferred parameters before the weights in the table. The
 * weights of the states and the fractions of the species have columns of their
 * own. */
static tsr_status add_parameter_columns(const tsr_target *target,
                                        const tsr_parameters *parameters,
                                        tsr_columns *columns, tsr_err *err)
{
    const tsr_likelihood *l = target->likelihood;
    for (int i = 0; i < parameters->weight; i++) {
        const tsr_parameter *p = &parameters->table[i];
        char name[48];
        snprintf(name, sizeof name, "%s", p->name);
        for (int d = 0; l != NULL && d < l->n_term; d++)
            if (i >= l->term[d]->first &&
                i < l->term[d]->first + l->term[d]->n_parameter)
                tsr_term_variable(l->term[d]->type, l->term[d]->ordinal,
                                  p->name, sizeof name, name);
        if (p->infer && p->shape != TSR_PRIOR_SIMPLEX)
            TSR_TRY(add_scalar(columns, TSR_TRACE_POSTERIOR, name, p->unit,
                               p->doc, i, get_parameter, err));
    }
    return TSR_OK;
}

/* ---- likelihood terms ---- */

static void get_chi2(const tsr_column *c, const tsr_draw *d, double *value)
{
    const tsr_term *term = d->target->likelihood->term[c->index];
    *value =
        term->type->chi2(term, d->view->point->fit[c->index]) / term->n_point;
}

/* One row of a term, chosen by the column's `part`. */
static void get_row(const tsr_column *c, const tsr_draw *d, double *value)
{
    memcpy(value, d->row[c->part][c->index], (size_t)c->axis.n * sizeof *value);
}

static tsr_status add_term(const tsr_term *term, int index,
                           tsr_columns *columns, tsr_err *err)
{
    const tsr_term_type *type = term->type;
    char mean[40], name[48], dim[48];
    snprintf(mean, sizeof mean, "%s_mean", type->observable);
    const struct {
        tsr_trace_group group;
        const char *name, *doc;
        int row;
        const double *constant;
    } all[] = {{TSR_TRACE_POSTERIOR_PREDICTIVE, type->observable,
                "replicate of the data: expectation plus noise",
                TSR_ROW_REPLICATE, NULL},
               {TSR_TRACE_POSTERIOR_PREDICTIVE, mean,
                "expectation; of a curve c I(q) + b", TSR_ROW_MEAN, NULL},
               {TSR_TRACE_LOG_LIKELIHOOD, type->observable,
                "log density of each point given X and all parameters",
                TSR_ROW_POINTWISE, NULL},
               {TSR_TRACE_OBSERVED_DATA, type->observable, "as measured", 0,
                term->observed},
               {TSR_TRACE_CONSTANT_DATA, "sigma",
                "standard deviation as measured", 0, term->sigma},
               {TSR_TRACE_CONSTANT_DATA, "rigid",
                "expectation from the first conformation, with all other "
                "parameters at their best fit",
                0, term->start}};
    const size_t n_all =
        sizeof all / sizeof *all - (term->start == NULL ? 1 : 0);
    tsr_term_variable(type, term->ordinal, "chi2", sizeof name, name);
    tsr_status status =
        add_scalar(columns, TSR_TRACE_POSTERIOR, name, NULL,
                   "chi-square per point; with the measured errors, scale and "
                   "background at their best fit",
                   index, get_chi2, err);
    tsr_term_variable(type, term->ordinal, type->axis, sizeof dim, dim);
    for (size_t k = 0; k < n_all && status == TSR_OK; k++) {
        tsr_column c = {.group = all[k].group,
                        .unit = type->observable_unit,
                        .doc = all[k].doc,
                        .axis = {type->axis, term->n_point, term->coord,
                                 type->axis_unit, NULL},
                        .index = index,
                        .part = all[k].row,
                        .get = k < TSR_N_ROW ? get_row : NULL,
                        .constant = all[k].constant};
        tsr_term_variable(type, term->ordinal, all[k].name, sizeof c.name,
                          c.name);
        snprintf(c.dim, sizeof c.dim, "%s", dim);
        status = columns_add(columns, c, err);
    }
    for (int k = 0; k < term->n_note && status == TSR_OK; k++) {
        tsr_column c = {.group = TSR_TRACE_CONSTANT_DATA,
                        .doc = term->note[k].text,
                        .axis = {type->axis, term->n_point, term->coord,
                                 type->axis_unit, NULL},
                        .index = index,
                        .constant = term->note[k].value};
        if (c.constant == NULL)
            continue;
        tsr_term_variable(type, term->ordinal, term->note[k].name,
                          sizeof c.name, c.name);
        snprintf(c.dim, sizeof c.dim, "%s", dim);
        status = columns_add(columns, c, err);
    }
    return status;
}

static tsr_status add_term_columns(const tsr_target *target,
                                   tsr_columns *columns, tsr_err *err)
{
    const tsr_likelihood *l = target->likelihood;
    for (int d = 0; l != NULL && d < l->n_term; d++)
        TSR_TRY(add_term(l->term[d], d, columns, err));
    return TSR_OK;
}

/* ---- record ----
 *
 * A block of draws in memory: the values of every column, chain by chain, until
 * they are written to the log. */

/* Values of one draw. Each chain has its own, because threads store draws of
 * different chains at once. */
typedef struct {
    double *theta;
    double **row; /* [3 n_term] expected values, replicates, log densities */
} scratch;

struct tsr_record {
    tsr_pool pool;
    const tsr_target *target;
    tsr_parameters *parameters; /* table of the parameters, for their names */
    int n_chain, capacity;
    tsr_columns columns;
    double **value; /* [n] arrays [n_chain][capacity][axis.n] of the columns;
                       NULL: the column is constant */
    tsr_trace_variable *variable; /* [n] descriptions of the columns */
    scratch *scratch_of;          /* [n_chain] */
    char *packed;                 /* the block's draws in the format of the
                                     log */
};

static int n_term(const tsr_target *target)
{
    return target->likelihood == NULL ? 0 : target->likelihood->n_term;
}

void tsr_record_free(tsr_record *record)
{
    if (record == NULL)
        return;
    tsr_pool_clear(&record->pool);
    free(record);
}

int tsr_record_capacity(const tsr_record *record)
{
    return record->capacity;
}

int tsr_record_variables(const tsr_record *record,
                         const tsr_trace_variable **variable)
{
    *variable = record->variable;
    return record->columns.n;
}

static int is_warm(tsr_trace_group group)
{
    return group == TSR_TRACE_WARMUP_POSTERIOR ||
           group == TSR_TRACE_WARMUP_SAMPLE_STATS;
}

/* ---- the list of columns ---- */

static tsr_status collect_columns(tsr_record *r, tsr_err *err)
{
    TSR_TRY(add_chain_columns(r->target, &r->columns, err));
    TSR_TRY(add_ladder_columns(r->target, &r->columns, err));
    TSR_TRY(add_parameter_columns(r->target, r->parameters, &r->columns, err));
    return add_term_columns(r->target, &r->columns, err);
}

/* ---- memory ---- */

/* Describes a column for tsr_trace_create. */
static void describe(const tsr_column *c, tsr_trace_variable *variable)
{
    const int has_axis = c->axis.name != NULL;
    *variable =
        (tsr_trace_variable){.group = c->group,
                             .name = c->name,
                             .unit = c->unit,
                             .doc = c->doc != NULL ? c->doc : c->own_doc,
                             .dim = has_axis ? c->dim : NULL,
                             .n = c->axis.n,
                             .coord = c->axis.coord,
                             .coord_unit = c->axis.coord_unit,
                             .coord_label = c->axis.label,
                             .single = has_axis && c->constant == NULL};
}

static void allocate_columns(tsr_record *r)
{
    const size_t n = (size_t)r->columns.n;
    const size_t n_draw = (size_t)r->n_chain * (size_t)r->capacity;
    size_t total = 1;
    tsr_pool_array(&r->pool, r->value, n);
    tsr_pool_array(&r->pool, r->variable, n);
    for (size_t v = 0; v < n && !r->pool.failed; v++) {
        const tsr_column *c = &r->columns.item[v];
        const size_t width = (size_t)c->axis.n;
        describe(c, &r->variable[v]);
        if (c->constant == NULL) {
            tsr_pool_array(&r->pool, r->value[v], n_draw * width);
            total += width *
                     (r->variable[v].single ? sizeof(float) : sizeof(double));
        }
    }
    tsr_pool_array(&r->pool, r->packed, n_draw * total);
}

static void allocate_scratch(tsr_record *r)
{
    const int n = n_term(r->target);
    tsr_pool_array(&r->pool, r->scratch_of, r->n_chain);
    for (int c = 0; c < r->n_chain && !r->pool.failed; c++) {
        scratch *s = &r->scratch_of[c];
        tsr_pool_array(&r->pool, s->theta, r->parameters->n);
        tsr_pool_array(&r->pool, s->row, 3 * n + 1);
        for (int k = 0; k < 3 * n && !r->pool.failed; k++) {
            const tsr_term *term = r->target->likelihood->term[k % n];
            tsr_pool_array(&r->pool, s->row[k], term->n_point + 1);
        }
    }
}

tsr_status tsr_record_new(const tsr_target *target, int n_chain, int capacity,
                          tsr_record **out, tsr_err *err)
{
    *out = NULL;
    tsr_record *r = calloc(1, sizeof *r);
    TSR_TRY(tsr_allocated(r, err));
    target = tsr_draw_target(target);
    r->target = target;
    r->n_chain = n_chain;
    r->capacity = capacity;
    r->parameters =
        tsr_parameters_new(&r->pool, target->likelihood, target->contrast,
                           tsr_target_n_state(target), target->infer_weights);
    r->columns.pool = &r->pool;
    tsr_status status = tsr_allocated(r->parameters, err);
    TSR_THEN(status, collect_columns(r, err));
    if (status == TSR_OK) {
        allocate_columns(r);
        allocate_scratch(r);
        status = tsr_pool_check(&r->pool, err);
    }
    TSR_HAND_OVER(status, r, out, tsr_record_free);
}

/* ---- draws ---- */

/* Draws the parameters that were integrated out. After warm-up also computes
 * the terms' expected values, replicates and log densities. */
static void predict_terms(const tsr_target *target, const tsr_chain_view *view,
                          scratch *s, int warm)
{
    const tsr_likelihood *l = target->likelihood;
    const tsr_point *at = view->point;
    double weight[TSR_MAX_STATES];
    const tsr_prediction states = {NULL, view->n_state, view->state, weight};
    memcpy(s->theta, at->theta, (size_t)view->parameters->n * sizeof *s->theta);
    for (int d = 0; d < n_term(target); d++) {
        const tsr_term *term = l->term[d];
        const tsr_term_type *type = term->type;
        double *theta = s->theta + term->first;
        double *mean = s->row[d], *replicate = s->row[l->n_term + d];
        double *pointwise = s->row[2 * l->n_term + d];
        if (type->draw != NULL && term->is_integrated)
            type->draw(term, at->fit[d], 1.0, view->rng, theta);
        if (warm)
            continue;
        for (int k = 0; k < view->n_state; k++)
            weight[k] = tsr_chain_view_weight(view, term->mixture, k);
        const tsr_prediction prediction =
            tsr_likelihood_prediction(l, at, term, states);
        type->predict(term, &prediction, at->fit[d], theta, mean);
        for (int k = 0; k < term->n_point; k++) {
            replicate[k] =
                tsr_term_draw_point(term, theta, k, mean[k], view->rng);
            pointwise[k] =
                tsr_term_log_point(term, at->fit[d], theta, k, mean[k]);
        }
    }
}

/* Memory for the value of column v in one draw of a chain. */
static double *cell(const tsr_record *r, int v, int chain, int draw)
{
    size_t n = (size_t)r->columns.item[v].axis.n;
    return r->value[v] +
           ((size_t)chain * (size_t)r->capacity + (size_t)draw) * n;
}

void tsr_record_store(tsr_record *record, const tsr_record_ladder *ladder,
                      int chain_number, int draw, int warm,
                      double acceptance_rate)
{
    tsr_record *r = record;
    scratch *s = &r->scratch_of[chain_number];
    const int n = n_term(r->target);
    tsr_chain_view view;
    const tsr_chain *coldest =
        ladder->replica[tsr_ladder_replica(ladder->ladder, 0)];
    if (ladder->all_atom != NULL)
        tsr_all_atom_chain_view(ladder->all_atom, coldest, &view);
    else
        tsr_chain_view_get(coldest, &view);
    predict_terms(r->target, &view, s, warm);
    const double *const *row = (const double *const *)s->row;
    const tsr_draw now = {.target = r->target,
                          .view = &view,
                          .ladder = ladder->ladder,
                          .replica = ladder->replica,
                          .all_atom = ladder->all_atom,
                          .acceptance_rate = acceptance_rate,
                          .theta = s->theta,
                          .row = {row, row + n, row + 2 * n}};
    for (int v = 0; v < r->columns.n; v++) {
        const tsr_column *c = &r->columns.item[v];
        if (c->get != NULL && is_warm(c->group) == warm)
            c->get(c, &now, cell(r, v, chain_number, draw));
    }
}

void tsr_record_archive(tsr_record *record, int first, int end, int warm,
                        int n_draw, tsr_archive *archive)
{
    for (int v = 0; v < record->columns.n; v++) {
        const tsr_column *c = &record->columns.item[v];
        if (c->get == NULL || is_warm(c->group) != warm)
            continue;
        for (int k = first; k < end; k++)
            tsr_archive_real(archive, cell(record, v, k, 0),
                             (size_t)n_draw * (size_t)c->axis.n);
    }
}

/* Converts numbers to the trace's precision. Returns the end of the output. */
static char *pack(const double *from, size_t n, int single, char *to)
{
    const size_t width = single ? sizeof(float) : sizeof(double);
    for (size_t i = 0; i < n; i++) {
        const float one = (float)from[i];
        memcpy(to + i * width, single ? (const void *)&one : &from[i], width);
    }
    return to + n * width;
}

tsr_status tsr_record_write(tsr_record *record, tsr_draw_log *log, int warm,
                            long first, int n_draw, tsr_err *err)
{
    tsr_record *r = record;
    char *to = r->packed;
    if (n_draw == 0)
        return TSR_OK;
    for (int g = 0; g < TSR_TRACE_N_GROUP; g++)
        for (int v = 0; v < r->columns.n; v++) {
            const tsr_column *c = &r->columns.item[v];
            if ((int)c->group != g || c->get == NULL ||
                is_warm(c->group) != warm)
                continue;
            for (int k = 0; k < r->n_chain; k++)
                to = pack(cell(r, v, k, 0), (size_t)n_draw * (size_t)c->axis.n,
                          r->variable[v].single, to);
        }
    const tsr_draw_record one = {.kind =
                                     warm ? TSR_DRAWN_WARMUP : TSR_DRAWN_KEPT,
                                 .first = first,
                                 .n = n_draw,
                                 .n_chain = 1,
                                 .n_state = 1,
                                 .size = (size_t)(to - r->packed)};
    TSR_TRY(tsr_draw_log_begin(log, &one, err));
    return tsr_draw_log_part(log, r->packed, err);
}

tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err)
{
    tsr_record *r = record;
    for (int v = 0; v < r->columns.n; v++) {
        const tsr_column *c = &r->columns.item[v];
        if (c->constant == NULL)
            continue;
        TSR_TRY(tsr_trace_put(trace, v, c->constant, err));
    }
    return TSR_OK;
}
