/* tessera compare DIR...: runs side by side. */
#include "cli/command.h"
#include "cli/compare_report.h"

#include "core/text.h"
#include "io/checksum.h"
#include "io/file.h"
#include "report/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "json", .doc = "one JSON object instead of sentences and tables"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .doc = "a picture (SVG): what each run says, one beside the other"},
    TSR_OPTION_FORCE,
    {0}};

/* ---- reading ---- */

/* A checksum of all that was measured, with where; 0: there is nothing. */
static unsigned long long sum_data(tsr_trace_reader *trace)
{
    const char *const *name;
    unsigned long long sum = 0;
    const int n = tsr_trace_variables(trace, TSR_TRACE_OBSERVED_DATA, &name);
    for (int i = 0; i < n; i++) {
        int n_chain, n_draw, n_value = 0, n_coord = 0;
        double *value = NULL, *coord = NULL;
        if (tsr_trace_get(trace, TSR_TRACE_OBSERVED_DATA, name[i], &n_chain,
                          &n_draw, &n_value, &value, NULL) == TSR_OK)
            sum = tsr_checksum(sum, value, (size_t)n_value * sizeof *value);
        if (tsr_trace_coordinates(trace, TSR_TRACE_OBSERVED_DATA, name[i],
                                  &n_coord, &coord, NULL) == TSR_OK &&
            coord != NULL)
            sum = tsr_checksum(sum, coord, (size_t)n_coord * sizeof *coord);
        free(value);
        free(coord);
    }
    return sum;
}

static tsr_status read_run(const char *path, tsr_compared *r, tsr_log *log,
                           tsr_err *err)
{
    r->directory = path;
    TSR_TRY(tsr_past_run_open(path, &r->past, log, err));
    TSR_TRY(tsr_summary_make(r->past.trace, &r->summary, err));
    TSR_TRY(tsr_summary_add_evidence(r->summary, r->past.trace, err));
    r->data = sum_data(r->past.trace);
    return tsr_verdict_make(&r->past, r->summary, -1,
                            tsr_arrangements_threshold, &r->verdict, err);
}

/* ---- overlap ---- */

/* Of two samples, over bins of both together. */
static double overlap_of(size_t n, const double *x, size_t m, const double *y)
{
    enum { N_BIN = 30 };
    double low = HUGE_VAL, high = -HUGE_VAL, sum = 0.0;
    double share[2][N_BIN] = {{0.0}};
    for (size_t i = 0; i < n + m; i++) {
        const double v = i < n ? x[i] : y[i - n];
        low = fmin(low, v);
        high = fmax(high, v);
    }
    if (!(high > low) || !isfinite(high - low))
        return high == low ? 1.0 : (double)NAN;
    for (size_t i = 0; i < n + m; i++) {
        const double v = i < n ? x[i] : y[i - n];
        const int bin =
            (int)fmin(N_BIN - 1, floor(N_BIN * (v - low) / (high - low)));
        share[i >= n][bin] += 1.0 / (double)(i < n ? n : m);
    }
    for (int k = 0; k < N_BIN; k++)
        sum += fmin(share[0][k], share[1][k]);
    return sum;
}

/* What says how large a structure is and how its parts lie. */
static int is_shape(const char *name)
{
    return strcmp(name, "rg") == 0 || strcmp(name, "d_max") == 0 ||
           ((strncmp(name, "pose_", 5) == 0 ||
             strncmp(name, "tail_", 5) == 0) &&
            strstr(name, "_distance") != NULL);
}

static tsr_status add_overlap(tsr_comparison *c, int a, int b, const char *name,
                              tsr_err *err)
{
    int n_chain, n_draw, m_chain, m_draw;
    double *x = NULL, *y = NULL;
    tsr_overlap *more =
        realloc(c->overlap, (size_t)(c->n_overlap + 1) * sizeof *more);
    if (more == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    c->overlap = more;
    tsr_status status = tsr_summary_draws(c->run[a].past.trace, name, &n_chain,
                                          &n_draw, &x, err);
    if (status == TSR_OK)
        status = tsr_summary_draws(c->run[b].past.trace, name, &m_chain,
                                   &m_draw, &y, err);
    if (status == TSR_OK && x != NULL && y != NULL)
        more[c->n_overlap++] =
            (tsr_overlap){a, b, name,
                          overlap_of((size_t)n_chain * (size_t)n_draw, x,
                                     (size_t)m_chain * (size_t)m_draw, y)};
    free(x);
    free(y);
    return status;
}

static tsr_status find_overlaps(tsr_comparison *c, tsr_err *err)
{
    for (int b = 0; b < c->n; b++)
        for (int a = 0; a < b; a++) {
            const tsr_summary *s = c->run[a].summary;
            for (int i = 0; i < s->n; i++)
                if (is_shape(s->item[i].name) &&
                    tsr_summary_find(c->run[b].summary, s->item[i].name) !=
                        NULL)
                    TSR_TRY(add_overlap(c, a, b, s->item[i].name, err));
        }
    return TSR_OK;
}

/* ---- all of it ---- */

static tsr_status check_picture(const tsr_args *args, const char *path,
                                tsr_err *err)
{
    const tsr_file_target target = {.maker = "compare",
                                    .begins = "<svg",
                                    .holds = TSR_SVG_MARK,
                                    .is_forced =
                                        tsr_args_count(args, "force") > 0};
    return path == NULL ? TSR_OK : tsr_file_check_target(&target, path, err);
}

static tsr_status compare(const tsr_args *args, FILE *out, tsr_log *log,
                          tsr_err *err)
{
    const char *const *directory;
    const char *picture = tsr_args_value(args, "output");
    tsr_compared run[TSR_MOST_COMPARED] = {{.directory = NULL}};
    tsr_comparison c = {.n = tsr_args_arguments(args, &directory), .run = run};
    tsr_status status = check_picture(args, picture, err);
    for (int i = 0; i < c.n && status == TSR_OK; i++) {
        status = read_run(directory[i], &run[i], log, err);
        if (status != TSR_OK)
            (void)tsr_wrap(err, status, "'%s'", directory[i]);
    }
    if (status == TSR_OK)
        status = find_overlaps(&c, err);
    if (status == TSR_OK)
        status = tsr_args_count(args, "json") > 0
                     ? tsr_comparison_print_json(&c, out, err)
                     : tsr_comparison_print(&c, out, err);
    if (status == TSR_OK && picture != NULL)
        status = tsr_comparison_draw(&c, picture, err);
    for (int i = 0; i < c.n; i++) {
        tsr_verdict_free(run[i].verdict);
        tsr_summary_free(run[i].summary);
        tsr_past_run_clear(&run[i].past);
    }
    free(c.overlap);
    return status;
}

const tsr_command tsr_command_compare = {
    .name = "compare",
    .doc = "runs side by side: evidence, fit, parameters, overlap",
    .usage = {.arguments = "DIR...",
              .min_arguments = 2,
              .max_arguments = TSR_MOST_COMPARED,
              .options = options,
              .about =
                  "Log evidence and the expected log predictive density of "
                  "points left out (PSIS-LOO) compare models of the same "
                  "data: numbers of states, flexible residues, noise models. "
                  "A difference counts from two standard deviations and 1 nat. "
                  "Runs of other data are compared by their parameters, and "
                  "data that cannot be of one structure are pointed out: "
                  "Guinier's Rg differs by more than three standard deviations "
                  "and 2 %.\n"
                  "The overlap of two runs is that of the distributions of Rg, "
                  "D_max and the distances between parts: 1 where they are the "
                  "same, 0 where they do not touch."},
    .run = compare};
