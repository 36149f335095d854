/* What may move where the configuration does not say it: what `tessera init`
 * would find in the file, put into the configuration, so that the run's
 * config.yaml has it and a run that goes on finds it there. */
#include "posterior/setup.h"

#include "molecule/atoms.h"
#include "molecule/nucleic.h"
#include "molecule/parts.h"
#include "molecule/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_all(const tsr_strings *flexible)
{
    return flexible->n == 1 && strcmp(flexible->item[0], "all") == 0;
}

static int find_chain(const tsr_residue *r, int n, const char *chain)
{
    for (int i = 0; i < n; i++)
        if (strcmp(r[i].chain, chain) == 0)
            return i;
    return -1;
}

static void add_residue(const char chain[8], int number, tsr_residue *r, int *n)
{
    tsr_residue *to = &r[*n];
    const int is_next = *n > 0 && strcmp(to[-1].chain, chain) == 0;
    const int first = is_next ? to[-1].chain_first : find_chain(r, *n, chain);
    memcpy(to->chain, chain, sizeof to->chain);
    to->number = number;
    to->chain_first = first >= 0 ? first : *n;
    (*n)++;
}

/* Residues of a structure as ranges know them, and, where atoms are given, its
 * nucleotides behind them; *n out. */
static tsr_residue *residues_of(const tsr_structure *s, const tsr_atoms *atoms,
                                int *n)
{
    const int n_more = atoms != NULL ? atoms->n_residue : 0;
    tsr_residue *r = calloc((size_t)(s->n_residue + n_more) + 1, sizeof *r);
    *n = 0;
    for (int i = 0; r != NULL && i < s->n_residue; i++)
        add_residue(s->residue[i].chain, s->residue[i].number, r, n);
    for (int i = 0; r != NULL && i < n_more; i++)
        if (atoms->residue[i].kind == TSR_MOLECULE_NUCLEOTIDE)
            add_residue(atoms->residue[i].chain, atoms->residue[i].number, r,
                        n);
    return r;
}

/* "B" of "B:5-9", "B"; "" of "5-9". */
static void chain_of(const char *range, size_t size, char *chain)
{
    const char *colon = strchr(range, ':');
    const int n = (int)(colon != NULL ? colon - range : 0);
    const int is_number = strspn(range, "0123456789-") == strlen(range);
    snprintf(chain, size, "%.*s", n, range);
    if (colon == NULL && !is_number)
        snprintf(chain, size, "%s", range);
}

/* What the user has fixed is not flexible. rigid [n_residue] out. Ranges of
 * other chains are looked at later. */
static tsr_status mark_fixed(const tsr_structure_config *c,
                             const tsr_structure *s, int *rigid, tsr_err *err)
{
    int n;
    char chain[64];
    tsr_residue *residue = residues_of(s, NULL, &n);
    tsr_status status = tsr_allocated(residue, err);
    for (int k = 0; k < c->fixed.n && status == TSR_OK; k++) {
        chain_of(c->fixed.item[k], sizeof chain, chain);
        if (chain[0] != '\0' && find_chain(residue, n, chain) < 0)
            continue;
        status = tsr_range_mark(c->fixed.item[k], s->n_residue, residue, 1,
                                rigid, err);
        if (status != TSR_OK)
            status = tsr_wrap(err, status, "structure.fixed.%d", k);
    }
    free(residue);
    return status;
}

/* "A:1-19 A:224-246 ...", as long as there is room. */
static void list_text(const tsr_strings *list, size_t size, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < list->n && used + 24 < size; k++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 used + 48 < size ? list->item[k] : "...");
}

/* Nothing is flexible: then nothing moves, or what the user has chosen, as a
 * whole. */
static tsr_status hold(tsr_structure_config *c, const tsr_structure *s,
                       tsr_err *err)
{
    tsr_atoms *atoms = NULL; /* of strands alone */
    int n;
    c->still = c->fixed.n + c->mobile.n == 0;
    if (c->still ||
        (s->n_residue == 0 && tsr_atoms_read(s->path, &atoms, NULL) != TSR_OK))
        return TSR_OK; /* whoever reads them next tells why they cannot be */
    tsr_residue *r = residues_of(s, atoms, &n);
    tsr_status status = tsr_allocated(r, err);
    for (int i = 0; r != NULL && i < n; i++)
        if (r[i].chain_first == i)
            TSR_THEN(status, tsr_strings_append(&c->rigid, r[i].chain, err));
    free(r);
    tsr_atoms_free(atoms);
    return status;
}

static tsr_status take(tsr_structure_config *c, const tsr_parts *parts,
                       tsr_log *log, tsr_err *err)
{
    char text[512];
    for (int k = 0; k < parts->flexible.n; k++)
        TSR_TRY(tsr_strings_append(&c->flexible, parts->flexible.item[k], err));
    int is_free = c->fixed.n + c->mobile.n == 0; /* the user chose none */
    for (int k = 0; k < parts->fixed.n && is_free; k++)
        TSR_TRY(tsr_strings_append(&c->fixed, parts->fixed.item[k], err));
    list_text(&c->flexible, sizeof text, text);
    if (c->flexible.n > 0)
        tsr_info(log,
                 "structure.flexible is not given; by %s:%s (tessera init "
                 "shows more; flexible: all frees every residue)",
                 tsr_evidence_text(parts->evidence), text);
    else
        tsr_info(log,
                 "structure.flexible is not given, and by %s nothing is "
                 "flexible (flexible: all frees every residue)",
                 tsr_evidence_text(parts->evidence));
    return TSR_OK;
}

/* A chain that moves as a whole has no parts that keep their places. */
static tsr_status find(tsr_structure_config *c, const tsr_structure *s,
                       tsr_log *log, tsr_err *err)
{
    tsr_parts *parts = NULL;
    int *rigid = calloc((size_t)s->n_residue + 1, sizeof *rigid);
    const tsr_parts_wish wish = {.rigid = rigid,
                                 .fixed = &c->fixed,
                                 .no_loops = c->mobile.n > 0,
                                 .no_strands = c->ligands != 0};
    tsr_status status = tsr_allocated(rigid, err);
    TSR_THEN(status, mark_fixed(c, s, rigid, err));
    TSR_THEN(status, tsr_parts_with(s, NULL, wish, log, &parts, NULL, err));
    TSR_THEN(status, take(c, parts, log, err));
    if (c->flexible.n == 0)
        TSR_THEN(status, hold(c, s, err));
    free(rigid);
    tsr_parts_free(parts);
    return status;
}

tsr_status tsr_setup_parts(tsr_config *config, const tsr_structure *structure,
                           tsr_log *log, tsr_err *err)
{
    tsr_structure_config *c = &config->structure;
    if (c->still || c->flexible.n + c->rigid.n > 0)
        return TSR_OK;
    return find(c, structure, log, err);
}

/* ---- strands ---- */

typedef struct {
    const tsr_structure *structure;
    const tsr_nucleic *nucleic; /* what moves; NULL: none */
    tsr_residue *residue;       /* [n] of protein, then of nucleotides */
    int n;
} chains;

static int is_moving(const chains *s, const char *chain)
{
    for (int i = 0; s->nucleic != NULL && i < s->nucleic->n; i++)
        if (strcmp(s->nucleic->link[i].chain, chain) == 0)
            return 1;
    return find_chain(s->residue, s->structure->n_residue, chain) >= 0;
}

/* Chains that ranges name have to be among those that move. */
static tsr_status check_names(const chains *s, const char *key,
                              const tsr_strings *range, tsr_err *err)
{
    char chain[64], all[TSR_CHAINS_SIZE];
    for (int k = 0; k < range->n; k++) {
        const char *text = range->item[k];
        chain_of(text, sizeof chain, chain);
        if (is_moving(s, chain) ||
            (chain[0] == '\0' && is_moving(s, s->residue[0].chain)))
            continue;
        tsr_range_chains(s->n, s->residue, all);
        if (chain[0] == '\0' || find_chain(s->residue, s->n, chain) < 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.%s.%d: '%s' names no chain of '%s'; "
                            "chains: %s",
                            key, k, text, s->structure->path, all);
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.%s.%d: '%s': the nucleotides of chain %s "
                        "are rigid, on what they touch (structure.bound), "
                        "where structure.flexible names none of them; name "
                        "there what may move, as %s:FIRST-LAST",
                        key, k, text, chain, chain);
    }
    return TSR_OK;
}

/* Who frees the whole protein may not know that this leaves its DNA out. */
static void tell_rigid(const chains *s, const tsr_structure_config *c,
                       tsr_log *log)
{
    const tsr_residue *r = s->residue;
    const int first = s->structure->n_residue;
    for (int i = first; i < s->n && first > 0; i++) {
        if (r[i].chain_first != i || is_moving(s, r[i].chain))
            continue;
        if (c->rigid.n > 0)
            tsr_info(log,
                     "chain %s: its nucleotides do not turn; structure.rigid "
                     "frees a strand where it names some of it",
                     r[i].chain);
        else if (is_all(&c->flexible))
            tsr_info(log,
                     "chain %s: its nucleotides do not turn; flexible: all is "
                     "of the protein alone: name all chains that are to, as "
                     "structure.flexible: [\"%s\", \"%s\"]",
                     r[i].chain, r[0].chain, r[i].chain);
    }
}

static tsr_status check_strands(const chains *s, const tsr_structure_config *c,
                                tsr_log *log, tsr_err *err)
{
    if (!is_all(&c->flexible))
        TSR_TRY(check_names(s, "flexible", &c->flexible, err));
    TSR_TRY(check_names(s, "rigid", &c->rigid, err));
    TSR_TRY(check_names(s, "fixed", &c->fixed, err));
    TSR_TRY(check_names(s, "mobile", &c->mobile, err));
    tell_rigid(s, c, log);
    return TSR_OK;
}

tsr_status tsr_setup_nucleic(const tsr_structure *structure,
                             const tsr_structure_config *config, tsr_log *log,
                             tsr_nucleic **out, tsr_err *err)
{
    tsr_atoms *atoms = NULL;
    *out = NULL;
    const int is_alone = structure->n_residue == 0;
    if (is_alone && config->ligands != 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.ligands: none leaves nothing of '%s', which "
                        "holds no protein",
                        structure->path);
    if (structure->n_nucleotide == 0 || config->ligands != 0 ||
        (config->still && !is_alone))
        return TSR_OK;
    tsr_err why;
    tsr_status status = tsr_atoms_read(structure->path, &atoms, &why);
    const int is_read = status == TSR_OK;
    const tsr_strings *named =
        !is_alone && config->rigid.n > 0 ? &config->rigid : &config->flexible;
    if (is_read)
        status = tsr_nucleic_find(structure, atoms, named, out, err);
    chains s = {.structure = structure, .nucleic = *out};
    s.residue = residues_of(structure, atoms, &s.n);
    if (s.residue == NULL)
        status = tsr_no_memory(err);
    else if (!is_read) /* tsr_setup_guests says it where the protein is all */
        status = is_alone || check_strands(&s, config, NULL, NULL) != TSR_OK
                     ? tsr_fail(err, status, "%s", why.message)
                     : TSR_OK;
    else if (!config->still)
        TSR_THEN(status, check_strands(&s, config, log, err));
    if (status != TSR_OK) {
        tsr_nucleic_free(*out);
        *out = NULL;
    }
    free(s.residue);
    tsr_atoms_free(atoms);
    return status;
}

/* ---- what the configuration says, beside what would be found ---- */

/* The part nearest to residue i in the direction of step; -1: none. */
static int part_from(const tsr_topology *t, const int *part, int i, int step)
{
    int first = t->residue[i].chain_first, last = t->residue[i].chain_last;
    for (i += step; i >= first && i <= last; i += step)
        if (part[i] >= 0)
            return part[i];
    return -1;
}

/* Both sides of residues first..last keep their places, whatever moves. */
static int is_closed(const tsr_topology *t, int first, int last)
{
    int a = first, b = last;
    while (a > t->residue[first].chain_first && t->residue[a].flexible)
        a--;
    while (b < t->residue[last].chain_last && t->residue[b].flexible)
        b++;
    return t->residue[a].is_fixed && t->residue[b].is_fixed;
}

static void doubt_ranges(const tsr_topology *t, const tsr_parts *parts,
                         tsr_log *log)
{
    for (int i = 0, last; i < t->n_residue - t->n_link; i = last + 1) {
        const tsr_residue *r = &t->residue[i];
        for (last = i; r->flexible && last < r->chain_last &&
                       t->residue[last + 1].flexible;)
            last++;
        int before = part_from(t, parts->part, i, -1);
        if (!r->flexible || before < 0 || is_closed(t, i, last) ||
            before != part_from(t, parts->part, last, 1))
            continue;
        const tsr_rigid_part *part = &parts->rigid[before];
        tsr_warn(log,
                 "structure.flexible: %s:%d-%d lies within one compact part, "
                 "%s:%d-%d, which it takes apart where it turns; leave it out, "
                 "or name what lies before and after it in structure.fixed, so "
                 "that it moves as a loop",
                 r->chain, r->number, t->residue[last].number, r->chain,
                 t->residue[part->first].number, t->residue[part->last].number);
    }
}

tsr_status tsr_setup_doubt(const tsr_config *config, const tsr_setup *setup,
                           tsr_log *log, tsr_err *err)
{
    tsr_structure *structure = NULL;
    tsr_parts *parts = NULL;
    if (config->structure.file == NULL)
        return TSR_OK;
    tsr_status status =
        tsr_structure_read_any(config->structure.file, &structure, err);
    if (status == TSR_OK && structure->n_residue == 0) {
        tsr_structure_free(structure);
        return TSR_OK;
    }
    TSR_THEN(status,
             tsr_parts_with(structure, NULL, (tsr_parts_wish){.no_strands = 1},
                            NULL, &parts, NULL, err));
    for (int k = 0; status == TSR_OK && k < parts->n_grave; k++)
        tsr_warn(log, "%s: %s", config->structure.file, parts->note[k]);
    if (status == TSR_OK)
        doubt_ranges(setup->topology, parts, log);
    tsr_parts_free(parts);
    tsr_structure_free(structure);
    return status;
}
