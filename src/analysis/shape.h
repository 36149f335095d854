/* Statistics of the drawn conformations: distances between residues, mobility,
 * P(r), domains. All are computed from CA atoms. */
#ifndef TSR_ANALYSIS_SHAPE_H
#define TSR_ANALYSIS_SHAPE_H

#include "analysis/frames.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/vec3.h"

enum {
    TSR_MOST_ROWS = 72, /* residues of the distance map */
    TSR_N_PAIR_BIN = 60
};

typedef struct tsr_domains tsr_domains;

/* Statistics of the conformations of a run. */
typedef struct {
    tsr_pool pool;
    int n_frame; /* frames of the run */
    int n;       /* number of frames analysed, from evenly spread draws */
    int *at;     /* [n] numbers of the frames */
    int n_residue;
    double *rmsf; /* [n_residue] root mean square fluctuation about the mean,
                     after superposition, Angstrom */
    /* Residues of the distance map, evenly chosen. */
    int n_row;
    int *row;            /* [n_row] residue numbers from 0 */
    double *distance;    /* [n_row][n_row] mean, Angstrom */
    double *distance_sd; /* [n_row][n_row] standard deviation, Angstrom */
    /* P(r): share of pairs per Angstrom; in an ensemble the weighted mean over
     * the states. */
    double pair_width; /* width of a bin, Angstrom */
    double pair_mean[TSR_N_PAIR_BIN], pair_low[TSR_N_PAIR_BIN],
        pair_high[TSR_N_PAIR_BIN]; /* mean, 5 % and 95 % quantile over the
                                      draws */
    tsr_domains *domains;          /* in the frames `at` */
} tsr_shape;

/* Analyses at most `most` frames, and no more than fit into 200 MB. weight [all
 * frames]: weight of a conformation in P(r), as from tsr_frames_weights; NULL:
 * equal weights. All other statistics give all frames equal weights. Errors:
 * those of tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_shape_make(tsr_frames *frames, const double *weight, int most,
                          tsr_shape **out, tsr_err *err);
void tsr_shape_free(tsr_shape *shape);

/* ---- mean shape ----
 *
 * The mean of conformations that are each superposed on the mean. */

/* Reads the CA of the frames at [n]: *ca [n][n_residue][3], Angstrom, in memory
 * of the pool. Errors: those of tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                tsr_pool *pool, float **ca, tsr_err *err);

/* CA of the run's starting model, start [n_residue] out. */
void tsr_start_ca(const tsr_model_atoms *model, double (*start)[3]);

/* How many conformations of n_residue CA fit into 200 MB; between 2 and
 * 1,000,000. */
int tsr_frames_that_fit(int n_residue);

/* Conformation i of all [n][n_residue][3] as double, ca [n_residue][3] out. */
void tsr_frame_ca(const float *all, int n_residue, int i, double (*ca)[3]);

/* Mean of n conformations, and deviations from it.
 * all     [n][n_residue][3]  in   Angstrom
 * align   [n_align]          in   superpose on `start` by these residues; NULL:
 *                                 superpose on the mean
 * mean    [n_residue][3]     out
 * square  [n_residue]        out  mean square deviation, Angstrom squared
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               int n_align, const int *align,
                               const double (*start)[3], double (*mean)[3],
                               double *square, tsr_err *err);

/* ---- domains ----
 *
 * Parts of the molecule that keep their shape in all draws, and their positions
 * relative to each other. Domains are found from the draws alone: a domain is a
 * set of residues whose distances to the same four successive residues vary by
 * at most 0.1 Angstrom. */

enum { TSR_MOST_DOMAINS = 6, TSR_LEAST_DOMAIN = 20 /* residues */ };

/* A rigid part of the molecule. */
typedef struct {
    int n_residue;
    int *residue; /* [n_residue] numbers of residues in the model, from 0,
                     ascending */
} tsr_domain;

/* Relative positions of two domains in all conformations. */
typedef struct {
    int a, b;         /* numbers of the domains */
    double start_ang; /* distance at the start */
    double *distance; /* [n] between the centres of the domains' CA, Angstrom */
    double *turn; /* [n] rotation of b relative to a since the start, rad, in
                     [0, pi] */
} tsr_domain_pair;

/* The domains of a molecule, and their relative positions. */
struct tsr_domains {
    tsr_pool pool;
    int n; /* number of conformations */
    int n_domain;
    tsr_domain domain[TSR_MOST_DOMAINS]; /* the largest domains, in the order of
                                            the sequence */
    int n_pair;
    tsr_domain_pair pair[TSR_MOST_DOMAINS * (TSR_MOST_DOMAINS - 1) / 2];
};

/* Finds the domains in the frames with the numbers at [n]. Errors: those of
 * tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_domains_make(tsr_frames *frames, int n, const int *at,
                            tsr_domains **out, tsr_err *err);

/* Finds the domains in CA positions ca [n][n_residue][3], Angstrom. start
 * [n_residue]: CA of the start. Errors: TSR_E_NOMEM. */
tsr_status tsr_domains_from_ca(int n, int n_residue, const float *ca,
                               const double (*start)[3], tsr_domains **out,
                               tsr_err *err);
void tsr_domains_free(tsr_domains *domains);

/* Residues of a domain in the file's numbering, "A:1-50, A:65-120"; text [size]
 * out. */
void tsr_domain_name(const tsr_model_atoms *atoms, const tsr_domain *domain,
                     size_t size, char *text);

#endif
