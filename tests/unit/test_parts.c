/* Rigid parts and linkers are found where they were planted, independent of
 * frame and numbering, and as published for known proteins. */
#include "molecule/parts.h"
#include "molecule/topology.h"
#include "tests/io_files.h"
#include "tests/test.h"

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

/* The ranges, as a configuration would read them, are what was found. */
static void check_ranges(const tsr_structure *s, const tsr_parts *p)
{
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

static tsr_structure *read_shared(const char *name)
{
    tsr_structure *s = NULL;
    const char *path = format("../shared/data/%s", name);
    if (access(path, R_OK) == 0)
        OK(tsr_structure_read(path, &s, &err));
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
        if (s == NULL)
            skip();
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

/* Ubiquitin, letter by letter as DSSP has it: a helix, two 3-10 helices (38 to
 * 40, 57 to 59), and ladders. Its bridge of 22 with 55 is alone and no ladder.
 */
TEST(secondary)
{
    tsr_structure *s = read_shared("structures/1ubq.pdb.gz");
    FREED(tsr_parts) p;
    if (s == NULL)
        skip();
    OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
    assert_memory_equal(p->kind,
                        "CEEEEEECCCCEEEEECCCCCCHHHHHHHHHHHHCCCHHHEEEEECCE"
                        "ECCCCCCCHHHCCCCCCEEEEEECCCCC",
                        76);
}

/* Compact proteins and complexes have no linkers, whatever their size. */
TEST(compact)
{
    static const char *const file[] = {
        "saxs/lysozyme_2epe/model.pdb",  "saxs/bsa/model.pdb",
        "saxs/mpro_sasdjg5/model.pdb",   "saxs/carbonic_anhydrase/model.pdb",
        "saxs/ribonuclease_a/model.pdb", "saxs/lair1s/model.pdb",
        "structures/1ubq.pdb.gz",        "structures/7taa.pdb.gz",
        "structures/1ao6.pdb.gz",        "structures/3enl.pdb.gz",
        "structures/1e6v.pdb.gz",        "structures/1atp.pdb.gz",
        "structures/2cga.pdb.gz",        "structures/1a28.pdb.gz",
        "structures/19hc.pdb.gz",        "structures/1lpb.pdb.gz",
        "structures/1vfy.pdb.gz",        "structures/1gp2.pdb.gz",
        "structures/1rla.pdb.gz",        "maps/adk_4ake-target.pdb"};
    for (size_t k = 0; k < COUNT_OF(file); k++) {
        tsr_structure *s = read_shared(file[k]);
        FREED(tsr_parts) p;
        if (s == NULL)
            skip();
        OK(tsr_parts_find(s, NULL, no_wish, &p, &err));
        for (int r = 0; r < p->n_range; r++) {
            assert_int_equal(p->range[r].role, TSR_RANGE_TAIL);
            assert_true(p->range[r].last - p->range[r].first < 15);
        }
    }
}
