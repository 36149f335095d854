/* What a configuration leaves open once it is read, and what of it cannot be.
 */
#include "posterior/config.h"

#include "files/yaml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *tsr_config_no_atoms(const tsr_config *config)
{
    const tsr_structure_config *c = &config->structure;
    if (config->model_error.learn == TSR_LEARN_NONE)
        return "model_error is none";
    if (c->file == NULL)
        return "a sequence has no atoms of its own";
    if (c->form_factors != NULL)
        return "structure.form_factors is a table of your own";
    return NULL;
}

tsr_status tsr_config_check(const tsr_config *config, tsr_err *err)
{
    const tsr_config *c = config;
    const tsr_structure_config *s = &c->structure;
    if ((s->file == NULL) == (s->sequence == NULL))
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure: give either file or sequence%s",
                        s->file == NULL ? "" : ", not both");
    if (s->flexible.n > 0 && s->rigid.n > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure: give flexible or rigid, not both");
    if (s->still && s->flexible.n + s->rigid.n + s->fixed.n + s->mobile.n > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.still: with it nothing moves; leave "
                        "flexible, rigid, fixed and mobile out");
    if (s->bodies == TSR_CONFIG_ATOMS && s->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.bodies: atoms needs structure.file: a "
                        "sequence has no atoms of its own");
    if (s->bodies == TSR_CONFIG_ATOMS && s->starts.n > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.starts: the water of one structure rides "
                        "along (structure.bodies: atoms); leave starts out");
    const char *unknown = tsr_config_no_atoms(c);
    if (s->bodies == TSR_CONFIG_ATOMS && unknown != NULL &&
        strcmp(c->device.use, "reference") == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "device.use: on the reference bodies propose draws of "
                        "all atoms, and what they lack is not known, since "
                        "%s; leave that out, or use a device",
                        unknown);
    if (s->starts.n > s->states)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.starts: %d files for %ld state%s; a state "
                        "starts from one: raise structure.states",
                        s->starts.n, s->states, s->states == 1 ? "" : "s");
    const tsr_start_config *start = s->starts.item;
    for (int k = 0; k < s->starts.n; k++)
        if (start[k].file == NULL)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.starts.%d: the key 'file' is missing",
                            k);
    if (strchr(c->name, '/') != NULL || c->name[0] == '\0' ||
        strcmp(c->name, ".") == 0 || strcmp(c->name, "..") == 0)
        return tsr_fail(err, TSR_E_CONFIG, "name: '%s' cannot name a folder",
                        c->name);
    const struct {
        const char *key;
        const tsr_number_or_word *value;
    } whole[] = {{"device.threads", &c->device.threads},
                 {"sampler.chains", &c->sampler.chains},
                 {"sampler.draws", &c->sampler.draws},
                 {"sampler.temperatures", &c->sampler.temperatures}};
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
        if (whole[k].value->word < 0 &&
            whole[k].value->number != floor(whole[k].value->number))
            return tsr_fail(err, TSR_E_CONFIG, "%s: %g is not a whole number",
                            whole[k].key, whole[k].value->number);
    return c->output.directory[0] != '\0'
               ? TSR_OK
               : tsr_fail(err, TSR_E_CONFIG,
                          "output.directory: empty; name a folder");
}

/* The hydration is inferred where a curve can tell of it. A table that the
 * user names may have form factors alone. */
static void settle_hydration(tsr_config *c)
{
    const tsr_term_options *data = c->data.item;
    int has_curve = 0;
    for (int d = 0; d < c->data.n; d++)
        has_curve |=
            (tsr_term_registry[data[d].kind]->needs & TSR_NEEDS_PROFILE) != 0;
    if (c->contrast.c2.word == TSR_CONTRAST_AUTO)
        c->contrast.c2 = has_curve && c->structure.form_factors == NULL
                             ? (tsr_number_or_word){TSR_CONTRAST_INFER, 0.0}
                             : (tsr_number_or_word){-1, 0.0};
}

/* Where all of a molecule bends to fit a map, most of what has to find its
 * place are side chains, and a step of one costs little beside a pivot: they
 * get most of the proposals, but where the configuration has its own moves. */
static void settle_moves(tsr_config *c)
{
    static const struct {
        const char *name;
        double weight;
    } fit[] = {{"side_chain", 5.0}, {"concerted", 2.0}, {"regrow", 0.1}};
    const tsr_term_options *data = c->data.item;
    const tsr_strings *flexible = &c->structure.flexible;
    int has_map = 0;
    for (int d = 0; d < c->data.n; d++)
        has_map |= tsr_term_registry[data[d].kind]->map != NULL;
    if (!has_map || flexible->n != 1 || strcmp(flexible->item[0], "all") != 0)
        return;
    for (int m = 0; m < TSR_N_MOVE; m++)
        for (size_t k = 0; k < sizeof fit / sizeof *fit; k++) {
            char key[64];
            const char *name = tsr_move_registry[m]->name;
            snprintf(key, sizeof key, "moves.%s.weight", name);
            if (strcmp(name, fit[k].name) == 0 &&
                tsr_yaml_marks_find(&c->marks, key) == NULL)
                memcpy(c->moves.option[m], &fit[k].weight,
                       sizeof fit[k].weight);
        }
}

void tsr_config_settle(tsr_config *config)
{
    settle_hydration(config);
    settle_moves(config);
}
