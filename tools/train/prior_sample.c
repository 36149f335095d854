/* Goes through a structure residue by residue and keeps what the rules of the
 * header let pass; all structures together are then the sample that densities
 * are fitted to. */
#include "train/prior_sample.h"
#include "molecule/residue_atoms.h"

#include "core/vec3.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double longest_bond = 2.0;     /* C-N, Angstrom */
static const double most_twist = M_PI / 6;  /* of a peptide bond */
static const double least_angle = 1.658063; /* N-CA-C: 95 degrees */
static const double most_angle = 2.216568;  /* 127 */
static const double farthest = 4.0, mad_to_sd = 1.4826;

enum { N, CA, C, O, CB }; /* of the table of amino acids */

tsr_prior_sample *tsr_prior_sample_new(void)
{
    tsr_prior_sample *sample = calloc(1, sizeof *sample);
    if (sample == NULL)
        return NULL;
    for (int c = 0; c < TSR_N_RAMA; c++)
        sample->torsion[c].dim = 2;
    for (int a = 0; a < TSR_N_AMINO; a++)
        sample->side[a].dim = 3, sample->angle[a].dim = 1;
    return sample;
}

static void clear(tsr_sample *s)
{
    free(s->x);
    free(s->file);
}

void tsr_prior_sample_free(tsr_prior_sample *sample)
{
    if (sample == NULL)
        return;
    for (int c = 0; c < TSR_N_RAMA; c++)
        clear(&sample->torsion[c]);
    for (int a = 0; a < TSR_N_AMINO; a++) {
        clear(&sample->side[a]);
        clear(&sample->angle[a]);
    }
    free(sample);
}

static tsr_status make_room(tsr_sample *s, long more, tsr_err *err)
{
    if (s->n + more <= s->room)
        return TSR_OK;
    long room = s->n + more + s->room;
    double *x = realloc(s->x, (size_t)(room * s->dim) * sizeof *x);
    if (x != NULL)
        s->x = x;
    int *file = realloc(s->file, (size_t)room * sizeof *file);
    if (file != NULL)
        s->file = file;
    if (x == NULL || file == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %ld observations",
                        room);
    s->room = room;
    return TSR_OK;
}

static tsr_status put(tsr_sample *s, const double *x, int file, tsr_err *err)
{
    TSR_TRY(make_room(s, 1, err));
    memcpy(s->x + s->n * s->dim, x, (size_t)s->dim * sizeof *x);
    s->file[s->n++] = file;
    return TSR_OK;
}

static tsr_status put_side_chain(const tsr_residue_atoms *atoms,
                                 tsr_prior_sample *sample, tsr_err *err)
{
    double centre[3], local[3], frame[3][3];
    const double *n = atoms->xyz[N], *ca = atoms->xyz[CA], *c = atoms->xyz[C];
    if (n == NULL || ca == NULL || c == NULL ||
        tsr_side_chain_centre(atoms, centre) != 0)
        return TSR_OK;
    tsr_frame(frame, n, ca, c);
    tsr_frame_to_local(local, frame, ca, centre);
    return put(&sample->side[atoms->amino], local, sample->n_file, err);
}

/* A residue and its neighbours. */
typedef struct {
    const tsr_residue_record *record;
    tsr_residue_atoms atoms;
    int is_there;
} place;

static place place_of(const tsr_structure *s, int r)
{
    place p = {0};
    if (r >= 0 && r < s->n_residue) {
        p.record = &s->residue[r];
        p.is_there = tsr_residue_atoms_find(s, p.record, &p.atoms) == 0;
    }
    return p;
}

static int is_joined(const place *a, const place *b)
{
    const double *c = a->atoms.xyz[C], *n = b->atoms.xyz[N];
    return a->is_there && b->is_there && c != NULL && n != NULL &&
           a->atoms.xyz[CA] != NULL && b->atoms.xyz[CA] != NULL &&
           strcmp(a->record->chain, b->record->chain) == 0 &&
           tsr_vec3_distance2(c, n) < longest_bond * longest_bond;
}

static double omega_of(const place *a, const place *b)
{
    return tsr_vec3_torsion(a->atoms.xyz[CA], a->atoms.xyz[C], b->atoms.xyz[N],
                            b->atoms.xyz[CA]);
}

static int is_twisted(double omega_rad)
{
    double w = fabs(omega_rad);
    return fmin(w, M_PI - w) > most_twist;
}

static int is_mirrored(const tsr_residue_atoms *atoms)
{
    const double *n = atoms->xyz[N], *ca = atoms->xyz[CA], *c = atoms->xyz[C];
    if (atoms->amino == TSR_GLY || atoms->xyz[CB] == NULL)
        return 0;
    double frame[3][3], cb[3];
    tsr_frame(frame, n, ca, c);
    tsr_frame_to_local(cb, frame, ca, atoms->xyz[CB]);
    return cb[2] > 0.0;
}

static tsr_status put_torsions(const place *before, const place *at,
                               const place *after, tsr_prior_sample *sample,
                               tsr_err *err)
{
    const double *const *x = at->atoms.xyz;
    if (!at->is_there || x[N] == NULL || x[CA] == NULL || x[C] == NULL ||
        x[O] == NULL || !is_joined(before, at) || !is_joined(at, after))
        return TSR_OK;
    double omega = omega_of(before, at);
    double angle = tsr_vec3_angle(x[N], x[CA], x[C]);
    if (is_mirrored(&at->atoms)) {
        sample->n_mirrored++;
        return TSR_OK;
    }
    if (is_twisted(omega) || is_twisted(omega_of(at, after)) ||
        angle < least_angle || angle > most_angle) {
        sample->n_strained++;
        return TSR_OK;
    }
    tsr_amino amino = at->atoms.amino;
    tsr_rama_class class =
        tsr_rama_class_of(amino, after->atoms.amino == TSR_PRO, omega);
    double torsion[2] = {
        tsr_vec3_torsion(before->atoms.xyz[C], x[N], x[CA], x[C]),
        tsr_vec3_torsion(x[N], x[CA], x[C], after->atoms.xyz[N])};
    TSR_TRY(put(&sample->torsion[class], torsion, sample->n_file, err));
    return put(&sample->angle[amino], &angle, sample->n_file, err);
}

tsr_status tsr_prior_sample_visit(tsr_prior_sample *sample,
                                  const tsr_structure *structure, tsr_err *err)
{
    place before = {0}, at = place_of(structure, 0), after;
    tsr_status s = TSR_OK;
    for (int r = 0; r < structure->n_residue && s == TSR_OK; r++) {
        after = place_of(structure, r + 1);
        if (at.is_there)
            s = put_side_chain(&at.atoms, sample, err);
        TSR_THEN(s, put_torsions(&before, &at, &after, sample, err));
        before = at;
        at = after;
    }
    sample->n_file++;
    return s;
}

static tsr_status append(tsr_sample *to, const tsr_sample *from, int n_file,
                         tsr_err *err)
{
    tsr_status s = make_room(to, from->n, err);
    if (s != TSR_OK || from->n == 0)
        return s;
    memcpy(to->x + to->n * to->dim, from->x,
           (size_t)(from->n * from->dim) * sizeof *from->x);
    for (long i = 0; i < from->n; i++)
        to->file[to->n + i] = from->file[i] + n_file;
    to->n += from->n;
    return TSR_OK;
}

tsr_status tsr_prior_sample_add(tsr_prior_sample *to,
                                const tsr_prior_sample *from, tsr_err *err)
{
    tsr_status s = TSR_OK;
    for (int c = 0; c < TSR_N_RAMA && s == TSR_OK; c++)
        s = append(&to->torsion[c], &from->torsion[c], to->n_file, err);
    for (int a = 0; a < TSR_N_AMINO && s == TSR_OK; a++) {
        s = append(&to->side[a], &from->side[a], to->n_file, err);
        TSR_THEN(s, append(&to->angle[a], &from->angle[a], to->n_file, err));
    }
    to->n_file += from->n_file;
    to->n_mirrored += from->n_mirrored;
    to->n_strained += from->n_strained;
    return s;
}

tsr_status tsr_angle_gaussian_of(const tsr_sample *sample,
                                 tsr_angle_gaussian *out, tsr_err *err)
{
    size_t n = (size_t)sample->n, m = 0;
    double *x = malloc((2 * n + 1) * sizeof *x), *scratch = x + n;
    if (x == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %zu angles", n);
    memcpy(x, sample->x, n * sizeof *x);
    gsl_sort(x, 1, n);
    double median = gsl_stats_median_from_sorted_data(x, 1, n);
    double sd = mad_to_sd * gsl_stats_mad0(x, 1, n, scratch);
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i] - median) <= farthest * sd)
            scratch[m++] = x[i];
    out->count = (long)m;
    out->mean = gsl_stats_mean(scratch, 1, m);
    out->sd = m > 1 ? gsl_stats_sd_m(scratch, 1, m, out->mean) : 0.0;
    free(x);
    return TSR_OK;
}
