/* Crystal structures as starts: how many have pairs of bodies that the default
 * prior calls impossible, where all is flexible (so that all pairs count)? */
#include "posterior/setup.h"
#include "prior/prior.h"
#include "tests/objects.h"
#include "tests/test.h"
#include <glob.h>

static const double limits[] = {2.0, 5.0, 7.5, 10.0, 15.0, 20.0};
enum { N_LIMIT = sizeof limits / sizeof *limits };

typedef struct {
    long n_structure, n_residue, n_unread;
    long n_pair[N_LIMIT], n_refused[N_LIMIT];
} tally;

static void look(const char *path, tsr_body_model model,
                 const tsr_prior_table *table, double usual, tally *sum)
{
    tsr_structure *s;
    tsr_topology *t = NULL;
    tsr_conformation *c = NULL;
    const tsr_flexibility all = {.file = path};
    tsr_status status = tsr_structure_read(path, &s, &err);
    if (status == TSR_OK)
        status = tsr_topology_from_structure(s, model, all, table, NULL, &t, &c,
                                             &err);
    tsr_structure_free(s);
    if (status != TSR_OK) {
        sum->n_unread++;
        return;
    }
    sum->n_structure++;
    sum->n_residue += t->n_residue;
    for (int k = 0; k < N_LIMIT; k++) {
        tsr_prior_options options;
        char worst[160];
        OK(tsr_fields_init(tsr_prior_fields, &options, &err));
        options.clash_limit = limits[k];
        NEW(tsr_prior, prior, tsr_prior_new, t, table, &options, 0.0);
        int n = tsr_prior_clashes(prior, c, worst);
        sum->n_pair[k] += n;
        sum->n_refused[k] += n > 0;
        if (n > 0 && limits[k] == usual)
            print_message("%s: %s\n", path, worst);
    }
    tsr_conformation_free(c);
    tsr_topology_free(t);
}

TEST(crystals_are_allowed)
{
    glob_t found;
    char *path = NULL;
    tsr_prior_options usual;
    if (glob("../shared/data/structures/*.pdb.gz", 0, NULL, &found) != 0) {
        print_message("no structures in ../shared/data\n");
        skip();
    }
    OK(tsr_data_file("prior.dat", &path, &err));
    NEW(tsr_prior_table, table, tsr_prior_table_read, path);
    OK(tsr_fields_init(tsr_prior_fields, &usual, &err));
    for (int model = TSR_BODIES_ONE; model <= TSR_BODIES_TWO; model++) {
        tally sum = {0};
        for (size_t i = 0; i < found.gl_pathc; i++)
            look(found.gl_pathv[i], (tsr_body_model)model, table,
                 usual.clash_limit, &sum);
        print_message("bodies a residue: %d; %ld structures of %ld residues, "
                      "%ld that lack backbone atoms\n",
                      model, sum.n_structure, sum.n_residue, sum.n_unread);
        for (int k = 0; k < N_LIMIT; k++) {
            print_message("beyond %4.1f nat: %3ld pairs, %.3f per 1000 "
                          "residues, in %ld structures\n",
                          limits[k], sum.n_pair[k],
                          1e3 * (double)sum.n_pair[k] / (double)sum.n_residue,
                          sum.n_refused[k]);
            /* one in fifty would be a nuisance */
            if (limits[k] == usual.clash_limit)
                assert_true(50 * sum.n_refused[k] < sum.n_structure);
        }
        assert_true(sum.n_structure > 250);
    }
    free(path);
    globfree(&found);
}
