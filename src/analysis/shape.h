/* What the drawn conformations have in common, and where they differ: distances
 * between residues, mobility, P(r). All of CA. */
#ifndef TSR_ANALYSIS_SHAPE_H
#define TSR_ANALYSIS_SHAPE_H

#include "analysis/frames.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/vec3.h"

enum {
    TSR_MOST_ROWS = 72,     /* residues of a map, or of the timeline */
    TSR_MOST_COLUMNS = 180, /* draws of the timeline */
    TSR_N_PAIR_BIN = 60
};

typedef struct {
    tsr_pool pool;
    int n_frame; /* of the run */
    int n;       /* that were looked at, of evenly spread draws */
    int *at;     /* [n] their numbers */
    int n_residue;
    double *rmsf; /* [n_residue] Angstrom, about the mean (superposed) */
    /* residues evenly chosen for maps */
    int n_row;
    int *row;            /* [n_row] residue numbers from 0 */
    double *distance;    /* [n_row][n_row] mean, Angstrom */
    double *distance_sd; /* [n_row][n_row] */
    /* draws evenly chosen for the timeline */
    int n_column;
    int *column;    /* [n_column] numbers of frames */
    double *rg;     /* [n_column] of CA */
    double *change; /* [n_column][n_row] distance from the start, superposed */
    double *contacts; /* [n_column][n_row] CA within 10 Angstrom, 3 or more
                         residues away */
    double *mobility; /* [n_column][n_row] root mean square change of distances
                         to 6 residues on either side, since the column before
                         (the first: since the start) */
    /* P(r): share of pairs per Angstrom; of an ensemble the mean over its
     * states */
    double pair_width; /* of a bin, Angstrom */
    double pair_mean[TSR_N_PAIR_BIN], pair_low[TSR_N_PAIR_BIN],
        pair_high[TSR_N_PAIR_BIN]; /* mean, 5 and 95 % of the draws */
} tsr_shape;

/* Looks at `most` frames at most, and at no more than 200 MB hold. weight [all
 * frames]: what a conformation counts in P(r), as of
 * tsr_frames_weights; NULL: all alike, as in maps and mobility. Errors: those
 * of tsr_frames_read. */
tsr_status tsr_shape_make(tsr_frames *frames, const double *weight, int most,
                          tsr_shape **out, tsr_err *err);
void tsr_shape_free(tsr_shape *shape);

/* ---- mean_shape ----
 *
 * The mean of conformations, each superposed on it. */

/* The rigid motion that brings one set of points nearest to another. */

/* The motion of the points at [n] of `moving` with the least root mean square
 * distance to those of `fixed`, which it returns, in their unit; at NULL: the
 * first n. No mirror images. Source: Horn 1987, J. Opt. Soc. Am. A 4, 629 (unit
 * quaternions). */
double tsr_superpose(int n, const int *at, const double (*fixed)[3],
                     const double (*moving)[3], tsr_motion *motion);

/* CA of the frames at [n], read once: *ca [n][n_residue][3] Angstrom, of the
 * pool. Errors: those of tsr_frames_read, TSR_E_NOMEM, also of what the pool
 * was asked for before. */
tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                tsr_pool *pool, float **ca, tsr_err *err);

/* Those of the model that the run began with. start [n_residue] out. */
void tsr_start_ca(const tsr_model_atoms *model, double (*start)[3]);

/* How many conformations of that many residues some 200 MB hold. */
int tsr_frames_that_fit(int n_residue);

/* One of them as double. ca [n_residue][3] out. */
void tsr_frame_ca(const float *all, int n_residue, int i, double (*ca)[3]);

/* Their mean, mean [n_residue][3], and the mean square deviation of each
 * residue from it, square [n_residue] Angstrom^2, each superposed on the mean,
 * or, where align is not NULL, by the residues align [n_align] on `start`.
 * Errors: TSR_E_NOMEM. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               int n_align, const int *align,
                               const double (*start)[3], double (*mean)[3],
                               double *square, tsr_err *err);

/* ---- domains ----
 *
 * Parts of the molecule that keep their shape in all draws, and how they lie to
 * each other. They are found in the draws themselves: residues whose distances
 * to four neighbours in sequence stay within 0.1 Angstrom. */

enum { TSR_MOST_DOMAINS = 6, TSR_LEAST_DOMAIN = 20 /* residues */ };

typedef struct {
    int n_residue;
    int *residue; /* [n_residue] from 0 over the model, ascending */
} tsr_domain;

typedef struct {
    int a, b; /* domains */
    double start_ang;
    double *distance; /* [n] between the centres of their CA, Angstrom */
    double *turn; /* [n] by which b has turned against a since the start, rad,
                     in [0, pi] */
} tsr_domain_pair;

typedef struct {
    tsr_pool pool;
    int n; /* conformations */
    int n_domain;
    tsr_domain domain[TSR_MOST_DOMAINS]; /* the largest, in order of sequence */
    int n_pair;
    tsr_domain_pair pair[TSR_MOST_DOMAINS * (TSR_MOST_DOMAINS - 1) / 2];
} tsr_domains;

/* Of the frames at [n]. Errors: those of tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_domains_make(tsr_frames *frames, int n, const int *at,
                            tsr_domains **out, tsr_err *err);

/* The same of CA [n][n_residue][3] and those of the start. */
tsr_status tsr_domains_from_ca(int n, int n_residue, const float *ca,
                               const double (*start)[3], tsr_domains **out,
                               tsr_err *err);
void tsr_domains_free(tsr_domains *domains);

/* "A:1-50, A:65-120": the residues of a domain as the file numbers them; text
 * [size] out. */
void tsr_domain_name(const tsr_model_atoms *atoms, const tsr_domain *domain,
                     size_t size, char *text);

#endif
