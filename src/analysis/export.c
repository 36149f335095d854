/* Drawn conformations and their parameters as files that other programs open:
 * which draws, with which weights, as a table or as models. */
#include "analysis/export.h"

#include "analysis/shape.h"
#include "analysis/summary.h"
#include "core/text.h"
#include "files/file.h"

#include <errno.h>
#include <gsl/gsl_math.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- weights of draws ----
 *
 * Weights of draws from a table of chain, draw and weight, as reweight --output
 * writes it. A draw that is not in it weighs nothing; one that comes twice is
 * refused. */

enum { LINE = 256 };

typedef struct {
    int chain;
    long draw;
    double weight;
} row;

typedef struct {
    const char *path;
    long line;
    size_t n, room;
    row *row;
    int n_chain;
    long n_draw;
} weight_table;

static tsr_status bad_row(const weight_table *t, const char *what, tsr_err *err)
{
    return tsr_fail(err, TSR_E_DATA, "'%s', line %ld: %s", t->path, t->line,
                    what);
}

static tsr_status add_row(weight_table *t, const char *text, tsr_err *err)
{
    char *end;
    row r;
    const long chain = strtol(text, &end, 10);
    int is_good = end != text && *end == ',' && chain >= 0 && chain < INT_MAX;
    const char *second = end + 1;
    r.chain = (int)chain;
    r.draw = is_good ? strtol(second, &end, 10) : -1;
    is_good &= end != second && *end == ',' && r.draw >= 0 && r.draw < INT_MAX;
    const char *third = end + 1;
    r.weight = is_good ? strtod(third, &end) : -1.0;
    if (!is_good || end == third || !isfinite(r.weight) || r.weight < 0.0 ||
        strchr(",\r\n", *end) == NULL)
        return bad_row(
            t, "expected chain, draw and a weight that is not below 0", err);
    if (t->n == t->room) {
        const size_t room = 2 * t->room + 1024;
        row *more = realloc(t->row, room * sizeof *more);
        if (more == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu weights",
                            room);
        t->row = more;
        t->room = room;
    }
    t->row[t->n++] = r;
    t->n_chain = r.chain >= t->n_chain ? r.chain + 1 : t->n_chain;
    t->n_draw = r.draw >= t->n_draw ? r.draw + 1 : t->n_draw;
    return TSR_OK;
}

static tsr_status read_rows(weight_table *t, FILE *file, tsr_err *err)
{
    char text[LINE], shown[TSR_EXCERPT_SIZE];
    while (fgets(text, sizeof text, file) != NULL) {
        t->line++;
        if (t->line > 1) {
            TSR_TRY(add_row(t, text, err));
        } else if (strncmp(text, "chain,draw,weight", 17) != 0) {
            text[strcspn(text, "\r\n")] = '\0';
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' begins with '%s', not with chain,draw,weight "
                            "as what tessera reweight --output writes",
                            t->path, tsr_text_excerpt(text, shown));
        }
    }
    if (ferror(file))
        return tsr_fail(err, TSR_E_IO, "cannot read '%s'", t->path);
    return TSR_OK;
}

static tsr_status fill(const weight_table *t, tsr_draw_weights *out,
                       tsr_err *err)
{
    /* a table far sparser than this is of something else */
    const double most = 100.0 * ((double)t->n + 1e4);
    double sum = 0.0;
    if ((double)t->n_chain * (double)t->n_draw > most)
        return tsr_fail(err, TSR_E_DATA, "'%s' has %zu draws of %d x %ld",
                        t->path, t->n, t->n_chain, t->n_draw);
    const size_t n = (size_t)t->n_chain * (size_t)t->n_draw;
    *out = (tsr_draw_weights){t->n_chain, t->n_draw,
                              malloc((n + 1) * sizeof(double))};
    if (out->weight == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu weights", n);
    for (size_t i = 0; i < n; i++)
        out->weight[i] = -1.0;
    for (size_t i = 0; i < t->n; i++) {
        const row *r = &t->row[i];
        double *w = &out->weight[(size_t)r->chain * (size_t)t->n_draw +
                                 (size_t)r->draw];
        if (*w >= 0.0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s' has chain %d, draw %ld twice", t->path,
                            r->chain, r->draw);
        *w = r->weight;
        sum += r->weight;
    }
    if (!(sum > 0.0) || !isfinite(sum))
        return tsr_fail(err, TSR_E_DATA, "'%s': the weights have the sum %g",
                        t->path, sum);
    for (size_t i = 0; i < n; i++)
        out->weight[i] = fmax(out->weight[i], 0.0) / sum;
    return TSR_OK;
}

tsr_status tsr_draw_weights_read(const char *path, tsr_draw_weights *out,
                                 tsr_err *err)
{
    weight_table t = {.path = path};
    TSR_TRY(tsr_file_expect(path, err));
    FILE *file = fopen(path, "r");
    *out = (tsr_draw_weights){.weight = NULL};
    if (file == NULL)
        return tsr_fail(err, TSR_E_NOINPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    tsr_status status = read_rows(&t, file, err);
    fclose(file);
    TSR_THEN(status, fill(&t, out, err));
    if (status != TSR_OK)
        tsr_draw_weights_clear(out);
    free(t.row);
    return status;
}

void tsr_draw_weights_clear(tsr_draw_weights *weights)
{
    free(weights->weight);
    *weights = (tsr_draw_weights){.weight = NULL};
}

double tsr_draw_weights_at(const tsr_draw_weights *weights, int chain,
                           long draw)
{
    if (chain >= weights->n_chain || draw >= weights->n_draw)
        return 0.0;
    return weights
        ->weight[(size_t)chain * (size_t)weights->n_draw + (size_t)draw];
}

int tsr_weighted_pick(int n, const double *weight, long count, int *pick)
{
    double sum = 0.0, before = 0.0;
    int at = 0, last = 0;
    for (int i = 0; i < n; i++)
        if (weight[i] > 0.0) {
            sum += weight[i];
            last = i;
        }
    if (!(sum > 0.0))
        return 0;
    for (long k = 0; k < count; k++) {
        const double want = sum * ((double)k + 0.5) / (double)count;
        while (at < last && before + weight[at] < want)
            before += weight[at++];
        pick[k] = at;
    }
    return 1;
}

/* ---- which draws ----
 *
 * What --draws of export says, as a list of ranges of draws, and which stored
 * frames these are. */

void tsr_draw_choice_clear(tsr_draw_choice *choice)
{
    free(choice->range);
    *choice = (tsr_draw_choice){.n = 0};
}

static tsr_status bad_choice(const char *text, tsr_err *err)
{
    return tsr_fail(err, TSR_E_USAGE,
                    "--draws '%.60s': expected all, best, even:NUMBER, or "
                    "[CHAIN/]FIRST[:LAST[:EVERY]], several with commas",
                    text);
}

/* A whole number that is not below 0; moves *at past it. */
static int whole(const char **at, long *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return 0;
    *out = strtol(*at, &end, 10);
    *at = end;
    return *out < LONG_MAX;
}

static int parse_range(const char **at, tsr_draw_range *range)
{
    long number;
    *range = (tsr_draw_range){.chain = -1, .every = 1};
    if (!whole(at, &number))
        return 0;
    if (**at == '/') {
        if (number > INT_MAX)
            return 0;
        range->chain = (int)number;
        (*at)++;
        if (!whole(at, &number))
            return 0;
    }
    range->first = range->last = number;
    if (**at == ':') {
        (*at)++;
        if (!whole(at, &range->last) || range->last < range->first)
            return 0;
    }
    if (**at == ':') {
        (*at)++;
        if (!whole(at, &range->every) || range->every < 1)
            return 0;
    }
    return 1;
}

static int starts(const char **at, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return 0;
    *at += n;
    return 1;
}

tsr_status tsr_draw_choice_parse(const char *text, tsr_draw_choice *choice,
                                 tsr_err *err)
{
    const char *at = text;
    *choice = (tsr_draw_choice){.n = 0};
    do {
        tsr_draw_range range = {.chain = -1, .last = LONG_MAX, .every = 1};
        if (at != text)
            at++; /* the comma */
        if (starts(&at, "best")) {
            choice->is_best = 1;
        } else if (starts(&at, "even:")) {
            if (!whole(&at, &choice->even) || choice->even < 1)
                return bad_choice(text, err);
        } else if (starts(&at, "all") || parse_range(&at, &range)) {
            const size_t n = (size_t)choice->n + 1;
            tsr_draw_range *more = realloc(choice->range, n * sizeof *more);
            if (more == NULL)
                return tsr_no_memory(err);
            choice->range = more;
            choice->range[choice->n++] = range;
        } else {
            return bad_choice(text, err);
        }
    } while (*at == ',');
    return *at == '\0' ? TSR_OK : bad_choice(text, err);
}

static int is_in(const tsr_draw_range *range, int chain, long draw)
{
    return (range->chain < 0 || range->chain == chain) &&
           draw >= range->first && draw <= range->last &&
           (draw - range->first) % range->every == 0;
}

int tsr_draw_choice_apply(const tsr_draw_choice *choice, int n,
                          const int *chain, const long *draw, const double *lp,
                          char *is_chosen)
{
    int best = n - 1, count = 0;
    memset(is_chosen, 0, (size_t)n);
    for (int i = 0; i < n; i++)
        for (int r = 0; r < choice->n && !is_chosen[i]; r++)
            is_chosen[i] = (char)is_in(&choice->range[r], chain[i], draw[i]);
    for (int i = 0; lp != NULL && i < n; i++)
        if (lp[i] > lp[best] || isnan(lp[best]))
            best = i;
    if (choice->is_best && n > 0)
        is_chosen[best] = 1;
    /* the middles of as many equal stretches */
    const long even = choice->even < n ? choice->even : n;
    for (long k = 0; k < even; k++)
        is_chosen[(long)((double)(2 * k + 1) * n / (double)(2 * even))] = 1;
    for (int i = 0; i < n; i++)
        count += is_chosen[i];
    return count;
}

/* ---- a table ----
 *
 * Chosen draws as a table: a row a draw, a column for each scalar of the trace.
 */

typedef struct {
    const char *name;
    double *value; /* [n_chain][n_draw] */
} column;

typedef struct {
    int n, n_chain, n_draw;
    column *column; /* [n] */
} draw_table;

static void table_clear(draw_table *t)
{
    for (int i = 0; i < t->n; i++)
        free(t->column[i].value);
    free(t->column);
}

/* Adds the scalars of a group that have as many draws as those before. */
static tsr_status add_group(draw_table *t, tsr_trace_reader *trace,
                            tsr_trace_group group, tsr_err *err)
{
    const char *const *name;
    tsr_status status = TSR_OK;
    const int n = tsr_trace_variables(trace, group, &name);
    column *more = realloc(t->column, (size_t)(t->n + n + 1) * sizeof *more);
    TSR_TRY(tsr_allocated(more, err));
    t->column = more;
    for (int i = 0; i < n && status == TSR_OK; i++) {
        int n_chain, n_draw, n_each;
        if (tsr_trace_shape(trace, group, name[i], &n_chain, &n_draw, &n_each,
                            NULL) != TSR_OK ||
            n_each != 1 ||
            (t->n > 0 && (n_chain != t->n_chain || n_draw != t->n_draw)))
            continue;
        t->n_chain = n_chain;
        t->n_draw = n_draw;
        t->column[t->n] = (column){.name = name[i]};
        status = tsr_trace_get(trace, group, name[i], &n_chain, &n_draw,
                               &n_each, &t->column[t->n].value, err);
        t->n += status == TSR_OK;
    }
    return status;
}

static tsr_status choose_rows(const draw_table *t,
                              const tsr_draw_choice *choice, char **is_chosen,
                              long *n_row, tsr_err *err)
{
    const size_t n = (size_t)t->n_chain * (size_t)t->n_draw;
    int *chain = malloc((n + 1) * sizeof *chain);
    long *draw = malloc((n + 1) * sizeof *draw);
    const double *lp = NULL;
    tsr_status status = TSR_OK;
    *is_chosen = malloc(n + 1);
    if (chain == NULL || draw == NULL || *is_chosen == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %zu draws", n);
    } else {
        for (size_t i = 0; i < n; i++) {
            chain[i] = (int)(i / (size_t)t->n_draw);
            draw[i] = (long)(i % (size_t)t->n_draw);
        }
        for (int i = 0; i < t->n; i++)
            if (strcmp(t->column[i].name, "lp") == 0)
                lp = t->column[i].value;
        *n_row =
            tsr_draw_choice_apply(choice, (int)n, chain, draw, lp, *is_chosen);
        if (*n_row == 0)
            status = tsr_fail(err, TSR_E_DATA,
                              "--draws: none of the %d draws of %d chains is "
                              "meant",
                              t->n_draw, t->n_chain);
    }
    free(chain);
    free(draw);
    return status;
}

tsr_status tsr_export_csv(tsr_trace_reader *trace,
                          const tsr_draw_choice *choice, FILE *out, long *n_row,
                          tsr_err *err)
{
    draw_table t = {.n = 0};
    char *is_chosen = NULL;
    tsr_status status = add_group(&t, trace, TSR_TRACE_POSTERIOR, err);
    TSR_THEN(status, add_group(&t, trace, TSR_TRACE_SAMPLE_STATS, err));
    TSR_THEN(status, choose_rows(&t, choice, &is_chosen, n_row, err));
    if (status == TSR_OK) {
        fputs("chain,draw", out);
        for (int i = 0; i < t.n; i++)
            fprintf(out, ",%s", t.column[i].name);
        fputc('\n', out);
        for (int c = 0; c < t.n_chain; c++)
            for (int d = 0; d < t.n_draw; d++) {
                const size_t at = (size_t)c * (size_t)t.n_draw + (size_t)d;
                if (!is_chosen[at])
                    continue;
                fprintf(out, "%d,%d", c, d);
                for (int i = 0; i < t.n; i++)
                    if (isfinite(t.column[i].value[at]))
                        fprintf(out, ",%.17g", t.column[i].value[at]);
                    else
                        fputc(',', out);
                fputc('\n', out);
            }
    }
    free(is_chosen);
    table_clear(&t);
    return status;
}

/* ---- models ----
 *
 * Models of drawn conformations. Drawn molecules lie anywhere in space, so they
 * are laid over their mean shape, or with some of their residues over these of
 * the start; a pass over the frames finds the mean first. How far each residue
 * strays from it becomes the B factor, as crystallographers would have it. */

/* What passes over the frames share. */
typedef struct {
    tsr_frames *frames;
    const tsr_model_atoms *model, *shown;
    const tsr_export_options *options;
    int n;                  /* chosen */
    int *at;                /* [n] numbers of the frames */
    double (*model_xyz)[3]; /* [model n_atom] of one frame */
    double (*xyz)[3];       /* [shown n_atom] */
    double (*ca)[3];        /* [n_residue] of one frame */
    double (*held)[3]; /* [2 n_align] CA to align: the start's, a frame's */
    double (*mean)[3]; /* [n_residue] of CA */
    double *square;    /* [n_residue] mean square deviation */
    double *b;         /* [shown n_atom] */
} job;

static void job_clear(job *j)
{
    free(j->at);
    free(j->model_xyz);
    free(j->xyz);
    free(j->ca);
    free(j->held);
    free(j->mean);
    free(j->square);
    free(j->b);
}

static double at_draw(const double *value, int n_chain, int n_draw, int chain,
                      long draw)
{
    return chain < n_chain && draw < n_draw
               ? value[(size_t)chain * (size_t)n_draw + (size_t)draw]
               : (double)NAN;
}

/* Log densities of draws; NULL where the trace has none. */
static double *lp_of(const job *j, int n, const int *chain, const long *draw)
{
    int n_chain, n_draw;
    double *lp = calloc((size_t)n + 1, sizeof *lp), *value = NULL;
    if (j->options->trace != NULL)
        tsr_summary_draws(j->options->trace, "lp", &n_chain, &n_draw, &value,
                          NULL);
    for (int i = 0; lp != NULL && value != NULL && i < n; i++)
        lp[i] = at_draw(value, n_chain, n_draw, chain[i], draw[i]);
    if (value == NULL) {
        free(lp);
        lp = NULL;
    }
    free(value);
    return lp;
}

typedef struct {
    int chain, frame;
    long draw;
} candidate;

static int by_draw(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->chain != b->chain)
        return a->chain < b->chain ? -1 : 1;
    if (a->draw != b->draw)
        return a->draw < b->draw ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

static tsr_status none_chosen(const job *j, int n, const candidate *in,
                              tsr_err *err)
{
    const tsr_drawn_frame *frame;
    const int n_frame = tsr_frames_list(j->frames, &frame);
    int last = 0;
    for (int i = 0; i < n_frame; i++)
        last = frame[i].state > last ? frame[i].state : last;
    if (n == 0)
        return tsr_fail(err, TSR_E_USAGE,
                        last > 0 ? "--state %d: the states are 1 to %d"
                                 : "--state %d: the run has one state",
                        j->options->state, last);
    return tsr_fail(err, TSR_E_DATA,
                    "--draws: none of the %d conformations is meant; they are "
                    "of draws %ld to %ld",
                    n, in[0].draw, in[n - 1].draw);
}

/* As many draws as `even` asks for, by weight, each with all its states: in
 * [n_in] is sorted, chain and draw [n_draw] are those in it. */
static tsr_status choose_weighted(job *j, const tsr_draw_choice *choice,
                                  int n_in, const candidate *in, int n_draw,
                                  const int *chain, const long *draw,
                                  tsr_err *err)
{
    const size_t count = (size_t)choice->even;
    double *weight = malloc(((size_t)n_draw + 1) * sizeof *weight);
    int *first = calloc((size_t)n_draw + 1, sizeof *first);
    int *pick = calloc(count + 1, sizeof *pick);
    size_t room = 0;
    tsr_status status = TSR_OK;
    free(j->at);
    j->at = NULL;
    if (weight == NULL || first == NULL || pick == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %zu draws", count);
        goto done;
    }
    for (int k = 0, i = 0; k < n_draw; k++) {
        weight[k] = tsr_draw_weights_at(j->options->weights, chain[k], draw[k]);
        while (i < n_in && in[i].chain == chain[k] && in[i].draw == draw[k])
            i++;
        first[k + 1] = i;
    }
    if (!tsr_weighted_pick(n_draw, weight, choice->even, pick)) {
        status = tsr_fail(err, TSR_E_DATA,
                          "--weights: none of the %d draws with a conformation "
                          "has a weight above 0",
                          n_draw);
        goto done;
    }
    for (size_t p = 0; p < count; p++)
        room += (size_t)(first[pick[p] + 1] - first[pick[p]]);
    j->at = malloc((room + 1) * sizeof *j->at);
    if (j->at == NULL)
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %zu models", room);
    for (size_t p = 0; p < count && j->at != NULL; p++)
        for (int i = first[pick[p]]; i < first[pick[p] + 1]; i++)
            j->at[j->n++] = in[i].frame;
done:
    free(weight);
    free(first);
    free(pick);
    return status;
}

/* Draws are chosen, and with a draw all its states: numbers of the frames that
 * are wanted, in j->at. */
static tsr_status choose(job *j, const tsr_draw_choice *choice, tsr_err *err)
{
    const tsr_drawn_frame *frame;
    const int n = tsr_frames_list(j->frames, &frame);
    const size_t room = (size_t)n + 1;
    int n_in = 0, n_draw = 0;
    candidate *in = malloc(room * sizeof *in);
    int *chain = malloc(room * sizeof *chain);
    long *draw = malloc(room * sizeof *draw);
    char *is_chosen = malloc(room), *is_wanted = calloc(room, 1);
    double *lp = NULL;
    tsr_status status = TSR_OK;
    j->at = malloc(room * sizeof *j->at);
    if (in == NULL || chain == NULL || draw == NULL || is_chosen == NULL ||
        is_wanted == NULL || j->at == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %d frames", n);
        goto done;
    }
    for (int i = 0; j->options->pick != NULL && i < j->options->n_pick; i++)
        j->at[j->n++] = j->options->pick[i];
    if (j->options->pick != NULL)
        goto done;
    for (int i = 0; i < n; i++)
        if (j->options->state < 0 || frame[i].state == j->options->state)
            in[n_in++] = (candidate){frame[i].chain, i, frame[i].draw};
    qsort(in, (size_t)n_in, sizeof *in, by_draw);
    for (int i = 0; i < n_in; i++)
        if (n_draw == 0 || chain[n_draw - 1] != in[i].chain ||
            draw[n_draw - 1] != in[i].draw) {
            chain[n_draw] = in[i].chain;
            draw[n_draw++] = in[i].draw;
        }
    if (j->options->weights != NULL && n_draw > 0) {
        status = choose_weighted(j, choice, n_in, in, n_draw, chain, draw, err);
        goto done;
    }
    if (choice->is_best)
        lp = lp_of(j, n_draw, chain, draw);
    if (choice->is_best && lp == NULL) {
        status = tsr_fail(err, TSR_E_DATA,
                          "--draws best: there is no trace with lp to judge "
                          "by; choose others");
        goto done;
    }
    tsr_draw_choice_apply(choice, n_draw, chain, draw, lp, is_chosen);
    for (int i = 0, k = 0; i < n_in; i++) {
        while (chain[k] != in[i].chain || draw[k] != in[i].draw)
            k++;
        is_wanted[in[i].frame] = is_chosen[k];
    }
    for (int i = 0; i < n; i++) /* in the order in which they are stored */
        if (is_wanted[i])
            j->at[j->n++] = i;
    if (j->n == 0)
        status = none_chosen(j, n_in, in, err);
done:
    free(in);
    free(chain);
    free(draw);
    free(is_chosen);
    free(is_wanted);
    free(lp);
    return status;
}

/* The weight of each draw's state `state`, for the models' labels. */
typedef struct {
    int state, n_chain, n_draw;
    double *value; /* NULL: none, or not inferred */
} weights;

static void label_of(const job *j, const tsr_drawn_frame *f, weights *w,
                     char *label, size_t size)
{
    char name[32];
    int n = snprintf(label, size, "chain %d draw %ld", f->chain, f->draw);
    if (f->state == 0)
        return;
    n += snprintf(label + n, size - (size_t)n, " state %d", f->state);
    if (w->state != f->state) {
        w->state = f->state;
        free(w->value);
        snprintf(name, sizeof name, "weight_%d", f->state);
        w->value = NULL;
        if (j->options->trace != NULL)
            tsr_summary_draws(j->options->trace, name, &w->n_chain, &w->n_draw,
                              &w->value, NULL);
    }
    const double weight =
        w->value != NULL
            ? at_draw(w->value, w->n_chain, w->n_draw, f->chain, f->draw)
            : (double)NAN;
    if (isfinite(weight))
        snprintf(label + n, size - (size_t)n, " weight %.4f", weight);
}

/* Frame number i of the chosen ones into model_xyz and ca. */
static tsr_status load(job *j, int i, tsr_err *err)
{
    const float *xyz;
    TSR_TRY(tsr_frames_read(j->frames, j->at[i], &xyz, err));
    for (int k = 0; k < j->model->n_atom; k++)
        for (int d = 0; d < 3; d++)
            j->model_xyz[k][d] = (double)xyz[3 * k + d];
    for (int r = 0; r < j->model->n_residue; r++)
        tsr_vec3_copy(j->ca[r], j->model_xyz[j->model->ca[r]]);
    return TSR_OK;
}

static void move_all(int n, double (*x)[3], const tsr_motion *motion)
{
    for (int i = 0; i < n; i++)
        tsr_motion_apply(motion, x[i]);
}

/* The motion that lays the frame in j->ca over the others. */
static void find_motion(job *j, tsr_motion *motion)
{
    const int n = j->options->n_align;
    const int *at = j->options->align;
    if (at == NULL) {
        tsr_superpose(j->model->n_residue, (const double(*)[3])j->mean,
                      (const double(*)[3])j->ca, motion);
        return;
    }
    for (int k = 0; k < n; k++)
        tsr_vec3_copy(j->held[n + k], j->ca[at[k]]);
    tsr_superpose(n, (const double(*)[3])j->held,
                  (const double(*)[3])(j->held + n), motion);
}

/* Mean and mean square deviation of frames that some residues align; from the
 * start, so that little is taken from little. */
static tsr_status make_aligned_mean(job *j, tsr_err *err)
{
    const tsr_model_atoms *m = j->model;
    for (int k = 0; k < j->options->n_align; k++)
        tsr_vec3_copy(j->held[k],
                      m->xyz + 3 * (size_t)m->ca[j->options->align[k]]);
    for (int i = 0; i < j->n; i++) {
        tsr_motion motion;
        TSR_TRY(load(j, i, err));
        find_motion(j, &motion);
        move_all(m->n_residue, j->ca, &motion);
        for (int r = 0; r < m->n_residue; r++)
            for (int d = 0; d < 3; d++) {
                double x =
                    j->ca[r][d] - m->xyz[3 * (size_t)m->ca[r] + (size_t)d];
                j->mean[r][d] += x / j->n;
                j->square[r] += x * x / j->n;
            }
    }
    for (int r = 0; r < m->n_residue; r++)
        j->square[r] =
            fmax(0.0, j->square[r] - tsr_vec3_dot(j->mean[r], j->mean[r]));
    return TSR_OK;
}

/* The mean of the chosen frames, or of as many of them as memory should hold,
 * evenly. */
static tsr_status make_mean(job *j, tsr_err *err)
{
    const int fits = tsr_frames_that_fit(j->model->n_residue);
    const int n = j->n < fits ? j->n : fits;
    int *at = malloc((size_t)n * sizeof *at);
    float *all = NULL;
    TSR_TRY(tsr_allocated(at, err));
    for (int i = 0; i < n; i++)
        at[i] = j->at[(long)i * j->n / n];
    tsr_status status = tsr_frames_gather_ca(j->frames, n, at, &all, err);
    TSR_THEN(status, tsr_mean_shape_make(n, j->model->n_residue, all, j->mean,
                                         j->square, err));
    free(all);
    free(at);
    return status;
}

static tsr_status write_models(job *j, FILE *out, tsr_err *err)
{
    const tsr_drawn_frame *frame;
    weights w = {.value = NULL};
    const tsr_model_spec spec = {j->options->format, j->options->name, j->shown,
                                 j->b};
    const int first_ca = j->shown->n_residue > 0 ? j->shown->ca[0] : -1;
    /* C3' of a model without amino acids */
    const char *ca = first_ca >= 0 ? j->shown->atom[first_ca].name : "CA";
    char remark[256];
    snprintf(remark, sizeof remark,
             "tessera: draws of the posterior%s%s%s\n"
             "B: 8 pi^2 / 3 times the mean square deviation of %s\n",
             j->options->is_raw ? "" : ", superposed by ",
             j->options->is_raw ? "" : ca,
             j->options->is_raw          ? ""
             : j->options->align != NULL ? " on the start"
                                         : " on their mean",
             ca);
    tsr_frames_list(j->frames, &frame);
    for (int i = 0; i < j->shown->n_atom; i++)
        if (j->shown->atom[i].at >= 0)
            j->b[i] = 8.0 * M_PI * M_PI / 3.0 * j->square[j->shown->atom[i].at];
    tsr_status status = TSR_OK;
    tsr_model_begin(&spec, remark, out);
    for (int i = 0; i < j->n && status == TSR_OK; i++) {
        const tsr_drawn_frame *f = &frame[j->at[i]];
        char label[80];
        label_of(j, f, &w, label, sizeof label);
        status = load(j, i, err);
        if (status != TSR_OK)
            break;
        if (!j->options->is_raw) {
            tsr_motion motion;
            find_motion(j, &motion);
            move_all(j->model->n_atom, j->model_xyz, &motion);
        }
        const double(*xyz)[3] = (const double(*)[3])j->model_xyz;
        if (j->options->all != NULL) {
            tsr_all_atoms_place(j->options->all, xyz, j->xyz);
            xyz = (const double(*)[3])j->xyz;
        }
        status = tsr_model_write(&spec, i + 1, label, xyz, out, err);
    }
    if (status == TSR_OK)
        tsr_model_end(&spec, out);
    /* mmCIF has no place for a line before a model */
    for (int i = 0;
         spec.format == TSR_MODEL_CIF && status == TSR_OK && i < j->n; i++) {
        char label[80];
        label_of(j, &frame[j->at[i]], &w, label, sizeof label);
        fprintf(out, "# model %d: %s\n", i + 1, label);
    }
    free(w.value);
    return status;
}

tsr_status tsr_export_models(tsr_frames *frames, const tsr_draw_choice *choice,
                             const tsr_export_options *options, FILE *out,
                             int *n_model, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    job j = {.frames = frames,
             .model = model,
             .shown = options->all != NULL ? tsr_all_atoms_list(options->all)
                                           : model,
             .options = options};
    const size_t n_model_atom = (size_t)model->n_atom;
    const size_t n_shown = (size_t)j.shown->n_atom;
    const size_t n_residue = (size_t)model->n_residue;
    tsr_status status = choose(&j, choice, err);
    if (status == TSR_OK) {
        j.model_xyz = calloc(n_model_atom, sizeof *j.model_xyz);
        j.xyz = calloc(n_shown, sizeof *j.xyz);
        j.ca = calloc(n_residue, sizeof *j.ca);
        j.held = calloc(2 * n_residue, sizeof *j.held);
        j.mean = calloc(n_residue, sizeof *j.mean);
        j.square = calloc(n_residue, sizeof *j.square);
        j.b = calloc(n_shown, sizeof *j.b);
        if (j.model_xyz == NULL || j.xyz == NULL || j.ca == NULL ||
            j.held == NULL || j.mean == NULL || j.square == NULL || j.b == NULL)
            status = tsr_no_memory(err);
    }
    TSR_THEN(status, options->align != NULL ? make_aligned_mean(&j, err)
                                            : make_mean(&j, err));
    TSR_THEN(status, write_models(&j, out, err));
    *n_model = j.n;
    job_clear(&j);
    return status;
}
