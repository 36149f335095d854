/* tessera bench --moves: the speed of proposals on the host, without a device.
 * An extended chain is first turned into a coil by steps of all moves, because
 * the cost of a move depends on how crowded its surroundings are. */
#include "bench/command_bench.h"

#include "core/clock.h"
#include "moves/move.h"
#include "posterior/setup.h"
#include "prior/prior.h"
#include "sampler/chain.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = 32, N_RESIDUE = 1000 };

typedef struct {
    const char *name, *doc;
    const char *flexible[3]; /* NULL: all residues */
} molecule;

static const molecule molecules[] = {
    {"coil", "all residues flexible", {NULL, NULL, NULL}},
    {"linkers",
     "four rigid parts, three linkers of 20 residues",
     {"A:241-260", "A:491-510", "A:741-760"}}};

typedef struct {
    tsr_prior_table *table;
    tsr_topology *topology;
    tsr_conformation *first;
    tsr_prior *prior;
    unsigned char option[TSR_N_MOVE][TSR_MOVE_OPTIONS];
    const void *options[TSR_N_MOVE];
} bench_case;

static void bench_case_clear(bench_case *b)
{
    tsr_prior_free(b->prior);
    tsr_conformation_free(b->first);
    tsr_topology_free(b->topology);
    tsr_prior_table_free(b->table);
}

/* A random sequence, the same in every run, with the amino-acid frequencies of
 * proteins (McCaldon & Argos 1988). */
static void make_sequence(int n, char *text)
{
    static const char pool[] = "AAAAAAAALLLLLLLLLGGGGGGGVVVVVVVEEEEEESSSSSSSKKK"
                               "KKKIIIIITTTTTTDDDDDRRRRRPPPPPNNNNQQQQFFFFYYYHHM"
                               "MCCW";
    gsl_rng *rng = tsr_rng_new(1, 0);
    for (int i = 0; rng != NULL && i < n; i++)
        text[i] = pool[gsl_rng_uniform_int(rng, sizeof pool - 1)];
    text[n] = '\0';
    gsl_rng_free(rng);
}

static tsr_status make_step(tsr_chain *chain, int warm, int *accepted,
                            tsr_err *err)
{
    tsr_body_proposal ask;
    tsr_chain_propose(chain, &ask);
    return tsr_chain_decide(chain, NULL, warm, accepted, err);
}

/* Turns the extended chain b->first into a coil by n_step steps of all moves.
 */
static tsr_status make_coil(bench_case *b, long n_step, tsr_err *err)
{
    const tsr_target target = {.topology = b->topology,
                               .first = b->first,
                               .prior = b->prior,
                               .move_options = b->options,
                               .seed = 1};
    tsr_chain *chain;
    int accepted;
    tsr_chain_view view;
    tsr_status status = tsr_chain_new(&target, 0, &chain, err);
    for (long i = 0; i < n_step && status == TSR_OK; i++)
        status = make_step(chain, 1, &accepted, err);
    if (status == TSR_OK) {
        tsr_chain_view_get(chain, &view);
        tsr_conformation_copy(b->topology, b->first, view.conformation, 0,
                              b->topology->n_residue);
    }
    tsr_chain_free(chain);
    return status;
}

static tsr_status open_prior(bench_case *b, tsr_err *err)
{
    tsr_prior_options options = {0};
    tsr_status status = tsr_fields_init(tsr_prior_fields, &options, err);
    TSR_THEN(status, tsr_prior_new(b->topology, b->table, &options, 0.0,
                                   &b->prior, err));
    tsr_fields_clear(tsr_prior_fields, &options);
    return status;
}

static tsr_status open_case(bench_case *b, const molecule *m, int quick,
                            tsr_err *err)
{
    char text[N_RESIDUE + 1];
    char *path = NULL;
    tsr_conformation *coiled = NULL;
    memset(b, 0, sizeof *b);
    make_sequence(N_RESIDUE, text);
    tsr_status status = tsr_data_file("prior.dat", &path, err);
    TSR_THEN(status, tsr_prior_table_read(path, &b->table, err));
    free(path);
    for (int k = 0; k < TSR_N_MOVE && status == TSR_OK; k++) {
        const double weight = 1.0; /* include moves that are off by default */
        status =
            tsr_fields_init(tsr_move_registry[k]->fields, b->option[k], err);
        memcpy(b->option[k], &weight, sizeof weight);
        b->options[k] = b->option[k];
    }
    TSR_THEN(status,
             tsr_topology_from_sequence(
                 text, TSR_BODIES_TWO, (tsr_flexibility){.flexible = NULL},
                 b->table, &b->topology, &b->first, err));
    TSR_THEN(status, open_prior(b, err));
    TSR_THEN(status, make_coil(b, quick ? 4000 : 200000, err));
    if (status != TSR_OK || m->flexible[0] == NULL)
        return status;
    /* the same coordinates with fewer flexible residues */
    char own[3][16], *item[3];
    for (int k = 0; k < 3; k++) {
        snprintf(own[k], sizeof own[k], "%s", m->flexible[k]);
        item[k] = own[k];
    }
    const tsr_strings flexible = {3, item};
    coiled = b->first;
    b->first = NULL;
    tsr_prior_free(b->prior);
    tsr_topology_free(b->topology);
    b->prior = NULL, b->topology = NULL;
    TSR_THEN(status,
             tsr_topology_from_sequence(
                 text, TSR_BODIES_TWO, (tsr_flexibility){.flexible = &flexible},
                 b->table, &b->topology, &b->first, err));
    if (status == TSR_OK) {
        tsr_conformation_copy(b->topology, b->first, coiled, 0, N_RESIDUE);
        status = open_prior(b, err);
    }
    tsr_conformation_free(coiled);
    return status;
}

/* The share of tiles that hold a distance that the proposal may change. */
static double dirty_tiles(const tsr_topology *t, const tsr_proposal *p)
{
    int n_block = (t->n_body + TILE - 1) / TILE;
    long clean = 0, count[TSR_MAX_SPAN + 1] = {0};
    for (int b = 0; b < n_block; b++) {
        int end = (b + 1) * TILE < t->n_body ? (b + 1) * TILE : t->n_body;
        int same = -2;
        for (int i = b * TILE; i < end; i++) {
            int residue = t->body[i].residue, group = 0;
            for (int k = 0; k < p->n_span; k++) {
                const tsr_span *s = &p->span[k];
                if (residue >= s->first && residue < s->first + s->count)
                    group = s->group > 0 ? s->group : -1;
            }
            same = same == -2 || same == group ? group : -1;
        }
        if (same >= 0)
            count[same]++;
    }
    for (int g = 0; g <= TSR_MAX_SPAN; g++)
        clean += count[g] * (count[g] + 1) / 2;
    return 1.0 - (double)clean / (0.5 * n_block * (n_block + 1.0));
}

typedef struct {
    double per_second, acceptance, none, dirty;
} row;

static tsr_status measure(bench_case *b, int move, int is_quick, row *out,
                          tsr_err *err)
{
    const int n_learn = is_quick ? 500 : 5000, n_sample = is_quick ? 500 : 2000;
    const double seconds = is_quick ? 0.02 : 2.0;
    const tsr_move_type *type = tsr_move_registry[move];
    const void *only[TSR_N_MOVE] = {NULL};
    only[move] = b->options[move];
    const tsr_target target = {.topology = b->topology,
                               .first = b->first,
                               .prior = b->prior,
                               .move_options = only,
                               .seed = 2};
    tsr_chain *chain;
    int accepted;
    long n = 0, n_accepted = 0;
    tsr_status status = tsr_chain_new(&target, 0, &chain, err);
    for (int i = 0; i < n_learn && status == TSR_OK; i++)
        status = make_step(chain, 1, &accepted, err);
    double start = tsr_clock_s(), taken = 0.0;
    while (status == TSR_OK && taken < seconds) {
        for (int i = 0; i < 256 && status == TSR_OK; i++) {
            status = make_step(chain, 0, &accepted, err);
            n_accepted += accepted;
        }
        n += 256;
        taken = tsr_clock_s() - start;
    }
    if (status == TSR_OK) {
        out->per_second = (double)n / taken;
        out->acceptance = (double)n_accepted / (double)n;
    }
    tsr_chain_free(chain);
    if (status != TSR_OK)
        return status;
    /* properties of proposals, directly from the move */
    tsr_conformation *other = tsr_conformation_new(b->topology);
    tsr_pool pool = {0};
    void *state = type->state_new(&pool, only[move], b->topology, b->prior);
    gsl_rng *rng = tsr_rng_new(3, 0);
    if (other == NULL || state == NULL || rng == NULL)
        status = tsr_no_memory(err);
    int none = 0;
    double dirty = 0.0;
    if (status == TSR_OK)
        tsr_conformation_copy(b->topology, other, b->first, 0, N_RESIDUE);
    for (int i = 0; i < n_sample && status == TSR_OK; i++) {
        tsr_proposal p;
        type->propose(state, b->first, other, rng, &p);
        tsr_proposal_move_attached(b->topology, b->first, other, &p);
        none += p.n_span == 0;
        dirty += p.n_span > 0 ? dirty_tiles(b->topology, &p) : 0.0;
        for (int k = 0; k < p.n_span; k++)
            tsr_conformation_copy(b->topology, other, b->first, p.span[k].first,
                                  p.span[k].count);
    }
    out->none = (double)none / n_sample;
    out->dirty = none < n_sample ? dirty / (n_sample - none) : 0.0;
    tsr_pool_clear(&pool);
    gsl_rng_free(rng);
    tsr_conformation_free(other);
    return status;
}

static void add_row(tsr_table *t, const char *of, const char *move,
                    const row *r)
{
    tsr_table_row(t, NULL);
    tsr_table_put(t,
                  "molecule|molecule %-8s n_residue %d move|move %-11s "
                  "proposals_per_second|proposals/s %12.0f acceptance %g "
                  "none %g dirty_tiles %g |accepted %9.1f~%% |none %9.1f~%% "
                  "|dirty~tiles %11.1f~%%",
                  of, N_RESIDUE, move, r->per_second, r->acceptance, r->none,
                  r->dirty, 100.0 * r->acceptance, 100.0 * r->none,
                  100.0 * r->dirty);
    tsr_table_end(t);
}

tsr_status tsr_bench_moves(tsr_table *table, int is_quick, tsr_log *log,
                           tsr_err *err)
{
    tsr_json *json = table->json;
    tsr_status status = TSR_OK;
    if (json != NULL) {
        tsr_json_object(json, NULL);
        tsr_json_text(json, "version", TSR_VERSION);
        tsr_json_array(json, "moves");
    } else
        fprintf(table->out,
                "%d residues, two bodies each; one thread; excluded volume "
                "included, likelihood not\n\n",
                N_RESIDUE);
    for (size_t m = 0; m < sizeof molecules / sizeof *molecules; m++) {
        bench_case b;
        tsr_info(log, "%s: %s", molecules[m].name, molecules[m].doc);
        status = open_case(&b, &molecules[m], is_quick, err);
        for (int k = 0; k < TSR_N_MOVE && status == TSR_OK; k++) {
            row r = {0};
            const tsr_move_type *type = tsr_move_registry[k];
            if (type->launch != NULL ||
                type->n_target(b.options[k], b.topology) == 0 ||
                type->learn !=
                    NULL) /* needs data, which this benchmark lacks */
                continue;
            status = measure(&b, k, is_quick, &r, err);
            if (status != TSR_OK)
                break;
            add_row(table, molecules[m].name, type->name, &r);
        }
        bench_case_clear(&b);
        if (status != TSR_OK)
            return status;
    }
    if (json == NULL)
        fputs("\nnone: nothing could be proposed (no closure was found). "
              "accepted: under the prior\nalone. dirty tiles: of the engine's, "
              "32 bodies a side.\n",
              table->out);
    return status;
}
