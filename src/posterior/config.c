/* The field table of the whole configuration, composed of the tables of moves,
 * terms, contrast and sampler, and the rules that span several keys. */
#include "posterior/config.h"

#include "core/text.h"
#include "files/yaml.h"
#include "likelihood/likelihood.h"
#include "molecule/structure.h"
#include "scattering/saxs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const body_words[] = {"two", "one", "atoms", NULL};
static const char *const trajectory_words[] = {"none", "atoms", NULL};
static const char *const weight_words[] = {"infer", "equal", NULL};
static const char *const ligand_words[] = {"all", "none", NULL};
static const char *const auto_words[] = {"auto", NULL};
static const char *const engine_words[] = {"auto", "tiles", "waves", NULL};

static const tsr_field start_fields[] = {
    TSR_FIELD(STRING, "file", tsr_start_config, file, .is_path = 1,
              .doc = "PDB or mmCIF file with the residues of structure.file"),
    {0}};

static const tsr_field pool_fields[] = {
    TSR_FIELD(STRING, "file", tsr_pool_config, file, .is_path = 1,
              .doc = "PDB or mmCIF file with the residues of structure.file, "
                     "all models of which are members"),
    TSR_FIELD(STRING, "trajectory", tsr_pool_config, trajectory, .is_path = 1,
              .doc = "DCD or H5MD trajectory of the atoms of file, whose "
                     "frames are the members instead"),
    {0}};

static const tsr_field structure_fields[] = {
    TSR_FIELD(STRING, "file", tsr_structure_config, file, .is_path = 1,
              .doc = "PDB or mmCIF file, may be gzipped; sampler.start says "
                     "where chains start"),
    TSR_FIELD(STRING, "symmetry", tsr_structure_config, symmetry,
              .doc = "point group of an assembly, all chains of which file "
                     "holds: C2, C3, ..., D2, ..., T, O, I, or auto; one "
                     "subunit moves, and its copies follow exactly"),
    TSR_FIELD(STRING, "sequence", tsr_structure_config, sequence,
              .doc = "one-letter amino-acid sequence instead of a file; the "
                     "chain starts extended"),
    TSR_FIELD(
        CHOICE, "bodies", tsr_structure_config, bodies, .initial = "two",
        .words = body_words,
        .doc = "scatterers per residue: two (backbone and side chain) or one; "
               "atoms: all atoms of the file scatter, under the prior of two"),
    TSR_FIELD(
        STRINGS, "flexible", tsr_structure_config, flexible, .initial = "[]",
        .doc = "residue ranges that move, also of strands of DNA and RNA, as "
               "\"A:262-269\"; the rest is rigid; or all; with neither "
               "flexible nor rigid, the ranges that tessera init finds"),
    TSR_FIELD(STRINGS, "rigid", tsr_structure_config, rigid, .initial = "[]",
              .doc = "residue ranges that are rigid; the rest is flexible"),
    TSR_FIELD(STRINGS, "fixed", tsr_structure_config, fixed, .initial = "[]",
              .doc = "rigid ranges that keep their place; default in a complex "
                     "whose chains keep their relative positions: the largest "
                     "rigid part of each chain"),
    TSR_FIELD(STRINGS, "mobile", tsr_structure_config, mobile, .initial = "[]",
              .doc = "chains of a complex that also move as rigid bodies; "
                     "subunit: that of structure.symmetry"),
    TSR_FIELD(INT, "contacts", tsr_structure_config, contacts, .initial = "0",
              .max = 1000,
              .doc = "docking: least number of contacts, pairs of bodies "
                     "within 6.5 Angstrom, of each mobile chain with the "
                     "others; chains start in random places; 0: mobile chains "
                     "may drift apart"),
    TSR_FIELD(
        CHOICE, "ligands", tsr_structure_config, ligands, .initial = "all",
        .words = ligand_words,
        .doc = "all: nucleotides (except strands that flexible names), sugars, "
               "ligands and ions of the file are rigid bodies attached to the "
               "residues in contact; none: they are left out"),
    TSR_FIELD(STRINGS, "attach", tsr_structure_config, attach, .initial = "[]",
              .doc = "residue that carries a ligand, instead of the residue in "
                     "contact, as \"I = A:45\" (chain I) or \"A:301 = B:17\""),
    TSR_FIELD(BOOL, "frozen", tsr_structure_config, frozen, .initial = "false",
              .doc = "the structure does not move: only weights, contrast, "
                     "scale, background and noise are inferred"),
    TSR_FIELD(INT, "states", tsr_structure_config, states, .initial = "1",
              .min = 1, .max = TSR_MAX_STATES,
              .doc = "number of structures whose weighted mean curve is "
                     "compared with the data (an ensemble)"),
    TSR_FIELD(LIST, "starts", tsr_structure_config, starts,
              .fields = start_fields, .element_size = sizeof(tsr_start_config),
              .alias = "file",
              .doc = "starting structure of each state (its structure, with "
                     "frozen), in order; default: file for all states"),
    TSR_FIELD(LIST, "pool", tsr_structure_config, pool, .fields = pool_fields,
              .element_size = sizeof(tsr_pool_config), .alias = "file",
              .doc = "conformations, as of a simulation, near whose torsions "
                     "the move regrow proposes, and where chains start with "
                     "sampler.start: pool; the posterior stays the same"),
    TSR_FIELD(
        CHOICE, "weights", tsr_structure_config, weights, .initial = "infer",
        .words = weight_words,
        .doc =
            "weights of the states: inferred (flat Dirichlet prior), or equal"),
    TSR_FIELD(NUMBER_OR_WORD, "d_max", tsr_structure_config, d_max,
              .unit = "Angstrom", .initial = "auto", .min = 10.0, .max = 5000.0,
              .words = auto_words,
              .doc = "the prior is zero where two bodies are further apart; "
                     "auto: the longest distance that the chain can reach, or "
                     "for long flexible chains that of a random coil"),
    TSR_FIELD(STRING, "form_factors", tsr_structure_config, form_factors,
              .is_path = 1,
              .doc = "table of form factors instead of the shipped one"),
    {0}};

static const char *const kd_words[] = {"none", "infer", NULL};

static const tsr_field species_fields[] = {
    TSR_FIELD(STRING, "name", tsr_species_config, name,
              .doc = "name in results, as dimer"),
    TSR_FIELD(STRINGS, "chains", tsr_species_config, chains, .initial = "[]",
              .doc = "chains of structure.file that form one particle; their "
                     "ligands belong to it"),
    TSR_FIELD(NUMBER_OR_WORD, "kd", tsr_species_config, kd, .initial = "none",
              .min = 1e-30, .max = 1e30, .words = kd_words,
              .doc = "dissociation constant into the first species, in the "
                     "unit of data's at, the concentration of the first "
                     "species if all were dissociated; none: the mass "
                     "fractions are free"),
    {0}};

static const tsr_field solvent_fields[] = {
    TSR_FIELD(DOUBLE, "density", tsr_solvent_config, density,
              .initial = "0.334", .unit = "e/Angstrom^3", .min = 0.1,
              .max = 1.0,
              .doc = "electron density of the solvent: that of water; higher "
                     "with salt, glycerol or sugar (docs/forward-model.md)"),
    {0}};

static const char *const learn_words[] = {"all", "ratio", "none", NULL};

static const tsr_field model_error_fields[] = {
    TSR_FIELD(CHOICE, "learn", tsr_model_error_config, learn, .initial = "all",
              .words = learn_words,
              .doc =
                  "all: correct curves of bodies by the ratio of the all-atom "
                  "curve to theirs and a regression on their curve, and "
                  "integrate out the remaining error; ratio: correct by the "
                  "ratio only; none: no correction"),
    TSR_FIELD(NUMBER_OR_WORD, "conformations", tsr_model_error_config,
              conformations, .initial = "auto", .min = 1.0, .max = 100000.0,
              .words = auto_words,
              .doc = "conformations drawn from the prior to learn the error "
                     "from; auto: twice as many until the log likelihood "
                     "changes by less than 0.1, at most 4096, fewer for more "
                     "bodies"),
    TSR_FIELD(STRING, "file", tsr_model_error_config, file, .is_path = 1,
              .doc = "file of the learnt error (HDF5): read if it exists, else "
                     "written, so that runs share it"),
    {0}};

static const tsr_field device_fields[] = {
    TSR_FIELD(STRING, "use", tsr_device_config, use, .initial = "auto",
              .doc =
                  "auto, gpu, cpu, reference, a number or part of a name "
                  "(tessera devices); several devices: \"0,1\", all-gpu, all"),
    TSR_FIELD(NUMBER_OR_WORD, "threads", tsr_device_config, threads,
              .initial = "auto", .min = 1.0, .max = 4096.0, .words = auto_words,
              .doc = "host threads; auto: number of processors"),
    TSR_FIELD(
        CHOICE, "engine", tsr_device_config, engine, .initial = "auto",
        .words = engine_words,
        .doc =
            "tiles: sums over tiles of pairs; waves: plane waves; auto: the "
            "faster engine for the molecule, its rigid parts and the device"),
    {0}};

static const tsr_field output_fields[] = {
    TSR_FIELD(
        STRING, "directory", tsr_output_config, directory, .is_path = 1,
        .doc = "folder of the run; default: runs/NAME in the current folder"),
    TSR_FIELD(CHOICE, "trajectory", tsr_output_config, trajectory,
              .initial = "atoms", .words = trajectory_words,
              .doc = "coordinates to store: those of the atoms of model.pdb, "
                     "or none"),
    TSR_FIELD(INT, "trajectory_every", tsr_output_config, trajectory_every,
              .unit = "draws", .initial = "10", .min = 1, .max = 1e9,
              .doc = "interval between two frames of a chain's trajectory"),
    TSR_FIELD(DOUBLE, "checkpoint_every", tsr_output_config, checkpoint_every,
              .unit = "s", .initial = "60", .min = 0.0, .max = 86400.0,
              .doc = "interval between two checkpoints"),
    {0}};

static const char *const radiation_words[] = {"xray", "neutron", NULL};

static const tsr_field simulate_fields[] = {
    TSR_FIELD(PAIR, "q_range", tsr_simulate_config, q_range,
              .unit = "1/Angstrom", .initial = "[0.01, 0.35]", .min = 0.001,
              .max = 1.0, .doc = "q range of the curve"),
    TSR_FIELD(INT, "points", tsr_simulate_config, points, .initial = "200",
              .min = 5, .max = 100000,
              .doc = "number of points, evenly spaced in q"),
    TSR_FIELD(DOUBLE, "i0", tsr_simulate_config, i0, .initial = "100",
              .min = 1e-9, .max = 1e12, .doc = "I(0) without the background"),
    TSR_FIELD(DOUBLE, "background", tsr_simulate_config, background,
              .initial = "0", .min = -1e12, .max = 1e12,
              .doc = "constant added to the curve"),
    TSR_FIELD(DOUBLE, "interparticle", tsr_simulate_config, interparticle,
              .initial = "1", .min = 0.05, .max = 20.0,
              .doc = "factor of I(0) by interference between particles"),
    TSR_FIELD(DOUBLE, "error", tsr_simulate_config, error, .initial = "0.02",
              .min = 1e-6, .max = 10.0,
              .doc = "relative error sigma / I at q = 0.1 1/Angstrom; at other "
                     "q after Sedlak et al. 2017"),
    TSR_FIELD(
        INT, "steps", tsr_simulate_config, steps, .unit = "steps",
        .initial = "0", .min = 0, .max = 1e9,
        .doc =
            "steps that sample the prior, starting from the input structure"),
    TSR_RESOLUTION_FIELD("resolution",
                         offsetof(tsr_simulate_config, resolution),
                         tsr_resolution_fields),
    TSR_FIELD(NUMBER_OR_WORD, "c1", tsr_simulate_config, c1, .initial = "auto",
              .min = 0.8, .max = 1.2, .words = auto_words,
              .doc = "excluded volume c1 of the curve; auto: contrast.c1, or "
                     "the mean of its prior"),
    TSR_FIELD(
        NUMBER_OR_WORD, "c2", tsr_simulate_config, c2, .initial = "auto",
        .min = -10.0, .max = 20.0, .words = auto_words,
        .doc = "hydration c2 of the curve; auto: contrast.c2, or the mean of "
               "its prior; exposed areas are those of the simulated structure"),
    TSR_FIELD(CHOICE, "radiation", tsr_simulate_config, radiation,
              .initial = "xray", .words = radiation_words,
              .doc = "radiation of the simulated curve"),
    TSR_NEUTRON_FIELDS(tsr_simulate_config),
    {0}};

/* Filled from the registry of moves by the first call of tsr_config_fields,
 * constant afterwards. */
static tsr_field move_fields[TSR_N_MOVE + 1];

static const tsr_field config_fields[] = {
    TSR_FIELD(STRING, "name", tsr_config, name,
              .doc = "name of the run; default: the name of the file"),
    TSR_FIELD(INT, "seed", tsr_config, seed, .initial = "1", .min = 0,
              .max = 9007199254740992.0, .doc = "seed of the random numbers"),
    TSR_FIELD(GROUP, "structure", tsr_config, structure,
              .fields = structure_fields,
              .doc = "the molecule and its flexible parts"),
    TSR_FIELD(LIST, "species", tsr_config, species, .fields = species_fields,
              .element_size = sizeof(tsr_species_config),
              .doc = "particles in solution, each some or all chains of "
                     "structure.file: a monomer and its dimer "
                     "(docs/domains.md)"),
    TSR_FIELD(GROUP, "solvent", tsr_config, solvent, .fields = solvent_fields,
              .doc = "the buffer, whose electrons the molecule displaces"),
    TSR_FIELD(GROUP, "contrast", tsr_config, contrast,
              .fields = tsr_contrast_fields,
              .doc = "excluded volume c1 and hydration c2, common to all data; "
                     "each a number, or infer"),
    TSR_FIELD(GROUP, "model_error", tsr_config, model_error,
              .fields = model_error_fields, .alias = "learn",
              .doc = "error of curves computed from bodies, learnt from all "
                     "atoms of the file before the run (docs/statistics.md)"),
    TSR_FIELD(LIST, "data", tsr_config, data, .selector = "kind",
              .kind = tsr_term_kind, .element_size = sizeof(tsr_term_options),
              .alias = "file",
              .doc = "measured data; without data the prior is sampled"),
    TSR_FIELD(
        GROUP, "prior", tsr_config, prior, .fields = tsr_prior_fields,
        .doc = "prior of the structure, P(X): excluded volume and restraints"),
    TSR_FIELD(
        GROUP, "moves", tsr_config, moves, .fields = move_fields,
        .doc =
            "weights and settings of the moves; a bare number is the weight"),
    TSR_FIELD(GROUP, "sampler", tsr_config, sampler,
              .fields = tsr_sampler_fields,
              .doc = "number, length and temperatures of the chains"),
    TSR_FIELD(GROUP, "device", tsr_config, device, .fields = device_fields,
              .doc = "device and threads of the computation"),
    TSR_FIELD(GROUP, "output", tsr_config, output, .fields = output_fields,
              .doc = "files of the run"),
    TSR_FIELD(GROUP, "simulate", tsr_config, simulate,
              .fields = simulate_fields, .doc = "settings of tessera simulate"),
    {0}};

const tsr_field *tsr_config_fields(void)
{
    for (int m = 0; move_fields[0].name == NULL && m < TSR_N_MOVE; m++) {
        int k = TSR_N_MOVE - 1 - m; /* entry 0 last, because it marks the
                                       table as filled */
        const tsr_move_type *type = tsr_move_registry[k];
        move_fields[k] = (tsr_field){.name = type->name,
                                     .type = TSR_FIELD_GROUP,
                                     .offset = (size_t)k * TSR_MOVE_OPTIONS,
                                     .fields = type->fields,
                                     .alias = "weight",
                                     .doc = type->doc};
    }
    return config_fields;
}

void tsr_config_clear(tsr_config *config)
{
    tsr_fields_clear(tsr_config_fields(), config);
    tsr_yaml_marks_clear(&config->marks);
    free(config->path);
    config->path = NULL;
}

tsr_status tsr_config_locate_error(const tsr_config *config, tsr_status status,
                                   tsr_err *err)
{
    char key[256];
    if (status != TSR_E_CONFIG || config->path == NULL || err == NULL)
        return status;
    size_t length = strcspn(err->message, ": '");
    const char *place = NULL;
    snprintf(key, sizeof key, "%.*s", (int)length, err->message);
    if (err->message[length] == ':' && length < sizeof key)
        place = tsr_yaml_marks_find(&config->marks, key);
    return tsr_wrap(err, status, "%s", place == NULL ? config->path : place);
}

void tsr_config_drop_data(tsr_config *config)
{
    const tsr_field *data = tsr_field_find(tsr_config_fields(), "data");
    tsr_fields_clear((const tsr_field[]){*data, {0}}, config);
}

void tsr_config_moves(const tsr_config *config, const void *option[TSR_N_MOVE])
{
    for (int m = 0; m < TSR_N_MOVE; m++)
        option[m] = config->moves.option[m];
}

/* Finds a file path in a struct, its groups and lists. *k counts down; the path
 * that makes it negative is returned. */
static char **find_path(const tsr_field *f, char *object, int *k)
{
    char **found = NULL;
    for (; f->name != NULL && found == NULL; f++) {
        char *member = object + f->offset;
        char **text = (char **)(void *)member;
        const tsr_list *list = (const void *)member;
        if (f->type == TSR_FIELD_STRING && tsr_field_names_file(f, *text) &&
            --*k < 0)
            return text;
        if (f->type == TSR_FIELD_GROUP)
            found = find_path(tsr_field_members(f, member), member, k);
        for (int i = 0;
             f->type == TSR_FIELD_LIST && found == NULL && i < list->n; i++) {
            char *item = (char *)list->item + (size_t)i * f->element_size;
            found = find_path(tsr_field_members(f, item), item, k);
        }
    }
    return found;
}

char **tsr_config_path(const tsr_config *config, int k)
{
    const tsr_field *structure =
        tsr_field_find(tsr_config_fields(), "structure");
    const tsr_field *data = tsr_field_find(tsr_config_fields(), "data");
    const tsr_field read[] = {*structure, *data, {0}};
    union {
        const tsr_config *whole;
        char *bytes;
    } of = {config};
    return find_path(read, of.bytes, &k);
}

char **tsr_config_data_file(const tsr_config *config, int number)
{
    const tsr_field *data = tsr_field_find(tsr_config_fields(), "data");
    char *entry =
        (char *)config->data.item + (size_t)number * data->element_size;
    int k = 0;
    return find_path(tsr_field_members(data, entry), entry, &k);
}

void tsr_config_data_name(const tsr_config *config, int number, size_t size,
                          char *text)
{
    const tsr_field *list = tsr_field_find(tsr_config_fields(), "data");
    const char *entry =
        (const char *)config->data.item + (size_t)number * list->element_size;
    char **file = tsr_config_data_file(config, number);
    size_t length = 0;
    text[0] = '\0';
    if (file != NULL && *file != NULL) {
        snprintf(text, size, "%s", tsr_text_file_name(*file));
        return;
    }
    const tsr_field *f = tsr_field_members(list, entry);
    while (f->name != NULL && f->type != TSR_FIELD_STRINGS)
        f++;
    const tsr_strings *part = (const void *)(entry + f->offset);
    for (int i = 0; f->name != NULL && i < part->n && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s",
                                   i > 0 ? ", " : "", part->item[i]);
}

/* ---- rules for several keys ----
 *
 * Defaults that depend on other keys, and combinations that are refused. */

const char *tsr_config_why_no_atoms(const tsr_config *config)
{
    const tsr_structure_config *c = &config->structure;
    if (config->model_error.learn == TSR_LEARN_NONE)
        return "model_error is none";
    if (c->file == NULL)
        return "a sequence has no atoms";
    if (c->form_factors != NULL)
        return "structure.form_factors is a table of your own";
    return NULL;
}

int tsr_config_corrects_bodies(const tsr_config *config)
{
    return config->structure.bodies != TSR_CONFIG_ATOMS &&
           tsr_config_why_no_atoms(config) == NULL;
}

tsr_status tsr_config_check(const tsr_config *config, tsr_err *err)
{
    const tsr_config *c = config;
    const tsr_structure_config *s = &c->structure;
    const tsr_start_config *start = s->starts.item;
    const tsr_pool_config *pool = s->pool.item;
    const char *unknown = tsr_config_why_no_atoms(c);
    const int is_atoms = s->bodies == TSR_CONFIG_ATOMS;
    const struct {
        int is_wrong;
        const char *why;
    } rule[] = {
        {s->file == NULL && s->sequence == NULL,
         "structure: give either file or sequence"},
        {s->file != NULL && s->sequence != NULL,
         "structure: give either file or sequence, not both"},
        {s->symmetry != NULL && tsr_symmetry_order(s->symmetry) == 0,
         "structure.symmetry: expected C2 to C60, D2 to D30, T, O, I or auto"},
        {s->symmetry != NULL && s->file == NULL,
         "structure.symmetry needs structure.file, with all chains"},
        {s->flexible.n > 0 && s->rigid.n > 0,
         "structure: give flexible or rigid, not both"},
        {s->frozen && s->flexible.n + s->rigid.n + s->fixed.n + s->mobile.n > 0,
         "structure.frozen: nothing moves; leave flexible, rigid, fixed and "
         "mobile out"},
        {s->frozen && s->pool.n > 0,
         "structure.pool: nothing moves (structure.frozen); leave it out"},
        {c->sampler.start == TSR_START_POOL && s->pool.n == 0,
         "sampler.start: pool needs structure.pool, files of conformations"},
        {c->sampler.start == TSR_START_POOL && s->starts.n > 0,
         "structure.starts says where chains start; leave it out, or "
         "sampler.start: pool"},
        {s->contacts > 0 && s->mobile.n == 0,
         "structure.contacts: no chain moves as a whole; name the chains to "
         "be docked in structure.mobile"},
        {s->contacts > 0 && s->symmetry != NULL,
         "structure.contacts: the subunit of a symmetric assembly cannot be "
         "docked; leave symmetry or contacts out"},
        {c->species.n == 1 || c->species.n > TSR_MAX_SPECIES,
         "species: expected 2 to 8 species, or none"},
        {c->species.n > 0 && s->file == NULL,
         "species needs structure.file, with the chains of the largest"},
        {c->output.directory[0] == '\0',
         "output.directory is empty; name a folder"}};
    const struct {
        const char *key;
        const tsr_number_or_word *value;
    } whole[] = {{"device.threads", &c->device.threads},
                 {"sampler.chains", &c->sampler.chains},
                 {"sampler.draws", &c->sampler.draws},
                 {"sampler.temperatures", &c->sampler.temperatures}};
    for (size_t k = 0; k < sizeof rule / sizeof *rule; k++)
        if (rule[k].is_wrong)
            return tsr_fail(err, TSR_E_CONFIG, "%s", rule[k].why);
    if (is_atoms && unknown != NULL)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.bodies: atoms: chains of bodies propose the "
                        "draws, and their error against atoms is not known, "
                        "since %s",
                        unknown);
    if (s->starts.n > s->states)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.starts: %d files for %ld state%s; each "
                        "state starts from one file: raise structure.states",
                        s->starts.n, s->states, s->states == 1 ? "" : "s");
    for (int k = 0; k < s->starts.n; k++)
        if (start[k].file == NULL)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.starts.%d: the key 'file' is missing",
                            k);
    for (int k = 0; k < s->pool.n; k++)
        if (pool[k].file == NULL)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.pool.%d: the key 'file' is missing; it "
                            "names the atoms of the trajectory",
                            k);
    const tsr_species_config *species = c->species.item;
    for (int k = 0; k < c->species.n; k++)
        if (species[k].name == NULL || species[k].chains.n == 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "species.%d: the key '%s' is missing", k,
                            species[k].name == NULL ? "name" : "chains");
    if (strchr(c->name, '/') != NULL || c->name[0] == '\0' ||
        strcmp(c->name, ".") == 0 || strcmp(c->name, "..") == 0)
        return tsr_fail(err, TSR_E_CONFIG, "name: '%s' cannot name a folder",
                        c->name);
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
        if (whole[k].value->word < 0 &&
            whole[k].value->number != floor(whole[k].value->number))
            return tsr_fail(err, TSR_E_CONFIG, "%s: %g is not a whole number",
                            whole[k].key, whole[k].value->number);
    return TSR_OK;
}

/* c2 is inferred if there is a curve, and c1 if there is one of X-rays whose
 * correction carries it. A user's table of form factors may lack the hydration
 * component, so c2 is then 0. */
static void resolve_contrast(tsr_config *c)
{
    const tsr_term_options *data = c->data.item;
    int has_curve = 0, has_xray = 0;
    for (int d = 0; d < c->data.n; d++) {
        const tsr_term_type *type = tsr_term_registry[data[d].kind];
        has_curve |= (type->needs & TSR_NEEDS_PROFILE) != 0;
        has_xray |= strcmp(type->name, "saxs") == 0;
    }
    if (c->contrast.c1.word == TSR_CONTRAST_AUTO)
        c->contrast.c1 = has_xray && tsr_config_corrects_bodies(c)
                             ? (tsr_number_or_word){TSR_CONTRAST_INFER, 0.0}
                             : (tsr_number_or_word){-1, 1.0};
    if (c->contrast.c2.word == TSR_CONTRAST_AUTO)
        c->contrast.c2 = has_curve && c->structure.form_factors == NULL
                             ? (tsr_number_or_word){TSR_CONTRAST_INFER, 0.0}
                             : (tsr_number_or_word){-1, 0.0};
}

/* Default move weights for a fully flexible molecule in a map: most of the
 * degrees of freedom are side chains, whose steps cost little compared with a
 * pivot, so they get most of the proposals. Weights given in the configuration
 * take precedence. */
static void resolve_move_weights(tsr_config *c)
{
    static const struct {
        const char *name;
        double weight;
    } fit[] = {{"side_chain", 5.0}, {"concerted", 2.0}, {"regrow", 0.1}};
    const tsr_term_options *data = c->data.item;
    const tsr_strings *flexible = &c->structure.flexible;
    int has_map = 0;
    for (int d = 0; d < c->data.n; d++)
        has_map |= tsr_term_registry[data[d].kind]->is_map;
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

/* ---- reading ---- */

static tsr_status read_config(const char *path, const char *text, int n_set,
                              const char *const *set, tsr_config *config,
                              tsr_err *err)
{
    const tsr_field *fields = tsr_config_fields();
    const char *base = tsr_text_file_name(path), *dot = strrchr(base, '.');
    const size_t n =
        dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base);
    memset(config, 0, sizeof *config);
    TSR_TRY(tsr_fields_init(fields, config, err));
    TSR_TRY(text != NULL ? tsr_yaml_parse(text, fields, config, err)
                         : tsr_yaml_read_marked(path, fields, config, n_set,
                                                set, &config->marks, err));
    resolve_contrast(config);
    resolve_move_weights(config);
    config->path = strdup(path);
    if (config->name == NULL)
        config->name = tsr_text_format("%.*s", (int)n, base);
    if (config->output.directory == NULL && config->name != NULL)
        config->output.directory = tsr_text_format("runs/%s", config->name);
    if (config->path == NULL || config->name == NULL ||
        config->output.directory == NULL)
        return tsr_no_memory(err);
    return tsr_config_locate_error(config, tsr_config_check(config, err), err);
}

tsr_status tsr_config_read(const char *path, int n_set, const char *const *set,
                           tsr_config *config, tsr_err *err)
{
    return read_config(path, NULL, n_set, set, config, err);
}

tsr_status tsr_config_parse(const char *text, tsr_config *config, tsr_err *err)
{
    return read_config("config.yaml", text, 0, NULL, config, err);
}
