/* Members of structure.pool: reads models and trajectories, and keeps the free
 * torsions of each conformation. */
#include "posterior/molecule.h"

#include "files/dcd.h"
#include "files/file.h"
#include "store/h5md.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One entry of structure.pool. */
typedef struct {
    const tsr_pool_config *from;
    tsr_pool pool;
    tsr_atoms *atoms;
    int n;            /* conformations */
    double (*xyz)[3]; /* [n][n_atom] models of the file */
    tsr_dcd *dcd;     /* one of the two, or neither */
    tsr_h5md *h5md;
    double (*frame)[3]; /* [all atoms] one frame of the trajectory */
    int (*at)[3];       /* [n_residue] N, CA, C of a residue of the run: index
                           in a model, or in a frame */
} source;

static void source_clear(source *s)
{
    tsr_atoms_free(s->atoms);
    tsr_dcd_free(s->dcd);
    tsr_h5md_free(s->h5md);
    tsr_pool_clear(&s->pool);
}

/* Finds N, CA and C of a residue of the file. Returns 0 if one is missing. */
static int find_backbone(const source *s, const tsr_file_residue *r, int at[3])
{
    static const char *const names[3] = {"N", "CA", "C"};
    int n = 0;
    for (int k = 0; k < 3; k++)
        for (int a = r->first_atom; a < r->first_atom + r->n_atom; a++) {
            if (strcmp(s->atoms->atom[a].name, names[k]) != 0)
                continue;
            at[k] = s->frame != NULL ? s->atoms->atom[a].in_file : a;
            n++;
            break;
        }
    return n == 3;
}

/* Number of amino acids of the run before the copies of a symmetric
 * assembly. */
static int n_amino(const tsr_topology *t)
{
    int n = 0;
    while (n < t->n_own && t->residue[n].link == TSR_LINK_NONE)
        n++;
    return n;
}

/* Finds the residues of the run among those of the file, in the same order. The
 * file may have the copies of a symmetric assembly, too. */
static tsr_status match(source *s, const tsr_topology *t, tsr_err *err)
{
    const int wanted = n_amino(t);
    int n = 0;
    tsr_pool_array(&s->pool, s->at, t->n_residue);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    for (int k = 0; k < s->atoms->n_residue; k++) {
        const tsr_file_residue *r = &s->atoms->residue[k];
        int at[3];
        if (r->kind != TSR_MOLECULE_PROTEIN || !find_backbone(s, r, at))
            continue;
        if (n < wanted &&
            strcmp(r->parent, tsr_residue_name(&t->residue[n])) != 0)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': residue %s:%d is %s where structure.file "
                            "has %s (%s:%d); a pool has the residues of "
                            "structure.file, in the same order",
                            s->from->file, r->chain, r->number, r->parent,
                            tsr_residue_name(&t->residue[n]),
                            t->residue[n].chain, t->residue[n].number);
        if (n < wanted)
            memcpy(s->at[n], at, sizeof at);
        n++;
    }
    if (n == wanted || (t->symmetry.n > 1 && n == wanted * t->symmetry.n))
        return TSR_OK;
    return tsr_fail(err, TSR_E_DATA,
                    "'%s': %d residues with N, CA and C, but structure.file "
                    "has %d; a pool has the residues of structure.file, in the "
                    "same order",
                    s->from->file, n, wanted);
}

static tsr_status open_trajectory(source *s, tsr_log *log, tsr_err *err)
{
    const char *path = s->from->trajectory;
    int n_atom;
    TSR_TRY(tsr_file_check_input(path, err));
    if (tsr_h5md_is(path)) {
        TSR_TRY(tsr_h5md_open(path, &s->h5md, err));
        n_atom = tsr_h5md_n_atom(s->h5md), s->n = tsr_h5md_n_frame(s->h5md);
    } else {
        TSR_TRY(tsr_dcd_open(path, &s->dcd, err));
        const tsr_dcd_info info = tsr_dcd_info_get(s->dcd);
        n_atom = info.n_atom, s->n = info.n_frame;
        if (info.is_cut)
            tsr_warn(log, "'%s' ends within a frame; that frame is left out",
                     path);
    }
    if (n_atom != s->atoms->n_in_file)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' has %d atoms, but '%s' %d: they must be the "
                        "same, in the same order, waters and hydrogens "
                        "included",
                        path, n_atom, s->from->file, s->atoms->n_in_file);
    tsr_pool_array(&s->pool, s->frame, n_atom);
    return tsr_pool_check(&s->pool, err);
}

/* Reads N, CA and C of conformation m into `to`. Bonds say whether the atoms
 * are in another order, or the molecule is cut by a periodic boundary. */
static tsr_status read_one(const source *s, const tsr_topology *t, int m,
                           tsr_conformation *to, tsr_err *err)
{
    const double longest_ang = 2.2;
    const int n = n_amino(t), is_model = s->frame == NULL;
    const double(*x)[3] = (const double(*)[3])s->frame;
    if (x == NULL)
        x = (const double(*)[3])s->xyz + (size_t)m * (size_t)s->atoms->n_atom;
    else
        TSR_TRY(s->h5md != NULL ? tsr_h5md_read(s->h5md, m, s->frame, err)
                                : tsr_dcd_read(s->dcd, m, s->frame, err));
    for (int i = 0; i < n; i++) {
        double(*b)[3] = to->backbone[i];
        for (int k = 0; k < 3; k++)
            tsr_vec3_copy(b[k], x[s->at[i][k]]);
        double bond = fmax(tsr_vec3_distance(b[TSR_N], b[TSR_CA]),
                           tsr_vec3_distance(b[TSR_CA], b[TSR_C]));
        if (t->residue[i].linked)
            bond = fmax(
                bond, tsr_vec3_distance(b[TSR_N], to->backbone[i - 1][TSR_C]));
        if (!(bond < longest_ang))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': a bond of the backbone at %s:%d is %.1f A "
                            "long in %s %d: atoms in another order, or a "
                            "molecule cut by a periodic boundary (make "
                            "molecules whole first)",
                            is_model ? s->from->file : s->from->trajectory,
                            t->residue[i].chain, t->residue[i].number, bond,
                            is_model ? "model" : "frame", m + 1);
    }
    return TSR_OK;
}

/* Distance of a member that is rebuilt with the run's bond lengths and angles
 * from that of the file, RMSD of CA, Angstrom. ca [2][n] scratch. */
static double rebuilt_rmsd(const tsr_molecule *m, int member,
                           const tsr_conformation *file,
                           tsr_conformation *rebuilt, double (*ca)[3])
{
    const tsr_topology *t = m->topology;
    const int n = n_amino(t);
    tsr_motion motion;
    tsr_members_apply(m->members, member, m->first, rebuilt);
    for (int i = 0; i < n; i++) {
        tsr_vec3_copy(ca[i], file->backbone[i][TSR_CA]);
        tsr_vec3_copy(ca[n + i], rebuilt->backbone[i][TSR_CA]);
    }
    return tsr_superpose(n, NULL, (const double(*)[3])ca,
                         (const double(*)[3])(ca + n), &motion);
}

static tsr_status read_source(source *s, tsr_log *log, tsr_molecule *m,
                              tsr_err *err)
{
    enum { MOST = 10000 };
    const tsr_topology *t = m->topology;
    double *rmsd, (*ca)[3];
    TSR_TRY(
        tsr_atoms_read_models(s->from->file, &s->atoms, &s->n, &s->xyz, err));
    if (s->from->trajectory != NULL)
        TSR_TRY(open_trajectory(s, log, err));
    TSR_TRY(match(s, t, err));
    const int n = s->n < MOST ? s->n : MOST;
    tsr_pool_array(&s->pool, rmsd, n);
    tsr_pool_array(&s->pool, ca, 2 * t->n_residue);
    TSR_TRY(tsr_pool_check(&s->pool, err));
    tsr_conformation *file = tsr_conformation_new(t),
                     *rebuilt = tsr_conformation_new(t);
    tsr_status status =
        file != NULL && rebuilt != NULL ? TSR_OK : tsr_no_memory(err);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        status = read_one(s, t, (int)((long)k * s->n / n), file, err);
        TSR_THEN(status, tsr_members_add(m->members, file, err));
        if (status == TSR_OK)
            rmsd[k] = rebuilt_rmsd(m, m->members->n - 1, file, rebuilt, ca);
    }
    tsr_conformation_free(file);
    tsr_conformation_free(rebuilt);
    if (status != TSR_OK)
        return status;
    gsl_sort(rmsd, 1, (size_t)n);
    tsr_info(
        log,
        "structure.pool: %d of %d conformations of '%s'; with bond lengths "
        "and angles of structure.file CA are off by %.1f A (median RMSD), "
        "%.1f A at most",
        n, s->n,
        s->from->trajectory != NULL ? s->from->trajectory : s->from->file,
        rmsd[(n - 1) / 2], rmsd[n - 1]);
    return TSR_OK;
}

tsr_status tsr_molecule_read_pool(const tsr_config *config, tsr_log *log,
                                  tsr_molecule *molecule, tsr_err *err)
{
    const tsr_list *list = &config->structure.pool;
    const tsr_pool_config *entry = list->item;
    tsr_status status = TSR_OK;
    if (list->n == 0)
        return TSR_OK;
    molecule->members = tsr_members_new(molecule->topology);
    TSR_TRY(tsr_allocated(molecule->members, err));
    if (molecule->members->n_linker == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "structure.pool: no torsion of an amino acid is free; "
                        "leave it out");
    for (int k = 0; k < list->n && status == TSR_OK; k++) {
        source s = {.from = &entry[k]};
        status = read_source(&s, log, molecule, err);
        source_clear(&s);
    }
    TSR_THEN(status, tsr_members_finish(molecule->members, err));
    return status;
}
