/* Figures have sensible ranges and ticks, and awkward numbers and names do not
 * break the SVG or the CSV. */
#include "report/report.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <gsl/gsl_cdf.h>

/* What a figure of these numbers becomes; caller frees. */
static void draw(int is_log, int n, const double *x, const double *y,
                 const char *label, char **svg, tsr_panel *panel)
{
    CLEARED(tsr_figure)
    f = tsr_figure_new("figure", "A <title> & \"more\"", "x", 400);
    tsr_figure_panel(&f, "y's \"name\"", is_log, 200);
    tsr_figure_layer(&f, TSR_LAYER_LINE, label, "#123456", n, x, y, NULL);
    tsr_figure_layer(&f, TSR_LAYER_POINTS, label, "#123456", n, x, y, NULL);
    tsr_figure_layer(&f, TSR_LAYER_BAND, label, "#123456", n, x, y, y);
    tsr_figure_layer(&f, TSR_LAYER_ERRORS, label, "#123456", n, x, y, y);
    OK(tsr_figure_finish(&f, &err));
    OK(tsr_figure_svg_text(&f, svg, &err));
    own(*svg, free);
    *panel = f.panel[0];
}

TEST(test_awkward_numbers)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double x[6] = {0.0, 1.0, 2.0, 3.0, 4.0, 5.0};
    const double y[][6] = {{1.0, nan, 3.0, inf, -2.0, 4.0},
                           {nan, nan, nan, nan, nan, nan},
                           {-1.0, -2.0, 0.0, -3.0, -1.0, 0.0},
                           {2.0, 2.0, 2.0, 2.0, 2.0, 2.0},
                           {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}};
    for (size_t i = 0; i < COUNT_OF(y); i++)
        for (int is_log = 0; is_log < 2; is_log++)
            for (int n = 0; n <= 6; n += 3) {
                char *svg;
                tsr_panel panel;
                draw(is_log, n, x, y[i], "data", &svg, &panel);
                assert_true(panel.y0 < panel.y1 && isfinite(panel.y0) &&
                            isfinite(panel.y1));
                assert_true(!is_log || panel.y0 > 0.0);
                assert_null(strstr(svg, "nan"));
                assert_null(strstr(svg, "inf"));
            }
}

TEST(test_range)
{
    const double x[3] = {1.0, 2.0, 3.0}, y[3] = {1.0, -5.0, 100.0};
    char *svg;
    tsr_panel panel;
    draw(0, 3, x, y, NULL, &svg, &panel);
    assert_near(panel.y0, -5.0 - 0.05 * 105.0, 1e-12);
    assert_near(panel.y1, 100.0 + 0.05 * 105.0, 1e-12);
    const double zero[3] = {0.0, 0.0, 0.0};
    draw(0, 3, x, zero, NULL, &svg, &panel);
    assert_near(panel.y1 - panel.y0, 1.1, 1e-12); /* 0 to 1, and air */
    /* one point of a line can be seen */
    draw(0, 1, x, y, NULL, &svg, &panel);
    assert_has(svg, "r=\"2.40\"");
    draw(1, 3, x, y, NULL, &svg, &panel);
    assert_near(panel.y0, 1.0 / pow(100.0, 0.05), 1e-12);
    assert_near(panel.y1, 100.0 * pow(100.0, 0.05), 1e-9);
}

/* Ticks that differ are written differently, and not longer than needed; the
 * ends of the scale are viridis'. */
TEST(test_ticks_and_colours)
{
    const double ranges[][3] = {
        {28.97602, 28.97607, 28.97612}, {0.0, 5e6, 1e7}, {-500.0, -250.0, 0.0}};
    static const char *const text[] = {">28.97604<", ">4e+06<", ">-200<"};
    char *svg;
    tsr_panel panel;
    for (int i = 0; i < 3; i++) {
        draw(0, 3, ranges[i], ranges[i], NULL, &svg, &panel);
        assert_has(svg, text[i]);
    }
    const double z[3] = {0.0, (double)NAN, 1.0};
    CLEARED(tsr_figure) f = tsr_figure_new("figure", "title", "x", 400);
    tsr_figure_panel(&f, "y", 0, 200);
    tsr_figure_cells(&f, 3, 1, 0.0, 1.0, 0.0, 1.0, z);
    OK(tsr_figure_finish(&f, &err));
    OK(tsr_figure_svg_text(&f, &svg, &err));
    own(svg, free);
    assert_has(svg, "fill=\"#440154\"");
    assert_has(svg, "fill=\"#fde725\"");
}

/* Names cannot break out of the text that they stand in. */
TEST(test_names)
{
    const double x[2] = {0.0, 1.0};
    char *svg;
    tsr_panel panel;
    draw(0, 2, x, x, "a'b\"c\\d</script>", &svg, &panel);
    assert_has(svg, "A &lt;title&gt; &amp;");
    assert_null(strstr(svg, "</script>"));
}

TEST(test_csv)
{
    const double x[2] = {0.0, 1.0 / 3.0}, y[2] = {(double)NAN, 2e-7};
    const double z[2] = {5.0, 6.0};
    const char *path = io_path("figure.csv");
    CLEARED(tsr_figure) f = tsr_figure_new("figure", "title", "x", 400);
    tsr_figure_panel(&f, "I(q), \"a.u.\"", 0, 200);
    tsr_figure_layer(&f, TSR_LAYER_POINTS, NULL, "#123456", 2, x, y, NULL);
    tsr_figure_panel(&f, "below", 0, 200);
    tsr_figure_layer(&f, TSR_LAYER_CELLS, "two, three", "#123456", 2, x, x, z);
    OK(tsr_figure_write_csv(&f, path, &err));
    char *text = io_read(path, NULL);
    assert_string_equal(text,
                        "panel,series,mark,x,y,y2\n"
                        "\"I(q), \"\"a.u.\"\"\",,points,0,,\n"
                        "\"I(q), \"\"a.u.\"\"\",,points,0.333333333,2e-07,\n"
                        "below,\"two, three\",cells,0,0,5\n"
                        "below,\"two, three\",cells,0.333333333,"
                        "0.333333333,6\n");
    assert_int_equal(tsr_figure_write_csv(&f, "/no/such/folder/f.csv", &err),
                     TSR_E_IO);
}

/* As many bars as so many independent draws can fill: the rule of Freedman and
 * Diaconis, 2 IQR / n^(1/3) wide, which is 0.7 sd for 56 draws of a normal
 * density. */
TEST(test_outline)
{
    enum { N = 5000, FEW = 56 };
    static double value[N], x[TSR_OUTLINE], y[TSR_OUTLINE];
    const struct {
        int n;
        double ess;
        int least, most; /* bars */
    } want[] = {{FEW, (double)NAN, 6, 8}, {N, FEW, 8, 11}, {N, N, 38, 40}};
    for (size_t w = 0; w < COUNT_OF(want); w++) {
        const int n = want[w].n;
        double area = 0.0;
        for (int i = 0; i < n; i++)
            value[(i * 11) % n] = gsl_cdf_ugaussian_Pinv((i + 0.5) / n);
        const int points =
            tsr_report_outline((size_t)n, want[w].ess, value, x, y);
        assert_in_range(points / 2 - 1, want[w].least, want[w].most);
        for (int i = 1; i < points; i++)
            area += (x[i] - x[i - 1]) * y[i];
        assert_near(area, 1.0, 1e-9);
    }
    for (int i = 0; i < FEW; i++)
        value[i] = 3.0;
    assert_int_equal(tsr_report_outline(FEW, FEW, value, x, y), 0);
}
