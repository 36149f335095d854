/* Makes the protein of the demo, configs/demo/two_domain.pdb: two bundles of
 * three helices on a flexible linker. It is not derived from a known structure:
 * helices are ideal, and simulated annealing finds loop torsions that pack them
 * without clashes.
 *
 *     make build/configs/demo/make_two_domain
 *     build/configs/demo/make_two_domain data/prior.dat \
 *         configs/demo/two_domain.pdb
 */
#include "core/random.h"
#include "core/vec3.h"
#include "molecule/topology.h"
#include "prior/prior.h"
#include "tests/geometry.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEGREE (3.14159265358979323846 / 180.0)

/* h: helix, l: loop, whose torsions are annealed. */
static const char *const sequence[2] = {
    "SPEELLKKAEELIKRGNPEEALRLAREALELAGSDPELVKRAVELLERAA",
    "DPSEVARLLLEAIKNGDKELLKRALELARRSGNEEVIRLIEEVLKRLGLS"};
static const char fold[] = "hhhhhhhhhhhhhhhllllhhhhhhhhhhhhhllllhhhhhhhhhhhhhh";
static const char linker[] = "GSGSEGSPGSEGSG";

typedef struct {
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior *prior;
    internal_geometry *internal;
} molecule;

static void stop(const tsr_err *err)
{
    fprintf(stderr, "make_two_domain: %s\n", err->message);
    exit(1);
}

static void open_molecule(molecule *m, const char *text,
                          const tsr_prior_table *table)
{
    tsr_err err = {0};
    tsr_flexibility all = {.flexible = NULL};
    const tsr_prior_options options = {
        .clash = TSR_CLASH_SOFT, .softness = 0.4, .clash_limit = HUGE_VAL};
    if (tsr_topology_from_sequence(text, TSR_BODIES_TWO, all, table, &m->t,
                                   &m->c, &err) != TSR_OK)
        stop(&err);
    if (tsr_prior_new(m->t, table, &options, 0.0, &m->prior, &err) != TSR_OK)
        stop(&err);
    m->internal = calloc(strlen(text), sizeof *m->internal);
    if (m->internal == NULL)
        exit(1);
}

static void close_molecule(molecule *m)
{
    free(m->internal);
    tsr_prior_free(m->prior);
    tsr_conformation_free(m->c);
    tsr_topology_free(m->t);
}

/* The energy of the annealing: clashes, and the radius of gyration. */
static double energy(molecule *m)
{
    build_geometry(m->t, m->internal, m->c);
    double rg = tsr_conformation_rg(m->t, m->c, NULL);
    return -tsr_prior_log_reference(m->prior, m->c) + 1.5 * rg * rg;
}

/* Simulated annealing over the loop torsions of one domain. */
static void fold_domain(const char *text, const tsr_prior_table *table,
                        uint64_t seed, internal_geometry *out)
{
    enum { STEPS = 60000 };
    molecule m;
    gsl_rng *rng = tsr_rng_new(seed, 0);
    int loop[64], n_loop = 0, n = (int)strlen(text);
    open_molecule(&m, text, table);
    for (int i = 0; i < n; i++) {
        m.internal[i] = fold[i] == 'h'
                            ? geometry_ideal(-62 * DEGREE, -42 * DEGREE)
                            : geometry_ideal(-80 * DEGREE, 130 * DEGREE);
        if (fold[i] == 'l')
            loop[n_loop++] = i;
    }
    double now = energy(&m), best = now;
    memcpy(out, m.internal, (size_t)n * sizeof *out);
    for (int step = 0; step < STEPS; step++) {
        double heat = 20.0 * (1.0 - (double)step / STEPS) + 0.2;
        int i = loop[gsl_rng_uniform_int(rng, (unsigned long)n_loop)];
        internal_geometry old = m.internal[i];
        double turn = gsl_ran_gaussian(rng, step % 5 ? 0.15 : 1.0);
        if (step & 1 && m.t->residue[i].amino != TSR_PRO)
            m.internal[i].phi += turn;
        else
            m.internal[i].psi += turn, m.internal[i].o_torsion += turn;
        double then = energy(&m);
        if (log(gsl_rng_uniform_pos(rng)) < (now - then) / heat)
            now = then;
        else
            m.internal[i] = old;
        if (now < best) {
            best = now;
            memcpy(out, m.internal, (size_t)n * sizeof *out);
        }
    }
    memcpy(m.internal, out, (size_t)n * sizeof *out);
    energy(&m);
    printf("domain of %d residues: Rg %.1f Angstrom, energy %.1f\n", n,
           tsr_conformation_rg(m.t, m.c, NULL), best);
    close_molecule(&m);
    gsl_rng_free(rng);
}

int main(int argc, char **argv)
{
    tsr_err err = {0};
    tsr_prior_table *table;
    molecule m;
    char text[256];
    if (argc != 3) {
        fprintf(stderr, "usage: make_two_domain PRIOR.dat OUT.pdb\n");
        return 64;
    }
    if (tsr_prior_table_read(argv[1], &table, &err) != TSR_OK)
        stop(&err);
    snprintf(text, sizeof text, "%s%s%s", sequence[0], linker, sequence[1]);
    open_molecule(&m, text, table);
    size_t n = strlen(fold), k = strlen(linker);
    fold_domain(sequence[0], table, 3, m.internal);
    for (size_t i = 0; i < k; i++)
        m.internal[n + i] = geometry_ideal(-75 * DEGREE, 150 * DEGREE);
    fold_domain(sequence[1], table, 4, m.internal + n + k);
    printf("energy of the whole: %.1f\n", energy(&m));
    tsr_model_atoms *s = tsr_topology_model(m.t, m.c);
    if (s == NULL ||
        tsr_model_atoms_write(s, argv[2],
                              "made by configs/demo/make_two_domain.c; SC is "
                              "the centre of a side chain",
                              &err) != TSR_OK)
        stop(&err);
    tsr_model_atoms_free(s);
    close_molecule(&m);
    tsr_prior_table_free(table);
    return 0;
}
