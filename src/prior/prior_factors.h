/* What prior.c and prior_state.c share. */
#ifndef TSR_PRIOR_PRIOR_FACTORS_H
#define TSR_PRIOR_PRIOR_FACTORS_H

#include "core/vec3.h"
#include "molecule/fixed.h"
#include "molecule/nucleic.h"
#include "molecule/topology.h"
#include "prior/prior.h"
#include "prior/restraint.h"

/* Excluded volume between bodies, incrementally.
 *
 * Three structures keep a step's cost at the bodies that it moves: cells of the
 * contact distance for a few bodies, bounding spheres of runs of bodies for
 * parts that move rigidly, and a list of the pairs that are in contact, so that
 * the old energy of what moved needs no search. Energies are integers
 * (fixed.h): their sum does not depend on the order, nor on which structure
 * found a pair. */

typedef struct {
    const tsr_topology *topology;
    double contact[TSR_MAX_TYPE][TSR_MAX_TYPE]; /* Angstrom */
    double cutoff; /* the largest; 0: no excluded volume */
    double inverse_softness;
    double limit; /* nat: a pair that costs more is impossible */
} tsr_clash;

/* What a forbidden pair or conformation gives. */
#define TSR_CLASH_FORBIDDEN INT64_MIN

/* -E of bodies a and b at x and y; 0 for pairs that do not count. */
static inline int64_t tsr_clash_pair(const tsr_clash *clash, int a,
                                     const double x[3], int b,
                                     const double y[3])
{
    double r2 = tsr_vec3_distance2(x, y);
    if (r2 >= clash->cutoff * clash->cutoff)
        return 0;
    const tsr_body *p = &clash->topology->body[a];
    const tsr_body *q = &clash->topology->body[b];
    double d = clash->contact[p->like][q->like];
    if (r2 >= d * d)
        return 0;
    const tsr_residue *i = &clash->topology->residue[p->residue];
    const tsr_residue *j = &clash->topology->residue[q->residue];
    int apart = i->place - j->place;
    if ((i->chain_first == j->chain_first && apart < 3 && apart > -3) ||
        (i->unit >= 0 && i->unit == j->unit))
        return 0;
    double z = (d - sqrt(r2)) * clash->inverse_softness, nat = 0.5 * z * z;
    return nat > clash->limit ? TSR_CLASH_FORBIDDEN : tsr_fix(-nat);
}

/* Bodies first..end-1 moved; group as in tsr_span. */
typedef struct {
    int first, end, group;
} tsr_body_span;

typedef struct tsr_clash_state tsr_clash_state;

/* From the bodies of a conformation that has no forbidden pair; *total is the
 * sum over all pairs. NULL: out of memory. */
tsr_clash_state *tsr_clash_state_new(const tsr_clash *clash,
                                     const double (*body)[3], int64_t *total);
void tsr_clash_state_free(tsr_clash_state *state);

/* New sum less old, or TSR_CLASH_FORBIDDEN. Spans ascend. */
int64_t tsr_clash_propose(tsr_clash_state *state, const double (*current)[3],
                          const double (*proposed)[3], int n_span,
                          const tsr_body_span *span);

/* Makes the proposal just evaluated (and not forbidden) the state. */
void tsr_clash_accept(tsr_clash_state *state, const double (*proposed)[3],
                      int n_span, const tsr_body_span *span);

struct tsr_prior {
    const tsr_topology *topology;
    tsr_torsion_density *torsion[TSR_N_RAMA + TSR_N_NUCLEIC_CLASS];
    tsr_side_density *side[TSR_N_AMINO]; /* NULL where there is none */
    tsr_angle_gaussian angle[TSR_N_AMINO];
    tsr_clash clash;
    double d_limit_ang; /* 0: none */
    int n_restraint;
    tsr_restraint *restraint; /* [n_restraint] */
};

/* Terms of one flexible residue, from coordinates. */
int64_t tsr_prior_torsion_term(const tsr_prior *prior,
                               const tsr_conformation *conformation,
                               int residue);
int64_t tsr_prior_angle_term(const tsr_prior *prior,
                             const tsr_conformation *conformation, int residue);
int64_t tsr_prior_side_term(const tsr_prior *prior,
                            const tsr_conformation *conformation, int residue);
int64_t tsr_prior_restraint_term(const tsr_prior *prior,
                                 const tsr_conformation *conformation, int k);

#endif
