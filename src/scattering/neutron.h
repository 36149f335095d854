/* The same atoms as neutrons see them (docs/forward-model.md, Neutrons).
 *
 *     component 0  [b_X + n_H ((1 - f) b_H + f b_D) sinc(q d)]
 *                    exp(-B q^2 / 16 pi^2)
 *               1  rho_s V exp(-q^2 V^(2/3) / 4 pi)
 *               2  the layer, denser than the solvent by 3 % where c2 = 1
 *
 * in fm, with d the length of the bond to a hydrogen, f the part of an atom's
 * hydrogens that is deuterium: in the share of D2O in the solvent for those of
 * N, O and S, which exchange, less for the amides of the backbone, and as the
 * chain was grown for the others. */
#ifndef TSR_SCATTERING_NEUTRON_H
#define TSR_SCATTERING_NEUTRON_H

#include "core/field.h"
#include "scattering/atom_model.h"

enum { TSR_NEUTRON_CHAINS = 16 };

/* Of the backbone's amides, where nothing else is said. */
#define TSR_NEUTRON_EXCHANGE 0.9

typedef struct {
    char chain[8];
    double fraction; /* of its hydrogens that do not exchange */
} tsr_deuterated;

typedef struct {
    double d2o;      /* of the solvent's volume, 0 to 1 */
    double exchange; /* of the backbone's amides; all other labile hydrogens
                        exchange in full */
    int n_deuterated;
    tsr_deuterated deuterated[TSR_NEUTRON_CHAINS];
} tsr_neutron;

/* The same as a configuration has it; a chain as "A" or "A=0.75". */
typedef struct {
    tsr_number_or_word d2o; /* none: not given, H2O */
    double exchange;
    tsr_strings deuterated;
} tsr_neutron_options;

extern const char *const tsr_neutron_d2o_words[];

/* Its fields, in a struct that has it as `neutron`. */
#define TSR_NEUTRON_FIELDS(OWNER)                                           \
    TSR_FIELD(NUMBER_OR_WORD, "d2o", OWNER, neutron.d2o, .initial = "none", \
              .min = 0.0, .max = 1.0, .words = tsr_neutron_d2o_words,       \
              .doc = "neutrons: fraction of D2O in the solvent; "           \
                     "default: H2O, with a warning"),                       \
        TSR_FIELD(DOUBLE, "exchange", OWNER, neutron.exchange,              \
                  .initial = "0.9", .min = 0.0, .max = 1.0,                 \
                  .doc = "neutrons: fraction of the backbone's amide "      \
                         "hydrogens that exchange with the solvent; all "   \
                         "other hydrogens of N, O and S exchange"),         \
        TSR_FIELD(STRINGS, "deuterated", OWNER, neutron.deuterated,         \
                  .doc = "neutrons: chains that are deuterated, [A], or "   \
                         "partly, [A=0.75], in the hydrogens that do not "  \
                         "exchange")

/* Errors: TSR_E_CONFIG, beginning with the key. */
tsr_status tsr_neutron_make(const tsr_neutron_options *options,
                            tsr_neutron *out, tsr_err *err);

/* Adds a chain that "CHAIN=X" tells of, or "CHAIN", all of it. 0: it does not,
 * the chain is there already, or there are too many. */
int tsr_neutron_deuterate(tsr_neutron *neutron, const char *text);

/* Whether they are of one sample, whatever the solvent. */
int tsr_neutron_is_alike(const tsr_neutron *a, const tsr_neutron *b);

/* Scattering length density of H2O with that share of D2O at 20 C, fm/A^3 (ten
 * times the usual 1e-6/A^2). */
double tsr_neutron_solvent(double d2o);

/* Turns a model of the layer into that for neutrons: its kinds have lengths,
 * its density and its mass are those in this solvent. *match out: the share of
 * D2O where I(0) of the model without a layer vanishes (c1 = 1), below 0 or
 * above 1 where none does. It is told to `log` (NULL: silent). Errors:
 * TSR_E_DATA (an element without a length here, a chain that the file lacks),
 * TSR_E_NOMEM. */
tsr_status tsr_neutron_apply(const tsr_neutron *neutron, const tsr_atoms *atoms,
                             tsr_atom_model *model, tsr_log *log, double *match,
                             tsr_err *err);

/* ---- one sample in several solvents ----
 *
 * What an atom has more than the solvent that it displaces (c1 = 1), and the
 * layer, are linear in the share x of D2O:
 *
 *     I(q; x) = sum_ab C_a C_b I_ab(q),   C = (1, x - x0, c2 rho_s(x) / rho_D)
 *
 * with component 0 the contrast in a solvent of the share x0, 1 by how much it
 * grows to D2O, 2 the layer in D2O where c2 = 1. */
typedef struct {
    int is_series; /* 0: x is x0 alone, component 1 is not needed */
    double origin; /* x0 */
} tsr_neutron_basis;

/* The amplitudes of a model's kinds: out [3][n_type][n_q], fm. The model is one
 * of tsr_neutron_apply in any solvent. Errors: TSR_E_NOMEM. */
tsr_status tsr_neutron_factors(const tsr_atom_model *model, double origin,
                               int n_q, double dq_inv_ang, double *out,
                               tsr_err *err);

/* What of the three is needed: component 1 of a series, 2 where c2 is inferred;
 * else it is fixed and part of the others. partial: six profiles
 * [TSR_N_COMP_PAIR][n_q], of which the first K (K + 1) / 2 are what is left.
 * Returns K. */
int tsr_neutron_fold(const tsr_neutron_basis *basis, const tsr_parameter *prior,
                     int n_q, double *partial);

/* The same of amplitudes [3][n]: the first K rows are what is left. */
int tsr_neutron_fold_factors(const tsr_neutron_basis *basis,
                             const tsr_parameter *prior, size_t n,
                             double *factor);

/* C of the K components: c [3] out; value [TSR_N_CONTRAST], of which c1 is not
 * looked at. Returns K. */
int tsr_neutron_coefficients(const tsr_neutron_basis *basis,
                             const tsr_parameter *prior, const double *value,
                             double d2o, double *c);

/* Bodies whose form factors are those of their own atoms and the beads of the
 * layer that these have, each averaged over directions. */
typedef struct tsr_neutron_bodies tsr_neutron_bodies;

/* body [model->n_atom]: the body that each atom belongs to; centre [n_body][3].
 * Takes the model, also after an error. Errors: TSR_E_NOMEM. */
tsr_status tsr_neutron_bodies_new(tsr_atom_model *model, int n_body,
                                  const int *body, const double (*centre)[3],
                                  tsr_neutron_basis basis,
                                  tsr_neutron_bodies **out, tsr_err *err);
void tsr_neutron_bodies_free(tsr_neutron_bodies *bodies);

const tsr_neutron_basis *
tsr_neutron_bodies_basis(const tsr_neutron_bodies *bodies);

/* What an engine needs, in K components, and S_ab; each body is a type. Its
 * memory is of the pool. Errors: TSR_E_NOMEM. */
tsr_status tsr_neutron_bodies_spec(const tsr_neutron_bodies *bodies,
                                   const tsr_parameter *prior, int n_q,
                                   double dq_inv_ang, tsr_pool *pool,
                                   tsr_coarse_spec *out, tsr_err *err);

#endif
