/* Members of structure.pool: reads models and trajectories, and keeps the free
 * torsions of each conformation. */
#include "posterior/molecule.h"

#include "store/md_frames.h"

#include <math.h>
#include <string.h>

/* One entry of structure.pool. */
typedef struct {
    const char *path; /* of the conformations, for messages */
    tsr_atoms *atoms;
    int n, n_residue;      /* conformations; amino acids of the subunit */
    double (*xyz)[3];      /* [n][n_atom] models of the file */
    tsr_md_frames *frames; /* the frames to be read instead, or NULL */
    int (*at)[3];          /* [n_residue] N, CA, C: index in a model or frame */
    int *ca;               /* [n_residue] CA among the atoms of a backbone */
} source;

/* Finds N, CA and C of a residue of the file. Returns 0 if one is missing. */
static int find_backbone(const source *s, const tsr_file_residue *r, int at[3])
{
    static const char *const names[3] = {"N", "CA", "C"};
    int found = 0;
    for (int a = r->first_atom; a < r->first_atom + r->n_atom; a++)
        for (int k = 0; k < 3; k++)
            if (strcmp(s->atoms->atom[a].name, names[k]) == 0) {
                at[k] = s->frames != NULL ? s->atoms->atom[a].in_file : a;
                found |= 1 << k;
            }
    return r->kind == TSR_MOLECULE_PROTEIN && found == 7;
}

/* Finds the residues of the run among those of the file, in the same order. The
 * file may have the copies of a symmetric assembly, too. */
static tsr_status match(source *s, const tsr_topology *t, tsr_err *err)
{
    int n = 0, at[3];
    while (s->n_residue < t->n_own &&
           t->residue[s->n_residue].link == TSR_LINK_NONE)
        s->n_residue++;
    tsr_pool_array(&s->atoms->pool, s->at, s->n_residue);
    tsr_pool_array(&s->atoms->pool, s->ca, s->n_residue);
    TSR_TRY(tsr_pool_check(&s->atoms->pool, err));
    for (int k = 0; k < s->atoms->n_residue; k++) {
        const tsr_file_residue *r = &s->atoms->residue[k];
        if (!find_backbone(s, r, at) || n++ >= s->n_residue)
            continue;
        const tsr_residue *own = &t->residue[n - 1];
        if (strcmp(r->parent, tsr_residue_name(own)) != 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': residue %s:%d is %s where structure.file "
                            "has %s (%s:%d); a pool has the residues of "
                            "structure.file, in the same order",
                            s->atoms->path, r->chain, r->number, r->parent,
                            tsr_residue_name(own), own->chain, own->number);
        memcpy(s->at[n - 1], at, sizeof at);
        s->ca[n - 1] = 4 * (n - 1) + TSR_CA;
    }
    if (n == s->n_residue || (n > 0 && n == s->n_residue * t->symmetry.n))
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %d residues with N, CA and C, but structure.file "
                    "has %d; a pool has the residues of structure.file, in the "
                    "same order",
                    s->atoms->path, n, s->n_residue);
}

/* Reads N, CA and C of conformation m into `to`. Bonds show whether the atoms
 * are in another order, or the molecule is cut by a periodic boundary. */
static tsr_status read_one(const source *s, const tsr_topology *t, int m,
                           tsr_conformation *to, tsr_err *err)
{
    const double longest_ang = 2.2;
    const double(*x)[3] =
        (const double(*)[3])s->xyz + (size_t)m * (size_t)s->atoms->n_atom;
    if (s->frames != NULL)
        TSR_TRY(tsr_md_frames_read(s->frames, m, &x, err));
    for (int i = 0; i < s->n_residue; i++) {
        double(*b)[3] = to->backbone[i];
        for (int k = 0; k < 3; k++)
            tsr_vec3_copy(b[k], x[s->at[i][k]]);
        double bond = fmax(tsr_vec3_distance(b[TSR_N], b[TSR_CA]),
                           tsr_vec3_distance(b[TSR_CA], b[TSR_C]));
        if (t->residue[i].linked)
            bond = fmax(bond, tsr_vec3_distance(b[TSR_N], b[TSR_C - 4]));
        if (!(bond < longest_ang))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': a bond of the backbone at %s:%d is %.1f A "
                            "long in %s %d: atoms in another order, or a "
                            "molecule cut by a periodic boundary (make "
                            "molecules whole first)",
                            s->path, t->residue[i].chain, t->residue[i].number,
                            bond, s->frames == NULL ? "model" : "frame", m + 1);
    }
    return TSR_OK;
}

/* work: two conformations, of the file and rebuilt with the run's bond lengths
 * and angles. */
static tsr_status read_source(source *s, const char *trajectory, tsr_log *log,
                              tsr_molecule *m, tsr_conformation *const work[2],
                              tsr_err *err)
{
    enum { MOST = 10000 };
    double rmsd, mean = 0.0, worst = 0.0;
    tsr_motion motion;
    TSR_TRY(tsr_atoms_read_models(s->path, &s->atoms, &s->n, &s->xyz, err));
    if (trajectory != NULL) {
        TSR_TRY(tsr_md_frames_open(trajectory, s->path, s->atoms->n_in_file,
                                   log, &s->frames, err));
        s->n = tsr_md_frames_n(s->frames), s->path = trajectory;
    }
    TSR_TRY(match(s, m->topology, err));
    const int n = s->n < MOST ? s->n : MOST;
    for (int k = 0; k < n; k++) {
        const int frame = (int)((long)k * s->n / n);
        TSR_TRY(read_one(s, m->topology, frame, work[0], err));
        TSR_TRY(tsr_members_add(m->members, work[0], err));
        tsr_members_apply(m->members, m->members->n - 1, m->first, work[1]);
        rmsd = tsr_superpose(s->n_residue, s->ca,
                             (const double(*)[3])work[0]->backbone,
                             (const double(*)[3])work[1]->backbone, &motion);
        mean += rmsd / n, worst = fmax(worst, rmsd);
    }
    tsr_info(
        log,
        "structure.pool: %d of %d conformations of '%s'; with bond lengths "
        "and angles of structure.file CA are off by %.1f A (mean RMSD), "
        "%.1f A at most",
        n, s->n, s->path, mean, worst);
    return TSR_OK;
}

tsr_status tsr_molecule_read_pool(const tsr_config *config, tsr_log *log,
                                  tsr_molecule *molecule, tsr_err *err)
{
    const tsr_list *list = &config->structure.pool;
    const tsr_pool_config *entry = list->item;
    tsr_molecule *m = molecule;
    if (list->n == 0)
        return TSR_OK;
    m->members = tsr_members_new(m->topology);
    TSR_TRY(tsr_allocated(m->members, err));
    if (m->members->n_torsion == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.pool: no torsion of an amino acid is free; "
                        "leave it out");
    tsr_conformation *work[2] = {tsr_conformation_new(m->topology),
                                 tsr_conformation_new(m->topology)};
    tsr_status status = work[0] && work[1] ? TSR_OK : tsr_no_memory(err);
    for (int k = 0; k < list->n && status == TSR_OK; k++) {
        source s = {.path = entry[k].file};
        status = read_source(&s, entry[k].trajectory, log, m, work, err);
        tsr_atoms_free(s.atoms);
        tsr_md_frames_free(s.frames);
    }
    tsr_conformation_free(work[0]);
    tsr_conformation_free(work[1]);
    return status;
}
