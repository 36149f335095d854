/* Who of a file is a guest, who rides together, and on whom. */
#include "molecule/guest.h"

#include "core/vec3.h"
#include "molecule/cell_list.h"
#include "molecule/nucleic.h"
#include "molecule/parent.h"
#include "molecule/range.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double contact_ang = 4.5;

/* ---- who is a guest ---- */

/* What all this is found with. */
typedef struct {
    const tsr_structure *structure;
    const tsr_atoms *atoms; /* of the file */
    tsr_topology *t;
    int *of;    /* [atoms->n_residue] residue of the structure; -1: a guest */
    int *group; /* [atoms->n_residue] of guests: the first of its group */
    int *host;  /* [atoms->n_residue] of guests; -1: not known yet */
    int *turns; /* [atoms->n_residue] 1: with the base of the host */
    double (*xyz)[3]; /* [atoms->n_atom] */
    tsr_cell_list *cells;
    int *near, *part;     /* [atoms->n_atom] scratch */
    int *count, *by_unit; /* [t->n_residue + 1] contacts, of one group */
} search;

static int is_same(const tsr_file_residue *a, const tsr_residue_record *b)
{
    return a->number == b->number && a->insertion == b->insertion &&
           strcmp(a->name, b->file_name) == 0 &&
           strcmp(a->chain, b->chain) == 0;
}

/* Both lists are largely in one order, so the search goes on from the last. */
static int count_guests(search *s)
{
    int n_guest = 0, n = s->structure->n_residue, last = n - 1;
    const int n_amino = s->t->n_residue - s->t->n_link;
    for (int r = 0; r < s->atoms->n_residue; r++)
        s->of[r] = -1;
    for (int i = n_amino; i < s->t->n_residue; i++)
        if (s->t->residue[i].link == TSR_LINK_SUGAR)
            s->of[s->t->residue[i].nucleotide] = i;
    for (int r = 0; r < s->atoms->n_residue; r++) {
        for (int k = 1; k <= n && s->of[r] < 0; k++) {
            int i = (last + k) % n;
            if (is_same(&s->atoms->residue[r], &s->structure->residue[i]))
                s->of[r] = last = i;
        }
        n_guest += s->of[r] < 0;
    }
    return n_guest;
}

/* ---- who rides together ---- */

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
        if (s->of[r] >= 0)
            continue;
        int n = tsr_cell_list_near(s->cells, s->xyz[i], contact_ang,
                                   s->atoms->n_atom, s->near);
        for (int k = 0; k < n; k++) {
            int other = s->atoms->atom[s->near[k]].residue;
            if (s->of[other] >= 0 || !are_joined(s, i, s->near[k]))
                continue;
            int a = group_of(s, r), b = group_of(s, other);
            s->group[a > b ? a : b] = a > b ? b : a;
        }
    }
    for (int r = 0; r < s->atoms->n_residue; r++)
        s->group[r] = group_of(s, r);
}

/* ---- who is the host ---- */

static int count_of_atom(search *s, int i)
{
    int sum = 0;
    if (s->atoms->atom[i].z == 1)
        return 0;
    int n = tsr_cell_list_near(s->cells, s->xyz[i], contact_ang,
                               s->atoms->n_atom, s->near);
    for (int k = 0; k < n; k++) {
        const tsr_file_atom *b = &s->atoms->atom[s->near[k]];
        int of = s->of[b->residue];
        int host = of >= 0 ? of : s->host[b->residue];
        if (host < 0 || b->z == 1)
            continue;
        s->count[host]++;
        sum++;
    }
    return sum;
}

/* Contacts of a group with residues of the protein, and with guests whose host
 * is known. Returns how many. */
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

/* The residue with most contacts in the unit with most. A flexible residue is
 * a unit of its own. */
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
        if (s->of[a->residue] >= 0 || s->group[a->residue] != group)
            continue;
        for (int k = 0; k < s->atoms->n_atom; k++) {
            int of = s->of[s->atoms->atom[k].residue];
            double d2 = of >= 0 ? tsr_vec3_distance2(a->xyz, s->xyz[k]) : least;
            if (d2 < least)
                least = d2, best = of;
        }
    }
    return best;
}

static void set_host(search *s, int group, int host, int turns)
{
    for (int r = 0; r < s->atoms->n_residue; r++)
        if (s->of[r] < 0 && s->group[r] == group)
            s->host[r] = host, s->turns[r] = turns;
}

/* The atom of a strand that a group is bonded to: of several the one whose bond
 * is the tightest, measured by the covalent radii; -1: none. */
static int bonded_atom(search *s, int group)
{
    const tsr_file_atom *atom = s->atoms->atom;
    double least = HUGE_VAL;
    int best = -1;
    for (int i = 0; i < s->atoms->n_atom; i++) {
        if (s->group[atom[i].residue] != group || atom[i].z == 1)
            continue;
        const int n = tsr_cell_list_near(s->cells, s->xyz[i], contact_ang,
                                         s->atoms->n_atom, s->near);
        for (int k = 0; k < n; k++) {
            const int other = s->near[k], of = s->of[atom[other].residue];
            if (of < 0 || s->t->residue[of].link == TSR_LINK_NONE ||
                atom[other].z == 1 || !tsr_atoms_are_bonded(s->atoms, i, other))
                continue;
            const double d = tsr_vec3_distance(s->xyz[i], s->xyz[other]) -
                             tsr_atom_covalent_radius(atom[i].z) -
                             tsr_atom_covalent_radius(atom[other].z);
            if (d < least)
                least = d, best = other;
        }
    }
    return best;
}

/* What is bonded to a strand goes with the link there, or its base, whatever
 * else it touches: a dye, a methyl group on a phosphate. */
static void find_bonded(search *s)
{
    for (int r = 0; r < s->atoms->n_residue; r++) {
        if (s->of[r] >= 0 || s->group[r] != r || s->host[r] >= 0)
            continue;
        const int i = bonded_atom(s, r);
        if (i < 0)
            continue;
        const int own = s->atoms->atom[i].residue;
        int turns;
        tsr_nucleic_parts(s->atoms, own, s->part);
        const int host = tsr_guest_link_of(
            s->t, s->of[own], s->part[i - s->atoms->residue[own].first_atom],
            &turns);
        set_host(s, r, host, turns);
    }
}

/* The group that touches most of what has its place comes first: a magnesium
 * on DNA rides as the DNA does. */
static void find_hosts(search *s)
{
    for (;;) {
        int best = -1, most = -1;
        for (int r = 0; r < s->atoms->n_residue; r++) {
            if (s->of[r] >= 0 || s->group[r] != r || s->host[r] >= 0)
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

/* ---- who is told to ride where ---- */

static const char *trim(char *text)
{
    while (*text == ' ')
        text++;
    for (size_t n = strlen(text); n > 0 && text[n - 1] == ' ';)
        text[--n] = '\0';
    return text;
}

/* "I", "I:201", "I:5-20"; a residue there takes its whole group along. */
static int bind(search *s, const char *guest, int host)
{
    char chain[16];
    const char *colon = strchr(guest, ':');
    int first = -1000000, last = 1000000, n_read = 0, n_found = 0;
    size_t n = colon != NULL ? (size_t)(colon - guest) : strlen(guest);
    snprintf(chain, sizeof chain, "%.*s", (int)n, guest);
    if (colon != NULL) {
        int n_number =
            sscanf(colon + 1, "%d%n-%d%n", &first, &n_read, &last, &n_read);
        last = n_number == 1 ? first : last;
        if (n_number < 1 || colon[1 + n_read] != '\0')
            return 0;
    }
    for (int r = 0; r < s->atoms->n_residue; r++) {
        const tsr_file_residue *residue = &s->atoms->residue[r];
        if (s->of[r] >= 0 || strcmp(residue->chain, chain) != 0 ||
            residue->number < first || residue->number > last)
            continue;
        n_found++;
        set_host(s, s->group[r], host, 0);
    }
    return n_found;
}

static tsr_status bind_one(search *s, int k, const char *text, int *mark,
                           tsr_err *err)
{
    char copy[96];
    int host = -1;
    snprintf(copy, sizeof copy, "%s", text);
    char *equals = strchr(copy, '=');
    if (equals == NULL || strlen(text) >= sizeof copy)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.bound.%d: '%s' does not say who rides on "
                        "whom, as \"I = A:45\"",
                        k, text);
    *equals = '\0';
    memset(mark, 0, (size_t)s->t->n_residue * sizeof *mark);
    tsr_status status = tsr_range_mark(trim(equals + 1), s->t->n_residue,
                                       s->t->residue, 1, mark, err);
    if (status != TSR_OK)
        return tsr_wrap(err, status, "structure.bound.%d", k);
    for (int i = 0; i < s->t->n_residue && host < 0; i++)
        host = mark[i] ? i : -1;
    return bind(s, trim(copy), host) > 0
               ? TSR_OK
               : tsr_fail(err, TSR_E_CONFIG,
                          "structure.bound.%d: '%s' names no nucleotide, "
                          "ligand or ion of the file; a chain, as I, or "
                          "residues of it, as I:201 or I:5-20",
                          k, trim(copy));
}

/* ---- the whole ---- */

static tsr_status reserve(search *s, tsr_err *err)
{
    size_t n = (size_t)s->atoms->n_residue + 1;
    size_t n_atom = (size_t)s->atoms->n_atom + 1;
    size_t n_residue = (size_t)s->t->n_residue + 1;
    s->of = calloc(n, sizeof *s->of);
    s->xyz = calloc(n_atom, sizeof *s->xyz);
    s->near = calloc(n_atom, sizeof *s->near);
    s->turns = calloc(n, sizeof *s->turns);
    s->part = calloc(n_atom, sizeof *s->part);
    s->count = calloc(n_residue, sizeof *s->count);
    s->by_unit = calloc(n_residue, sizeof *s->by_unit);
    if (s->of == NULL || s->xyz == NULL || s->near == NULL ||
        s->turns == NULL || s->part == NULL || s->count == NULL ||
        s->by_unit == NULL)
        return tsr_no_memory(err);
    for (int i = 0; i < s->atoms->n_atom; i++)
        tsr_vec3_copy(s->xyz[i], s->atoms->atom[i].xyz);
    return tsr_cell_list_new(s->atoms->n_atom, (const double(*)[3])s->xyz,
                             contact_ang, &s->cells, err);
}

static void clear(search *s)
{
    tsr_cell_list_free(s->cells);
    free(s->of);
    free(s->xyz);
    free(s->near);
    free(s->turns);
    free(s->part);
    free(s->count);
    free(s->by_unit);
}

/* Atoms of a modified residue that its parent lacks. What one of the 20 has too
 * much is a mistake of the file, and stays out. */
static int take_extra(const search *s, int r, char *is_guest)
{
    const tsr_residue_record *record = &s->structure->residue[s->of[r]];
    const tsr_parent *parent = tsr_parent_by_name(record->name);
    const tsr_file_residue *residue = &s->atoms->residue[r];
    const int is_modified =
        record->is_cut && tsr_parent_by_name(residue->name) == NULL;
    int n = 0;
    for (int k = 0; is_modified && k < residue->n_atom; k++) {
        const tsr_file_atom *a = &s->atoms->atom[residue->first_atom + k];
        if (a->z == 1 || tsr_parent_is_hydrogen(a->name) ||
            tsr_parent_atom(parent, a->name) != NULL)
            continue;
        is_guest[residue->first_atom + k] = 1;
        n++;
    }
    return n;
}

static int take_atoms(const search *s, char *is_guest)
{
    int n_guest = 0;
    for (int r = 0; r < s->atoms->n_residue; r++) {
        const tsr_file_residue *residue = &s->atoms->residue[r];
        const int is_link = s->of[r] >= s->t->n_residue - s->t->n_link;
        if (s->of[r] < 0 || is_link)
            memset(is_guest + residue->first_atom, 1 + s->turns[r],
                   (size_t)residue->n_atom);
        if (is_link || (s->of[r] >= 0 && take_extra(s, r, is_guest) > 0))
            s->host[r] = s->of[r];
        n_guest += s->host[r] >= 0;
    }
    return n_guest;
}

tsr_status tsr_guest_hosts(const tsr_structure *structure,
                           const tsr_atoms *atoms, const tsr_strings *bound,
                           tsr_topology *topology, int *host, int *group,
                           char *is_guest, int *n_guest, tsr_err *err)
{
    search s = {.structure = structure,
                .atoms = atoms,
                .t = topology,
                .group = group,
                .host = host};
    int n_bound = bound != NULL ? bound->n : 0;
    tsr_status status = reserve(&s, err);
    for (int r = 0; r < atoms->n_residue; r++)
        host[r] = -1, group[r] = r;
    *n_guest = status == TSR_OK ? count_guests(&s) : 0;
    if (*n_guest > 0)
        join_groups(&s);
    for (int k = 0; k < n_bound && status == TSR_OK; k++)
        status = bind_one(&s, k, bound->item[k], s.by_unit, err);
    if (status == TSR_OK && *n_guest > 0) {
        if (topology->n_link > 0)
            find_bonded(&s);
        find_hosts(&s);
    }
    if (status == TSR_OK)
        *n_guest = take_atoms(&s, is_guest);
    clear(&s);
    return status;
}
