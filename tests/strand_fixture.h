/* Strands as runs have them: topology, prior and options of moves, of a file
 * that the test writes. A test program of its own includes it. */
#ifndef TESTS_STRAND_FIXTURE_H
#define TESTS_STRAND_FIXTURE_H

#include "tests/strand_sample.h"

#include "core/random.h"
#include "io/structure.h"
#include "moves/move.h"
#include "tests/unit/folder.h"

static char folder[64];
static tsr_err err;

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
    OK(tsr_structure_read_any(f->path, &f->structure, &err));
    OK(tsr_atoms_read(f->path, &f->atoms, &err));
    OK(tsr_nucleic_find(f->structure, f->atoms, flexible, &f->nucleic, &err));
    assert_non_null(f->nucleic);
    const tsr_flexibility flexibility = {.flexible = flexible,
                                         .nucleic = f->nucleic};
    OK(tsr_topology_from_structure(f->structure, TSR_BODIES_TWO, flexibility,
                                   &f->table, NULL, &f->t, &f->c, &err));
    OK(tsr_guests_attach(f->structure, f->atoms, NULL, NULL, f->t, f->c, &err));
    const tsr_prior_options options = {
        .clash = clash,
        .softness = 0.5,
        .clash_limit = f->structure->n_residue > 0 ? 1e5 : 4.0};
    OK(tsr_prior_new(f->t, &f->table, &options, 0.0, &f->prior, &err));
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
    snprintf(f->path, sizeof f->path, "%s/strand.pdb", folder);
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    strand_write(file, 'S', n, is_dna, origin);
    fclose(file);
    read_file(f, &flexible, clash);
}

static inline void close_strand(fixture *f)
{
    tsr_prior_free(f->prior);
    tsr_conformation_free(f->c);
    tsr_topology_free(f->t);
    tsr_nucleic_free(f->nucleic);
    tsr_atoms_free(f->atoms);
    tsr_structure_free(f->structure);
}

/* All torsions and bases from their densities. */
static inline void draw(const fixture *f, gsl_rng *rng, tsr_conformation *c)
{
    const tsr_topology *t = f->t;
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
        tsr_conformation_turn_many(t, c, i, i, 1, (const double(*)[2])change);
        if (t->base[i].is_there)
            tsr_prior_side_draw(f->prior, i, rng, c->side[i]);
        tsr_conformation_place_bodies(t, c, i, 1);
    }
}

#endif
