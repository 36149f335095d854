/* Neutron scattering lengths and match points equal published values, and
 * contrast is linear in the share of D2O. */
#include "molecule/structure.h"
#include "scattering/form_factor.h"
#include "scattering/neutron.h"
#include "tests/io_files.h"
#include "tests/test.h"

static tsr_atoms *atoms;
static double match;

static tsr_atom_model *model_of(const char *path, const tsr_neutron *n)
{
    err = (tsr_err){0};
    tsr_atom_model *m = NULL;
    if (tsr_atoms_read(path, &atoms, &err) != TSR_OK ||
        tsr_atom_model_new(atoms, TSR_SOLVENT_LAYER, TSR_WATER_DENSITY, &m,
                           &err) != TSR_OK ||
        tsr_neutron_apply(n, atoms, m, NULL, &match, &err) != TSR_OK)
        fail_msg("%s", err.message);
    return m;
}

static void release(tsr_atom_model *m)
{
    tsr_atom_model_free(m);
    tsr_atoms_free(atoms);
}

/* Sums at q = 0 of a component over all particles, fm. */
static double sum_of(const tsr_atom_model *m, int comp)
{
    double *f = array((size_t)(3 * m->n_type) * 2, sizeof *f), sum = 0.0;
    tsr_atom_model_factors(m, 2, 0.1, f);
    for (int i = 0; i < m->n; i++)
        sum += f[(comp * m->n_type + m->type[i]) * 2] *
               (comp == 2 ? m->surface[i] : 1.0);
    return sum;
}

/* Jacrot 1976, Rep. Prog. Phys. 39, 911, table 2: residues in H2O and in D2O
 * with all that is labile exchanged, 1e-12 cm, and their volumes, A^3. Atoms'
 * own volumes need not agree with those; the match point then differs by 1 %.
 */
static const struct {
    char name[4];
    double h2o, d2o, volume;
} jacrot[] = {{"GLY", 1.728, 2.769, 66.4},  {"ALA", 1.645, 2.686, 91.5},
              {"VAL", 1.479, 2.520, 141.7}, {"LEU", 1.396, 2.437, 167.9},
              {"ILE", 1.396, 2.437, 168.8}, {"PHE", 4.139, 5.180, 203.4},
              {"TYR", 4.719, 6.802, 203.6}, {"TRP", 6.035, 8.118, 237.6},
              {"ASP", 3.845, 4.886, 113.6}, {"GLU", 3.762, 4.803, 140.6},
              {"SER", 2.225, 4.308, 99.1},  {"THR", 2.142, 4.224, 122.1},
              {"ASN", 3.456, 6.580, 135.2}, {"GLN", 3.373, 6.497, 161.1},
              {"LYS", 1.586, 5.752, 176.2}, {"ARG", 3.466, 9.714, 180.8},
              {"HIS", 4.959, 6.521, 167.3}, {"MET", 1.764, 2.805, 170.8},
              {"CYS", 1.930, 4.013, 105.6}, {"PRO", 2.227, 2.227, 129.3}};

static void jacrot_sums(double *h2o, double *d2o, double *volume)
{
    *h2o = *d2o = *volume = 0.0;
    for (int r = 0; r < atoms->n_residue; r++)
        for (size_t k = 0; k < COUNT_OF(jacrot); k++)
            if (strcmp(jacrot[k].name, atoms->residue[r].parent) == 0) {
                *h2o += 10.0 * jacrot[k].h2o;
                *d2o += 10.0 * jacrot[k].d2o;
                *volume += jacrot[k].volume;
            }
}

TEST(lysozyme)
{
    const char *path = SHARED "saxs/lysozyme_6lyz/model.pdb";
    const double h = tsr_neutron_solvent(0.0), d = tsr_neutron_solvent(1.0);
    tsr_neutron n = {.exchange = 1.0};
    double in_h, in_d, volume;
    NEEDS_SHARED;
    tsr_atom_model *m = model_of(path, &n);
    jacrot_sums(&in_h, &in_d, &volume);
    in_h += 8 * 3.739, in_d -= 8 * 6.671; /* four disulfides */
    assert_near(sum_of(m, 0) / in_h, 1.0, 0.01);
    assert_near(match, (in_h - h * volume) / ((d - h) * volume - in_d + in_h),
                0.015);
    release(m);
    n.d2o = 1.0;
    m = model_of(path, &n);
    assert_near(sum_of(m, 0) / in_d, 1.0, 0.01);
    release(m);
}

/* Match points of proteins lie at 40 to 43 % D2O, of lysozyme above, since it
 * has many polar residues: 45 % with Jacrot's table. */
TEST(proteins_match_at_42_percent)
{
    static const char *const path[] = {
        SHARED "saxs/mpro_sasdjg5/model.pdb",
        SHARED "saxs/carbonic_anhydrase/model.pdb",
        SHARED "saxs/rpa_multifoxs_synthetic/model.pdb",
        SHARED "saxs/nup133_3kfo/model.pdb"};
    NEEDS_SHARED;
    for (size_t k = 0; k < COUNT_OF(path); k++) {
        const tsr_neutron n = {.exchange = 0.9};
        tsr_atom_model *m = model_of(path[k], &n);
        assert_near(match, 0.415, 0.015);
        release(m);
    }
}

/* The lines of chains A and B of a complex are DNA; with the phosphates'
 * charges and without counter-ions it matches a little below the 63 to 65 % of
 * the salt. */
TEST(dna_matches_above_60_percent)
{
    char line[128];
    const tsr_neutron n = {.exchange = 0.9};
    NEEDS_SHARED;
    FILE *in =
        fopen(SHARED "reference_profiles/plumed_rt-saxs/template.pdb", "r");
    FILE *out = fopen(io_path("dna.pdb"), "w");
    assert_non_null(in);
    assert_non_null(out);
    while (fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, "ATOM", 4) == 0 &&
            (line[21] == 'A' || line[21] == 'B'))
            fputs(line, out);
    fclose(in);
    fclose(out);
    tsr_atom_model *m = model_of(io_path("dna.pdb"), &n);
    assert_int_equal(atoms->n_kind[TSR_MOLECULE_NUCLEOTIDE], atoms->n_residue);
    assert_near(match, 0.625, 0.025);
    release(m);
}

/* sqrt I(0) is the sum of amplitudes, and linear in the share of D2O, layer
 * and labile hydrogens included; it vanishes at the match point. */
TEST(linear_in_d2o)
{
    static const double share[] = {0.0, 0.3, 1.0};
    double bare[3], with[3];
    NEEDS_SHARED;
    for (int k = 0; k < 4; k++) {
        const tsr_neutron n = {.d2o = k < 3 ? share[k] : match,
                               .exchange = 0.9};
        tsr_atom_model *m = model_of(SHARED "saxs/lysozyme_6lyz/model.pdb", &n);
        const double contrast = sum_of(m, 0) - sum_of(m, 1);
        if (k < 3) {
            bare[k] = contrast;
            with[k] = contrast + 2.0 * sum_of(m, 2);
        } else {
            assert_near(contrast, 0.0, 1e-6);
        }
        release(m);
    }
    assert_near(bare[1], bare[0] + 0.3 * (bare[2] - bare[0]), 1e-6);
    assert_near(with[1], with[0] + 0.3 * (with[2] - with[0]), 1e-6);
    assert_true(bare[0] > 0.0 && bare[2] < 0.0);
    /* the layer is denser than H2O, whose length is negative, and than D2O */
    assert_true(with[0] < bare[0] && with[2] > bare[2]);
}

/* ---- small molecules ---- */

/* A glycine: N H, CA H2, C, O in the middle of a chain has three hydrogens. */
static const char glycine[] = "ATOM      1  N   GLY A   1       0.000   0.000  "
                              " 0.000  1.00  0.00           N\n"
                              "ATOM      2  CA  GLY A   1       1.460   0.000  "
                              " 0.000  1.00  0.00           C\n"
                              "ATOM      3  C   GLY A   1       2.010   1.420  "
                              " 0.000  1.00  0.00           C\n"
                              "ATOM      4  O   GLY A   1       1.250   2.390  "
                              " 0.000  1.00  0.00           O\n";

TEST(lengths_of_one_residue)
{
    const char *path = io_text("gly.pdb", glycine);
    const double plain = 9.36 + 2 * 6.646 + 5.803 - 3 * 3.739;
    const double step = 6.671 + 3.739;
    tsr_neutron n = {.d2o = 0.5, .exchange = 0.8};
    tsr_atom_model *m = model_of(path, &n);
    assert_near(sum_of(m, 0), plain + 0.5 * 0.8 * step, 1e-9);
    assert_near(sum_of(m, 1), tsr_neutron_solvent(0.5) * m->volume, 1e-9);
    release(m);
    n.n_deuterated = 1;
    n.deuterated[0] = (tsr_deuterated){"A", 0.7};
    m = model_of(path, &n);
    assert_near(sum_of(m, 0), plain + (0.4 + 2 * 0.7) * step, 1e-9);
    assert_near(m->mass, 57.05 + 1.0062 * (0.4 + 1.4), 0.02);
    release(m);
}

/* The two hydrogens of CA are 1.09 A from it, in any direction. */
TEST(hydrogens_are_off_their_carriers)
{
    enum { N_Q = 5 };
    const tsr_neutron n = {.exchange = 0.9};
    tsr_atom_model *m = model_of(io_text("gly.pdb", glycine), &n);
    double *f = array((size_t)(3 * m->n_type * N_Q), sizeof *f);
    tsr_atom_model_factors(m, N_Q, 0.1, f);
    const double *ca = f + m->type[1] * N_Q; /* the atoms of the file */
    for (int k = 1; k < N_Q; k++) {
        const double q = 0.1 * k, x = 1.09 * q;
        assert_near(ca[k],
                    (6.646 - 2.0 * 3.739 * sin(x) / x) *
                        exp(-12.0 * q * q / (16.0 * 9.8696044)),
                    1e-6);
    }
    release(m);
}

/* 1e-6/A^2: -0.559 and 6.36 (Jacrot 1976: -0.56 and 6.38 at 4 C). */
TEST(solvents)
{
    assert_near(10.0 * tsr_neutron_solvent(0.0), -0.559, 0.002);
    assert_near(10.0 * tsr_neutron_solvent(1.0), 6.36, 0.01);
}

TEST(refusals)
{
    tsr_atom_model *m = NULL;
    tsr_neutron n = {
        .exchange = 0.9, .n_deuterated = 1, .deuterated = {{"B", 0.5}}};
    const char *text = format(
        "%sHETATM    5  GD   GD A   2       9.000   0.000   0.000  1.00  "
        "0.00          GD\n",
        glycine);
    const char *path = io_text("gd.pdb", text);
    OK(tsr_atoms_read(path, &atoms, &err));
    OK(tsr_atom_model_new(atoms, TSR_SOLVENT_LAYER, TSR_WATER_DENSITY, &m,
                          &err));
    FAILS(tsr_neutron_apply(&n, atoms, m, NULL, &match, &err), TSR_E_DATA,
          "no chain B");
    n.n_deuterated = 0;
    FAILS(tsr_neutron_apply(&n, atoms, m, NULL, &match, &err), TSR_E_DATA,
          "GD A:2");
    release(m);
}
