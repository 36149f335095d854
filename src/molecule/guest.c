/* Makes the guests of a topology: which residues of a file are guests, which of
 * them form a group, the host of each group, and the bodies of each residue. */
#include "molecule/guest.h"

#include "molecule/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tsr_guest_body *tsr_guests_body(const tsr_topology *t, int b)
{
    int first = tsr_body_n_type(t->body_model);
    return &t->guests->part[t->body[b].type - first];
}

int tsr_guests_n_atom(const tsr_guests *guests)
{
    return guests != NULL ? guests->atoms->n_atom : 0;
}

int tsr_guests_n_residue(const tsr_guests *guests)
{
    return guests != NULL ? guests->atoms->n_residue : 0;
}

void tsr_guests_place(const tsr_topology *t, const tsr_conformation *c,
                      double (*xyz)[3])
{
    const tsr_guests *g = t->guests;
    double frame[3][3] = {{0.0}};
    for (int i = 0, last = -1; i < tsr_guests_n_atom(g); i++) {
        const int host = g->host[i];
        const double(*x)[3] = (const double(*)[3])c->backbone[host];
        double local[3];
        if (host != last)
            tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
        last = host;
        tsr_vec3_copy(local, g->local[i]);
        if (g->with_base[i]) {
            tsr_motion turn;
            tsr_conformation_base(t, c, host, &turn);
            tsr_motion_apply(&turn, local);
        }
        tsr_frame_to_global(xyz[i], frame, x[TSR_CA], local);
    }
}

/* ---- nucleotides with links ---- */

/* Returns 1 if residue r of tsr_atoms is a nucleotide whose links are residues
 * of the topology. host: the host of r. */
static int has_links_of(const tsr_topology *t, int host, int r)
{
    return t->residue[host].link != TSR_LINK_NONE &&
           t->residue[host].nucleotide == r;
}

/* The link with which a part (tsr_nucleic_part) of a nucleotide is rigid.
 * sugar: its sugar link. If the nucleotide has no phosphate link, its first
 * link replaces it. *turns: 1 if the part turns with the base. */
static int link_of(const tsr_topology *t, int sugar, int part, int *turns)
{
    const tsr_residue *residue = t->residue;
    const int before = part < TSR_PART_SUGAR ? TSR_PART_SUGAR - part : 0;
    const int i = sugar - before;
    *turns = part == TSR_PART_BASE && t->base[sugar].exists;
    return i >= 0 && residue[i].nucleotide == residue[sugar].nucleotide
               ? i
               : sugar - 1;
}

static const double contact_ang = 4.5; /* largest distance of a contact */

/* ---- which residues are guests ---- */

/* Data of the whole search. */
typedef struct {
    const tsr_structure *structure;
    const tsr_atoms *atoms; /* of the file */
    tsr_topology *t;
    int *known; /* [atoms->n_residue] residue in the topology; for a nucleotide
                   with links its sugar link; -1: a guest */
    int *group; /* [atoms->n_residue] the first residue of its group */
    int *host;  /* [atoms->n_residue] host, a residue of the topology; for a
                   nucleotide with links its sugar link. -1: residues of the
                   protein, and guests whose host is not known yet */
    char *guest_mark; /* [atoms->n_atom] 1: atom of a guest; 2: also turns with
                         the base of its host. For a modified residue only atoms
                         that its parent lacks */
    int n_guest;      /* residues with a host */
    int *with_base; /* [atoms->n_residue] 1: turns with the base of the host */
    tsr_cell_list *cells;
    int *contact, *part;  /* [atoms->n_atom] scratch */
    int *count, *by_unit; /* [t->n_residue + 1] contacts of one group */
} search;

/* Finds the atoms in contact with atom i, into s->contact. Returns their
 * number. */
static int find_contacts(search *s, int i)
{
    return tsr_cell_list_within(s->cells, s->atoms->atom[i].xyz, contact_ang,
                                s->atoms->n_atom, s->contact);
}

static int is_same_residue(const tsr_file_residue *a,
                           const tsr_residue_record *b)
{
    return a->number == b->number && a->insertion == b->insertion &&
           strcmp(a->name, b->file_name) == 0 &&
           strcmp(a->chain, b->chain) == 0;
}

/* Sets s->known, and returns the number of guests. Both lists are mostly in the
 * same order, so each search continues from the latest match. */
static int count_guests(search *s)
{
    int n_guest = 0, n = s->structure->n_residue, last = n - 1;
    const int n_amino = s->t->n_residue - s->t->n_link;
    for (int r = 0; r < s->atoms->n_residue; r++)
        s->known[r] = -1;
    for (int i = n_amino; i < s->t->n_residue; i++)
        if (s->t->residue[i].link == TSR_LINK_SUGAR)
            s->known[s->t->residue[i].nucleotide] = i;
    for (int r = 0; r < s->atoms->n_residue; r++) {
        for (int k = 1; k <= n && s->known[r] < 0; k++) {
            int i = (last + k) % n;
            if (is_same_residue(&s->atoms->residue[r],
                                &s->structure->residue[i]))
                s->known[r] = last = i;
        }
        n_guest += s->known[r] < 0;
    }
    return n_guest;
}

/* ---- groups ---- */

static int group_of(const search *s, int r)
{
    while (s->group[r] != r)
        r = s->group[r];
    return r;
}

static int are_joined(const search *s, int i, int k)
{
    const tsr_file_atom *a = &s->atoms->atom[i], *b = &s->atoms->atom[k];
    return (s->atoms->residue[a->residue].kind == TSR_MOLECULE_NUCLEOTIDE &&
            s->atoms->residue[b->residue].kind == TSR_MOLECULE_NUCLEOTIDE) ||
           tsr_atoms_are_bonded(s->atoms, i, k);
}

static void join_groups(search *s)
{
    for (int r = 0; r < s->atoms->n_residue; r++)
        s->group[r] = r;
    for (int i = 0; i < s->atoms->n_atom; i++) {
        int r = s->atoms->atom[i].residue;
        if (s->known[r] >= 0)
            continue;
        const int n = find_contacts(s, i);
        for (int k = 0; k < n; k++) {
            int other = s->atoms->atom[s->contact[k]].residue;
            if (s->known[other] >= 0 || !are_joined(s, i, s->contact[k]))
                continue;
            int a = group_of(s, r), b = group_of(s, other);
            s->group[a > b ? a : b] = a > b ? b : a;
        }
    }
    for (int r = 0; r < s->atoms->n_residue; r++)
        s->group[r] = group_of(s, r);
}

/* ---- hosts ---- */

/* The same for one atom. */
static int count_of_atom(search *s, int i)
{
    int sum = 0;
    if (s->atoms->atom[i].z == 1)
        return 0;
    const int n = find_contacts(s, i);
    for (int k = 0; k < n; k++) {
        const tsr_file_atom *b = &s->atoms->atom[s->contact[k]];
        int residue = s->known[b->residue];
        int host = residue >= 0 ? residue : s->host[b->residue];
        if (host < 0 || b->z == 1)
            continue;
        s->count[host]++;
        sum++;
    }
    return sum;
}

/* Counts the contacts of a group with residues of the topology and with guests
 * whose host is known, in s->count by residue or host. Returns their number. */
static int count_contacts(search *s, int group)
{
    int sum = 0;
    memset(s->count, 0, (size_t)s->t->n_residue * sizeof *s->count);
    for (int r = group; r < s->atoms->n_residue; r++) {
        const tsr_file_residue *residue = &s->atoms->residue[r];
        for (int k = 0; s->group[r] == group && k < residue->n_atom; k++)
            sum += count_of_atom(s, residue->first_atom + k);
    }
    return sum;
}

/* The residue with most contacts, in the rigid unit with most contacts. A
 * flexible residue is a unit of its own. */
static int best_host(search *s)
{
    const tsr_residue *residue = s->t->residue;
    int n = s->t->n_residue, best = -1, most = 0;
    memset(s->by_unit, 0, ((size_t)n + 1) * sizeof *s->by_unit);
    for (int i = 0; i < n; i++)
        if (residue[i].unit >= 0)
            s->by_unit[residue[i].unit] += s->count[i];
    for (int i = 0; i < n; i++) {
        int sum =
            residue[i].unit >= 0 ? s->by_unit[residue[i].unit] : s->count[i];
        if (s->count[i] > 0 &&
            (sum > most || (sum == most && s->count[i] > s->count[best])))
            most = sum, best = i;
    }
    return best;
}

static int nearest_host(const search *s, int group)
{
    double least = HUGE_VAL;
    int best = 0;
    for (int i = 0; i < s->atoms->n_atom; i++) {
        const tsr_file_atom *a = &s->atoms->atom[i];
        if (s->known[a->residue] >= 0 || s->group[a->residue] != group)
            continue;
        for (int k = 0; k < s->atoms->n_atom; k++) {
            int residue = s->known[s->atoms->atom[k].residue];
            double d2 = residue >= 0
                            ? tsr_vec3_distance2(a->xyz, s->atoms->atom[k].xyz)
                            : least;
            if (d2 < least)
                least = d2, best = residue;
        }
    }
    return best;
}

static void set_host(search *s, int group, int host, int turns)
{
    for (int r = 0; r < s->atoms->n_residue; r++)
        if (s->known[r] < 0 && s->group[r] == group)
            s->host[r] = host, s->with_base[r] = turns;
}

/* Finds the atom of a strand to which a group is bonded; -1: none. If there are
 * several, the shortest bond relative to the covalent radii counts. */
static int bonded_atom(search *s, int group)
{
    const tsr_file_atom *atom = s->atoms->atom;
    double least = HUGE_VAL;
    int best = -1;
    for (int i = 0; i < s->atoms->n_atom; i++) {
        if (s->group[atom[i].residue] != group || atom[i].z == 1)
            continue;
        const int n = find_contacts(s, i);
        for (int k = 0; k < n; k++) {
            const int other = s->contact[k],
                      residue = s->known[atom[other].residue];
            if (residue < 0 || s->t->residue[residue].link == TSR_LINK_NONE ||
                atom[other].z == 1 || !tsr_atoms_are_bonded(s->atoms, i, other))
                continue;
            const double d = tsr_vec3_distance(atom[i].xyz, atom[other].xyz) -
                             tsr_atom_covalent_radius(atom[i].z) -
                             tsr_atom_covalent_radius(atom[other].z);
            if (d < least)
                least = d, best = other;
        }
    }
    return best;
}

/* A group bonded to a strand is attached to that link or base, whatever else it
 * touches. Examples are a dye, or a methyl group on a phosphate. */
static void find_bonded(search *s)
{
    for (int r = 0; r < s->atoms->n_residue; r++) {
        if (s->known[r] >= 0 || s->group[r] != r || s->host[r] >= 0)
            continue;
        const int i = bonded_atom(s, r);
        if (i < 0)
            continue;
        const int own = s->atoms->atom[i].residue;
        int turns;
        tsr_nucleic_parts(s->atoms, own, s->part);
        const int host =
            link_of(s->t, s->known[own],
                    s->part[i - s->atoms->residue[own].first_atom], &turns);
        set_host(s, r, host, turns);
    }
}

/* Groups get hosts in descending order of their contacts with residues whose
 * host is known. So a magnesium ion on DNA gets the host of the DNA. */
static void find_hosts(search *s)
{
    for (;;) {
        int best = -1, most = -1;
        for (int r = 0; r < s->atoms->n_residue; r++) {
            if (s->known[r] >= 0 || s->group[r] != r || s->host[r] >= 0)
                continue;
            int n = count_contacts(s, r);
            if (n > most)
                most = n, best = r;
        }
        if (best < 0)
            return;
        count_contacts(s, best);
        set_host(s, best, most > 0 ? best_host(s) : nearest_host(s, best), 0);
    }
}

/* ---- hosts chosen by the user ---- */

static const char *trim(char *text)
{
    while (*text == ' ')
        text++;
    for (size_t n = strlen(text); n > 0 && text[n - 1] == ' ';)
        text[--n] = '\0';
    return text;
}

/* Attaches the guests named "I", "I:201" or "I:5-20" to a host, each with its
 * whole group. Returns the number of residues found. */
static int set_hosts(search *s, const char *guest, int host)
{
    tsr_range range;
    int n_found = 0;
    if (!tsr_range_read(guest, &range))
        return 0;
    for (int r = 0; r < s->atoms->n_residue; r++) {
        const tsr_file_residue *residue = &s->atoms->residue[r];
        if (s->known[r] >= 0 || strcmp(residue->chain, range.chain) != 0 ||
            residue->number < range.first || residue->number > range.last)
            continue;
        n_found++;
        set_host(s, s->group[r], host, 0);
    }
    return n_found;
}

static tsr_status read_bound(search *s, int k, const char *text, int *mark,
                             tsr_err *err)
{
    char copy[96];
    int host = -1;
    snprintf(copy, sizeof copy, "%s", text);
    char *equals = strchr(copy, '=');
    if (equals == NULL || strlen(text) >= sizeof copy)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.attach.%d: '%s' does not name a residue to "
                        "attach to, as \"I = A:45\"",
                        k, text);
    *equals = '\0';
    memset(mark, 0, (size_t)s->t->n_residue * sizeof *mark);
    TSR_TRY(tsr_wrap(err,
                     tsr_range_mark(trim(equals + 1), s->t->n_residue,
                                    s->t->residue, mark, err),
                     "structure.attach.%d", k));
    for (int i = 0; i < s->t->n_residue && host < 0; i++)
        host = mark[i] ? i : -1;
    return set_hosts(s, trim(copy), host) > 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_CONFIG,
                          "structure.attach.%d: '%s' matches no nucleotide, "
                          "ligand or ion of the file; give a chain, as I, or "
                          "residues, as I:201 or I:5-20",
                          k, trim(copy));
}

/* ---- the whole search ---- */

/* Marks the atoms of a modified residue that its parent lacks, and returns
 * their number. Surplus atoms of a standard residue are errors of the file, and
 * are left out. */
static int mark_extra_atoms(search *s, int r)
{
    const tsr_residue_record *record = &s->structure->residue[s->known[r]];
    const tsr_amino parent = (tsr_amino)tsr_amino_by_three(record->name);
    const tsr_file_residue *residue = &s->atoms->residue[r];
    const int is_modified =
        record->is_cut && tsr_amino_by_three(residue->name) < 0;
    int n = 0;
    for (int k = 0; is_modified && k < residue->n_atom; k++) {
        const tsr_file_atom *a = &s->atoms->atom[residue->first_atom + k];
        if (a->z == 1 || tsr_is_hydrogen_name(a->name) ||
            tsr_amino_atom_name(parent, a->name) != NULL)
            continue;
        s->guest_mark[residue->first_atom + k] = 1;
        n++;
    }
    return n;
}

static void mark_atoms(search *s)
{
    for (int r = 0; r < s->atoms->n_residue; r++) {
        const tsr_file_residue *residue = &s->atoms->residue[r];
        const int is_link = s->known[r] >= s->t->n_residue - s->t->n_link;
        if (s->known[r] < 0 || is_link)
            memset(s->guest_mark + residue->first_atom, 1 + s->with_base[r],
                   (size_t)residue->n_atom);
        if (is_link || (s->known[r] >= 0 && mark_extra_atoms(s, r) > 0))
            s->host[r] = s->known[r];
        s->n_guest += s->host[r] >= 0;
    }
}

static tsr_status find_guests(search *s, const tsr_strings *bound,
                              tsr_pool *pool, tsr_err *err)
{
    const int n_residue = s->atoms->n_residue, n_atom = s->atoms->n_atom;
    tsr_pool_array(pool, s->known, n_residue);
    tsr_pool_array(pool, s->group, n_residue);
    tsr_pool_array(pool, s->host, n_residue);
    tsr_pool_array(pool, s->with_base, n_residue);
    tsr_pool_array(pool, s->guest_mark, n_atom);
    tsr_pool_array(pool, s->contact, n_atom);
    tsr_pool_array(pool, s->part, n_atom);
    tsr_pool_array(pool, s->count, s->t->n_residue + 1);
    tsr_pool_array(pool, s->by_unit, s->t->n_residue + 1);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int r = 0; r < n_residue; r++)
        s->host[r] = -1, s->group[r] = r;
    TSR_TRY(
        tsr_cell_list_of_atoms(pool, s->atoms, contact_ang, &s->cells, err));
    const int has_guests = count_guests(s) > 0;
    if (has_guests)
        join_groups(s);
    for (int k = 0; bound != NULL && k < bound->n; k++)
        TSR_TRY(read_bound(s, k, bound->item[k], s->by_unit, err));
    if (has_guests && s->t->n_link > 0)
        find_bonded(s);
    if (has_guests)
        find_hosts(s);
    mark_atoms(s);
    return TSR_OK;
}

/* ---- bodies ---- */

/* Largest allowed distance of an atom from the centre of its body, Angstrom. */
static const double farthest = 4.0;

/* Mass-weighted centre of the atoms of part k. */
static void centre_of(const tsr_file_atom *atom, int n, const int *part, int k,
                      double centre[3])
{
    double mass = 0.0;
    centre[0] = centre[1] = centre[2] = 0.0;
    for (int i = 0; i < n; i++)
        if (part[i] == k) {
            double m = tsr_atom_mass(atom[i].z);
            mass += m;
            for (int d = 0; d < 3; d++)
                centre[d] += m * atom[i].xyz[d];
        }
    for (int d = 0; d < 3; d++)
        centre[d] /= mass;
}

static int is_small(const tsr_file_atom *atom, int n, const int *part, int k)
{
    double centre[3];
    centre_of(atom, n, part, k, centre);
    for (int i = 0; i < n; i++)
        if (part[i] == k &&
            tsr_vec3_distance2(atom[i].xyz, centre) > farthest * farthest)
            return 0;
    return 1;
}

/* Splits part k: the two atoms that are farthest apart are seeds, and every
 * other atom joins the nearer seed, in part k or in part `next`. */
static void split_part(const tsr_file_atom *atom, int n, int *part, int k,
                       int next)
{
    double most = -1.0;
    int end[2] = {0, 0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i && part[i] == k; j++) {
            double d2 = part[j] == k
                            ? tsr_vec3_distance2(atom[i].xyz, atom[j].xyz)
                            : -1.0;
            if (d2 > most)
                most = d2, end[0] = j, end[1] = i;
        }
    for (int i = 0; i < n; i++)
        if (part[i] == k &&
            tsr_vec3_distance2(atom[i].xyz, atom[end[1]].xyz) <
                tsr_vec3_distance2(atom[i].xyz, atom[end[0]].xyz))
            part[i] = next;
}

/* Renumbers the parts that have atoms from 0 without gaps. */
static int number_parts(int n, int *part)
{
    int number[] = {-1, -1, -1, -1}, n_part = 0;
    for (int i = 0; i < n; i++)
        if (part[i] >= 0) {
            if (number[part[i]] < 0)
                number[part[i]] = n_part++;
            part[i] = number[part[i]];
        }
    return n_part;
}

/* Divides residue r into bodies: part [n_atom of the residue] out, from 0; -1
 * for hydrogens. is_link: a nucleotide with links, whose methylene is a part of
 * its own. Returns the number of bodies. */
static int split_into_bodies(const tsr_atoms *atoms, int r, int is_link,
                             int *part)
{
    const tsr_file_residue *residue = &atoms->residue[r];
    const tsr_file_atom *atom = atoms->atom + residue->first_atom;
    const int n = residue->n_atom;
    memset(part, 0, (size_t)n * sizeof *part);
    if (residue->kind == TSR_MOLECULE_NUCLEOTIDE)
        tsr_nucleic_parts(atoms, r, part);
    for (int i = 0; i < n; i++)
        part[i] = atom[i].z == 1                              ? -1
                  : !is_link && part[i] == TSR_PART_METHYLENE ? TSR_PART_SUGAR
                                                              : part[i];
    int n_part = number_parts(n, part);
    for (int k = 0; k < n_part; k++)
        while (!is_small(atom, n, part, k))
            split_part(atom, n, part, k, n_part++);
    return n_part;
}

/* ---- the guests ---- */

static tsr_status copy_atoms(const search *s, tsr_guests *g, tsr_err *err)
{
    tsr_topology *t = s->t;
    const tsr_atoms *from = s->atoms;
    const int *host = s->host;
    const char *guest_mark = s->guest_mark;
    const int n_guest = s->n_guest;
    int n = 1;
    tsr_atoms *to;
    for (int i = 0; i < from->n_atom; i++)
        n += guest_mark[i] != 0;
    tsr_pool_array(&t->pool, to, 1);
    tsr_pool_array(&t->pool, g->file_atom, n);
    tsr_pool_array(&t->pool, g->body, n);
    tsr_pool_array(&t->pool, g->host, n);
    tsr_pool_array(&t->pool, g->with_base, n);
    tsr_pool_array(&t->pool, g->has_links, n_guest);
    tsr_pool_array(&t->pool, g->local, n);
    tsr_pool_array(&t->pool, g->part, n);
    TSR_TRY(tsr_pool_check(&t->pool, err));
    g->atoms = to;
    tsr_pool_array(&t->pool, to->atom, n);
    tsr_pool_array(&t->pool, to->residue, n_guest);
    TSR_TRY(tsr_pool_check(&t->pool, err));
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
        int *part = g->with_base + to->n_atom; /* first holds the parts; every
                                                  atom of r is a guest then */
        if (has_links)
            tsr_nucleic_parts(from, r, part);
        for (int k = 0; k < residue->n_atom; k++) {
            int i = residue->first_atom + k;
            if (!guest_mark[i])
                continue;
            g->file_atom[to->n_atom] = i;
            g->host[to->n_atom] = host[r];
            if (has_links)
                g->host[to->n_atom] = link_of(t, host[r], part[k], &part[k]);
            else
                g->with_base[to->n_atom] = guest_mark[i] == 2;
            to->atom[to->n_atom] = from->atom[i];
            to->atom[to->n_atom++].residue = to->n_residue;
            own->n_atom++;
        }
        to->n_residue++;
    }
    return TSR_OK;
}

/* Position in the frame of the host. */
static void to_local(const tsr_conformation *c, int host, const double xyz[3],
                     double local[3])
{
    const double(*x)[3] = (const double(*)[3])c->backbone[host];
    double frame[3][3];
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame_to_local(local, frame, x[TSR_CA], xyz);
}

static void add_residue_bodies(const tsr_conformation *c, int r, tsr_guests *g)
{
    const tsr_file_residue *residue = &g->atoms->residue[r];
    int *part = g->body + residue->first_atom;
    int n = split_into_bodies(g->atoms, r, g->has_links[r], part);
    for (int k = 0; k < residue->n_atom; k++) {
        int i = residue->first_atom + k;
        const tsr_file_atom *a = &g->atoms->atom[i];
        to_local(c, g->host[i], a->xyz, g->local[i]);
        if (part[k] < 0)
            continue;
        part[k] += g->n_body;
        tsr_guest_body *body = &g->part[part[k]];
        body->host = g->host[i];
        body->with_base = g->with_base[i];
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

/* Sorts the bodies by host. */
static tsr_status sort_bodies(tsr_pool *pool, tsr_guests *g, tsr_err *err)
{
    tsr_guest_body *sorted;
    int *at, n = 0, most = 0;
    tsr_pool_array(pool, sorted, g->n_body + 1);
    tsr_pool_array(pool, at, g->n_body + 1);
    TSR_TRY(tsr_pool_check(pool, err));
    for (int k = 0; k < g->n_body; k++)
        most = g->part[k].host > most ? g->part[k].host : most;
    for (int host = 0; host <= most; host++)
        for (int k = 0; k < g->n_body; k++)
            if (g->part[k].host == host) {
                at[k] = n;
                sorted[n++] = g->part[k];
            }
    for (int i = 0; i < g->atoms->n_atom; i++)
        g->body[i] = g->body[i] < 0 ? -1 : at[g->body[i]];
    g->part = sorted;
    return TSR_OK;
}

/* ---- bodies of the topology ---- */

/* Body type whose contact distances a guest body gets: that of the side chain
 * with the most similar number of atoms, or of the whole residue in the
 * one-body model. */
static int contact_type_of(tsr_body_model model, int n_atom)
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

static tsr_status add_bodies(tsr_topology *t, tsr_conformation *c, tsr_err *err)
{
    const tsr_guests *g = t->guests;
    const tsr_body *old = t->body;
    int n_body = 0, k = 0;
    tsr_pool_array(&t->pool, t->body, t->n_body + g->n_body);
    tsr_pool_array(&c->pool, c->body, t->n_body + g->n_body);
    TSR_TRY(tsr_pool_check(&t->pool, err));
    TSR_TRY(tsr_pool_check(&c->pool, err));
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        memcpy(t->body + n_body, old + r->first_body,
               (size_t)r->n_body * sizeof *old);
        r->first_body = n_body;
        n_body += r->n_body;
        for (; k < g->n_body && g->part[k].host == i; k++) {
            t->body[n_body++] =
                (tsr_body){tsr_body_n_type(t->body_model) + k,
                           contact_type_of(t->body_model, g->part[k].n_atom), i,
                           g->part[k].mass};
            t->total_mass += g->part[k].mass;
            r->n_body++, r->n_guest++;
        }
    }
    t->n_body = n_body;
    tsr_conformation_place_bodies(t, c, 0, t->n_residue);
    return TSR_OK;
}

/* ---- messages ---- */

static void log_group(const tsr_atoms *atoms, const tsr_residue *host,
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
             "%s %s:%d%s: rigid with %s:%d (structure.attach changes this)",
             residue->name, residue->chain, residue->number, more, host->chain,
             host->number);
}

static void log_guests(const search *s, tsr_log *log)
{
    const tsr_atoms *atoms = s->atoms;
    const tsr_topology *t = s->t;
    const int *host = s->host, *group = s->group;
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
                 "%d nucleotides belong to flexible strands, whose torsions "
                 "move in the ranges of structure.flexible",
                 n_own);
    if (n[TSR_MOLECULE_BUFFER] > 0)
        tsr_warn(log,
                 "%d molecules of crystallisation (glycerol, sulphate, ...) "
                 "are included in the scattering; remove them if they are not "
                 "in the sample",
                 n[TSR_MOLECULE_BUFFER]);
    for (int r = 0; r < atoms->n_residue; r++)
        if (host[r] >= 0 && group[r] == r && !has_links_of(t, host[r], r) &&
            n_group++ < MOST)
            log_group(atoms, &t->residue[host[r]], group, r, log);
    if (n_group > MOST)
        tsr_info(log, "and %d more, each rigid with the residue in contact",
                 n_group - MOST);
}

static tsr_status make_guests(const search *s, tsr_conformation *c,
                              tsr_err *err)
{
    tsr_topology *t = s->t;
    tsr_guests *g = tsr_pool_new(&t->pool, 1, sizeof *g);
    TSR_TRY(tsr_allocated(g, err));
    TSR_TRY(copy_atoms(s, g, err));
    for (int r = 0; r < s->n_guest; r++)
        add_residue_bodies(c, r, g);
    TSR_TRY(sort_bodies(&t->pool, g, err));
    t->guests = g;
    return add_bodies(t, c, err);
}

tsr_status tsr_guests_attach(const tsr_structure *structure,
                             const tsr_atoms *atoms, const tsr_strings *bound,
                             tsr_log *log, tsr_topology *t, tsr_conformation *c,
                             tsr_err *err)
{
    tsr_pool pool = {0};
    search s = {.structure = structure, .atoms = atoms, .t = t};
    tsr_status status = find_guests(&s, bound, &pool, err);
    if (status == TSR_OK && s.n_guest > 0) {
        status = make_guests(&s, c, err);
        if (status == TSR_OK)
            log_guests(&s, log);
    }
    tsr_pool_clear(&pool);
    return status;
}
