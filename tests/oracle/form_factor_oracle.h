/* The two sides of a form-factor table's check: Debye profiles over all atoms
 * and over bodies, in double precision, and how far apart they are
 * (docs/forward-model.md).
 *
 * Both leave out residues that lack atoms, and OXT, so that they describe the
 * same matter. Written from the formulas, apart from the training's code. */
#ifndef TSR_TESTS_FORM_FACTOR_ORACLE_H
#define TSR_TESTS_FORM_FACTOR_ORACLE_H

#include "molecule/structure.h"
#include "scattering/form_factor.h"
#include "tests/check.h"
#include "tests/objects.h"
#include "train/train.h"

#include <unistd.h>

#define FOLDER "../shared/data/structures"
enum { ORACLE_N_Q = 51, ORACLE_N_BAND = 4, ORACLE_MAX_KIND = 32 };
#define ORACLE_DQ 0.01
static const double oracle_band[ORACLE_N_BAND + 1] = {0.0, 0.1, 0.2, 0.35,
                                                      0.501};

typedef struct {
    int n, n_kind;
    int *kind;                                     /* [n] */
    double (*xyz)[3];                              /* [n] */
    double amplitude[ORACLE_MAX_KIND][ORACLE_N_Q]; /* of a kind */
} oracle_points;

/* I(q_k) = sum_i sum_j A_i A_j sinc(q_k r_ij), i = j too. sin(k x) by the
 * three-term recurrence; sums over pairs of kinds first, amplitudes after. */
static void oracle_debye(const oracle_points *p, double intensity[ORACLE_N_Q])
{
    static double sum[ORACLE_MAX_KIND][ORACLE_MAX_KIND][ORACLE_N_Q];
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < i; j++) {
            double d2 = 0.0;
            for (int c = 0; c < 3; c++) {
                double d = p->xyz[i][c] - p->xyz[j][c];
                d2 += d * d;
            }
            double r = sqrt(d2), x = ORACLE_DQ * r, two_cos = 2.0 * cos(x);
            double before = 0.0, here = sin(x), inverse = 1.0 / x;
            double *to = sum[p->kind[i]][p->kind[j]];
            for (int k = 1; k < ORACLE_N_Q; k++) {
                to[k] += here * inverse / k;
                double next = two_cos * here - before;
                before = here;
                here = next;
            }
            to[0] += 1.0;
        }
    memset(intensity, 0, ORACLE_N_Q * sizeof *intensity);
    for (int a = 0; a < p->n_kind; a++)
        for (int b = 0; b < p->n_kind; b++)
            for (int k = 0; k < ORACLE_N_Q; k++)
                intensity[k] += 2.0 * p->amplitude[a][k] * p->amplitude[b][k] *
                                sum[a][b][k];
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < ORACLE_N_Q; k++) {
            double a = p->amplitude[p->kind[i]][k];
            intensity[k] += a * a;
        }
}

/* Room for n points. */
static oracle_points oracle_points_new(int n, int n_kind)
{
    oracle_points p = {.n_kind = n_kind};
    p.kind = array((size_t)n, sizeof *p.kind);
    p.xyz = array((size_t)n, sizeof *p.xyz);
    return p;
}

static int oracle_has_atoms(const tsr_structure *s, int r, tsr_residue_atoms *a)
{
    return tsr_residue_atoms_find(s, &s->residue[r], a) == 0 &&
           a->n_missing == 0;
}

static void oracle_atoms(const tsr_structure *s, double intensity[ORACLE_N_Q])
{
    oracle_points p = oracle_points_new(s->n_atom, 0);
    int z[ORACLE_MAX_KIND], h[ORACLE_MAX_KIND];
    tsr_residue_atoms atoms;
    for (int r = 0; r < s->n_residue; r++) {
        if (!oracle_has_atoms(s, r, &atoms))
            continue;
        const tsr_amino_info *info = &tsr_amino_table[atoms.amino];
        for (int i = 0; i < info->n_atom; i++) {
            int k = 0;
            while (k < p.n_kind && (z[k] != info->atom[i].z ||
                                    h[k] != info->atom[i].n_hydrogen))
                k++;
            if (k == p.n_kind) {
                p.n_kind++;
                z[k] = info->atom[i].z;
                h[k] = info->atom[i].n_hydrogen;
                for (int q = 0; q < ORACLE_N_Q; q++)
                    p.amplitude[k][q] =
                        tsr_atom_contrast_amplitude(z[k], h[k], q * ORACLE_DQ);
            }
            memcpy(p.xyz[p.n], atoms.xyz[i], sizeof p.xyz[p.n]);
            p.kind[p.n++] = k;
        }
    }
    oracle_debye(&p, intensity);
}

/* plain: amplitudes alone; with_s: and S(q). */
static void oracle_bodies(const tsr_structure *s,
                          const tsr_form_factor_table *table,
                          double plain[ORACLE_N_Q], double with_s[ORACLE_N_Q])
{
    oracle_points p = oracle_points_new(2 * s->n_residue, table->n_type);
    double excess[TSR_MAX_TYPE * ORACLE_N_Q];
    tsr_residue_atoms atoms;
    tsr_form_factor_resample(table, ORACLE_N_Q, ORACLE_DQ, p.amplitude[0],
                             excess, NULL);
    for (int r = 0; r < s->n_residue; r++) {
        int type[2];
        if (!oracle_has_atoms(s, r, &atoms))
            continue;
        int n = tsr_body_types(table->model, atoms.amino, type);
        for (int b = 0; b < n; b++) {
            tsr_body_centre(table->model, &atoms, b, p.xyz[p.n]);
            p.kind[p.n++] = type[b];
        }
    }
    oracle_debye(&p, plain);
    memcpy(with_s, plain, ORACLE_N_Q * sizeof *with_s);
    for (int i = 0; i < p.n; i++)
        for (int k = 0; k < ORACLE_N_Q; k++)
            with_s[k] += excess[p.kind[i] * ORACLE_N_Q + k];
}

/* Rms of I / I_atoms - 1 in each band of q, with the scale of I that makes it
 * least below q = 0.1. */
static void oracle_errors(const double *atoms, const double *model,
                          double error[ORACLE_N_BAND])
{
    double one = 0.0, two = 0.0;
    for (int k = 0; k * ORACLE_DQ < 0.0999; k++) {
        double ratio = model[k] / atoms[k];
        one += ratio;
        two += ratio * ratio;
    }
    for (int b = 0; b < ORACLE_N_BAND; b++) {
        double sum = 0.0;
        int n = 0;
        for (int k = 0; k < ORACLE_N_Q; k++) {
            double q = k * ORACLE_DQ + 1e-9;
            if (q < oracle_band[b] || q >= oracle_band[b + 1])
                continue;
            double e = one / two * model[k] / atoms[k] - 1.0;
            sum += e * e;
            n++;
        }
        error[b] = sqrt(sum / n);
    }
}

/* Errors of the two curves of a structure's bodies: 0 without S(q), 1 with. */
static void oracle_compare(const char *path, const tsr_form_factor_table *table,
                           double error[2][ORACLE_N_BAND])
{
    double atoms[ORACLE_N_Q], curve[2][ORACLE_N_Q];
    NEW(tsr_structure, s, tsr_structure_read, path);
    oracle_atoms(s, atoms);
    oracle_bodies(s, table, curve[0], curve[1]);
    for (int w = 0; w < 2; w++)
        oracle_errors(atoms, curve[w], error[w]);
}

static void oracle_needs(const char *path)
{
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
}

/* A table of one component on the oracle's q, trained. */
static tsr_form_factor_table *oracle_trained(tsr_body_model model, int n_q,
                                             int refine, int n,
                                             const char *const *path)
{
    tsr_form_factor_table *t =
        own_tsr_form_factor(tsr_form_factor_new(model, 1, n_q, ORACLE_DQ));
    OK(tsr_form_factor_train(t, n, path, 0, NULL, &err));
    if (refine)
        OK(tsr_form_factor_refine(t, n, path, 0, NULL, &err));
    return t;
}

#endif
