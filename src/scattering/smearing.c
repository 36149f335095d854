/* Nodes and weights of a smeared curve.
 *
 * A point's mean is taken in three steps, each a quadrature rule: along q over
 * the normal distribution, along q over the slit's width, and across q over
 * its length, where u turns q into sqrt(q^2 + u^2). */
#include "scattering/smearing.h"

#include <gsl/gsl_integration.h>
#include <math.h>
#include <stdlib.h>

/* One rule: nodes, and weights that add up to 1. */
typedef struct {
    int n, room;
    double *x, *w;
} rule;

static void rule_clear(rule *r)
{
    free(r->x);
    free(r->w);
    *r = (rule){0};
}

static int add_node(rule *r, double x, double w)
{
    if (r->n == r->room) {
        int room = r->room > 0 ? 2 * r->room : 64;
        double *more_x = realloc(r->x, (size_t)room * sizeof *more_x);
        if (more_x == NULL)
            return 0;
        r->x = more_x;
        double *more_w = realloc(r->w, (size_t)room * sizeof *more_w);
        if (more_w == NULL)
            return 0;
        r->w = more_w;
        r->room = room;
    }
    r->x[r->n] = x;
    r->w[r->n++] = w;
    return 1;
}

static void normalise(rule *r)
{
    double sum = 0.0;
    for (int i = 0; i < r->n; i++)
        sum += r->w[i];
    for (int i = 0; i < r->n; i++)
        r->w[i] /= sum;
}

/* Gauss and Legendre's nodes over [a, b], each with its weight times that of a
 * straight line from wa to wb, times the normal density about `centre` where
 * sigma is above 0. `least` nodes, and two for each half wave that a curve of
 * the largest distance d can have in between. */
static int add_interval(rule *r, double a, double b, const double line[2],
                        double centre, double sigma, double d, int least)
{
    const int n = least + (int)ceil((b - a) * d / 3.0);
    gsl_integration_glfixed_table *table =
        gsl_integration_glfixed_table_alloc((size_t)n);
    int ok = table != NULL;
    for (int i = 0; i < n && ok; i++) {
        double x, w;
        gsl_integration_glfixed_point(a, b, (size_t)i, &x, &w, table);
        double t = sigma > 0.0 ? (x - centre) / sigma : 0.0;
        w *= line[0] + (line[1] - line[0]) * (x - a) / (b - a);
        ok = add_node(r, x, w * exp(-0.5 * t * t));
    }
    gsl_integration_glfixed_table_free(table);
    return ok;
}

static const double even[2] = {1.0, 1.0};

/* Along q, before the slit: the normal distribution about q. */
static int along(double q, double sigma, double d, rule *r)
{
    if (!(sigma > 0.0))
        return add_node(r, q, 1.0);
    const double far = TSR_RESOLUTION_REACH * sigma;
    int ok =
        add_interval(r, fmax(0.0, q - far), q + far, even, q, sigma, d, 16);
    normalise(r);
    return ok;
}

/* The slit's width: by how much q differs. */
static int across_width(double width, double d, rule *r)
{
    if (!(width > 0.0))
        return add_node(r, 0.0, 1.0);
    int ok = add_interval(r, -width, width, even, 0.0, 0.0, d, 8);
    normalise(r);
    return ok;
}

/* The slit's length or the beam's profile: the component u beside q. */
static int across_length(const tsr_resolution *s, double d, rule *r)
{
    int ok = 1;
    if (s->n_beam == 0 && !(s->slit_length > 0.0))
        return add_node(r, 0.0, 1.0);
    if (s->n_beam == 0)
        ok = add_interval(r, 0.0, s->slit_length, even, 0.0, 0.0, d, 16);
    for (int i = 1; i < s->n_beam && ok; i++)
        if (s->beam[i] > 0.0 || s->beam[i - 1] > 0.0)
            ok = add_interval(r, s->beam_u[i - 1], s->beam_u[i],
                              s->beam + i - 1, 0.0, 0.0, d, 2);
    normalise(r);
    return ok;
}

void tsr_smearing_free(tsr_smearing *smearing)
{
    if (smearing == NULL)
        return;
    free(smearing->first);
    free(smearing->q);
    free(smearing->weight);
    free(smearing);
}

/* The nodes of one point: every step's nodes with every other's. */
static int add_point(rule *all, const rule *a, const rule *width,
                     const rule *length)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < width->n; j++)
            for (int k = 0; k < length->n; k++)
                if (!add_node(all,
                              length->x[k] == 0.0
                                  ? fabs(a->x[i] + width->x[j])
                                  : hypot(a->x[i] + width->x[j], length->x[k]),
                              a->w[i] * width->w[j] * length->w[k]))
                    return 0;
    return 1;
}

tsr_status tsr_smearing_new(const tsr_resolution *resolution, int n,
                            const double *q_inv_ang, double d_max_ang,
                            tsr_smearing **out, tsr_err *err)
{
    const tsr_resolution *r = resolution;
    rule all = {0}, width = {0}, length = {0};
    tsr_smearing *s = calloc(1, sizeof *s);
    int ok = s != NULL && across_width(r->slit_width, d_max_ang, &width) &&
             across_length(r, d_max_ang, &length);
    if (s != NULL)
        s->first = calloc((size_t)n + 1, sizeof *s->first);
    ok = ok && s->first != NULL;
    for (int k = 0; k < n && ok; k++) {
        rule own = {0};
        ok = along(q_inv_ang[k], r->sigma != NULL ? r->sigma[k] : 0.0,
                   d_max_ang, &own) &&
             add_point(&all, &own, &width, &length);
        s->first[k + 1] = all.n;
        rule_clear(&own);
    }
    rule_clear(&width);
    rule_clear(&length);
    if (!ok) {
        rule_clear(&all);
        tsr_smearing_free(s);
        *out = NULL;
        return tsr_fail(err, TSR_E_NOMEM, "out of memory for the resolution");
    }
    s->n = n;
    s->q = all.x;
    s->weight = all.w;
    *out = s;
    return TSR_OK;
}
