/* tessera init: a first configuration from a model and curves. */
#include "cli/command.h"
#include "cli/init_config.h"

#include "core/text.h"
#include "io/file.h"
#include "report/svg.h"

#include <stdlib.h>
#include <string.h>

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .doc = "where the configuration goes instead of standard output; its "
            "picture lies beside it (.svg)"},
    {.name = "pae",
     .argument = "JSON",
     .doc = "predicted aligned errors of the model, AlphaFold 2 or 3; without "
            "it those that lie beside the model are used"},
    {.name = "picture",
     .argument = "SVG",
     .doc = "where the picture goes, also without --output"},
    TSR_OPTION_FORCE,
    {0}};

typedef struct {
    const tsr_args *args;
    const char *output;
    char *picture; /* NULL: none */
    tsr_structure *structure;
    tsr_parts *parts;
    char *pae;
    tsr_init init;
} work;

static void clear(work *w)
{
    for (int k = 0; w->init.saxs != NULL && k < w->init.n_curve; k++)
        tsr_saxs_free(w->init.saxs[k]);
    free(w->init.saxs);
    free(w->picture);
    free(w->pae);
    tsr_parts_free(w->parts);
    tsr_structure_free(w->structure);
}

static tsr_status name_picture(work *w, tsr_err *err)
{
    const char *given = tsr_args_value(w->args, "picture");
    if (given == NULL && w->output == NULL)
        return TSR_OK;
    if (given != NULL) {
        w->picture = strdup(given);
    } else {
        const char *name = tsr_text_file_name(w->output);
        const char *dot = strrchr(name, '.');
        w->picture = tsr_words_of("%.*s.svg",
                                  (int)(dot == NULL || dot == name
                                            ? strlen(w->output)
                                            : (size_t)(dot - w->output)),
                                  w->output);
    }
    return tsr_allocated(w->picture, err);
}

/* Neither file may take the place of what was read, or of another's work. */
static tsr_status check_targets(const work *w, int n, const char *const *input,
                                tsr_err *err)
{
    const int is_forced = tsr_args_count(w->args, "force") > 0;
    const tsr_file_target config = {"init", TSR_INIT_MARK, TSR_INIT_MARK,
                                    n,      input,         is_forced};
    const tsr_file_target picture = {"init", "<svg", TSR_SVG_MARK,
                                     n,      input,  is_forced};
    if (w->output != NULL && w->output[0] == '\0')
        return tsr_fail(err, TSR_E_USAGE, "--output is empty: name a file");
    if (w->output != NULL)
        TSR_TRY(tsr_file_check_target(&config, w->output, err));
    if (w->picture != NULL)
        TSR_TRY(tsr_file_check_target(&picture, w->picture, err));
    return TSR_OK;
}

static tsr_status read_curves(work *w, tsr_log *log, tsr_err *err)
{
    tsr_init *i = &w->init;
    i->saxs = calloc((size_t)i->n_curve + 1, sizeof(tsr_saxs *));
    TSR_TRY(tsr_allocated(i->saxs, err));
    for (int k = 0; k < i->n_curve; k++)
        TSR_TRY(tsr_saxs_read(i->curve[k], TSR_Q_AUTO, NULL, log, &i->saxs[k],
                              err));
    return TSR_OK;
}

static tsr_status write_output(work *w, FILE *out, tsr_err *err)
{
    tsr_file_writer writer;
    if (w->output == NULL)
        return tsr_init_write(&w->init, out, err);
    TSR_TRY(tsr_file_begin(&writer, w->output, err));
    TSR_TRY(
        tsr_file_end(&writer, tsr_init_write(&w->init, writer.out, err), err));
    tsr_init_draw(&w->init, "", out);
    return TSR_OK;
}

static void tell(const work *w, tsr_log *log)
{
    const tsr_parts *p = w->parts;
    tsr_info(log, "rigid parts and linkers by %s%s%s",
             tsr_evidence_text(p->evidence), w->pae != NULL ? ": " : "",
             w->pae != NULL ? w->pae : "");
    for (int k = 0; k < p->n_note; k++)
        tsr_warn(log, "%s", p->note[k]);
    if (w->output != NULL)
        tsr_info(log, "wrote %s and %s; next: tessera check %s", w->output,
                 w->picture, w->output);
}

static tsr_status init(const tsr_args *args, FILE *out, tsr_log *log,
                       tsr_err *err)
{
    const char *const *argument;
    int n = tsr_args_arguments(args, &argument);
    work w = {.args = args, .output = tsr_args_value(args, "output")};
    tsr_status status = name_picture(&w, err);
    TSR_THEN(status, check_targets(&w, n, argument, err));
    TSR_THEN(status, tsr_structure_read(argument[0], &w.structure, err));
    TSR_THEN(status, tsr_parts_with(w.structure, tsr_args_value(args, "pae"),
                                    (tsr_parts_wish){.rigid = NULL}, log,
                                    &w.parts, &w.pae, err));
    w.init = (tsr_init){.model = argument[0],
                        .pae = w.pae,
                        .structure = w.structure,
                        .parts = w.parts,
                        .n_curve = n - 1,
                        .curve = argument + 1,
                        .output = w.output};
    TSR_THEN(status, read_curves(&w, log, err));
    TSR_THEN(status, write_output(&w, out, err));
    if (status == TSR_OK && w.picture != NULL)
        status = tsr_init_picture(&w.init, w.picture, err);
    if (status == TSR_OK)
        tell(&w, log);
    clear(&w);
    return status;
}

const tsr_command tsr_command_init = {
    .name = "init",
    .doc = "write a configuration for a model and curves",
    .usage = {.arguments = "MODEL [CURVE]...",
              .min_arguments = 1,
              .max_arguments = -1,
              .options = options,
              .about = "Finds what of the model is rigid and what is flexible: "
                       "by predicted aligned errors where there are any, by "
                       "pLDDT in the B column, else by contacts and secondary "
                       "structure. Draws it along the chains, and says what "
                       "the file lacks. docs/domains.md tells how."},
    .run = init};
