/* All atoms, with their hydration water, are particles of an engine: engine,
 * moves and direct sum agree.
 *
 * Lysozyme with two flexible stretches as X-rays and neutrons see it, and a
 * protein with a strand of DNA. */
#include "core/vec3.h"
#include "tests/chain_step.h"
#include "tests/objects.h"
#include "tests/saxs_likelihood.h"
#include "tests/setup_sample.h"
#include "tests/test.h"

#include <unistd.h>

#define SAXS "../shared/data/saxs/"
static const char data_path[] = "particles.tmp.dat";

static const char lysozyme[] =
    "structure: {file: " SAXS "lysozyme_6lyz/model.pdb, bodies: atoms,\n"
    "  flexible: ['A:64-66', 'A:121-129']}\n"
    "contrast: {c1: infer, c2: infer}\n"
    "data:\n"
    "  - {file: particles.tmp.dat}\n"
    "  - {kind: sans, file: particles.tmp.dat, d2o: 0.1}\n"
    "  - {kind: sans, file: particles.tmp.dat, d2o: 1}\n";
static const char strand[] =
    "structure: {file: " SAXS "rpa_multifoxs_synthetic/model_1jmc.pdb,\n"
    "  bodies: atoms, flexible: ['A:298-303', 'B:15-18']}\n"
    "contrast: {c2: infer}\n"
    "data: [{file: particles.tmp.dat}]\n";

/* Draws of the prior. */
static tsr_target of_prior;
static tsr_chain *prior;

static void write_data(void)
{
    FILE *f = fopen(data_path, "w");
    assert_non_null(f);
    for (int k = 0; k < 30; k++) {
        const double q = 0.01 + 0.01 * k, y = exp(-70.0 * q * q) + 0.02;
        fprintf(f, "%.6g %.9g %.9g\n", q, y, 0.05 * y);
    }
    assert_int_equal(fclose(f), 0);
}

/* Without the data the test is skipped. */
static void open_sample(sample *x, const char *what, const char *model)
{
    const char *const set[] = {"device.use=cpu", "device.engine=waves"};
    char text[1000];
    if (access(model, R_OK) != 0) {
        print_message("%s is absent\n", model);
        skip();
    }
    write_data();
    snprintf(text, sizeof text,
             "%smodel_error: {learn: none}\n"
             "sampler: {chains: 1, temperatures: 1, start: file}\n",
             what);
    start_sample(x, 2, set, text);
    unlink(data_path);
    assert_non_null(x->s.atoms.particles);
    of_prior = x->s.target;
    of_prior.likelihood = NULL;
    of_prior.n_engine = 0;
    MAKE(tsr_chain, prior, tsr_chain_new, &of_prior, 7);
}

/* The next one of the prior. */
static const tsr_conformation *next(void)
{
    tsr_chain_view view;
    for (int i = 0; i < 400; i++)
        chain_step(prior, NULL, NULL, 0);
    tsr_chain_view_get(prior, &view);
    return view.conformation;
}

static tsr_atom_curves *open_atoms(const sample *x)
{
    NEW(tsr_atom_curves, curves, tsr_atom_curves_new, &x->s.molecule,
        &x->s.data.likelihood->grid, NULL, NULL);
    return curves;
}

/* ---- places ---- */

/* What keeps its distance from a bead: its atom, and CA of the residue, or C of
 * those on O. */
static int anchor_of(const tsr_atoms *atoms, int owner)
{
    const tsr_file_residue *r = &atoms->residue[atoms->atom[owner].residue];
    const char *name = atoms->atom[owner].name;
    const int is_o = strcmp(name, "O") == 0 || strcmp(name, "OXT") == 0;
    for (int i = r->first_atom; i < r->first_atom + r->n_atom; i++)
        if (strcmp(atoms->atom[i].name, is_o ? "C" : "CA") == 0)
            return i;
    return owner;
}

/* Loose amino acids: their atoms where all atoms are, and beads on them. */
static int check_residue(const sample *x, int r, const tsr_atoms *atoms,
                         const tsr_atom_model *start, const double (*now)[3],
                         const double (*xyz)[3])
{
    const tsr_file_residue *at = &atoms->residue[r];
    int n = 0, bead = start->n_atom;
    if (x->s.molecule.topology->residue[r].n_guest > 0)
        return 0;
    for (int i = at->first_atom; i < at->first_atom + at->n_atom; i++, n++)
        assert_true(tsr_vec3_distance(now[i], xyz[n]) < 1e-9);
    while (bead < start->n && start->owner[bead] < at->first_atom)
        bead++;
    for (; bead < start->n && start->owner[bead] < at->first_atom + at->n_atom;
         bead++, n++) {
        const int owner = start->owner[bead];
        const int stays[] = {owner, anchor_of(atoms, owner)};
        /* of N and C one is not in the frame when N-CA-C bends */
        const int bends = strlen(atoms->atom[owner].name) == 1 &&
                          atoms->atom[owner].name[0] != 'O';
        for (int k = 0; k < 2; k++)
            assert_near(
                tsr_vec3_distance(start->xyz[bead], start->xyz[stays[k]]),
                tsr_vec3_distance(xyz[n], now[stays[k]]),
                (k == 0 && bends ? 0.7 : 1e-6));
    }
    assert_int_equal(n, x->s.atoms.particles->first[r + 1] -
                            x->s.atoms.particles->first[r]);
    return 1;
}

static void check_places(sample *x)
{
    const tsr_particles *p = x->s.atoms.particles;
    const int n_amino =
        x->s.molecule.topology->n_residue - x->s.molecule.topology->n_link;
    tsr_atom_curves *curves = open_atoms(x);
    const tsr_atoms *atoms = tsr_atom_curves_atoms(curves);
    double(*xyz)[3] = array((size_t)p->n, sizeof *xyz);
    int n_checked = 0;
    NEW(tsr_atom_model, start, tsr_atom_curves_place, curves,
        x->s.molecule.first, TSR_SOLVENT_LAYER);
    p->type->place(p, x->s.molecule.first, 0, x->s.molecule.topology->n_residue,
                   xyz);
    assert_memory_equal(xyz, p->start, (size_t)p->n * sizeof *xyz);
    for (int i = 0; i < 4; i++) {
        const tsr_conformation *c = next();
        NEW(tsr_atom_model, now, tsr_atom_curves_place, curves, c,
            TSR_SOLVENT_LAYER);
        for (int r = 0; r < n_amino; r++) {
            if (p->first[r + 1] > p->first[r] && p->unit[p->first[r]] >= 0)
                continue;
            p->type->place(p, c, r, 1, xyz);
            n_checked +=
                check_residue(x, r, atoms, start, (const double(*)[3])now->xyz,
                              (const double(*)[3])xyz);
        }
    }
    assert_true(n_checked >= 4 * 6);
}

/* ---- profiles ---- */

/* The same profile of all probes, to `most` of sqrt(I_aa I_bb), beyond q = 0,
 * where what neutrons see may vanish. */
static void check_profile(const tsr_likelihood *l, const double *got,
                          const double *right, double most)
{
    const size_t n_q = (size_t)l->grid.n_q;
    for (int p = 0; p < l->n_probe; p++) {
        const int n_comp = l->probe[p].n_comp;
        const size_t first = (size_t)l->probe[p].first;
        for (size_t k = 1; k < n_q; k++) {
            double own[TSR_N_COMP];
            size_t at = first;
            for (int a = 0; a < n_comp; at += (size_t)(n_comp - a), a++)
                own[a] = right[at * n_q + k];
            at = first;
            for (int a = 0; a < n_comp; a++)
                for (int b = a; b < n_comp; b++, at++)
                    assert_near(got[at * n_q + k], right[at * n_q + k],
                                most * sqrt(own[a] * own[b]));
        }
    }
}

static void check_profiles(sample *x)
{
    const tsr_likelihood *l = x->s.data.likelihood;
    const tsr_particles *p = l->particles;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    const int n_body = x->s.molecule.topology->n_body;
    double *got = array(2 * n + TSR_N_COMP_PAIR * (size_t)l->grid.n_q,
                        sizeof *got),
           *right = got + n, *six = right + n, radius;
    double(*xyz)[3] = array((size_t)p->n, sizeof *xyz);
    tsr_atom_curves *curves = open_atoms(x);
    NEW(tsr_batch, batch, tsr_batch_new, x->s.devices.group[0].engine, 1);
    /* in the first conformation the water is its own */
    OK(tsr_likelihood_direct(l, n_body, x->s.molecule.first, NULL, got, &err));
    OK(tsr_data_sum_atoms(&x->s.data, l, curves, x->s.molecule.first, six,
                          right, &radius, &err));
    assert_near(radius, p->radius_ang, 1e-9);
    check_profile(l, got, right, 1e-5);
    for (int i = 0; i < 4; i++) {
        const tsr_conformation *c = next();
        p->type->place(p, c, 0, x->s.molecule.topology->n_residue, xyz);
        OK(tsr_batch_set(batch, 0, (const double(*)[3])xyz, got, &err));
        OK(tsr_likelihood_direct(l, n_body, c, NULL, right, &err));
        check_profile(l, got, right, 2e-5);
    }
}

/* Moves of a chain, without data, lead to the profile of where it is. */
static void check_moves(sample *x)
{
    const tsr_likelihood *l = x->s.data.likelihood;
    const size_t n = (size_t)tsr_likelihood_n_profile(l);
    double *got = array(2 * n, sizeof *got), *right = got + n;
    tsr_target target = x->s.target;
    tsr_chain_view view;
    NEW(tsr_batch, batch, tsr_batch_new, x->s.devices.group[0].engine, 1);
    tsr_chain *chain = new_chain(&target, 0, batch);
    tsr_chain_set_beta(chain, 0.0);
    for (int i = 0; i < 300; i++)
        chain_step(chain, batch, got, 0);
    tsr_chain_view_get(chain, &view);
    OK(tsr_batch_profile(batch, tsr_chain_system(chain), got, &err));
    OK(tsr_likelihood_direct(l, x->s.molecule.topology->n_body,
                             view.conformation, NULL, right, &err));
    check_profile(l, got, right, 3e-5);
    OK(tsr_chain_refresh(chain, batch, &err));
}

static void check_all(const char *what, const char *model)
{
    sample x;
    open_sample(&x, what, model);
    check_places(&x);
    check_profiles(&x);
    check_moves(&x);
}

TEST(of_amino_acids)
{
    check_all(lysozyme, SAXS "lysozyme_6lyz/model.pdb");
}

TEST(of_strands)
{
    check_all(strand, SAXS "rpa_multifoxs_synthetic/model_1jmc.pdb");
}
