/* Writes drawn conformations and parameters as files for other programs:
 * choice of draws, tables, models. */
#include "analysis/export.h"

#include "analysis/shape.h"
#include "analysis/summary.h"
#include "core/json.h"
#include "core/pool.h"
#include "core/text.h"
#include "core/vec3.h"
#include "files/file.h"
#include "likelihood/term.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- choice of draws ----
 *
 * Parses the argument of --draws into ranges, and marks the stored draws that
 * it selects. */

void tsr_draw_choice_clear(tsr_draw_choice *choice)
{
    free(choice->range);
    *choice = (tsr_draw_choice){.n = 0};
}

/* [CHAIN/]FIRST[:LAST[:EVERY]] */
static int parse_range(const char *item, tsr_draw_range *r)
{
    long chain = -1;
    int end = 0;
    *r = (tsr_draw_range){.every = 1};
    if (sscanf(item, "%ld/%n", &chain, &end) < 1 || end == 0)
        chain = -1;
    item += end;
    const int n = sscanf(item, "%ld%n:%ld%n:%ld%n", &r->first, &end, &r->last,
                         &end, &r->every, &end);
    if (n == 1)
        r->last = r->first;
    r->chain = (int)chain;
    return n >= 1 && item[end] == '\0' && chain <= INT_MAX &&
           r->last >= r->first && r->last < LONG_MAX && r->every >= 1;
}

tsr_status tsr_draw_choice_parse(const char *text, tsr_draw_choice *choice,
                                 tsr_err *err)
{
    *choice = (tsr_draw_choice){.n = 0};
    for (const char *at = text;; at++) {
        char item[80];
        const int length = (int)strcspn(at, ",");
        tsr_draw_range range = {.chain = -1, .last = LONG_MAX, .every = 1};
        snprintf(item, sizeof item, "%.*s", length, at);
        const int is_even = strncmp(item, "even:", 5) == 0;
        const char *number = item + (is_even ? 5 : 0);
        const int is_number =
            strspn(number, is_even ? "0123456789" : "0123456789/:") ==
            strlen(number);
        if (strcmp(item, "best") == 0) {
            choice->is_best = 1;
        } else if (is_even && is_number && parse_range(number, &range) &&
                   range.first > 0) {
            choice->even = range.first;
        } else if (strcmp(item, "all") == 0 ||
                   (is_number && parse_range(item, &range))) {
            const size_t n = (size_t)choice->n + 1;
            tsr_draw_range *more = realloc(choice->range, n * sizeof *more);
            TSR_TRY(tsr_allocated(more, err));
            choice->range = more;
            choice->range[choice->n++] = range;
        } else {
            return tsr_fail(
                err, TSR_E_USAGE,
                "--draws '%.60s': expected all, best, even:NUMBER, or "
                "[CHAIN/]FIRST[:LAST[:EVERY]]; several with commas",
                text);
        }
        at += length;
        if (*at == '\0')
            return TSR_OK;
    }
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
    /* the middles of `even` intervals of equal length */
    const long even = choice->even < n ? choice->even : n;
    for (long k = 0; k < even; k++)
        is_chosen[(long)((double)(2 * k + 1) * n / (double)(2 * even))] = 1;
    for (int i = 0; i < n; i++)
        count += is_chosen[i];
    return count;
}

/* ---- a table ----
 *
 * Writes the chosen draws as a table: one row for each draw, one column for
 * each scalar of the trace. */

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

/* Adds the scalars of a group, except those whose number of draws differs from
 * that of the first scalar. */
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
                              const tsr_draw_choice *choice, tsr_pool *pool,
                              char **is_chosen, long *n_row, tsr_err *err)
{
    const size_t n = (size_t)t->n_chain * (size_t)t->n_draw;
    const double *lp = NULL;
    int *chain;
    long *draw;
    tsr_pool_array(pool, chain, n);
    tsr_pool_array(pool, draw, n);
    tsr_pool_array(pool, *is_chosen, n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (size_t i = 0; i < n; i++) {
        chain[i] = (int)(i / (size_t)t->n_draw);
        draw[i] = (long)(i % (size_t)t->n_draw);
    }
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->column[i].name, "lp") == 0)
            lp = t->column[i].value;
    *n_row = tsr_draw_choice_apply(choice, (int)n, chain, draw, lp, *is_chosen);
    return *n_row > 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_DATA,
                          "--draws selects none of the %d draws of %d chains",
                          t->n_draw, t->n_chain);
}

tsr_status tsr_export_csv(tsr_trace_reader *trace,
                          const tsr_draw_choice *choice, FILE *out, long *n_row,
                          tsr_err *err)
{
    draw_table t = {.n = 0};
    tsr_pool pool = {0};
    char *is_chosen;
    tsr_status status = add_group(&t, trace, TSR_TRACE_POSTERIOR, err);
    TSR_THEN(status, add_group(&t, trace, TSR_TRACE_SAMPLE_STATS, err));
    TSR_THEN(status, choose_rows(&t, choice, &pool, &is_chosen, n_row, err));
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
    tsr_pool_clear(&pool);
    table_clear(&t);
    return status;
}

/* ---- models ----
 *
 * Drawn molecules lie anywhere in space, so they are superposed on their mean
 * shape, or by some residues on the start. A first pass over the frames
 * computes the mean, a second writes the models. The mean square deviation of
 * each residue is written as its B factor, by the crystallographic relation. */

/* A variable of the trace. */
typedef struct {
    int n_chain, n_draw;
    double *value; /* [n_chain][n_draw], owned; NULL: not in the trace */
} draws;

/* Data of both passes over the frames. model: the atoms of model.pdb; shown:
 * the atoms that are written. */
typedef struct {
    tsr_pool pool;
    tsr_frames *frames;
    const tsr_drawn_frame *drawn; /* [n_drawn] all frames */
    int n_drawn, n_state;
    const tsr_model_atoms *model, *shown;
    const tsr_export_options *options;
    int n;                  /* chosen frames */
    const int *at;          /* [n] numbers of the frames */
    draws *weight;          /* [n_state] of an ensemble; NULL: one state */
    double (*model_xyz)[3]; /* [model->n_atom] positions in the present frame,
                               Angstrom */
    double (*xyz)[3];       /* [shown->n_atom] positions of the atoms written */
    double (*ca)[3];        /* [n_residue] CA of the present frame */
    double (*start)[3];     /* [n_residue] CA of the start */
    double (*mean)[3];      /* [n_residue] mean CA */
    double *square;         /* [n_residue] mean square deviation */
    double *b;              /* [shown->n_atom] B factors */
    tsr_cif_labels labels;  /* of the atoms written */
} job;

/* Reads a variable of the trace; d->value is NULL where the trace lacks it. */
static tsr_status read_draws(const job *j, const char *name, draws *d,
                             tsr_err *err)
{
    *d = (draws){.value = NULL};
    return j->options->trace == NULL
               ? TSR_OK
               : tsr_summary_draws(j->options->trace, name, &d->n_chain,
                                   &d->n_draw, &d->value, err);
}

/* NaN: not in the trace. */
static double at_draw(const draws *d, int chain, long draw)
{
    return d->value != NULL && chain < d->n_chain && draw < d->n_draw
               ? d->value[(size_t)chain * (size_t)d->n_draw + (size_t)draw]
               : (double)NAN;
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

static int by_number(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* The draws that have a stored conformation. */
typedef struct {
    int n;
    int *chain;       /* [n] */
    long *draw;       /* [n] */
    int *first;       /* [n + 1] index in `frame` of each draw's first frame */
    candidate *frame; /* [n_frame] sorted by draw */
    int n_frame;
} stored_draws;

static tsr_status list_draws(job *j, stored_draws *d, tsr_err *err)
{
    const tsr_drawn_frame *frame = j->drawn;
    const int n = j->n_drawn;
    *d = (stored_draws){.n = 0};
    tsr_pool_array(&j->pool, d->chain, n);
    tsr_pool_array(&j->pool, d->draw, n);
    tsr_pool_array(&j->pool, d->first, n + 1);
    tsr_pool_array(&j->pool, d->frame, n);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    for (int i = 0; i < n; i++)
        if (j->options->state < 0 || frame[i].state == j->options->state)
            d->frame[d->n_frame++] =
                (candidate){frame[i].chain, i, frame[i].draw};
    qsort(d->frame, (size_t)d->n_frame, sizeof *d->frame, by_draw);
    for (int i = 0; i < d->n_frame; i++) {
        const candidate *f = &d->frame[i];
        if (d->n == 0 || d->chain[d->n - 1] != f->chain ||
            d->draw[d->n - 1] != f->draw) {
            d->chain[d->n] = f->chain;
            d->draw[d->n++] = f->draw;
        }
        d->first[d->n] = i + 1;
    }
    return d->n > 0 ? TSR_OK
                    : tsr_fail(err, TSR_E_USAGE,
                               j->n_state > 1
                                   ? "--state %d: the run has states 1 to %d"
                                   : "--state %d: the run has one state",
                               j->options->state, j->n_state);
}

/* Lists in *pick [*n] the draws that the user's choice selects. */
static tsr_status pick_chosen(job *j, const tsr_draw_choice *choice,
                              const stored_draws *d, int **pick, int *n,
                              tsr_err *err)
{
    double *lp;
    char *is_chosen;
    int is_known = 1;
    tsr_pool_array(&j->pool, lp, d->n);
    tsr_pool_array(&j->pool, is_chosen, d->n);
    tsr_pool_array(&j->pool, *pick, d->n);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    if (choice->is_best) {
        draws all;
        (void)read_draws(j, "lp", &all, NULL);
        for (int k = 0; k < d->n; k++)
            lp[k] = at_draw(&all, d->chain[k], d->draw[k]);
        is_known = all.value != NULL;
        free(all.value);
    }
    if (!is_known)
        return tsr_fail(err, TSR_E_DATA,
                        "--draws best: the trace has no column lp; select "
                        "draws by their number");
    if (tsr_draw_choice_apply(choice, d->n, d->chain, d->draw,
                              choice->is_best ? lp : NULL, is_chosen) == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "--draws selects none of the %d conformations; they "
                        "belong to draws %ld to %ld",
                        d->n_frame, d->draw[0], d->draw[d->n - 1]);
    for (int k = 0; k < d->n; k++)
        if (is_chosen[k])
            (*pick)[(*n)++] = k;
    return TSR_OK;
}

/* Chooses draws and lists in j->at the frames of all their states. */
static tsr_status choose_frames(job *j, const tsr_draw_choice *choice,
                                tsr_err *err)
{
    const tsr_export_options *o = j->options;
    stored_draws d;
    int n = 0, *pick = NULL;
    size_t capacity = 0;
    if (o->pick != NULL) {
        j->at = o->pick;
        j->n = o->n_pick;
        return TSR_OK;
    }
    TSR_TRY(list_draws(j, &d, err));
    TSR_TRY(pick_chosen(j, choice, &d, &pick, &n, err));
    for (int p = 0; p < n; p++)
        capacity += (size_t)(d.first[pick[p] + 1] - d.first[pick[p]]);
    int *at = tsr_pool_new(&j->pool, capacity, sizeof *at);
    TSR_TRY(tsr_pool_check(&j->pool, err));
    for (int p = 0; p < n; p++)
        for (int i = d.first[pick[p]]; i < d.first[pick[p] + 1]; i++)
            at[j->n++] = d.frame[i].frame;
    /* in the order of storage, for fast reading */
    qsort(at, capacity, sizeof *at, by_number);
    j->at = at;
    return TSR_OK;
}

/* The state, from 1, of model i. */
static int state_of(const job *j, int i)
{
    const int state = j->drawn[j->at[i]].state;
    return state > 0 ? state : 1;
}

/* Chain and draw of model i, and in an ensemble its state and weight. */
static void label_of(const job *j, int i, char *label, size_t size)
{
    const tsr_drawn_frame *f = &j->drawn[j->at[i]];
    int n = snprintf(label, size, "chain %d draw %ld", f->chain, f->draw);
    if (f->state == 0)
        return;
    n += snprintf(label + n, size - (size_t)n, " state %d", f->state);
    const double weight = at_draw(&j->weight[f->state - 1], f->chain, f->draw);
    if (isfinite(weight))
        snprintf(label + n, size - (size_t)n, " weight %.4f", weight);
}

/* Reads chosen frame i into model_xyz and ca. */
static tsr_status load_frame(job *j, int i, tsr_err *err)
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

/* Computes mean and deviations of the chosen frames, or of an even subset that
 * fits into memory. */
static tsr_status make_mean(job *j, tsr_err *err)
{
    const int fits = tsr_frames_that_fit(j->model->n_residue);
    const int n = j->n < fits ? j->n : fits;
    tsr_pool pool = {0};
    float *all;
    int *at;
    tsr_pool_array(&pool, at, n);
    tsr_status status = tsr_pool_check(&pool, err);
    for (int i = 0; i < n && status == TSR_OK; i++)
        at[i] = j->at[(long)i * j->n / n];
    TSR_THEN(status, tsr_frames_gather_ca(j->frames, n, at, &pool, &all, err));
    TSR_THEN(status, tsr_mean_shape_make(n, j->model->n_residue, all,
                                         j->options->n_align, j->options->align,
                                         (const double(*)[3])j->start, j->mean,
                                         j->square, err));
    tsr_pool_clear(&pool);
    return status;
}

/* ---- PDB-IHM ----
 *
 * What an entry of PDB-IHM states beside the models (dictionary mmcif_ihm.dic;
 * Vallat et al. 2018, Structure 26, 894). One assembly, one representation and
 * one protocol have the number 1. A state, its model group and its ensemble
 * share their number, and so do a data set and its file. Data set 1 is the
 * starting model, and the entries of `data:` follow. */

/* Writes a loop of n rows, in which # stands for the number of the row; and of
 * the asym with that number @ for its id, & for its entity and ^ for its
 * segment, which a ligand does not have. */
static void put_rows(const job *j, FILE *out, const char *category, int n,
                     const char *items, const char *row)
{
    tsr_cif_loop(out, category, items);
    for (int i = 1; i <= n; i++) {
        const tsr_cif_asym *a = &j->labels.asym[i - 1];
        for (const char *p = row; *p != '\0'; p++)
            if (*p == '@')
                fprintf(out, "'%s'", a->id);
            else if (*p == '^' && a->kind == TSR_GUEST_LIGAND)
                fputc('.', out);
            else if (strchr("#&^", *p) != NULL)
                fprintf(out, "%d", *p == '&' ? a->entity : i);
            else
                fputc(*p, out);
        fputc('\n', out);
    }
}

/* Writes a text in quotes. */
static void put_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const char *p = text; *p != '\0'; p++)
        fputc(*p == '\'' || *p < ' ' || *p > '~' ? '_' : *p, out);
    fputs("'\n", out);
}

static void put_data(const job *j, FILE *out)
{
    const tsr_config *c = j->options->config;
    const tsr_term_options *entry = c->data.item;
    const int n = c->data.n + 1;
    put_rows(j, out, "ihm_dataset_group", 1, "id name application",
             "# data modeling");
    put_rows(j, out, "ihm_dataset_group_link", n, "dataset_list_id group_id",
             "# 1");
    put_rows(j, out, "ihm_dataset_external_reference", n,
             "id dataset_list_id file_id", "# # #");
    put_rows(j, out, "ihm_external_reference_info", 1,
             "reference_id reference_type", "# 'Supplementary Files'");
    tsr_cif_loop(out, "ihm_dataset_list", "id data_type database_hosted");
    for (int i = 0; i < n; i++) {
        const tsr_term_type *t =
            i > 0 ? tsr_term_registry[entry[i - 1].kind] : NULL;
        fprintf(out, "%d %s NO\n", i + 1,
                t != NULL && t->is_curve                   ? "'SAS data'"
                : t != NULL && strcmp(t->name, "map") == 0 ? "'3DEM volume'"
                                                           : "Other");
    }
    tsr_cif_loop(out, "ihm_external_files",
                 "id reference_id content_type file_path");
    for (int i = 0; i < n; i++) {
        char **file = i > 0 ? tsr_config_data_file(c, i - 1) : NULL;
        const char *path = i == 0         ? c->structure.file
                           : file != NULL ? *file
                                          : NULL;
        fprintf(out, "%d 1 'Input data or restraints' ", i + 1);
        put_text(out, path != NULL ? tsr_text_file_name(path) : "config.yaml");
    }
}

/* Residues, segments, and the representation, all of each asym. */
static void put_assembly(const job *j, FILE *out)
{
    static const char *const kind[] = {"L-peptide linking", "non-polymer",
                                       "RNA linking"};
    const tsr_cif_labels *l = &j->labels;
    const tsr_model_atom *atom = j->shown->atom;
    tsr_cif_loop(out, "chem_comp", "id type");
    for (int i = 0, k; i < j->shown->n_atom; i++) {
        const char *name = atom[i].residue;
        for (k = 0; strcmp(atom[k].residue, name) != 0;)
            k++;
        if (k == i)
            fprintf(out, "%s '%s'\n", name,
                    strcmp(name, "GLY") == 0 ? "peptide linking"
                    : name[0] == 'D' && name[2] == '\0'
                        ? "DNA linking"
                        : kind[l->asym[l->of[i]].kind]);
    }
    tsr_cif_loop(out, "ihm_entity_poly_segment",
                 "id entity_id seq_id_begin seq_id_end");
    for (int k = 0; k < l->n_asym; k++)
        if (l->asym[k].kind != TSR_GUEST_LIGAND)
            fprintf(out, "%d %d 1 %d\n", k + 1, l->asym[k].entity,
                    l->asym[k].n_residue);
    put_rows(j, out, "ihm_struct_assembly", 1, "id name", "# all");
    put_rows(j, out, "ihm_struct_assembly_details", l->n_asym,
             "id assembly_id asym_id entity_id entity_poly_segment_id",
             "# 1 @ & ^");
    put_rows(j, out, "ihm_model_representation", 1, "id name", "# atoms");
    put_rows(j, out, "ihm_model_representation_details", l->n_asym,
             "id representation_id model_object_primitive model_mode "
             "model_granularity entity_asym_id entity_id "
             "entity_poly_segment_id starting_model_id",
             "# 1 atomistic flexible by-atom @ & ^ #");
    put_rows(j, out, "ihm_starting_model_details", l->n_asym,
             "starting_model_id starting_model_source dataset_list_id "
             "starting_model_sequence_offset asym_id entity_id "
             "entity_poly_segment_id starting_model_auth_asym_id",
             "# other 1 0 @ & ^ @");
}

/* Software, protocol, models and their groups. */
static void put_models(const job *j, FILE *out)
{
    put_rows(j, out, "software", 1, "pdbx_ordinal name classification version",
             "# tessera 'integrative model building' '" TSR_VERSION "'");
    put_rows(j, out, "ihm_modeling_protocol", 1, "id num_steps", "# 1");
    tsr_cif_loop(out, "ihm_modeling_protocol_details",
                 "id protocol_id step_id struct_assembly_id dataset_group_id "
                 "software_id multi_scale_flag ordered_flag ensemble_flag "
                 "step_method num_models_end multi_state_flag");
    fprintf(out,
            "1 1 1 1 1 1 NO NO YES 'Bayesian inference by replica exchange "
            "Markov chain Monte Carlo' %d %s\n",
            j->n_drawn, j->n_state > 1 ? "YES" : "NO");
    tsr_cif_loop(out, "ihm_model_list",
                 "model_id assembly_id protocol_id representation_id "
                 "model_name");
    for (int i = 0; i < j->n; i++)
        fprintf(out, "%d 1 1 1 'chain %d draw %ld'\n", i + 1,
                j->drawn[j->at[i]].chain, j->drawn[j->at[i]].draw);
    tsr_cif_loop(out, "ihm_model_group_link", "model_id group_id");
    for (int i = 0; i < j->n; i++)
        fprintf(out, "%d %d\n", i + 1, state_of(j, i));
    put_rows(j, out, "ihm_model_group", j->n_state, "id name", "# 'state #'");
    tsr_cif_loop(out, "ihm_ensemble_info",
                 "ensemble_id model_group_id num_ensemble_models "
                 "num_ensemble_models_deposited "
                 "model_group_superimposed_flag");
    for (int s = 1; s <= j->n_state; s++) {
        int n = 0;
        for (int i = 0; i < j->n; i++)
            n += state_of(j, i) == s;
        fprintf(out, "%d %d %d %d %s\n", s, s, j->n_drawn / j->n_state, n,
                j->options->is_raw ? "NO" : "YES");
    }
}

/* Population of each state: the mean of its weights over all draws. */
static tsr_status put_states(const job *j, FILE *out, tsr_err *err)
{
    put_rows(j, out, "ihm_multi_state_model_group_link", j->n_state,
             "state_id model_group_id", "# #");
    tsr_cif_loop(out, "ihm_multi_state_modeling",
                 "state_id state_group_id experiment_type state_name "
                 "population_fraction population_fraction_sd");
    for (int s = 0; s < j->n_state; s++) {
        const draws *d = &j->weight[s];
        tsr_convergence w = {.mean = 1.0 / j->n_state};
        if (d->value != NULL)
            TSR_TRY(tsr_convergence_make(0, d->n_chain, d->n_draw, d->value, &w,
                                         err));
        fprintf(out, "%d 1 'Fraction of bulk' 'state %d' %.4f %.4f\n", s + 1,
                s + 1, w.mean, w.sd);
    }
    return TSR_OK;
}

/* chi of each model: the root of chi2 per point of its draw. */
static tsr_status put_fits(const job *j, FILE *out, tsr_err *err)
{
    const tsr_config *c = j->options->config;
    const tsr_term_options *entry = c->data.item;
    int n_curve = 0, n_row = 0;
    for (int k = 0; k < c->data.n; k++) {
        const tsr_term_type *type = tsr_term_registry[entry[k].kind];
        char name[64];
        draws chi2;
        if (!type->is_curve)
            continue;
        tsr_term_variable(type, n_curve++, "chi2", sizeof name, name);
        TSR_TRY(read_draws(j, name, &chi2, err));
        for (int i = 0; chi2.value != NULL && i < j->n; i++) {
            const tsr_drawn_frame *f = &j->drawn[j->at[i]];
            if (n_row++ == 0)
                tsr_cif_loop(out, "ihm_sas_restraint",
                             "id dataset_list_id model_id struct_assembly_id "
                             "profile_segment_flag fitting_method "
                             "fitting_state chi_value");
            fprintf(out, "%d %d %d 1 NO tessera %s %.4f\n", n_row, k + 2, i + 1,
                    j->n_state > 1 ? "Multiple" : "Single",
                    sqrt(at_draw(&chi2, f->chain, f->draw)));
        }
        free(chi2.value);
    }
    return TSR_OK;
}

static tsr_status write_ihm(const job *j, FILE *out, tsr_err *err)
{
    tsr_cif_loop(out, "struct",
                 "entry_id title pdbx_structure_determination_methodology");
    fprintf(out, "%s 'Draws of the posterior' integrative\n", j->options->name);
    put_data(j, out);
    put_assembly(j, out);
    put_models(j, out);
    if (j->n_state > 1)
        TSR_TRY(put_states(j, out, err));
    return put_fits(j, out, err);
}

static tsr_status write_models(job *j, FILE *out, tsr_err *err)
{
    const tsr_export_options *o = j->options;
    const int is_aligned = o->align != NULL;
    const tsr_model_spec spec = {.format = o->format,
                                 .name = o->name,
                                 .atoms = j->shown,
                                 .labels = &j->labels,
                                 .b = j->b};
    const int first_ca = j->shown->n_residue > 0 ? j->shown->ca[0] : -1;
    /* C3' in a model without amino acids */
    const char *ca = first_ca >= 0 ? j->shown->atom[first_ca].name : "CA";
    char remark[256], label[80];
    snprintf(remark, sizeof remark,
             "tessera: draws of the posterior%s%s%s\n"
             "B: 8 pi^2 / 3 times the mean square deviation of %s\n",
             o->is_raw ? "" : ", superposed by ", o->is_raw ? "" : ca,
             o->is_raw    ? ""
             : is_aligned ? " on the starting structure"
                          : " on their mean",
             ca);
    for (int i = 0; i < j->shown->n_atom; i++)
        if (j->shown->atom[i].at >= 0)
            j->b[i] =
                8.0 * TSR_PI * TSR_PI / 3.0 * j->square[j->shown->atom[i].at];
    tsr_model_begin(&spec, remark, out);
    for (int i = 0; i < j->n; i++) {
        const double(*xyz)[3] = (const double(*)[3])j->model_xyz;
        tsr_motion motion;
        TSR_TRY(load_frame(j, i, err));
        tsr_superpose(is_aligned ? o->n_align : j->model->n_residue, o->align,
                      (const double(*)[3])(is_aligned ? j->start : j->mean),
                      (const double(*)[3])j->ca, &motion);
        for (int k = 0; !o->is_raw && k < j->model->n_atom; k++)
            tsr_motion_apply(&motion, j->model_xyz[k]);
        if (o->all != NULL) {
            tsr_all_atoms_place(o->all, xyz, j->xyz);
            xyz = (const double(*)[3])j->xyz;
        }
        label_of(j, i, label, sizeof label);
        TSR_TRY(tsr_model_write(&spec, i + 1, label, xyz, out, err));
    }
    tsr_model_end(&spec, out);
    /* mmCIF has no line before a model, so labels follow as comments */
    for (int i = 0; spec.format == TSR_MODEL_CIF && i < j->n; i++) {
        label_of(j, i, label, sizeof label);
        fprintf(out, "# model %d: %s\n", i + 1, label);
    }
    return o->config != NULL ? write_ihm(j, out, err) : TSR_OK;
}

/* ---- a scene ----
 *
 * Writes MolViewSpec, the scene format of Mol* (Midlik et al. 2025, Nucleic
 * Acids Res. 53, W408), with the mmCIF file in it. Every domain of every state
 * has a colour; flexible parts have that of their state. */

/* Writes the bytes of a stream, from its start, for a data URL (RFC 2397). */
static void put_url(FILE *from, FILE *out)
{
    rewind(from);
    for (int c; (c = getc(from)) != EOF;)
        fprintf(out, isalnum(c) || strchr(" .-_/", c) ? "%c" : "%%%02X", c);
}

/* Colours the residues of a domain, run by run. */
static void put_domain(const job *j, const tsr_domain *d, int colour, FILE *out)
{
    static const char *const part[] = {"4269d0", "efb118", "ff725c",
                                       "6cc5b0", "3ca951", "ff8ab7",
                                       "a463f2", "97bbf5", "9c6b4e"};
    const int *ca = j->shown->ca, *of = j->labels.of, *seq = j->labels.seq;
    fprintf(out,
            ",{\"kind\":\"color\",\"params\":{\"color\":\"#%s\","
            "\"selector\":[",
            part[colour % (int)(sizeof part / sizeof *part)]);
    for (int i = 0, k; i < d->n_residue; i = k) {
        const int from = ca[d->residue[i]];
        for (k = i + 1; k < d->n_residue &&
                        d->residue[k] == d->residue[k - 1] + 1 &&
                        of[ca[d->residue[k]]] == of[from];)
            k++;
        fputs(i > 0 ? ",{\"label_asym_id\":" : "{\"label_asym_id\":", out);
        tsr_json_text(&(tsr_json){.out = out}, NULL,
                      j->labels.asym[of[from]].id);
        fprintf(out, ",\"beg_label_seq_id\":%d,\"end_label_seq_id\":%d}",
                seq[from], seq[ca[d->residue[k - 1]]]);
    }
    fputs("]}}", out);
}

/* Writes the scene of models that are in the stream. */
static void put_scene(const job *j, const tsr_domains *domains, FILE *models,
                      FILE *out)
{
    static const char *const rest[] = {"c8c8c8", "707070", "a0a0a0"};
    char now[32];
    const time_t seconds = time(NULL);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
    fprintf(out,
            "{\"metadata\":{\"version\":\"1\",\"title\":\"" TSR_SCENE_MARK
            "\",\"timestamp\":\"%s\"},\n\"root\":{\"kind\":\"root\","
            "\"children\":[{\"kind\":\"download\",\"params\":{\"url\":"
            "\"data:text/plain,",
            now);
    put_url(models, out);
    fputs("\"},\"children\":[{\"kind\":\"parse\",\"params\":{\"format\":"
          "\"mmcif\"},\"children\":[",
          out);
    for (int i = 0; i < j->n; i++) {
        const int state = state_of(j, i) - 1;
        fprintf(out,
                "%s\n{\"kind\":\"structure\",\"params\":{\"type\":\"model\","
                "\"model_index\":%d},\"children\":[{\"kind\":\"component\","
                "\"params\":{\"selector\":\"ligand\"},\"children\":[{\"kind\":"
                "\"representation\",\"params\":{\"type\":\"ball_and_stick\"}}]"
                "},{\"kind\":\"component\",\"params\":{\"selector\":"
                "\"polymer\"},\"children\":[{\"kind\":\"representation\","
                "\"params\":{\"type\":\"cartoon\"},\"children\":[{\"kind\":"
                "\"color\",\"params\":{\"color\":\"#%s\"}}",
                i > 0 ? "," : "", i, rest[state % 3]);
        for (int d = 0; d < domains->n_domain; d++)
            put_domain(j, &domains->domain[d], d + domains->n_domain * state,
                       out);
        fputs("]}]}]}", out);
    }
    fputs("]}]}]}}\n", out);
}

static tsr_status write_scene(job *j, FILE *out, tsr_err *err)
{
    FILE *models = tmpfile();
    tsr_domains *domains = NULL;
    if (models == NULL)
        return tsr_fail(err, TSR_E_IO, "cannot make a temporary file: %s",
                        strerror(errno));
    tsr_status status = write_models(j, models, err);
    TSR_THEN(status, tsr_domains_make(j->frames, j->n, j->at, &domains, err));
    if (status == TSR_OK)
        put_scene(j, domains, models, out);
    tsr_domains_free(domains);
    fclose(models);
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
    const int n_residue = model->n_residue;
    const int last = tsr_frames_last_state(frames);
    j.n_drawn = tsr_frames_list(frames, &j.drawn);
    j.n_state = last > 0 ? last : 1;
    tsr_pool_array(&j.pool, j.model_xyz, model->n_atom);
    tsr_pool_array(&j.pool, j.xyz, j.shown->n_atom);
    tsr_pool_array(&j.pool, j.ca, n_residue);
    tsr_pool_array(&j.pool, j.start, n_residue);
    tsr_pool_array(&j.pool, j.mean, n_residue);
    tsr_pool_array(&j.pool, j.square, n_residue);
    tsr_pool_array(&j.pool, j.b, j.shown->n_atom);
    tsr_pool_array(&j.pool, j.weight, last);
    tsr_status status = tsr_pool_check(&j.pool, err);
    for (int s = 0; s < last && status == TSR_OK; s++) {
        char name[32];
        snprintf(name, sizeof name, "weight_%d", s + 1);
        const tsr_status got = read_draws(&j, name, &j.weight[s], err);
        status =
            options->config != NULL ? got : TSR_OK; /* labels can do without */
    }
    TSR_THEN(status, choose_frames(&j, choice, err));
    if (status == TSR_OK)
        tsr_start_ca(model, j.start);
    TSR_THEN(status, make_mean(&j, err));
    TSR_THEN(status, tsr_cif_labels_make(j.shown, &j.pool, &j.labels, err));
    TSR_THEN(status, options->is_scene ? write_scene(&j, out, err)
                                       : write_models(&j, out, err));
    *n_model = j.n;
    for (int s = 0; s < last && j.weight != NULL; s++)
        free(j.weight[s].value);
    tsr_pool_clear(&j.pool);
    return status;
}
