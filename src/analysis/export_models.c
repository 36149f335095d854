/* Models of drawn conformations. Drawn molecules lie anywhere in space, so they
 * are laid over their mean shape, or with some of their residues over these of
 * the start; a pass over the frames finds the mean first. How far each residue
 * strays from it becomes the B factor, as crystallographers would have it. */
#include "analysis/export.h"

#include "analysis/mean_shape.h"
#include "analysis/summary.h"

#include <gsl/gsl_math.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    int *pick = malloc(count * sizeof *pick);
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
