/* Makes a topology and its first conformation from a structure or a sequence:
 * residues, bonds, bodies, frames. A sequence is built as an extended chain,
 * and moved so that its coordinates fit the columns of a PDB file. */
#include "molecule/topology.h"
#include "core/vec3.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longest C-N distance of a peptide bond, Angstrom. */
static const double longest_peptide = 2.0;

void tsr_topology_free(tsr_topology *t)
{
    if (t != NULL)
        tsr_pool_clear(&t->pool);
    free(t);
}

static tsr_status topology_new(int n_residue, int n_link,
                               tsr_body_model body_model, tsr_topology **out,
                               tsr_err *err)
{
    tsr_topology *t = *out = calloc(1, sizeof *t);
    TSR_TRY(tsr_allocated(t, err));
    t->n_residue = t->n_own = n_residue;
    t->n_link = n_link;
    t->body_model = body_model;
    tsr_pool_array(&t->pool, t->residue, n_residue);
    tsr_pool_array(&t->pool, t->body, 2 * n_residue);
    tsr_pool_array(&t->pool, t->torsion, 2 * n_residue);
    tsr_pool_array(&t->pool, t->side, n_residue);
    tsr_pool_array(&t->pool, t->chain_start, n_residue + 1);
    tsr_pool_array(&t->pool, t->mobile, n_residue);
    if (n_link > 0)
        tsr_pool_array(&t->pool, t->base, n_residue);
    return tsr_pool_check(&t->pool, err);
}

static void make_bodies(tsr_topology *t)
{
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        int type[2];
        r->first_body = t->n_body;
        if (r->link != TSR_LINK_NONE)
            continue; /* its bodies are guests, added later */
        r->n_body = tsr_body_types(t->body_model, r->amino, type);
        for (int b = 0; b < r->n_body; b++) {
            double mass = tsr_body_mass(t->body_model, type[b]);
            t->body[t->n_body++] = (tsr_body){type[b], type[b], i, mass};
            t->total_mass += mass;
        }
    }
}

static void set_chains(tsr_topology *t)
{
    tsr_residue *r = t->residue;
    for (int i = 0; i < t->n_residue; i++) {
        if (i == 0 || strcmp(r[i].chain, r[i - 1].chain) != 0)
            t->chain_start[t->n_chain++] = i;
        r[i].in_chain = t->n_chain - 1;
        r[i].chain_first = t->chain_start[t->n_chain - 1];
    }
    t->chain_start[t->n_chain] = t->n_residue;
    for (int i = 0; i < t->n_residue; i++)
        r[i].chain_last = t->chain_start[r[i].in_chain + 1] - 1;
}

/* Excluded volume omits pairs of bodies less than three positions apart. In a
 * strand this means the adjacent nucleotides, whose bases may stack. */
static void set_sequence_indices(tsr_topology *t)
{
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        const tsr_residue *before = i > r->chain_first ? r - 1 : NULL;
        const int is_same = before != NULL && r->link != TSR_LINK_NONE &&
                            before->nucleotide == r->nucleotide;
        r->sequence_index = r->link == TSR_LINK_NONE ? i
                            : before == NULL
                                ? 0
                                : before->sequence_index + 2 * !is_same;
    }
}

/* Sets chains, sequence indices and bodies, which depend on the residues alone,
 * and allocates a conformation. */
static tsr_status set_derived(tsr_topology *t, tsr_conformation **c,
                              tsr_err *err)
{
    set_chains(t);
    set_sequence_indices(t);
    make_bodies(t);
    *c = tsr_conformation_new(t);
    return tsr_allocated(*c, err);
}

/* Hands topology and conformation to the caller, or frees them after an
 * error. */
static tsr_status hand_over(tsr_status status, tsr_topology *t,
                            tsr_conformation *c, tsr_topology **out,
                            tsr_conformation **first)
{
    if (status != TSR_OK) {
        tsr_conformation_free(c);
        tsr_topology_free(t);
        t = NULL, c = NULL;
    }
    *out = t, *first = c;
    return status;
}

/* ---- from a structure ---- */

/* What was built or is missing: numbers of residues. */
typedef struct {
    int n_side_mean, n_o, n_cb, n_break;
    char first_side[32], first_break[32];
} repairs;

/* Reads N, CA, C and O. A missing O is NaN. */
static void read_backbone(const tsr_structure *s,
                          const tsr_residue_record *record, double x[4][3])
{
    static const char *const names[4] = {"N", "CA", "C", "O"};
    for (int a = 0; a < 4; a++) {
        const tsr_atom *atom = tsr_residue_atom(s, record, names[a]);
        if (atom != NULL)
            tsr_vec3_copy(x[a], atom->xyz);
        else
            x[a][0] = (double)NAN;
    }
}

/* Centre of the atoms beyond CB, weighted by mass. Returns 0 if atoms are
 * missing. In files that tessera wrote, an atom SC is the centre itself. */
static int side_centre(const tsr_structure *s, const tsr_residue_record *record,
                       tsr_amino amino, double centre[3])
{
    const tsr_atom *sc = tsr_residue_atom(s, record, "SC");
    if (sc != NULL) {
        tsr_vec3_copy(centre, sc->xyz);
        return 1;
    }
    const tsr_amino_info *info = &tsr_amino_table[amino];
    double mass = 0.0, sum[3] = {0};
    for (int a = 5; a < info->n_atom; a++) {
        const tsr_atom *atom = tsr_residue_atom(s, record, info->atom[a].name);
        if (atom == NULL)
            return 0;
        double m = tsr_atom_mass(info->atom[a].z);
        mass += m;
        for (int d = 0; d < 3; d++)
            sum[d] += m * atom->xyz[d];
    }
    for (int d = 0; d < 3; d++)
        centre[d] = sum[d] / mass;
    return 1;
}

static void read_side(const tsr_structure *s, const tsr_residue_record *record,
                      const tsr_prior_table *prior, tsr_residue *r,
                      double x[4][3], double side[3], repairs *made)
{
    double frame[3][3], global[3];
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    const tsr_atom *cb = tsr_residue_atom(s, record, "CB");
    if (r->amino != TSR_GLY) {
        if (cb != NULL)
            tsr_vec3_copy(global, cb->xyz);
        else
            tsr_place_cb(global, x[TSR_N], x[TSR_CA], x[TSR_C]);
        made->n_cb += cb == NULL;
        tsr_frame_to_local(r->cb, frame, x[TSR_CA], global);
    }
    if (!tsr_amino_has_side_chain(r->amino))
        return;
    if (side_centre(s, record, r->amino, global)) {
        tsr_frame_to_local(side, frame, x[TSR_CA], global);
        return;
    }
    tsr_prior_table_side(prior, r->amino, side);
    if (made->n_side_mean++ == 0)
        tsr_residue_label(record, made->first_side, sizeof made->first_side);
}

/* Places O in the plane of the peptide, opposite to the next N. */
static void place_o(double x[4][3], double psi_rad)
{
    tsr_place_atom(x[TSR_O], x[TSR_N], x[TSR_CA], x[TSR_C], TSR_BOND_C_O,
                   TSR_ANGLE_CA_C_O, psi_rad + TSR_PI);
}

static void link_residues(const tsr_structure *s, tsr_topology *t,
                          tsr_conformation *c, repairs *made)
{
    for (int i = 0; i < s->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        double(*x)[3] = c->backbone[i];
        if (i > r->chain_first)
            r->linked = tsr_vec3_distance(c->backbone[i - 1][TSR_C], x[TSR_N]) <
                        longest_peptide;
        if (i > r->chain_first && !r->linked && made->n_break++ == 0)
            tsr_residue_label(&s->residue[i], made->first_break,
                              sizeof made->first_break);
    }
    for (int i = 0; i < s->n_residue; i++) {
        double(*x)[3] = c->backbone[i];
        if (!isnan(x[TSR_O][0]))
            continue;
        int next = i < t->residue[i].chain_last && t->residue[i + 1].linked;
        double psi = next ? tsr_conformation_torsion(t, c, i, TSR_PSI) : 2.4;
        place_o(x, psi);
        made->n_o++;
    }
}

/* Sets residue i to a link. */
static void set_link(const tsr_nucleic_link *link, int i, tsr_topology *t)
{
    tsr_residue *r = &t->residue[i];
    r->amino = TSR_GLY;
    r->link = link->link;
    memcpy(r->chain, link->chain, sizeof r->chain);
    memcpy(r->name, link->name, sizeof r->name);
    r->number = link->number;
    r->insertion = link->insertion;
    r->linked = link->linked;
    r->nucleotide = link->residue;
    r->rama = TSR_N_RAMA + link->class;
}

static void set_link_coordinates(const tsr_nucleic_link *link, int i,
                                 tsr_topology *t, tsr_conformation *c)
{
    double(*x)[3] = c->backbone[i], frame[3][3];
    tsr_base *base = &t->base[i];
    for (int a = 0; a < 4; a++)
        tsr_vec3_copy(x[a], link->xyz[a < 3 ? a : TSR_C]);
    base->exists = link->has_base;
    if (!link->has_base)
        return;
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame_to_local(base->from, frame, x[TSR_CA], link->c1);
    tsr_frame_to_local(base->to, frame, x[TSR_CA], link->base);
    base->chi = c->side[i][0] = link->chi;
}

static void log_repairs(const tsr_structure *s, const repairs *made,
                        tsr_log *log)
{
    if (s->n_incomplete > 0)
        tsr_warn(log, "'%s': left out of the chains: %s", s->path,
                 s->incomplete);
    if (made->n_side_mean > 0)
        tsr_warn(log,
                 "'%s': %d incomplete side chain%s placed at the mean of the "
                 "prior, the first at %s",
                 s->path, made->n_side_mean, made->n_side_mean == 1 ? "" : "s",
                 made->first_side);
    if (made->n_o + made->n_cb > 0)
        tsr_warn(log, "'%s': built %d missing O and %d missing CB", s->path,
                 made->n_o, made->n_cb);
    if (made->n_break > 0)
        tsr_warn(log,
                 "'%s': %d chain breaks, the first before %s; the parts on "
                 "both sides keep their relative positions",
                 s->path, made->n_break, made->first_break);
}

static tsr_status set_residues(const tsr_structure *s,
                               const tsr_nucleic *nucleic, tsr_topology *t,
                               tsr_err *err)
{
    for (int i = 0; i < s->n_residue; i++) {
        const tsr_residue_record *record = &s->residue[i];
        tsr_residue *r = &t->residue[i];
        int amino = tsr_amino_by_three(record->name);
        if (amino < 0)
            return tsr_fail(err, TSR_E_INTERNAL, "'%s': residue %s is unknown",
                            s->path, record->name);
        r->amino = (tsr_amino)amino;
        memcpy(r->chain, record->chain, sizeof r->chain);
        r->number = record->number;
        r->insertion = record->insertion;
    }
    for (int k = 0; k < t->n_link; k++)
        set_link(&nucleic->link[k], s->n_residue + k, t);
    return TSR_OK;
}

static void set_symmetry(const tsr_symmetry *symmetry, tsr_topology *t)
{
    t->symmetry = *symmetry;
    t->n_own = t->n_residue / symmetry->n;
    for (int i = 0; i < t->n_residue; i++)
        t->residue[i].copy = i / t->n_own;
}

static void set_coordinates(const tsr_structure *s, const tsr_nucleic *nucleic,
                            const tsr_prior_table *prior, tsr_topology *t,
                            tsr_conformation *c, repairs *made)
{
    for (int k = 0; k < t->n_link; k++)
        set_link_coordinates(&nucleic->link[k], s->n_residue + k, t, c);
    for (int i = 0; i < s->n_residue; i++) {
        const tsr_residue_record *record = &s->residue[i];
        read_backbone(s, record, c->backbone[i]);
        read_side(s, record, prior, &t->residue[i], c->backbone[i], c->side[i],
                  made);
    }
    link_residues(s, t, c, made);
    tsr_conformation_place_bodies(t, c, 0, t->n_residue);
    tsr_conformation_place_copies(t, c, 0, t->n_own);
}

tsr_status tsr_topology_from_structure(const tsr_structure *s,
                                       tsr_body_model body_model,
                                       tsr_flexibility flexibility,
                                       const tsr_prior_table *prior,
                                       tsr_log *log, tsr_topology **out,
                                       tsr_conformation **first, tsr_err *err)
{
    const tsr_nucleic *nucleic = flexibility.nucleic;
    static const tsr_nucleic no_links = {.n = 0};
    nucleic = nucleic != NULL ? nucleic : &no_links;
    const int n_link = nucleic->n;
    tsr_topology *t = NULL;
    tsr_conformation *c = NULL;
    repairs made = {0};
    tsr_status status =
        topology_new(s->n_residue + n_link, n_link, body_model, &t, err);
    TSR_THEN(status, set_residues(s, nucleic, t, err));
    if (status == TSR_OK && s->symmetry.n > 1)
        set_symmetry(&s->symmetry, t);
    TSR_THEN(status, set_derived(t, &c, err));
    if (status == TSR_OK)
        set_coordinates(s, nucleic, prior, t, c, &made);
    TSR_THEN(status, tsr_freedom_set(t, c, &flexibility, log, err));
    if (status == TSR_OK)
        log_repairs(s, &made, log);
    return hand_over(status, t, c, out, first);
}

/* ---- from a sequence ---- */

/* Shifts the molecule to larger coordinates if some are far below 0: a PDB file
 * can hold -999.999 to 9999.999. */
static void shift_up(const tsr_topology *t, tsr_conformation *c)
{
    double least[3] = {0.0, 0.0, 0.0};
    tsr_motion up = {{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}},
                     {0.0, 0.0, 0.0}};
    for (int i = 0; i < t->n_residue; i++)
        for (int d = 0; d < 3; d++)
            least[d] = fmin(least[d], c->backbone[i][TSR_CA][d]);
    for (int d = 0; d < 3; d++)
        up.shift[d] = least[d] < -900.0 ? -least[d] : 0.0;
    if (up.shift[0] + up.shift[1] + up.shift[2] > 0.0)
        tsr_conformation_move(t, c, 0, t->n_residue - 1, &up);
}

static void build_extended(tsr_topology *t, const tsr_prior_table *prior,
                           tsr_conformation *c)
{
    const double degree = TSR_PI / 180.0, psi = 140.0 * degree;
    double(*x)[3] = c->backbone[0], frame[3][3], cb[3], local[3];
    x[TSR_CA][0] = TSR_BOND_N_CA;
    x[TSR_C][0] = TSR_BOND_N_CA - TSR_BOND_CA_C * cos(TSR_ANGLE_N_CA_C);
    x[TSR_C][1] = TSR_BOND_CA_C * sin(TSR_ANGLE_N_CA_C);
    /* CB is the same in the frame of every ideal residue. */
    tsr_place_cb(cb, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame(frame, x[TSR_N], x[TSR_CA], x[TSR_C]);
    tsr_frame_to_local(local, frame, x[TSR_CA], cb);
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        x = c->backbone[i];
        if (i > 0) {
            double(*p)[3] = c->backbone[i - 1];
            tsr_place_atom(x[TSR_N], p[TSR_N], p[TSR_CA], p[TSR_C],
                           TSR_BOND_C_N, TSR_ANGLE_CA_C_N, psi);
            tsr_place_atom(x[TSR_CA], p[TSR_CA], p[TSR_C], x[TSR_N],
                           TSR_BOND_N_CA, TSR_ANGLE_C_N_CA, TSR_PI);
            tsr_place_atom(x[TSR_C], p[TSR_C], x[TSR_N], x[TSR_CA],
                           TSR_BOND_CA_C, TSR_ANGLE_N_CA_C,
                           (r->amino == TSR_PRO ? -65.0 : -135.0) * degree);
        }
        place_o(x, psi);
        tsr_vec3_copy(r->cb, local);
        if (tsr_amino_has_side_chain(r->amino))
            tsr_prior_table_side(prior, r->amino, c->side[i]);
    }
    tsr_conformation_place_bodies(t, c, 0, t->n_residue);
    shift_up(t, c);
}

static tsr_status set_letters(const char *sequence, tsr_topology *t,
                              tsr_err *err)
{
    for (int i = 0; i < t->n_residue; i++) {
        tsr_residue *r = &t->residue[i];
        int amino = tsr_amino_by_one(sequence[i]);
        if (amino < 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "structure.sequence: letter %d, '%c', is not one "
                            "of the 20 amino acids",
                            i + 1, sequence[i]);
        r->amino = (tsr_amino)amino;
        memcpy(r->chain, "A", 2);
        r->number = i + 1;
        r->insertion = ' ';
        r->linked = i > 0;
    }
    return TSR_OK;
}

tsr_status tsr_topology_from_sequence(const char *sequence,
                                      tsr_body_model body_model,
                                      tsr_flexibility flexibility,
                                      const tsr_prior_table *prior,
                                      tsr_topology **out,
                                      tsr_conformation **first, tsr_err *err)
{
    tsr_topology *t = NULL;
    tsr_conformation *c = NULL;
    size_t n = strlen(sequence);
    tsr_status status =
        n < 3 || n > 100000
            ? tsr_fail(err, TSR_E_CONFIG,
                       "structure.sequence: %zu residues; expected 3 to 100000",
                       n)
            : topology_new((int)n, 0, body_model, &t, err);
    TSR_THEN(status, set_letters(sequence, t, err));
    TSR_THEN(status, set_derived(t, &c, err));
    if (status == TSR_OK)
        build_extended(t, prior, c);
    TSR_THEN(status, tsr_freedom_set(t, c, &flexibility, NULL, err));
    return hand_over(status, t, c, out, first);
}

/* ---- properties ---- */

int tsr_topology_n_monomer(const tsr_topology *t)
{
    int n = t->n_residue - t->n_link;
    for (int i = n; i < t->n_residue; i++)
        n += t->residue[i].link == TSR_LINK_SUGAR;
    return n;
}

const char *tsr_residue_name(const tsr_residue *residue)
{
    return residue->link == TSR_LINK_NONE
               ? tsr_amino_table[residue->amino].three
               : residue->name;
}

char *tsr_topology_sequence(const tsr_topology *t)
{
    size_t n = (size_t)t->n_residue + (size_t)t->n_chain;
    char *text = calloc(n + 1, 1), *at = text;
    if (text == NULL)
        return NULL;
    for (int i = 0; i < t->n_residue; i++) {
        if (i > 0 && t->residue[i].chain_first == i)
            *at++ = '/';
        const tsr_residue *r = &t->residue[i];
        const size_t n_name = strlen(r->name);
        if (r->link == TSR_LINK_NONE)
            *at++ = tsr_amino_table[r->amino].one;
        else if (r->link == TSR_LINK_SUGAR && n_name > 0)
            *at++ = (char)tolower((unsigned char)r->name[n_name - 1]);
    }
    return text;
}
