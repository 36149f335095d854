/* The configuration of a run: one struct, one field table. */
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

enum { TSR_CONFIG_TWO, TSR_CONFIG_ONE, TSR_CONFIG_ATOMS };

typedef struct {
    char *file;
} tsr_start_config;

typedef struct {
    char *file;
    char *sequence;
    int bodies; /* TSR_CONFIG_TWO, ... */
    tsr_strings flexible, rigid, fixed, mobile, attach;
    int ligands; /* index: all, none */
    int frozen;
    long states;
    tsr_list starts;          /* of tsr_start_config */
    int weights;              /* index: infer, equal */
    tsr_number_or_word d_max; /* auto, or Angstrom */
    char *form_factors;       /* NULL: the shipped table */
} tsr_structure_config;

enum { TSR_MOVE_OPTIONS = 256 }; /* bytes at most */

typedef struct {
    double density; /* e/A^3 */
    int layer;      /* rides: there is no other */
} tsr_solvent_config;

enum { TSR_LEARN_ALL, TSR_LEARN_RATIO, TSR_LEARN_NONE };

typedef struct {
    int learn;                        /* index: all, ratio, none */
    tsr_number_or_word conformations; /* auto, or how many */
} tsr_model_error_config;

typedef struct {
    alignas(double) unsigned char option[TSR_N_MOVE][TSR_MOVE_OPTIONS];
} tsr_moves_config;

typedef struct {
    char *use;
    tsr_number_or_word threads; /* auto, or a number */
    int engine;                 /* tsr_engine_choice */
} tsr_device_config;

typedef struct {
    char *directory;
    int trajectory;          /* index: all, atoms, bodies, none */
    long trajectory_every;   /* draws */
    double checkpoint_every; /* s */
} tsr_output_config;

typedef struct {
    double q_range[2]; /* 1/Angstrom */
    long points;
    double i0, background;
    double error; /* sigma / I at q = 0.1 */
    long steps;   /* of the prior, away from the input */
    tsr_resolution_options resolution;
    tsr_number_or_word c1, c2; /* auto, or of the curve */
    int radiation;             /* index: xray, neutron */
    tsr_neutron_options neutron;
} tsr_simulate_config;

typedef struct {
    char *path; /* of the file that was read */
    tsr_yaml_marks marks;
    char *name;
    long seed;
    tsr_structure_config structure;
    tsr_solvent_config solvent;
    tsr_contrast_options contrast;
    tsr_model_error_config model_error;
    tsr_list data; /* of tsr_term_options */
    tsr_prior_options prior;
    tsr_moves_config moves;
    tsr_sampler_options sampler;
    tsr_device_config device;
    tsr_output_config output;
    tsr_simulate_config simulate;
} tsr_config;

/* The table. It is put together from the registries on the first call; call it
 * once before there are threads. */
const tsr_field *tsr_config_fields(void);

/* Reads a file with overrides (files/yaml.h), then checks what spans several
 * keys. name becomes the file's, output.directory runs/NAME where they are not
 * given. The caller clears the config, also after an error. */
tsr_status tsr_config_read(const char *path, int n_set, const char *const *set,
                           tsr_config *config, tsr_err *err);
void tsr_config_clear(tsr_config *config);

/* What of it cannot be is TSR_E_CONFIG, beginning with the key. */
tsr_status tsr_config_check(const tsr_config *config, tsr_err *err);

/* Why a run does not know the curves of its molecule's atoms; NULL: it does,
 * where its file has them. */
const char *tsr_config_no_atoms(const tsr_config *config);

/* Where a status found later says that the configuration is wrong, puts before
 * the message where the key was given with which it begins ("structure.d_max:
 * ..."), else the file's name. Returns the status. */
tsr_status tsr_config_blame(const tsr_config *config, tsr_status status,
                            tsr_err *err);

/* Where the configuration has the path of the file of an entry of `data:`, NULL
 * in it where none is given; NULL: entries of that kind have no file. */
char **tsr_config_data_file(const tsr_config *config, int number);

/* What an entry of `data:` is called: its file without folders, or the first
 * list of texts in it, such as the two residues that it is between; "" where it
 * has neither. text [size] out. */
void tsr_config_data_name(const tsr_config *config, int number, size_t size,
                          char *text);

/* The k-th of all files that the structure and the data name, from 0, NULL in
 * it where none is given; NULL past the last. */
char **tsr_config_path(const tsr_config *config, int k);

/* Leaves the data out: the prior alone is sampled. */
void tsr_config_drop_data(tsr_config *config);

/* Options of each move: option [TSR_N_MOVE] out, pointing into the config. */
void tsr_config_moves(const tsr_config *config, const void *option[TSR_N_MOVE]);

#endif
