/* How many arrangements of the domains a run found, and which of them a curve
 * cannot tell apart.
 *
 * Conformations of a state are superposed on one domain, and two of them are as
 * far apart as the CA of the other domains are then, by root mean square.
 * Average linkage (Sokal & Michener 1958) joins what is nearer than a threshold
 * on average; the same draws give the same groups. Where linkers let domains
 * drift, the groups are parts of one cloud, and their number is a measure of
 * its size, not of how many structures there are.
 *
 * A curve of small-angle scattering has no handedness, and none of it tells a
 * domain from another of the same outline. So the representatives are compared
 * as clouds of beads, as they are and reflected, by the normalised spatial
 * discrepancy (Kozin & Svergun 2001, J. Appl. Cryst. 34, 33): 1 is as near as
 * the beads of one cloud are to each other. */
#ifndef TSR_ANALYSIS_ARRANGEMENTS_H
#define TSR_ANALYSIS_ARRANGEMENTS_H

#include "analysis/shape.h"

enum { TSR_MOST_ARRANGEMENTS = 8 /* of a state that are told of */ };

typedef struct {
    int state;      /* of an ensemble from 1; 0: the only one */
    double share;   /* of the state's draws */
    double half[2]; /* of those of two halves of the chains, first and rest */
    double spread;  /* Angstrom, of its members about the representative */
    int frame;      /* the representative, the member nearest to the others: */
    int chain;      /* its number in tsr_frames_list, */
    long draw;      /* chain and draw */
    double chi2;    /* mean of the members' draws; NaN: not known */
    int mirror_of;  /* an arrangement of the same state whose mirror image it
                       is like; -1: none */
    int alike;      /* one that has the same outline; -1: none */
    double discrepancy; /* of that pair, normalised; NaN: neither */
} tsr_arrangement;

typedef struct {
    tsr_pool pool;
    int n_frame;          /* conformations that were looked at */
    double threshold_ang; /* of the groups */
    int fixed;            /* domain that all are superposed on */
    tsr_domains *domains; /* owned */
    double *moves; /* [n_state][n_domain] Angstrom: root mean square distance of
                      a domain from its mean place, once superposed */
    int n_state;   /* 1 or more */
    int n_group[32];    /* [n_state] groups of each, the smallest too */
    int n_main[32];     /* [n_state] those that hold 90 % of its draws */
    int n_seen[32];     /* [n_state] conformations of each */
    double overlap[32]; /* [n_state] of two halves of the chains: the sum over
                           groups of the smaller share; NaN: one chain */
    int n;              /* the largest of each state, by state and share */
    tsr_arrangement *item; /* [n] */
} tsr_arrangements;

/* The threshold where none is asked for, Angstrom. */
extern const double tsr_arrangements_threshold;

/* Looks at some 600 conformations, evenly chosen. fixed: a domain, from 0, as
 * tsr_domains_make numbers them; -1: the largest. chi2 [n_chain][n_draw] of the
 * draws; NULL: not known. *out is NULL where no two domains move against each
 * other. Errors: TSR_E_USAGE (there is no such domain), those of
 * tsr_frames_read, TSR_E_NOMEM. */
tsr_status tsr_arrangements_make(tsr_frames *frames, int fixed,
                                 double threshold_ang, int n_chain, int n_draw,
                                 const double *chi2, tsr_arrangements **out,
                                 tsr_err *err);
void tsr_arrangements_free(tsr_arrangements *arrangements);

/* The parts of it that know nothing of runs. */

/* Groups of n things by average linkage: joins the two groups whose members are
 * nearest on average, while that is below the threshold. distance [n][n], used
 * up. group [n] out, from 0 by size, of equal ones the one with the first
 * member first. Returns how many; 0: out of memory. Cost: n^2 a join. */
int tsr_average_linkage(int n, double *distance, double threshold, int *group);

/* The normalised spatial discrepancy of two clouds of n and m beads, each
 * brought onto the other as well as it will go: along the axes of inertia
 * first, then by nearest beads. is_mirror 1: the second is reflected before.
 * NaN: out of memory, or too few beads. */
double tsr_discrepancy(int n, const double (*a)[3], int m, const double (*b)[3],
                       int is_mirror);

#endif
