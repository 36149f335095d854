#include "analysis/export.h"

#include "analysis/mean_shape.h"
#include "analysis/superpose.h"

#include <gsl/gsl_math.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    double (*mean)[3];      /* [n_residue] of CA */
    double *square;         /* [n_residue] mean square deviation */
    double *b;              /* [shown n_atom] */
} job;

static void job_clear(job *j)
{
    free(j->at);
    free(j->model_xyz);
    free(j->xyz);
    free(j->ca);
    free(j->mean);
    free(j->square);
    free(j->b);
}

/* Log densities of the frames' draws; all NaN where the trace has none. */
static double *lp_of(const job *j, int n, const tsr_drawn_frame *frame)
{
    int n_chain, n_draw, n_each;
    double *value = NULL, *lp = calloc((size_t)n + 1, sizeof *lp);
    if (lp == NULL || j->options->trace == NULL ||
        tsr_trace_get(j->options->trace, TSR_TRACE_SAMPLE_STATS, "lp", &n_chain,
                      &n_draw, &n_each, &value, NULL) != TSR_OK) {
        free(lp);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        lp[i] =
            frame[i].chain < n_chain && frame[i].draw < n_draw && n_each == 1
                ? value[(size_t)frame[i].chain * (size_t)n_draw +
                        (size_t)frame[i].draw]
                : (double)NAN;
    free(value);
    return lp;
}

/* Numbers of the frames that are wanted, in j->at. */
static tsr_status choose(job *j, const tsr_draw_choice *choice, tsr_err *err)
{
    const tsr_drawn_frame *frame;
    const int n = tsr_frames_list(j->frames, &frame);
    int *chain = malloc((size_t)n * sizeof *chain), n_in = 0;
    long *draw = malloc((size_t)n * sizeof *draw);
    int *number = malloc((size_t)n * sizeof *number);
    tsr_drawn_frame *in = malloc((size_t)n * sizeof *in);
    char *is_chosen = malloc((size_t)n);
    double *lp = NULL;
    tsr_status status = TSR_OK;
    j->at = malloc((size_t)n * sizeof *j->at);
    if (chain == NULL || draw == NULL || number == NULL || in == NULL ||
        is_chosen == NULL || j->at == NULL) {
        status = tsr_fail(err, TSR_E_NOMEM, "no memory for %d frames", n);
        goto done;
    }
    for (int i = 0; j->options->pick != NULL && i < j->options->n_pick; i++)
        j->at[j->n++] = j->options->pick[i];
    if (j->options->pick != NULL)
        goto done;
    for (int i = 0; i < n; i++)
        if (j->options->state < 0 || frame[i].state == j->options->state) {
            chain[n_in] = frame[i].chain;
            draw[n_in] = frame[i].draw;
            in[n_in] = frame[i];
            number[n_in++] = i;
        }
    if (choice->is_best)
        lp = lp_of(j, n_in, in);
    tsr_draw_choice_apply(choice, n_in, chain, draw, lp, is_chosen);
    for (int i = 0; i < n_in; i++)
        if (is_chosen[i])
            j->at[j->n++] = number[i];
    if (j->n == 0)
        status = tsr_fail(err, TSR_E_DATA,
                          "--draws: none of the %d conformations is meant; "
                          "they are of draws %ld to %ld",
                          n_in, n_in > 0 ? draw[0] : 0,
                          n_in > 0 ? draw[n_in - 1] : 0);
done:
    free(chain);
    free(draw);
    free(number);
    free(in);
    free(is_chosen);
    free(lp);
    return status;
}

/* Frame number i of the chosen ones into model_xyz and ca. */
static tsr_status load(job *j, int i, tsr_err *err)
{
    const float *xyz;
    tsr_status status = tsr_frames_read(j->frames, j->at[i], &xyz, err);
    for (int k = 0; status == TSR_OK && k < j->model->n_atom; k++)
        for (int d = 0; d < 3; d++)
            j->model_xyz[k][d] = (double)xyz[3 * k + d];
    for (int r = 0; status == TSR_OK && r < j->model->n_residue; r++)
        tsr_vec3_copy(j->ca[r], j->model_xyz[j->model->ca[r]]);
    return status;
}

static void move_all(int n, double (*x)[3], const tsr_motion *motion)
{
    for (int i = 0; i < n; i++)
        tsr_motion_apply(motion, x[i]);
}

/* The mean of the chosen frames, or of as many of them as memory should hold,
 * evenly. */
static tsr_status make_mean(job *j, tsr_err *err)
{
    const int fits = tsr_frames_that_fit(j->model->n_residue);
    const int n = j->n < fits ? j->n : fits;
    int *at = malloc((size_t)n * sizeof *at);
    float *all = NULL;
    if (at == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int i = 0; i < n; i++)
        at[i] = j->at[(long)i * j->n / n];
    tsr_status status = tsr_frames_gather_ca(j->frames, n, at, &all, err);
    if (status == TSR_OK)
        status = tsr_mean_shape_make(n, j->model->n_residue, all, j->mean,
                                     j->square, err);
    free(all);
    free(at);
    return status;
}

static tsr_status write_models(job *j, FILE *out, tsr_err *err)
{
    const tsr_drawn_frame *frame;
    const tsr_model_spec spec = {j->options->format, j->options->name, j->shown,
                                 j->b};
    const char *remark =
        j->options->is_raw
            ? "tessera: draws of the posterior\n"
              "B: 8 pi^2 / 3 times the mean square deviation of CA\n"
            : "tessera: draws of the posterior, superposed on their mean (CA)\n"
              "B: 8 pi^2 / 3 times the mean square deviation of CA\n";
    tsr_frames_list(j->frames, &frame);
    for (int i = 0; i < j->shown->n_atom; i++)
        j->b[i] = 8.0 * M_PI * M_PI / 3.0 * j->square[j->shown->atom[i].at];
    tsr_status status = tsr_model_begin(&spec, remark, out, err);
    for (int i = 0; i < j->n && status == TSR_OK; i++) {
        const tsr_drawn_frame *f = &frame[j->at[i]];
        char label[80];
        snprintf(label, sizeof label, "chain %d draw %ld state %d", f->chain,
                 f->draw, f->state);
        status = load(j, i, err);
        if (status != TSR_OK)
            break;
        if (!j->options->is_raw) {
            tsr_motion motion;
            tsr_superpose(j->model->n_residue, (const double(*)[3])j->mean,
                          (const double(*)[3])j->ca, &motion);
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
        j.mean = calloc(n_residue, sizeof *j.mean);
        j.square = calloc(n_residue, sizeof *j.square);
        j.b = calloc(n_shown, sizeof *j.b);
        if (j.model_xyz == NULL || j.xyz == NULL || j.ca == NULL ||
            j.mean == NULL || j.square == NULL || j.b == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    if (status == TSR_OK)
        status = make_mean(&j, err);
    if (status == TSR_OK)
        status = write_models(&j, out, err);
    *n_model = j.n;
    job_clear(&j);
    return status;
}
