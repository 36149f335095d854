/* What may move where the configuration does not say it: what `tessera init`
 * would find in the file, put into the configuration, so that the run's
 * config.yaml has it and a run that goes on finds it there. */
#include "run/setup.h"

#include "model/range.h"
#include "parts/parts.h"

#include <stdlib.h>
#include <string.h>

/* Residues of a structure as ranges know them. */
static tsr_residue *residues_of(const tsr_structure *s)
{
    tsr_residue *r = calloc((size_t)s->n_residue + 1, sizeof *r);
    for (int i = 0; r != NULL && i < s->n_residue; i++) {
        const tsr_residue_record *record = &s->residue[i];
        memcpy(r[i].chain, record->chain, sizeof r[i].chain);
        r[i].number = record->number;
        r[i].chain_first = i > 0 && strcmp(r[i].chain, r[i - 1].chain) == 0
                               ? r[i - 1].chain_first
                               : i;
    }
    return r;
}

/* What the user has fixed is not flexible. rigid [n_residue] out. */
static tsr_status mark_fixed(const tsr_structure_config *c,
                             const tsr_structure *s, int *rigid, tsr_err *err)
{
    tsr_residue *residue = residues_of(s);
    tsr_status status = tsr_allocated(residue, err);
    for (int k = 0; k < c->fixed.n && status == TSR_OK; k++) {
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

static tsr_status fix_all(const tsr_structure *s, tsr_structure_config *c,
                          tsr_err *err)
{
    for (int i = 0; i < s->n_residue; i++)
        if (i == 0 || strcmp(s->residue[i].chain, s->residue[i - 1].chain) != 0)
            TSR_TRY(tsr_strings_append(&c->rigid, s->residue[i].chain, err));
    return TSR_OK;
}

static tsr_status take(tsr_structure_config *c, const tsr_structure *s,
                       const tsr_parts *parts, tsr_log *log, tsr_err *err)
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
    if (c->flexible.n > 0)
        return TSR_OK;
    c->still = c->fixed.n + c->mobile.n == 0;
    return c->still ? TSR_OK : fix_all(s, c, err);
}

/* A chain that moves as a whole has no parts that keep their places. */
static tsr_status find(tsr_structure_config *c, const tsr_structure *s,
                       tsr_log *log, tsr_err *err)
{
    tsr_parts *parts = NULL;
    int *rigid = calloc((size_t)s->n_residue + 1, sizeof *rigid);
    const tsr_parts_wish wish = {.rigid = rigid,
                                 .no_loops = c->mobile.n > 0,
                                 .no_strands = c->ligands != 0};
    tsr_status status = tsr_allocated(rigid, err);
    TSR_THEN(status, mark_fixed(c, s, rigid, err));
    TSR_THEN(status, tsr_parts_with(s, NULL, wish, log, &parts, NULL, err));
    TSR_THEN(status, take(c, s, parts, log, err));
    free(rigid);
    tsr_parts_free(parts);
    return status;
}

/* Where there is no protein, and strands alone may move. */
static tsr_status find_strands(tsr_structure_config *c, const tsr_structure *s,
                               tsr_log *log, tsr_err *err)
{
    tsr_parts parts = {.n_strand = 0};
    char text[512];
    tsr_status status =
        c->ligands == 0 ? tsr_parts_strands(s, &parts, err) : TSR_OK;
    list_text(&parts.flexible, sizeof text, text);
    if (parts.flexible.n > 0)
        tsr_info(log,
                 "structure.flexible is not given; single-stranded, by bases "
                 "that pair:%s (flexible: all frees every nucleotide)",
                 text);
    for (int k = 0; k < parts.flexible.n; k++) {
        TSR_THEN(status,
                 tsr_strings_append(&c->flexible, parts.flexible.item[k], err));
        free(parts.flexible.item[k]);
    }
    free(parts.flexible.item);
    return status;
}

tsr_status tsr_setup_parts(tsr_config *config, const tsr_structure *structure,
                           tsr_log *log, tsr_err *err)
{
    tsr_structure_config *c = &config->structure;
    if (c->still || c->flexible.n + c->rigid.n > 0)
        return TSR_OK;
    return structure->n_residue > 0 ? find(c, structure, log, err)
                                    : find_strands(c, structure, log, err);
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
