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
    struct config_noise {
        int model;
        tsr_number_or_word scale;
        double alpha_inv_ang;
    } noise;
    tsr_number_or_word background;
} config_data;

typedef struct {
    char *name;
    long seed;
    struct config_structure {
        char *file;
        char *sequence;
        int bodies;
        tsr_strings flexible;
        long states;
    } structure;
    tsr_list data; /* config_data */
    struct config_prior {
        int clash;
        tsr_strings restraints;
        int use;
    } prior;
    struct config_moves {
        config_move pivot;
        config_move crankshaft;
    } moves;
    struct config_sampler {
        long chains;
        long draws;
        tsr_number_or_word temperatures;
        double target;
        double window[2];
        long n_bin;
    } sampler;
    struct config_output {
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
    TSR_FIELD(CHOICE, "model", struct config_noise, model,
              .words = config_noise, .initial = "measured",
              .doc = "how large the errors are"),
    TSR_FIELD(NUMBER_OR_WORD, "scale", struct config_noise, scale,
              .words = config_infer, .initial = "1", .min = 1e-3, .max = 1e3,
              .doc = "factor on the errors of the file"),
    TSR_FIELD(DOUBLE, "alpha", struct config_noise, alpha_inv_ang,
              .unit = "1/Å", .initial = "0.15", .min = 0.0, .max = HUGE_VAL,
              .doc = "offset of q in the relative model"),
    {.name = NULL}};

static const tsr_field config_data_fields[] = {
    TSR_FIELD(STRING, "file", config_data, file, .is_path = 1,
              .doc = "SAXS curve: q, I, sigma"),
    TSR_FIELD(CHOICE, "q_unit", config_data, q_unit, .words = config_q_unit,
              .initial = "auto", .doc = "unit of q in the file"),
    TSR_FIELD(PAIR, "q_range", config_data, q_range, .unit = "1/Å", .max = 10.0,
              .doc = "points outside it are left out; the default keeps all of "
                     "them, however far the curve goes"),
    TSR_FIELD(GROUP, "noise", config_data, noise, .fields = config_noise_fields,
              .doc = "noise model"),
    TSR_FIELD(NUMBER_OR_WORD, "background", config_data, background,
              .words = config_infer, .initial = "infer",
              .doc = "constant added to the model"),
    {.name = NULL}};

static const tsr_field config_structure_fields[] = {
    TSR_FIELD(STRING, "file", struct config_structure, file, .is_path = 1,
              .doc = "PDB or mmCIF"),
    TSR_FIELD(STRING, "sequence", struct config_structure, sequence,
              .doc = "one-letter codes, instead of a file"),
    TSR_FIELD(CHOICE, "bodies", struct config_structure, bodies,
              .words = config_bodies, .initial = "two",
              .doc = "scatterers a residue"),
    TSR_FIELD(STRINGS, "flexible", struct config_structure, flexible,
              .initial = "[]", .doc = "residue ranges"),
    TSR_FIELD(INT, "states", struct config_structure, states, .initial = "1",
              .min = 1, .max = 64, .doc = "conformations in the set"),
    {.name = NULL}};

static const tsr_field config_prior_fields[] = {
    TSR_FIELD(CHOICE, "clash", struct config_prior, clash,
              .words = config_clash, .initial = "soft"),
    TSR_FIELD(STRINGS, "restraints", struct config_prior, restraints,
              .initial = "[]", .doc = "restraints"),
    TSR_FIELD(BOOL, "use", struct config_prior, use, .initial = "true",
              .doc = "no: flat"),
    {.name = NULL}};

static const tsr_field config_move_fields[] = {
    TSR_FIELD(DOUBLE, "weight", config_move, weight, .initial = "1",
              .max = 1000.0, .doc = "how often, beside the others"),
    TSR_FIELD(DOUBLE, "step", config_move, step_rad, .unit = "rad",
              .initial = "0.1", .min = 1e-6, .max = 3.15,
              .doc = "standard deviation of the rotation"),
    {.name = NULL}};

static const tsr_field config_moves_fields[] = {
    TSR_FIELD(GROUP, "pivot", struct config_moves, pivot, .alias = "weight",
              .fields = config_move_fields, .doc = "turn one end of the chain"),
    TSR_FIELD(GROUP, "crankshaft", struct config_moves, crankshaft,
              .alias = "weight", .fields = config_move_fields,
              .doc = "turn an inner piece"),
    {.name = NULL}};

static const tsr_field config_sampler_fields[] = {
    TSR_FIELD(INT, "chains", struct config_sampler, chains, .initial = "8",
              .min = 1, .max = 4096, .doc = "chains side by side"),
    TSR_FIELD(INT, "draws", struct config_sampler, draws, .initial = "20000",
              .min = 1, .max = 1e12, .doc = "kept draws a chain"),
    TSR_FIELD(NUMBER_OR_WORD, "temperatures", struct config_sampler,
              temperatures, .words = config_auto, .initial = "auto", .min = 1,
              .max = 64, .doc = "rungs of the ladder"),
    TSR_FIELD(
        DOUBLE, "target", struct config_sampler, target, .initial = "0.234",
        .doc =
            "acceptance rate of the warm-up; Roberts, Gelman and Gilks 1997"),
    TSR_FIELD(PAIR, "window", struct config_sampler, window,
              .initial = "[-1, 1e-3]", .doc = "a pair without bounds"),
    TSR_FIELD(INT, "n_bin", struct config_sampler, n_bin, .min = 2, .max = 100,
              .doc = "bins; by the data where it is not set"),
    {.name = NULL}};

static const tsr_field config_output_fields[] = {
    TSR_FIELD(STRING, "directory", struct config_output, directory,
              .initial = "runs/new", .doc = "the run's folder"),
    TSR_FIELD(INT, "checkpoint_every", struct config_output, checkpoint_s,
              .unit = "s", .initial = "60", .min = 1, .max = HUGE_VAL,
              .doc = "time between checkpoints"),
    {.name = NULL}};

static const tsr_field config_fields[] = {
    TSR_FIELD(STRING, "name", config, name, .initial = "run",
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
