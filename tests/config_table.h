/* A field table in the shape of a run's configuration (nested groups, a list,
 * an alias, every type), for the tests of field tables and YAML; and a small
 * one of structs that have kinds. */
#ifndef TESTS_CONFIG_TABLE_H
#define TESTS_CONFIG_TABLE_H

#include "core/field.h"

#include <math.h>

typedef struct {
    double weight;
    double step_rad;
} config_move;

typedef struct {
    char *file;
    int q_unit;
    double q_range[2];
    struct {
        int model;
        tsr_number_or_word scale;
        double alpha_inv_ang;
    } noise;
    tsr_number_or_word background;
} config_data;

typedef struct {
    char *name;
    long seed;
    struct {
        char *file;
        char *sequence;
        int bodies;
        tsr_strings flexible;
        long states;
    } structure;
    tsr_list data; /* config_data */
    struct {
        int clash;
        tsr_strings restraints;
        int use;
    } prior;
    struct {
        config_move pivot;
        config_move crankshaft;
    } moves;
    struct {
        long chains;
        long draws;
        tsr_number_or_word temperatures;
        double target;
        double window[2];
        long n_bin;
    } sampler;
    struct {
        char *directory;
        long checkpoint_s;
    } output;
} config;

static const char *const config_bodies[] = {"one", "two", NULL};
static const char *const config_q_unit[] = {"auto", "1/A", "1/nm", NULL};
static const char *const config_noise[] = {"measured", "relative", "student",
                                           NULL};
static const char *const config_infer[] = {"infer", "none", NULL};
static const char *const config_auto[] = {"auto", NULL};
static const char *const config_clash[] = {"soft", "off", NULL};

static const tsr_field config_noise_fields[] = {
    {.name = "model",
     .type = TSR_FIELD_CHOICE,
     .words = config_noise,
     .offset =
         offsetof(config_data, noise.model) - offsetof(config_data, noise),
     .initial = "measured",
     .doc = "how large the errors are"},
    {.name = "scale",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .words = config_infer,
     .offset =
         offsetof(config_data, noise.scale) - offsetof(config_data, noise),
     .initial = "1",
     .min = 1e-3,
     .max = 1e3,
     .doc = "factor on the errors of the file"},
    {.name = "alpha",
     .type = TSR_FIELD_DOUBLE,
     .unit = "1/Å",
     .offset = offsetof(config_data, noise.alpha_inv_ang) -
               offsetof(config_data, noise),
     .initial = "0.15",
     .min = 0.0,
     .max = HUGE_VAL,
     .doc = "offset of q in the relative model"},
    {.name = NULL}};

static const tsr_field config_data_fields[] = {
    {.name = "file",
     .type = TSR_FIELD_STRING,
     .is_path = 1,
     .offset = offsetof(config_data, file),
     .doc = "SAXS curve: q, I, sigma"},
    {.name = "q_unit",
     .type = TSR_FIELD_CHOICE,
     .words = config_q_unit,
     .offset = offsetof(config_data, q_unit),
     .initial = "auto",
     .doc = "unit of q in the file"},
    {.name = "q_range",
     .type = TSR_FIELD_PAIR,
     .unit = "1/Å",
     .max = 10.0,
     .offset = offsetof(config_data, q_range),
     .doc = "points outside it are left out; the default keeps all of them, "
            "however far the curve goes"},
    {.name = "noise",
     .type = TSR_FIELD_GROUP,
     .fields = config_noise_fields,
     .offset = offsetof(config_data, noise),
     .doc = "noise model"},
    {.name = "background",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .words = config_infer,
     .offset = offsetof(config_data, background),
     .initial = "infer",
     .doc = "constant added to the model"},
    {.name = NULL}};

static const tsr_field config_structure_fields[] = {
    {.name = "file",
     .type = TSR_FIELD_STRING,
     .is_path = 1,
     .offset = offsetof(config, structure.file) - offsetof(config, structure),
     .doc = "PDB or mmCIF"},
    {.name = "sequence",
     .type = TSR_FIELD_STRING,
     .offset =
         offsetof(config, structure.sequence) - offsetof(config, structure),
     .doc = "one-letter codes, instead of a file"},
    {.name = "bodies",
     .type = TSR_FIELD_CHOICE,
     .words = config_bodies,
     .offset = offsetof(config, structure.bodies) - offsetof(config, structure),
     .initial = "two",
     .doc = "scatterers a residue"},
    {.name = "flexible",
     .type = TSR_FIELD_STRINGS,
     .offset =
         offsetof(config, structure.flexible) - offsetof(config, structure),
     .initial = "[]",
     .doc = "residue ranges"},
    {.name = "states",
     .type = TSR_FIELD_INT,
     .offset = offsetof(config, structure.states) - offsetof(config, structure),
     .initial = "1",
     .min = 1,
     .max = 64,
     .doc = "conformations in the set"},
    {.name = NULL}};

static const tsr_field config_prior_fields[] = {
    {.name = "clash",
     .type = TSR_FIELD_CHOICE,
     .words = config_clash,
     .offset = offsetof(config, prior.clash) - offsetof(config, prior),
     .initial = "soft"},
    {.name = "restraints",
     .type = TSR_FIELD_STRINGS,
     .offset = offsetof(config, prior.restraints) - offsetof(config, prior),
     .initial = "[]",
     .doc = "restraints"},
    {.name = "use",
     .type = TSR_FIELD_BOOL,
     .offset = offsetof(config, prior.use) - offsetof(config, prior),
     .initial = "true",
     .doc = "no: flat"},
    {.name = NULL}};

static const tsr_field config_move_fields[] = {
    TSR_FIELD(DOUBLE, "weight", config_move, weight, .initial = "1",
              .max = 1000.0, .doc = "how often, beside the others"),
    {.name = "step",
     .type = TSR_FIELD_DOUBLE,
     .unit = "rad",
     .offset = offsetof(config_move, step_rad),
     .initial = "0.1",
     .min = 1e-6,
     .max = 3.15,
     .doc = "standard deviation of the rotation"},
    {.name = NULL}};

static const tsr_field config_moves_fields[] = {
    {.name = "pivot",
     .type = TSR_FIELD_GROUP,
     .alias = "weight",
     .fields = config_move_fields,
     .offset = offsetof(config, moves.pivot) - offsetof(config, moves),
     .doc = "turn one end of the chain"},
    {.name = "crankshaft",
     .type = TSR_FIELD_GROUP,
     .alias = "weight",
     .fields = config_move_fields,
     .offset = offsetof(config, moves.crankshaft) - offsetof(config, moves),
     .doc = "turn an inner piece"},
    {.name = NULL}};

static const tsr_field config_sampler_fields[] = {
    {.name = "chains",
     .type = TSR_FIELD_INT,
     .offset = offsetof(config, sampler.chains) - offsetof(config, sampler),
     .initial = "8",
     .min = 1,
     .max = 4096,
     .doc = "chains side by side"},
    {.name = "draws",
     .type = TSR_FIELD_INT,
     .offset = offsetof(config, sampler.draws) - offsetof(config, sampler),
     .initial = "20000",
     .min = 1,
     .max = 1e12,
     .doc = "kept draws a chain"},
    {.name = "temperatures",
     .type = TSR_FIELD_NUMBER_OR_WORD,
     .words = config_auto,
     .offset =
         offsetof(config, sampler.temperatures) - offsetof(config, sampler),
     .initial = "auto",
     .min = 1,
     .max = 64,
     .doc = "rungs of the ladder"},
    {.name = "target",
     .type = TSR_FIELD_DOUBLE,
     .offset = offsetof(config, sampler.target) - offsetof(config, sampler),
     .initial = "0.234",
     .doc = "acceptance rate of the warm-up; Roberts, "
            "Gelman and Gilks 1997"},
    {.name = "window",
     .type = TSR_FIELD_PAIR,
     .offset = offsetof(config, sampler.window) - offsetof(config, sampler),
     .initial = "[-1, 1e-3]",
     .doc = "a pair without bounds"},
    {.name = "n_bin",
     .type = TSR_FIELD_INT,
     .offset = offsetof(config, sampler.n_bin) - offsetof(config, sampler),
     .min = 2,
     .max = 100,
     .doc = "bins; by the data where it is not set"},
    {.name = NULL}};

static const tsr_field config_output_fields[] = {
    {.name = "directory",
     .type = TSR_FIELD_STRING,
     .offset = offsetof(config, output.directory) - offsetof(config, output),
     .initial = "runs/new",
     .doc = "the run's folder"},
    {.name = "checkpoint_every",
     .type = TSR_FIELD_INT,
     .unit = "s",
     .offset = offsetof(config, output.checkpoint_s) - offsetof(config, output),
     .initial = "60",
     .min = 1,
     .max = HUGE_VAL,
     .doc = "time between checkpoints"},
    {.name = NULL}};

static const tsr_field config_fields[] = {
    TSR_FIELD(STRING, "name", config, name, .former = "title", .initial = "run",
              .doc = "a title for people"),
    TSR_FIELD(INT, "seed", config, seed, .initial = "1",
              .max = 9007199254740992.0, .doc = "of the random numbers"),
    TSR_FIELD(GROUP, "structure", config, structure,
              .fields = config_structure_fields, .doc = "the molecule"),
    TSR_FIELD(LIST, "data", config, data, .fields = config_data_fields,
              .element_size = sizeof(config_data), .alias = "file",
              .doc = "data sets; none: the prior is sampled"),
    TSR_FIELD(GROUP, "prior", config, prior, .fields = config_prior_fields),
    TSR_FIELD(GROUP, "moves", config, moves, .fields = config_moves_fields,
              .doc = "moves and their weights"),
    TSR_FIELD(GROUP, "sampler", config, sampler,
              .fields = config_sampler_fields),
    TSR_FIELD(GROUP, "output", config, output, .fields = config_output_fields),
    {.name = NULL}};

/* Shapes: a ball, a box, and a crate, which has the same keys as a box. */
typedef struct {
    int shape;
    char *name;
    double radius;
} kinds_ball;

typedef struct {
    int shape;
    double size[2];
    tsr_strings lines;
    char *name;
} kinds_box;

typedef union {
    kinds_ball ball;
    kinds_box box;
} kinds_shape;

typedef struct {
    kinds_shape one;
    tsr_list many; /* kinds_shape */
} kinds;

static const tsr_field kinds_ball_fields[] = {
    TSR_FIELD(STRING, "name", kinds_ball, name, .initial = "round",
              .doc = "what it is called"),
    TSR_FIELD(DOUBLE, "radius", kinds_ball, radius, .unit = "m", .initial = "1",
              .min = 0.0, .max = 10.0, .doc = "of the ball"),
    {.name = NULL}};

static const tsr_field kinds_box_fields[] = {
    TSR_FIELD(PAIR, "size", kinds_box, size, .initial = "[1, 2]",
              .doc = "least and largest"),
    TSR_FIELD(STRINGS, "lines", kinds_box, lines, .initial = "[]",
              .doc = "on it"),
    TSR_FIELD(STRING, "name", kinds_box, name, .initial = "square",
              .doc = "what it is called"),
    {.name = NULL}};

static inline tsr_field_kind kinds_of(int number)
{
    static const tsr_field_kind all[] = {
        {"ball", "a round one", kinds_ball_fields},
        {"box", "one with edges", kinds_box_fields},
        {"crate", "a box of wood", kinds_box_fields}};
    return number < 3 ? all[number] : (tsr_field_kind){.name = NULL};
}

static const tsr_field kinds_fields[] = {
    TSR_FIELD(GROUP, "one", kinds, one, .selector = "shape", .kind = kinds_of,
              .size = sizeof(kinds_shape), .alias = "name", .doc = "a shape"),
    TSR_FIELD(LIST, "many", kinds, many, .selector = "shape", .kind = kinds_of,
              .element_size = sizeof(kinds_shape), .alias = "name",
              .doc = "shapes"),
    {.name = NULL}};

#endif
