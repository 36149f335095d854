/* A sampler restored from an archive continues to the bit as the saved one: in
 * warm-up and after, with other threads, with temperatures, states, inferred
 * noise and learnt steps. */
#include "tests/property/posterior_sample.h"
#include "tests/test.h"

enum { N_CHAIN = 3, N_WARM = 12, N_DRAW = 12, EVERY = 4 };
enum { N_LOOK = (N_WARM + N_DRAW) * N_CHAIN };

typedef struct {
    double lp, rg, weight, beta, contrast[TSR_N_CONTRAST];
} look;

/* What the sampler has besides two states and their weights. */
typedef enum { PRIOR, DATA, DATA_CONTRAST } kind;

/* What is saved after `at` draws goes to `saved`; from there on `seen` holds
 * what the chains drew. */
typedef struct {
    tsr_archive *saved;
    int at;
    long thin;
    look *seen; /* [N_LOOK] */
} sight;

static void open_sample(posterior_sample *s, int on_device, kind what)
{
    const tsr_prior_options prior = {
        .clash = TSR_CLASH_SOFT, .softness = 0.5, .clash_limit = 10.0};
    const double half[2] = {0.5, 0.5};
    gsl_rng *rng = rng_new(6, 0);
    posterior_open(s, "MKTAYIAKQRPGI", NULL, prior);
    tsr_conformation *turned = new_conformation(s->t);
    tsr_conformation_copy(s->t, turned, s->extended, 0, s->t->n_residue);
    for (int k = 0; k < s->t->n_torsion; k++)
        tsr_conformation_turn(s->t, turned, &s->t->torsion[k],
                              gsl_ran_gaussian(rng, 0.2));
    s->target.n_state = 2, s->target.infer_weights = 1;
    if (what == DATA_CONTRAST) {
        const tsr_contrast_options infer = posterior_infer_contrast();
        posterior_contrast(s, &infer);
    }
    if (what != PRIOR) {
        s->target.n_temp = 3, s->target.t_max = 8.0, s->target.swap_every = 4;
        posterior_data(s, 2,
                       (const tsr_conformation *const[]){s->extended, turned},
                       half, 0.002, 2.0, 0.0, 0.0, rng);
        posterior_start(s, 0.5, N_CHAIN, on_device);
    }
}

static void look_at(const posterior_run *run, int draw, look *seen)
{
    for (int c = 0; c < N_CHAIN; c++) {
        tsr_chain_view view;
        tsr_chain_view_get(tsr_sampler_chain(run->sampler, c), &view);
        const double *contrast = posterior_contrast_of(&view);
        seen[draw * N_CHAIN + c] = (look){view.lp,
                                          view.rg_ang,
                                          view.state_weight[0],
                                          view.beta,
                                          {contrast[TSR_C1], contrast[TSR_C2]}};
    }
}

/* Draws `from` .. N_WARM + N_DRAW. Looks are at a prefix of every block, whose
 * lengths vary; the refreshes come at fixed draws. */
static void draw_on(posterior_run run, int from, const sight *mine)
{
    for (int i = from; i < N_WARM + N_DRAW; i++) {
        int warm = i < N_WARM, in_phase = warm ? i : i - N_WARM;
        if (i == N_WARM)
            tsr_sampler_counts_reset(run.sampler);
        if (in_phase % EVERY == 0) {
            OK(tsr_sampler_refresh(run.sampler, &err));
            if (mine->saved != NULL && i == mine->at) {
                tsr_archive_begin(mine->saved);
                tsr_sampler_archive(run.sampler, mine->saved);
                OK(tsr_archive_end(mine->saved, &err));
            }
        }
        posterior_advance(run, 1, mine->thin, warm);
        look_at(&run, i, mine->seen);
    }
}

static void compare_from(int at, long thin, int on_device, kind what)
{
    static look seen[2][N_LOOK];
    posterior_sample s;
    tsr_archive saved = {0};
    for (int again = 0; again < 2; again++) {
        const sight here = {again ? NULL : &saved, at, thin, seen[again]};
        open_sample(&s, on_device, what);
        posterior_run run = posterior_run_new(&s, N_CHAIN, again ? 2 : 3, 2);
        tsr_sampler_plan_warmup(run.sampler, N_WARM * thin, 0.5);
        if (again) {
            tsr_archive_rewind(&saved);
            tsr_sampler_archive(run.sampler, &saved);
            OK(tsr_archive_end(&saved, &err));
        }
        draw_on(run, again ? at : 0, &here);
    }
    int differ = 0, moved = 0;
    for (int i = at * N_CHAIN; i < N_LOOK; i++) {
        differ += memcmp(&seen[0][i], &seen[1][i], sizeof(look)) != 0;
        moved += i >= N_CHAIN && seen[0][i].lp != seen[0][i - N_CHAIN].lp;
    }
    assert_int_equal(differ, 0);
    assert_true(moved > (N_LOOK - at * N_CHAIN) / 2);
    tsr_archive_clear(&saved);
}

TEST(restored_is_the_same)
{
    static const int at[] = {0, EVERY, N_WARM, N_WARM + EVERY};
    const int has_device = is_device("cpu");
    for (size_t k = 0; k < COUNT_OF(at); k++) {
        compare_from(at[k], 7, 0, DATA);
        compare_from(at[k], 7, 0, PRIOR);
        if (has_device)
            compare_from(at[k], 7, 1, DATA);
    }
    /* long enough for the mix of moves to learn, before and after */
    compare_from(2 * EVERY, 120, has_device, DATA);
    /* as long as directions of c1 and c2 take */
    compare_from(N_WARM + EVERY, 20, has_device, DATA_CONTRAST);
}

/* What was saved of another set-up is refused, not misread. */
TEST(others_are_refused)
{
    posterior_sample s;
    tsr_archive saved = {0};
    open_sample(&s, 0, DATA);
    posterior_run run = posterior_run_new(&s, N_CHAIN, 1, 1);
    tsr_archive_begin(&saved);
    tsr_sampler_archive(run.sampler, &saved);
    saved.n_real--;
    tsr_archive_rewind(&saved);
    tsr_sampler_archive(run.sampler, &saved);
    FAILS(tsr_archive_end(&saved, &err), TSR_E_DATA, "too short");
    saved.n_real++;
    saved.integer[saved.n_integer - 1]++; /* a counter: harmless */
    saved.n_integer--;
    tsr_archive_rewind(&saved);
    tsr_sampler_archive(run.sampler, &saved);
    assert_int_equal(tsr_archive_end(&saved, &err), TSR_E_DATA);
    open_sample(&s, 0, PRIOR);
    run = posterior_run_new(&s, N_CHAIN, 1, 1);
    saved.n_integer++;
    tsr_archive_rewind(&saved);
    tsr_sampler_archive(run.sampler, &saved);
    FAILS(tsr_archive_end(&saved, &err), TSR_E_DATA, "too long");
    tsr_archive_clear(&saved);
}
