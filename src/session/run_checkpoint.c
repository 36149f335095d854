/* A run's checkpoint. One list of members describes its content for writing and
 * for reading. A checkpoint belongs to a run if the configurations agree,
 * except for keys that may change between sessions, and if the checksums of the
 * input agree. */
#include "session/run_checkpoint.h"

#include "core/text.h"
#include "files/checksum.h"
#include "store/checkpoint.h"
#include "store/trace.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long tsr_run_warmup_requested(const tsr_config *config)
{
    const tsr_sampler_options *o = &config->sampler;
    return (o->warmup + tsr_sampler_thin(o) - 1) / tsr_sampler_thin(o);
}

/* ---- identity ---- */

static long as_long(uint64_t checksum)
{
    return (long)(checksum & LONG_MAX);
}

static uint64_t add_doubles(uint64_t sum, const double *x, size_t n)
{
    return tsr_checksum(sum, x, n * sizeof *x);
}

/* Results of functions, whose last bits depend on the processor. */
static uint64_t add_rounded(uint64_t sum, const double *x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const float rounded = (float)x[k];
        sum = tsr_checksum(sum, &rounded, sizeof rounded);
    }
    return sum;
}

long tsr_run_arithmetic(const tsr_setup *setup)
{
    const tsr_devices *v = &setup->devices;
    const char *engine = "";
    uint64_t sum = 0;
    for (int e = 0; e < v->n; e++)
        if (strcmp(engine, v->group[e].engine->description) != 0) {
            engine = v->group[e].engine->description;
            sum = tsr_checksum(sum, engine, strlen(engine));
        }
    for (int k = 1; k <= 500; k++) {
        const double x = 0.0137 * k;
        const double y[] = {exp(-x), log(x),   pow(x, 1.7),   sin(x),
                            cos(x),  log1p(x), atan2(x, 1.3), tanh(x)};
        sum = add_doubles(sum, y, sizeof y / sizeof *y);
    }
    return as_long(sum);
}

tsr_run_identity tsr_run_identity_of(const tsr_setup *setup)
{
    const tsr_molecule *m = &setup->molecule;
    const tsr_topology *t = m->topology;
    const tsr_likelihood *l = setup->data.likelihood;
    size_t n = (size_t)t->n_residue;
    uint64_t structure = add_doubles(0, &m->first->backbone[0][0][0], 12 * n);
    uint64_t data = 0, tables = 0;
    structure =
        add_doubles(structure, &m->first->body[0][0], 3 * (size_t)t->n_body);
    for (int k = 0; k < m->n_start; k++)
        structure =
            add_doubles(structure, &m->start[k]->backbone[0][0][0], 12 * n);
    const tsr_members *pool = m->members;
    const size_t n_turn =
        pool != NULL ? 2 * (size_t)pool->n * (size_t)pool->n_torsion : 0;
    for (size_t i = 0; i < n_turn;
         i++) { /* last bits depend on the processor */
        const double turn = nearbyint(1e4 * pool->turn[0][i]) + 0.0;
        structure = add_doubles(structure, &turn, 1);
    }
    for (int d = 0; l != NULL && d < l->n_term; d++) {
        const tsr_term *term = l->term[d];
        data = add_doubles(data, term->coord, (size_t)term->n_point);
        data = add_doubles(data, term->observed, (size_t)term->n_point);
        data = add_doubles(data, term->sigma, (size_t)term->n_point);
        if (term->neutron != NULL)
            data = add_doubles(data, &term->neutron->d2o, 1);
    }
    tables = add_doubles(tables, m->form_factors->rg2,
                         (size_t)m->form_factors->n_type);
    for (int p = 0; l != NULL && p < l->n_probe; p++) {
        const tsr_probe *of = &l->probe[p];
        tables = add_rounded(tables, of->amplitude,
                             (size_t)(of->n_comp * of->n_type * l->grid.n_q));
    }
    double log_prior = tsr_prior_log_reference(m->prior, m->first);
    tables = add_rounded(tables, &log_prior, 1);
    return (tsr_run_identity){as_long(structure),
                              as_long(data),
                              as_long(tables),
                              setup->n_chain,
                              tsr_target_n_temp(&setup->target),
                              tsr_target_n_state(&setup->target)};
}

/* ---- remaining time ---- */

long tsr_run_draw_steps(const tsr_config *config,
                        const tsr_run_identity *identity)
{
    return tsr_sampler_thin(&config->sampler) *
           (long)(identity->n_chain * identity->n_temp);
}

long tsr_run_warmup_expected(const tsr_config *config,
                             const tsr_run_progress *progress)
{
    return progress->draws > 0 ? progress->warmup
           : progress->expected > 0
               ? progress->expected - tsr_sampler_draws(&config->sampler)
               : tsr_run_warmup_requested(config);
}

double tsr_run_remaining(const tsr_config *config,
                         const tsr_run_identity *identity,
                         const tsr_run_progress *progress, char text[48])
{
    const tsr_sampler_options *o = &config->sampler;
    const long warmup = tsr_run_warmup_expected(config, progress),
               most = warmup + tsr_sampler_draws(o),
               all = progress->expected > 0 ? progress->expected : most;
    const double each = progress->seconds / (double)progress->steps *
                        (double)tsr_run_draw_steps(config, identity);
    const double warm = each * (double)(warmup - progress->warmup);
    double left = each * (double)(all - progress->warmup - progress->draws);
    if (o->time_limit > 0.0)
        left = fmax(warm, fmin(left, o->time_limit - progress->seconds));
    if (progress->is_finished || left < 0.0)
        left = 0.0;
    const long t = isfinite(left) ? (long)(left + 0.5) : 0;
    snprintf(text, 48, isfinite(left) ? "%s%ld:%02ld:%02ld" : "unknown",
             o->until != NULL && all >= most ? "at most " : "", t / 3600,
             t / 60 % 60, t % 60);
    return left;
}

/* ---- content ---- */

/* Saves or restores all numbers but the state of the chains. */
static tsr_status archive_numbers(tsr_run_checkpoint *c, tsr_archive *a,
                                  tsr_err *err)
{
    tsr_run_progress *p = &c->progress;
    tsr_run_identity *i = &c->identity;
    long *const number[] = {&p->warmup,   &p->draws,   &p->next_check,
                            &p->expected, &p->steps,   &i->structure,
                            &i->data,     &i->tables,  &i->n_chain,
                            &i->n_temp,   &i->n_state, &c->arithmetic};
    for (size_t k = 0; k < sizeof number / sizeof *number; k++)
        tsr_archive_long(a, number[k], 1);
    tsr_archive_int(a, &p->is_finished, 1);
    tsr_archive_int(a, &p->is_converged, 1);
    tsr_archive_real(a, &p->seconds, 1);
    tsr_archive_real(a, &p->start_chi2, 1);
    tsr_archive_real(a, &p->start_rg, 1);
    return tsr_archive_end(a, err);
}

/* The members of the file. Those of the state, which is large and read only to
 * resume, come last. */
enum { STATE = 2, N_MEMBER = 5 };

static void list_members(tsr_run_checkpoint *c, tsr_archive *numbers,
                         tsr_checkpoint_member member[N_MEMBER + 1])
{
    const tsr_checkpoint_member all[N_MEMBER + 1] = {
        {"run", .archive = numbers},
        {"config", .text = &c->text},
        {"sampler", .archive = &c->saved},
        {"model_error", .archive = &c->error},
        {"model_error/text", .text = &c->error_text},
        {0}};
    memcpy(member, all, sizeof all);
}

tsr_status tsr_run_checkpoint_write(const char *directory,
                                    const tsr_run_checkpoint *checkpoint,
                                    tsr_err *err)
{
    tsr_run_checkpoint c = *checkpoint;
    tsr_archive numbers = {0};
    tsr_checkpoint_member member[N_MEMBER + 1];
    char hash[32];
    char *path = tsr_text_format("%s/%s", directory, TSR_CHECKPOINT_NAME);
    snprintf(hash, sizeof hash, "%016llx",
             (unsigned long long)tsr_checksum(0, c.text, strlen(c.text)));
    tsr_status status = tsr_allocated(path, err);
    TSR_THEN(status, archive_numbers(&c, &numbers, err));
    list_members(&c, &numbers, member);
    TSR_THEN(status, tsr_checkpoint_write(path, hash, member, err));
    tsr_archive_clear(&numbers);
    free(path);
    return status;
}

/* ---- reading ---- */

void tsr_run_checkpoint_clear(tsr_run_checkpoint *checkpoint)
{
    free(checkpoint->text);
    free(checkpoint->error_text);
    free(checkpoint->written_at);
    free(checkpoint->remark);
    tsr_archive_clear(&checkpoint->saved);
    tsr_archive_clear(&checkpoint->error);
    memset(checkpoint, 0, sizeof *checkpoint);
}

int tsr_run_is_finished(const char *directory)
{
    tsr_run_checkpoint at = {0};
    const int is_finished =
        tsr_run_checkpoint_read(directory, 0, &at, NULL) == TSR_OK &&
        at.progress.is_finished;
    tsr_run_checkpoint_clear(&at);
    return is_finished;
}

tsr_status tsr_run_checkpoint_read(const char *directory, int with_state,
                                   tsr_run_checkpoint *out, tsr_err *err)
{
    char remark[TSR_ERR_SIZE];
    tsr_checkpoint *file = NULL;
    tsr_archive numbers = {0};
    tsr_checkpoint_member member[N_MEMBER + 1];
    memset(out, 0, sizeof *out);
    list_members(out, &numbers, member);
    if (!with_state)
        member[STATE].name = NULL;
    tsr_status status =
        tsr_checkpoint_open_newest(directory, &file, remark, err);
    TSR_THEN(status, tsr_checkpoint_get(file, member, err));
    tsr_archive_rewind(&numbers);
    TSR_THEN(status, tsr_wrap(err, archive_numbers(out, &numbers, err),
                              "'%s/%s'", directory, TSR_CHECKPOINT_NAME));
    tsr_archive_clear(&numbers);
    if (status == TSR_OK) {
        out->written_at = strdup(tsr_checkpoint_created_at(file));
        out->remark = remark[0] != '\0' ? strdup(remark) : NULL;
        if (out->written_at == NULL ||
            (remark[0] != '\0' && out->remark == NULL))
            status = tsr_no_memory(err);
    }
    tsr_checkpoint_free(file);
    return status;
}

/* ---- comparison of configurations ---- */

/* May the key differ between sessions? The choice of trajectory frames may
 * not. */
static int is_changeable(const char *section, const char *key)
{
    static const char *const sections[] = {"output", "device", "simulate"};
    static const char *const keys[] = {"draws", "until", "time_limit"};
    if (strcmp(section, "output") == 0 &&
        (strcmp(key, "trajectory") == 0 ||
         strcmp(key, "trajectory_every") == 0))
        return 0;
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
        if (strcmp(section, sections[k]) == 0)
            return 1;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (strcmp(section, "sampler") == 0 && strcmp(key, keys[k]) == 0)
            return 1;
    return 0;
}

int tsr_run_key_may_change(const char *set)
{
    char section[16], key[24];
    const int n = (int)strcspn(set, ".=");
    const char *rest = set + n + (set[n] == '.');
    snprintf(section, sizeof section, "%.*s", n, set);
    snprintf(key, sizeof key, "%.*s", (int)strcspn(rest, ".="), rest);
    return is_changeable(section, key);
}

/* Reader of a configuration, line by line, without comments and without
 * changeable keys. */
typedef struct {
    const char *at;
    char section[64], key[64];
    const char *line; /* [length], not terminated */
    size_t length;
} reader;

static void store_key(reader *r, size_t indent)
{
    size_t n = strcspn(r->line + indent, ":\n");
    char *to = indent == 0 ? r->section : r->key;
    n = n < sizeof r->key - 1 ? n : sizeof r->key - 1;
    memcpy(to, r->line + indent, n);
    to[n] = '\0';
    if (indent == 0)
        r->key[0] = '\0';
}

/* Moves to the next line that must agree. Returns 0 at the end. */
static int next_line(reader *r)
{
    while (*r->at != '\0') {
        r->line = r->at;
        r->length = strcspn(r->at, "\n");
        r->at += r->length + (r->at[r->length] == '\n');
        size_t indent = strspn(r->line, " ");
        if (indent >= r->length || r->line[indent] == '#')
            continue;
        if (indent == 0 || (indent == 2 && r->line[2] != '-'))
            store_key(r, indent);
        if (!is_changeable(r->section, r->key))
            return 1;
    }
    return 0;
}

/* Compares the configurations of a file `what` and of the present run. */
static tsr_status match_text(const char *what, const char *then,
                             const char *now, tsr_err *err)
{
    reader a = {.at = then}, b = {.at = now};
    for (;;) {
        int has_a = next_line(&a), has_b = next_line(&b);
        if (!has_a && !has_b)
            return TSR_OK;
        if (has_a != has_b || a.length != b.length ||
            memcmp(a.line, b.line, a.length) != 0)
            return tsr_fail(err, TSR_E_DATA,
                            "config.yaml differs from that of the %s: '%.*s' "
                            "was '%.*s'; restore it, or begin a new run",
                            what, has_b ? (int)b.length : 3,
                            has_b ? b.line : "end", has_a ? (int)a.length : 3,
                            has_a ? a.line : "end");
    }
}

tsr_status tsr_run_trace_match(const char *path, const char *text, tsr_err *err)
{
    tsr_trace_reader *trace = NULL;
    TSR_TRY(tsr_trace_open(path, &trace, err));
    char *then = tsr_trace_attribute_text(trace, "config");
    tsr_status status = then == NULL
                            ? tsr_fail(err, TSR_E_DATA, "has no config")
                            : match_text("trace", then, text, err);
    status = tsr_wrap(err, status, "'%s'", path);
    free(then);
    tsr_trace_reader_free(trace);
    return status;
}

tsr_status tsr_run_checkpoint_match(const tsr_run_checkpoint *checkpoint,
                                    const char *file, const char *text,
                                    const tsr_run_identity *identity,
                                    tsr_err *err)
{
    const tsr_run_identity *a = &checkpoint->identity, *b = identity;
    tsr_status status = match_text("checkpoint", checkpoint->text, text, err);
    if (status != TSR_OK &&
        match_text("checkpoint", checkpoint->text, file, NULL) == TSR_OK)
        return tsr_fail(err, status,
                        "config.yaml is that of the checkpoint, but tessera %s "
                        "has other keys or defaults than the version that "
                        "wrote it; resume with that version, or begin a new "
                        "run",
                        TSR_VERSION);
    const char *what = a->structure != b->structure ? "the structure"
                       : a->data != b->data         ? "the data"
                       : a->tables != b->tables
                           ? "form factors or prior (another version of "
                             "tessera?)"
                       : a->n_chain < 1 ? "the number of chains"
                                        : NULL;
    if (status == TSR_OK && what != NULL)
        status = tsr_fail(err, TSR_E_DATA,
                          "%s: changed since the checkpoint was written; "
                          "restore it, or begin a new run",
                          what);
    return status;
}
