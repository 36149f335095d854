/* Curves in the formats of canSAS, ATSAS and FoXS: one curve in every format is
 * the same curve, and files that are damaged or hold no curve are refused. */
#include "scattering/saxs.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <gsl/gsl_randist.h>
#include <hdf5.h>
#include <hdf5_hl.h>

OWNED(tsr_saxs)

enum { N = 60 };

static const char *said; /* by the last read_curve */

static tsr_saxs *read_curve(const char *path)
{
    tsr_saxs *saxs = NULL;
    FILE *stream = text_begin();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_WARNING);
    OK(tsr_saxs_read(path, TSR_Q_AUTO, NULL, log, &saxs, &err));
    tsr_log_free(log);
    said = text_end(stream);
    return own_tsr_saxs(saxs);
}

static void refused(const char *path, const char *part)
{
    tsr_saxs *saxs = NULL;
    FAILS(tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &saxs, &err), TSR_E_DATA,
          part);
    assert_null(saxs);
    assert_has(err.message, path);
}

/* A curve of Rg 20 with noise: columns q, I, sigma, sigma of q, and a fit. */
typedef struct {
    double v[N][5];
} curve;

static curve make_curve(uint64_t seed)
{
    curve c;
    gsl_rng *rng = rng_new(seed, 0);
    for (int i = 0; i < N; i++) {
        const double q = 0.01 + 0.004 * i;
        const double model = 3.0 * exp(-q * q * 400.0 / 3.0) + 0.01;
        const double sigma = 0.01 * model + 0.002 * (1.0 + q);
        const double value[5] = {
            q, model + sigma * (2.0 * gsl_rng_uniform(rng) - 1.0), sigma,
            0.001 + 0.01 * q, model};
        memcpy(c.v[i], value, sizeof value);
    }
    return c;
}

/* A file of the rows between head and tail. In `row`, $0 is column 0. */
static const char *rows(const char *head, const curve *c, const char *row,
                        const char *tail)
{
    FILE *out = text_begin();
    fputs(head, out);
    for (int i = 0; i < N; i++) {
        for (const char *p = row; *p != '\0'; p++)
            if (*p == '$')
                fprintf(out, "%.17g", c->v[i][*++p - '0']);
            else
                fputc(*p, out);
        fputc('\n', out);
    }
    fputs(tail, out);
    return io_text("rows", text_end(out));
}

static const char xml_head[] =
    "<?xml version=\"1.0\"?>\n<!DOCTYPE cs:SASroot>\n"
    "<cs:SASroot version=\"1.1\" xmlns:cs=\"urn:cansas1d:1.1\">\n"
    "<!-- <SASdata><Idata><Q>9</Q></Idata></SASdata> --><cs:SASentry>\n"
    "<cs:Title>Q and I</cs:Title><cs:SASdata name=\"a\">\n";
static const char xml_tail[] =
    "</cs:SASdata><cs:SASnote><![CDATA[<SASdata>]]></cs:SASnote></cs:SASentry>"
    "</cs:SASroot>\n";
static const char xml_row[] =
    "<cs:Idata><cs:Q unit=\"1/A\">$0</cs:Q><cs:I unit='1/cm'>\n $1<!-- > -->"
    "</cs:I><cs:Idev units='1/cm'>$2</cs:Idev><cs:Qdev unit=\"1/A\">$3"
    "</cs:Qdev><cs:Qmean unit=\"1/A\"/></cs:Idata>";
#define POINTS(row) "<SASroot>\n<SASdata>\n", &c, row, "</SASdata></SASroot>"

static void put_text(hid_t file, const char *object, const char *name,
                     const char *value)
{
    assert_true(H5LTset_attribute_string(file, object, name, value) >= 0);
}

static void put_column(hid_t file, const char *name, hsize_t n,
                       const double *value, double factor, const char *unit)
{
    double *v = array(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = value[5 * i] * factor;
    assert_true(H5LTmake_dataset_double(file, name, 1, &n, v) >= 0);
    put_text(file, name, "units", unit);
}

/* NXcanSAS in 1/nm, with Qdev in 1/Angstrom; sigma and Qdev under other names,
 * as in SasView's files. extra: 1: a slit, and Qdev under its own name, 2: no
 * I, 3: I of another length. */
static const char *write_hdf5(const char *name, const curve *c, int extra)
{
    static const char *const group[] = {"/entry", "/entry/a", "/entry/b"};
    static const double slit[] = {0.5, 0.0, 0.0, 0.0, 0.0, 0.002};
    const char *path = format("%s", io_path(name));
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int k = 0; k < 3; k++)
        H5Gclose(
            H5Gcreate2(file, group[k], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    put_column(file, "/entry/a/T", 3, c->v[0], 1.0, "none");
    put_column(file, "/entry/b/Q", N, &c->v[0][0], 10.0, "1/nm");
    if (extra != 2) {
        put_column(file, "/entry/b/I", extra == 3 ? 7 : N, &c->v[0][1], 1.0,
                   "1/cm");
        put_text(file, "/entry/b/I", "uncertainties", "errors");
    }
    put_column(file, "/entry/b/errors", N, &c->v[0][2], 1.0, "1/cm");
    put_text(file, "/entry/b/Q", "resolutions", extra == 1 ? "dQl" : "dQ");
    put_column(file, extra == 1 ? "/entry/b/Qdev" : "/entry/b/dQ", N,
               &c->v[0][3], 1.0, "1/angstrom");
    if (extra == 1) {
        put_column(file, "/entry/b/dQl", 1, slit, 1.0, "1/nm");
        put_column(file, "/entry/b/dQw", 1, slit + 5, 1.0, "1/A");
    }
    H5Fclose(file);
    return path;
}

static void same_curve(const tsr_saxs *saxs, const curve *c, int has_sigma,
                       int has_dq)
{
    assert_ints(saxs->n, N, saxs->sigma_is_modelled, !has_sigma,
                saxs->dq != NULL, has_dq);
    for (int i = 0; i < N; i++) {
        assert_nears(1e-15, saxs->q[i], c->v[i][0], saxs->intensity[i],
                     c->v[i][1]);
        if (has_sigma)
            assert_near(saxs->sigma[i], c->v[i][2], 1e-15);
        if (has_dq)
            assert_near(saxs->dq[i], c->v[i][3], 1e-15);
    }
}

/* One curve in every format and in every order of columns. */
TEST(same_curve_in_every_format)
{
    static const char gnom[] =
        "  ####  G N O M  Version 5.0 ####\n  Points in real space:  256\n"
        "   S   J EXP  ERROR   J REG   I REG\n\n  0.0     3.0\n  0.005   3.1\n";
    FILE *out = text_begin();
    fputs("\n   Distance distribution\n   R   P(R)  ERROR\n\n", out);
    for (int i = 0; i < 3 * N; i++)
        fprintf(out, "%d %g 0.1\n", i, 1e-3 * i);
    const char *p_of_r = format("%s", text_end(out));
    const struct {
        const char *head, *row, *tail;
        int has_sigma, has_dq;
    } known[] = {
        {"", "$0 $1 $2", "", 1, 0},
        {"", "$0 $1 $2 $3", "", 1, 1},
        {"# SAXS profile\n# Chi^2 = 1.2\n", "$0 $1 $2 $4", "", 1, 0},
        {"#  q  exp_intensity  model_intensity\n", "$0 $1 $4 $2", "", 1, 0},
        {" m.pdb Dro: 0.03 Ra: 1.6 Chi: 1.2\n", "$0 $1 $4", "", 0, 0},
        {" Dif/Atom/Shape/Bord m.pdb Rg: 1.2\n", "$0 $1 $2 $3 $4", "", 0, 0},
        {gnom, "$0 $1 $2 $4 $4", p_of_r, 1, 0},
        {xml_head, xml_row, xml_tail, 1, 1},
    };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const curve c = make_curve(seed);
        for (size_t k = 0; k < COUNT_OF(known); k++)
            same_curve(read_curve(rows(known[k].head, &c, known[k].row,
                                       known[k].tail)),
                       &c, known[k].has_sigma, known[k].has_dq);
        const tsr_saxs *saxs = read_curve(write_hdf5("h5", &c, 0));
        same_curve(saxs, &c, 1, 1);
        assert_ints(saxs->has_named_dq, 1, saxs->unit_in_file, TSR_Q_INV_NM);
    }
}

/* Errors as large as I, as near a match point, are no fit. */
TEST(weak_curves_keep_their_sigma)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        gsl_rng *rng = rng_new(seed, 1);
        const double ratio = 2.0 * gsl_rng_uniform(rng);
        curve c = make_curve(seed);
        for (int i = 0; i < N; i++) {
            c.v[i][1] = ratio + gsl_ran_ugaussian(rng);
            c.v[i][2] = 1.0 + 0.3 * i / N;
        }
        same_curve(read_curve(rows("", &c, "$0 $1 $2 $3", "")), &c, 1, 1);
    }
}

/* The unit of q is found as in a text; the first of several curves is read;
 * without errors, sigma is modelled. */
TEST(units_and_several_curves)
{
    const curve c = make_curve(3);
    const tsr_saxs *saxs = read_curve(
        rows("<SASroot><SASdata>", &c,
             "<Idata><Q unit=\"nm^-1\">$0</Q><I>$1</I><Idev/><Qdev> </Qdev>"
             "</Idata>",
             "</SASdata><SASdata><Idata><Q>7</Q></Idata></SASdata></SASroot>"));
    assert_ints(saxs->n, N, saxs->unit_in_file, TSR_Q_INV_NM,
                saxs->sigma_is_modelled, 1, saxs->dq == NULL, 1);
    assert_near(saxs->q[5], 0.1 * c.v[5][0], 1e-15);
    assert_has(said, "the first of 2 curves");
    assert_has(said, "sigma is stated, not measured");
    saxs = read_curve(
        rows(POINTS("<Idata><Q unit=\"1/cm\">$0</Q><I>$1</I></Idata>")));
    assert_has(said, "the unit of q is neither 1/A nor 1/nm");
    assert_string_equal(saxs->unit_reason, "q_max <= 1");
}

/* Resolution and slit of the file smear the model's curve where the options ask
 * for them, and a warning names them where not. 0 is no resolution. */
TEST(resolution_of_the_file)
{
    const curve c = make_curve(4);
    tsr_saxs *saxs = read_curve(write_hdf5("slit.h5", &c, 1));
    const tsr_resolution *r = &saxs->resolution;
    for (int word = TSR_DQ_NONE; word <= TSR_DQ_AUTO; word++) {
        const tsr_resolution_options o = {.dq.word = word};
        FILE *stream = text_begin();
        tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
        OK(tsr_saxs_set_resolution(saxs, &o, log, &err));
        tsr_log_free(log);
        const int is_used = word != TSR_DQ_NONE;
        const char *text = text_end(stream);
        assert_has(text, is_used ? "(Qdev)" : "states its resolution");
        assert_int_equal(tsr_resolution_is_ideal(r), !is_used);
        if (is_used)
            assert_nears(1e-15, r->slit_length, 0.05, r->slit_width, 0.002,
                         r->sigma[7], c.v[7][3]);
    }
    const tsr_resolution_options o = {.dq.word = TSR_DQ_AUTO,
                                      .slit_length = 0.1};
    OK(tsr_saxs_set_resolution(saxs, &o, NULL, &err));
    assert_near(r->slit_length, 0.1, 0.0);
    saxs = read_curve(rows(POINTS("<Idata><Q>$0</Q><I>$1</I><Idev>$2</Idev>"
                                  "<Qdev>0</Qdev><dQl>0</dQl></Idata>")));
    assert_ints(saxs->dq == NULL, 1, saxs->has_named_dq, 0);
}

TEST(refusals)
{
    static const struct {
        const char *points, *part;
    } bad[] = {
        {"", "no points"},
        {"<Idata><Q>1</Q><I>1</I></Idata>", "1 usable"},
        {"\n<Idata>\n<Q>0.1</Q><I>a</I></Idata>", "line 4: I of"},
        {"<Idata><I>1</I></Idata>", "line 3: q = nan"},
        {"<Idata><Q>1</Q><I>1 2</I></Idata>", "I of this point"},
        {"<Idata><Q>1</Q><I>1</I><Idev>x</Idev></Idata>", "Idev of"},
        {"<Idata><Q>&b;</Q><I>1</I></Idata>", "Q of this point"},
    };
    /* entities would grow, if they were expanded */
    const char *head = "<!DOCTYPE x [<!ENTITY b \"1&b;&b;\">]>";
    for (size_t k = 0; k < COUNT_OF(bad); k++)
        refused(io_text("bad.xml", format("%s<SASroot>\n<SASdata>\n%s"
                                          "</SASdata></SASroot>",
                                          head, bad[k].points)),
                bad[k].part);
    const curve c = make_curve(5);
    refused(io_text("a.dat", "<html><body>404</body></html>"), "no whole");
    refused(io_text("b.xml", "<SASroot><SASdata><Idata><Q>1</Q>"), "no whole");
    refused(rows(POINTS("<Idata><Q>$0</Q><I>$1</I><dQl>$2</dQl></Idata>")),
            "the slit (dQl, dQw) differs");
    refused(write_hdf5("none.h5", &c, 2), "without a group of Q and I");
    refused(write_hdf5("short.h5", &c, 3), "I of SASdata does not have 60");
}

/* Damaged files are refused or give a curve that keeps its promises. */
TEST(damaged_files)
{
    const curve c = make_curve(6);
    uint32_t seed = 5;
    for (int kind = 0; kind < 2; kind++) {
        size_t size;
        char *good = io_read(kind == 0 ? rows(xml_head, &c, xml_row, xml_tail)
                                       : write_hdf5("good.h5", &c, 1),
                             &size);
        char *bad = array(size, 1);
        int n_read = 0;
        /* HDF5 takes a process for each file */
        for (int i = 0, most = io_rounds(kind == 0 ? 400 : 25); i < most; i++) {
            const size_t n = io_damage(bad, good, size, &seed);
            FREED(tsr_saxs) saxs = NULL;
            const tsr_status status = tsr_saxs_read(
                io_write("bad", bad, n), TSR_Q_AUTO, NULL, NULL, &saxs, &err);
            assert_true(status == TSR_OK || status == TSR_E_DATA);
            for (int k = 0; saxs != NULL && k < saxs->n; k++)
                assert_all(saxs->sigma[k] > 0, isfinite(saxs->intensity[k]),
                           k == 0 || saxs->q[k] > saxs->q[k - 1]);
            n_read += saxs != NULL;
        }
        assert_true(n_read > 0);
    }
}

/* Files that other programs wrote. */
TEST(files_of_other_programs)
{
    static const struct {
        const char *name, *same; /* a file with the same curve, to 6 digits */
        int n, has_sigma;
    } known[] = {
        {"formats/33837rear_1D_1.75_16.5_CanSAS1D.xml", NULL, 66, 1},
        {"formats/33837rear_1D_1.75_16.5_NXcanSAS.h5",
         "formats/33837rear_1D_1.75_16.5_CanSAS1D.xml", 66, 1},
        {"formats/33837rear_1D_1.75_16.5_NXcanSAS_v3.h5",
         "formats/33837rear_1D_1.75_16.5_CanSAS1D.xml", 66, 1},
        {"reference_profiles/denss_6lyz/6lyz.out",
         "reference_profiles/denss_6lyz/6lyz.dat", 1001, 1},
        {"reference_profiles/crysol_1hel/1HEL00.int", NULL, 51, 0},
        {"reference_profiles/foxs_3kfo/3KFOfill.B99990003_saxs.fit", NULL, 456,
         1},
    };
    if (access(SHARED "formats", R_OK) != 0)
        skip();
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        const tsr_saxs *a = read_curve(format(SHARED "%s", known[k].name));
        assert_ints(a->n, known[k].n, a->sigma_is_modelled, !known[k].has_sigma,
                    a->dq == NULL, 1);
        if (known[k].same == NULL)
            continue;
        const tsr_saxs *b = read_curve(format(SHARED "%s", known[k].same));
        for (int i = 0; i < a->n; i++)
            assert_nears(1e-5, a->q[i] - b->q[i], 0,
                         a->intensity[i] / b->intensity[i], 1,
                         a->sigma[i] / b->sigma[i], 1);
    }
}
