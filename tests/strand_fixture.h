/* Strands as runs have them: topology, prior and options of moves, of a file
 * that the test writes. A test program of its own includes it. */
#ifndef TESTS_STRAND_FIXTURE_H
#define TESTS_STRAND_FIXTURE_H

#include "tests/objects.h"
#include "tests/strand_sample.h"

#include "core/random.h"
#include "molecule/structure.h"
#include "molecule/topology.h"
#include "moves/move.h"
#include "sampler/chain.h"
#include "tests/io_files.h"

#include <gsl/gsl_sort.h>

typedef struct {
    char path[128], *range[2];
    tsr_prior_table table;
    tsr_structure *structure;
    tsr_atoms *atoms;
    tsr_nucleic *nucleic;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior *prior;
    unsigned char option[TSR_N_MOVE][256];
    const void *options[TSR_N_MOVE];
} fixture;

static inline void read_file(fixture *f, const tsr_strings *flexible, int clash)
{
    sample_prior_table(&f->table);
    MAKE(tsr_structure, f->structure, tsr_structure_read_any, f->path);
    MAKE(tsr_atoms, f->atoms, tsr_atoms_read, f->path);
    OK(tsr_nucleic_find(f->structure, f->atoms, flexible, &f->nucleic, &err));
    assert_non_null(f->nucleic);
    own(f->nucleic, free);
    const tsr_flexibility flexibility = {.flexible = flexible,
                                         .nucleic = f->nucleic};
    OK(tsr_topology_from_structure(f->structure, TSR_BODIES_TWO, flexibility,
                                   &f->table, NULL, &f->t, &f->c, &err));
    own_molecule(f->t, f->c);
    OK(tsr_guests_attach(f->structure, f->atoms, NULL, NULL, f->t, f->c, &err));
    const tsr_prior_options options = {
        .clash = clash,
        .softness = 0.5,
        .clash_limit = f->structure->n_residue > 0 ? 1e5 : 4.0};
    MAKE(tsr_prior, f->prior, tsr_prior_new, f->t, &f->table, &options, 0.0);
    for (int m = 0; m < TSR_N_MOVE; m++) {
        OK(tsr_fields_init(tsr_move_registry[m]->fields, f->option[m], &err));
        f->options[m] = f->option[m];
    }
}

/* A strand S of n nucleotides; range NULL: all are flexible. */
static inline void open_strand(fixture *f, int n, int is_dna, char *range,
                               int clash)
{
    const double origin[3] = {0.0, 0.0, 0.0};
    const tsr_strings flexible = {.n = range != NULL, .item = f->range};
    *f = (fixture){.range = {range}};
    strcpy(f->path, io_path("strand.pdb"));
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    strand_write(file, 'S', n, is_dna, origin);
    fclose(file);
    read_file(f, &flexible, clash);
}

/* What rides goes along with what the C side of residue i did since `was`. */
static inline void carry(const fixture *f, int i, const tsr_conformation *was,
                         tsr_conformation *c)
{
    const tsr_residue *r = &f->t->residue[i];
    tsr_proposal p = {.n_span = 1, .span = {{i, 1, 0}}};
    if (i < r->chain_last)
        p.span[p.n_span++] = (tsr_span){i + 1, r->chain_last - i, 1};
    tsr_proposal_move_attached(f->t, was, c, &p);
}

/* All torsions and bases from their densities; C sides turn. */
static inline void draw(const fixture *f, gsl_rng *rng, tsr_conformation *c)
{
    const tsr_topology *t = f->t;
    tsr_conformation *was = new_conformation(t);
    tsr_conformation_copy(t, c, f->c, 0, t->n_residue);
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        double phi, psi, change[1][2] = {{0.0, 0.0}};
        if (!r->flexible)
            continue;
        tsr_prior_torsion_draw(f->prior, i, rng, &phi, &psi);
        if (r->has_phi)
            change[0][0] = phi - tsr_conformation_torsion(t, c, i, TSR_PHI);
        if (r->has_psi)
            change[0][1] = psi - tsr_conformation_torsion(t, c, i, TSR_PSI);
        tsr_conformation_copy(t, was, c, 0, t->n_residue);
        tsr_conformation_turn_many(t, c, i, i, 1, (const double(*)[2])change);
        if (r->link != TSR_LINK_NONE && t->base[i].exists)
            tsr_prior_side_draw(f->prior, i, rng, c->side[i]);
        tsr_conformation_place_bodies(t, c, i, 1);
        carry(f, i, was, c);
    }
}

/* Pivot, side_chain and regrow with these weights, and no others; `draws`: the
 * share of their proposals that are draws of the prior. */
static inline void set_moves(fixture *f, const double weight[3], double draws)
{
    static const int moves[3] = {TSR_MOVE_pivot, TSR_MOVE_side_chain,
                                 TSR_MOVE_regrow};
    const double none = 0.0;
    for (int m = 0; m < TSR_N_MOVE; m++)
        memcpy(f->option[m], &none, sizeof none);
    for (int m = 0; m < 3; m++) {
        memcpy(f->option[moves[m]], &weight[m], sizeof weight[m]);
        for (const tsr_field *o = tsr_move_registry[moves[m]]->fields;
             o->name != NULL; o++)
            if (strcmp(o->name, "draw") == 0)
                memcpy(f->option[moves[m]] + o->offset, &draws, sizeof draws);
    }
}

static inline void step(tsr_chain *chain)
{
    tsr_body_proposal ask;
    int accepted;
    assert_int_equal(tsr_chain_propose(chain, &ask), 0);
    OK(tsr_chain_decide(chain, NULL, 0, &accepted, &err));
}

/* Two samples; both are put in order. */
static inline double ks_p(int n, double *u, double *v)
{
    gsl_sort(u, 1, (size_t)n);
    gsl_sort(v, 1, (size_t)n);
    double d = 0.0, sum = 0.0;
    for (int i = 0, j = 0; i < n && j < n;) {
        const double x = u[i] < v[j] ? u[i] : v[j];
        while (i < n && u[i] <= x)
            i++;
        while (j < n && v[j] <= x)
            j++;
        d = fmax(d, fabs((i - j) / (double)n));
    }
    const double root = sqrt(0.5 * n), x = d * (root + 0.12 + 0.11 / root);
    for (int j = 1; j < 100; j++)
        sum += (j % 2 ? 2.0 : -2.0) * exp(-2.0 * j * j * x * x);
    return x < 0.3 ? 1.0 : sum;
}

/* Steps of chain `number` from c, to where it comes; returns how many were
 * accepted. */
static inline long walk(const fixture *f, int number, int n_step,
                        tsr_conformation *c)
{
    const tsr_target target = {.topology = f->t,
                               .first = c,
                               .prior = f->prior,
                               .move_options = f->options,
                               .seed = 3};
    tsr_chain_view view;
    long n = 0;
    NEW(tsr_chain, chain, tsr_chain_new, &target, number);
    for (int k = 0; k < n_step; k++)
        step(chain);
    tsr_chain_view_get(chain, &view);
    tsr_conformation_copy(f->t, c, view.conformation, 0, f->t->n_residue);
    for (int m = 0; m < TSR_N_MOVE; m++)
        n += tsr_chain_counts_get(chain)->accepted[m];
    return n;
}

#endif
