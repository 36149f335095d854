#include "sampler/record.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a variable's values come from. */
typedef enum {
    FROM_RG,
    FROM_D_MAX,
    FROM_SCALE,
    FROM_BACKGROUND,
    FROM_NOISE,
    FROM_CONTRAST,
    FROM_CHI2,
    FROM_LP,
    FROM_LOG_PRIOR,
    FROM_LOG_LIK,
    FROM_ACCEPTANCE,
    FROM_TEMPERATURE,
    FROM_ROUND_TRIPS,
    FROM_STATE_RG,
    FROM_STATE_WEIGHT,
    FROM_TERM,
    FROM_CHANGED,
    FROM_MOVES,
    FROM_MOVES_CHANGED,
    FROM_RUNG_TEMPERATURE,
    FROM_RUNG_LOG_LIK,
    FROM_RUNG_EXCHANGE,
    FROM_REPLICATE,
    FROM_CURVE,
    FROM_POINTWISE,
    FROM_DATA,
    FROM_SIGMA
} origin;

enum { MAX_NAME = 48 };

typedef struct {
    origin from;
    int data;      /* data set */
    int state;     /* by the order of Rg */
    int parameter; /* of its noise; c1 or c2 */
    int term;      /* of the prior */
    char name[MAX_NAME], dim[MAX_NAME];
    double *value; /* [n_chain][capacity][n]; NULL: constant */
} column;

struct tsr_record {
    const tsr_target *target;
    int n_chain, capacity;
    int n_variable, room;
    tsr_trace_variable *variable; /* [n_variable] */
    column *column;               /* [n_variable] */
    const char *move_name[TSR_N_MOVE];
    double *packed; /* scratch for writing part of a block */
};

void tsr_record_free(tsr_record *record)
{
    if (record == NULL)
        return;
    for (int v = 0; v < record->n_variable; v++)
        free(record->column[v].value);
    free(record->variable);
    free(record->column);
    free(record->packed);
    free(record);
}

int tsr_record_capacity(const tsr_record *record)
{
    return record->capacity;
}

int tsr_record_variables(const tsr_record *record,
                         const tsr_trace_variable **variable)
{
    /* The columns may have moved while they were added; name them now. */
    for (int v = 0; v < record->n_variable; v++) {
        record->variable[v].name = record->column[v].name;
        if (record->variable[v].dim != NULL)
            record->variable[v].dim = record->column[v].dim;
    }
    *variable = record->variable;
    return record->n_variable;
}

static int is_warm(tsr_trace_group group)
{
    return group == TSR_TRACE_WARMUP_POSTERIOR ||
           group == TSR_TRACE_WARMUP_SAMPLE_STATS;
}

static int is_constant(tsr_trace_group group)
{
    return group == TSR_TRACE_OBSERVED_DATA || group == TSR_TRACE_CONSTANT_DATA;
}

/* The dimension of a variable behind chain and draw. */
typedef struct {
    const char *name; /* NULL: none */
    int n;
    const double *coord;
    const char *coord_unit;
    const char *const *label;
} axis;

static const axis no_axis = {NULL, 1, NULL, NULL, NULL};

/* Adds a variable; those of data sets after the first get a number. */
static tsr_status add(tsr_record *r, tsr_trace_group group, origin from,
                      const char *name, int data, axis dim, const char *unit,
                      const char *doc, tsr_err *err)
{
    if (r->n_variable == r->room) {
        int room = 2 * r->room + 16;
        tsr_trace_variable *v = realloc(r->variable, (size_t)room * sizeof *v);
        if (v != NULL)
            r->variable = v;
        column *c = realloc(r->column, (size_t)room * sizeof *c);
        if (c != NULL)
            r->column = c;
        if (v == NULL || c == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
        r->room = room;
    }
    column *c = &r->column[r->n_variable];
    *c = (column){.from = from, .data = data};
    char number[16] = "";
    if (data > 0)
        snprintf(number, sizeof number, "_%d", data + 1);
    snprintf(c->name, sizeof c->name, "%s%s", name, number);
    snprintf(c->dim, sizeof c->dim, "%s%s", dim.name == NULL ? "" : dim.name,
             number);
    r->variable[r->n_variable] =
        (tsr_trace_variable){.group = group,
                             .unit = unit,
                             .doc = doc,
                             .dim = dim.name,
                             .n = dim.n,
                             .coord = dim.coord,
                             .coord_unit = dim.coord_unit,
                             .coord_label = dim.label,
                             .single = dim.name != NULL && !is_constant(group)};
    r->n_variable++;
    if (is_constant(group))
        return TSR_OK;
    c->value = calloc((size_t)r->n_chain * (size_t)r->capacity * (size_t)dim.n,
                      sizeof *c->value);
    return c->value != NULL ? TSR_OK
                            : tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

typedef struct {
    origin from;
    const char *name, *unit, *doc;
    int stats; /* 1: group sample_stats */
} scalar;

static const scalar run_scalars[] = {
    {FROM_RG, "rg", "Angstrom",
     "radius of gyration, mass-weighted, non-hydrogen atoms; of an ensemble "
     "the "
     "root of the weighted mean square",
     0},
    {FROM_D_MAX, "d_max", "Angstrom", "largest distance between bodies", 0},
    {FROM_LP, "lp", "nat", "log posterior density, unnormalised", 1},
    {FROM_LOG_PRIOR, "log_prior", "nat", "log P(X), unnormalised", 1},
    {FROM_LOG_LIK, "log_lik", "nat",
     "log likelihood; scale and background integrated out, or as they are "
     "where they are sampled",
     1},
    {FROM_ACCEPTANCE, "acceptance_rate", NULL,
     "share of proposals accepted since the last draw", 1},
    {FROM_TEMPERATURE, "temperature", NULL, "likelihood temperature", 1},
    {FROM_ROUND_TRIPS, "round_trips", NULL,
     "of replicas between the lowest and the highest temperature, so far", 1}};

static const scalar data_scalars[] = {
    {FROM_SCALE, "scale", NULL, "c in c I(q) + b", 0},
    {FROM_BACKGROUND, "background", NULL, "b in c I(q) + b", 0},
    {FROM_CHI2, "chi2", NULL,
     "chi-square per point by sigma_exp at the best c and b", 0}};

static tsr_status add_scalar(tsr_record *r, const scalar *s, int data,
                             tsr_err *err)
{
    tsr_status status =
        add(r, s->stats ? TSR_TRACE_SAMPLE_STATS : TSR_TRACE_POSTERIOR, s->from,
            s->name, data, no_axis, s->unit, s->doc, err);
    if (status == TSR_OK)
        status = add(r,
                     s->stats ? TSR_TRACE_WARMUP_SAMPLE_STATS
                              : TSR_TRACE_WARMUP_POSTERIOR,
                     s->from, s->name, data, no_axis, s->unit, s->doc, err);
    return status;
}

/* rg_1, weight_1, ... of an ensemble. */
static tsr_status add_states(tsr_record *r, tsr_err *err)
{
    int n = tsr_target_n_state(r->target);
    tsr_status status = TSR_OK;
    for (int k = 0; k < n && n > 1 && status == TSR_OK; k++)
        for (int what = 0; what < 2 && status == TSR_OK; what++) {
            char name[24];
            snprintf(name, sizeof name, what == 0 ? "rg_%d" : "weight_%d",
                     k + 1);
            const scalar s = {what == 0 ? FROM_STATE_RG : FROM_STATE_WEIGHT,
                              name, what == 0 ? "Angstrom" : NULL,
                              what == 0
                                  ? "of one state, in the order of their Rg"
                                  : "of the same state",
                              0};
            if (what == 1 && !r->target->infer_weights)
                continue;
            int first = r->n_variable;
            status = add_scalar(r, &s, 0, err);
            for (int v = first; v < r->n_variable; v++)
                r->column[v].state = k;
        }
    return status;
}

/* Terms of the prior, acceptance by move, what the ladder did. */
static tsr_status add_stats(tsr_record *r, tsr_err *err)
{
    static const char *const terms[TSR_N_TERM][2] = {
        [TSR_TERM_TORSION] = {"log_prior_torsion", "of phi and psi"},
        [TSR_TERM_ANGLE] = {"log_prior_angle", "of the angles N-CA-C"},
        [TSR_TERM_SIDE] = {"log_prior_side", "of the side-chain centres"},
        [TSR_TERM_CLASH] = {"log_prior_clash", "of excluded volume"},
        [TSR_TERM_RESTRAINT] = {"log_prior_restraint", "of restraints"}};
    tsr_status status = TSR_OK;
    for (int k = 0; k < TSR_N_TERM && status == TSR_OK; k++) {
        const scalar s = {FROM_TERM, terms[k][0], "nat", terms[k][1], 1};
        int first = r->n_variable;
        status = add_scalar(r, &s, 0, err);
        for (int v = first; v < r->n_variable; v++)
            r->column[v].term = k;
    }
    const scalar changed = {
        FROM_CHANGED, "dirty_fraction", NULL,
        "mean share of the distances between bodies that a proposal changed, "
        "of those that the engine was asked for since the last draw",
        1};
    if (status == TSR_OK && r->target->likelihood != NULL)
        status = add_scalar(r, &changed, 0, err);
    return status;
}

static tsr_status add_stat_axes(tsr_record *r, tsr_err *err)
{
    int n_temp = tsr_target_n_temp(r->target);
    for (int m = 0; m < TSR_N_MOVE; m++)
        r->move_name[m] = tsr_move_registry[m]->name;
    const axis move = {"move", TSR_N_MOVE, NULL, NULL, r->move_name};
    const axis rung = {"rung", n_temp, NULL, NULL, NULL};
    const axis pair = {"pair", n_temp - 1, NULL, NULL, NULL};
    const struct {
        origin from;
        const char *name;
        axis dim;
        const char *unit, *doc;
    } all[] = {
        {FROM_MOVES, "acceptance_by_move", move, NULL,
         "share of each move's proposals accepted since the last draw; NaN: "
         "none were made"},
        {FROM_MOVES_CHANGED, "dirty_by_move", move, NULL,
         "dirty_fraction of each move's proposals; NaN: the engine was asked "
         "for none"},
        {FROM_RUNG_TEMPERATURE, "ladder_temperature", rung, NULL,
         "likelihood temperatures of the chain's replicas"},
        {FROM_RUNG_LOG_LIK, "ladder_log_lik", rung, "nat",
         "log likelihood of the replica at each temperature"},
        {FROM_RUNG_EXCHANGE, "exchange_rate", pair, NULL,
         "mean probability of an exchange between a temperature and the next, "
         "so far"}};
    tsr_status status = TSR_OK;
    for (size_t k = 0; k < sizeof all / sizeof *all && status == TSR_OK; k++)
        if (all[k].from == FROM_MOVES ||
            (all[k].from == FROM_MOVES_CHANGED ? r->target->likelihood != NULL
                                               : n_temp > 1))
            status = add(r, TSR_TRACE_SAMPLE_STATS, all[k].from, all[k].name, 0,
                         all[k].dim, all[k].unit, all[k].doc, err);
    return status;
}

/* c1 and c2, whichever is inferred. */
static tsr_status add_contrast(tsr_record *r, tsr_err *err)
{
    const tsr_contrast_prior *prior = r->target->contrast;
    tsr_status status = TSR_OK;
    for (int i = 0; prior != NULL && i < TSR_N_CONTRAST && status == TSR_OK;
         i++) {
        const scalar s = {FROM_CONTRAST, tsr_contrast_name(i), NULL,
                          tsr_contrast_doc(i), 0};
        if (!prior[i].infer)
            continue;
        int first = r->n_variable;
        status = add_scalar(r, &s, 0, err);
        for (int v = first; v < r->n_variable; v++)
            r->column[v].parameter = i;
    }
    return status;
}

static int is_inferred(const tsr_target *t, int d, origin from)
{
    const tsr_linear *linear = &t->likelihood->data[d].linear;
    if (from == FROM_SCALE)
        return linear->infer_scale;
    if (from == FROM_BACKGROUND)
        return linear->infer_background;
    return 1;
}

/* The inferred parameters of a data set's noise. */
static tsr_status add_noise(tsr_record *r, int d, tsr_err *err)
{
    const tsr_data_term *term = &r->target->likelihood->data[d];
    tsr_status status = TSR_OK;
    for (int i = 0; i < term->type->n_parameter && status == TSR_OK; i++) {
        const tsr_noise_parameter *p = &term->type->parameter[i];
        const scalar s = {FROM_NOISE, p->name, p->unit, p->doc, 0};
        if (!term->prior[i].infer)
            continue;
        int first = r->n_variable;
        status = add_scalar(r, &s, d, err);
        for (int v = first; v < r->n_variable; v++)
            r->column[v].parameter = i;
    }
    return status;
}

static tsr_status add_data_set(tsr_record *r, int d, tsr_err *err)
{
    static const struct {
        tsr_trace_group group;
        origin from;
        const char *name, *doc;
    } curves[] = {
        {TSR_TRACE_POSTERIOR_PREDICTIVE, FROM_REPLICATE, "intensity",
         "a replicate of the data: c I(q) + b and noise"},
        {TSR_TRACE_POSTERIOR_PREDICTIVE, FROM_CURVE, "intensity_mean",
         "the expected curve, c I(q) + b"},
        {TSR_TRACE_LOG_LIKELIHOOD, FROM_POINTWISE, "intensity",
         "log density of each point given X, c, b and the noise"},
        {TSR_TRACE_OBSERVED_DATA, FROM_DATA, "intensity", "measured I(q)"},
        {TSR_TRACE_CONSTANT_DATA, FROM_SIGMA, "sigma",
         "standard deviation of measured I(q)"}};
    const tsr_saxs *saxs = r->target->likelihood->data[d].saxs;
    const axis q = {"q", saxs->n, saxs->q, "1/Angstrom", NULL};
    tsr_status status = TSR_OK;
    for (size_t k = 0; k < sizeof data_scalars / sizeof *data_scalars; k++)
        if (status == TSR_OK && is_inferred(r->target, d, data_scalars[k].from))
            status = add_scalar(r, &data_scalars[k], d, err);
    if (status == TSR_OK)
        status = add_noise(r, d, err);
    for (size_t k = 0; k < sizeof curves / sizeof *curves; k++)
        if (status == TSR_OK)
            status = add(r, curves[k].group, curves[k].from, curves[k].name, d,
                         q, NULL, curves[k].doc, err);
    return status;
}

tsr_status tsr_record_new(const tsr_target *target, int n_chain, int capacity,
                          tsr_record **out, tsr_err *err)
{
    *out = NULL;
    tsr_record *r = calloc(1, sizeof *r);
    if (r == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    r->target = target;
    r->n_chain = n_chain;
    r->capacity = capacity;
    tsr_status status = TSR_OK;
    for (size_t k = 0; k < sizeof run_scalars / sizeof *run_scalars; k++)
        if (status == TSR_OK)
            status = add_scalar(r, &run_scalars[k], 0, err);
    if (status == TSR_OK)
        status = add_states(r, err);
    if (status == TSR_OK)
        status = add_contrast(r, err);
    if (status == TSR_OK)
        status = add_stats(r, err);
    if (status == TSR_OK)
        status = add_stat_axes(r, err);
    for (int d = 0; target->likelihood != NULL &&
                    d < target->likelihood->n_data && status == TSR_OK;
         d++)
        status = add_data_set(r, d, err);
    size_t widest = 1;
    for (int v = 0; v < r->n_variable; v++)
        if ((size_t)r->variable[v].n > widest)
            widest = (size_t)r->variable[v].n;
    if (status == TSR_OK) {
        r->packed = calloc((size_t)n_chain * (size_t)capacity * widest,
                           sizeof *r->packed);
        if (r->packed == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    if (status != TSR_OK) {
        tsr_record_free(r);
        return status;
    }
    *out = r;
    return TSR_OK;
}

static double *cell(const tsr_record *r, int v, int chain, int draw)
{
    size_t n = (size_t)r->variable[v].n;
    return r->column[v].value +
           ((size_t)chain * (size_t)r->capacity + (size_t)draw) * n;
}

static double scalar_value(const tsr_record *r, const column *c,
                           const tsr_chain_view *view, double acceptance,
                           double round_trips)
{
    switch (c->from) {
    case FROM_TERM:
        return view->term[c->term];
    case FROM_CHANGED:
        return view->changed;
    case FROM_RG:
        return view->rg_ang;
    case FROM_D_MAX:
        return view->d_max_ang;
    case FROM_NOISE:
        return tsr_noise_value(
            &r->target->likelihood->data[c->data].prior[c->parameter],
            tsr_nuisance_theta(view->nuisance, c->data)[c->parameter]);
    case FROM_CONTRAST:
        return tsr_nuisance_contrast(view->nuisance)[c->parameter];
    case FROM_CHI2:
        return view->fit[c->data].chi2 /
               r->target->likelihood->data[c->data].saxs->n;
    case FROM_LP:
        return view->lp;
    case FROM_LOG_PRIOR:
        return view->log_prior;
    case FROM_LOG_LIK:
        return view->log_lik;
    case FROM_ACCEPTANCE:
        return acceptance;
    case FROM_ROUND_TRIPS:
        return round_trips;
    case FROM_STATE_RG:
        return view->state_rg_ang[c->state];
    case FROM_STATE_WEIGHT:
        return view->state_weight[c->state];
    default: /* temperature: 1 after the annealing of warm-up */
        return 1.0 / view->beta;
    }
}

static double share(double sum, long n)
{
    return n > 0 ? sum / (double)n : (double)NAN;
}

static void fill_vector(const column *c, const tsr_chain_view *view,
                        const tsr_record_ladder *ladder, int n, double *to)
{
    for (int k = 0; k < n; k++) {
        const tsr_chain_counts *counts = view->since_draw;
        if (c->from == FROM_MOVES)
            to[k] = share((double)counts->accepted[k], counts->proposed[k]);
        else if (c->from == FROM_MOVES_CHANGED)
            to[k] = share(counts->changed[k], counts->asked[k]);
        else if (c->from == FROM_RUNG_TEMPERATURE)
            to[k] = 1.0 / tsr_ladder_beta(ladder->ladder, k);
        else if (c->from == FROM_RUNG_LOG_LIK)
            to[k] = tsr_chain_log_lik(
                ladder->replica[tsr_ladder_replica(ladder->ladder, k)]);
        else
            to[k] = tsr_ladder_rate(ladder->ladder, k);
    }
}

static int is_of_ladder(origin from)
{
    return from >= FROM_MOVES && from <= FROM_RUNG_EXCHANGE;
}

/* The curve of one draw, a replicate of the data, and the density of each
 * point. */
static void fill_curves(tsr_record *r, const tsr_chain_view *view, int d,
                        double scale, double background, double *curve,
                        double *replicate, double *pointwise)
{
    const tsr_likelihood *l = r->target->likelihood;
    const tsr_data_term *term = &l->data[d];
    const double *theta = tsr_nuisance_theta(view->nuisance, d);
    tsr_likelihood_curve(l, d, view->profile, scale, background, curve);
    for (int k = 0; k < term->saxs->n; k++) {
        double residual = term->saxs->intensity[k] - curve[k];
        replicate[k] =
            curve[k] + term->type->draw_point(term->state, theta, k, view->rng);
        pointwise[k] = term->type->log_point(term->state, theta, k, residual);
    }
}

static void store_data_set(tsr_record *r, const tsr_chain_view *view, int chain,
                           int draw, int d, int warm)
{
    const tsr_data_term *term = &r->target->likelihood->data[d];
    double scale, background, *curve = NULL, *replicate = NULL, *point = NULL;
    tsr_data_term_draw(term, &view->fit[d],
                       tsr_nuisance_theta(view->nuisance, d), view->rng, &scale,
                       &background);
    for (int v = 0; v < r->n_variable; v++) {
        const column *c = &r->column[v];
        tsr_trace_group group = r->variable[v].group;
        if (c->data != d || is_constant(group))
            continue;
        if (c->from == FROM_CURVE)
            curve = cell(r, v, chain, draw);
        else if (c->from == FROM_REPLICATE)
            replicate = cell(r, v, chain, draw);
        else if (c->from == FROM_POINTWISE)
            point = cell(r, v, chain, draw);
        else if (c->from == FROM_SCALE && is_warm(group) == warm)
            *cell(r, v, chain, draw) = scale;
        else if (c->from == FROM_BACKGROUND && is_warm(group) == warm)
            *cell(r, v, chain, draw) = background;
    }
    if (!warm && curve != NULL && replicate != NULL && point != NULL)
        fill_curves(r, view, d, scale, background, curve, replicate, point);
}

void tsr_record_store(tsr_record *record, const tsr_record_ladder *ladder,
                      int chain_number, int draw, int warm,
                      double acceptance_rate)
{
    tsr_record *r = record;
    tsr_chain_view view;
    double trips = (double)tsr_ladder_round_trips(ladder->ladder);
    tsr_chain_look(ladder->replica[tsr_ladder_replica(ladder->ladder, 0)],
                   &view);
    for (int v = 0; v < r->n_variable; v++) {
        const column *c = &r->column[v];
        tsr_trace_group group = r->variable[v].group;
        if (r->variable[v].dim == NULL && is_warm(group) == warm &&
            c->from != FROM_SCALE && c->from != FROM_BACKGROUND)
            *cell(r, v, chain_number, draw) =
                scalar_value(r, c, &view, acceptance_rate, trips);
        else if (is_of_ladder(c->from) && !warm)
            fill_vector(c, &view, ladder, r->variable[v].n,
                        cell(r, v, chain_number, draw));
    }
    for (int d = 0;
         r->target->likelihood != NULL && d < r->target->likelihood->n_data;
         d++)
        store_data_set(r, &view, chain_number, draw, d, warm);
}

tsr_status tsr_record_write(tsr_record *record, tsr_trace *trace, int warm,
                            int n_draw, tsr_err *err)
{
    tsr_record *r = record;
    for (int v = 0; v < r->n_variable && n_draw > 0; v++) {
        tsr_trace_group group = r->variable[v].group;
        if (is_constant(group) || is_warm(group) != warm)
            continue;
        size_t row = (size_t)n_draw * (size_t)r->variable[v].n;
        for (int c = 0; c < r->n_chain; c++)
            memcpy(r->packed + (size_t)c * row, cell(r, v, c, 0),
                   row * sizeof *r->packed);
        tsr_status status = tsr_trace_append(trace, v, n_draw, r->packed, err);
        if (status != TSR_OK)
            return status;
    }
    return TSR_OK;
}

tsr_status tsr_record_write_data(tsr_record *record, tsr_trace *trace,
                                 tsr_err *err)
{
    tsr_record *r = record;
    for (int v = 0; v < r->n_variable; v++) {
        const column *c = &r->column[v];
        if (!is_constant(r->variable[v].group))
            continue;
        const tsr_saxs *saxs = r->target->likelihood->data[c->data].saxs;
        tsr_status status = tsr_trace_put(
            trace, v, c->from == FROM_DATA ? saxs->intensity : saxs->sigma,
            err);
        if (status != TSR_OK)
            return status;
    }
    return TSR_OK;
}
