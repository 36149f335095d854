/* tessera init: a first configuration from a model and curves. */
#include "commands/command.h"
#include "commands/init_config.h"

#include "core/text.h"
#include "files/file.h"
#include "maps/density_map.h"
#include "report/figure.h"

#include <math.h>
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
    TSR_INIT_DATA_OPTIONS,
    TSR_OPTION_FORCE,
    {0}};

/* ---- curves of a command line ---- */

/* FILE=X; the name may have signs of equality of its own. */
static tsr_status read_sans(const char *text, char **path, double *d2o,
                            tsr_err *err)
{
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    const double share = equals != NULL ? strtod(equals + 1, &end) : -1.0;
    if (equals == NULL || equals == text || end == equals + 1 || *end != '\0' ||
        !(share >= 0.0 && share <= 1.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "--sans '%s': expected FILE=X, X the share of D2O in "
                        "the solvent, 0 to 1: %s=0.42",
                        text, equals == NULL ? text : "exp.dat");
    *d2o = share;
    *path = tsr_words_of("%.*s", (int)(equals - text), text);
    return *path != NULL ? TSR_OK : tsr_no_memory(err);
}

/* What all curves of neutrons have. */
static tsr_status read_sample(const tsr_args *args, tsr_init_curves *c,
                              tsr_err *err)
{
    tsr_neutron neutron = {.n_deuterated = 0};
    c->exchange = TSR_NEUTRON_EXCHANGE;
    c->n_deuterated = tsr_args_values(args, "deuterated", &c->deuterated);
    const int has_exchange = tsr_args_count(args, "exchange") > 0;
    if (c->n == c->n_xray && (has_exchange || c->n_deuterated > 0))
        return tsr_fail(err, TSR_E_USAGE, "--%s goes with --sans FILE=X",
                        has_exchange ? "exchange" : "deuterated");
    for (int k = 0; k < c->n_deuterated; k++)
        if (!tsr_neutron_deuterate(&neutron, c->deuterated[k]))
            return tsr_fail(err, TSR_E_USAGE,
                            "--deuterated '%s': expected CHAIN=X, X from 0 to "
                            "1 (without it 1), each chain once, %d at most",
                            c->deuterated[k], TSR_NEUTRON_CHAINS);
    return has_exchange
               ? tsr_args_double(args, "exchange", 0.0, 1.0, &c->exchange, err)
               : TSR_OK;
}

tsr_status tsr_init_curves_read(const tsr_args *args, int n,
                                const char *const *argument,
                                tsr_init_curves *curves, tsr_err *err)
{
    const char *const *sans;
    const int n_sans = tsr_args_values(args, "sans", &sans);
    tsr_init_curves *c = curves;
    *c = (tsr_init_curves){.n = n + n_sans, .n_xray = n};
    c->path = calloc((size_t)c->n + 1, sizeof *c->path);
    c->d2o = calloc((size_t)c->n + 1, sizeof *c->d2o);
    if (c->path == NULL || c->d2o == NULL)
        return tsr_no_memory(err);
    for (int k = 0; k < n; k++) {
        c->path[k] = strdup(argument[k]);
        if (c->path[k] == NULL)
            return tsr_no_memory(err);
    }
    for (int k = 0; k < n_sans; k++)
        TSR_TRY(read_sans(sans[k], &c->path[n + k], &c->d2o[n + k], err));
    return read_sample(args, c, err);
}

void tsr_init_curves_clear(tsr_init_curves *curves)
{
    for (int k = 0; curves->path != NULL && k < curves->n; k++)
        free(curves->path[k]);
    free(curves->path);
    free(curves->d2o);
    *curves = (tsr_init_curves){.n = 0};
}

int tsr_init_data_words(const tsr_args *args, const char **word)
{
    static const char *const names[] = {"sans", "exchange", "deuterated", "map",
                                        "resolution"};
    static const char *const typed[] = {"--sans", "--exchange", "--deuterated",
                                        "--map", "--resolution"};
    const char *const *value;
    int n = 0;
    for (int i = 0; i < 5; i++) {
        const int n_value = tsr_args_values(args, names[i], &value);
        for (int k = 0; k < n_value; k++) {
            word[n++] = typed[i];
            word[n++] = value[k];
        }
    }
    return n;
}

int tsr_init_curves_suit(const tsr_init_curves *curves, int k,
                         const tsr_neutron_options *entry)
{
    const tsr_init_curves *c = curves;
    const tsr_neutron_options *o = entry;
    if (o == NULL || k < c->n_xray)
        return o == NULL && k < c->n_xray;
    const double d2o = o->d2o.word >= 0 ? 0.0 : o->d2o.number;
    int alike = fabs(d2o - c->d2o[k]) < 1e-6 &&
                fabs(o->exchange - c->exchange) < 1e-6 &&
                o->deuterated.n == c->n_deuterated;
    for (int i = 0; i < c->n_deuterated && alike; i++)
        alike = strcmp(o->deuterated.item[i], c->deuterated[i]) == 0;
    return alike;
}

/* ---- the command ---- */

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
    for (int k = 0; w->init.saxs != NULL && k < w->init.curves.n; k++)
        tsr_saxs_free(w->init.saxs[k]);
    free(w->init.saxs);
    tsr_init_curves_clear(&w->init.curves);
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
static tsr_status check_targets(const work *w, tsr_err *err)
{
    const tsr_init_curves *c = &w->init.curves;
    const char **input = calloc((size_t)c->n + 2, sizeof *input);
    if (input == NULL)
        return tsr_no_memory(err);
    int n = c->n + 1;
    input[0] = w->init.model;
    for (int k = 0; k < c->n; k++)
        input[k + 1] = c->path[k];
    if (w->init.map != NULL)
        input[n++] = w->init.map;
    const int is_forced = tsr_args_count(w->args, "force") > 0;
    const tsr_file_target config = {"init", TSR_INIT_MARK, TSR_INIT_MARK,
                                    n,      input,         is_forced};
    const tsr_file_target picture = {"init", "<svg", TSR_SVG_MARK,
                                     n,      input,  is_forced};
    tsr_status status = TSR_OK;
    if (w->output != NULL && w->output[0] == '\0')
        status = tsr_fail(err, TSR_E_USAGE, "--output is empty: name a file");
    if (w->output != NULL && status == TSR_OK)
        status = tsr_file_check_target(&config, w->output, err);
    if (status == TSR_OK && w->picture != NULL)
        status = tsr_file_check_target(&picture, w->picture, err);
    free(input);
    return status;
}

static tsr_status read_curves(work *w, tsr_log *log, tsr_err *err)
{
    tsr_init *i = &w->init;
    i->saxs = calloc((size_t)i->curves.n + 1, sizeof(tsr_saxs *));
    tsr_status status = i->saxs == NULL ? tsr_no_memory(err) : TSR_OK;
    for (int k = 0; k < i->curves.n && status == TSR_OK; k++)
        status = tsr_saxs_read(i->curves.path[k], TSR_Q_AUTO, NULL, log,
                               &i->saxs[k], err);
    return status;
}

/* The map is read, so that what cannot be is told now. */
static tsr_status read_map(work *w, tsr_log *log, tsr_err *err)
{
    tsr_map *map;
    tsr_pool pool = {0};
    const int has_resolution = tsr_args_count(w->args, "resolution") > 0;
    if ((w->init.map != NULL) != has_resolution)
        return tsr_fail(err, TSR_E_USAGE, "--%s",
                        has_resolution
                            ? "resolution goes with --map MAP"
                            : "map needs the map's resolution: --resolution R, "
                              "in Angstrom");
    if (w->init.map == NULL)
        return TSR_OK;
    TSR_TRY(tsr_args_double(w->args, "resolution", 0.5, 100.0,
                            &w->init.resolution_ang, err));
    tsr_status status =
        tsr_map_read(w->init.map, TSR_MAP_ORIGIN_AUTO, log, &pool, &map, err);
    TSR_THEN(status, tsr_map_check(map, w->init.resolution_ang, log, err));
    tsr_pool_clear(&pool);
    return status;
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
    char word[TSR_SHELL_SIZE];
    tsr_info(log, "rigid parts and linkers by %s%s%s",
             tsr_evidence_text(p->evidence), w->pae != NULL ? ": " : "",
             w->pae != NULL ? w->pae : "");
    for (int k = 0; k < p->n_note; k++)
        tsr_warn(log, "%s", p->note[k]);
    if (w->output != NULL)
        tsr_info(log, "wrote %s%s%s; next: tessera check %s", w->output,
                 w->picture != NULL ? " and " : "",
                 w->picture != NULL ? w->picture : "",
                 tsr_text_shell(w->output, word));
}

static tsr_status init(const tsr_args *args, FILE *out, tsr_log *log,
                       tsr_err *err)
{
    const char *const *argument;
    int n = tsr_args_arguments(args, &argument);
    work w = {.args = args, .output = tsr_args_value(args, "output")};
    w.init = (tsr_init){.model = argument[0],
                        .output = w.output,
                        .map = tsr_args_value(args, "map")};
    tsr_status status =
        tsr_init_curves_read(args, n - 1, argument + 1, &w.init.curves, err);
    if (status == TSR_OK)
        status = name_picture(&w, err);
    if (status == TSR_OK)
        status = check_targets(&w, err);
    if (status == TSR_OK)
        status = tsr_structure_read_any(argument[0], &w.structure, err);
    if (status == TSR_OK)
        status = tsr_parts_with(w.structure, tsr_args_value(args, "pae"),
                                (tsr_parts_wish){.rigid = NULL}, log, &w.parts,
                                &w.pae, err);
    w.init.pae = w.pae;
    w.init.structure = w.structure;
    w.init.parts = w.parts;
    if (status == TSR_OK)
        status = read_curves(&w, log, err);
    if (status == TSR_OK)
        status = read_map(&w, log, err);
    if (status == TSR_OK)
        status = write_output(&w, out, err);
    if (status == TSR_OK && w.structure->n_residue == 0) {
        free(w.picture); /* of a protein's parts alone */
        w.picture = NULL;
    }
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
                       "the file lacks. docs/domains.md tells how. CURVEs are "
                       "of X-rays; those of neutrons come by --sans, a density "
                       "map by --map."},
    .run = init};
