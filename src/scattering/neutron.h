/* The all-atom model for neutrons (docs/forward-model.md, Neutrons).
 *
 *     component 0  [b_X + n_H ((1 - f) b_H + f b_D) sinc(q d)]
 *                    exp(-B q^2 / 16 pi^2)
 *               1  rho_s V exp(-q^2 V^(2/3) / 4 pi)
 *               2  the hydration layer, 3 % denser than the solvent for c2 = 1
 *
 * All amplitudes are in fm. d is the length of the bond to a hydrogen, and f
 * the deuterated fraction of an atom's hydrogens. Hydrogens of N, O and S
 * exchange with the solvent, so their f is the fraction of D2O in the solvent
 * (less for the amides of the backbone). For the other hydrogens f depends on
 * the medium in which the chain was expressed. */
#ifndef TSR_SCATTERING_NEUTRON_H
#define TSR_SCATTERING_NEUTRON_H

#include "core/field.h"
#include "scattering/atom_model.h"

enum { TSR_NEUTRON_CHAINS = 16 };

/* Default fraction of exchanged amides of the backbone. */
#define TSR_NEUTRON_EXCHANGE 0.9

typedef struct {
    char chain[8];
    double fraction; /* deuterated fraction of non-exchanging hydrogens */
} tsr_deuterated;

typedef struct {
    double d2o;      /* volume fraction of D2O in the solvent, 0 to 1 */
    double exchange; /* exchanged fraction of the backbone's amides; all other
                        labile hydrogens exchange completely */
    int n_deuterated;
    tsr_deuterated deuterated[TSR_NEUTRON_CHAINS];
} tsr_neutron;

/* The options as a configuration gives them; a chain is "A" or "A=0.75". */
typedef struct {
    tsr_number_or_word d2o; /* none: not given, taken as H2O */
    double exchange;
    tsr_strings deuterated;
} tsr_neutron_options;

extern const char *const tsr_neutron_d2o_words[];

/* Fields for these options, in a struct with a member `neutron`. */
#define TSR_NEUTRON_FIELDS(OWNER)                                           \
    TSR_FIELD(NUMBER_OR_WORD, "d2o", OWNER, neutron.d2o, .initial = "none", \
              .min = 0.0, .max = 1.0, .words = tsr_neutron_d2o_words,       \
              .doc = "neutrons: fraction of D2O in the solvent; "           \
                     "none: H2O, with a warning"),                          \
        TSR_FIELD(DOUBLE, "exchange", OWNER, neutron.exchange,              \
                  .initial = "0.9", .min = 0.0, .max = 1.0,                 \
                  .doc = "neutrons: fraction of the backbone's amide "      \
                         "hydrogens that exchange with the solvent; all "   \
                         "other hydrogens of N, O and S exchange"),         \
        TSR_FIELD(STRINGS, "deuterated", OWNER, neutron.deuterated,         \
                  .doc = "neutrons: chains that are deuterated, [A], or "   \
                         "partly, [A=0.75], in the hydrogens that do not "  \
                         "exchange")

/* Translates the options. Errors: TSR_E_CONFIG, with a message that begins with
 * the key. */
tsr_status tsr_neutron_make(const tsr_neutron_options *options,
                            tsr_neutron *out, tsr_err *err);

/* Adds a deuterated chain given as "CHAIN=X" or as "CHAIN" (fraction 1).
 * Returns 0 if the text is wrong, the chain was already given, or there are too
 * many. */
int tsr_neutron_add_deuterated(tsr_neutron *neutron, const char *text);

/* 1 if both describe the same sample; the solvents may differ. */
int tsr_neutron_is_same_sample(const tsr_neutron *a, const tsr_neutron *b);

/* Scattering length density of a mixture of H2O and D2O at 20 C, fm/A^3 (ten
 * times the common unit 1e-6/A^2). */
double tsr_neutron_solvent(double d2o);

/* Converts a model with a hydration layer into one for neutrons: sets the
 * scattering lengths of its kinds, and its density and mass in this solvent.
 * match  out  fraction of D2O at which I(0) of the model without a layer
 *        vanishes (c1 = 1); outside 0 to 1 if no mixture matches. Also logged.
 * log    NULL: silent
 * Errors: TSR_E_DATA (an element without a tabulated length, a chain that is
 * not in the file), TSR_E_NOMEM. */
tsr_status tsr_neutron_apply(const tsr_neutron *neutron, const tsr_atoms *atoms,
                             tsr_atom_model *model, tsr_log *log, double *match,
                             tsr_err *err);

/* ---- one sample in several solvents ----
 *
 * At c1 = 1, the contrast of an atom with its displaced solvent is linear in
 * the D2O fraction x, and so is the layer:
 *
 *     I(q; x) = sum_ab C_a C_b I_ab(q),   C = (1, x - x0, c2 rho_s(x) / rho_D)
 *
 * Component 0 is the contrast in a solvent with fraction x0, component 1 the
 * increase of the contrast from H2O to D2O, and component 2 the layer in D2O
 * for c2 = 1. rho_s is the scattering length density of the solvent, and rho_D
 * that of D2O. */
typedef struct {
    int is_series; /* 0: x0 is the only solvent; no component 1 */
    double origin; /* x0 */
} tsr_neutron_basis;

/* Amplitudes of a model's kinds in this basis: out [3][n_type][n_q], fm. The
 * model comes from tsr_neutron_apply, in any solvent. Errors: TSR_E_NOMEM. */
tsr_status tsr_neutron_factors(const tsr_atom_model *model, double origin,
                               int n_q, double dq_inv_ang, double *out,
                               tsr_err *err);

/* Folds partial profiles [TSR_N_COMP_PAIR][n_q] in place to the components that
 * are needed: component 1 only for a series, component 2 only if c2 is
 * inferred. A fixed c2 is folded into the others. The first K (K + 1) / 2
 * profiles remain. Returns K. */
int tsr_neutron_fold(const tsr_neutron_basis *basis, const tsr_parameter *prior,
                     int n_q, double *partial);

/* Coefficients C of the K components in a solvent with fraction d2o: c [3] out.
 * value [TSR_N_CONTRAST]: c1, c2; c1 is ignored. Returns K. */
int tsr_neutron_coefficients(const tsr_neutron_basis *basis,
                             const tsr_parameter *prior, const double *value,
                             double d2o, double *c);

/* Bodies for neutrons. Their form factors come from their own atoms and the
 * beads of these atoms, averaged over directions. */
typedef struct tsr_neutron_bodies tsr_neutron_bodies;

/* body [model->n_atom]: the body of each atom. centre [n_body][3]: Angstrom.
 * The result owns the model; an error frees the model. Errors: TSR_E_NOMEM. */
tsr_status tsr_neutron_bodies_new(tsr_atom_model *model, int n_body,
                                  const int *body, const double (*centre)[3],
                                  tsr_neutron_basis basis,
                                  tsr_neutron_bodies **out, tsr_err *err);
void tsr_neutron_bodies_free(tsr_neutron_bodies *bodies);

const tsr_neutron_basis *
tsr_neutron_bodies_basis(const tsr_neutron_bodies *bodies);

/* The spec of an engine in K components, and S_ab, in memory of the pool. Each
 * body is a type of its own. Errors: TSR_E_NOMEM. */
tsr_status tsr_neutron_bodies_spec(const tsr_neutron_bodies *bodies,
                                   const tsr_parameter *prior, int n_q,
                                   double dq_inv_ang, tsr_pool *pool,
                                   tsr_coarse_spec *out, tsr_err *err);

#endif
