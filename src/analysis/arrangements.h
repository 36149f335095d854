/* The arrangements of the domains that a run found, and pairs of arrangements
 * that a scattering curve cannot distinguish.
 *
 * Conformations of a state are superposed on one domain. The distance of two
 * conformations is then the root mean square distance of the other domains' CA.
 * Average linkage (Sokal & Michener 1958) joins groups whose mean distance is
 * below a threshold. The same draws always give the same groups. Where linkers
 * let domains drift, the groups are parts of one continuous cloud: their number
 * measures the size of the cloud, not the number of structures.
 *
 * A small-angle curve has no handedness, and cannot distinguish domains of
 * equal outline. So the representatives of two groups are compared as clouds of
 * beads, without and with a reflection, by the normalised spatial discrepancy
 * (Kozin & Svergun 2001, J. Appl. Cryst. 34, 33). A discrepancy of 1 means that
 * two clouds lie as close to each other as neighbouring beads within one
 * cloud. */
#ifndef TSR_ANALYSIS_ARRANGEMENTS_H
#define TSR_ANALYSIS_ARRANGEMENTS_H

#include "analysis/shape.h"

enum { TSR_MOST_ARRANGEMENTS = 8 /* reported arrangements of a state */ };

/* A group of similar conformations of one state. */
typedef struct {
    int state;       /* number in an ensemble, from 1; 0: the run has one
                        state */
    double share;    /* share among the state's draws */
    double error;    /* standard error of the share, from groups of chains; NaN:
                        fewer than two groups */
    double half[2];  /* share among the state's draws in the first and in the
                        second half of the chains */
    double spread;   /* Angstrom, rms distance of the members to the
                        representative */
    int frame;       /* representative, the member with the least mean distance
                        to the others: number in tsr_frames_list */
    int chain;       /* chain of the representative */
    long draw;       /* draw of the representative */
    double chi2, rg; /* means over the members' draws; NaN: not known */
    double from_start;  /* Angstrom, rms distance of the representative to the
                           first conformation, as between conformations */
    tsr_domain contact; /* residues at the interface of chains that move
                           against each other: in half of the members or more
                           within 10 Angstrom, from CA to CA */
    int mirror_of; /* number of an arrangement of the same state with a similar
                      mirror image; -1: none */
    int alike;     /* number of an arrangement of the same state with a similar
                      outline; -1: none */
    double discrepancy; /* normalised discrepancy of this pair of arrangements;
                           NaN: mirror_of and alike are -1 */
} tsr_arrangement;

/* The arrangements of all states of a run. */
typedef struct {
    tsr_pool pool;
    int n_frame;          /* conformations analysed */
    double threshold_ang; /* mean distance that separates groups */
    int fixed;            /* number of the domain on which conformations are
                             superposed */
    tsr_domains *domains; /* owned */
    double *displacement; /* [n_state][n_domain] Angstrom: root mean square
                             distance of a domain from its mean position, after
                             superposition */
    int n_state;          /* number of states, 1 or more */
    int n_group[32];      /* [n_state] number of groups of a state, small groups
                             included */
    int n_main[32];       /* [n_state] number of the largest groups that
                             together contain 90 % of the draws */
    int n_seen[32];       /* [n_state] conformations of a state */
    double overlap[32]; /* [n_state] agreement of two halves of the chains: sum
                           over groups of the smaller share; NaN: one chain */
    int n;              /* the largest groups of each state, at most
                           TSR_MOST_ARRANGEMENTS of them, sorted by state and
                           share */
    tsr_arrangement *item; /* [n] */
} tsr_arrangements;

/* Values of the draws, [n_chain][n_draw]; NULL: not known. n_group: groups of
 * consecutive chains that started independently; 0: each chain is a group. */
typedef struct {
    int n_chain, n_draw, n_group;
    double *chi2, *rg;
} tsr_draw_values;

/* Default of threshold_ang, Angstrom. */
extern const double tsr_arrangements_threshold;

/* Analyses up to 600 conformations, evenly spread over the draws.
 * fixed          in   number of a domain from 0, as in tsr_domains_make; -1:
 *                     the largest domain
 * threshold_ang  in   mean distance above which groups stay apart, Angstrom
 * values         in   of the draws; NULL: not known
 * *out           out  NULL where no two domains move against each other
 * Errors: TSR_E_USAGE (no such domain), those of tsr_frames_read,
 * TSR_E_NOMEM. */
tsr_status tsr_arrangements_make(tsr_frames *frames, int fixed,
                                 double threshold_ang,
                                 const tsr_draw_values *values,
                                 tsr_arrangements **out, tsr_err *err);
void tsr_arrangements_free(tsr_arrangements *arrangements);

/* Algorithms that know nothing of domains. */

/* Groups of n items by average linkage: repeatedly joins the two groups with
 * the least mean distance between members, while this distance is below the
 * threshold.
 * distance  [n][n]  in   overwritten
 * group     [n]     out  from 0, sorted by size; equal sizes by first member
 * Returns the number of groups; 0: out of memory. Cost: O(n^2) a join. */
int tsr_average_linkage(int n, double *distance, double threshold, int *group);

/* The normalised spatial discrepancy of two clouds of n and m beads. b is
 * superposed on a, first by the axes of inertia, then by pairs of nearest
 * beads. is_mirror 1: b is reflected first. NaN: out of memory, or fewer than 4
 * beads. */
double tsr_discrepancy(int n, const double (*a)[3], int m, const double (*b)[3],
                       int is_mirror);

#endif
