/* Draws what each move does: some of its proposals over the conformation that
 * it began with, move_*.svg. The moves are those of the registry, with their
 * default options; some have learnt wider steps, so that they can be seen.
 *
 *     make build/docs/figures/draw_moves
 *     build/docs/figures/draw_moves data/prior.dat docs/figures
 */
#include "core/random.h"
#include "molecule/topology.h"
#include "moves/move.h"
#include "prior/prior.h"
#include "report/figure.h"
#include "tests/geometry.h"

#include <gsl/gsl_eigen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A disc is a ring as wide as its radius; else a thin ring. */
static void circle(tsr_svg *svg, double x, double y, double radius,
                   const char *colour, int is_filled)
{
    enum { N = 25 };
    double px[N], py[N];
    const double r = is_filled ? 0.5 * radius : radius;
    for (int k = 0; k < N; k++) {
        const double angle = k * 2.0 * 3.14159265358979 / (N - 1);
        px[k] = x + r * cos(angle);
        py[k] = y + r * sin(angle);
    }
    tsr_svg_stroke(svg, N, px, py, colour, is_filled ? radius : 1.2, 1.0, NULL);
}

#define DEGREE (3.14159265358979323846 / 180.0)

enum { MAX_SHOWN = 6, MAX_POINT = 4096, MAX_RESIDUE = 64 };
enum { WIDTH = 680, HEIGHT = 340, MARGIN = 34, FOOT = 40 };

static const char *const colours[MAX_SHOWN] = {"#0072b2", "#d55e00", "#009e73",
                                               "#cc79a7", "#e69f00", "#56b4e9"};
static const char stays[] = "#222", old[] = "#9a9a9a";

/* Residues from 1. fold: h helix, e extended, c drawn from the prior. first,
 * last: the residues that the proposals shown change; least, most: how far
 * these move the atom that moves most, Angstrom. axis, pivot: what to mark. */
typedef struct {
    const char *move, *sequence, *fold, *flexible[2];
    int seed, n, first, last;
    double least, most;
    int wider;   /* steps are as if so many had been accepted */
    double turn; /* of the view about its long axis, degrees */
    int axis[2], pivot[7];
    const char *text;
} figure;

static const figure figures[] = {
    {.move = "pivot",
     .sequence = "GSEELLKKAEELIKRGSGSEGAEEALRLAREALEL",
     .fold = "chhhhhhhhhhhhhheeceeehhhhhhhhhhhhhh",
     .seed = 3,
     .n = 4,
     .first = 21,
     .last = 35,
     .least = 8.0,
     .most = 30.0,
     .pivot = {21},
     .text =
         "pivot: a torsion (circle) turns, one side of the chain goes along"},
    {.move = "crankshaft",
     .sequence = "GSTKVLSEAKTGVK",
     .fold = "eehheehhheehhe",
     .seed = 8,
     .n = 4,
     .wider = 1,
     .first = 4,
     .last = 9,
     .least = 1.5,
     .most = 8.0,
     .axis = {4, 9},
     .text = "crankshaft: what lies between two CA turns about the axis "
             "through them"},
    {.move = "concerted",
     .sequence = "GSTKVLSEAKTGVK",
     .fold = "eehheehhheehhe",
     .seed = 8,
     .n = 4,
     .wider = 1,
     .first = 4,
     .last = 11,
     .least = 1.2,
     .most = 6.0,
     .pivot = {9, 10, 11},
     .text = "concerted: some residues turn, three pivots (circles) close the "
             "chain again"},
    {.move = "rigid_body",
     .sequence = "GSGTKVLSEALLKKAEELIKRAKTGVKASGTK",
     .fold = "ehheehehhhhhhhhhhhhhhheceeheehee",
     .flexible = {"A:1-7", "A:23-32"},
     .seed = 4,
     .n = 3,
     .wider = 0,
     .first = 4,
     .last = 26,
     .least = 1.0,
     .most = 8.0,
     .pivot = {4, 5, 6, 24, 25, 26},
     .text = "rigid_body: a rigid part moves, both linkers are closed again at "
             "three pivots"},
    {.move = "regrow",
     .sequence = "GSEELLKKAEELIKRGSGSEGAEEALRLAR",
     .fold = "chhhhhhhhhhhhhheeceeehhhhhhhhh",
     .flexible = {"A:16-21", NULL},
     .seed = 3,
     .n = 5,
     .first = 16,
     .last = 30,
     .least = 8.0,
     .most = 60.0,
     .text = "regrow: all torsions of a stretch are drawn from the prior"},
    {.move = "side_chain", .sequence = "GKWLG", .fold = "ceeec", .seed = 2}};

typedef struct {
    tsr_pool pool;
    tsr_topology *t;
    tsr_conformation *c;
    tsr_prior *prior;
    unsigned char option[256];
    const tsr_move_type *type;
    void *move;
    gsl_rng *rng;
} scene;

static void stop(const char *text)
{
    fprintf(stderr, "draw_moves: %s\n", text);
    exit(1);
}

/* ---- the molecule ---- */

/* Side chains are drawn until nothing clashes. */
static void fold_chain(const scene *s, const char *fold)
{
    int n = s->t->n_residue;
    internal_geometry g[MAX_RESIDUE];
    measure_geometry(s->t, s->c, g);
    for (int i = 0; i < n; i++) {
        double phi = -62.0 * DEGREE, psi = -42.0 * DEGREE;
        if (fold[i] == 'e')
            phi = -110.0 * DEGREE, psi = 130.0 * DEGREE;
        else if (fold[i] == 'c')
            tsr_prior_torsion_draw(s->prior, i, s->rng, &phi, &psi);
        if (tsr_amino_has_side_chain(s->t->residue[i].amino))
            tsr_prior_side_draw(s->prior, i, s->rng, s->c->side[i]);
        if (i > 0)
            g[i].phi = phi;
        if (i < n - 1) {
            g[i].o_torsion += psi - g[i].psi;
            g[i].psi = psi;
        }
    }
    build_geometry(s->t, g, s->c);
}

static void open_scene(scene *s, const figure *f, const tsr_prior_table *table)
{
    tsr_err err = {0};
    tsr_prior_options options;
    char text[2][16];
    char *item[2] = {text[0], text[1]};
    int n = 0;
    for (; n < 2 && f->flexible[n] != NULL; n++)
        snprintf(text[n], sizeof text[n], "%s", f->flexible[n]);
    const tsr_strings flexible = {n, item};
    memset(s, 0, sizeof *s);
    s->rng = tsr_rng_new((uint64_t)f->seed, 0);
    for (int m = 0; m < TSR_N_MOVE; m++)
        if (strcmp(tsr_move_registry[m]->name, f->move) == 0)
            s->type = tsr_move_registry[m];
    if (s->type == NULL || s->type->options_size > sizeof s->option)
        stop(f->move);
    if (tsr_topology_from_sequence(f->sequence, TSR_BODIES_TWO,
                                   (tsr_flexibility){.flexible = &flexible},
                                   table, &s->t, &s->c, &err) != TSR_OK ||
        tsr_fields_init(tsr_prior_fields, &options, &err) != TSR_OK ||
        tsr_prior_new(s->t, table, &options, 0.0, &s->prior, &err) != TSR_OK ||
        tsr_fields_init(s->type->fields, s->option, &err) != TSR_OK)
        stop(err.message);
    tsr_fields_clear(tsr_prior_fields, &options);
    char worst[160] = "";
    for (int tries = 0; tries == 0 || worst[0] != '\0'; tries++) {
        if (tries == 20000)
            stop(worst);
        fold_chain(s, f->fold);
        worst[0] = '\0';
        tsr_prior_clashes(s->prior, s->c, worst);
    }
    s->move = s->type->state_new(&s->pool, s->option, s->t, s->prior);
    if (s->move == NULL || s->type->n_target(s->option, s->t) == 0)
        stop("nothing to move");
}

static void close_scene(scene *s)
{
    tsr_pool_clear(&s->pool);
    tsr_prior_free(s->prior);
    tsr_conformation_free(s->c);
    tsr_topology_free(s->t);
    gsl_rng_free(s->rng);
}

/* ---- proposals ---- */

static double largest_change(const scene *s, const tsr_conformation *x,
                             const tsr_conformation *y)
{
    double most = 0.0;
    for (int i = 0; i < s->t->n_residue; i++)
        for (int a = 0; a < 4; a++)
            most = fmax(
                most, tsr_vec3_distance(x->backbone[i][a], y->backbone[i][a]));
    return most;
}

/* Does it change residues f->first to f->last, far enough to be seen, unlike
 * the n others, and does the prior allow it? */
static int is_wanted(const scene *s, const figure *f, const tsr_proposal *p,
                     int target, int n, tsr_conformation *const *shown)
{
    const tsr_span *a = &p->span[0], *z = &p->span[p->n_span - 1];
    if (p->n_span == 0 || a->first != f->first - 1 ||
        z->first + z->count != f->last || (n > 0 && p->target != target))
        return 0;
    double change = largest_change(s, s->c, shown[n]);
    int wanted = change > f->least && change < f->most;
    for (int k = 0; k < n && wanted; k++)
        wanted = largest_change(s, shown[k], shown[n]) > 0.7 * f->least;
    return wanted && tsr_prior_log_reference(s->prior, shown[n]) > -1e9;
}

/* Draws proposal n, of the same target as those before it. */
static void draw_proposal(const scene *s, const figure *f, int *target, int n,
                          tsr_conformation *const *shown)
{
    for (long tries = 0; tries < 3000000; tries++) {
        tsr_proposal p;
        s->type->propose(s->move, s->c, shown[n], s->rng, &p);
        if (is_wanted(s, f, &p, *target, n, shown)) {
            *target = p.target;
            return;
        }
        if (tries < f->wider)
            s->type->adapt(s->move, &p, 1.0);
        for (int k = 0; k < p.n_span; k++)
            tsr_conformation_copy(s->t, shown[n], s->c, p.span[k].first,
                                  p.span[k].count);
    }
    stop("no such proposal");
}

/* ---- the view ---- */

typedef struct {
    double centre[3], axis[2][3];
    double scale, shift[2];
} view;

/* Along the principal axes of the points, turned about the first. */
static void set_axes(view *v, int n, double (*x)[3], double turn)
{
    double m[9] = {0.0}, c = cos(turn * DEGREE), s = sin(turn * DEGREE);
    for (int d = 0; d < 3; d++) {
        v->centre[d] = 0.0;
        for (int i = 0; i < n; i++)
            v->centre[d] += x[i][d] / n;
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            for (int e = 0; e < 3; e++)
                m[3 * d + e] +=
                    (x[i][d] - v->centre[d]) * (x[i][e] - v->centre[e]);
    gsl_matrix_view a = gsl_matrix_view_array(m, 3, 3);
    gsl_vector *value = gsl_vector_alloc(3);
    gsl_matrix *vector = gsl_matrix_alloc(3, 3);
    gsl_eigen_symmv_workspace *w = gsl_eigen_symmv_alloc(3);
    gsl_eigen_symmv(&a.matrix, value, vector, w);
    gsl_eigen_symmv_sort(value, vector, GSL_EIGEN_SORT_VAL_DESC);
    for (size_t d = 0; d < 3; d++) {
        v->axis[0][d] = gsl_matrix_get(vector, d, 0);
        v->axis[1][d] =
            c * gsl_matrix_get(vector, d, 1) + s * gsl_matrix_get(vector, d, 2);
    }
    gsl_eigen_symmv_free(w);
    gsl_matrix_free(vector);
    gsl_vector_free(value);
}

static void project(const view *v, const double x[3], double *px, double *py)
{
    double d[3];
    tsr_vec3_sub(d, x, v->centre);
    *px = v->shift[0] + v->scale * tsr_vec3_dot(d, v->axis[0]);
    *py = v->shift[1] - v->scale * tsr_vec3_dot(d, v->axis[1]);
}

/* All points within the page. */
static void fit_page(view *v, int n, double (*x)[3])
{
    double lo[2] = {HUGE_VAL, HUGE_VAL}, hi[2] = {-HUGE_VAL, -HUGE_VAL};
    v->scale = 1.0, v->shift[0] = v->shift[1] = 0.0;
    for (int i = 0; i < n; i++) {
        double p[2];
        project(v, x[i], &p[0], &p[1]);
        for (int d = 0; d < 2; d++) {
            lo[d] = fmin(lo[d], p[d]);
            hi[d] = fmax(hi[d], p[d]);
        }
    }
    double across = (WIDTH - 2 * MARGIN) / (hi[0] - lo[0]);
    double down = (HEIGHT - 2 * MARGIN - FOOT) / (hi[1] - lo[1]);
    v->scale = fmin(fmin(across, down), 40.0);
    v->shift[0] = 0.5 * WIDTH - v->scale * 0.5 * (lo[0] + hi[0]);
    v->shift[1] = 0.5 * (HEIGHT - FOOT) - v->scale * 0.5 * (lo[1] + hi[1]);
}

/* ---- drawing ---- */

/* The trace N, CA, C of residues from..to, wider where it is rigid. */
static void draw_trace(tsr_svg *svg, const view *v, const tsr_topology *t,
                       const tsr_conformation *c, int from, int to,
                       const char *colour, double width)
{
    double x[3 * MAX_RESIDUE] = {0.0}, y[3 * MAX_RESIDUE] = {0.0};
    int n = 0;
    for (int i = from; i <= to; i++)
        for (int a = TSR_N; a <= TSR_C; a++, n++)
            project(v, c->backbone[i][a], &x[n], &y[n]);
    tsr_svg_stroke(svg, n, x, y, colour, width, 1.0, NULL);
    for (int i = from; i < to; i++)
        if (!t->residue[i].flexible && !t->residue[i + 1].flexible) {
            int k = 3 * (i - from) + 1;
            tsr_svg_stroke(svg, 4, x + k, y + k, colour, 2.2 * width, 1.0,
                           NULL);
        }
    for (int i = from; i <= to; i++) {
        int k = 3 * (i - from) + 1;
        circle(svg, x[k], y[k], 0.95 * width, colour, 1);
    }
}

static void draw_marks(tsr_svg *svg, const view *v, const figure *f,
                       const tsr_conformation *c)
{
    double x, y, u, w;
    if (f->axis[0] > 0) {
        project(v, c->backbone[f->axis[0] - 1][TSR_CA], &x, &y);
        project(v, c->backbone[f->axis[1] - 1][TSR_CA], &u, &w);
        double dx = 0.12 * (u - x), dy = 0.12 * (w - y);
        tsr_svg_line(svg, x - dx, y - dy, u + dx, w + dy, "#999", 1.2);
    }
    for (int k = 0; f->pivot[k] > 0; k++) {
        project(v, c->backbone[f->pivot[k] - 1][TSR_CA], &x, &y);
        circle(svg, x, y, 9.0, stays, 0);
    }
    tsr_svg_text(svg, 0.5 * WIDTH, HEIGHT - 30, 14.0, TSR_SVG_MIDDLE, 0,
                 f->text);
    tsr_svg_text(svg, 0.5 * WIDTH, HEIGHT - 12, 12.0, TSR_SVG_MIDDLE, 0,
                 "black: stays; grey: before; colours: proposals");
}

static void save(tsr_svg *svg, const char *folder, const char *move)
{
    char path[4096];
    tsr_err err = {0};
    snprintf(path, sizeof path, "%s/move_%s.svg", folder, move);
    if (tsr_svg_write(svg, path, &err) != TSR_OK)
        stop(err.message);
    tsr_svg_free(svg);
}

static void draw_backbone(const figure *f, const tsr_prior_table *table,
                          const char *folder)
{
    scene s;
    view v;
    static double point[MAX_POINT][3];
    tsr_conformation *after[MAX_SHOWN];
    int n_point = 0, target = 0;
    open_scene(&s, f, table);
    int n = s.t->n_residue;
    for (int k = 0; k < f->n; k++) {
        after[k] = tsr_conformation_new(s.t);
        tsr_conformation_copy(s.t, after[k], s.c, 0, n);
        draw_proposal(&s, f, &target, k, after);
    }
    for (int k = -1; k < f->n; k++)
        for (int i = 0; i < n; i++)
            for (int a = TSR_N; a <= TSR_C; a++)
                tsr_vec3_copy(point[n_point++],
                              (k < 0 ? s.c : after[k])->backbone[i][a]);
    set_axes(&v, n_point, point, f->turn);
    fit_page(&v, n_point, point);
    tsr_svg *svg = tsr_svg_new(WIDTH, HEIGHT);
    int from = f->first > 1 ? f->first - 2 : 0;
    int to = f->last < n ? f->last : n - 1;
    for (int k = 0; k < f->n; k++)
        draw_trace(svg, &v, s.t, after[k], from, to, colours[k], 2.0);
    draw_trace(svg, &v, s.t, s.c, from, to, old, 3.0);
    if (from > 0)
        draw_trace(svg, &v, s.t, s.c, 0, from, stays, 3.0);
    if (to < n - 1)
        draw_trace(svg, &v, s.t, s.c, to, n - 1, stays, 3.0);
    draw_marks(svg, &v, f, s.c);
    save(svg, folder, f->move);
    for (int k = 0; k < f->n; k++)
        tsr_conformation_free(after[k]);
    close_scene(&s);
}

/* Where proposals put one side-chain centre: draws, and steps from where it
 * is. */
static void draw_side_chain(const figure *f, const tsr_prior_table *table,
                            const char *folder)
{
    enum { N_DRAW = 400, N_STEP = 60, MIDDLE = 2 };
    scene s;
    view v;
    static double draw[N_DRAW][3], step[N_STEP][3], point[MAX_POINT][3];
    int n_draw = 0, n_step = 0, n_point = 0;
    open_scene(&s, f, table);
    tsr_conformation *y = tsr_conformation_new(s.t);
    tsr_conformation_copy(s.t, y, s.c, 0, s.t->n_residue);
    const tsr_residue *r = &s.t->residue[MIDDLE];
    while (n_draw < N_DRAW || n_step < N_STEP) {
        tsr_proposal p;
        s.type->propose(s.move, s.c, y, s.rng, &p);
        const double *x = y->body[r->first_body + 1];
        if (p.span[0].first == MIDDLE && p.target < 0 && n_draw < N_DRAW)
            tsr_vec3_copy(draw[n_draw++], x);
        else if (p.span[0].first == MIDDLE && p.target >= 0 && n_step < N_STEP)
            tsr_vec3_copy(step[n_step++], x);
        tsr_conformation_copy(s.t, y, s.c, p.span[0].first, 1);
    }
    for (int k = 0; k < N_DRAW; k++)
        tsr_vec3_copy(point[n_point++], draw[k]);
    for (int i = MIDDLE - 1; i <= MIDDLE + 1; i++)
        for (int a = TSR_N; a <= TSR_C; a++)
            tsr_vec3_copy(point[n_point++], s.c->backbone[i][a]);
    set_axes(&v, n_point, point, f->turn);
    fit_page(&v, n_point, point);
    tsr_svg *svg = tsr_svg_new(WIDTH, HEIGHT);
    double px, py, cx, cy, cb[3];
    for (int k = 0; k < N_DRAW; k++) {
        project(&v, draw[k], &px, &py);
        circle(svg, px, py, 2.0, colours[0], 1);
    }
    for (int k = 0; k < N_STEP; k++) {
        project(&v, step[k], &px, &py);
        circle(svg, px, py, 2.6, colours[1], 1);
    }
    draw_trace(svg, &v, s.t, s.c, MIDDLE - 1, MIDDLE + 1, stays, 4.0);
    tsr_conformation_cb(s.t, s.c, MIDDLE, cb);
    project(&v, s.c->backbone[MIDDLE][TSR_CA], &cx, &cy);
    project(&v, cb, &px, &py);
    tsr_svg_line(svg, cx, cy, px, py, stays, 3.0);
    project(&v, s.c->body[r->first_body + 1], &cx, &cy);
    tsr_svg_line(svg, cx, cy, px, py, stays, 1.5);
    circle(svg, cx, cy, 6.0, stays, 1);
    tsr_svg_text(svg, 0.5 * WIDTH, HEIGHT - 14, 14.0, TSR_SVG_MIDDLE, 0,
                 "side_chain: the centre of a tryptophan, drawn from the prior "
                 "(blue) or by a step (orange)");
    save(svg, folder, f->move);
    tsr_conformation_free(y);
    close_scene(&s);
}

int main(int argc, char **argv)
{
    tsr_err err = {0};
    tsr_prior_table *table;
    if (argc != 3)
        stop("usage: draw_moves PRIOR.dat FOLDER");
    if (tsr_prior_table_read(argv[1], &table, &err) != TSR_OK)
        stop(err.message);
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        if (figures[k].n > 0)
            draw_backbone(&figures[k], table, argv[2]);
        else
            draw_side_chain(&figures[k], table, argv[2]);
    tsr_prior_table_free(table);
    return 0;
}
