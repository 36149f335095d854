/* The configuration of a run: one struct, and the field table that describes
 * it. `tessera run --help all` prints the meaning of every key. */
#ifndef TSR_POSTERIOR_CONFIG_H
#define TSR_POSTERIOR_CONFIG_H

#include "core/field.h"
#include "core/status.h"
#include "files/yaml.h"
#include "likelihood/term.h"
#include "moves/move.h"
#include "prior/prior.h"
#include "sampler/sampler.h"
#include "scattering/contrast.h"
#include "scattering/resolution.h"

#include <stdalign.h>

/* Values of structure.bodies. */
enum { TSR_CONFIG_TWO, TSR_CONFIG_ONE, TSR_CONFIG_ATOMS };

/* An element of structure.starts. */
typedef struct {
    char *file;
} tsr_start_config;

/* Section structure: the molecule, its flexible ranges and its representation.
 */
typedef struct {
    char *file;
    char *symmetry; /* name of a point group, or auto; NULL: none */
    char *sequence;
    int bodies; /* TSR_CONFIG_TWO, ... */
    tsr_strings flexible, rigid, fixed, mobile, attach;
    long contacts;
    int ligands; /* index: all, none */
    int frozen;
    long states;
    tsr_list starts;          /* elements: tsr_start_config */
    int weights;              /* index: infer, equal */
    tsr_number_or_word d_max; /* auto, or Angstrom */
    char *form_factors;       /* NULL: the shipped table */
} tsr_structure_config;

enum { TSR_MOVE_OPTIONS = 256 }; /* largest size of a move's options, bytes */

/* An element of species. */
typedef struct {
    char *name;
    tsr_strings chains;
    tsr_number_or_word kd; /* none, infer, or the number */
    double kd_range[2];    /* 0, 1e30: by the concentrations */
} tsr_species_config;

/* Section solvent. */
typedef struct {
    double density; /* electrons/A^3 */
} tsr_solvent_config;

/* Values of model_error.learn. */
enum { TSR_LEARN_ALL, TSR_LEARN_RATIO, TSR_LEARN_NONE };

/* Section model_error. */
typedef struct {
    int learn;                        /* index: all, ratio, none */
    tsr_number_or_word conformations; /* auto, or their number */
    char *file; /* what was learnt: read where it exists, else written; NULL:
                   not stored */
} tsr_model_error_config;

/* Section moves: the options struct of each move, in the order of the registry.
 */
typedef struct {
    alignas(double) unsigned char option[TSR_N_MOVE][TSR_MOVE_OPTIONS];
} tsr_moves_config;

/* Section device. */
typedef struct {
    char *use;
    tsr_number_or_word threads; /* auto, or their number */
    int engine;                 /* tsr_engine_choice */
} tsr_device_config;

/* Section output. */
typedef struct {
    char *directory;
    int trajectory;          /* 0: none, 1: atoms */
    long trajectory_every;   /* draws */
    double checkpoint_every; /* s */
} tsr_output_config;

/* Section simulate: the curve that `tessera simulate` makes. */
typedef struct {
    double q_range[2]; /* 1/Angstrom */
    long points;
    double i0, background, interparticle;
    double error; /* sigma / I at q = 0.1 1/Angstrom */
    long steps;   /* of the prior, starting at the input structure */
    tsr_resolution_options resolution;
    tsr_number_or_word c1, c2; /* auto, or the value */
    int radiation;             /* index: xray, neutron */
    tsr_neutron_options neutron;
} tsr_simulate_config;

/* The whole configuration. */
typedef struct {
    char *path; /* the configuration file */
    tsr_yaml_marks marks;
    char *name;
    long seed;
    tsr_structure_config structure;
    tsr_list species; /* elements: tsr_species_config */
    tsr_solvent_config solvent;
    tsr_contrast_options contrast;
    tsr_model_error_config model_error;
    tsr_list data; /* elements: tsr_term_options */
    tsr_prior_options prior;
    tsr_moves_config moves;
    tsr_sampler_options sampler;
    tsr_device_config device;
    tsr_output_config output;
    tsr_simulate_config simulate;
} tsr_config;

/* The field table. The first call fills in the tables of the moves, and must be
 * made before any thread is started. */
const tsr_field *tsr_config_fields(void);

/* Reads a configuration file, applies the overrides set [n_set] (files/yaml.h),
 * and checks rules that span several keys. A missing `name` becomes the file's
 * name, a missing output.directory runs/NAME. The caller clears the config,
 * also after an error. Errors: those of tsr_yaml_read_marked and
 * tsr_config_check. */
tsr_status tsr_config_read(const char *path, int n_set, const char *const *set,
                           tsr_config *config, tsr_err *err);
void tsr_config_clear(tsr_config *config);

/* Reads a configuration with all values from a text in memory, as
 * tsr_config_text writes it. Errors: those of tsr_config_read. */
tsr_status tsr_config_parse(const char *text, tsr_config *config, tsr_err *err);

/* Checks rules that span several keys. Errors: TSR_E_CONFIG; the message begins
 * with the key. */
tsr_status tsr_config_check(const tsr_config *config, tsr_err *err);

/* The reason why a run cannot compute all-atom curves of its molecule; NULL if
 * the configuration allows them (the file may still lack atoms). */
const char *tsr_config_why_no_atoms(const tsr_config *config);

/* 1 if curves of bodies are corrected by those of all atoms (model_error). */
int tsr_config_corrects_bodies(const tsr_config *config);

/* For an error found after reading: if status is TSR_E_CONFIG, puts a place
 * before the message: file, line and column (or the override) of the key with
 * which the message begins ("structure.d_max: ..."), or else the path of the
 * file. Returns the status. */
tsr_status tsr_config_locate_error(const tsr_config *config, tsr_status status,
                                   tsr_err *err);

/* Address of the first file path in entry `number` of `data:`; the path is NULL
 * if none was given. Returns NULL if entries of that kind have no file. */
char **tsr_config_data_file(const tsr_config *config, int number);

/* A name for entry `number` of `data:`: its file without folders, else its
 * first list of strings (the two residues of a distance), else "". text [size]
 * out. */
void tsr_config_data_name(const tsr_config *config, int number, size_t size,
                          char *text);

/* Address of the k-th file path (from 0) in the sections structure and data;
 * the path itself is NULL if the key was not given. Returns NULL past the last
 * one. */
char **tsr_config_path(const tsr_config *config, int k);

/* Removes all data, so that the prior alone is sampled. */
void tsr_config_drop_data(tsr_config *config);

/* Options of each move: option [TSR_N_MOVE] out, pointers into the config. */
void tsr_config_moves(const tsr_config *config, const void *option[TSR_N_MOVE]);

#endif
