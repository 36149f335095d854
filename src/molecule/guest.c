/* Guests in a topology, and where they are in any of its conformations. */
#include "molecule/guest.h"

#include "core/vec3.h"
#include "molecule/nucleic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tsr_guests_free(tsr_guests *guests)
{
    if (guests == NULL)
        return;
    tsr_atoms_free(guests->atoms);
    free(guests->file_atom);
    free(guests->body);
    free(guests->host);
    free(guests->turns);
    free(guests->has_links);
    free(guests->local);
    free(guests->part);
    free(guests);
}

const tsr_guest_body *tsr_guests_body(const tsr_topology *topology, int b)
{
    int first = tsr_body_n_type(topology->body_model);
    return &topology->guests->part[topology->body[b].type - first];
}

int tsr_guests_n_atom(const tsr_guests *guests)
{
    return guests != NULL ? guests->atoms->n_atom : 0;
}

int tsr_guests_n_residue(const tsr_guests *guests)
{
    return guests != NULL ? guests->atoms->n_residue : 0;
}

void tsr_guests_place(const tsr_topology *topology,
                      const tsr_conformation *conformation, double (*xyz)[3])
{
    const tsr_guests *g = topology->guests;
    double frame[3][3] = {{0.0}};
    for (int i = 0, last = -1; i < tsr_guests_n_atom(g); i++) {
        const int host = g->host[i];
        const double(*x)[3] = (const double(*)[3])conformation->backbone[host];
        double local[3];
        if (host != last)
            tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
        last = host;
        tsr_vec3_copy(local, g->local[i]);
        if (g->turns[i]) {
            tsr_motion turn;
            tsr_conformation_base(topology, conformation, host, &turn);
            tsr_motion_apply(&turn, local);
        }
        tsr_frame_to_global(xyz[i], frame, x[TSR_CA], local);
    }
}

void tsr_guests_write(const tsr_guests *guests, const double (*xyz)[3],
                      tsr_structure *structure)
{
    tsr_structure *s = structure;
    int first = s->n_residue - s->n_guest;
    for (int r = 0; r < s->n_guest; r++) {
        const tsr_file_residue *from = &guests->atoms->residue[r];
        tsr_residue_record *to = &s->residue[first + r];
        memcpy(to->name, from->name, sizeof to->name);
        memcpy(to->file_name, from->name, sizeof to->file_name);
        memcpy(to->chain, from->chain, sizeof to->chain);
        to->number = from->number;
        to->insertion = from->insertion;
        to->is_guest = from->kind == TSR_MOLECULE_NUCLEOTIDE
                           ? TSR_GUEST_NUCLEOTIDE
                           : TSR_GUEST_LIGAND;
        to->first_atom = s->n_atom;
        to->n_atom = from->n_atom;
        for (int k = 0; k < from->n_atom; k++) {
            const tsr_file_atom *a = &guests->atoms->atom[from->first_atom + k];
            tsr_atom *atom = &s->atom[s->n_atom];
            memcpy(atom->name, a->name, sizeof atom->name);
            memcpy(atom->file_name, a->name, sizeof atom->file_name);
            atom->z = a->z;
            tsr_vec3_copy(atom->xyz, xyz[s->n_atom++]);
        }
    }
}

/* ---- the guests ---- */

/* Is residue r of the file's atoms a nucleotide whose links are residues of the
 * topology? host: its own. */
static int has_links_of(const tsr_topology *topology, int host, int r)
{
    return topology->residue[host].link != TSR_LINK_NONE &&
           topology->residue[host].nucleotide == r;
}

int tsr_guest_link_of(const tsr_topology *topology, int sugar, int part,
                      int *turns)
{
    const tsr_residue *residue = topology->residue;
    const int before = part < TSR_PART_SUGAR ? TSR_PART_SUGAR - part : 0;
    const int i = sugar - before;
    *turns = part == TSR_PART_BASE && topology->base[sugar].is_there;
    return i >= 0 && residue[i].nucleotide == residue[sugar].nucleotide
               ? i
               : sugar - 1;
}

/* host [from->n_residue], -1: no guest. */
static int copy_atoms(const tsr_topology *t, const tsr_atoms *from,
                      const int *host, const char *is_guest, int n_guest,
                      tsr_guests *g)
{
    size_t n = 1;
    for (int i = 0; i < from->n_atom; i++)
        n += is_guest[i] != 0;
    tsr_atoms *to = g->atoms = calloc(1, sizeof *to);
    if (to == NULL)
        return 0;
    to->atom = calloc(n, sizeof *to->atom);
    to->residue = calloc((size_t)n_guest, sizeof *to->residue);
    g->file_atom = calloc(n, sizeof *g->file_atom);
    g->body = calloc(n, sizeof *g->body);
    g->host = calloc(n, sizeof *g->host);
    g->turns = calloc(n, sizeof *g->turns);
    g->has_links = calloc((size_t)n_guest, sizeof *g->has_links);
    g->local = calloc(n, sizeof *g->local);
    g->part = calloc(n, sizeof *g->part);
    if (to->atom == NULL || to->residue == NULL || g->file_atom == NULL ||
        g->body == NULL || g->host == NULL || g->turns == NULL ||
        g->has_links == NULL || g->local == NULL || g->part == NULL)
        return 0;
    for (int r = 0; r < from->n_residue; r++) {
        const tsr_file_residue *residue = &from->residue[r];
        if (host[r] < 0)
            continue;
        const int has_links = has_links_of(t, host[r], r);
        g->has_links[to->n_residue] = has_links;
        to->residue[to->n_residue] = *residue;
        to->residue[to->n_residue].first_atom = to->n_atom;
        to->n_kind[residue->kind]++;
        tsr_file_residue *own = &to->residue[to->n_residue];
        own->n_atom = 0;
        int *part = g->turns + to->n_atom; /* at first; all are guests then */
        if (has_links)
            tsr_nucleic_parts(from, r, part);
        for (int k = 0; k < residue->n_atom; k++) {
            int i = residue->first_atom + k;
            if (!is_guest[i])
                continue;
            g->file_atom[to->n_atom] = i;
            g->host[to->n_atom] = host[r];
            if (has_links)
                g->host[to->n_atom] =
                    tsr_guest_link_of(t, host[r], part[k], &part[k]);
            else
                g->turns[to->n_atom] = is_guest[i] == 2;
            to->atom[to->n_atom] = from->atom[i];
            to->atom[to->n_atom++].residue = to->n_residue;
            own->n_atom++;
        }
        to->n_residue++;
    }
    return 1;
}

/* Places of atoms in the frames of their hosts, and the bodies of one residue.
 */
static void to_local(const tsr_conformation *c, int host, const double xyz[3],
                     double local[3])
{
    const double(*x)[3] = (const double(*)[3])c->backbone[host];
    double frame[3][3];
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame_to_local(local, frame, x[TSR_CA], xyz);
}

static void cut_residue(const tsr_conformation *c, int r, tsr_guests *g)
{
    const tsr_file_residue *residue = &g->atoms->residue[r];
    int *part = g->body + residue->first_atom;
    int n = tsr_guest_cut(g->atoms, r, g->has_links[r], part);
    for (int k = 0; k < residue->n_atom; k++) {
        int i = residue->first_atom + k;
        const tsr_file_atom *a = &g->atoms->atom[i];
        to_local(c, g->host[i], a->xyz, g->local[i]);
        if (part[k] < 0)
            continue;
        part[k] += g->n_body;
        tsr_guest_body *body = &g->part[part[k]];
        body->host = g->host[i];
        body->turns = g->turns[i];
        double mass = tsr_atom_mass(a->z);
        body->n_atom++;
        for (int d = 0; d < 3; d++)
            body->xyz[d] = (body->mass * body->xyz[d] + mass * a->xyz[d]) /
                           (body->mass + mass);
        body->mass += mass;
    }
    for (int k = g->n_body; k < g->n_body + n; k++) {
        tsr_guest_body *body = &g->part[k];
        body->residue = r;
        to_local(c, body->host, body->xyz, body->local);
    }
    g->n_body += n;
}

/* Bodies in the order of their hosts. */
static int sort_bodies(tsr_guests *g)
{
    size_t n = (size_t)g->n_body;
    tsr_guest_body *sorted = calloc(n + 1, sizeof *sorted);
    int *at = calloc(n + 1, sizeof *at), n_sorted = 0, most = 0;
    if (sorted == NULL || at == NULL) {
        free(sorted);
        free(at);
        return 0;
    }
    for (int k = 0; k < g->n_body; k++)
        most = g->part[k].host > most ? g->part[k].host : most;
    for (int host = 0; host <= most; host++)
        for (int k = 0; k < g->n_body; k++)
            if (g->part[k].host == host) {
                at[k] = n_sorted;
                sorted[n_sorted++] = g->part[k];
            }
    for (int i = 0; i < g->atoms->n_atom; i++)
        g->body[i] = g->body[i] < 0 ? -1 : at[g->body[i]];
    free(g->part);
    free(at);
    g->part = sorted;
    return 1;
}

/* ---- the topology ---- */

/* The side chain with about as many atoms, whose contact distances a body
 * takes; with one body a residue, the whole residue. */
static int like_of(tsr_body_model model, int n_atom)
{
    static const tsr_amino two[] = {TSR_SER, TSR_VAL, TSR_LEU, TSR_GLU,
                                    TSR_HIS, TSR_PHE, TSR_TYR, TSR_TRP};
    static const tsr_amino one[] = {TSR_GLY, TSR_ALA, TSR_SER, TSR_VAL,
                                    TSR_LEU, TSR_GLU, TSR_HIS, TSR_PHE,
                                    TSR_TYR, TSR_TRP};
    const int is_two = model == TSR_BODIES_TWO;
    const tsr_amino *list = is_two ? two : one;
    size_t n = is_two ? sizeof two / sizeof *two : sizeof one / sizeof *one;
    int best = 0, least = 1000000, type[2];
    for (size_t k = 0; k < n; k++) {
        int has = tsr_amino_table[list[k]].n_atom - (is_two ? 5 : 0);
        int off = abs(has - n_atom);
        if (off >= least)
            continue;
        least = off;
        best = tsr_body_types(model, list[k], type) == 2 ? type[1] : type[0];
    }
    return best;
}

static int add_bodies(tsr_topology *t, tsr_conformation *c)
{
    const tsr_guests *g = t->guests;
    size_t n = (size_t)(t->n_body + g->n_body);
    tsr_body *body = calloc(n, sizeof *body);
    double(*xyz)[3] = calloc(n, sizeof *xyz);
    int n_body = 0, k = 0;
    if (body == NULL || xyz == NULL) {
        free(body);
        free(xyz);
        return 0;
    }
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        size_t own = (size_t)r->n_body;
        memcpy(body + n_body, t->body + r->first_body, own * sizeof *body);
        r->first_body = n_body;
        n_body += r->n_body;
        for (; k < g->n_body && g->part[k].host == i; k++) {
            body[n_body++] = (tsr_body){
                tsr_body_n_type(t->body_model) + k,
                like_of(t->body_model, g->part[k].n_atom), i, g->part[k].mass};
            t->total_mass += g->part[k].mass;
            r->n_body++, r->n_guest++;
        }
    }
    free(t->body);
    free(c->body);
    t->body = body;
    t->n_body = n_body;
    c->body = xyz;
    tsr_conformation_place_bodies(t, c, 0, t->n_residue);
    return 1;
}

/* ---- words ---- */

static void tell_group(const tsr_atoms *atoms, const tsr_residue *host,
                       const int *group, int first, tsr_log *log)
{
    const tsr_file_residue *residue = &atoms->residue[first];
    char more[48] = "";
    int n = 0;
    for (int r = first + 1; r < atoms->n_residue; r++)
        n += group[r] == first;
    if (n > 0)
        snprintf(more, sizeof more, " and %d more residue%s", n,
                 n == 1 ? "" : "s");
    tsr_info(log,
             "%s %s:%d%s: rigid with %s:%d (structure.bound says otherwise)",
             residue->name, residue->chain, residue->number, more, host->chain,
             host->number);
}

static void tell(const tsr_atoms *atoms, const int *host, const int *group,
                 const tsr_topology *t, tsr_log *log)
{
    enum { MOST = 12 };
    const int *n = t->guests->atoms->n_kind;
    int n_group = 0, n_own = 0;
    for (int i = 0; i < t->n_residue; i++)
        n_own += t->residue[i].link == TSR_LINK_SUGAR;
    tsr_info(log,
             "no amino acids: %d nucleotides, %d sugars, %d ions, %d buffer "
             "molecules and %d other residues: %d bodies with form factors of "
             "their own atoms%s",
             n[TSR_MOLECULE_NUCLEOTIDE], n[TSR_MOLECULE_SUGAR],
             n[TSR_MOLECULE_ION], n[TSR_MOLECULE_BUFFER],
             n[TSR_MOLECULE_OTHER] + n[TSR_MOLECULE_PROTEIN], t->guests->n_body,
             n_own > 0 ? "" : "; their own torsions do not move");
    if (n_own > 0)
        tsr_info(log,
                 "%d nucleotides are links of their strands, which turn where "
                 "structure.flexible says",
                 n_own);
    if (n[TSR_MOLECULE_BUFFER] > 0)
        tsr_warn(log,
                 "%d molecules that crystals are grown from (glycerol, "
                 "sulphate, ...) scatter with the rest; remove them where they "
                 "are not in the sample",
                 n[TSR_MOLECULE_BUFFER]);
    for (int r = 0; r < atoms->n_residue; r++)
        if (host[r] >= 0 && group[r] == r && !has_links_of(t, host[r], r) &&
            n_group++ < MOST)
            tell_group(atoms, &t->residue[host[r]], group, r, log);
    if (n_group > MOST)
        tsr_info(log, "and %d more, each rigid with what it touches",
                 n_group - MOST);
}

/* ---- the whole ---- */

static tsr_status make_guests(const tsr_atoms *atoms, const int *host,
                              const char *is_guest, int n_guest,
                              tsr_topology *t, tsr_conformation *c,
                              tsr_err *err)
{
    tsr_guests *g = calloc(1, sizeof *g);
    int is_good = g != NULL && copy_atoms(t, atoms, host, is_guest, n_guest, g);
    for (int r = 0; is_good && r < n_guest; r++)
        cut_residue(c, r, g);
    is_good = is_good && sort_bodies(g);
    if (is_good)
        t->guests = g;
    if (is_good && add_bodies(t, c))
        return TSR_OK;
    t->guests = NULL;
    tsr_guests_free(g);
    return tsr_fail(err, TSR_E_NOMEM, "no memory for ligands");
}

tsr_status tsr_guests_attach(const tsr_structure *structure,
                             const tsr_atoms *atoms, const tsr_strings *bound,
                             tsr_log *log, tsr_topology *topology,
                             tsr_conformation *conformation, tsr_err *err)
{
    size_t n = (size_t)atoms->n_residue + 1;
    int *host = calloc(n, sizeof *host), *group = calloc(n, sizeof *group);
    char *is_guest = calloc((size_t)atoms->n_atom + 1, 1);
    int n_guest = 0;
    tsr_status status =
        host == NULL || group == NULL || is_guest == NULL
            ? tsr_fail(err, TSR_E_NOMEM, "no memory for ligands")
            : tsr_guest_hosts(structure, atoms, bound, topology, host, group,
                              is_guest, &n_guest, err);
    if (status == TSR_OK && n_guest > 0) {
        status = make_guests(atoms, host, is_guest, n_guest, topology,
                             conformation, err);
        if (status == TSR_OK)
            tell(atoms, host, group, topology, log);
    }
    free(host);
    free(group);
    free(is_guest);
    return status;
}
