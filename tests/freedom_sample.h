/* Molecules with what real files have: several chains, breaks, D residues, cis
 * peptides. Made from a sequence, extended, without a file. */
#ifndef TESTS_FREEDOM_SAMPLE_H
#define TESTS_FREEDOM_SAMPLE_H

#include "core/vec3.h"
#include "molecule/topology.h"
#include "tests/geometry.h"
#include "tests/model_sample.h"

typedef struct {
    const char *sequence;  /* chains A, B, ... separated by '/' */
    int break_before;      /* residue from 1 over all chains; 0: none */
    int mirrored;          /* a D residue, counted likewise */
    int cis;               /* the bond before it is cis */
    const char *ranges[4]; /* flexible, rigid, fixed, mobile; each a list with
                              blanks between, or NULL */
} sample_molecule;

typedef struct {
    char text[16][16];
    char *item[4][16];
    tsr_strings list[4];
    int n_text;
} sample_ranges;

static inline void sample_split(const char *const ranges[4], sample_ranges *out)
{
    out->n_text = 0;
    for (int k = 0; k < 4; k++) {
        int n = 0;
        for (const char *at = ranges[k]; at != NULL && *at != '\0'; n++) {
            size_t length = strcspn(at, " ");
            char *text = out->text[out->n_text++];
            memcpy(text, at, length);
            text[length] = '\0';
            out->item[k][n] = text;
            at += at[length] == ' ' ? length + 1 : length;
        }
        out->list[k] = (tsr_strings){n, out->item[k]};
    }
}

/* The side chain on the other side of the plane N-CA-C. */
static inline void sample_mirror(tsr_structure *s, int i)
{
    const tsr_residue_record *r = &s->residue[i];
    double frame[3][3], local[3];
    tsr_atom *atom = &s->atom[r->first_atom];
    tsr_frame(frame, atom[0].xyz, atom[1].xyz, atom[2].xyz);
    for (int a = 4; a < r->n_atom; a++) {
        tsr_frame_to_local(local, frame, atom[1].xyz, atom[a].xyz);
        local[2] = -local[2];
        tsr_frame_to_global(atom[a].xyz, frame, atom[1].xyz, local);
    }
}

/* A conformation as a structure that was read. */
static inline tsr_structure *sample_read(const tsr_topology *t,
                                         const tsr_conformation *c)
{
    tsr_structure *s = calloc(1, sizeof *s);
    tsr_model_atoms *m = tsr_topology_model(t, c);
    s->path = tsr_pool_text(&s->pool, "");
    s->n_residue = m->n_residue;
    s->n_atom = m->n_atom;
    tsr_pool_array(&s->pool, s->residue, s->n_residue);
    tsr_pool_array(&s->pool, s->atom, s->n_atom);
    for (int i = 0; i < m->n_atom; i++) {
        const tsr_model_atom *from = &m->atom[i];
        tsr_residue_record *r = &s->residue[from->at];
        if (r->n_atom++ == 0) {
            r->first_atom = i;
            r->number = from->number;
            r->insertion = from->insertion;
            snprintf(r->name, sizeof r->name, "%s", from->residue);
            snprintf(r->file_name, sizeof r->file_name, "%s", from->residue);
        }
        snprintf(s->atom[i].name, sizeof s->atom[i].name, "%s", from->name);
        s->atom[i].z = tsr_amino_atomic_number(from->name);
        memcpy(s->atom[i].xyz, m->xyz + 3 * i, sizeof s->atom[i].xyz);
    }
    tsr_model_atoms_free(m);
    return s;
}

/* An extended chain, side by side with the others and from 1; the structure is
 * the caller's. */
static inline tsr_structure *sample_structure(const tsr_prior_table *table,
                                              const sample_molecule *m)
{
    char joined[256] = "", chain[256], name = 'A';
    int number[256], n = 0, k = 0;
    for (const char *at = m->sequence; *at != '\0'; at++) {
        if (*at == '/') {
            name++, k = 0;
            continue;
        }
        number[n] = ++k;
        chain[n] = name;
        joined[n++] = *at;
    }
    tsr_topology *t;
    tsr_conformation *c;
    sample_chain(joined, NULL, table, &t, &c);
    if (m->cis > 0) {
        internal_geometry *g = array((size_t)n, sizeof *g);
        measure_geometry(t, c, g);
        g[m->cis - 1].omega = 0.0;
        build_geometry(t, g, c);
    }
    tsr_structure *s = sample_read(t, c);
    s->n_chain = name - 'A' + 1;
    if (m->mirrored > 0)
        sample_mirror(s, m->mirrored - 1);
    for (int i = 0; i < n; i++) {
        tsr_residue_record *r = &s->residue[i];
        snprintf(r->chain, sizeof r->chain, "%c", chain[i]);
        r->number = number[i];
        double aside = 12.0 * (chain[i] - 'A');
        aside += m->break_before > 0 && i >= m->break_before - 1 ? 9.0 : 0.0;
        for (int a = 0; a < r->n_atom; a++)
            s->atom[r->first_atom + a].xyz[2] += aside;
    }
    return s;
}

static inline tsr_status sample_topology(const tsr_prior_table *table,
                                         const sample_molecule *m,
                                         tsr_topology **t, tsr_conformation **c,
                                         tsr_log *log)
{
    sample_ranges r;
    sample_split(m->ranges, &r);
    tsr_flexibility flexibility = {.flexible = &r.list[0],
                                   .rigid = &r.list[1],
                                   .fixed = &r.list[2],
                                   .mobile = &r.list[3],
                                   .file = "molecule.pdb"};
    tsr_structure *s = sample_structure(table, m);
    tsr_status status = tsr_topology_from_structure(
        s, TSR_BODIES_TWO, flexibility, table, log, t, c, &err);
    own_molecule(*t, *c);
    tsr_structure_free(s);
    return status;
}

#endif
