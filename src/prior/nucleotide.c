/* Prior densities for the torsions of nucleotides in single strands.
 *
 * No library of unpaired nucleotides in solution is available. The densities
 * therefore combine what is known about conformers of folded and bound nucleic
 * acids:
 *
 *     w_h  the helix: A-RNA; B-DNA with its variant BII; A-DNA where the
 *          sugar is C3'-endo. Means and deviations: Schneider, Neidle &
 *          Berman 1997, Biopolymers 42, 113 (International Tables F, table
 *          23.3.2.1)
 *     w_r  the 46 conformers of RNA's backbone, with equal weights because
 *          none dominates outside the helix: Richardson et al. 2008, RNA 14,
 *          465. The standard deviation is a third of the half-width of a
 *          cluster in their program Suitename. DNA has the same rotamers
 *          (Svozil et al. 2008, Nucleic Acids Res. 36, 3690; Cerny et al.
 *          2020, ibid. 48, 6367)
 *     w_u  uniform, for all other conformations
 *
 * w_h = 0.37 is the share of class AA00 among steps of RNA in crystals (DNATCO
 * 3.1). w_u = 0.05 and the weight of syn bases are choices. Conformers whose
 * pairs of torsions are in the same staggered positions are merged into one
 * component of the mixture, with their common mean and deviation. */
#include "prior/prior.h"

#include <math.h>

enum { EPSILON, ZETA, ALPHA, BETA, GAMMA, N_ANGLE };
enum { C3_ENDO = 3, C2_ENDO = 2 };

static const double degree = TSR_PI / 180.0;
static const double w_helix = 0.37, w_rotamers = 0.58, w_uniform = 0.05;

/* Pucker of the preceding sugar; torsions in degrees, in the order above. */
static const struct {
    int pucker;
    double angle[N_ANGLE];
} rotamer[] = {
    {3, {212.3, 288.8, 295.0, 174.0, 53.6}},  /* 1a */
    {3, {218.1, 291.6, 292.2, 222.3, 58.1}},  /* 1m */
    {3, {245.0, 268.3, 303.9, 138.2, 62.0}},  /* 1L */
    {3, {190.7, 264.9, 296.0, 181.8, 51.5}},  /* &a */
    {3, {217.4, 222.0, 302.9, 160.7, 49.1}},  /* 7a */
    {3, {216.3, 173.3, 289.3, 164.1, 45.9}},  /* 3a */
    {3, {210.3, 121.5, 288.6, 157.3, 49.3}},  /* 9a */
    {3, {218.6, 290.7, 167.4, 159.6, 51.3}},  /* 1g */
    {3, {238.8, 256.9, 69.6, 170.2, 52.8}},   /* 7d */
    {3, {244.1, 203.8, 65.9, 181.1, 54.7}},   /* 3d */
    {3, {202.5, 63.1, 68.2, 143.5, 49.7}},    /* 5d */
    {3, {200.5, 280.5, 249.3, 82.7, 167.9}},  /* 1e */
    {3, {196.6, 291.3, 153.1, 194.4, 179.1}}, /* 1c */
    {3, {203.0, 294.4, 172.2, 138.5, 175.6}}, /* 1f */
    {3, {223.6, 80.2, 66.7, 109.2, 176.5}},   /* 5j */
    {3, {215.0, 288.7, 300.4, 177.5, 58.3}},  /* 1b */
    {3, {220.5, 288.7, 297.0, 221.7, 54.2}},  /* 1[ */
    {3, {226.4, 168.3, 292.8, 177.6, 48.6}},  /* 3b */
    {3, {206.0, 277.6, 195.7, 161.6, 50.8}},  /* 1z */
    {3, {206.4, 52.5, 163.7, 148.4, 50.2}},   /* 5z */
    {3, {236.6, 220.4, 68.3, 200.1, 53.7}},   /* 7p */
    {3, {199.2, 289.0, 180.3, 194.7, 178.2}}, /* 1t */
    {3, {204.9, 69.5, 63.4, 115.2, 176.3}},   /* 5q */
    {3, {216.5, 287.2, 297.3, 225.2, 293.7}}, /* 1o */
    {3, {232.9, 248.1, 63.3, 182.0, 295.7}},  /* 7r */
    {2, {260.3, 288.8, 288.4, 192.7, 53.1}},  /* 2a */
    {2, {259.8, 170.0, 298.5, 169.6, 50.9}},  /* 4a */
    {2, {223.2, 139.4, 284.6, 158.1, 47.9}},  /* 0a */
    {2, {191.9, 146.2, 289.3, 150.8, 42.4}},  /* #a */
    {2, {256.9, 165.2, 205.0, 165.2, 49.4}},  /* 4g */
    {2, {262.9, 79.6, 203.9, 189.7, 58.0}},   /* 6g */
    {2, {270.6, 240.9, 62.2, 176.3, 53.6}},   /* 8d */
    {2, {250.0, 187.7, 80.4, 198.1, 61.0}},   /* 4d */
    {2, {241.2, 88.9, 59.3, 160.7, 52.3}},    /* 6d */
    {2, {260.7, 290.4, 296.2, 177.3, 175.6}}, /* 2h */
    {2, {227.3, 203.8, 73.9, 216.7, 194.4}},  /* 4n */
    {2, {274.7, 100.3, 80.6, 248.1, 181.8}},  /* 0i */
    {2, {268.4, 85.0, 63.8, 191.5, 176.6}},   /* 6n */
    {2, {244.1, 66.1, 71.7, 122.2, 182.2}},   /* 6j */
    {2, {259.4, 291.3, 292.0, 210.0, 54.4}},  /* 2[ */
    {2, {244.6, 162.8, 294.2, 171.6, 45.9}},  /* 4b */
    {2, {248.4, 112.1, 274.9, 164.8, 56.8}},  /* 0b */
    {2, {260.2, 213.8, 71.9, 207.6, 56.7}},   /* 4p */
    {2, {257.8, 89.6, 67.9, 173.1, 55.5}},    /* 6p */
    {2, {247.6, 170.5, 277.9, 84.4, 176.4}},  /* 4s */
    {2, {256.5, 295.5, 287.4, 194.5, 293.7}}, /* 2o */
};
enum { N_ROTAMER = sizeof rotamer / sizeof *rotamer };

/* Standard deviation of one rotamer: a third of the half-width of its cluster,
 * degrees. */
static const double width[N_ANGLE] = {20.0, 18.3, 16.7, 23.3, 11.7};

typedef struct {
    double mean[N_ANGLE], sd[N_ANGLE]; /* degrees */
} conformer;

static const conformer a_form = {{203.0, 289.0, 293.0, 174.0, 56.0},
                                 {12.0, 12.0, 17.0, 14.0, 14.0}};
static const conformer b_form = {{184.0, 265.0, 298.0, 176.0, 48.0},
                                 {11.0, 10.0, 15.0, 9.0, 11.0}};
static const conformer b_two = {{246.0, 174.0, 298.0, 146.0, 48.0},
                                {15.0, 14.0, 15.0, 8.0, 11.0}};

static double concentration(double sd_degree)
{
    const double sd = sd_degree * degree;
    return 1.0 / (sd * sd);
}

/* Adds a component. phi, psi: which angles of `mean` and `sd` are phi and psi
 * of the link; -1: uniform. */
static void add_component(tsr_torsion_mixture *m, double weight, int phi,
                          int psi, const double *mean, const double *sd)
{
    tsr_von_mises *part = &m->part[m->n++];
    *part = (tsr_von_mises){.weight = weight};
    if (phi >= 0) {
        part->phi = tsr_von_mises_wrap(mean[phi] * degree);
        part->k_phi = concentration(sd[phi]);
    }
    if (psi >= 0) {
        part->psi = tsr_von_mises_wrap(mean[psi] * degree);
        part->k_psi = concentration(sd[psi]);
    }
}

static int third(double angle_degree)
{
    return (int)(angle_degree / 120.0);
}

/* Adds the rotamers as one component for each pair of thirds of the circle that
 * phi and psi lie in. With a single torsion (phi < 0) all rotamers of a pucker
 * are one component. pucker 0: rotamers of both puckers. */
static void add_rotamers(tsr_torsion_mixture *m, double weight, int phi,
                         int psi, int pucker)
{
    const int n_all = pucker == 0 ? N_ROTAMER : 0;
    int n_pucker = n_all;
    for (int i = 0; i < N_ROTAMER; i++)
        n_pucker += pucker != 0 && rotamer[i].pucker == pucker;
    for (int bin = 0; bin < 9; bin++) {
        double sum[N_ANGLE] = {0.0}, sum2[N_ANGLE] = {0.0}, mean[N_ANGLE],
               sd[N_ANGLE];
        int n = 0;
        for (int i = 0; i < N_ROTAMER; i++) {
            const double *a = rotamer[i].angle;
            if ((pucker != 0 && rotamer[i].pucker != pucker) ||
                (phi >= 0 ? third(a[phi]) : 0) != bin / 3 ||
                (phi >= 0 ? third(a[psi]) : 0) != bin % 3)
                continue;
            n++;
            for (int k = 0; k < N_ANGLE; k++)
                sum[k] += a[k], sum2[k] += a[k] * a[k];
        }
        for (int k = 0; k < N_ANGLE && n > 0; k++) {
            mean[k] = sum[k] / n;
            sd[k] = sqrt(fmax(sum2[k] / n - mean[k] * mean[k], 0.0) +
                         width[k] * width[k]);
        }
        if (n > 0)
            add_component(m, weight * n / n_pucker, phi, psi, mean, sd);
    }
}

static void add_helix(tsr_torsion_mixture *m, int phi, int psi, int is_b,
                      double weight)
{
    const conformer *form = is_b ? &b_form : &a_form;
    const double of_two = is_b ? 0.2 * weight : 0.0;
    add_component(m, weight - of_two, phi, psi, form->mean, form->sd);
    if (is_b)
        add_component(m, of_two, phi, psi, b_two.mean, b_two.sd);
}

/* chi: anti as in the A form, anti as in the B form, and syn. */
static void add_bases(tsr_torsion_mixture *m, int is_dna)
{
    static const double mean[] = {199.0, 249.0, 63.0},
                        sd[] = {15.0, 16.0, 15.0};
    const double own = 0.65, other = 0.2, syn = 0.1;
    add_component(m, is_dna ? other : own, 0, -1, mean, sd);
    add_component(m, is_dna ? own : other, 1, -1, mean, sd);
    add_component(m, syn, 2, -1, mean, sd);
}

void tsr_nucleotide_mixture(tsr_nucleic_class class,
                            tsr_torsion_mixture *mixture)
{
    const int is_dna = (int)class >= TSR_N_NUCLEIC;
    const int pair = (int)class % TSR_N_NUCLEIC;
    static const int phi[] = {ZETA, BETA, -1, -1};
    static const int psi[] = {ALPHA, GAMMA, EPSILON, EPSILON};
    static const int pucker[] = {0, 0, C3_ENDO, C2_ENDO};
    *mixture = (tsr_torsion_mixture){.n = 0};
    add_component(mixture, w_uniform, -1, -1, NULL, NULL);
    if (pair == TSR_NUCLEIC_CHI) {
        add_bases(mixture, is_dna);
        return;
    }
    /* A C2'-endo sugar does not occur in an RNA helix. */
    const int is_helix = is_dna || pair != TSR_NUCLEIC_C2_ENDO;
    if (is_helix)
        add_helix(mixture, phi[pair], psi[pair],
                  is_dna && pair != TSR_NUCLEIC_C3_ENDO, w_helix);
    add_rotamers(mixture, w_rotamers + (is_helix ? 0.0 : w_helix), phi[pair],
                 psi[pair], pucker[pair]);
}
