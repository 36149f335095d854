/* SAXS tables of every common form are read or refused with a line number;
 * units, the Guinier fit and the noise estimate are right. */
#include "scattering/guinier.h"
#include "scattering/saxs.h"
#include "tests/io_files.h"
#include "tests/test.h"

OWNED(tsr_saxs)

static tsr_saxs *read_as(const char *path, tsr_q_unit unit, const double *range,
                         tsr_log *log)
{
    tsr_saxs *saxs = NULL;
    OK(tsr_saxs_read(path, unit, range, log, &saxs, &err));
    return own_tsr_saxs(saxs);
}

static tsr_saxs *read_ok(const char *path)
{
    return read_as(path, TSR_Q_AUTO, NULL, NULL);
}

static tsr_saxs *text_ok(const char *text)
{
    return read_ok(io_text("ok.dat", text));
}

/* Refused as bad data, and the message names the file and this. */
static void refused(const char *text, const char *part)
{
    tsr_saxs *saxs = NULL;
    const char *path = io_text("bad.dat", text);
    FAILS(tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &saxs, &err), TSR_E_DATA,
          part);
    assert_null(saxs);
    assert_has(err.message, path);
}

#define ROWS "0.01 9 1\n0.02 8 1\n0.03 7 1\n0.04 6 1\n0.05 5 1\n"

static void check_five(const char *text)
{
    tsr_saxs *saxs = text_ok(text);
    assert_int_equal(saxs->n, 5);
    for (int i = 0; i < 5; i++)
        assert_nears(1e-12, saxs->q[i], 0.01 * (i + 1), saxs->intensity[i],
                     9 - i, saxs->sigma[i], 1);
}

TEST(shapes_of_a_table)
{
    check_five(ROWS);
    check_five("205\n" ROWS);
    check_five("title\n 1.0 \n 205\n" ROWS "end 1 2\n");
    check_five("20_7_001.mcc  Conc = .10E+01  N1 =    1  N2 =  100\n" ROWS);
    check_five("23-Mar-2011 (a - 1.0*b)\n Chi = 0.9\n" ROWS "Frame: 1\n");
    check_five("\xef\xbb\xbf" ROWS); /* byte order mark */
    check_five(ROWS "\x1a");         /* end of file on DOS */
    check_five("q;I;s\n0.01;9;1\n0.02;8;1\n0.03;7;1\n0.04;6;1\n0.05;5;1");
    check_five("0.01,9,1\r\n0.02,8,1\r\n0.03,7,1\r\n0.04,6,1\r\n0.05,5,1\r\n");
    check_five("0.01\t9\t1\r0.02\t8\t1\r0.03\t7\t1\r0.04\t6\t1\r0.05\t5\t1\r");
    check_five("0.01, 9, 1\n\n0.02, 8, 1\n\n0.03, 7, 1\n\n0.04, 6, 1\n"
               "# a comment\n0.05, 5, 1\n");
    check_five("0,01;9,0;1\n0,02;8,0;1\n0,03;7,0;1\n0,04;6,0;1\n0,05;5,0;1\n");
    check_five(" 0,01 9,0 1\n 0,02 8,0 1\n 0,03 7,0 1\n 0,04 6,0 1\n"
               " 0,05 5,0 1\n");
    check_five("0.01 9 1 7\n0.02 8 1 7\n0.03 7 1 7\n0.04 6 1 7\n0.05 5 1 7\n");
    /* a flag in some rows, a note in others */
    check_five("0.01 9 1\n0.02 8 1\n0.03 7 1 0\n0.04 6 1 ok\n0.05 5 1 # b\n");
    check_five("1.0D-02 9.0 1\n2.0d-02 8 1.\n3e-2 7 +1\n4.0E-02 6 1\n.05 5 1");
    /* numbers of a footer, which would make the unit 1/nm */
    check_five(ROWS "\n1.2 2178 3\n");
    check_five(ROWS "Rg, I(0), quality\n2.43 9.1 0.9\n 3 4 5\n");
    check_five(ROWS "25.3 9.1 0.9\n");
    check_five("1 2178\n" ROWS); /* two numbers are not the table */
}

/* A gap in q is not a footer. */
TEST(gaps_stay)
{
    assert_ints(text_ok(ROWS "# beam stop\n0.14 4 1\n")->n, 6,
                text_ok(ROWS "0.4 4 1\n0.41 4 1\n")->n, 7,
                text_ok(ROWS "# wide angles\n0.5 4 1\n0.6 4 1\n0.7 4 1\n"
                             "0.8 4 1\n0.9 4 1\n")
                    ->n,
                10);
}

TEST(columns_and_sigma)
{
    tsr_saxs *saxs = text_ok("0 100\n0.1 50\n0.2 20\n0.3 10\n0.4 -5\n");
    assert_nears(1e-12, saxs->sigma[0], 0.03 * 100 + 0.3, saxs->sigma[3],
                 0.03 * 10 + 0.3, saxs->sigma[4], 0.03 * 5 + 0.3);
    assert_ints(saxs->sigma_is_modelled, 1, saxs->n_negative, 1, saxs->q[0], 0);
}

TEST(dropped_and_counted)
{
    tsr_saxs *saxs = text_ok("0.005 1 0\n0.01 9 1\n0.02 8 1\n0.02 3 1\n"
                             "0.03 7 -1\n0.04 -6 1\n0.05 0 1\n0.06 1 1\n");
    assert_ints(saxs->n, 5, saxs->n_dropped_sigma, 2, saxs->n_dropped_duplicate,
                1, saxs->n_negative, 2, saxs->intensity[1], 8, /* the first */
                saxs->sigma_is_modelled, 0);
    const double range[2] = {0.02, 0.06};
    const char *path = io_text("range.dat", ROWS "0.06 4 1\n0.07 4 1\n");
    saxs = read_as(path, TSR_Q_AUTO, range, NULL);
    assert_ints(saxs->n, 5, saxs->n_outside, 2, saxs->q[0], 0.02, saxs->q[4],
                0.06);
}

/* Programs write what they could not measure as NaN, as infinite, or with a
 * sigma below 0: all the same. */
TEST(unmeasured)
{
    static const char *const row[] = {"0.06 1 nan\n", "0.06 nan 1\n",
                                      "0.06 1 inf\n", "0.06 1 -1\n",
                                      "0.06 1 0\n"};
    for (size_t k = 0; k < COUNT_OF(row); k++) {
        tsr_saxs *saxs = text_ok(format("%s%s0.07 1 1\n", ROWS, row[k]));
        assert_ints(saxs->n, 6, saxs->n_dropped_sigma, 1);
    }
}

/* A column before q that counts the rows. */
TEST(with_index)
{
    static const struct {
        const char *text;
        int is_modelled;
    } known[] = {
        {"1 0.1 9 1\n2 0.2 8 1\n3 0.3 7 1\n4 0.4 6 1\n5 0.5 5 1\n", 0},
        {"0 0.1 9 1 7\n1 0.2 8 1 7\n2 0.3 7 1 7\n3 0.4 6 1 7\n4 0.5 5 1 7\n",
         0},
        {"1 0.1 9\n2 0.2 8\n3 0.3 7\n4 0.4 6\n5 0.5 5\n", 1},
        /* q in 1/nm that happens to be whole: I does not ascend */
        {"1 9 1\n2 8 1\n3 7 1\n4 6 1\n5 5 1\n", 0}};
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        tsr_saxs *saxs = text_ok(known[k].text);
        assert_nears(1e-12, saxs->n, 5, saxs->q[0], 0.1, saxs->intensity[0], 9,
                     saxs->sigma_is_modelled, known[k].is_modelled);
    }
}

TEST(refusals)
{
    refused("no numbers here\n205\n", "no table");
    refused("", "empty");
    refused("0.1 1 1\n0.2 1 1\n0.3 1 1\n0.4 1 1\n", "4 usable");
    refused(ROWS "nan 1 1\n", "line 6: q = nan is not a finite");
    refused(ROWS "1e999 1 1\n", "line 6: q = inf");
    refused("-0.01 1 1\n" ROWS, "line 1: q = -0.01 is negative");
    refused(ROWS "0.045 1 1\n",
            "line 6: q = 0.045 comes after q = 0.05 of line 5");
    refused(ROWS "0.06 1e200 1\n", "line 6: I = 1e+200, sigma = 1");
    refused(ROWS "0.06 1 1e-200\n", "line 6: I = 1, sigma = 1e-200");
    refused("0.1 1e200\n0.2 1e200\n0.3 1e200\n0.4 1e200\n0.5 1e200\n",
            "another unit");
    refused(ROWS ROWS, "one curve a file");
    refused("0.1 1 0\n0.2 1 0\n0.3 1 0\n0.4 1 -1\n0.5 1 0\n",
            "if the third column is not sigma, remove it");
    refused("0.1 0\n0.2 0\n0.3 -1\n0.4 0\n0.5 0\n", "above 0");
    refused("0.001 9 1\n0.002 9\n" ROWS, "line 2: 2 columns");
    refused(ROWS "0.06 9\n0.07 9 1\n", "line 6: 2 columns");
    refused(ROWS "0.06 **** 1\n0.07 9 1\n", "line 6: one of the first three");
    refused(ROWS "0.06 9 N/A\n0.07 9 1\n", "line 6: one of");

    tsr_saxs *saxs = NULL;
    const char *path = io_write("zero.dat", "0.1 1 1\n\0\0\0", 11);
    FAILS(tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &saxs, &err), TSR_E_DATA,
          "not a text file");
    path = io_path("missing.dat");
    FAILS(tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &saxs, &err),
          TSR_E_NOINPUT, "missing.dat");
    FAILS(tsr_saxs_read(io_dir, TSR_Q_AUTO, NULL, NULL, &saxs, &err),
          TSR_E_NOINPUT, "is a directory");
    const double wrong[2] = {0.3, 0.1}, far[2] = {10, 20};
    path = io_text("range.dat", ROWS);
    assert_int_equal(tsr_saxs_read(path, TSR_Q_AUTO, wrong, NULL, &saxs, &err),
                     TSR_E_CONFIG);
    FAILS(tsr_saxs_read(path, TSR_Q_AUTO, far, NULL, &saxs, &err), TSR_E_DATA,
          "5 outside q_range");
    assert_int_equal(tsr_saxs_read(path, TSR_Q_AUTO, far, NULL, &saxs, NULL),
                     TSR_E_DATA);
    assert_null(saxs);
}

TEST(header_units)
{
    static const struct {
        const char *line;
        tsr_q_unit strict, loose;
    } cases[] = {
        {"# q (1/nm)  I  sigma", TSR_Q_INV_NM, TSR_Q_INV_NM},
        {"s [nm^-1]", TSR_Q_INV_NM, TSR_Q_INV_NM},
        {"q nm-1", TSR_Q_INV_NM, TSR_Q_INV_NM},
        {"q,nm^{-1}", TSR_Q_INV_NM, TSR_Q_INV_NM},
        {"q (nm\xe2\x81\xbb\xc2\xb9)", TSR_Q_INV_NM, TSR_Q_INV_NM},
        {"inverse nanometers", TSR_Q_INV_NM, TSR_Q_INV_NM},
        {"q 1/A", TSR_Q_INV_ANG, TSR_Q_INV_ANG},
        {"Q [A^-1]", TSR_Q_INV_ANG, TSR_Q_INV_ANG},
        {"q(A-1)", TSR_Q_INV_ANG, TSR_Q_INV_ANG},
        {"q[1/Angstrom] I; source q unit: nm", TSR_Q_INV_ANG, TSR_Q_INV_ANG},
        {"q / \xc3\x85^-1", TSR_Q_INV_ANG, TSR_Q_INV_ANG},
        {"$\\AA^{-1}$", TSR_Q_INV_ANG, TSR_Q_INV_ANG},
        {"q [nm]", TSR_Q_AUTO, TSR_Q_INV_NM},
        {"q unit: A", TSR_Q_AUTO, TSR_Q_INV_ANG},
        {"I0 in cm^-1 or 1/cm", TSR_Q_AUTO, TSR_Q_AUTO},
        {"wavelength 0.124 nm, 1.24 Angstrom", TSR_Q_AUTO, TSR_Q_AUTO},
        {"sample A-1 of a series", TSR_Q_AUTO, TSR_Q_AUTO},
        {"1/A2 mutant", TSR_Q_AUTO, TSR_Q_AUTO},
        {"", TSR_Q_AUTO, TSR_Q_AUTO},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int is_loose;
        const tsr_q_unit unit = tsr_saxs_header_unit(
            cases[i].line, strlen(cases[i].line), &is_loose);
        if (unit != cases[i].loose ||
            (is_loose ? TSR_Q_AUTO : unit) != cases[i].strict)
            fail_msg("'%s' misread", cases[i].line);
    }
}

TEST(unit_of_a_file)
{
    static const char rows[] = "0.1 9 1\n0.2 8 1\n0.3 7 1\n0.4 6 1\n0.5 5 1\n";
    tsr_saxs *saxs = text_ok(rows);
    assert_int_equal(saxs->unit_in_file, TSR_Q_INV_ANG);
    assert_string_equal(saxs->unit_reason, "q_max <= 1");
    saxs = text_ok(format("# 1/A\n# q 1/nm\n%s# A^-1\n", rows));
    assert_int_equal(saxs->unit_in_file, TSR_Q_INV_NM);
    assert_string_equal(saxs->unit_reason, "header says 1/nm");
    assert_near(saxs->q[0], 0.01, 1e-15);
    saxs = text_ok(format("%s1.5 1 1\n", rows));
    assert_int_equal(saxs->unit_in_file, TSR_Q_INV_NM);
    assert_string_equal(saxs->unit_reason, "q_max > 1");
    assert_near(saxs->q[5], 0.15, 1e-15);

    /* The config overrides, and what is odd is said. */
    FILE *stream = text_begin();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
    saxs = read_as(io_path("ok.dat"), TSR_Q_INV_ANG, NULL, log);
    tsr_log_free(log);
    const char *got = text_end(stream);
    assert_string_equal(saxs->unit_reason, "config");
    assert_near(saxs->q[5], 1.5, 1e-15);
    assert_has(got, "q in 1/Angstrom (config)");
    assert_has(got, "warning: ");
    assert_has(got, "unusual");
}

TEST(written_and_read_back)
{
    enum { N = 40 };
    double q[N], intensity[N], sigma[N];
    for (int i = 0; i < N; i++) {
        q[i] = 0.003 * i + 1e-5 * i * i;
        intensity[i] = 1e7 * exp(-q[i] * q[i] * 225 / 3) - 1e5;
        sigma[i] = 1e3 / (i + 1.0);
    }
    const char *path = io_path("w.dat");
    const tsr_saxs_columns columns = {.comment = "two lines\n0.5 1/nm 2 3",
                                      .n = N,
                                      .q = q,
                                      .intensity = intensity,
                                      .sigma = sigma};
    OK(tsr_saxs_write(path, &columns, &err));
    tsr_saxs *saxs = read_ok(path);
    assert_ints(saxs->n, N, saxs->unit_in_file, TSR_Q_INV_ANG);
    for (int i = 0; i < N; i++) {
        assert_near(saxs->q[i], q[i], 1e-9 * q[i]);
        assert_near(saxs->intensity[i], intensity[i],
                    1e-9 * fabs(intensity[i]));
        assert_near(saxs->sigma[i], sigma[i], 1e-9 * sigma[i]);
    }
    FAILS(tsr_saxs_write(io_path("no/w.dat"), &columns, &err), TSR_E_IO,
          "no/w.dat");
}

/* On I0 exp(-q^2 Rg^2 / 3) the fit is exact, whatever the weights. */
TEST(guinier_of_a_gaussian)
{
    enum { N = 200 };
    static double q[N], intensity[N], sigma[N];
    for (int k = 0; k < 3; k++) {
        double rg = k == 0 ? 12.5 : k == 1 ? 36 : 80;
        for (int i = 0; i < N; i++) {
            q[i] = 0.001 * (i + 3);
            intensity[i] = 5 * exp(-q[i] * q[i] * rg * rg / 3);
            sigma[i] = 0.01 * intensity[i] * (1 + i % 3);
        }
        const tsr_saxs_columns columns = {
            .n = N, .q = q, .intensity = intensity, .sigma = sigma};
        OK(tsr_saxs_write(io_path("g.dat"), &columns, &err));
        tsr_saxs *saxs = read_ok(io_path("g.dat"));
        assert_near(saxs->rg_guinier, rg, 1e-5 * rg);
        assert_near(saxs->i0_guinier, 5, 1e-5);
        int n = 0;
        while (n < N && q[n] * rg < 1.3)
            n++;
        assert_in_range(saxs->n_guinier, n - 1, n + 1);
    }
    /* The mass is (Vc^2 / Rg) / 0.1231 with Vc = 2 Rg^2 / 3, the integral of q
     * I being 3 I0 / (2 Rg^2); a constant background does no harm. */
    tsr_guinier g;
    for (int i = 0; i < N; i++) {
        q[i] = 0.0015 * (i + 3);
        intensity[i] = 2 + 5 * exp(-q[i] * q[i] * 400 / 3);
    }
    OK(tsr_guinier_fit(N, q, intensity, sigma, 2, 20, &g, &err));
    assert_near(tsr_guinier_mass(&g, N, q, intensity, 2),
                4.0 / 9 * 8000 / 0.1231, 200);
    assert_true(isnan(tsr_guinier_mass(&g, N / 2, q, intensity, 2)));
    /* None where the curve rises, or starts beyond the range. */
    tsr_saxs *saxs = text_ok("0.1 1 1\n0.2 2 1\n0.3 3 1\n0.4 4 1\n0.5 5 1\n");
    assert_true(isnan(saxs->rg_guinier) && isnan(saxs->i0_guinier));
    assert_int_equal(saxs->n_guinier, 0);
    saxs = text_ok("0.2 9 1\n0.21 8 1\n0.22 7 1\n0.23 6 1\n0.24 5 1\n");
    assert_true(isnan(saxs->rg_guinier));
}

/* N and the Guinier Rg as the README of each case gives them. The Rg is rounded
 * to 0.1 there and its window differs by a point at most: 1 %. The source of
 * lyzexp ends in the DOS mark, with which exp.dat lost its last row. */
TEST(real_curves)
{
    static const struct {
        const char *name, *original;
        int n, n_original, n_negative;
        double rg;
        int is_nm;
    } cases[] = {
        {"a2m_native", "A2M_native.dat", 104, 104, 0, 67.3, 0},
        {"bsa", "bsa-sub.dat", 2178, 2178, 430, 33.6, 1},
        {"glucose_isomerase", "glucose_isomerase.dat", 474, 474, 101, 33.6, 0},
        {"lar_fn3_1_2", "LAR1-2.dat", 205, 205, 0, 28.8, 0},
        {"ligase_multifoxs", "ligase_iq.dat", 505, 505, 0, 36.1, 0},
        {"lysozyme_2epe", "2epe.dat", 104, 104, 0, 14.5, 0},
        {"lysozyme_6lyz", "lyzexp.dat", 196, 197, 0, 15.2, 0},
        {"lysozyme_raw", "lys_saxs.dat", 474, 474, 0, 13.9, 0},
        {"mpro_sasdjg5", "SASDJG5.dat", 723, 723, 0, 27.4, 0},
        {"nup133_3kfo", "23922_merge.dat", 456, 456, 0, 19.8, 0},
        {"rpa_multifoxs_synthetic", "1fguA_iq.dat", 501, 501, 0, 19.7, 0},
    };
    NEEDS_SHARED;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *in = format(SHARED "saxs/%s", cases[i].name);
        tsr_saxs *clean = read_ok(format("%s/exp.dat", in));
        tsr_saxs *raw =
            read_ok(format("%s/original_%s", in, cases[i].original));
        assert_ints(clean->n, cases[i].n, raw->n, cases[i].n_original,
                    raw->unit_in_file,
                    cases[i].is_nm ? TSR_Q_INV_NM : TSR_Q_INV_ANG,
                    clean->unit_in_file, TSR_Q_INV_ANG, raw->n_negative,
                    cases[i].n_negative,
                    raw->n_dropped_sigma + raw->n_dropped_duplicate, 0);
        for (int k = 0; k < clean->n; k++) {
            /* exp.dat has 6 to 8 significant digits */
            assert_near(raw->q[k], clean->q[k], 2e-6 * clean->q[k]);
            assert_near(raw->intensity[k], clean->intensity[k],
                        2e-5 * fabs(clean->intensity[k]));
            assert_near(raw->sigma[k], clean->sigma[k], 2e-5 * clean->sigma[k]);
        }
        assert_near(raw->rg_guinier, cases[i].rg, 0.01 * cases[i].rg);
        assert_near(clean->rg_guinier, cases[i].rg, 0.01 * cases[i].rg);
    }
    tsr_saxs *two =
        read_ok(SHARED "saxs/rpa_multifoxs_synthetic/weighted_tutorial.dat");
    assert_ints(two->n, 501, two->sigma_is_modelled, 1);
}

/* ---- the noise by neighbours ---- */

enum { NOISY = 600, MOST_NOISY = 2200 };

static double noisy[3][NOISY]; /* q, I, sigma */

static uint32_t noise_seed;

/* Normal, by twelve uniform numbers. */
static double normal(void)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        noise_seed = noise_seed * 1664525u + 1013904223u;
        sum += noise_seed / 4294967296.0;
    }
    return sum;
}

/* The curve of a sphere of 60 Angstrom across with noise of sigma, each a sum
 * over `width` weights of independent numbers; q in unequal steps from 0. */
static tsr_saxs_noise noise_of(int n, int width, const double *weight,
                               double stated)
{
    double e[NOISY + 8];
    for (int k = 0; k < n + width; k++)
        e[k] = normal();
    for (int k = 0; k < n; k++) {
        const double q = 0.3 * k / n + 2e-5 * (k % 3), x = 30.0 * q;
        const double f =
            x > 0.0 ? 3.0 * (sin(x) - x * cos(x)) / (x * x * x) : 1.0;
        double sum = 0.0;
        for (int j = 0; j < width; j++)
            sum += weight[j] * e[k + j];
        noisy[0][k] = q;
        noisy[1][k] = f * f + 0.003;
        noisy[2][k] = (0.01 * noisy[1][k] + 2e-4) * stated;
        noisy[1][k] += noisy[2][k] / stated * sum;
    }
    return tsr_saxs_noise_make(n, noisy[0], noisy[1], noisy[2]);
}

static const double white[1] = {1.0}, mean_of_5[5] = {0.2, 0.2, 0.2, 0.2, 0.2};

/* Of 40 curves of 600 points the mean has an error of 0.01, one of 0.06; the
 * factor is exact, since noise and sigma enter as a ratio. */
TEST(noise_of_white_curves)
{
    double sum = 0.0;
    int n_shared = 0;
    noise_seed = 7;
    for (int i = 0; i < 40; i++) {
        const tsr_saxs_noise z = noise_of(NOISY, 1, white, 1.0);
        sum += z.next / 40;
        n_shared += z.is_shared;
        assert_near(z.level, z.next, z.is_shared ? 9.0 : 0.0);
    }
    assert_near(sum, 1.0, 0.04);
    assert_in_range(n_shared, 0, 1);
    assert_near(noise_of(NOISY, 1, white, 1.0 / 3.7).next, 3.7, 3.7 * 0.24);
    const tsr_saxs_noise large = noise_of(NOISY, 1, white, 3.0);
    assert_near(large.next, 1.0 / 3.0, 0.08);
    assert_false(large.is_shared);
}

/* A cubic has no scatter, whatever the steps; sigma of each point counts. */
TEST(noise_by_exact_weights)
{
    double q[NOISY], i[NOISY], sigma[NOISY], sum = 0.0;
    noise_seed = 11;
    for (int k = 0; k < NOISY; k++) {
        q[k] = 0.005 * pow(1.007, k) + 1e-5 * (k % 5);
        i[k] = 3.0 + q[k] * (20.0 - q[k] * (50.0 - 90.0 * q[k]));
        sigma[k] = 1e-3;
    }
    assert_near(tsr_saxs_noise_make(NOISY, q, i, sigma).next, 0.0, 1e-6);
    for (int round = 0; round < 40; round++) {
        double one[NOISY];
        for (int k = 0; k < NOISY; k++) {
            sigma[k] = 1e-3 * (1 + k % 4 * (k % 7));
            one[k] = i[k] + sigma[k] * normal();
        }
        sum += tsr_saxs_noise_make(NOISY, q, one, sigma).next / 40;
    }
    assert_near(sum, 1.0, 0.04);
}

/* Smoothed, computed, or with points nearer than the resolution: neighbours
 * share noise. Too few points, and too few for their precision: not known. */
TEST(noise_that_is_shared)
{
    static const double none[1] = {0.0}, precise[1] = {1e-4};
    const double w = 1.0 / sqrt(6.0), resolution[3] = {w, 2 * w, w};
    noise_seed = 3;
    tsr_saxs_noise z = noise_of(NOISY, 3, resolution, 1.0);
    assert_true(z.is_shared);
    assert_near(z.next, 0.26, 0.06);
    assert_true(z.level > 2.0 * z.next); /* 1 in all */
    z = noise_of(NOISY, 5, mean_of_5, 1.0);
    assert_true(z.is_shared && z.level < 0.5);
    z = noise_of(NOISY, 1, none, 1.0);
    assert_true(z.is_shared && z.level < 0.01);
    assert_true(isnan(noise_of(43, 1, white, 1.0).next));
    assert_true(noise_of(44, 1, white, 1.0).next > 0.0);
    z = noise_of(44, 1, precise, 1e-4);
    assert_true(isnan(z.next) && isnan(z.level) && !z.is_shared);
}

/* What is said, and that what exceeds the noise is misfit. */
TEST(noise_in_words)
{
    static const struct {
        tsr_saxs_noise noise;
        double residual;
        int is_odd;
        const char *said, *unsaid;
    } cases[] = {
        {{400, 1.0, 1.0, 1.0, 0}, 1.1, 0, "by 1 sigma.", "misfit"},
        {{400, 1.0, 1.0, 1.0, 0}, 1.5, 0, "are 1.5 sigma: the exc", "too"},
        {{400, 3.7, 3.6, 3.7, 0}, 34.0, 1, "34 sigma: the exc", "CorMap"},
        {{400, 3.7, 3.6, 3.7, 0}, 3.9, 1, "sigma is 3.7 times too sm", "misf"},
        {{400, 2.3, 4.3, 4.3, 1}, 5.0, 1, "2.3 times too small or m", "misf"},
        {{400, 9e3, 9e3, 9e3, 0}, NAN, 1, "another unit than I", "misfit"},
        {{400, 0.02, 0.1, 0.1, 1}, 0.1, 1, "smoothed or comp", "misfit"},
        {{400, 0.02, 0.1, 0.1, 1}, 0.1, 1, "CorMap does not", "misfit"},
        {{400, 0.4, 0.4, 0.4, 0}, 0.5, 1, "sigma is too large", "smoothed"},
        {{30, NAN, NAN, NAN, 0}, 5.0, 0, "", "sigma"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tsr_words w;
        tsr_words_begin(&w);
        assert_int_equal(
            tsr_saxs_noise_describe(&cases[i].noise, cases[i].residual, &w),
            cases[i].is_odd);
        char *text = tsr_words_end(&w);
        assert_has(text, cases[i].said);
        if (strstr(text, cases[i].unsaid) != NULL)
            fail_msg("'%s' has '%s'", text, cases[i].unsaid);
        free(text);
    }
}

/* What was logged of a curve. */
static const char *log_of(const char *path)
{
    FILE *stream = text_begin();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_WARNING);
    read_as(path, TSR_Q_AUTO, NULL, log);
    tsr_log_free(log);
    return text_end(stream);
}

/* Of all real curves, with the bounds of `next`; a warning only where sigma is
 * wrong (README there). Columns in another order, logarithms and sigma in
 * another unit are named. */
TEST(noise_of_real_curves)
{
    static const struct {
        const char *name;
        double low, high;
        int is_shared, is_odd;
    } cases[] = {
        {"a2m_native/exp.dat", 0.8, 1.25, 0, 0},
        {"bsa/exp.dat", 0.9, 1.1, 0, 0},
        {"carbonic_anhydrase/exp.dat", 2.0, 3.0, 1, 1},
        {"glucose_isomerase/exp.dat", 0.9, 1.25, 0, 0},
        {"lair1s/exp.dat", 0.5, 0.8, 1, 0},
        {"lar_fn3_1_2/exp.dat", 0.8, 1.25, 0, 0},
        {"ligase_multifoxs/exp.dat", 0.8, 1.25, 0, 0},
        {"lysozyme_2epe/exp.dat", 0.9, 1.4, 0, 0},
        {"lysozyme_6lyz/exp.dat", 0.3, 0.5, 0, 1},
        {"lysozyme_raw/exp.dat", 0.9, 1.1, 0, 0},
        {"mpro_sasdjg5/exp.dat", 0.9, 1.15, 0, 0},
        {"nup133_3kfo/exp.dat", 0.5, 0.7, 0, 0},
        {"ribonuclease_a/exp.dat", 2.0, 3.0, 1, 1},
        {"rpa_multifoxs_synthetic/exp.dat", 0.0, 0.01, 1, 1},
        {"tim9_10_sasdjq4/exp.dat", 1.0, 1.3, 0, 0},
        {"xylose_isomerase_consensus/exp.dat", 1.2, 1.5, 0, 0},
    };
    static char text[250 * MOST_NOISY];
    NEEDS_SHARED;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *path = format(SHARED "saxs/%s", cases[i].name);
        tsr_saxs *saxs = read_ok(path);
        if (!(saxs->noise.next > cases[i].low - 1e-9 &&
              saxs->noise.next < cases[i].high) ||
            saxs->noise.is_shared != cases[i].is_shared)
            fail_msg("%s: %g, %g", path, saxs->noise.next, saxs->noise.second);
        const char *said = log_of(path);
        if ((said[0] != '\0') != cases[i].is_odd)
            fail_msg("%s", said);
        for (int what = 0; what < 3; what++) {
            size_t used = 0;
            for (int k = 0; k < saxs->n; k++) {
                const double y = saxs->intensity[k], s = saxs->sigma[k];
                if (what == 1 && !(y > 0.0))
                    continue;
                used += (size_t)snprintf(text + used, sizeof text - used,
                                         "%.9g %.9g %.9g\n", saxs->q[k],
                                         what == 0   ? s
                                         : what == 1 ? log10(1e-4 * y)
                                                     : y,
                                         what == 0   ? y
                                         : what == 1 ? s / y / log(10.0)
                                                     : 1e-4 * s);
            }
            const int is_exact = saxs->noise.next < 0.01;
            if (what == 0)
                refused(text, "give q, I, sigma in this order");
            else if (what == 2 && is_exact)
                continue; /* a computed curve has no noise to compare with */
            else
                said = log_of(io_text("odd.dat", text));
            if (what > 0)
                assert_has(said, what == 1 ? "if the file has its logarithm"
                                           : "another unit than I");
        }
    }
}

/* Each odd table is named with its line, and what to do. */
TEST(columns_named)
{
    refused("0.1 nan 1\n0.2 nan 1\n0.3 nan 1\n0.4 nan 1\n0.5 nan 1\n",
            "line 1, I = nan, sigma = 1); give q, I, sigma as num");
    refused("0.1 9 3%\n0.2 8 3%\n0.3 7 3%\n0.4 6 3%\n0.5 5 3%\n",
            "line 1: one of the first three columns is not a number (3%");
    refused("1 2\n3 4\n0.1 9 3%\n0.2 8 3%\n0.3 7 3%\n0.4 6 3%\n0.5 5 3%\n",
            "line 3");
    refused("1e-14 9 1\n2e-14 8 1\n3e-14 7 1\n4e-14 6 1\n5e-14 5 1\n",
            "q ends at 5e-14 1/Angstrom");
    refused("1e8 9 1\n2e8 8 1\n3e8 7 1\n4e8 6 1\n5e8 5 1\n",
            "q ends at 5e+07 1/Angstrom");
    refused("1 2 words\n", "no table"); /* one odd line is prose */
    check_five("205 0.01 0.05\n" ROWS);
    check_five("205 0.01 0.05\n3 4 5\n" ROWS "25.3 9.1 0.9\n");
    const char *said = log_of(io_text("ok.dat", "205 0.01 0.05\n" ROWS));
    assert_has(said, "not used (first: line 1)");
    said = log_of(
        io_text("ok.dat", "# a\n0.005 1 0\n" ROWS "0.05 1 1\n0.06 1 nan\n"));
    assert_has(said, "2 rows dropped, sigma <= 0, or I or sigma not a number "
                     "(line 2, 9)");
    assert_has(said, "1 rows dropped, q repeats (line 8)");
}

/* Damaged files are refused or give a curve that keeps its promises. */
TEST(damaged_files)
{
    static const char sample[] =
        " a title  Conc = .10E+01  N2 = 30\r\n# q [1/nm], I, sigma\r\n30\r\n"
        "1.00967E-02  5.853E-02  1.598E-03 1\r\n"
        "1.06736E-02, 5.762E-02, 1.542E-03\r\n\r\n0,0125;0,05;0,001\r\n"
        "0.013 -4e-2 1D-3 # note\r\n0.014\t0.03\t0.002\r\n"
        "0.015 0.03 0.002\r\n0.016 0.02 0.002\r\n0.017 0.01 0.002 7 8\r\n"
        "---- C:\\b.dat ----\r\n{\"unit\": \"\"}\r\n";
    char text[sizeof sample];
    uint32_t seed = 20240;
    int n_read = 0, rounds = io_rounds(600);
    for (int i = 0; i < rounds; i++) {
        size_t n = io_damage(text, sample, sizeof sample - 1, &seed);
        const char *path = io_write("fuzz.dat", text, n);
        FREED(tsr_saxs) saxs = NULL;
        tsr_status status =
            tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &saxs, &err);
        assert_true(status == TSR_OK || status == TSR_E_DATA);
        assert_true((status == TSR_OK) == (saxs != NULL));
        if (status != TSR_OK)
            assert_has(err.message, path);
        for (int k = 0; saxs != NULL && k < saxs->n; k++) {
            assert_true(isfinite(saxs->q[k]) && isfinite(saxs->intensity[k]));
            assert_true(saxs->sigma[k] > 0 && isfinite(saxs->sigma[k]));
            assert_true(k == 0 ? saxs->q[k] >= 0 : saxs->q[k] > saxs->q[k - 1]);
        }
        n_read += saxs != NULL;
    }
    assert_in_range(n_read, rounds / 20, rounds - rounds / 20);
}
