/* The resultant of two biquadratic equations, worked out in Bernstein form, in
 * which products are sums of products with binomial weights. */
#include "moves/closure_resultant.h"

#include "core/vec3.h"

#include <math.h>
#include <string.h>

static const double binomial4[5] = {1.0, 4.0, 6.0, 4.0, 1.0};
static const double binomial8[9] = {1.0,  8.0,  28.0, 56.0, 70.0,
                                    56.0, 28.0, 8.0,  1.0};
static const double binomial16[17] = {
    1.0,     16.0,   120.0,  560.0,  1820.0, 4368.0, 8008.0, 11440.0, 12870.0,
    11440.0, 8008.0, 4368.0, 1820.0, 560.0,  120.0,  16.0,   1.0};

/* At a given tau_2 let k = a^T y_2 and m = c y_2. Then k.y_0 = 0 and m.y_1 = 0
 * are lines, y_0 and y_1 lie on the unit circle y J y = 0, J = diag(-1, 1, 1),
 * and eliminating them leaves
 *
 *     R(tau_2) = L^2 - D_a D_c W^2 = 0,
 *     L = tr(S(k) b S(m) b^T),  S(v) = [v]^T J [v],  W = 2 m adj(b) k,
 *     D_a = k_1^2 + k_2^2 - k_0^2,  D_c alike with m:
 *
 * y_0 is the meet [k] b y_1 of two lines and must lie on the circle, a conic G
 * in y_1; R is the resultant of G and J on the line m, that is the discriminant
 * of m adj(G + lambda J) m in lambda. With x = cos(tau_2 / 2) and y = sin(tau_2
 * / 2) it is a form of degree 16. */

/* ---- forms; here coefficients of x^(n - k) y^k ---- */

static void add_product22(double out[5], double f, const double a[3],
                          const double b[3])
{
    out[0] += f * a[0] * b[0];
    out[1] += f * (a[0] * b[1] + a[1] * b[0]);
    out[2] += f * (a[0] * b[2] + a[1] * b[1] + a[2] * b[0]);
    out[3] += f * (a[1] * b[2] + a[2] * b[1]);
    out[4] += f * a[2] * b[2];
}

static void add_product44(double out[9], double f, const double a[5],
                          const double b[5])
{
    for (int i = 0; i < 5; i++) {
        double g = f * a[i];
        for (int j = 0; j < 5; j++)
            out[i + j] += g * b[j];
    }
}

static void add_product88(double out[17], const double a[9], const double b[9])
{
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            out[i + j] += a[i] * b[j];
}

/* v . (1, cos, sin) as a form of degree 2. */
static void linear(double out[3], double v0, double v1, double v2)
{
    out[0] = v0 + v1, out[1] = 2.0 * v2, out[2] = v0 - v1;
}

/* S(v): 00, 11, 22, 01, 02, 12; and v_1^2 + v_2^2 - v_0^2. */
static void line_conic(double s[6][5], double d[5], double v[3][3])
{
    double v00[5] = {0}, v11[5] = {0}, v22[5] = {0};
    add_product22(v00, 1.0, v[0], v[0]);
    add_product22(v11, 1.0, v[1], v[1]);
    add_product22(v22, 1.0, v[2], v[2]);
    memset(s, 0, 6 * sizeof *s);
    for (int k = 0; k < 5; k++) {
        s[0][k] = v11[k] + v22[k];
        s[1][k] = v00[k] - v22[k];
        s[2][k] = v00[k] - v11[k];
        d[k] = s[0][k] - v00[k];
    }
    add_product22(s[3], -1.0, v[0], v[1]);
    add_product22(s[4], -1.0, v[0], v[2]);
    add_product22(s[5], 1.0, v[1], v[2]);
}

void tsr_closure_set_forms(const tsr_closure_equations *p, tsr_closure_forms *f)
{
    static const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
    static const double times[6] = {1.0, 1.0, 1.0, 2.0, 2.0, 2.0};
    const double(*b)[3] = p->b;
    double k[3][3], m[3][3], sk[6][5], sm[6][5];
    for (int i = 0; i < 3; i++) {
        linear(k[i], p->a[0][i], p->a[1][i], p->a[2][i]);
        linear(m[i], p->c[i][0], p->c[i][1], p->c[i][2]);
    }
    line_conic(sk, f->da, k);
    line_conic(sm, f->dc, m);

    /* L = sum over ij of S(k)_ij (B S(m) B^T)_ij */
    memset(f->l, 0, sizeof f->l);
    double q[6][5];
    for (int n = 0; n < 5; n++) {
        double s[3][3] = {{sm[0][n], sm[3][n], sm[4][n]},
                          {sm[3][n], sm[1][n], sm[5][n]},
                          {sm[4][n], sm[5][n], sm[2][n]}};
        double bs[3][3];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                bs[i][j] =
                    b[i][0] * s[0][j] + b[i][1] * s[1][j] + b[i][2] * s[2][j];
        for (int e = 0; e < 6; e++)
            q[e][n] = tsr_vec3_dot(bs[row[e]], b[col[e]]);
    }
    for (int e = 0; e < 6; e++)
        add_product44(f->l, times[e], sk[e], q[e]);

    double bk[3][3] = {{0}}, adj[3][3];
    for (int i = 0; i < 3; i++) {
        double c[3]; /* column i of the adjugate: cross product of rows of B */
        tsr_vec3_cross(c, b[(i + 1) % 3], b[(i + 2) % 3]);
        for (int j = 0; j < 3; j++)
            adj[j][i] = c[j];
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int n = 0; n < 3; n++)
                bk[i][n] += adj[i][j] * k[j][n];
    memset(f->w, 0, sizeof f->w);
    for (int i = 0; i < 3; i++)
        add_product22(f->w, 2.0, m[i], bk[i]);

    for (int n = 0; n < 9; n++)
        f->l[n] /= binomial8[n];
    for (int n = 0; n < 5; n++) {
        f->w[n] /= binomial4[n];
        f->da[n] /= binomial4[n];
        f->dc[n] /= binomial4[n];
    }
}

/* ---- on an arc ---- */

/* Polar form (Ramshaw 1989): coefficient j takes n - j times u and j times v.
 */
static void restrict_form(int n, const double form[], tsr_cos_sin u,
                          tsr_cos_sin v, double out[])
{
    double at_u[9], at_v[9];
    memcpy(at_u, form, (size_t)(n + 1) * sizeof *form);
    for (int j = n;; j--) {
        for (int k = 0; k <= j; k++)
            at_v[k] = at_u[k];
        for (int r = j; r > 0; r--)
            for (int k = 0; k < r; k++)
                at_v[k] = v.c * at_v[k] + v.s * at_v[k + 1];
        out[j] = at_v[0];
        if (j == 0)
            return;
        for (int k = 0; k < j; k++)
            at_u[k] = u.c * at_u[k] + u.s * at_u[k + 1];
    }
}

double tsr_closure_resultant(const tsr_closure_forms *f, tsr_cos_sin u,
                             tsr_cos_sin v, double b[TSR_ROOT_DEGREE + 1])
{
    double l[9], w[5], da[5], dc[5], ww[9] = {0}, dd[9] = {0};
    double plus[TSR_ROOT_DEGREE + 1] = {0}, minus[TSR_ROOT_DEGREE + 1] = {0};
    restrict_form(8, f->l, u, v, l);
    restrict_form(4, f->w, u, v, w);
    restrict_form(4, f->da, u, v, da);
    restrict_form(4, f->dc, u, v, dc);
    for (int k = 0; k <= 8; k++)
        l[k] *= binomial8[k];
    for (int k = 0; k <= 4; k++) {
        w[k] *= binomial4[k];
        da[k] *= binomial4[k];
        dc[k] *= binomial4[k];
    }
    add_product44(ww, 1.0, w, w);
    add_product44(dd, 1.0, da, dc);
    add_product88(plus, l, l);
    add_product88(minus, ww, dd);
    double size = 0.0;
    for (int k = 0; k <= TSR_ROOT_DEGREE; k++) {
        double f16 = 1.0 / binomial16[k];
        b[k] = f16 * (plus[k] - minus[k]);
        size = fmax(size, f16 * (fabs(plus[k]) + fabs(minus[k])));
    }
    return 1e-15 * size;
}
