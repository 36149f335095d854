/* Rigid parts and linkers are found where they were planted, independent of
 * frame and numbering, and as published for known proteins. */
#include "core/vec3.h"
#include "molecule/parts.h"
#include "molecule/topology.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>

OWNED(tsr_structure)
OWNED(tsr_parts)

static const char demo[] = "configs/demo/two_domain.pdb"; /* linker 51 to 64 */
enum { DEMO = 114 };
static const tsr_parts_choices no_wish = {.rigid = NULL};

static tsr_structure *read_demo(void)
{
    tsr_structure *s;
    OK(tsr_structure_read(demo, &s, &err));
    assert_int_equal(s->n_residue, DEMO);
    return own_tsr_structure(s);
}

/* The ranges, as a configuration would read them, are what was found. A part
 * that moves has twelve residues or more. */
static void check_ranges(const tsr_structure *s, const tsr_parts *p)
{
    for (int k = 0; k < p->n_part; k++)
        assert_true(p->rigid[k].is_held || p->rigid[k].is_fixed ||
                    p->rigid[k].last - p->rigid[k].first + 1 >= 12);
    tsr_residue *r = array((size_t)s->n_residue, sizeof *r);
    int *mark = array((size_t)s->n_residue, sizeof *mark);
    for (int i = 0; i < s->n_residue; i++) {
        memcpy(r[i].chain, s->residue[i].chain, sizeof r[i].chain);
        r[i].number = s->residue[i].number;
        r[i].chain_first = i > 0 && strcmp(r[i].chain, r[i - 1].chain) == 0
                               ? r[i - 1].chain_first
                               : i;
    }
    for (int k = 0; k < p->flexible.n; k++)
        OK(tsr_range_mark(p->flexible.item[k], s->n_residue, r, mark, &err));
    for (int i = 0; i < s->n_residue; i++)
        assert_int_equal(mark[i], p->part[i] < 0);
}

/* Finds the parts and compares: flexible and fixed as "A:1-2 A:5". */
static tsr_parts *find(const tsr_structure *s, const tsr_pae *pae,
                       const char *flexible, const char *fixed)
{
    tsr_parts *p;
    char text[2][256] = {"", ""};
    OK(tsr_parts_find(s, pae, no_wish, &p, &err));
    const tsr_strings *list[] = {&p->flexible, &p->fixed};
    for (int l = 0; l < 2; l++)
        for (int k = 0; k < list[l]->n; k++)
            snprintf(text[l] + strlen(text[l]), 256 - strlen(text[l]), "%s%s",
                     k > 0 ? " " : "", list[l]->item[k]);
    assert_string_equal(text[0], flexible);
    assert_string_equal(text[1], fixed);
    check_ranges(s, p);
    return own_tsr_parts(p);
}

TEST(planted)
{
    tsr_structure *s = read_demo();
    tsr_parts *p = find(s, NULL, "A:51-64", "");
    assert_ints(p->evidence, TSR_EVIDENCE_CONTACTS, p->n_part, 2, p->n_range, 1,
                p->range[0].role, TSR_RANGE_LINKER);
    assert_memory_equal(p->kind + 4, "HHHHHHH", 7);

    s->n_residue = 50; /* one domain alone */
    p = find(s, NULL, "", "");
    assert_int_equal(p->n_part, 1);
    s->n_residue = 62; /* and with most of the linker: a tail */
    p = find(s, NULL, "A:51-62", "");
    assert_int_equal(p->range[0].role, TSR_RANGE_TAIL);
}

/* Frames and names mean nothing. */
TEST(laws)
{
    tsr_structure *s = read_demo();
    const double c = cos(0.7), t = sin(0.7);
    for (int k = 0; k < s->n_atom; k++) {
        double *x = s->atom[k].xyz, y = x[1];
        x[1] = c * y - t * x[2] + 300.0;
        x[2] = t * y + c * x[2] - 41.0;
        y = x[0];
        x[0] = c * y - t * x[1];
        x[1] = t * y + c * x[1];
    }
    find(s, NULL, "A:51-64", "");
    for (int i = 0; i < DEMO; i++) {
        strcpy(s->residue[i].chain, "BC");
        s->residue[i].number = i - 20;
    }
    find(s, NULL, "BC:30-43", "");
    /* Insertions: residues 50 and 51 are both number 50, so both are rigid. */
    for (int i = 0; i < DEMO; i++)
        s->residue[i].number = i + 1;
    s->residue[50].number = 50;
    s->residue[50].insertion = 'A';
    find(s, NULL, "BC:52-64", "");
    /* Numbers that begin anew: a range would name residues of both domains. */
    for (int i = 57; i < DEMO; i++)
        s->residue[i].number = i + 400 - 57;
    s->residue[60].number = 7;
    FREED(tsr_parts) p;
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    assert_true(p->flexible.n > 1);
}

/* Chains: what touches another keeps its place, what hangs from it is free. */
TEST(chains)
{
    tsr_structure *s = read_demo();
    for (int i = 57; i < DEMO; i++)
        strcpy(s->residue[i].chain, "B");
    FREED(tsr_parts) p = find(s, NULL, "A:51-57 B:58-62", "");
    assert_int_equal(p->range[0].role, TSR_RANGE_TAIL);
    assert_int_equal(p->range[1].role, TSR_RANGE_TAIL);
    assert_true(p->n_note > 0); /* they do not touch */
    for (int i = 0; i < DEMO; i++)
        strcpy(s->residue[i].chain, i == 5 ? "B" : "A");
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    assert_true(p->part[5] >= 0); /* a single residue has no torsions */
}

/* Residues first..last once more as chain B, moved along x by `by`. */
static void add_copy(tsr_structure *s, int first, int last, double by)
{
    int n = last - first + 1, from = s->residue[first].first_atom;
    int n_atom = s->residue[last].first_atom + s->residue[last].n_atom - from;
    s->residue = tsr_pool_resize(
        &s->pool, s->residue, (size_t)(s->n_residue + n), sizeof *s->residue);
    s->atom = tsr_pool_resize(&s->pool, s->atom, (size_t)(s->n_atom + n_atom),
                              sizeof *s->atom);
    assert_true(s->residue != NULL && s->atom != NULL);
    for (int i = 0; i < n; i++) {
        tsr_residue_record *r = &s->residue[s->n_residue + i];
        *r = s->residue[first + i];
        r->first_atom += s->n_atom - from;
        strcpy(r->chain, "B");
    }
    for (int k = 0; k < n_atom; k++) {
        s->atom[s->n_atom + k] = s->atom[from + k];
        s->atom[s->n_atom + k].xyz[0] += by;
    }
    s->n_residue += n;
    s->n_atom += n_atom;
}

/* The nearest that two CA of chain A's first domain and chain B are. */
static double nearest(const tsr_structure *s, double by)
{
    double least = INFINITY;
    for (int i = 0; i < 50; i++)
        for (int j = 0; j < 50; j++) {
            const double *a = tsr_residue_atom(s, &s->residue[i], "CA")->xyz;
            const double *b = tsr_residue_atom(s, &s->residue[j], "CA")->xyz;
            least = fmin(least, hypot(hypot(b[0] + by - a[0], b[1] - a[1]),
                                      b[2] - a[2]));
        }
    return least;
}

/* The domain that another chain touches keeps its place; the other one swings.
 */
TEST(interface)
{
    tsr_structure *s = read_demo();
    double by = -60.0;
    while (nearest(s, by + 0.25) > 5.0)
        by += 0.25;
    add_copy(s, 0, 49, by);
    find(s, NULL, "A:51-64", "A:1-50");
    for (int k = 0; k < s->n_atom; k++) /* far away it holds nothing */
        s->atom[k].xyz[0] -= k >= s->residue[DEMO].first_atom ? 100.0 : 0.0;
    find(s, NULL, "A:51-64", "");
}

TEST(wished)
{
    tsr_structure *s = read_demo();
    FREED(tsr_parts) p;
    int rigid[DEMO] = {0};
    for (int i = 54; i < 57; i++)
        rigid[i] = 1;
    const tsr_parts_choices wish = {.rigid = rigid};
    OK(tsr_parts_find(s, NULL, wish, &p, &err));
    assert_int_equal(p->flexible.n, 2);
    assert_string_equal(p->flexible.item[0], "A:51-54");
    assert_string_equal(p->flexible.item[1], "A:58-64");
}

/* ---- predictions ---- */

/* Errors of 1 Angstrom within a domain, `between` between the two. */
static void make_errors(tsr_pae *pae, float *error, float between)
{
    *pae = (tsr_pae){.n = DEMO, .error = error};
    for (int i = 0; i < DEMO; i++)
        for (int j = 0; j < DEMO; j++)
            error[i * DEMO + j] = (i < 57) == (j < 57) ? 1.0F : between;
}

TEST(predicted)
{
    static float error[DEMO * DEMO];
    tsr_structure *s = read_demo();
    tsr_pae pae;
    make_errors(&pae, error, 20.0F);
    tsr_parts *p = find(s, &pae, "A:51-64", "");
    assert_int_equal(p->evidence, TSR_EVIDENCE_PAE);
    /* No contacts, yet the prediction is sure of how the two lie. */
    make_errors(&pae, error, 2.0F);
    find(s, &pae, "", "");
    /* And not of what joins them: a loop, between parts that stay. */
    for (int i = 0; i < DEMO; i++)
        s->residue[i].b = i >= 50 && i < 64 ? 35.0 : 92.0;
    p = find(s, &pae, "A:51-64", "A:1-50 A:65-114");
    assert_int_equal(p->range[0].role, TSR_RANGE_LOOP);
    pae.n = DEMO - 1;
    assert_int_equal(tsr_parts_find(s, &pae, no_wish, &p, &err), TSR_E_DATA);
}

/* pLDDT is known by where it is high; B factors are low there. */
TEST(confidence)
{
    tsr_structure *s = read_demo();
    for (int i = 0; i < DEMO; i++)
        s->residue[i].b = i < 12 || (i >= 50 && i < 64) ? 40.0 : 90.0;
    tsr_parts *p = find(s, NULL, "A:1-11 A:51-64", "");
    assert_int_equal(p->evidence, TSR_EVIDENCE_PLDDT);
    for (int i = 0; i < DEMO; i++)
        s->residue[i].b = 100.0 - s->residue[i].b;
    p = find(s, NULL, "A:51-64", "");
    assert_int_equal(p->evidence, TSR_EVIDENCE_CONTACTS);
    for (int i = 0; i < DEMO; i++) /* a prediction that is sure of nothing */
        s->residue[i].b = 30.0;
    s->residue[0].b = 51.0;
    s->is_prediction = 1;
    p = find(s, NULL, "A:1-114", "");
    assert_int_equal(p->range[0].role, TSR_RANGE_CHAIN);
}

/* ESMFold writes no title. */
TEST(without_title)
{
    char line[200];
    FREED(tsr_structure) s;
    const char *path = io_text("esmfold.pdb", "PARENT N/A\n");
    FILE *file = fopen(path, "a"), *from = fopen(demo, "r");
    assert_true(file != NULL && from != NULL);
    while (fgets(line, sizeof line, from) != NULL)
        if (strncmp(line, "ATOM", 4) == 0)
            fputs(line, file);
    fclose(from);
    fclose(file);
    OK(tsr_structure_read(path, &s, &err));
    assert_int_equal(s->is_prediction, 1);
    unlink(path);
}

/* ---- what the file lacks ---- */

static int has_note(const tsr_parts *p, const char *text)
{
    for (int k = 0; k < p->n_note; k++)
        if (strstr(p->note[k], text) != NULL)
            return 1;
    return 0;
}

TEST(missing)
{
    char line[200] = "SEQRES   1 A   12  MET HIS HIS HIS HIS HIS HIS\n";
    FREED(tsr_structure) s = read_demo();
    const char *path = io_text("tagged.pdb", line);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    for (int i = 0; i < DEMO; i++)
        fprintf(file, "SEQRES   2 A   12  %s\n", s->residue[i].name);
    fputs("SEQRES   3 A   12  GLY SER\n", file);
    FILE *from = fopen(demo, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from) != NULL) /* a break, too */
        if (atoi(line + 22) < 56 || atoi(line + 22) > 58)
            fputs(line, file);
    fclose(from);
    fclose(file);
    OK(tsr_structure_read(path, &s, &err));
    assert_int_equal(s->n_declared, 1);
    tsr_parts *p = find(s, NULL, "A:51-55 A:59-64", "");
    assert_true(has_note(p, "7 residues before A:1 "));
    assert_true(has_note(p, "MHHHHHH, including a histidine tag"));
    assert_true(has_note(p, "2 residues after A:114 without coordinates (GS)"));
    assert_true(has_note(p, "3 residues between A:55 and A:59"));
    assert_true(has_note(p, "linker is missing"));
    unlink(path);
}

/* Two molecules under one chain id. */
TEST(copies)
{
    char line[200], *path = strdup(io_text("twice.pdb", ""));
    FILE *file = fopen(path, "w");
    for (int copy = 0; copy < 2; copy++) {
        FILE *from = fopen(demo, "r");
        assert_true(from != NULL && file != NULL);
        while (fgets(line, sizeof line, from) != NULL)
            if (strncmp(line, "ATOM", 4) == 0)
                fprintf(file, "%.22s%4d%.4s%8.3f%s", line,
                        atoi(line + 22) + 200 * copy, line + 26,
                        atof(line + 30) + 90.0 * copy, line + 38);
        fclose(from);
    }
    fclose(file);
    FREED(tsr_structure) s;
    FREED(tsr_parts) p;
    OK(tsr_structure_read(path, &s, &err));
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    assert_int_equal(p->n_warning, 1);
    assert_true(
        has_note(p, "chain A contains the same sequence several times"));
    unlink(path);
    free(path);
}

/* ---- what is known ---- */

/* The test is skipped where the file is absent. */
static tsr_structure *read_shared(const char *name)
{
    tsr_structure *s;
    const char *path = format("../shared/data/%s", name);
    if (access(path, R_OK) != 0)
        skip();
    OK(tsr_structure_read_any(path, &s, &err));
    return own_tsr_structure(s);
}

/* Linkers, each end within so many residues of what others gave
 * (docs/domains.md); a collagenase between its last helix and the bond of CYS
 * 278; ubiquitin's tail. */
TEST(known_linkers)
{
    static const struct {
        const char *file;
        int n, within, range[4][2];
    } known[] = {
        {"saxs/ligase_multifoxs/model.pdb",
         4,
         4,
         {{1, 19}, {225, 242}, {446, 448}, {594, 603}}},
        {"saxs/rpa_multifoxs_synthetic/model.pdb", 1, 2, {{289, 301}}},
        {"saxs/lar_fn3_1_2/model.pdb", 3, 4, {{-6, 10}, {97, 103}, {197, 201}}},
        {"saxs/nup133_3kfo/model.pdb", 2, 2, {{944, 947}, {1158, 1165}}},
        {"structures/1fbl.pdb.gz", 1, 3, {{261, 277}}},
        {"maps/1UBI.pdb", 1, 1, {{73, 76}}}};
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        tsr_structure *s = read_shared(known[k].file);
        FREED(tsr_parts) p;
        OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
        check_ranges(s, p);
        assert_int_equal(p->n_range, known[k].n);
        for (int r = 0; r < p->n_range; r++) {
            const int *want = known[k].range[r];
            int a = s->residue[p->range[r].first].number - want[0];
            int b = s->residue[p->range[r].last].number - want[1];
            assert_all(abs(a) <= known[k].within, abs(b) <= known[k].within);
        }
    }
}

/* Keeps the residues of one chain whose numbers are first..last. */
static void keep(tsr_structure *s, const char *chain, int first, int last)
{
    int low = 0, n = 0;
    while (low < s->n_residue && (strcmp(s->residue[low].chain, chain) != 0 ||
                                  s->residue[low].number < first))
        low++;
    while (low + n < s->n_residue &&
           strcmp(s->residue[low + n].chain, chain) == 0 &&
           s->residue[low + n].number <= last)
        n++;
    assert_true(n > 0);
    s->residue += low;
    s->n_residue = n;
}

/* Boundaries between domains whose orientations differ between structures, as
 * published: the last residue of a domain and the first of the next. */
static const struct {
    const char *file, *chain;
    int first, last, n_cut, cut[3][2];
} published[] = {
    {"saxs/lar_fn3_1_2/model.pdb", "A", -9, 999, 1, {{100, 105}}},
    {"saxs/lar_fn3_1_2/model_LAR1-4.pdb",
     "A",
     -9,
     999,
     3,
     {{100, 105}, {199, 203}, {293, 298}}},
    {"saxs/rpa_multifoxs_synthetic/model.pdb", "A", 1, 999, 1, {{290, 300}}},
    {"saxs/rpa_multifoxs_synthetic/model_1jmc.pdb",
     "A",
     1,
     999,
     1,
     {{290, 300}}},
    {"saxs/ligase_multifoxs/model.pdb",
     "A",
     1,
     999,
     2,
     {{224, 243}, {445, 449}}},
    {"structures/1fbl.pdb.gz", "A", 1, 999, 1, {{261, 278}}},
    {"structures/4qnb.pdb.gz", "A", 1, 999, 1, {{145, 151}}},
    {"structures/1dx5.pdb.gz", "I", 1, 999, 2, {{387, 388}, {422, 423}}},
    {"structures/2p4e.pdb.gz", "A", 153, 999, 1, {{449, 453}}},
    {"structures/5ugo.pdb.gz", "A", 1, 999, 2, {{90, 91}, {150, 151}}},
    {"structures/1a0q.pdb.gz", "L", 1, 999, 1, {{107, 108}}},
    {"structures/1a0q.pdb.gz", "H", 1, 999, 1, {{113, 114}}},
    {"structures/3u7w.pdb.gz", "L", 1, 999, 1, {{107, 108}}},
    {"structures/3u7w.pdb.gz", "H", 1, 999, 1, {{113, 114}}},
    {"structures/bm5_1e4k_r_u.pdb.gz", "A", 234, 444, 1, {{340, 341}}},
    {"structures/bm5_1e4k_r_u.pdb.gz", "A", 734, 944, 1, {{840, 841}}},
    {"structures/bm5_1mq8_r_u.pdb.gz", "A", 1, 999, 1, {{82, 83}}},
    {"structures/bm5_1qa9_l_u.pdb.gz", "B", 1, 999, 1, {{93, 94}}},
    {"structures/bm5_1ghq_l_u.pdb.gz", "B", 1, 999, 1, {{64, 69}}},
    {"structures/bm5_1ahw_l_u.pdb.gz", "B", 1, 999, 1, {{106, 107}}},
    {"structures/bm5_1klu_r_u.pdb.gz", "A", 3, 182, 1, {{81, 82}}},
    {"structures/bm5_1klu_r_u.pdb.gz", "A", 502, 690, 1, {{592, 593}}},
    {"structures/bm5_2nz8_r_u.pdb.gz", "A", 1, 9999, 1, {{1414, 1415}}},
    {"structures/bm5_1jzd_r_u.pdb.gz", "A", 1, 216, 1, {{61, 78}}},
    {"structures/bm5_1jzd_r_u.pdb.gz", "A", 501, 716, 1, {{561, 578}}}};

/* The linker between parts k and k + 1 lies within 3 residues of the published
 * boundary or linker, and is hardly longer. */
static int is_linker(const tsr_structure *s, const tsr_parts *p, int k,
                     const int cut[2])
{
    enum { WITHIN = 3, LONGER = 10 };
    const int last = s->residue[p->rigid[k].last].number;
    const int next = s->residue[p->rigid[k + 1].first].number;
    return last - WITHIN < cut[1] && next + WITHIN > cut[0] &&
           next - last <= cut[1] - cut[0] + LONGER;
}

/* docs/domains.md lists the three that do not agree. */
TEST(published_boundaries)
{
    int n_agree = 0, n_all = 0;
    for (size_t k = 0; k < COUNT_OF(published); k++) {
        tsr_structure *s = read_shared(published[k].file);
        FREED(tsr_parts) p;
        keep(s, published[k].chain, published[k].first, published[k].last);
        OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
        check_ranges(s, p);
        assert_int_equal(p->n_part, published[k].n_cut + 1);
        print_message("%s:%s", published[k].file, published[k].chain);
        for (int c = 0; c < published[k].n_cut; c++) {
            int agrees = is_linker(s, p, c, published[k].cut[c]);
            print_message(" %d-%d%s", s->residue[p->rigid[c].last].number,
                          s->residue[p->rigid[c + 1].first].number,
                          agrees ? "" : " (no)");
            n_agree += agrees;
            n_all++;
        }
        print_message("\n");
    }
    print_message("%d of %d boundaries agree\n", n_agree, n_all);
    assert_true(n_agree >= 27);
}

/* Ubiquitin, letter by letter as DSSP has it: a helix, two 3-10 helices (38 to
 * 40, 57 to 59), and ladders. Its bridge of 22 with 55 is alone and no ladder.
 */
TEST(secondary)
{
    tsr_structure *s = read_shared("structures/1ubq.pdb.gz");
    FREED(tsr_parts) p;
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    assert_memory_equal(p->kind,
                        "CEEEEEECCCCEEEEECCCCCCHHHHHHHHHHHHCCCHHHEEEEECCE"
                        "ECCCCCCCHHHCCCCCCEEEEEECCCCC",
                        76);
}

/* Chains of one rigid part: several domains with a broad interface, solenoids,
 * and single domains, of every class of folds. */
static const char *const whole[] = {
    "structures/1h4a.pdb.gz",         "structures/1ao6.pdb.gz",
    "structures/bm5_1kxp_l_u.pdb.gz", "structures/bm5_1ewy_r_u.pdb.gz",
    "structures/7taa.pdb.gz",         "structures/bm5_1bvn_r_u.pdb.gz",
    "structures/3enl.pdb.gz",         "structures/bm5_1gxd_l_u.pdb.gz",
    "structures/bm5_4h03_r_u.pdb.gz", "structures/bm5_1jiw_r_u.pdb.gz",
    "structures/bm5_1bkd_r_u.pdb.gz", "structures/3sfd.pdb.gz",
    "structures/bm5_1f34_r_u.pdb.gz", "structures/bm5_2a1a_l_u.pdb.gz",
    "structures/bm5_1jtg_l_u.pdb.gz", "structures/1rmd.pdb.gz",
    "structures/bm5_2ot3_r_u.pdb.gz", "structures/bm5_2h7v_r_u.pdb.gz",
    "structures/bm5_1gla_r_u.pdb.gz", "maps/adk_4ake-target.pdb",
    "structures/bm5_4fza_r_u.pdb.gz", "structures/bm5_1dfj_l_u.pdb.gz",
    "structures/bm5_1k5d_l_u.pdb.gz", "structures/bm5_1m10_l_u.pdb.gz",
    "structures/1atp.pdb.gz",         "structures/2yex.pdb.gz",
    "structures/1bju.pdb.gz",         "structures/1bma.pdb.gz",
    "structures/1uyd.pdb.gz",         "structures/1f7d.pdb.gz",
    "structures/bm5_1i2m_l_u.pdb.gz", "structures/bm5_1nca_l_u.pdb.gz",
    "structures/bm5_1ib1_l_u.pdb.gz", "structures/bm5_1iqd_l_u.pdb.gz",
    "structures/bm5_1oph_r_u.pdb.gz", "structures/1vsn.pdb.gz",
    "structures/bm5_1wq1_r_u.pdb.gz", "structures/1pwc.pdb.gz",
    "structures/1ubq.pdb.gz",         "structures/bm5_1eer_r_u.pdb.gz"};

/* Complexes and further chains. */
static const char *const also_whole[] = {
    "saxs/lysozyme_2epe/model.pdb",  "saxs/bsa/model.pdb",
    "saxs/mpro_sasdjg5/model.pdb",   "saxs/carbonic_anhydrase/model.pdb",
    "saxs/ribonuclease_a/model.pdb", "saxs/lair1s/model.pdb",
    "structures/1e6v.pdb.gz",        "structures/2cga.pdb.gz",
    "structures/1a28.pdb.gz",        "structures/19hc.pdb.gz",
    "structures/1lpb.pdb.gz",        "structures/1vfy.pdb.gz",
    "structures/1rla.pdb.gz"};

static void check_whole(const char *file)
{
    tsr_structure *s = read_shared(file);
    FREED(tsr_parts) p;
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    for (int r = 0; r < p->n_range; r++) {
        assert_int_equal(p->range[r].role, TSR_RANGE_TAIL);
        assert_true(p->range[r].last - p->range[r].first < 15);
    }
}

/* They have no linkers, whatever their size. */
TEST(compact)
{
    for (size_t k = 0; k < COUNT_OF(whole); k++)
        check_whole(whole[k]);
    for (size_t k = 0; k < COUNT_OF(also_whole); k++)
        check_whole(also_whole[k]);
}

/* ---- limits ---- */

/* Least contacts of a neck of a chain relative to residues^(1/3), computed
 * directly from the definition; infinity: the chain has no neck. */
static double touch_factor(const tsr_structure *s, const char *kind,
                           double neck)
{
    enum { MIN_ORDERED = 25, RANGE = 6 };
    const int n = s->n_residue;
    double(*cb)[3] = array((size_t)n, sizeof *cb);
    double *cross = array((size_t)n, sizeof *cross);
    double *sum = array((size_t)n, sizeof *sum), best = INFINITY;
    int *ordered = array((size_t)n + 1, sizeof *ordered);
    for (int i = 0; i < n; i++)
        tsr_place_cb(cb[i], tsr_residue_atom(s, &s->residue[i], "N")->xyz,
                     tsr_residue_atom(s, &s->residue[i], "CA")->xyz,
                     tsr_residue_atom(s, &s->residue[i], "C")->xyz);
    for (int i = 0; i < n; i++)
        for (int j = i + 4; j < n; j++) {
            const tsr_atom *a = tsr_residue_atom(s, &s->residue[i], "SG");
            const tsr_atom *b = tsr_residue_atom(s, &s->residue[j], "SG");
            double w = (9.0 - tsr_vec3_distance(cb[i], cb[j])) / 2.0;
            if (w <= 0.0)
                continue;
            w = a != NULL && b != NULL &&
                        tsr_vec3_distance(a->xyz, b->xyz) < 2.5
                    ? 5.0
                    : fmin(w, 1.0);
            sum[i] += w;
            sum[j] += w;
            for (int k = i; j - i >= RANGE && k < j; k++)
                cross[k] += w;
        }
    for (int i = 0; i < n; i++)
        ordered[i + 1] = ordered[i] + (kind[i] != 'C' || sum[i] >= 2.0);
    for (int k = 1; k + 1 < n; k++) {
        double left = 0.0, right = 0.0;
        const int before = ordered[k + 1], after = ordered[n] - before;
        const int m = before < after ? before : after;
        for (int i = 0; i < n; i++)
            if (i < k)
                left = fmax(left, cross[i]);
            else if (i > k)
                right = fmax(right, cross[i]);
        int is_helix = 1;
        for (int i = k - 3; i <= k + 4; i++)
            is_helix &= i >= 0 && i < n && kind[i] == 'H';
        if (m >= MIN_ORDERED && !is_helix &&
            cross[k] <= neck * fmin(left, right))
            best = fmin(best, cross[k] / cbrt(m));
    }
    return best;
}

enum { N_MOVING = COUNT_OF(published), N_KNOWN = N_MOVING + COUNT_OF(whole) };

static void touch_factors(double neck, double factor[N_KNOWN])
{
    for (int k = 0; k < (int)N_KNOWN; k++) {
        const int is_moving = k < (int)N_MOVING;
        tsr_structure *s =
            read_shared(is_moving ? published[k].file : whole[k - N_MOVING]);
        FREED(tsr_parts) p;
        if (is_moving)
            keep(s, published[k].chain, published[k].first, published[k].last);
        OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
        factor[k] = touch_factor(s, p->kind, neck);
    }
}

/* Each chain left out in turn: the limit halfway (in the logarithm) between the
 * largest factor of the other chains whose domains move and the smallest of the
 * other rigid ones puts the chain on its side. */
TEST(leave_one_out)
{
    double factor[N_KNOWN], least = INFINITY, most = 0.0;
    touch_factors(0.4, factor);
    for (int out = 0; out < (int)N_KNOWN; out++) {
        double moving = 0.0, rigid = INFINITY;
        for (int k = 0; k < (int)N_KNOWN; k++)
            if (k != out && k < (int)N_MOVING)
                moving = fmax(moving, factor[k]);
            else if (k != out)
                rigid = fmin(rigid, factor[k]);
        const double limit = sqrt(moving * rigid);
        assert_int_equal(factor[out] < limit, out < (int)N_MOVING);
        least = fmin(least, limit);
        most = fmax(most, limit);
    }
    print_message("limits %.2f to %.2f\n", least, most);
    assert_all(least > 7.0, most < 9.0);
}

/* The limit of a neck could lie anywhere from 0.35 to 0.55. */
TEST(neck)
{
    for (int percent = 35; percent <= 55; percent += 10) {
        double factor[N_KNOWN] = {0.0};
        touch_factors(percent / 100.0, factor);
        for (int k = 0; k < (int)N_KNOWN; k++)
            assert_int_equal(factor[k] < 8.0, k < (int)N_MOVING);
    }
}

/* ---- traps ---- */

/* A helix that touches nothing is flexible, whatever its confidence. */
TEST(lone_helix)
{
    tsr_structure *s = read_demo();
    tsr_parts *p = find(s, NULL, "A:51-64", "");
    assert_memory_equal(p->kind + 64, "HHHHHHHHHHHHHHHC", 16);
    for (int i = 0; i < DEMO; i++)
        s->residue[i].b = 90.0;
    s->is_prediction = 1;
    s->n_residue = 80; /* a domain, a linker and one helix */
    p = find(s, NULL, "A:51-80", "");
    assert_int_equal(p->evidence, TSR_EVIDENCE_PLDDT);
    assert_int_equal(p->range[0].role, TSR_RANGE_TAIL);
    keep(s, "A", 65, 79); /* the helix alone */
    p = find(s, NULL, "A:65-79", "");
    assert_int_equal(p->range[0].role, TSR_RANGE_CHAIN);
}

/* Calmodulin's central helix bends at 77 to 81 in solution (Barbato et al.
 * 1992). A crystal shows it straight, a prediction is not believed. */
TEST(joining_helix)
{
    tsr_structure *s = read_shared("structures/4cln.pdb.gz");
    FREED(tsr_parts) p;
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    assert_int_equal(p->n_part, 1);
    assert_true(has_note(p, "only the helix around A:80"));
    tsr_parts_free(p);
    for (int i = 0; i < s->n_residue; i++)
        s->residue[i].b = 90.0;
    s->is_prediction = 1;
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    const int cut[2] = {76, 82};
    assert_int_equal(p->n_part, 2);
    assert_true(is_linker(s, p, 0, cut));
}

/* A few sure residues between two unsure loops move with them. */
TEST(short_stretch)
{
    tsr_structure *s = read_demo();
    s->n_residue = 50;
    s->is_prediction = 1;
    for (int i = 0; i < 50; i++)
        s->residue[i].b =
            i >= 11 && i < 38 && (i < 22 || i >= 26) ? 20.0 : 95.0;
    tsr_parts *p = find(s, NULL, "A:12-38", "A:1-11 A:39-50");
    assert_int_equal(p->range[0].role, TSR_RANGE_LOOP);
}

/* A D residue in a linker is held, and is no part. */
TEST(mirrored)
{
    tsr_structure *s = read_demo();
    const tsr_residue_record *r = &s->residue[54];
    double frame[3][3], local[3];
    const double *ca = tsr_residue_atom(s, r, "CA")->xyz;
    for (int k = 0; k < r->n_atom; k++) {
        tsr_atom *a = &s->atom[r->first_atom + k];
        if (strcmp(a->name, "CB") != 0)
            continue;
        tsr_frame(frame, tsr_residue_atom(s, r, "N")->xyz, ca,
                  tsr_residue_atom(s, r, "C")->xyz);
        tsr_frame_to_local(local, frame, ca, a->xyz);
        local[2] = -local[2];
        tsr_frame_to_global(a->xyz, frame, ca, local);
    }
    tsr_parts *p = find(s, NULL, "A:51-54 A:56-64", "");
    assert_ints(p->n_part, 3, p->rigid[1].is_held, 0, p->rigid[2].is_held, 1,
                p->rigid[2].first, 54, p->rigid[2].last, 54);
}

/* Residues of two domains, without two or three beside the bond about which the
 * second turns. */
enum {
    END_ONE = 95,
    HINGE = 98,
    BEGIN_TWO = 101,
    END = 197,
    MOVED = HINGE + 1
};

/* The nearest that heavy atoms of the two domains are. */
static double nearest_across(const tsr_structure *s)
{
    const tsr_residue_record *r = s->residue;
    double least = INFINITY;
    for (int a = r[0].first_atom; a < r[END_ONE].first_atom; a++)
        for (int b = r[BEGIN_TWO].first_atom;
             b < r[END - 1].first_atom + r[END - 1].n_atom; b++)
            least =
                fmin(least, tsr_vec3_distance2(s->atom[a].xyz, s->atom[b].xyz));
    return sqrt(least);
}

/* Turns the second domain about the hinge. given [n]: its atoms at first. */
static void turn_second(tsr_structure *s, int n, const tsr_atom *given,
                        gsl_rng *rng)
{
    const double *hinge = tsr_residue_atom(s, &s->residue[HINGE], "CA")->xyz;
    tsr_atom *to = s->atom + s->residue[MOVED].first_atom;
    tsr_motion turn;
    double axis[3];
    gsl_ran_dir_3d(rng, &axis[0], &axis[1], &axis[2]);
    for (int k = 0; k < 3; k++)
        axis[k] += hinge[k];
    tsr_motion_about(&turn, hinge, axis, gsl_ran_flat(rng, -M_PI, M_PI));
    for (int k = 0; k < n; k++) {
        to[k] = given[k];
        tsr_motion_apply(&turn, to[k].xyz);
    }
}

/* The second domain of LAR turns about the linker and touches the first by
 * chance: two parts, unless it happens to share a broad interface. */
TEST(touching)
{
    enum { N_TURN = 600 };
    gsl_rng *rng = rng_new(3, 0);
    tsr_structure *s = read_shared("saxs/lar_fn3_1_2/model.pdb");
    int n_touch = 0, n_two = 0;
    keep(s, "A", 1, END);
    const tsr_residue_record *last = &s->residue[END - 1];
    const int first = s->residue[MOVED].first_atom;
    const int n = last->first_atom + last->n_atom - first;
    tsr_atom *given = array((size_t)n, sizeof *given);
    memcpy(given, s->atom + first, (size_t)n * sizeof *given);
    for (int t = 0; t < N_TURN; t++) {
        turn_second(s, n, given, rng);
        const double nearest = nearest_across(s);
        if (nearest < 2.5 || nearest > 4.0)
            continue;
        FREED(tsr_parts) p;
        OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
        assert_int_equal(p->n_part == 2, touch_factor(s, p->kind, 0.4) < 8.0);
        n_two += p->n_part == 2;
        n_touch++;
    }
    print_message("%d of %d touching pairs are two parts\n", n_two, n_touch);
    assert_all(n_touch > 50, n_two > 0.95 * n_touch);
}
