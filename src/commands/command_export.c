/* tessera export DIR: writes draws as models or as a table. */
#include "commands/command.h"
#include "session/past_run.h"
#include "session/run_directory.h"

#include "analysis/arrangements.h"
#include "analysis/export.h"
#include "analysis/frames.h"
#include "core/text.h"
#include "files/file.h"
#include "molecule/structure.h"
#include "molecule/topology.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const atoms_words[] = {"auto", "all", "model", NULL};
enum { ATOMS_AUTO, ATOMS_ALL, ATOMS_MODEL };

typedef struct {
    char *draws, *format, *output, *align;
    double threshold_ang;
    int atoms, raw, force;
    long state; /* 0: all */
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "draws", options, draws, .argument = "SPEC",
              .initial = "even:20",
              .doc = "draws to export: all, best, even:NUMBER, "
                     "[CHAIN/]FIRST[:LAST[:EVERY]], several with commas; or "
                     "arrangements, the central draw of each arrangement of "
                     "the domains (summary)"),
    TSR_FIELD(DOUBLE, "threshold", options, threshold_ang, .argument = "A",
              .initial = "15", .unit = "Angstrom", .min = 0.1, .max = 1e4,
              .doc = "for --draws arrangements: smallest average distance "
                     "between two arrangements"),
    TSR_FIELD(STRING, "format", options, format, .argument = "FORMAT",
              .doc =
                  "pdb or cif: conformations; ihm: an entry for PDB-IHM in "
                  "mmCIF; mvsj: a scene for Mol*; csv: variables of the trace; "
                  "default: by the name of the output, else pdb"),
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "FILE",
              .doc = "output file; default: standard output"),
    TSR_FIELD(
        CHOICE, "atoms", options, atoms, .argument = "WHICH", .initial = "auto",
        .words = atoms_words,
        .doc =
            "model: atoms as sampled, with side chains as their centres; all: "
            "heavy atoms of the input; auto: all if the input still exists"),
    TSR_FIELD(INT, "state", options, state, .argument = "NUMBER", .min = 1,
              .max = 1e6,
              .doc =
                  "only this state of an ensemble, counted from 1 as in rg_1"),
    TSR_FIELD(STRING, "align", options, align, .argument = "RANGE",
              .doc = "residues to superpose on the start, as A:1-82, or a "
                     "domain of the report, as domain:2; default: all "
                     "residues, superposed on their mean"),
    TSR_FIELD(BOOL, "raw", options, raw,
              .doc = "no superposition: coordinates as sampled"),
    TSR_OPTION_FORCE(options),
    {0}};

enum { CSV = 2, IHM, SCENE, N_FORMAT, MOST_PICKS = 256 };
static const char *const format_name[N_FORMAT] = {"pdb", "cif", "csv", "ihm",
                                                  "mvsj"};

/* Chooses the format: --format, else the ending of the file name, else pdb. */
static tsr_status parse_format(const char *text, const char *path, int *format,
                               tsr_err *err)
{
    const char *dot =
        path != NULL ? strrchr(tsr_text_file_name(path), '.') : NULL;
    const char *name = text != NULL  ? text
                       : dot != NULL ? dot + 1
                                     : format_name[TSR_MODEL_PDB];
    for (*format = 0; *format < N_FORMAT; ++*format)
        if (strcasecmp(name, format_name[*format]) == 0)
            return TSR_OK;
    return tsr_fail(
        err, TSR_E_USAGE, "%s '%.200s': expected %spdb, cif, ihm, mvsj or csv",
        text != NULL ? "--format" : "--output", text != NULL ? text : path,
        text != NULL ? "" : "--format, or a name that ends in ");
}

/* ---- models ---- */

static int is_arrangements(const options *o)
{
    return strcmp(o->draws, "arrangements") == 0;
}

/* Reads the input's atoms, where they are requested or available. */
static tsr_status get_all_atoms(int which, const tsr_past_run *run,
                                const tsr_model_atoms *model, tsr_log *log,
                                tsr_all_atoms **all, tsr_err *err)
{
    const char *path = run->has_config ? run->config.structure.file : NULL;
    tsr_structure *input = NULL;
    tsr_err local = {.status = TSR_OK};
    *all = NULL;
    if (which == ATOMS_MODEL)
        return TSR_OK;
    tsr_status status =
        path == NULL
            ? tsr_fail(&local, TSR_E_NOINPUT, "the run has no input structure")
            : tsr_structure_read_symmetric(path, run->config.structure.symmetry,
                                           &input, &local);
    TSR_THEN(status, tsr_all_atoms_new(model, input, all, &local));
    tsr_structure_free(input);
    if (status == TSR_OK)
        return TSR_OK;
    if (which == ATOMS_ALL || status == TSR_E_NOMEM)
        return tsr_fail(err, status, "--atoms all: %s", local.message);
    if (path != NULL)
        tsr_warn(log, "side chains are their centres (atom SC): %s",
                 local.message);
    return TSR_OK;
}

/* Selects the central draws of the arrangements, of one state or of all states.
 * Without --align, models are superposed on the domain on which the
 * arrangements were found. */
static tsr_status pick_arrangements(double threshold, tsr_frames *frames,
                                    int *pick, int **align,
                                    tsr_export_options *o, tsr_log *log,
                                    tsr_err *err)
{
    tsr_arrangements *a = NULL;
    TSR_TRY(tsr_arrangements_make(frames, -1, threshold, NULL, &a, err));
    if (a == NULL)
        return tsr_fail(
            err, TSR_E_DATA,
            "no two domains move relative to each other, so there are no "
            "arrangements; --draws even:20 exports an ensemble");
    const tsr_domain *fixed = &a->domains->domain[a->fixed];
    if (*align == NULL && !o->is_raw &&
        (*align = calloc((size_t)fixed->n_residue, sizeof **align)) != NULL) {
        memcpy(*align, fixed->residue,
               (size_t)fixed->n_residue * sizeof **align);
        o->n_align = fixed->n_residue;
    }
    o->pick = pick;
    for (int i = 0; i < a->n && o->n_pick < MOST_PICKS; i++) {
        const tsr_arrangement *item = &a->item[i];
        if (o->state > 0 && item->state != o->state)
            continue;
        pick[o->n_pick++] = item->frame;
        tsr_info(log, "model %d represents %.0f %% of the draws%s", o->n_pick,
                 100.0 * item->share, item->state > 0 ? " of its state" : "");
    }
    tsr_arrangements_free(a);
    return TSR_OK;
}

/* ---- residues of the superposition ---- */

/* Marks the residues of a domain, numbered as in the report: mark [n_residue]
 * out. */
static tsr_status mark_domain(tsr_frames *frames, const char *text, int *mark,
                              tsr_err *err)
{
    enum { MOST_FRAMES = 400 };
    int at[MOST_FRAMES], draw[MOST_FRAMES], n_draw;
    int n = tsr_frames_select(frames, MOST_FRAMES, at, draw, &n_draw);
    tsr_domains *domains = NULL;
    TSR_TRY(tsr_domains_make(frames, n, at, &domains, err));
    char *end;
    long k = strtol(text, &end, 10);
    int is_there = *end == '\0' && k >= 1 && k <= domains->n_domain;
    for (int i = 0; is_there && i < domains->domain[k - 1].n_residue; i++)
        mark[domains->domain[k - 1].residue[i]] = 1;
    n = domains->n_domain;
    tsr_domains_free(domains);
    return is_there ? TSR_OK
                    : tsr_fail(err, TSR_E_USAGE,
                               "--align domain:%.40s: the draws have %d "
                               "domain%s",
                               text, n, n == 1 ? "" : "s");
}

static tsr_status mark_range(const tsr_model_atoms *model, const char *text,
                             int *mark, tsr_err *err)
{
    tsr_residue *r = calloc((size_t)model->n_residue + 1, sizeof *r);
    TSR_TRY(tsr_allocated(r, err));
    for (int i = 0; i < model->n_residue; i++) {
        const tsr_model_atom *ca = &model->atom[model->ca[i]];
        if (ca->chain_id[0] != '\0')
            memcpy(r[i].chain, ca->chain_id, sizeof r[i].chain);
        else
            r[i].chain[0] = ca->chain;
        r[i].number = ca->number;
        int is_same = i > 0 && strcmp(r[i].chain, r[i - 1].chain) == 0;
        r[i].chain_first = is_same ? r[i - 1].chain_first : i;
    }
    tsr_status status = tsr_range_mark(text, model->n_residue, r, mark, err);
    free(r);
    return status == TSR_OK ? status : tsr_wrap(err, TSR_E_USAGE, "--align");
}

/* Reads --align: *align [*n] are the residues on which models are superposed,
 * freed by the caller; NULL without --align. */
static tsr_status read_align(const options *asked, tsr_frames *frames,
                             int **align, int *n, tsr_err *err)
{
    static const char domain[] = "domain:";
    const char *text = asked->align;
    const int n_residue = tsr_frames_atoms(frames)->n_residue;
    if (text == NULL)
        return TSR_OK;
    if (asked->raw)
        return tsr_fail(err, TSR_E_USAGE,
                        "--align and --raw exclude each other");
    int *mark = calloc((size_t)n_residue + 1, sizeof *mark);
    TSR_TRY(tsr_allocated(mark, err));
    tsr_status status =
        strncmp(text, domain, strlen(domain)) == 0
            ? mark_domain(frames, text + strlen(domain), mark, err)
            : mark_range(tsr_frames_atoms(frames), text, mark, err);
    for (int i = 0; i < n_residue;
         i++) /* convert the marks to residue numbers */
        if (mark[i])
            mark[(*n)++] = i;
    if (status == TSR_OK && *n < 3)
        status = tsr_fail(err, TSR_E_USAGE,
                          "--align %.40s: %d residue%s; superposition needs 3",
                          text, *n, *n == 1 ? "" : "s");
    *align = mark;
    return status;
}

static tsr_status export_models(const options *asked, const tsr_past_run *run,
                                const tsr_draw_choice *choice, int format,
                                FILE *out, tsr_log *log, tsr_err *err)
{
    tsr_frames *frames = NULL;
    int n_model = 0, pick[MOST_PICKS], *align = NULL;
    const int is_cif = format == IHM || format == SCENE;
    tsr_export_options o = {.format = is_cif ? TSR_MODEL_CIF
                                             : (tsr_model_format)format,
                            .config = format == IHM ? &run->config : NULL,
                            .is_scene = format == SCENE,
                            .name = "draws",
                            .is_raw = asked->raw,
                            .state = asked->state > 0 ? (int)asked->state : -1,
                            .trace = run->trace};
    if (run->directory == NULL)
        return tsr_fail(err, TSR_E_USAGE,
                        "conformations are in the folder of the run; give that "
                        "folder, not the trace");
    if (format == IHM && !run->has_config)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "--format ihm needs config.yaml of the run, which "
                        "cannot be read");
    tsr_status status = tsr_frames_open(run->directory, log, &frames, err);
    TSR_THEN(status, get_all_atoms(asked->atoms, run, tsr_frames_atoms(frames),
                                   log, &o.all, err));
    TSR_THEN(status, read_align(asked, frames, &align, &o.n_align, err));
    if (status == TSR_OK && is_arrangements(asked))
        status = pick_arrangements(asked->threshold_ang, frames, pick, &align,
                                   &o, log, err);
    o.align = align;
    TSR_THEN(status, tsr_export_models(frames, choice, &o, out, &n_model, err));
    if (status == TSR_OK)
        tsr_info(log, "%d models of %d atoms", n_model,
                 o.all != NULL ? tsr_all_atoms_list(o.all)->n_atom
                               : tsr_frames_atoms(frames)->n_atom);
    tsr_all_atoms_free(o.all);
    tsr_frames_free(frames);
    free(align);
    return status;
}

/* Conformations are in other files than the trace: they are written even if
 * reading the trace has failed with `status` and `err`. */
static tsr_status allow_missing_trace(tsr_past_run *run, tsr_status status,
                                      tsr_log *log, tsr_err *err)
{
    tsr_frames *frames = NULL;
    tsr_err local;
    if (status != TSR_E_DATA || run->directory == NULL || run->trace != NULL ||
        tsr_frames_open(run->directory, NULL, &frames, &local) != TSR_OK)
        return status;
    tsr_frames_free(frames);
    tsr_warn(log, "only conformations can be written: %s", err->message);
    run->has_config =
        tsr_config_read(tsr_path_in(run->directory, "config.yaml").text, 0,
                        NULL, &run->config, &local) == TSR_OK;
    return TSR_OK;
}

/* ---- the output file ---- */

/* Marks at the beginning of files in each format, by which tessera recognises
 * its own files. */
static const struct {
    const char *begins, *holds;
} kinds[N_FORMAT] = {
    [TSR_MODEL_PDB] = {.begins = "REMARK 999 tessera: "},
    [TSR_MODEL_CIF] = {.begins = "data_", .holds = "\n# tessera: "},
    [CSV] = {.begins = "chain,draw"},
    [IHM] = {.begins = "data_", .holds = "\n# tessera: "},
    [SCENE] = {.begins = "{", .holds = TSR_SCENE_MARK}};

static tsr_status check_target(const options *asked, const tsr_past_run *run,
                               const char *path, int format, tsr_err *err)
{
    const char *const input[] = {run->trace_path};
    const tsr_file_target target = {.maker = "export",
                                    .n_input = 1,
                                    .input = input,
                                    .is_forced = asked->force};
    return tsr_file_check_target(&target, path, kinds[format].begins,
                                 kinds[format].holds, err);
}

static tsr_status export(const tsr_args *args, FILE *out, tsr_log *log,
                         tsr_err *err)
{
    const options *asked = args->options;
    const char *path = asked->output;
    if (path != NULL && strcmp(path, "-") == 0)
        path = NULL;
    tsr_past_run run = {.trace = NULL};
    tsr_draw_choice choice = {.n = 0};
    tsr_file_writer to = {.out = NULL};
    int format = 0;
    long n_row = 0;
    tsr_status status = parse_format(asked->format, path, &format, err);
    if (status == TSR_OK && is_arrangements(asked) && format == CSV)
        status = tsr_fail(err, TSR_E_USAGE,
                          "--draws %s is for conformations, not for csv",
                          asked->draws);
    if (status == TSR_OK && !is_arrangements(asked))
        status = tsr_draw_choice_parse(asked->draws, &choice, err);
    TSR_THEN(status, tsr_past_run_open(args->argument[0], &run, log, err));
    if (status != TSR_OK && format != CSV)
        status = allow_missing_trace(&run, status, log, err);
    if (status == TSR_OK && path != NULL)
        status = check_target(asked, &run, path, format, err);
    if (status == TSR_OK && path != NULL)
        status = tsr_file_begin(&to, path, err);
    FILE *into = to.out != NULL ? to.out : out;
    if (status == TSR_OK && format == CSV)
        status = tsr_export_csv(run.trace, &choice, into, &n_row, err);
    else
        TSR_THEN(status,
                 export_models(asked, &run, &choice, format, into, log, err));
    status = tsr_file_end(&to, status, err);
    tsr_draw_choice_clear(&choice);
    tsr_past_run_clear(&run);
    return status;
}

const tsr_command tsr_command_export = {
    .name = "export",
    .doc = "export draws as PDB, mmCIF, PDB-IHM, a scene or CSV",
    .arguments = "DIR",
    .options = fields,
    .size = sizeof(options),
    .about = "Conformations come from the trajectories of the run "
             "(output.trajectory_every), superposed on their mean (or see "
             "--align), with the fluctuation of each residue as B factor. "
             "even:20 is an ensemble that represents the posterior. With "
             "--atoms all, side chains are those of the input, rotated about "
             "CA-CB towards the sampled centre.",
    .run = export};
