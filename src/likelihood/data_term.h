/* One data set's factor of the likelihood: its noise model, its parameters and
 * how scale and background are treated. */
#ifndef TSR_LIKELIHOOD_DATA_TERM_H
#define TSR_LIKELIHOOD_DATA_TERM_H

#include "likelihood/noise.h"
#include "likelihood/q_grid.h"

/* auto: integrated out where the noise model has an integral. */
enum { TSR_NUISANCE_AUTO, TSR_NUISANCE_INTEGRATE, TSR_NUISANCE_SAMPLE };

/* One data set as the config gives it. */
typedef struct {
    const tsr_saxs *saxs;
    tsr_noise_options noise;
    tsr_number_or_word background;      /* infer, none, a number */
    tsr_number_or_word intensity_scale; /* infer, a number */
    int nuisance;                       /* of scale and background */
} tsr_data_set;

typedef struct {
    const tsr_noise_type *type;
    void *state;
    const tsr_saxs *saxs; /* borrowed */
    double *matrix;       /* [saxs->n][n_q] */
    tsr_linear linear;
    int is_sampled; /* 1: c and b are the chain's, 0: integrated out */
    tsr_noise_prior prior[TSR_NOISE_PARAMETERS];
} tsr_data_term;

/* number: of the data set, for messages. Clear the term also after an error.
 * Errors: TSR_E_CONFIG (beginning with the key), TSR_E_DATA (data that the
 * noise model cannot have, or fewer points than parameters), TSR_E_NOMEM. */
tsr_status tsr_data_term_make(tsr_data_term *term, const tsr_data_set *set,
                              int number, const tsr_q_grid *grid, tsr_err *err);

/* The same for a profile at n_q values of q of any kind: matrix [saxs->n][n_q]
 * takes it to the data's q; the term takes it, also after an error. */
tsr_status tsr_data_term_make_from(tsr_data_term *term, const tsr_data_set *set,
                                   int number, int n_q, double *matrix,
                                   tsr_err *err);
void tsr_data_term_clear(tsr_data_term *term);

/* How many parameters are inferred, c and b among them. */
int tsr_data_term_n_free(const tsr_data_term *term);

/* The power of the likelihood at which c and b, sampled under their flat
 * priors, stop having a proper distribution; 0 where any power above 0 will
 * do. */
double tsr_data_term_least_beta(const tsr_data_term *term);

/* Where theta starts: [TSR_NOISE_PARAMETERS] out. */
void tsr_data_term_start(const tsr_data_term *term, double *theta);

/* log likelihood: at the fit's c and b where they are sampled, else the
 * marginal one. theta [TSR_NOISE_PARAMETERS]. */
double tsr_data_term_log(const tsr_data_term *term, const tsr_fit *fit,
                         const double *theta);

/* Values of c and b for a stored draw: the chain's own, or from their exact
 * conditional. */
void tsr_data_term_draw(const tsr_data_term *term, const tsr_fit *fit,
                        const double *theta, gsl_rng *rng, double *scale,
                        double *background);

#endif
