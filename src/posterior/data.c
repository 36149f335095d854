/* From a configuration and its molecule to a likelihood: terms, probes,
 * scattering of the bodies, docking of the start, and the rigid fit of the
 * start to the curves. */
#include "posterior/setup.h"

#include "core/json.h"
#include "core/text.h"
#include "likelihood/term_saxs.h"
#include "posterior/all_atoms.h"
#include "scattering/atom_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- terms ---- */

/* Warns if entry d has the same file as an earlier entry. Only the first 1000
 * entries are checked, because the number of pairs grows quadratically. */
static void warn_same_file(const tsr_config *config, int d, tsr_log *log)
{
    const int most = 1000;
    char **own = tsr_config_data_file(config, d);
    for (int e = 0; own != NULL && *own != NULL && e < d && d < most; e++) {
        char **other = tsr_config_data_file(config, e);
        if (other == NULL || *other == NULL || strcmp(*own, *other) != 0)
            continue;
        tsr_warn(log,
                 "data.%d and data.%d are the same file, '%s', and count twice",
                 e, d, *own);
        return;
    }
}

/* Reads the entries of `data:` as terms. term [config->data.n] out; *n out:
 * number of terms read, also after an error. */
static tsr_status read_terms(const tsr_config *config, const tsr_molecule *m,
                             tsr_log *log, int *n, tsr_term **term,
                             tsr_err *err)
{
    const tsr_term_options *entry = config->data.item;
    for (*n = 0; *n < config->data.n; (*n)++) {
        const tsr_term_source source = {.options = &entry[*n],
                                        .number = *n,
                                        .topology = m->topology,
                                        .log = log,
                                        .rg2 = m->form_factors->rg2,
                                        .n_state =
                                            (int)config->structure.states,
                                        .n_species = m->n_species,
                                        .start = m->first};
        TSR_TRY(tsr_term_read(&source, &term[*n], err));
        if (term[*n]->has_own_weights && config->structure.weights != 0 &&
            m->n_species == 0) {
            tsr_term_free(term[*n]);
            return tsr_fail(err, TSR_E_CONFIG,
                            "data.%d.share: states needs weights to infer "
                            "(structure.weights: infer)",
                            *n);
        }
        if (m->n_species > 0 && (term[*n]->neutron != NULL ||
                                 term[*n]->type->needs != TSR_NEEDS_PROFILE)) {
            tsr_term_free(term[*n]);
            return tsr_fail(err, TSR_E_CONFIG,
                            "species: data.%d is no X-ray curve; leave it out, "
                            "or the species",
                            *n);
        }
        warn_same_file(config, *n, log);
    }
    return TSR_OK;
}

/* Docks a start: moves it to the position found by the first term that can find
 * one. *is_placed out: 0: no term has found a position. */
static tsr_status dock_start(const tsr_topology *t, int n, tsr_term **term,
                             tsr_conformation *start, tsr_log *log,
                             int *is_placed, tsr_err *err)
{
    tsr_motion motion;
    double from[3];
    *is_placed = 0;
    for (int d = 0; d < n && !*is_placed; d++)
        if (term[d]->type->find_pose != NULL)
            TSR_TRY(term[d]->type->find_pose(term[d], start, &motion, is_placed,
                                             err));
    if (!*is_placed)
        return TSR_OK;
    const double *to = start->backbone[0][TSR_CA];
    tsr_vec3_copy(from, to);
    tsr_conformation_move(t, start, 0, t->n_residue - 1, &motion);
    tsr_info(log,
             "the starting structure is docked: its first CA moves from (%.1f, "
             "%.1f, %.1f) to (%.1f, %.1f, %.1f)",
             from[0], from[1], from[2], to[0], to[1], to[2]);
    return TSR_OK;
}

static tsr_status dock_starts(tsr_molecule *m, int n, tsr_term **term,
                              tsr_log *log, tsr_err *err)
{
    int is_placed, is_start_placed;
    TSR_TRY(dock_start(m->topology, n, term, m->first, log, &is_placed, err));
    for (int k = 0; k < m->n_start; k++)
        TSR_TRY(dock_start(m->topology, n, term, m->start[k], log,
                           &is_start_placed, err));
    return is_placed ? tsr_molecule_set_model(m, err) : TSR_OK;
}

/* ---- X-rays ---- */

/* Hydration of the bodies without those of `absent`, averaged over the starts
 * of the states: exposure [n_body] out. */
static tsr_status expose_starts(tsr_data *d, const tsr_molecule *m,
                                const int *absent, double *exposure,
                                tsr_err *err)
{
    const int n_body = m->topology->n_body, n = m->n_start;
    if (n == 0)
        return tsr_atom_curves_expose(d->atoms, m, m->first, absent, exposure,
                                      err);
    double *one = calloc((size_t)n_body, sizeof *one);
    tsr_status status = tsr_allocated(one, err);
    for (int k = 0; k < n && status == TSR_OK; k++) {
        status =
            tsr_atom_curves_expose(d->atoms, m, m->start[k], absent, one, err);
        for (int b = 0; b < n_body && status == TSR_OK; b++)
            exposure[b] += one[b] / n;
    }
    free(one);
    return status;
}

/* Logs whether c1 and c2 are fixed or inferred. */
static void log_contrast(const tsr_tables *t, tsr_log *log)
{
    static const char *const what[TSR_N_CONTRAST] = {"excluded volume c1",
                                                     "hydration c2"};
    for (int i = 0; i < TSR_N_CONTRAST; i++) {
        const tsr_parameter *p = &t->contrast[i];
        if (p->infer)
            tsr_info(log, "%s: inferred, prior normal %g +- %g on [%g, %g]",
                     what[i], p->mean, p->width, p->low, p->high);
        else
            tsr_info(log, "%s: fixed at %g (contrast.%s: infer would infer it)",
                     what[i], p->start, p->name);
    }
}

/* Scattering of the bodies for X-rays, from the trained tables. */
static tsr_status set_xray_scattering(const tsr_config *config, tsr_data *d,
                                      const tsr_molecule *m, tsr_log *log,
                                      tsr_err *err)
{
    double exposed = 0.0;
    *d->scattering = (tsr_scattering){.plain = m->form_factors,
                                      .component = m->components,
                                      .contrast = m->tables->contrast};
    if (m->components == NULL)
        return TSR_OK;
    d->scattering->exposure =
        tsr_pool_array(&d->pool, d->exposure, m->topology->n_body);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    TSR_TRY(tsr_atom_curves_try(m, log, &d->atoms, err));
    if (d->atoms != NULL && tsr_config_corrects_bodies(config)) {
        memcpy(d->engine_contrast, m->tables->contrast,
               sizeof d->engine_contrast);
        d->engine_contrast[TSR_C1].infer = 0;
        d->scattering->contrast = d->engine_contrast;
        d->scattering->run_contrast = m->tables->contrast;
    }
    TSR_TRY(expose_starts(d, m, NULL, d->exposure, err));
    for (int b = 0; b < m->topology->n_body; b++)
        exposed += d->exposure[b];
    tsr_info(log,
             "hydration: exposed areas of the bodies are those of the starting "
             "structure, %.0f exposed atoms in total",
             exposed);
    return TSR_OK;
}

/* ---- species ---- */

/* Scattering of each species, from that of the whole molecule, which is
 * data->scattering[0]. */
static tsr_status set_species_scattering(tsr_data *d, const tsr_molecule *m,
                                         tsr_err *err)
{
    const tsr_scattering whole = *d->scattering;
    for (int k = 0; k < m->n_species; k++) {
        tsr_scattering *s = &d->scattering[k];
        double *exposure;
        *s = whole;
        if (!m->species[k].mix.is_part)
            continue;
        s->absent = m->species[k].absent;
        if (whole.exposure == NULL)
            continue;
        s->exposure = tsr_pool_array(&d->pool, exposure, m->topology->n_body);
        TSR_TRY(tsr_pool_check(&d->pool, err));
        TSR_TRY(expose_starts(d, m, s->absent, exposure, err));
    }
    d->n_probe = m->n_species;
    return TSR_OK;
}

/* Checks the curves of a mixture, and fills in the range of dissociation
 * constants: species [m->n_species] out. */
static tsr_status read_equilibrium(const tsr_molecule *m, int n_term,
                                   tsr_term *const *term, tsr_species *species,
                                   tsr_err *err)
{
    double least = HUGE_VAL, most = 0.0;
    const int n = m->n_species;
    const int has_kd = m->species[n - 1].mix.kd.word != 0; /* none */
    for (int d = 0; d < n_term; d++) {
        if (has_kd && !(term[d]->at > 0.0))
            return tsr_fail(err, TSR_E_CONFIG,
                            "species: kd needs the concentration of every "
                            "sample: give data.%d share: states, and at: a "
                            "number above 0, and unit",
                            term[d]->number);
        least = fmin(least, term[d]->at);
        most = fmax(most, term[d]->at);
    }
    for (int k = 0; k < n; k++) {
        tsr_species *s = &species[k];
        *s = m->species[k].mix;
        if (k > 0 ? (s->kd.word != 0) != has_kd : s->kd.word != 0)
            return tsr_fail(err, TSR_E_CONFIG,
                            "species.%d.kd: either all species but the first "
                            "have kd, or none has",
                            k);
        s->kd_range[0] = 0.01 * least;
        s->kd_range[1] = 100.0 * most;
    }
    return TSR_OK;
}

/* ---- neutrons ---- */

/* Assigns one probe to all terms of one sample: data->sample, and the terms'
 * `probe`. Probe 0 is X-rays unless all curves are neutron curves. Returns 1 if
 * there is an X-ray probe. */
static int find_probes(int n_term, tsr_term **term, tsr_data *data)
{
    int has_xray = 0, has_neutron = 0;
    for (int d = 0; d < n_term; d++) {
        has_xray |= term[d]->neutron == NULL &&
                    (term[d]->type->needs & TSR_NEEDS_PROFILE) != 0;
        has_neutron |= term[d]->neutron != NULL;
    }
    has_xray |= !has_neutron;
    data->n_probe = has_xray;
    for (int d = 0; d < n_term; d++) {
        const tsr_neutron *neutron = term[d]->neutron;
        int p = has_xray;
        term[d]->probe = 0;
        if (neutron == NULL)
            continue;
        while (p < data->n_probe &&
               !tsr_neutron_is_same_sample(&data->sample[p], neutron))
            p++;
        if (p == data->n_probe)
            data->sample[data->n_probe++] = *neutron;
        term[d]->probe = p;
    }
    return has_xray;
}

/* Form factors of bodies for neutron probe p, from their atoms at the start. */
static tsr_status set_neutron_scattering(int p, tsr_atom_curves *curves,
                                         int n_term, tsr_term **term,
                                         tsr_log *log, tsr_data *data,
                                         const tsr_molecule *m, tsr_err *err)
{
    const tsr_parameter *contrast = m->tables->contrast;
    double *d2o = calloc((size_t)n_term, sizeof *d2o), match = 0.0;
    int n = 0, first = 0;
    TSR_TRY(tsr_allocated(d2o, err));
    for (int d = n_term - 1; d >= 0; d--)
        if (term[d]->neutron != NULL && term[d]->probe == p) {
            d2o[n++] = term[d]->neutron->d2o;
            first = term[d]->number;
        }
    tsr_status status =
        tsr_atom_curves_bodies(curves, m->first, &data->sample[p], n, d2o,
                               &match, &data->neutron[p], err);
    free(d2o);
    TSR_TRY(tsr_wrap(err, status, "data.%d", first));
    data->scattering[p] =
        (tsr_scattering){.contrast = contrast, .neutron = data->neutron[p]};
    tsr_info(log,
             "data.%d%s: neutrons; the molecule has no contrast in %.1f %% "
             "D2O; excluded volume c1 is 1 for neutrons",
             first, n > 1 ? " and other curves of its sample" : "",
             100.0 * match);
    return TSR_OK;
}

/* Form factors of the bodies for all neutron probes, from probe number `first`
 * on. */
static tsr_status set_all_neutron_scattering(int first, int n_term,
                                             tsr_term **term, tsr_log *log,
                                             tsr_data *d, const tsr_molecule *m,
                                             tsr_err *err)
{
    tsr_atom_curves *curves = NULL;
    int n_cut = 0;
    if (m->file == NULL)
        return tsr_fail(err, TSR_E_CONFIG,
                        "data: kind sans needs the atoms of structure.file; a "
                        "sequence has no atoms");
    TSR_TRY(tsr_atom_curves_new(m, NULL, NULL, &n_cut, &curves, err));
    if (n_cut > 0)
        tsr_warn(log,
                 "'%s': %d residue%s atoms, which do not scatter neutrons; "
                 "complete them (PDBFixer, MODELLER)",
                 m->file, n_cut, n_cut == 1 ? " lacks" : "s lack");
    tsr_status status = TSR_OK;
    for (int p = first; p < d->n_probe; p++)
        TSR_THEN(status, set_neutron_scattering(p, curves, n_term, term, log, d,
                                                m, err));
    tsr_atom_curves_free(curves);
    return status;
}

static tsr_status find_scattering(const tsr_config *config, int n_term,
                                  tsr_term **term, tsr_log *log, tsr_data *d,
                                  const tsr_molecule *m, tsr_err *err)
{
    tsr_pool_array(&d->pool, d->scattering, n_term + 1 + m->n_species);
    tsr_pool_array(&d->pool, d->sample, n_term + 1);
    tsr_pool_array(&d->pool, d->neutron, n_term + 1);
    TSR_TRY(tsr_pool_check(&d->pool, err));
    if (n_term > 0 || m->components != NULL)
        log_contrast(m->tables, log);
    const int has_xray = find_probes(n_term, term, d);
    if (has_xray)
        TSR_TRY(set_xray_scattering(config, d, m, log, err));
    if (m->n_species > 0 && n_term > 0)
        return set_species_scattering(d, m, err);
    return d->n_probe > has_xray ? set_all_neutron_scattering(
                                       has_xray, n_term, term, log, d, m, err)
                                 : TSR_OK;
}

/* ---- likelihood ---- */

/* Makes the likelihood, which owns the terms from here on, also after an error.
 * Predicts every non-curve term (distances, maps) from the starting structure,
 * and stores the prediction in the term. */
static tsr_status make_likelihood(const tsr_data *data, const tsr_molecule *m,
                                  int n, tsr_term **term, tsr_likelihood **out,
                                  tsr_err *err)
{
    const double one = 1.0;
    const tsr_conformation *first = m->first;
    const tsr_prediction prediction = {
        .n_state = 1, .state = &first, .weight = &one};
    TSR_TRY(tsr_likelihood_new(m->topology, data->n_probe, data->scattering,
                               m->d_bound_ang, n, term, out, err));
    if (m->n_species > 0) {
        tsr_species species[TSR_MAX_SPECIES];
        TSR_TRY(read_equilibrium(m, n, term, species, err));
        TSR_TRY(tsr_likelihood_set_species(*out, m->n_species, species, err));
    }
    for (int d = 0; d < n; d++) {
        tsr_term *own = (*out)->term[d];
        if ((own->type->needs & TSR_NEEDS_PROFILE) == 0)
            TSR_TRY(tsr_term_predict_start(own, &prediction, err));
    }
    return TSR_OK;
}

tsr_status tsr_data_read(const tsr_config *config, int with_data, tsr_log *log,
                         tsr_molecule *molecule, tsr_data *data, tsr_err *err)
{
    tsr_molecule *m = molecule;
    tsr_data *d = data;
    int n = 0;
    tsr_term **term = calloc((size_t)config->data.n + 1, sizeof(*term));
    tsr_status status = tsr_allocated(term, err);
    if (with_data)
        TSR_THEN(status, read_terms(config, m, log, &n, term, err));
    TSR_THEN(status, dock_starts(m, n, term, log, err));
    /* model.pdb is checked before any computation */
    TSR_THEN(status, tsr_model_atoms_letter_chains(m->model, log, err));
    TSR_THEN(status, tsr_model_atoms_write(m->model, NULL, NULL, err));
    if (status == TSR_OK && with_data && n == 0)
        tsr_info(log, "no data: the run samples the prior");
    TSR_THEN(status, find_scattering(config, n, term, log, d, m, err));
    if (status == TSR_OK && n > 0) {
        status = make_likelihood(d, m, n, term, &d->likelihood, err);
        n = 0; /* the likelihood owns the terms */
    }
    if (status == TSR_E_RANGE) /* the data exceed the form factors' q range */
        status = tsr_wrap(err, TSR_E_DATA, "data");
    while (n > 0)
        tsr_term_free(term[--n]);
    free(term);
    return status;
}

tsr_status tsr_data_copy_likelihood(const tsr_config *config,
                                    const tsr_molecule *molecule,
                                    const tsr_data *data, tsr_likelihood **out,
                                    tsr_err *err)
{
    int n = 0;
    tsr_term **term = calloc((size_t)config->data.n + 1, sizeof(*term));
    TSR_TRY(tsr_allocated(term, err));
    tsr_status status = read_terms(config, molecule, NULL, &n, term, err);
    for (int d = 0; d < n; d++)
        term[d]->probe = data->likelihood->term[d]->probe;
    if (status == TSR_OK)
        status = make_likelihood(data, molecule, n, term, out, err);
    else
        while (n > 0)
            tsr_term_free(term[--n]);
    free(term);
    return status;
}

void tsr_data_clear(tsr_data *data)
{
    tsr_likelihood_free(data->likelihood);
    tsr_atom_curves_free(data->atoms);
    for (int p = 0; p < data->n_probe; p++)
        tsr_neutron_bodies_free(data->neutron[p]);
    free(data->model_error);
    tsr_pool_clear(&data->pool);
    *data = (tsr_data){.n_probe = 0};
}

/* ---- rigid fit ----
 *
 * Fit of the first conformation, unchanged, to the curves. The fit determines
 * the other unknowns of the run: c1 and c2 within their ranges (one value for
 * all curves) if they are inferred, and scale and background of each curve. The
 * forward model is that of the run, so that a better fit of the draws is due to
 * motion alone. */

/* Context of the rigid fit. */
typedef struct {
    const tsr_likelihood *likelihood;
    const double *partial; /* of the first conformation */
    double *profile;       /* [n_view][n_q] */
    double *log_s0;        /* [n_term] log S(0) of the curves */
    double *joint;         /* scratch of tsr_saxs_curve */
} fit_context;

static void predict(void *context, double c1, double c2, double *model)
{
    const fit_context *j = context;
    const tsr_likelihood *l = j->likelihood;
    double contrast[TSR_N_CONTRAST];
    contrast[TSR_C1] = c1;
    contrast[TSR_C2] = c2;
    for (int v = 0; v < l->n_view; v++)
        tsr_likelihood_profile(l, v, j->partial, contrast,
                               j->profile + v * l->grid.n_q);
    for (int d = 0; d < l->n_term; d++)
        if (l->term[d]->type->is_curve) {
            const double *own = j->profile + l->term[d]->view * l->grid.n_q;
            const tsr_saxs_term *term = (const tsr_saxs_term *)l->term[d];
            tsr_saxs_curve(term, own, exp(j->log_s0[d]), j->joint, model);
            model += term->saxs->n;
        }
}

/* Lists the curves to fit. Returns their number, or -1 when out of memory. */
static int list_curves(tsr_data *data, const tsr_likelihood *l,
                       tsr_profile_fit_curve *curve)
{
    int n = 0;
    for (int d = 0; d < l->n_term; d++) {
        tsr_term *term = l->term[d];
        if (!term->type->is_curve)
            continue;
        const tsr_parameter *b =
            &term->parameter[((const tsr_saxs_term *)term)->n_noise + 1];
        tsr_pool_array(&term->pool, term->start, term->n_point);
        curve[n++] = (tsr_profile_fit_curve){.n = term->n_point,
                                             .intensity = term->observed,
                                             .sigma = term->sigma,
                                             .fit_background = b->infer,
                                             .background = b->start,
                                             .fit = &data->rigid[d],
                                             .curve = term->start};
        if (term->start == NULL)
            return -1;
    }
    return n;
}

/* Sets log S(0) of term d: its fixed value, or that of the best fit among
 * values up to three widths of its prior from the mean. */
static void find_interparticle(int n, const tsr_profile_fit_curve *curve, int d,
                               double (*bound)[2], fit_context *j)
{
    const tsr_saxs_term *t = (const tsr_saxs_term *)j->likelihood->term[d];
    if (!t->term.type->is_curve || !t->has_interparticle)
        return;
    const tsr_parameter *p = &t->term.parameter[t->n_noise + 2];
    double least = HUGE_VAL, best = p->start;
    for (int k = -15; p->infer && k <= 15; k++) {
        double chi2 = 0.0;
        j->log_s0[d] = 0.2 * k * p->width;
        if (tsr_profile_fit_joint(n, curve, bound[TSR_C1], bound[TSR_C2],
                                  predict, j, NULL) != TSR_OK)
            continue;
        for (int i = 0; i < n; i++)
            chi2 += curve[i].fit->chi2 * curve[i].n;
        best = chi2 < least ? j->log_s0[d] : best;
        least = fmin(least, chi2);
    }
    j->log_s0[d] = best;
}

tsr_status tsr_data_fit_rigid(tsr_data *data, const tsr_likelihood *likelihood,
                              const double *partial, tsr_err *err)
{
    const tsr_likelihood *l = likelihood;
    tsr_pool scratch = {0};
    tsr_profile_fit_curve *curve;
    double bound[TSR_N_CONTRAST][2];
    fit_context j = {.likelihood = l, .partial = partial};
    tsr_pool_array(&scratch, j.profile, l->n_view * l->grid.n_q);
    tsr_pool_array(&scratch, j.log_s0, l->n_term);
    tsr_pool_array(&scratch, j.joint, 4 * l->grid.n_q);
    tsr_pool_array(&scratch, curve, l->n_term);
    tsr_pool_array(&data->pool, data->rigid, l->n_term);
    const int has_memory = !scratch.failed && !data->pool.failed;
    /* The rigid fit is that of one species. */
    const int n = !has_memory        ? -1
                  : l->n_species > 0 ? 0
                                     : list_curves(data, l, curve);
    for (int k = 0; k < TSR_N_CONTRAST; k++) {
        const tsr_parameter *p = &l->run_contrast[k];
        bound[k][0] = p->infer ? p->low : p->start;
        bound[k][1] = p->infer ? p->high : p->start;
    }
    for (int d = 0; d < l->n_term && n > 0; d++)
        find_interparticle(n, curve, d, bound, &j);
    /* A failed fit is not an error: n_point is then 0. */
    if (n > 0)
        (void)tsr_profile_fit_joint(n, curve, bound[TSR_C1], bound[TSR_C2],
                                    predict, &j, NULL);
    tsr_pool_clear(&scratch);
    return n < 0 ? tsr_no_memory(err) : TSR_OK;
}

char *tsr_data_rigid_text(const tsr_data *data)
{
    char *text = NULL;
    size_t size;
    const tsr_likelihood *l = data->likelihood;
    FILE *out = data->rigid != NULL ? open_memstream(&text, &size) : NULL;
    if (out == NULL)
        return NULL;
    tsr_json j = {.out = out, .is_script = 1};
    tsr_json_array(&j, NULL);
    for (int d = 0; d < l->n_term; d++) {
        const tsr_profile_fit *fit = &data->rigid[d];
        if (!l->term[d]->type->is_curve)
            continue;
        tsr_json_members(
            &j,
            "{ n_point %d n_parameter %d scale %g background %g c1 "
            "%g c2 %g c1_at %d c2_at %d chi2 %g cormap_p %g }",
            fit->n_point, fit->n_parameter, fit->scale, fit->background,
            fit->c1, fit->c2, fit->c1_at, fit->c2_at, fit->chi2, fit->cormap_p);
    }
    tsr_json_close(&j);
    return fclose(out) == 0 ? text : NULL;
}
