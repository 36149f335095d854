/* From a configuration to its molecule: tables, flexible ranges, guests, starts
 * of the states, the bound on distances, and the prior. */
#include "posterior/molecule.h"

#include "core/text.h"
#include "files/file.h"
#include "molecule/parts.h"
#include "molecule/structure.h"
#include "molecule/topology.h"
#include "sampler/relax.h"
#include "scattering/atom_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns 1 if FOLDER/BELOW/NAME can be read, with its path in *path. */
static int is_data_file(const char *folder, const char *below, const char *name,
                        tsr_path *path)
{
    snprintf(path->text, sizeof path->text, "%s%s/%s", folder, below, name);
    return access(path->text, R_OK) == 0;
}

tsr_status tsr_data_file(const char *name, char **path, tsr_err *err)
{
    const char *own = getenv("TESSERA_DATA");
    char *folder = tsr_file_program_folder(), *end = folder;
    tsr_path found;
    int is_found = own != NULL && is_data_file(own, "", name, &found);
    while (!is_found && end != NULL) {
        is_found = is_data_file(folder, "/share/tessera/data", name, &found);
        end = strrchr(folder, '/');
        if (end != NULL)
            *end = '\0';
    }
    free(folder);
    *path = NULL;
    if (!is_found)
        return tsr_fail(err, TSR_E_NOINPUT,
                        "the shipped table '%s' is not in share/tessera/data "
                        "of a folder above the program; set TESSERA_DATA to "
                        "its folder",
                        name);
    *path = strdup(found.text);
    return tsr_allocated(*path, err);
}

/* ---- tables ----
 *
 * Shipped tables have one component, with c1, c2 and the solvent's density
 * fixed, or three. The configuration determines which kind is needed. A user's
 * table of three components is folded into one if that suffices. */

/* Tables with components and published tables lack the bodies' mean square
 * radii, which Rg needs; these are copied from the shipped table. */
static tsr_status complete_rg2(const char *shipped, tsr_form_factor_table *own,
                               tsr_err *err)
{
    for (int t = 0; t < own->n_type; t++)
        if (own->rg2[t] > 0.0)
            return TSR_OK;
    char *path = NULL;
    tsr_form_factor_table *table = NULL;
    tsr_status status = tsr_data_file(shipped, &path, err);
    TSR_THEN(status, tsr_form_factor_read(path, &table, err));
    if (status == TSR_OK && table->model == own->model)
        memcpy(own->rg2, table->rg2, (size_t)own->n_type * sizeof *own->rg2);
    tsr_form_factor_free(table);
    free(path);
    return status;
}

/* Refuses a table of one component, which fixes c1, c2 and the solvent. */
static tsr_status refuse_contrast(const tsr_tables *t, const char *own,
                                  double density, tsr_err *err)
{
    if (density != TSR_WATER_DENSITY)
        return tsr_fail(
            err, TSR_E_CONFIG,
            "solvent.density: '%s' is a table of one component that includes "
            "water; give a table of three as structure.form_factors, or leave "
            "the key out for the shipped table",
            own);
    int which = t->contrast[TSR_C1].infer || t->contrast[TSR_C1].start != 1.0
                    ? TSR_C1
                    : TSR_C2;
    return tsr_fail(
        err, TSR_E_CONFIG,
        "contrast.%s: '%s' is a table of one component, with fixed c1 and c2; "
        "give a table of three as structure.form_factors, or leave the key out "
        "for the shipped table",
        t->contrast[which].name, own);
}

/* A table of three components is folded if one component suffices. */
static tsr_status read_form_factors(const char *path, int needs_components,
                                    double density, tsr_tables *t, tsr_err *err)
{
    tsr_form_factor_table *table;
    TSR_TRY(tsr_form_factor_read(path, &table, err));
    if (table->n_comp == 1) {
        t->form_factors = table;
        return needs_components ? refuse_contrast(t, path, density, err)
                                : TSR_OK;
    }
    tsr_status status = tsr_form_factor_set_density(table, density, err);
    TSR_THEN(status, tsr_form_factor_fold(table, &t->form_factors, err));
    if (needs_components)
        t->components = table;
    else
        tsr_form_factor_free(table);
    return status;
}

tsr_status tsr_tables_read(const tsr_config *config, tsr_tables *tables,
                           tsr_err *err)
{
    static const char *const shipped[2][2] = {
        {"form_factors_one_body.dat", "form_factors_two_body.dat"},
        {"components_one_body.dat", "components_two_body.dat"}};
    const char *own = config->structure.form_factors;
    const int two = config->structure.bodies != TSR_CONFIG_ONE;
    const double density = config->solvent.density;
    char *prior = NULL, *path = NULL;
    tsr_tables *t = tables;
    *t = (tsr_tables){.prior = NULL};
    tsr_status status =
        tsr_contrast_priors(&config->contrast, t->contrast, err);
    const int needs_components =
        !tsr_contrast_is_plain(t->contrast) || density != TSR_WATER_DENSITY;
    TSR_THEN(status, tsr_data_file("prior.dat", &prior, err));
    TSR_THEN(status, tsr_prior_table_read(prior, &t->prior, err));
    if (own == NULL)
        TSR_THEN(status,
                 tsr_data_file(shipped[needs_components][two], &path, err));
    TSR_THEN(status, read_form_factors(own != NULL ? own : path,
                                       needs_components, density, t, err));
    free(prior);
    free(path);
    if (status == TSR_OK && (t->form_factors->model == TSR_BODIES_TWO) != two)
        status = tsr_fail(err, TSR_E_CONFIG,
                          "structure.form_factors: '%s' is a table for %s "
                          "bodies per residue, but structure.bodies is %s",
                          own, two ? "one" : "two", two ? "two" : "one");
    TSR_THEN(status, complete_rg2(shipped[0][two], t->form_factors, err));
    return status;
}

void tsr_tables_clear(tsr_tables *tables)
{
    tsr_prior_table_free(tables->prior);
    tsr_form_factor_free(tables->form_factors);
    tsr_form_factor_free(tables->components);
    *tables = (tsr_tables){.prior = NULL};
}

/* ---- structure file ---- */

/* A structure file: the protein, and all atoms, read when first needed. */
typedef struct {
    tsr_structure *structure;
    tsr_atoms *atoms; /* NULL: not needed so far, or unreadable */
    tsr_err why;      /* why the atoms are unreadable */
} structure_file;

static const tsr_atoms *atoms_of(structure_file *file)
{
    if (file->atoms == NULL && file->why.status == TSR_OK)
        (void)tsr_atoms_read_symmetric(file->structure->path,
                                       file->structure->symmetry.group,
                                       &file->atoms, &file->why);
    return file->atoms;
}

static void structure_file_clear(structure_file *file)
{
    tsr_structure_free(file->structure);
    tsr_atoms_free(file->atoms);
}

/* ---- flexible ranges ----
 *
 * If the configuration gives no flexible ranges, those that `tessera init`
 * would find are written into it. So config.yaml contains them, and a resumed
 * run uses the same ranges. */

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

/* Residues of the protein as ranges address them, then the nucleotides of
 * `atoms` (may be NULL); *n out. */
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

/* Marks residues in structure.fixed as rigid: rigid [n_residue] out. Ranges of
 * other chains are checked later. */
static tsr_status mark_fixed(const tsr_structure_config *c,
                             const tsr_structure *s, int *rigid, tsr_err *err)
{
    int n;
    tsr_range range;
    tsr_residue *residue = residues_of(s, NULL, &n);
    tsr_status status = tsr_allocated(residue, err);
    for (int k = 0; k < c->fixed.n && status == TSR_OK; k++) {
        if (tsr_range_read(c->fixed.item[k], &range) &&
            range.chain[0] != '\0' && find_chain(residue, n, range.chain) < 0)
            continue;
        status = tsr_wrap(
            err,
            tsr_range_mark(c->fixed.item[k], s->n_residue, residue, rigid, err),
            "structure.fixed.%d", k);
    }
    free(residue);
    return status;
}

/* "A:1-19 A:224-246 ...", cut to `size`. */
static void format_ranges(const tsr_strings *list, size_t size, char *text)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < list->n && used + 24 < size; k++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 used + 48 < size ? list->item[k] : "...");
}

/* For a molecule without flexible ranges: makes each chain rigid as a whole if
 * structure.fixed or structure.mobile is given, else freezes the molecule. */
static tsr_status mark_all_rigid(tsr_structure_config *c, structure_file *file,
                                 tsr_err *err)
{
    const tsr_structure *s = file->structure;
    const int is_alone = s->n_residue == 0; /* strands only */
    int n;
    c->frozen = c->fixed.n + c->mobile.n == 0;
    if (c->frozen || (is_alone && atoms_of(file) == NULL))
        return TSR_OK; /* the next reader of the atoms reports the error */
    tsr_residue *r = residues_of(s, is_alone ? file->atoms : NULL, &n);
    tsr_status status = tsr_allocated(r, err);
    for (int i = 0; r != NULL && i < n; i++)
        if (r[i].chain_first == i)
            TSR_THEN(status, tsr_strings_append(&c->rigid, r[i].chain, err));
    free(r);
    return status;
}

static tsr_status use_found_parts(tsr_structure_config *c,
                                  const tsr_parts *parts, tsr_log *log,
                                  tsr_err *err)
{
    char text[512];
    for (int k = 0; k < parts->flexible.n; k++)
        TSR_TRY(tsr_strings_append(&c->flexible, parts->flexible.item[k], err));
    int is_free =
        c->fixed.n + c->mobile.n == 0; /* the user has given no ranges */
    for (int k = 0; k < parts->fixed.n && is_free; k++)
        TSR_TRY(tsr_strings_append(&c->fixed, parts->fixed.item[k], err));
    format_ranges(&c->flexible, sizeof text, text);
    if (c->flexible.n > 0)
        tsr_info(log,
                 "structure.flexible is not given; flexible by %s:%s (tessera "
                 "init shows more; flexible: all frees every residue)",
                 tsr_evidence_text(parts->evidence), text);
    else
        tsr_info(log,
                 "structure.flexible is not given; by %s, no residue is "
                 "flexible (flexible: all frees every residue)",
                 tsr_evidence_text(parts->evidence));
    return TSR_OK;
}

/* Writes flexible ranges into the configuration if it has none. Chains that
 * move as a whole have no fixed parts. */
static tsr_status set_flexible_ranges(tsr_structure_config *c,
                                      structure_file *file, tsr_log *log,
                                      tsr_err *err)
{
    const tsr_structure *s = file->structure;
    if (c->frozen || c->flexible.n + c->rigid.n > 0)
        return TSR_OK;
    tsr_parts *parts = NULL;
    int *rigid = calloc((size_t)s->n_residue + 1, sizeof *rigid);
    const tsr_parts_choices wish = {.rigid = rigid,
                                    .fixed = &c->fixed,
                                    .no_loops = c->mobile.n > 0,
                                    .no_strands =
                                        c->ligands != 0 || c->symmetry != NULL};
    tsr_status status = tsr_allocated(rigid, err);
    TSR_THEN(status, mark_fixed(c, s, rigid, err));
    TSR_THEN(status,
             tsr_parts_find_with_pae(s, NULL, wish, log, &parts, NULL, err));
    TSR_THEN(status, use_found_parts(c, parts, log, err));
    if (c->flexible.n == 0)
        TSR_THEN(status, mark_all_rigid(c, file, err));
    free(rigid);
    tsr_parts_free(parts);
    return status;
}

/* ---- strands ---- */

/* Chains of a structure, to check the ranges of the configuration. */
typedef struct {
    const tsr_structure *structure;
    const tsr_nucleic *nucleic; /* flexible strands; NULL: no strand moves */
    tsr_residue *residue;       /* [n] protein, then nucleotides */
    int n;
} chains;

static int is_moving(const chains *s, const char *chain)
{
    for (int i = 0; s->nucleic != NULL && i < s->nucleic->n; i++)
        if (strcmp(s->nucleic->link[i].chain, chain) == 0)
            return 1;
    return find_chain(s->residue, s->structure->n_residue, chain) >= 0;
}

/* Checks that the chains named in the ranges of a key exist and can move. */
static tsr_status check_names(const chains *s, const char *key,
                              const tsr_strings *range, tsr_err *err)
{
    char all[TSR_CHAINS_SIZE];
    tsr_range own;
    const char *chain = own.chain;
    for (int k = 0; k < range->n; k++) {
        const char *text = range->item[k];
        /* malformed ranges are refused later */
        (void)tsr_range_read(text, &own);
        if (is_moving(s, chain) ||
            (chain[0] == '\0' && is_moving(s, s->residue[0].chain)))
            continue;
        tsr_range_chains(s->n, s->residue, all);
        if (chain[0] == '\0' || find_chain(s->residue, s->n, chain) < 0)
            return tsr_fail(
                err, TSR_E_CONFIG,
                "structure.%s.%d: '%s' is not a chain of '%s'; chains: %s", key,
                k, text, s->structure->path, all);
        return tsr_fail(
            err, TSR_E_CONFIG,
            "structure.%s.%d: '%s': the nucleotides of chain %s are rigid, "
            "attached to the residues in contact (structure.attach), as "
            "structure.flexible names none of them; name the nucleotides that "
            "move there, as %s:FIRST-LAST",
            key, k, text, chain, chain);
    }
    return TSR_OK;
}

/* Logs, for a user who frees the protein, which nucleic acids stay rigid. */
static void log_rigid_strands(const chains *s, const tsr_structure_config *c,
                              tsr_log *log)
{
    const tsr_residue *r = s->residue;
    const int first = s->structure->n_residue;
    for (int i = first; i < s->n && first > 0; i++) {
        if (r[i].chain_first != i || is_moving(s, r[i].chain))
            continue;
        if (c->rigid.n > 0)
            tsr_info(log,
                     "chain %s: its nucleotides do not turn; naming a part of "
                     "the strand in structure.rigid frees the rest",
                     r[i].chain);
        else if (is_all(&c->flexible))
            tsr_info(log,
                     "chain %s: its nucleotides do not turn; flexible: all "
                     "means the protein only: name all flexible chains, as "
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
    log_rigid_strands(s, c, log);
    return TSR_OK;
}

/* Finds the strands that structure.flexible or structure.rigid names, or all
 * strands of a file without protein (molecule/guest.h). *out NULL: no strands,
 * or ligands are left out; the caller frees it. The log names strands that stay
 * rigid although the protein is free. Errors: TSR_E_CONFIG (ranges of chains
 * that do not exist or do not move), those of tsr_nucleic_find and, without
 * protein, of tsr_atoms_read. */
static tsr_status find_strands(structure_file *file,
                               const tsr_structure_config *config, tsr_log *log,
                               tsr_nucleic **out, tsr_err *err)
{
    const tsr_structure *structure = file->structure;
    const int is_alone = structure->n_residue == 0;
    const tsr_strings *named =
        !is_alone && config->rigid.n > 0 ? &config->rigid : &config->flexible;
    tsr_status status = TSR_OK;
    *out = NULL;
    if (is_alone && config->ligands != 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.ligands: none removes everything from '%s', "
                        "which contains no protein",
                        structure->path);
    if (structure->n_nucleotide == 0 || config->ligands != 0 ||
        (config->frozen && !is_alone))
        return TSR_OK;
    const tsr_atoms *atoms = atoms_of(file);
    if (atoms != NULL)
        status = tsr_nucleic_find(structure, atoms, named, out, err);
    chains s = {.structure = structure, .nucleic = *out};
    s.residue = residues_of(structure, atoms, &s.n);
    TSR_THEN(status, tsr_allocated(s.residue, err));
    if (atoms != NULL && !config->frozen)
        TSR_THEN(status, check_strands(&s, config, log, err));
    /* in other cases add_guests logs the reason */
    if (atoms == NULL && status == TSR_OK &&
        (is_alone || check_strands(&s, config, NULL, NULL) != TSR_OK))
        status = tsr_fail(err, file->why.status, "%s", file->why.message);
    if (status != TSR_OK) {
        free(*out);
        *out = NULL;
    }
    free(s.residue);
    return status;
}

/* Topology and conformation of the structure with its flexible strands. */
static tsr_status build_topology(structure_file *file,
                                 const tsr_structure_config *c,
                                 tsr_flexibility flexibility,
                                 const tsr_prior_table *prior, tsr_log *log,
                                 tsr_topology **topology,
                                 tsr_conformation **first, tsr_err *err)
{
    tsr_nucleic *nucleic = NULL;
    tsr_status status = find_strands(
        file, c, flexibility.is_frozen > c->frozen ? NULL : log, &nucleic, err);
    flexibility.nucleic = nucleic;
    TSR_THEN(status,
             tsr_topology_from_structure(
                 file->structure,
                 c->bodies == TSR_CONFIG_ONE ? TSR_BODIES_ONE : TSR_BODIES_TWO,
                 flexibility, prior, log, topology, first, err));
    free(nucleic);
    return status;
}

/* ---- warnings ---- */

/* The rigid part nearest to residue i in the direction `step`; -1: no part. */
static int nearest_part(const tsr_topology *t, const int *part, int i, int step)
{
    int first = t->residue[i].chain_first, last = t->residue[i].chain_last;
    for (i += step; i >= first && i <= last; i += step)
        if (part[i] >= 0)
            return part[i];
    return -1;
}

/* Are the rigid residues on both sides of first..last fixed? */
static int is_closed(const tsr_topology *t, int first, int last)
{
    int a = first, b = last;
    while (a > t->residue[first].chain_first && t->residue[a].flexible)
        a--;
    while (b < t->residue[last].chain_last && t->residue[b].flexible)
        b++;
    return t->residue[a].is_fixed && t->residue[b].is_fixed;
}

static void warn_ranges_within_parts(const tsr_topology *t,
                                     const tsr_parts *parts, tsr_log *log)
{
    for (int i = 0, last; i < t->n_residue - t->n_link; i = last + 1) {
        const tsr_residue *r = &t->residue[i];
        for (last = i; r->flexible && last < r->chain_last &&
                       t->residue[last + 1].flexible;)
            last++;
        int before = nearest_part(t, parts->part, i, -1);
        if (!r->flexible || before < 0 || is_closed(t, i, last) ||
            before != nearest_part(t, parts->part, last, 1))
            continue;
        const tsr_rigid_part *part = &parts->rigid[before];
        tsr_warn(log,
                 "structure.flexible: %s:%d-%d lies within one compact part, "
                 "%s:%d-%d, and would split it; leave the range out, or name "
                 "the residues before and after it in structure.fixed, so that "
                 "it moves as a loop",
                 r->chain, r->number, t->residue[last].number, r->chain,
                 t->residue[part->first].number, t->residue[part->last].number);
    }
}

tsr_status tsr_molecule_warn(const tsr_molecule *molecule, tsr_log *log,
                             tsr_err *err)
{
    const char *file = molecule->file;
    tsr_structure *structure = NULL;
    tsr_parts *parts = NULL;
    if (file == NULL)
        return TSR_OK;
    tsr_status status =
        tsr_structure_read_symmetric(file, molecule->symmetry, &structure, err);
    if (status == TSR_OK && structure->n_residue > 0)
        status = tsr_parts_find_with_pae(structure, NULL,
                                         (tsr_parts_choices){.no_strands = 1},
                                         NULL, &parts, NULL, err);
    for (int k = 0; parts != NULL && k < parts->n_warning; k++)
        tsr_warn(log, "%s: %s", file, parts->note[k]);
    if (parts != NULL)
        warn_ranges_within_parts(molecule->topology, parts, log);
    tsr_parts_free(parts);
    tsr_structure_free(structure);
    return status;
}

/* ---- starts of the states ---- */

/* Checks that both topologies have the same residues and peptide bonds. */
static tsr_status check_alike(const tsr_topology *own,
                              const tsr_topology *other, const char *path,
                              tsr_err *err)
{
    if (own->n_residue != other->n_residue)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d residues, but structure.file has %d; all "
                        "states have the same molecule",
                        path, other->n_residue, own->n_residue);
    for (int i = 0; i < own->n_residue; i++) {
        const tsr_residue *a = &own->residue[i], *b = &other->residue[i];
        if (strcmp(tsr_residue_name(a), tsr_residue_name(b)) != 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': residue %s:%d is %s where structure.file "
                            "has %s (%s:%d); all states have the same molecule",
                            path, b->chain, b->number, tsr_residue_name(b),
                            tsr_residue_name(a), a->chain, a->number);
        if (a->linked != b->linked)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': %s peptide bond before %s:%d, unlike in "
                            "structure.file; complete the chain in both",
                            path, b->linked ? "a" : "no", b->chain, b->number);
    }
    return TSR_OK;
}

/* Checks that copies of the subunit in `c` are where the file has them. */
static tsr_status check_start(const tsr_topology *own,
                              const tsr_conformation *c,
                              const tsr_conformation *read, const char *path,
                              tsr_err *err)
{
    const double tolerance_ang = 2.0;
    for (int i = own->n_own; i < own->n_residue; i++) {
        const double d = tsr_vec3_distance(c->backbone[i][TSR_CA],
                                           read->backbone[i][TSR_CA]);
        if (d > tolerance_ang)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': %s:%d is %.1f A from the place that "
                            "structure.symmetry gives it about the axes of "
                            "structure.file; give models of such a run",
                            path, own->residue[i].chain, own->residue[i].number,
                            d);
    }
    return TSR_OK;
}

static tsr_status read_start(const tsr_structure_config *config,
                             const char *path, tsr_log *log,
                             const tsr_molecule *m, tsr_conformation **out,
                             tsr_err *err)
{
    const tsr_topology *own = m->topology;
    const tsr_flexibility still = {.is_frozen = 1};
    structure_file file = {0};
    tsr_topology *topology = NULL;
    tsr_conformation *read = NULL, *c = NULL;
    tsr_status status = tsr_structure_read_any(path, &file.structure, err);
    TSR_THEN(status, build_topology(&file, config, still, m->tables->prior, log,
                                    &topology, &read, err));
    TSR_THEN(status, check_alike(own, topology, path, err));
    if (status == TSR_OK) {
        c = *out = tsr_conformation_new(own);
        status = tsr_allocated(c, err);
    }
    if (status == TSR_OK) {
        /* only the backbone and side chains: the run's bodies may include
         * guests */
        size_t n = (size_t)own->n_residue;
        memcpy(c->backbone, read->backbone, n * sizeof *c->backbone);
        memcpy(c->side, read->side, n * sizeof *c->side);
        tsr_conformation_place_bodies(own, c, 0, own->n_residue);
        tsr_conformation_place_copies(own, c, 0, own->n_own);
        status = check_start(own, c, read, path, err);
    }
    tsr_conformation_free(read);
    tsr_topology_free(topology);
    structure_file_clear(&file);
    return status;
}

static tsr_status read_starts(const tsr_config *config, tsr_log *log,
                              tsr_molecule *m, tsr_err *err)
{
    const tsr_list *starts = &config->structure.starts;
    const tsr_start_config *start = starts->item;
    m->start = calloc((size_t)starts->n + 1, sizeof(*m->start));
    TSR_TRY(tsr_allocated(m->start, err));
    m->n_start = starts->n;
    for (int k = 0; k < starts->n; k++)
        TSR_TRY(read_start(&config->structure, start[k].file, log, m,
                           &m->start[k], err));
    return TSR_OK;
}

/* ---- guests ---- */

static tsr_status add_hydrogen_mass(const tsr_atoms *atoms, tsr_guests *g,
                                    tsr_err *err)
{
    tsr_hydrogen_count count;
    int *n = calloc((size_t)atoms->n_atom + 1, sizeof *n);
    tsr_status status = tsr_allocated(n, err);
    TSR_THEN(status, tsr_hydrogens_assign(atoms, n, &count, err));
    for (int i = 0; i < g->atoms->n_atom && status == TSR_OK; i++)
        g->hydrogen_mass += n[g->file_atom[i]] * tsr_atom_mass(1);
    free(n);
    return status;
}

/* Adds guests of the file (molecule/guest.h) to topology and conformation, and
 * extends the tables by their bodies. If the atoms cannot be read, the log
 * gives the reason. */
static tsr_status add_guests(structure_file *file, const tsr_strings *bound,
                             tsr_log *log, tsr_molecule *m, tsr_err *err)
{
    const tsr_structure *structure = file->structure;
    const tsr_form_factor_table **table[] = {&m->form_factors, &m->components};
    int n_beside =
        structure->n_ligand + structure->n_nucleotide + structure->n_incomplete;
    for (int r = 0; r < structure->n_residue; r++)
        n_beside += structure->residue[r].is_cut;
    if (n_beside == 0 && bound->n == 0)
        return TSR_OK;
    const tsr_atoms *atoms = atoms_of(file);
    if (atoms == NULL) {
        tsr_info(log, "ligands and nucleotides could not be read: %s",
                 file->why.message);
        return TSR_OK;
    }
    tsr_status status = tsr_guests_attach(structure, atoms, bound, log,
                                          m->topology, m->first, err);
    const int has_guests = status == TSR_OK && m->topology->guests != NULL;
    if (has_guests)
        status = add_hydrogen_mass(atoms, m->topology->guests, err);
    for (int k = 0; k < 2 && has_guests && status == TSR_OK; k++) {
        if (*table[k] == NULL)
            continue;
        status =
            tsr_form_factor_add_guests(*table[k], m->topology->guests, atoms,
                                       m->density, &m->of_guests[k], err);
        *table[k] = m->of_guests[k];
    }
    return status;
}

/* ---- reading ---- */

/* Logs parts of the file that are not in the model. Waters and hydrogens are
 * never in the model, and are not mentioned. */
static void log_left_out(const tsr_structure *s, int has_guests, tsr_log *log)
{
    const int n_ligand = has_guests ? 0 : s->n_ligand;
    const int n_nucleotide = has_guests ? 0 : s->n_nucleotide;
    const struct {
        int n;
        const char *what;
    } part[] = {{n_ligand, "ligands"},
                {n_nucleotide, "nucleotides"},
                {s->n_model, "models after the first"},
                {s->n_altloc_atom, "atoms of alternate locations"},
                {s->n_extra_atom - (has_guests ? s->n_modified_atom : 0),
                 "atoms foreign to their residue"}};
    char list[256] = "";
    size_t used = 0;
    for (size_t k = 0; k < sizeof part / sizeof *part; k++)
        if (part[k].n > 0 && used < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, "%s%s %d",
                                 used > 0 ? ", " : "", part[k].what, part[k].n);
    if (n_ligand + n_nucleotide > 0)
        tsr_warn(log, "%s: left out: %s; missing scatterers spoil the fit",
                 s->path, list);
    else if (used > 0)
        tsr_info(log, "%s: left out: %s", s->path, list);
    if (s->copies[0] != '\0')
        tsr_info(log,
                 "%s: copies of a molecule under one chain id; the copies "
                 "after the first are now chains %s, %d chains in total",
                 s->path, s->copies, s->n_chain);
    if (s->n_renamed > 0)
        tsr_info(log, "%s: %d residues read as their parent amino acid",
                 s->path, s->n_renamed);
}

int tsr_config_is_placed(const tsr_config *config)
{
    const tsr_term_options *entry = config->data.item;
    for (int d = 0; d < config->data.n; d++)
        if ((tsr_term_registry[entry[d].kind]->needs & TSR_NEEDS_POSE) != 0)
            return 1;
    return 0;
}

static void log_symmetry(const tsr_structure_config *c, const tsr_topology *t,
                         tsr_log *log)
{
    char names[TSR_CHAINS_SIZE];
    tsr_info(log,
             "%s: %d copies of chain %s in exact %s; structure.mobile: "
             "[subunit] moves them against the axis",
             c->file, t->symmetry.n,
             tsr_range_chains(t->n_own, t->residue, names), t->symmetry.group);
}

static tsr_status read_file(tsr_config *config, tsr_log *log, tsr_molecule *m,
                            tsr_err *err)
{
    tsr_structure_config *c = &config->structure;
    const tsr_prior_table *prior = m->tables->prior;
    structure_file file = {0};
    tsr_flexibility flexibility = {.flexible = &c->flexible,
                                   .rigid = &c->rigid,
                                   .fixed = &c->fixed,
                                   .mobile = &c->mobile,
                                   .file = c->file,
                                   .contacts = (int)c->contacts,
                                   .is_frozen = c->frozen,
                                   .is_placed = tsr_config_is_placed(config)};
    if (c->symmetry != NULL && flexibility.is_placed)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.symmetry: the axis would have to move in a "
                        "density map; leave symmetry or the map out");
    if (c->file == NULL)
        return tsr_topology_from_sequence(
            c->sequence,
            c->bodies == TSR_CONFIG_ONE ? TSR_BODIES_ONE : TSR_BODIES_TWO,
            flexibility, prior, &m->topology, &m->first, err);
    tsr_status status = tsr_structure_read_symmetric(c->file, c->symmetry,
                                                     &file.structure, err);
    TSR_THEN(status, set_flexible_ranges(c, &file, log, err));
    flexibility.is_frozen = c->frozen;
    TSR_THEN(status, build_topology(&file, c, flexibility, prior, log,
                                    &m->topology, &m->first, err));
    if (c->ligands == 0)
        TSR_THEN(status, add_guests(&file, &c->attach, log, m, err));
    TSR_THEN(status, tsr_topology_check_copies(m->topology, err));
    if (status == TSR_OK && m->topology->symmetry.n > 1) {
        tsr_conformation_place_copies(m->topology, m->first, 0,
                                      m->topology->n_own);
        log_symmetry(c, m->topology, log);
    }
    if (status == TSR_OK)
        log_left_out(file.structure, m->topology->guests != NULL, log);
    structure_file_clear(&file);
    return status;
}

/* ---- chains to be docked ---- */

/* Draws a placement of the mobile chains for starts that are not in contact, or
 * overlap. So chains may come from separate files, in any place. */
static tsr_status place_chains(const tsr_config *config, tsr_log *log,
                               tsr_molecule *m, tsr_err *err)
{
    char worst[160];
    enum { PLACE_STREAM = 0x7ffffffe }; /* no chain of a run uses it */
    tsr_prior *prior;
    if (m->topology->contacts == 0)
        return TSR_OK;
    TSR_TRY(tsr_prior_new(m->topology, m->tables->prior, &config->prior, 0.0,
                          &prior, err));
    gsl_rng *rng = tsr_rng_new(TSR_MODEL_SEED, PLACE_STREAM);
    tsr_status status = tsr_allocated(rng, err);
    for (int k = -1; k < m->n_start && status == TSR_OK; k++) {
        tsr_conformation *c = k < 0 ? m->first : m->start[k];
        if (tsr_prior_is_in_contact(m->topology, c) &&
            tsr_prior_clashes(prior, c, worst) == 0)
            continue;
        tsr_info(log, "the chains are not in contact or overlap: the run "
                      "starts from a placement drawn from the prior");
        if (!tsr_place_chains(prior, rng, c))
            status = tsr_fail(err, TSR_E_CONFIG,
                              "structure.contacts: no placement of the mobile "
                              "chains with %d contacts was found; ask for "
                              "fewer",
                              m->topology->contacts);
    }
    tsr_prior_free(prior);
    if (rng != NULL)
        gsl_rng_free(rng);
    return status;
}

/* ---- bound on distances ---- */

/* Bound for a long flexible chain: the rigid domains, plus a random coil, which
 * is hardly ever wider than 6.5 Rg, with Rg = 1.927 N^0.598 Angstrom (Kohn et
 * al. 2004, PNAS 101, 12491). Used only where the full reach of the chain would
 * require a long q grid. */
static double coil_bound(const tsr_molecule *m, double reach_ang)
{
    const double of_link = 2.6, of_amino = 3.8; /* from CA to CA, Angstrom */
    int most = 0;
    double contour = 0.0;
    for (int i = 0; i < m->topology->n_residue;) {
        const int is_strand = m->topology->residue[i].link != TSR_LINK_NONE;
        int n = 0, last = m->topology->residue[i].chain_last;
        for (; i <= last; i++)
            n += m->topology->residue[i].flexible;
        most = n > most ? n : most;
        contour = fmax(contour, n * (is_strand ? of_link : of_amino));
    }
    double coil = 6.5 * 1.927 * pow(most + 1.0, 0.598);
    return fmax(reach_ang - contour + coil, 1.25 * m->d_max_first_ang);
}

/* Chooses the bound on distances. It is part of P(X), so it must not depend on
 * the data, and a run of the prior has the same bound. Freely moving parts have
 * infinite reach. */
static tsr_status choose_bound(const tsr_number_or_word *d_max, tsr_log *log,
                               tsr_molecule *m, tsr_err *err)
{
    const double long_reach = 400.0; /* Angstrom; 80 grid points up to q =
                                        0.3 */
    double reach_ang = 0.0;          /* largest possible distance of two
                                        bodies */
    char reach[80] = "without it parts could drift apart without limit";
    for (int k = -1; k < m->n_start; k++) {
        const tsr_conformation *c = k < 0 ? m->first : m->start[k];
        const double far = tsr_topology_reach(m->topology, c);
        if (isnan(far))
            return tsr_no_memory(err);
        reach_ang = fmax(reach_ang, far);
        m->d_max_first_ang =
            fmax(m->d_max_first_ang,
                 tsr_largest_distance(m->topology->n_body,
                                      (const double(*)[3])c->body));
    }
    m->d_bound_ang = d_max->word < 0    ? d_max->number
                     : isinf(reach_ang) ? 1.5 * m->d_max_first_ang
                     : reach_ang > long_reach
                         ? fmin(reach_ang, coil_bound(m, reach_ang))
                         : reach_ang;
    if (m->d_bound_ang < m->d_max_first_ang)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.d_max: %.1f Angstrom is less than the %.1f "
                        "Angstrom of the structure",
                        m->d_bound_ang, m->d_max_first_ang);
    if (isfinite(reach_ang))
        snprintf(reach, sizeof reach,
                 "largest distance that the molecule can reach: %.0f A",
                 reach_ang);
    if (m->d_bound_ang < reach_ang)
        tsr_info(log,
                 "the prior is zero for distances above d_max %.0f A (%s); "
                 "structure.d_max sets d_max",
                 m->d_bound_ang, reach);
    return TSR_OK;
}

/* ---- the whole ---- */

/* Moves overlapping bodies of a start apart, because P(X) must be positive
 * where a chain starts. */
static tsr_status remove_clashes(const tsr_config *config, const char *file,
                                 tsr_conformation *start, tsr_log *log,
                                 const tsr_molecule *m, tsr_err *err)
{
    char worst[160];
    const void *moves[TSR_N_MOVE];
    int n = tsr_prior_clashes(m->prior, start, worst);
    if (n == 0)
        return TSR_OK;
    if (!config->prior.relax)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d pairs of bodies that move relative to each "
                        "other overlap by more than prior.clash_limit (%g "
                        "nat): %s; prior.relax: true first moves them apart",
                        file, n, config->prior.clash_limit, worst);
    tsr_config_moves(config, moves);
    return tsr_relax(m->topology, m->tables->prior, &config->prior,
                     m->d_bound_ang, moves, TSR_MODEL_SEED, m->prior, start,
                     log, err);
}

/* ---- species ---- */

double tsr_amino_hydrogen_mass(tsr_amino amino)
{
    const tsr_amino_info *info = &tsr_amino_table[amino];
    int n = 0;
    for (int k = 0; k < info->n_atom; k++)
        n += info->atom[k].n_hydrogen;
    return n * tsr_atom_mass(1);
}

double tsr_topology_mass(const tsr_topology *t, const int *absent)
{
    double mass = 0.0;
    for (int b = 0; b < t->n_body; b++)
        mass += absent != NULL && absent[b] ? 0.0 : t->body[b].mass;
    for (int r = 0; r < t->n_residue - t->n_link; r++) {
        if (absent == NULL || !absent[t->residue[r].first_body])
            mass += tsr_amino_hydrogen_mass(t->residue[r].amino);
    }
    return mass;
}

/* Marks the bodies of the chains of species k as present. *n_copy out: number
 * of them in copies of a symmetric assembly. */
static tsr_status find_chains(const tsr_topology *t, int k,
                              const tsr_strings *named, tsr_molecule_species *s,
                              int *n_copy, tsr_err *err)
{
    char names[TSR_CHAINS_SIZE];
    int n_present = 0;
    *n_copy = 0;
    for (int b = 0; b < t->n_body; b++)
        s->absent[b] = 1;
    for (int i = 0; i < named->n; i++) {
        int n = 0, n_new = 0;
        for (int b = 0; b < t->n_body; b++) {
            const tsr_residue *r = &t->residue[t->body[b].residue];
            if (strcmp(r->chain, named->item[i]) != 0)
                continue;
            n++;
            n_new += s->absent[b];
            *n_copy += r->copy > 0;
            s->absent[b] = 0;
        }
        if (n > 0 && n_new == 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "species.%d.chains: '%s' is named twice", k,
                            named->item[i]);
        if (n == 0)
            return tsr_fail(
                err, TSR_E_CONFIG,
                "species.%d.chains: there is no chain '%s'; chains: %s "
                "(ligands are part of the chain that carries them)",
                k, named->item[i],
                tsr_range_chains(t->n_residue, t->residue, names));
        n_present += n_new;
    }
    s->mix.is_part = n_present < t->n_body;
    return TSR_OK;
}

static tsr_status read_one_species(const tsr_config *config, int k,
                                   tsr_log *log, tsr_molecule *m, tsr_err *err)
{
    const tsr_species_config *list = config->species.item, *c = &list[k];
    const tsr_topology *t = m->topology;
    int n_copy;
    tsr_molecule_species *s = &m->species[k];
    tsr_pool_array(&m->pool, s->absent, t->n_body);
    TSR_TRY(tsr_pool_check(&m->pool, err));
    s->mix = (tsr_species){.name = c->name, .kd = c->kd};
    TSR_TRY(find_chains(t, k, &c->chains, s, &n_copy, err));
    if (s->mix.is_part && n_copy > 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "species.%d.chains: in a symmetric assembly a species "
                        "is the whole assembly, or chains of its first "
                        "subunit; leave structure.symmetry out",
                        k);
    s->mix.mass = tsr_topology_mass(t, s->absent);
    const double ratio = s->mix.mass / m->species[0].mix.mass;
    const double n = (double)c->chains.n / list[0].chains.n;
    if (n == floor(n) && fabs(ratio / n - 1.0) < 0.05)
        s->mix.n_unit = (int)n;
    if (c->kd.word != 0 && s->mix.n_unit < 2)
        return tsr_fail(err, TSR_E_CONFIG,
                        "species.%d.kd: %s weighs %.3g times as much as the "
                        "first species, %s, and consists of no whole number "
                        "of its particles; leave kd out",
                        k, c->name, ratio, list[0].name);
    tsr_info(log, "species %s: %d of %d chains, %.1f kDa", c->name, c->chains.n,
             t->n_chain, 1e-3 * s->mix.mass);
    return TSR_OK;
}

/* Reads the chains of each species. */
static tsr_status read_species(const tsr_config *config, tsr_log *log,
                               tsr_molecule *m, tsr_err *err)
{
    int is_whole = config->species.n == 0;
    tsr_pool_array(&m->pool, m->species, config->species.n);
    TSR_TRY(tsr_pool_check(&m->pool, err));
    m->n_species = config->species.n;
    for (int k = 0; k < m->n_species; k++) {
        TSR_TRY(read_one_species(config, k, log, m, err));
        is_whole |= !m->species[k].mix.is_part;
    }
    return is_whole ? TSR_OK
                    : tsr_fail(err, TSR_E_CONFIG,
                               "species: none has all chains of "
                               "structure.file; leave the other chains out of "
                               "the file");
}

tsr_status tsr_molecule_set_model(tsr_molecule *molecule, tsr_err *err)
{
    tsr_model_atoms_free(molecule->model);
    molecule->model = tsr_topology_model(molecule->topology, molecule->first);
    return tsr_allocated(molecule->model, err);
}

tsr_status tsr_molecule_read(tsr_config *config, const tsr_tables *tables,
                             tsr_log *log, tsr_molecule *molecule, tsr_err *err)
{
    const tsr_structure_config *c = &config->structure;
    const tsr_start_config *start = c->starts.item;
    tsr_molecule *m = molecule;
    *m = (tsr_molecule){.tables = tables,
                        .file = c->file,
                        .symmetry = c->symmetry,
                        .density = config->solvent.density,
                        .form_factors = tables->form_factors,
                        .components = tables->components};
    TSR_TRY(read_file(config, log, m, err));
    TSR_TRY(read_starts(config, log, m, err));
    TSR_TRY(place_chains(config, log, m, err));
    TSR_TRY(read_species(config, log, m, err));
    TSR_TRY(choose_bound(&c->d_max, log, m, err));
    tsr_prior_options prior = config->prior;
    if (c->frozen) /* nothing moves, so overlaps cannot change */
        prior.clash = TSR_CLASH_NONE;
    TSR_TRY(tsr_prior_new(m->topology, tables->prior, &prior, m->d_bound_ang,
                          &m->prior, err));
    TSR_TRY(remove_clashes(config,
                           m->file == NULL ? "structure.sequence" : m->file,
                           m->first, log, m, err));
    for (int k = 0; k < m->n_start; k++)
        TSR_TRY(
            remove_clashes(config, start[k].file, m->start[k], log, m, err));
    TSR_TRY(tsr_molecule_read_pool(config, log, m, err));
    return tsr_molecule_set_model(m, err);
}

void tsr_molecule_clear(tsr_molecule *molecule)
{
    tsr_molecule *m = molecule;
    for (int k = 0; k < m->n_start; k++)
        tsr_conformation_free(m->start[k]);
    free(m->start);
    tsr_form_factor_free(m->of_guests[0]);
    tsr_form_factor_free(m->of_guests[1]);
    tsr_members_free(m->members);
    tsr_model_atoms_free(m->model);
    tsr_prior_free(m->prior);
    tsr_conformation_free(m->first);
    tsr_topology_free(m->topology);
    tsr_pool_clear(&m->pool);
    *m = (tsr_molecule){.file = NULL};
}
