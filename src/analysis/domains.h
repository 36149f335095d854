/* Parts of the molecule that keep their shape in all draws, and how they lie to
 * each other. They are found in the draws themselves: residues whose distances
 * to four neighbours in sequence stay within 0.1 Angstrom. */
#ifndef TSR_ANALYSIS_DOMAINS_H
#define TSR_ANALYSIS_DOMAINS_H

#include "analysis/frames.h"

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
tsr_status tsr_domains_of(int n, int n_residue, const float *ca,
                          const double (*start)[3], tsr_domains **out,
                          tsr_err *err);
void tsr_domains_free(tsr_domains *domains);

/* "A:1-50, A:65-120": the residues of a domain as the file numbers them; text
 * [size] out. */
void tsr_domain_name(const tsr_model_atoms *atoms, const tsr_domain *domain,
                     size_t size, char *text);

#endif
