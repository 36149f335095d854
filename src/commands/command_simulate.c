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

static const tsr_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .doc = "the curve; the structure goes beside it as .pdb. Default: "
            "NAME.dat in the current folder"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .repeats = 1,
     .doc = "override a key, as simulate.steps=1000 or seed=7"},
    TSR_OPTION_FORCE,
    {0}};

/* Streams apart from those of the chains of a run. */
static const uint64_t noise_stream = 0xffffffff00000001u;
static const int walk_stream = 0x7ffffff0;

/* A chain on the prior alone leads away from the input structure. */
static tsr_status walk(const tsr_setup *setup, long steps,
                       tsr_conformation *truth, tsr_err *err)
{
    tsr_target target = setup->target;
    tsr_chain *chain = NULL;
    tsr_body_proposal ask;
    int accepted;
    target.likelihood = NULL;
    target.n_share = 0;
    tsr_status status = tsr_chain_new(&target, walk_stream, &chain, err);
    for (long i = 0; i < steps && status == TSR_OK; i++) {
        tsr_chain_propose(chain, &ask);
        status = tsr_chain_decide(chain, NULL, 1, &accepted, err);
    }
    if (status == TSR_OK) {
        tsr_chain_view view;
        tsr_chain_look(chain, &view);
        tsr_conformation_copy(setup->molecule.topology, truth,
                              view.conformation, 0,
                              setup->molecule.topology->n_residue);
    }
    tsr_chain_free(chain);
    return status;
}

/* c1 and c2 of the curve, in place of what a run would do with them. */
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
    return tsr_config_blame(config, status, err);
}

/* What is said of neutrons has to be of them. */
static tsr_status check_neutrons(const tsr_config *config, tsr_err *err)
{
    const tsr_simulate_config *s = &config->simulate;
    tsr_neutron neutron;
    tsr_status status = TSR_OK;
    const int has_d2o = s->neutron.d2o.word < 0 && s->neutron.d2o.number > 0.0;
    if (!s->radiation && (has_d2o || s->neutron.deuterated.n > 0))
        status =
            tsr_fail(err, TSR_E_CONFIG,
                     "simulate.%s: it has no effect with simulate.radiation"
                     ": xray; it belongs to neutron",
                     has_d2o ? "d2o" : "deuterated");
    else if (s->radiation && config->structure.file == NULL)
        status = tsr_fail(err, TSR_E_CONFIG,
                          "simulate.radiation: neutrons need the atoms of a "
                          "structure.file");
    else if (s->radiation &&
             tsr_neutron_make(&s->neutron, &neutron, err) != TSR_OK)
        status = tsr_wrap(err, TSR_E_CONFIG, "simulate");
    return tsr_config_blame(config, status, err);
}

/* I(q) as neutrons see all atoms, or the bodies that these make, double
 * precision, in fm^2: intensity [grid->n_q] out. */
static tsr_status of_neutrons(const tsr_config *config, tsr_atom_curves *curves,
                              const tsr_q_grid *grid, const tsr_setup *setup,
                              const tsr_conformation *truth, int is_atoms,
                              double *intensity, tsr_err *err)
{
    const size_t n_q = (size_t)grid->n_q;
    tsr_neutron neutron;
    TSR_TRY(tsr_neutron_make(&config->simulate.neutron, &neutron, err));
    const tsr_neutron_basis basis = {.origin = neutron.d2o};
    tsr_scattering bodies = {.contrast = setup->tables.contrast};
    tsr_neutron_bodies *own = NULL;
    double match;
    double *partial = calloc(TSR_N_COMP_PAIR * n_q, sizeof *partial);
    tsr_status status = TSR_OK;
    if (partial == NULL)
        status = tsr_no_memory(err);
    else if (is_atoms)
        status = tsr_atom_curves_partial(curves, truth, &neutron, basis.origin,
                                         partial, &match, err);
    else
        status = tsr_atom_curves_bodies(curves, truth, &neutron, 1,
                                        &neutron.d2o, &match, &own, err);
    bodies.neutron = own;
    for (int k = 0; k < grid->n_q && !is_atoms && status == TSR_OK; k++)
        status = tsr_scattering_intensity(&bodies, setup->molecule.topology,
                                          truth, NULL, k * grid->dq_inv_ang,
                                          &partial[k], err);
    if (status == TSR_OK && is_atoms) /* c2 is fixed: one component is left */
        tsr_neutron_fold(&basis, setup->tables.contrast, grid->n_q, partial);
    if (status == TSR_OK)
        memcpy(intensity, partial, n_q * sizeof *intensity);
    tsr_neutron_bodies_free(own);
    free(partial);
    return status;
}

/* The same for X-rays, in electrons squared. */
static tsr_status of_atoms(tsr_atom_curves *curves, const tsr_q_grid *grid,
                           const tsr_setup *setup,
                           const tsr_conformation *truth, double *intensity,
                           tsr_err *err)
{
    const size_t n_q = (size_t)grid->n_q;
    double radius;
    double *partial = calloc(TSR_N_COMP_PAIR * n_q, sizeof *partial);
    tsr_status status = tsr_allocated(partial, err);
    TSR_THEN(status, tsr_atom_curves_partial(curves, truth, NULL, 0.0, partial,
                                             &radius, err));
    for (int j = 0; j < grid->n_q && status == TSR_OK; j++)
        intensity[j] = tsr_component_intensity(
            partial + j, n_q,
            tsr_component_scale(setup->tables.contrast[TSR_C1].start, radius,
                                j * grid->dq_inv_ang),
            setup->tables.contrast[TSR_C2].start);
    free(partial);
    return status;
}

/* The atoms of the file, where the configuration wants them and there are any:
 * *curves stays NULL else. Neutrons need them in any case, and see bodies by
 * what these are made of. */
static tsr_status open_atoms(const tsr_config *config, const tsr_setup *setup,
                             const tsr_q_grid *grid, tsr_log *log,
                             tsr_atom_curves **curves, tsr_err *err)
{
    const tsr_molecule *m = &setup->molecule;
    tsr_err why;
    *curves = NULL;
    if (config->simulate.radiation)
        return tsr_atom_curves_new(m, grid, NULL, NULL, curves, err);
    if (tsr_config_no_atoms(config) == NULL &&
        tsr_atom_curves_new(m, grid, NULL, NULL, curves, &why) != TSR_OK)
        tsr_info(log, "the curve is that of the bodies: %s", why.message);
    return TSR_OK;
}

/* The same of the bodies with S(q), at n values of q; q NULL: on the grid. */
static tsr_status of_bodies(const tsr_q_grid *grid, const tsr_setup *setup,
                            const tsr_conformation *truth, int n,
                            const double *q, double *intensity, tsr_err *err)
{
    for (int k = 0; k < n; k++)
        TSR_TRY(tsr_scattering_intensity(
            setup->data.scattering, setup->molecule.topology, truth, NULL,
            q != NULL ? q[k] : k * grid->dq_inv_ang, &intensity[k], err));
    return TSR_OK;
}

/* From the grid to n values of q, as the instrument smears them. */
static tsr_status carry(const tsr_q_grid *grid, const tsr_resolution *r, int n,
                        const double *q, const double *on_grid,
                        double *intensity, tsr_err *err)
{
    const size_t n_q = (size_t)grid->n_q;
    double *matrix;
    TSR_TRY(tsr_q_operator_smeared(grid, r, n, q, &matrix, err));
    for (size_t k = 0; k < (size_t)n; k++) {
        intensity[k] = 0.0;
        for (size_t j = 0; j < n_q; j++)
            intensity[k] += matrix[k * n_q + j] * on_grid[j];
    }
    free(matrix);
    return TSR_OK;
}

/* sigma^2 = [I(q) + 2 c I(0.2) / (1 - c)] / (k q), c = 0.85: what detectors and
 * buffers give (Sedlak, Bruetzel & Lipfert 2017, eq. 10); k such that sigma / I
 * at q = 0.1 is `error`. */
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

/* What is written: q, I, sigma [points] each, and the resolution of q. */
typedef struct {
    double *column; /* [3][points] */
    tsr_pool pool;  /* of the resolution */
    tsr_resolution resolution;
    int is_atoms; /* the curve's scatterers */
} simulated;

/* On the grid that it needs, and from there to the points, which are smeared,
 * and to 0, 0.1 and 0.2, which are not: intensity [n + 3]. */
static tsr_status find_curve(const tsr_config *config, const tsr_setup *setup,
                             const tsr_conformation *truth, const double *q,
                             simulated *out, double *intensity, tsr_log *log,
                             tsr_err *err)
{
    const tsr_resolution ideal = {.sigma = NULL};
    const int n = (int)config->simulate.points;
    const tsr_q_grid grid = tsr_q_grid_make(
        setup->molecule.d_bound_ang,
        fmax(0.2, tsr_resolution_q_max(&out->resolution, n, q)));
    tsr_atom_curves *curves = NULL;
    double *on_grid = calloc((size_t)grid.n_q, sizeof *on_grid);
    TSR_TRY(tsr_allocated(on_grid, err));
    tsr_status status = open_atoms(config, setup, &grid, log, &curves, err);
    const int is_neutron = config->simulate.radiation;
    out->is_atoms = curves != NULL && tsr_config_no_atoms(config) == NULL;
    const int is_direct = !is_neutron && !out->is_atoms &&
                          tsr_resolution_is_ideal(&out->resolution);
    TSR_THEN(
        status,
        is_neutron      ? of_neutrons(config, curves, &grid, setup, truth,
                                      out->is_atoms, on_grid, err)
        : out->is_atoms ? of_atoms(curves, &grid, setup, truth, on_grid, err)
        : is_direct
            ? of_bodies(&grid, setup, truth, n + 3, q, intensity, err)
            : of_bodies(&grid, setup, truth, grid.n_q, NULL, on_grid, err));
    if (status == TSR_OK && !is_direct)
        status = carry(&grid, &out->resolution, n, q, on_grid, intensity, err);
    if (status == TSR_OK && !is_direct)
        status = carry(&grid, &ideal, 3, q + n, on_grid, intensity + n, err);
    tsr_atom_curves_free(curves);
    free(on_grid);
    return status;
}

static tsr_status compute(const tsr_config *config, const tsr_setup *setup,
                          const tsr_conformation *truth, tsr_log *log,
                          simulated *out, tsr_err *err)
{
    const tsr_simulate_config *s = &config->simulate;
    static const double extra_q[3] = {0.0, 0.1, 0.2};
    const int n = (int)s->points;
    double *column = out->column;
    double *q = calloc(2 * ((size_t)n + 3), sizeof *q);
    TSR_TRY(tsr_allocated(q, err));
    double *intensity = q + n + 3;
    for (int i = 0; i < n; i++)
        q[i] = s->q_range[0] + (s->q_range[1] - s->q_range[0]) * i / (n - 1);
    memcpy(q + n, extra_q, sizeof extra_q);
    tsr_status status = tsr_resolution_make(&s->resolution, n, q, NULL,
                                            &out->pool, &out->resolution, err);
    if (status != TSR_OK) {
        free(q);
        return tsr_wrap(err, status, "simulate.resolution");
    }
    status = find_curve(config, setup, truth, q, out, intensity, log, err);
    gsl_rng *rng = tsr_rng_new((uint64_t)config->seed, noise_stream);
    if (status == TSR_E_RANGE)
        status = tsr_wrap(err, status, "simulate.q_range");
    else if (status != TSR_OK)
        status = tsr_wrap(err, status, "simulate");
    else
        TSR_THEN(status, tsr_allocated(rng, err));
    if (status == TSR_OK) {
        const double scale = s->i0 / intensity[n];
        for (int i = 0; i < n; i++) {
            column[i] = q[i];
            column[n + i] = scale * intensity[i];
        }
        add_noise(s, n, q, scale * intensity[n + 1], scale * intensity[n + 2],
                  rng, column + n, column + 2 * n);
    }
    gsl_rng_free(rng);
    free(q);
    return status;
}

/* Swaps the ending of a file's name for ".pdb"; caller frees. */
static char *pdb_beside(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t n = dot == NULL || (slash != NULL && dot < slash)
                   ? strlen(path)
                   : (size_t)(dot - path);
    return tsr_words_of("%.*s.pdb", (int)n, path);
}

/* ---- files ---- */

/* Nothing that was measured, and no input, may be lost to a simulation. */
static tsr_status check_targets(const tsr_args *args, const tsr_config *config,
                                const char *path, const char *pdb, tsr_err *err)
{
    const char *const input[] = {config->path, config->structure.file,
                                 config->structure.form_factors};
    tsr_file_target target = {.maker = "simulate",
                              .begins = "# tessera ",
                              .holds = " simulate:",
                              .n_input = 3,
                              .input = input,
                              .is_forced = tsr_args_count(args, "force") > 0};
    if (strcmp(path, pdb) == 0)
        return tsr_fail(err, TSR_E_USAGE,
                        "--output %s: curve and structure would be one file; "
                        "name the curve .dat",
                        path);
    tsr_status status = tsr_file_check_target(&target, path, err);
    target.begins = "REMARK 999 tessera simulate:";
    target.holds = "";
    return status == TSR_OK ? tsr_file_check_target(&target, pdb, err) : status;
}

/* Both or none: the structure waits under another name for the curve. */
static tsr_status write_files(const tsr_config *config, const tsr_setup *setup,
                              const tsr_conformation *truth, const char *path,
                              const char *pdb, const simulated *made, FILE *out,
                              tsr_err *err)
{
    const tsr_simulate_config *s = &config->simulate;
    const double *column = made->column;
    double rg = tsr_conformation_rg(setup->molecule.topology, truth,
                                    setup->molecule.form_factors->rg2);
    char comment[768], resolution[200], neutrons[80] = "";
    if (s->radiation)
        snprintf(neutrons, sizeof neutrons, "; neutrons, %.4g %% D2O%s",
                 s->neutron.d2o.word < 0 ? 100.0 * s->neutron.d2o.number : 0.0,
                 s->neutron.deuterated.n > 0 ? ", deuterated in part" : "");
    tsr_resolution_text(&made->resolution, (int)s->points, resolution,
                        sizeof resolution);
    snprintf(comment, sizeof comment,
             "tessera %s simulate: %s, seed %ld, %ld steps of the prior, %s\n"
             "Rg %.3f Angstrom, I(0) %.6g, background %.6g, error %.3g at "
             "q = 0.1 1/Angstrom\nc1 %.6g, c2 %.6g%s\nresolution: "
             "%s\n"
             "q (1/Angstrom), I(q), sigma",
             TSR_VERSION, config->name, config->seed, s->steps,
             made->is_atoms ? "all atoms" : "bodies", rg, s->i0, s->background,
             s->error, s->radiation ? 1.0 : config->contrast.c1.number,
             config->contrast.c2.number, neutrons, resolution);
    size_t n = (size_t)s->points;
    char *waiting = tsr_words_of("%s.%ld.new", pdb, (long)getpid());
    tsr_structure *structure =
        tsr_topology_structure(setup->molecule.topology, truth);
    tsr_status status =
        waiting == NULL || structure == NULL ? tsr_no_memory(err) : TSR_OK;
    TSR_THEN(status, tsr_structure_letter_chains(structure, NULL, err));
    TSR_THEN(status,
             tsr_structure_write_pdb(
                 structure, waiting,
                 "tessera simulate: SC is the centre of a side chain", err));
    if (status == TSR_OK) {
        status =
            tsr_saxs_write(path, (int)n, column, column + n, column + 2 * n,
                           made->resolution.sigma, comment, err);
        if (status == TSR_OK && rename(waiting, pdb) != 0)
            status = tsr_fail(err, TSR_E_IO, "cannot write '%s': %s", pdb,
                              strerror(errno));
        if (status != TSR_OK)
            unlink(waiting);
    }
    if (status == TSR_OK)
        fprintf(out, "curve      %s\nstructure  %s\nRg         %.3f Angstrom\n",
                path, pdb, rg);
    tsr_structure_free(structure);
    free(waiting);
    return status;
}

static tsr_status simulate(const tsr_args *args, FILE *out, tsr_log *log,
                           tsr_err *err)
{
    const char *const *set;
    tsr_config config;
    tsr_setup setup = {0};
    tsr_conformation *truth = NULL;
    simulated made = {.column = NULL};
    char *own = NULL, *pdb = NULL;
    int n_set = tsr_args_values(args, "set", &set);
    tsr_status status =
        tsr_config_read(tsr_args_argument(args), n_set, set, &config, err);
    if (status != TSR_OK)
        goto done;
    size_t n = (size_t)config.simulate.points;
    const char *path = tsr_args_value(args, "output");
    if (path == NULL)
        path = own = tsr_words_of("%s.dat", config.name);
    pdb = path != NULL ? pdb_beside(path) : NULL;
    made.column = calloc(3 * n, sizeof *made.column);
    status = pdb == NULL || made.column == NULL
                 ? tsr_no_memory(err)
                 : check_targets(args, &config, path, pdb, err);
    TSR_THEN(status, check_neutrons(&config, err));
    TSR_THEN(status, set_contrast(&config, err));
    TSR_THEN(status, tsr_setup_read(&config, 0, log, &setup, err));
    if (status != TSR_OK)
        goto done;
    truth = tsr_conformation_new(setup.molecule.topology);
    if (truth == NULL) {
        status = tsr_no_memory(err);
        goto done;
    }
    status = walk(&setup, config.simulate.steps, truth, err);
    if (status == TSR_OK && setup.molecule.components != NULL)
        status = tsr_atom_curves_expose(setup.data.atoms, &setup.molecule,
                                        truth, setup.data.exposure, err);
    TSR_THEN(status, compute(&config, &setup, truth, log, &made, err));
    TSR_THEN(status,
             write_files(&config, &setup, truth, path, pdb, &made, out, err));
done:
    free(own);
    free(pdb);
    free(made.column);
    tsr_pool_clear(&made.pool);
    tsr_conformation_free(truth);
    tsr_setup_clear(&setup);
    tsr_config_clear(&config);
    return status;
}

const tsr_command tsr_command_simulate = {
    .name = "simulate",
    .doc = "make noisy data from a known structure",
    .usage = {.arguments = "CONFIG",
              .min_arguments = 1,
              .max_arguments = 1,
              .options = options,
              .about =
                  "The structure is that of the configuration, or where "
                  "sampling its prior leads from there in simulate.steps "
                  "steps. The curve is that of all atoms of the file there "
                  "(with model_error: none, or where the file has none, "
                  "of the bodies), in double precision, plus normal "
                  "errors. Of files that are "
                  "there already, simulate replaces only its own, unless "
                  "with --force; an input never.",
              .fields = tsr_config_fields},
    .run = simulate};
