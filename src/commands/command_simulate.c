/* tessera simulate CONFIG: noisy data from a known structure. */
#include "commands/command.h"
#include "posterior/all_atoms.h"
#include "posterior/setup.h"

#include "core/random.h"
#include "core/text.h"
#include "files/file.h"
#include "molecule/structure.h"
#include "sampler/chain.h"
#include "scattering/saxs.h"

#include <errno.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *output;
    tsr_strings set;
    int force;
} options;

static const tsr_field fields[] = {
    TSR_FIELD(STRING, "output", options, output, .letter = 'o',
              .argument = "FILE",
              .doc = "output file of the curve; the structure is written next "
                     "to it as .pdb. Default: NAME.dat in the current folder"),
    TSR_FIELD(STRINGS, "set", options, set, .argument = "KEY=VALUE",
              .doc = "override a key, as simulate.steps=1000 or seed=7"),
    TSR_OPTION_FORCE(options),
    {0}};

/* Random streams that differ from those of the chains of a run. */
static const uint64_t noise_stream = 0xffffffff00000001u;
static const int walk_stream = 0x7ffffff0;

typedef struct {
    const options *o;
    tsr_log *log;
    tsr_config config;
    tsr_setup setup;
    tsr_neutron neutron;
    tsr_conformation *truth;
    tsr_pool pool;    /* owns the members below */
    char *path, *pdb; /* the files */
    double *column;   /* [3][points] q, I, sigma */
    tsr_resolution resolution;
    int is_atoms; /* scatterers of the curve */
} work;

/* A chain on the prior alone leads away from the input structure. */
static tsr_status draw_from_prior(work *w, tsr_err *err)
{
    const tsr_topology *t = w->setup.molecule.topology;
    const tsr_target target =
        tsr_setup_prior_target(&w->setup.target, w->setup.target.n_state);
    tsr_chain *chain = NULL;
    tsr_chain_view view;
    w->truth = tsr_conformation_new(t);
    TSR_TRY(tsr_allocated(w->truth, err));
    tsr_status status = tsr_chain_new(&target, walk_stream, &chain, err);
    TSR_THEN(status,
             tsr_setup_prior_steps(chain, w->config.simulate.steps, 1, NULL,
                                   "the structure was moved", err));
    if (status == TSR_OK) {
        tsr_chain_view_get(chain, &view);
        tsr_conformation_copy(t, w->truth, view.conformation, 0, t->n_residue);
    }
    tsr_chain_free(chain);
    return status;
}

/* Replaces c1 and c2 by the values of the simulated curve. */
static tsr_status set_contrast(tsr_config *config, tsr_err *err)
{
    tsr_parameter prior[TSR_N_CONTRAST];
    tsr_number_or_word *run[] = {&config->contrast.c1, &config->contrast.c2};
    const tsr_number_or_word *own[] = {&config->simulate.c1,
                                       &config->simulate.c2};
    tsr_status status = tsr_contrast_priors(&config->contrast, prior, err);
    for (int i = 0; i < TSR_N_CONTRAST && status == TSR_OK; i++)
        *run[i] = (tsr_number_or_word){-1, own[i]->word < 0 ? own[i]->number
                                                            : prior[i].start};
    return tsr_config_locate_error(config, status, err);
}

/* Refuses neutron keys without simulate.radiation: neutron. */
static tsr_status read_neutrons(work *w, tsr_err *err)
{
    const tsr_config *config = &w->config;
    const tsr_simulate_config *s = &config->simulate;
    tsr_status status = TSR_OK;
    const int has_d2o = s->neutron.d2o.word < 0 && s->neutron.d2o.number > 0.0;
    if (!s->radiation && (has_d2o || s->neutron.deuterated.n > 0))
        status = tsr_fail(err, TSR_E_CONFIG,
                          "simulate.%s: it has no effect with "
                          "simulate.radiation: xray; it belongs to neutron",
                          has_d2o ? "d2o" : "deuterated");
    else if (s->radiation && config->structure.file == NULL)
        status = tsr_fail(
            err, TSR_E_CONFIG,
            "simulate.radiation: neutron needs the atoms of structure.file");
    else if (s->radiation &&
             tsr_neutron_make(&s->neutron, &w->neutron, err) != TSR_OK)
        status = tsr_wrap(err, TSR_E_CONFIG, "simulate");
    return tsr_config_locate_error(config, status, err);
}

/* I(q) of all atoms on the grid, double precision, in electrons squared, or
 * fm^2 of neutrons: intensity [grid->n_q] out. */
static tsr_status compute_from_atoms(const work *w, tsr_atom_curves *curves,
                                     const tsr_q_grid *grid, double *partial,
                                     double *intensity, tsr_err *err)
{
    const tsr_parameter *contrast = w->setup.tables.contrast;
    const int is_neutron = w->config.simulate.radiation;
    const tsr_neutron_basis basis = {.origin = w->neutron.d2o};
    double number; /* mean radius; for neutrons the match point */
    TSR_TRY(tsr_atom_curves_partial(curves, w->truth, NULL,
                                    is_neutron ? &w->neutron : NULL,
                                    basis.origin, partial, &number, err));
    if (is_neutron) /* c2 is fixed: one component remains */
        tsr_neutron_fold(&basis, contrast, grid->n_q, partial);
    for (int j = 0; j < grid->n_q; j++)
        intensity[j] =
            is_neutron ? partial[j]
                       : tsr_component_intensity(
                             partial + j, (size_t)grid->n_q,
                             tsr_component_scale(contrast[TSR_C1].start, number,
                                                 j * grid->dq_inv_ang),
                             contrast[TSR_C2].start);
    return TSR_OK;
}

/* I(q) S(q) of the bodies at n values of q (NULL: on the grid). For neutrons,
 * form factors of the bodies follow from the atoms. */
static tsr_status compute_from_bodies(const work *w, tsr_atom_curves *curves,
                                      const tsr_q_grid *grid, int n,
                                      const double *q, double *intensity,
                                      tsr_err *err)
{
    tsr_scattering own = {.contrast = w->setup.tables.contrast};
    const tsr_scattering *scattering = w->setup.data.scattering;
    tsr_neutron_bodies *bodies = NULL;
    tsr_status status = TSR_OK;
    double match;
    if (w->config.simulate.radiation) {
        status = tsr_atom_curves_bodies(curves, w->truth, &w->neutron, 1,
                                        &w->neutron.d2o, &match, &bodies, err);
        own.neutron = bodies;
        scattering = &own;
    }
    for (int k = 0; k < n && status == TSR_OK; k++)
        status = tsr_scattering_intensity(
            scattering, w->setup.molecule.topology, w->truth, NULL,
            q != NULL ? q[k] : k * grid->dq_inv_ang, &intensity[k], err);
    tsr_neutron_bodies_free(bodies);
    return status;
}

/* Reads the atoms of the file, if the configuration uses them and they are
 * complete; else *curves stays NULL. Neutrons always need the atoms, from which
 * the form factors of bodies follow. */
static tsr_status open_atoms(const work *w, const tsr_q_grid *grid,
                             tsr_atom_curves **curves, tsr_err *err)
{
    const tsr_config *c = &w->config;
    const tsr_molecule *m = &w->setup.molecule;
    tsr_err why;
    if (c->simulate.radiation)
        return tsr_atom_curves_new(m, grid, NULL, NULL, curves, err);
    if (tsr_config_why_no_atoms(c) == NULL &&
        tsr_atom_curves_new(m, grid, NULL, NULL, curves, &why) != TSR_OK)
        tsr_info(w->log, "the curve is computed from bodies: %s", why.message);
    return TSR_OK;
}

/* From I(q) on the grid to I(q) S(q) at n values of q, smeared. */
static tsr_status interpolate(work *w, const tsr_q_grid *grid,
                              const tsr_resolution *r, int n, const double *q,
                              const double *on_grid, double *intensity,
                              tsr_err *err)
{
    tsr_interference x;
    double *joint;
    tsr_pool_array(&w->pool, joint, 4 * grid->n_q);
    TSR_TRY(tsr_interference_make(grid, r, n, q, &w->pool, &x, err));
    tsr_interference_apply(&x, w->config.simulate.interparticle, on_grid,
                           joint);
    tsr_q_operator_apply(x.matrix, n, x.n_joint, joint, intensity);
    return TSR_OK;
}

/* sigma^2 = [I(q) + 2 c I(0.2) / (1 - c)] / (k q), c = 0.85: noise of detector
 * and buffer (Sedlak, Bruetzel & Lipfert 2017, eq. 10). k is such that sigma /
 * I at q = 0.1 is `error`. */
static void add_noise(const tsr_simulate_config *s, int n, const double *q,
                      double at_01, double at_02, gsl_rng *rng,
                      double *intensity, double *sigma)
{
    const double c = 0.85;
    double offset = 2.0 * c * fabs(at_02) / (1.0 - c);
    double k = (at_01 + offset) / (0.1 * pow(s->error * at_01, 2.0));
    for (int i = 0; i < n; i++) {
        sigma[i] = sqrt((fabs(intensity[i]) + offset) / (k * q[i]));
        intensity[i] += s->background + gsl_ran_gaussian(rng, sigma[i]);
    }
}

/* Computes the curve on its grid, then smeared at the points and unsmeared at q
 * = 0, 0.1 and 0.2: intensity [n + 3]. */
static tsr_status compute_curve(work *w, const double *q, double *intensity,
                                tsr_err *err)
{
    const tsr_resolution ideal = {.sigma = NULL};
    const int n = (int)w->config.simulate.points;
    const tsr_q_grid grid =
        tsr_q_grid_make(w->setup.molecule.d_bound_ang,
                        fmax(0.2, tsr_resolution_q_max(&w->resolution, n, q)));
    tsr_atom_curves *curves = NULL;
    double *on_grid, *partial;
    tsr_pool_array(&w->pool, on_grid, grid.n_q);
    tsr_pool_array(&w->pool, partial, TSR_N_COMP_PAIR * grid.n_q);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    TSR_TRY(open_atoms(w, &grid, &curves, err));
    w->is_atoms = curves != NULL && tsr_config_why_no_atoms(&w->config) == NULL;
    if (!w->config.simulate.radiation && !w->is_atoms &&
        tsr_resolution_is_ideal(&w->resolution)) {
        TSR_TRY(
            compute_from_bodies(w, curves, &grid, n + 3, q, intensity, err));
        tsr_structure_factor_apply(w->config.simulate.interparticle,
                                   intensity[n], n + 3, intensity);
        return TSR_OK;
    }
    tsr_status status =
        w->is_atoms
            ? compute_from_atoms(w, curves, &grid, partial, on_grid, err)
            : compute_from_bodies(w, curves, &grid, grid.n_q, NULL, on_grid,
                                  err);
    TSR_THEN(status, interpolate(w, &grid, &w->resolution, n, q, on_grid,
                                 intensity, err));
    TSR_THEN(status, interpolate(w, &grid, &ideal, 3, q + n, on_grid,
                                 intensity + n, err));
    tsr_atom_curves_free(curves);
    return status;
}

static tsr_status compute(work *w, tsr_err *err)
{
    const tsr_simulate_config *s = &w->config.simulate;
    static const double extra_q[3] = {0.0, 0.1, 0.2};
    const int n = (int)s->points;
    double *column, *q, *intensity;
    tsr_pool_array(&w->pool, q, n + 3);
    tsr_pool_array(&w->pool, intensity, n + 3);
    tsr_pool_array(&w->pool, column, 3 * n);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    w->column = column;
    for (int i = 0; i < n; i++)
        q[i] = s->q_range[0] + (s->q_range[1] - s->q_range[0]) * i / (n - 1);
    memcpy(q + n, extra_q, sizeof extra_q);
    tsr_status status = tsr_resolution_make(&s->resolution, n, q, NULL,
                                            &w->pool, &w->resolution, err);
    TSR_TRY(tsr_wrap(err, status, "simulate.resolution"));
    status = compute_curve(w, q, intensity, err);
    TSR_TRY(tsr_wrap(err, status,
                     status == TSR_E_RANGE ? "simulate.q_range" : "simulate"));
    gsl_rng *rng = tsr_rng_new((uint64_t)w->config.seed, noise_stream);
    TSR_TRY(tsr_allocated(rng, err));
    const double scale = s->i0 / intensity[n];
    for (int i = 0; i < n; i++) {
        column[i] = q[i];
        column[n + i] = scale * intensity[i];
    }
    add_noise(s, n, q, scale * intensity[n + 1], scale * intensity[n + 2], rng,
              column + n, column + 2 * n);
    gsl_rng_free(rng);
    return TSR_OK;
}

/* ---- files ---- */

/* A simulation must not replace measured data or an input. */
static tsr_status name_files(work *w, tsr_err *err)
{
    const char *const input[] = {w->config.path, w->config.structure.file,
                                 w->config.structure.form_factors};
    const tsr_file_target target = {.maker = "simulate",
                                    .n_input = 3,
                                    .input = input,
                                    .is_forced = w->o->force};
    w->path = w->o->output != NULL
                  ? tsr_pool_text(&w->pool, w->o->output)
                  : tsr_pool_format(&w->pool, "%s.dat", w->config.name);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    const char *name = tsr_text_file_name(w->path), *dot = strrchr(name, '.');
    w->pdb = tsr_pool_format(
        &w->pool, "%.*s.pdb",
        (int)(dot == NULL ? strlen(w->path) : (size_t)(dot - w->path)),
        w->path);
    TSR_TRY(tsr_pool_check(&w->pool, err));
    if (strcmp(w->path, w->pdb) == 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--output %s: curve and structure would be the same "
                        "file; name the curve .dat",
                        w->path);
    TSR_TRY(tsr_file_check_target(&target, w->path, "# tessera ",
                                  " simulate:", err));
    return tsr_file_check_target(&target, w->pdb,
                                 "REMARK 999 tessera simulate:", NULL, err);
}

/* Puts the curve in place, then the structure, which has a temporary name until
 * then. */
static tsr_status write_both_files(const work *w, const tsr_model_atoms *model,
                                   const char *waiting, const char *comment,
                                   tsr_err *err)
{
    const int n = (int)w->config.simulate.points;
    const tsr_saxs_columns columns = {.comment = comment,
                                      .n = n,
                                      .q = w->column,
                                      .intensity = w->column + n,
                                      .sigma = w->column + 2 * n,
                                      .dq = w->resolution.sigma};
    TSR_TRY(tsr_model_atoms_write(
        model, waiting, "tessera simulate: SC is the centre of a side chain",
        err));
    tsr_status status = tsr_saxs_write(w->path, &columns, err);
    if (status == TSR_OK && rename(waiting, w->pdb) != 0)
        status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", w->pdb,
                          strerror(errno));
    if (status != TSR_OK)
        unlink(waiting);
    return status;
}

/* Writes both files or none. */
static tsr_status write_files(work *w, FILE *out, tsr_err *err)
{
    const tsr_config *c = &w->config;
    const tsr_simulate_config *s = &c->simulate;
    const double rg = tsr_conformation_rg(w->setup.molecule.topology, w->truth,
                                          w->setup.molecule.form_factors->rg2);
    char comment[768], resolution[200], neutrons[80] = "";
    if (s->radiation)
        snprintf(neutrons, sizeof neutrons, "; neutrons, %.4g %% D2O%s",
                 s->neutron.d2o.word < 0 ? 100.0 * s->neutron.d2o.number : 0.0,
                 s->neutron.deuterated.n > 0 ? ", deuterated in part" : "");
    tsr_resolution_text(&w->resolution, (int)s->points, resolution,
                        sizeof resolution);
    snprintf(comment, sizeof comment,
             "tessera %s simulate: %s, seed %ld, %ld steps of the prior, %s\n"
             "Rg %.3f Angstrom, I(0) %.6g, background %.6g, interparticle %g, "
             "error %.3g at q = 0.1 1/Angstrom\n"
             "c1 %.6g, c2 %.6g%s\nresolution: %s\n"
             "q (1/Angstrom), I(q), sigma",
             TSR_VERSION, c->name, c->seed, s->steps,
             w->is_atoms ? "all atoms" : "bodies", rg, s->i0, s->background,
             s->interparticle, s->error,
             s->radiation ? 1.0 : c->contrast.c1.number, c->contrast.c2.number,
             neutrons, resolution);
    char *waiting =
        tsr_pool_format(&w->pool, "%s.%ld.new", w->pdb, (long)getpid());
    tsr_model_atoms *model =
        tsr_topology_model(w->setup.molecule.topology, w->truth);
    tsr_status status =
        waiting == NULL || model == NULL ? tsr_no_memory(err) : TSR_OK;
    TSR_THEN(status, tsr_model_atoms_letter_chains(model, NULL, err));
    TSR_THEN(status, write_both_files(w, model, waiting, comment, err));
    tsr_model_atoms_free(model);
    if (status == TSR_OK)
        fprintf(out, "curve      %s\nstructure  %s\nRg         %.3f Angstrom\n",
                w->path, w->pdb, rg);
    return status;
}

static tsr_status make(work *w, FILE *out, tsr_err *err)
{
    TSR_TRY(name_files(w, err));
    TSR_TRY(read_neutrons(w, err));
    TSR_TRY(set_contrast(&w->config, err));
    TSR_TRY(tsr_setup_read(&w->config, 0, w->log, &w->setup, err));
    TSR_TRY(draw_from_prior(w, err));
    if (w->setup.molecule.components != NULL)
        TSR_TRY(tsr_atom_curves_expose(w->setup.data.atoms, &w->setup.molecule,
                                       w->truth, NULL, w->setup.data.exposure,
                                       err));
    TSR_TRY(compute(w, err));
    return write_files(w, out, err);
}

static tsr_status simulate(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    const options *o = args->options;
    work w = {.o = o, .log = log};
    tsr_status status =
        tsr_config_read(args->argument[0], o->set.n,
                        (const char *const *)o->set.item, &w.config, err);
    TSR_THEN(status, make(&w, out, err));
    tsr_conformation_free(w.truth);
    tsr_setup_clear(&w.setup);
    tsr_config_clear(&w.config);
    tsr_pool_clear(&w.pool);
    return status;
}

const tsr_command tsr_command_simulate = {
    .name = "simulate",
    .doc = "make noisy data from a known structure",
    .arguments = "CONFIG",
    .options = fields,
    .size = sizeof(options),
    .about = "The structure is that of the configuration, or after "
             "simulate.steps steps of sampling the prior from there. The curve "
             "is computed from all atoms of the file (with model_error: none, "
             "or for files without side chains, from the bodies), in double "
             "precision, plus normal errors. Existing files are replaced only "
             "if simulate wrote them, or with --force; input files never are.",
    .keys = tsr_config_fields,
    .run = simulate};
