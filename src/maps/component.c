/* A part is a list of atoms: those of the residues that are marked. Which are
 * marked is all that the ways of dividing a model differ in. */
#include "maps/component.h"

#include "core/text.h"
#include "core/vec3.h"
#include "molecule/secondary.h"
#include "molecule/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tsr_components_clear(tsr_components *components)
{
    for (int k = 0; k < components->n; k++)
        free(components->component[k].atom);
    free(components->component);
    *components = (tsr_components){0};
}

static tsr_status no_memory(tsr_err *err)
{
    return tsr_fail(err, TSR_E_NOMEM, "out of memory for the parts of a model");
}

/* One more, of the residues that are marked. */
static tsr_status add(tsr_components *all, const tsr_atoms *atoms,
                      const int *mark, const char *name, tsr_err *err)
{
    tsr_component *more =
        realloc(all->component, ((size_t)all->n + 1) * sizeof *all->component);
    if (more == NULL)
        return no_memory(err);
    all->component = more;
    tsr_component *c = &more[all->n];
    *c = (tsr_component){
        .atom = malloc(((size_t)atoms->n_atom + 1) * sizeof *c->atom)};
    if (c->atom == NULL)
        return no_memory(err);
    all->n++;
    snprintf(c->name, sizeof c->name, "%s", name);
    for (int i = 0; i < atoms->n_atom; i++)
        if (mark[atoms->atom[i].residue])
            c->atom[c->n++] = i;
    int *fitting = realloc(c->atom, ((size_t)c->n + 1) * sizeof *c->atom);
    if (fitting != NULL)
        c->atom = fitting;
    return TSR_OK;
}

/* "17" or "17A". */
static void number_text(const tsr_file_residue *r, char text[16])
{
    if (r->insertion == ' ')
        snprintf(text, 16, "%d", r->number);
    else
        snprintf(text, 16, "%d%c", r->number, r->insertion);
}

/* The residues first .. last as one, with a name. */
static tsr_status add_run(tsr_components *all, const tsr_atoms *atoms,
                          int first, int last, const char *what, int *mark,
                          tsr_err *err)
{
    const tsr_file_residue *a = &atoms->residue[first];
    char name[64], from[16], to[16];
    number_text(a, from);
    number_text(&atoms->residue[last], to);
    if (what == NULL)
        snprintf(name, sizeof name, "%s:%s %s", a->chain, from, a->name);
    else if (first == last)
        snprintf(name, sizeof name, "%s %s:%s", what, a->chain, from);
    else
        snprintf(name, sizeof name, "%s %s:%s-%s", what, a->chain, from, to);
    memset(mark, 0, (size_t)atoms->n_residue * sizeof *mark);
    for (int r = first; r <= last; r++)
        mark[r] = 1;
    return add(all, atoms, mark, name, err);
}

static tsr_status by_residue(const tsr_atoms *atoms, int *mark,
                             tsr_components *out, tsr_err *err)
{
    for (int r = 0; r < atoms->n_residue; r++)
        TSR_TRY(add_run(out, atoms, r, r, NULL, mark, err));
    return TSR_OK;
}

static tsr_status by_chain(const tsr_atoms *atoms, int *mark,
                           tsr_components *out, tsr_err *err)
{
    for (int r = 0; r < atoms->n_residue; r++) {
        const char *chain = atoms->residue[r].chain;
        int is_known = 0;
        for (int k = 0; k < out->n; k++)
            is_known |= strcmp(out->component[k].name, chain) == 0;
        if (is_known)
            continue;
        for (int k = 0; k < atoms->n_residue; k++)
            mark[k] = strcmp(atoms->residue[k].chain, chain) == 0;
        TSR_TRY(add(out, atoms, mark, chain, err));
    }
    return TSR_OK;
}

/* ---- secondary structure ---- */

/* Coordinates of a residue's backbone, of the atoms at xyz. */
static tsr_backbone find_backbone(const tsr_atoms *atoms, int r,
                                  const double (*xyz)[3])
{
    static const char *const name[] = {"N", "CA", "C", "O"};
    const tsr_file_residue *residue = &atoms->residue[r];
    tsr_backbone b = {.is_proline = strcmp(residue->parent, "PRO") == 0};
    double *const to[] = {b.n, b.ca, b.c, b.o};
    int found = 0;
    for (int i = residue->first_atom; i < residue->first_atom + residue->n_atom;
         i++)
        for (int k = 0; k < 4; k++)
            if (strcmp(atoms->atom[i].name, name[k]) == 0) {
                tsr_vec3_copy(to[k], xyz[i]);
                found |= 1 << k;
            }
    b.has_all = found == 15;
    return b;
}

/* May residues r - 1 and r stand in one run? */
static int goes_on(const tsr_atoms *atoms, const tsr_backbone *backbone,
                   const char *kind, int r)
{
    return strcmp(atoms->residue[r].chain, atoms->residue[r - 1].chain) == 0 &&
           kind[r] == kind[r - 1] &&
           backbone[r].has_all == backbone[r - 1].has_all &&
           (!backbone[r].has_all || tsr_backbone_follows(&backbone[r]));
}

/* kind [n_residue], of the backbones. */
static tsr_status find_structure(const tsr_atoms *atoms, const double (*xyz)[3],
                                 tsr_backbone *backbone, char *kind,
                                 tsr_err *err)
{
    int n_backbone = 0;
    for (int r = 0; r < atoms->n_residue; r++) {
        backbone[r] = find_backbone(atoms, r, xyz);
        n_backbone += backbone[r].has_all;
    }
    if (n_backbone == 0)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has no protein backbone (N, CA, C, O) to find "
                        "secondary structure in; take --by residue or chain",
                        atoms->path);
    return tsr_secondary_find(atoms->n_residue, backbone, kind, err);
}

static tsr_status by_structure(const tsr_atoms *atoms, const double (*xyz)[3],
                               int *mark, tsr_components *out, tsr_err *err)
{
    const size_t n = (size_t)atoms->n_residue + 1;
    tsr_backbone *backbone = calloc(n, sizeof *backbone);
    char *kind = calloc(n, 1);
    tsr_status status = backbone == NULL || kind == NULL
                            ? no_memory(err)
                            : find_structure(atoms, xyz, backbone, kind, err);
    for (int first = 0, r = 1; r <= atoms->n_residue && status == TSR_OK; r++) {
        if (r < atoms->n_residue && goes_on(atoms, backbone, kind, r))
            continue;
        const char *what = kind[first] == TSR_HELIX    ? "helix"
                           : kind[first] == TSR_STRAND ? "strand"
                           : backbone[first].has_all   ? "coil"
                                                       : "other";
        status = add_run(out, atoms, first, r - 1, what, mark, err);
        first = r;
    }
    free(backbone);
    free(kind);
    return status;
}

tsr_status tsr_components_make(tsr_component_kind kind, const tsr_atoms *atoms,
                               const double (*xyz)[3], tsr_components *out,
                               tsr_err *err)
{
    int *mark = calloc((size_t)atoms->n_residue + 1, sizeof *mark);
    *out = (tsr_components){0};
    tsr_status status =
        mark == NULL             ? no_memory(err)
        : kind == TSR_BY_RESIDUE ? by_residue(atoms, mark, out, err)
        : kind == TSR_BY_CHAIN   ? by_chain(atoms, mark, out, err)
                                 : by_structure(atoms, xyz, mark, out, err);
    free(mark);
    if (status != TSR_OK)
        tsr_components_clear(out);
    return status;
}

/* ---- named selections ---- */

/* What ranges are read against. */
static tsr_residue *residues_of(const tsr_atoms *atoms)
{
    tsr_residue *r = calloc((size_t)atoms->n_residue + 1, sizeof *r);
    for (int i = 0; r != NULL && i < atoms->n_residue; i++) {
        const tsr_file_residue *from = &atoms->residue[i];
        memcpy(r[i].chain, from->chain, sizeof r[i].chain);
        r[i].number = from->number;
        r[i].insertion = from->insertion;
        r[i].chain_first = i;
        if (i > 0 && strcmp(from->chain, from[-1].chain) == 0)
            r[i].chain_first = r[i - 1].chain_first;
    }
    return r;
}

static tsr_status select_one(const char *text, const tsr_atoms *atoms,
                             const tsr_residue *residue, int *mark,
                             tsr_components *out, tsr_err *err)
{
    char ranges[1024], name[48], shown[TSR_EXCERPT_SIZE];
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0' ||
        strlen(equals) > sizeof ranges ||
        (size_t)(equals - text) >= sizeof name)
        return tsr_fail(err, TSR_E_USAGE,
                        "--select '%s': expected NAME=RANGE,RANGE..., as in "
                        "core=A:1-29,A:60-121",
                        tsr_text_excerpt(text, shown));
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    snprintf(ranges, sizeof ranges, "%s", equals + 1);
    memset(mark, 0, (size_t)atoms->n_residue * sizeof *mark);
    char *rest = NULL;
    for (char *one = strtok_r(ranges, ",", &rest); one != NULL;
         one = strtok_r(NULL, ",", &rest)) {
        tsr_err why = {.message = ""};
        if (tsr_range_mark(one, atoms->n_residue, residue, mark, &why) !=
            TSR_OK)
            return tsr_fail(err, TSR_E_USAGE, "--select %s: %s", name,
                            why.message);
    }
    return add(out, atoms, mark, name, err);
}

tsr_status tsr_components_select(int n, const char *const *text,
                                 const tsr_atoms *atoms, tsr_components *out,
                                 tsr_err *err)
{
    tsr_residue *residue = residues_of(atoms);
    int *mark = calloc((size_t)atoms->n_residue + 1, sizeof *mark);
    tsr_status status = TSR_OK;
    *out = (tsr_components){0};
    if (residue == NULL || mark == NULL)
        status = no_memory(err);
    for (int i = 0; i < n && status == TSR_OK; i++)
        status = select_one(text[i], atoms, residue, mark, out, err);
    free(residue);
    free(mark);
    if (status != TSR_OK)
        tsr_components_clear(out);
    return status;
}
