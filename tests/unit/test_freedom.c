/* Options for flexible, rigid, fixed and mobile parts give each residue the
 * intended freedom; contradictory options are refused. */
#include "tests/freedom_sample.h"
#include "tests/test.h"

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
    char *said; /* what the log was told */
} fixture;

static void open_fixture(fixture *f, const sample_molecule *m)
{
    size_t size;
    sample_prior_table(&f->table);
    FILE *stream = open_memstream(&f->said, &size);
    tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
    OK(sample_topology(&f->table, m, &f->t, &f->c, log));
    tsr_log_free(log);
    fclose(stream);
    own(f->said, free);
}

/* One character a residue, chains separated by '/'. */
static void expect_flags(const tsr_topology *t, const char *what,
                         const char *wanted, char (*flag)(const tsr_residue *))
{
    char is[256];
    int n = 0;
    for (int i = 0; i < t->n_residue; i++) {
        if (i > 0 && t->residue[i].chain_first == i)
            is[n++] = '/';
        is[n++] = flag(&t->residue[i]);
    }
    is[n] = '\0';
    if (strcmp(is, wanted) != 0)
        fail_msg("%s: %s, expected %s", what, is, wanted);
}

static char freedom_of(const tsr_residue *r)
{
    return r->flexible ? 'f' : r->is_fixed ? 'x' : 'r';
}

/* '-': none, else its number; units count from 1, 0 is what is fixed. */
static char unit_of(const tsr_residue *r)
{
    return r->unit < 0 ? '-' : (char)('0' + r->unit);
}

static char class_of(const tsr_residue *r)
{
    return "gvGptc"[r->rama];
}

/* b: both, phi, psi, '-': neither */
static char torsions_of(const tsr_residue *r)
{
    return r->has_phi ? (r->has_psi ? 'b' : 'i') : r->has_psi ? 's' : '-';
}

static const struct {
    sample_molecule m;
    const char *freedom, *unit;
    const char *mobile; /* of each chain */
} kinds[] = {
    ROW({.sequence = "AKGSTVKL"}, "ffffffff", "--------", "0"),
    ROW({.sequence = "AKGSTVKL", .ranges = {"A:3-5"}}, "rrfffrrr", "11---222",
        "0"),
    /* the chain may be left out, and one residue named */
    ROW({.sequence = "AKGSTVKL", .ranges = {"2 4-5"}}, "rfrffrrr", "1-2--333",
        "0"),
    ROW({.sequence = "AKGSTVKL", .ranges = {NULL, "A:1-2 A:6"}}, "rrfffrff",
        "11---2--", "0"),
    /* what is fixed is rigid, all of it one unit, and so is its unit */
    ROW({.sequence = "AKGSTVKL", .ranges = {NULL, NULL, "A:1-2 A:7"}},
        "xxffffxf", "00----0-", "0"),
    ROW({.sequence = "AKGSTVKLAA", .ranges = {"A:4-5 A:8", NULL, "A:7"}},
        "rrrffxxfrr", "111--00-33", "0"),
    /* side by side, rigid and fixed are one */
    ROW({.sequence = "AKGSTVKL", .ranges = {NULL, "A:3-4", "A:5-6"}},
        "ffxxxxff", "--0000--", "0"),
    /* a break keeps the parts' relation */
    ROW({.sequence = "AKGSTVKL", .break_before = 5, .ranges = {"A:2 A:7"}},
        "rfrrrrfr", "1-2222-3", "0"),
    /* a complex: the largest rigid unit of each chain stays, the first of two
     * that are as large */
    ROW({.sequence = "AKGSTVKL/AKGSTV", .ranges = {"A:4 B:3-4"}},
        "rrrfxxxx/xxffrr", "111-0000/00--44", "00"),
    /* unless the user says what, or that nothing of it does */
    ROW({.sequence = "AKGSTVKL/AKGSTV",
         .ranges = {"A:4 B:3-4", NULL, "A:1 B:6"}},
        "xxxfrrrr/rrffxx", "000-2222/33--00", "00"),
    ROW({.sequence = "AKGSTVKL/AKGSTV",
         .ranges = {"A:4 B:3-4", NULL, NULL, "B"}},
        "rrrfxxxx/rrffrr", "111-0000/33--44", "01"),
    ROW({.sequence = "AAAA/GGGG/GGGG", .ranges = {NULL, "A B", NULL, "B"}},
        "xxxx/rrrr/ffff", "0000/2222/----", "011"),
    /* nothing of a chain is rigid: it cannot keep its relation */
    ROW({.sequence = "AAAA/GGGG"}, "ffff/ffff", "----/----", "01"),
    ROW({.sequence = "GGGG/AAAA", .ranges = {"A"}}, "ffff/xxxx", "----/0000",
        "10"),
    ROW({.sequence = "GGGG/AAAA", .ranges = {"A", NULL, NULL, "B"}},
        "ffff/rrrr", "----/1111", "01"),
    /* a chain of one residue is rigid where all else is flexible */
    ROW({.sequence = "AKGS/K"}, "ffff/x", "----/0", "10"),
};

TEST(what_may_move)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        fixture f;
        open_fixture(&f, &kinds[k].m);
        const char *text = format("molecule %zu, %s", k, kinds[k].m.sequence);
        expect_flags(f.t, text, kinds[k].freedom, freedom_of);
        expect_flags(f.t, text, kinds[k].unit, unit_of);
        for (int c = 0; c < f.t->n_chain; c++)
            assert_int_equal(f.t->mobile[c], kinds[k].mobile[c] - '0');
        /* free side chains are those of flexible residues */
        int n_side = 0;
        for (int i = 0; i < f.t->n_residue; i++) {
            const tsr_residue *r = &f.t->residue[i];
            if (!r->flexible || !tsr_amino_has_side_chain(r->amino))
                continue;
            assert_true(n_side < f.t->n_side);
            assert_int_equal(f.t->side[n_side++], i);
        }
        assert_int_equal(n_side, f.t->n_side);
    }
}

TEST(nothing_may)
{
    tsr_prior_table table;
    sample_prior_table(&table);
    tsr_topology *t;
    tsr_conformation *c;
    tsr_flexibility still = {.is_frozen = 1};
    OK(tsr_topology_from_sequence("AKGS", TSR_BODIES_TWO, still, &table, &t, &c,
                                  &err));
    own_molecule(t, c);
    expect_flags(t, "still", "rrrr", freedom_of);
    expect_flags(t, "still", "1111", unit_of);
    assert_int_equal(t->n_torsion + t->n_side, 0);
}

TEST(complexes_are_told_of)
{
    static const struct {
        sample_molecule m;
        const char *has, *lacks;
    } cases[] = {ROW({.sequence = "AKGSTVKL/AKGSTV", .ranges = {"A:4 B:3-4"}},
                     "chain A: its residues 5 to 8 keep", NULL),
                 ROW({.sequence = "AKGSTVKL/AKGSTV", .ranges = {"A:4 B:3-4"}},
                     "chain B: its residues 1 to 2 keep", NULL),
                 ROW({.sequence = "AKGSTVKL/AKGSTV",
                      .ranges = {"A:4 B:3-4", NULL, "A:1"}},
                     "chain B: its residues", "chain A"),
                 ROW({.sequence = "AKGSTVKL/AKGSTV",
                      .ranges = {"A:4 B:3-4", NULL, NULL, "B"}},
                     "chain A: its residues", "chain B"),
                 ROW({.sequence = "AAAA/GGGG"},
                     "chain B: no part of it is rigid, so it moves", "chain A"),
                 ROW({.sequence = "AKGSTVKL", .ranges = {"A:4"}}, "", "chain")};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        fixture f;
        open_fixture(&f, &cases[k].m);
        if (strstr(f.said, cases[k].has) == NULL)
            fail_msg("%zu: %s", k, f.said);
        if (cases[k].lacks != NULL && strstr(f.said, cases[k].lacks) != NULL)
            fail_msg("%zu: %s", k, f.said);
    }
}

/* "3s<" psi of residue 3 (from 1 over all chains) turns the N side. */
static const struct {
    sample_molecule m;
    const char *torsions;
} turns[] = {
    /* the shorter side; the middle one turns its N side */
    {{.sequence = "AAAAA"}, "1s< 2i< 2s< 3i< 3s< 4i> 4s> 5i>"},
    {{.sequence = "AAAAAAAA", .ranges = {"A:2 A:6"}}, "2i< 2s< 6i> 6s>"},
    /* what is fixed stays, however short the other side */
    {{.sequence = "AAAAAAAA", .ranges = {"A:2 A:6", NULL, "A:1"}},
     "2i> 2s> 6i> 6s>"},
    {{.sequence = "AAAAAAAA", .ranges = {"A:2 A:6", NULL, "A:8"}},
     "2i< 2s< 6i< 6s<"},
    {{.sequence = "AAAAAAAA", .ranges = {"A:2 A:6", NULL, "A:4"}},
     "2i< 2s< 6i> 6s>"},
    /* a loop between fixed parts cannot pivot */
    {{.sequence = "AAAAKKAA", .ranges = {"A:4-6", NULL, "A:1-3 A:7-8"}}, ""},
    {{.sequence = "AAAAKKAA", .ranges = {"A:4-5 A:8", NULL, "A:1 A:7"}}, "8i>"},
    /* chains know nothing of one another */
    {{.sequence = "AAAA/AAAAA", .ranges = {"A:3 B:2", NULL, "A:1 B:5"}},
     "3i> 3s> 6i< 6s<"},
    /* torsions end where bonds do */
    {{.sequence = "AAAAAA", .break_before = 4},
     "1s< 2i< 2s< 3i< 4s> 5i> 5s> 6i>"}};

TEST(turning_sides)
{
    for (size_t k = 0; k < COUNT_OF(turns); k++) {
        fixture f;
        char is[256] = "";
        int n = 0;
        open_fixture(&f, &turns[k].m);
        for (int i = 0; i < f.t->n_torsion; i++) {
            const tsr_torsion *a = &f.t->torsion[i];
            n +=
                snprintf(is + n, sizeof is - (size_t)n, "%s%d%c%c",
                         i > 0 ? " " : "", a->residue + 1,
                         a->kind == TSR_PHI ? 'i' : 's', a->c_side ? '>' : '<');
        }
        if (strcmp(is, turns[k].torsions) != 0)
            fail_msg("molecule %zu: %s, expected %s", k, is, turns[k].torsions);
    }
}

/* It may still bend: its residues are flexible, their side chains free. */
TEST(loop_between_fixed_parts)
{
    fixture f;
    open_fixture(&f, &turns[5].m);
    expect_flags(f.t, "loop", "xxxfffxx", freedom_of);
    assert_ints(f.t->n_torsion, 0, f.t->n_side, 2);
}

TEST(rama_classes)
{
    static const struct {
        sample_molecule m;
        const char *classes, *torsions;
    } cases[] = {
        {{.sequence = "AIVGPKPPGIPV"}, "gvvGtpttGptv", "sbbbbbbbbbbi"},
        {{.sequence = "AAPAP", .cis = 3}, "gpcpt", "sbbbi"},
        /* no bond, no pre-Pro; no omega, no cis */
        {{.sequence = "AIPA", .break_before = 3}, "gvtg", "sisi"},
        {{.sequence = "AIA/PIP", .ranges = {NULL, "A"}}, "gvg/tpt", "sbi/sbi"},
        {{.sequence = "AAAAA", .break_before = 5}, "ggggg", "sbbi-"}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        fixture f;
        open_fixture(&f, &cases[k].m);
        expect_flags(f.t, cases[k].m.sequence, cases[k].classes, class_of);
        expect_flags(f.t, cases[k].m.sequence, cases[k].torsions, torsions_of);
    }
}

/* Each message names place, chain, residue and remedy. */
TEST(refused)
{
    static const struct {
        sample_molecule m;
        const char *message;
    } cases[] = {
        {{.sequence = "AKGSTVKL", .break_before = 5, .ranges = {"A:1 A:3-6"}},
         "structure.flexible.1: residue range 'A:3-6': chain A of "
         "'molecule.pdb' is broken between A:4 SER and A:5 THR (no peptide "
         "bond); model the missing residues (MODELLER), or name the two "
         "parts as separate ranges"},
        {{.sequence = "AKGSTVKL/AKGS", .ranges = {"A:2-6"}, .break_before = 3},
         "is broken between A:2 LYS and A:3 GLY"},
        {{.sequence = "AKGS/K", .ranges = {"A:2 B"}},
         "structure.flexible.1: residue range 'B': chain B of 'molecule.pdb' "
         "is a single residue, B:1 LYS, and has no torsions; leave it out"},
        {{.sequence = "AKGS", .ranges = {"A:3-9"}},
         "structure.flexible.0: residue range 'A:3-9': the chain has residues "
         "1 to 4 only"},
        {{.sequence = "AKGS", .ranges = {"A:7-9"}},
         "structure.flexible.0: residue range 'A:7-9': contains no residue; "
         "the chain has residues 1 to 4"},
        {{.sequence = "AKGS", .ranges = {"C:1-2"}},
         "structure.flexible.0: residue range 'C:1-2': there is no chain 'C'; "
         "chains: A"},
        {{.sequence = "AKGS/AK", .ranges = {"1-2"}},
         "structure.flexible.0: residue range '1-2': the structure has several "
         "chains; put the chain before it, as in A:1-2"},
        {{.sequence = "AKGS", .ranges = {"A:2", "A:3"}},
         "structure: give flexible ranges or rigid ranges, not both"},
        {{.sequence = "AKGS", .ranges = {NULL, "A:3-9"}},
         "structure.rigid.0: residue range 'A:3-9'"},
        {{.sequence = "AKGSTVKL", .mirrored = 5},
         "structure.file: residue A:5 THR of 'molecule.pdb' is a D residue (by "
         "its CB), for which the prior has no torsions; keep it rigid "
         "(structure.flexible, structure.rigid)"},
        {{.sequence = "AKGSTVKL", .mirrored = 5, .ranges = {"A:1 A:4-6"}},
         "structure.flexible.1: residue A:5 THR of 'molecule.pdb' is a D"},
        {{.sequence = "AKGS/AK", .ranges = {"A:2", NULL, NULL, "B C"}},
         "structure.mobile.1: there is no chain 'C'; chains: A, B"},
        {{.sequence = "AKGS/AK", .ranges = {"A:2", NULL, NULL, "B A"}},
         "structure.mobile: every chain is named; at least one chain "
         "has to stay as the reference"},
        {{.sequence = "AKGS", .ranges = {"A:2", NULL, NULL, "A"}},
         "structure.mobile: every chain is named"},
        {{.sequence = "AKGS", .ranges = {"A:2-3", NULL, "A:1 A:3-4"}},
         "structure.fixed.1: residue range 'A:3-4': A:3 GLY is also "
         "in structure.flexible; remove it from one of the two"},
        {{.sequence = "AKGS", .ranges = {"A:2", NULL, "A:9"}},
         "structure.fixed.0: residue range 'A:9': contains no residue"},
        {{.sequence = "AKGS/AK", .ranges = {"A:2", NULL, "B:1", "B"}},
         "structure.fixed.0: residue range 'B:1': B:1 ALA belongs to chain B, "
         "which moves as a rigid body (structure.mobile); remove it from one "
         "of "
         "the two"},
        {{.sequence = "AKGS", .ranges = {NULL, "A"}},
         "structure: nothing can move: no residue is flexible"},
        {{.sequence = "AKGS", .ranges = {NULL, "A:1-2", "A:3-4"}},
         "structure: nothing can move"}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        tsr_prior_table table;
        tsr_topology *t;
        tsr_conformation *c;
        err = (tsr_err){0};
        sample_prior_table(&table);
        tsr_status status = sample_topology(&table, &cases[k].m, &t, &c, NULL);
        if (status != TSR_E_CONFIG ||
            strstr(err.message, cases[k].message) == NULL)
            fail_msg("%zu: status %d, %s", k, (int)status, err.message);
        assert_null(t);
        assert_null(c);
    }
}

/* A D residue where nothing moves, and GLY, which has none, do not matter. */
TEST(d_residues_that_stay)
{
    static const sample_molecule cases[] = {
        {.sequence = "AKGSTVKL", .mirrored = 5, .ranges = {"A:1-4 A:6-8"}},
        {.sequence = "AKGSTVKL", .mirrored = 5, .ranges = {NULL, "A:5"}},
        {.sequence = "AKGSTVKL", .mirrored = 5, .ranges = {NULL, NULL, "A:5"}},
        {.sequence = "AKGSTVKL", .mirrored = 3}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        fixture f;
        open_fixture(&f, &cases[k]);
    }
}

/* Where the place in space matters, a chain alone moves as a whole, rigid all
 * over or not, unless a part of it is fixed; its own size stays bounded. */
TEST(place_matters)
{
    char *all[] = {"A"}, *some[] = {"A:3-5"}, *end[] = {"A:1-2"};
    const tsr_strings rigid = {1, all}, flexible = {1, some}, fixed = {1, end};
    const struct {
        tsr_flexibility of;
        int mobile;
    } cases[] = {{{.flexible = &flexible}, 0},
                 {{.flexible = &flexible, .is_placed = 1}, 1},
                 {{.rigid = &rigid, .is_placed = 1}, 1},
                 {{.flexible = &flexible, .fixed = &fixed, .is_placed = 1}, 0}};
    tsr_prior_table table;
    sample_prior_table(&table);
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        tsr_topology *t;
        tsr_conformation *c;
        OK(tsr_topology_from_sequence("AKGSTVKL", TSR_BODIES_TWO, cases[k].of,
                                      &table, &t, &c, &err));
        own_molecule(t, c);
        assert_int_equal(t->mobile[0], cases[k].mobile);
        assert_true(isfinite(tsr_topology_reach(t, c)));
    }
}
