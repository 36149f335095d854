#include "analysis/superpose.h"

#include <string.h>

enum { N = 4, SWEEPS = 50 };

/* The eigenvector of the largest eigenvalue of a symmetric matrix, by Jacobi's
 * rotations; a is destroyed. Returns the eigenvalue. */
static double largest_eigenvector(double a[N][N], double out[N])
{
    double v[N][N] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0.0;
        for (int p = 0; p < N; p++)
            for (int q = p + 1; q < N; q++)
                off += a[p][q] * a[p][q];
        if (off == 0.0)
            break;
        for (int p = 0; p < N; p++)
            for (int q = p + 1; q < N; q++) {
                if (a[p][q] == 0.0)
                    continue;
                const double theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                const double t = (theta >= 0.0 ? 1.0 : -1.0) /
                                 (fabs(theta) + sqrt(theta * theta + 1.0));
                const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
                for (int k = 0; k < N; k++) {
                    const double kp = a[k][p], kq = a[k][q];
                    a[k][p] = c * kp - s * kq;
                    a[k][q] = s * kp + c * kq;
                }
                for (int k = 0; k < N; k++) {
                    const double pk = a[p][k], qk = a[q][k];
                    a[p][k] = c * pk - s * qk;
                    a[q][k] = s * pk + c * qk;
                }
                for (int k = 0; k < N; k++) {
                    const double kp = v[k][p], kq = v[k][q];
                    v[k][p] = c * kp - s * kq;
                    v[k][q] = s * kp + c * kq;
                }
            }
    }
    int best = 0;
    for (int i = 1; i < N; i++)
        if (a[i][i] > a[best][best])
            best = i;
    for (int k = 0; k < N; k++)
        out[k] = v[k][best];
    return a[best][best];
}

static void centre_of(int n, const double (*x)[3], double out[3])
{
    out[0] = out[1] = out[2] = 0.0;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            out[d] += x[i][d];
    for (int d = 0; d < 3; d++)
        out[d] /= n;
}

double tsr_superpose(int n, const double (*fixed)[3], const double (*moving)[3],
                     tsr_motion *motion)
{
    double to[3], from[3], s[3][3] = {{0.0}}, squares = 0.0, q[N];
    centre_of(n, fixed, to);
    centre_of(n, moving, from);
    for (int i = 0; i < n; i++) {
        double a[3], b[3];
        tsr_vec3_sub(a, moving[i], from);
        tsr_vec3_sub(b, fixed[i], to);
        squares += tsr_vec3_dot(a, a) + tsr_vec3_dot(b, b);
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < 3; l++)
                s[k][l] += a[k] * b[l];
    }
    /* Horn's matrix */
    double m[N][N] = {
        {s[0][0] + s[1][1] + s[2][2], s[1][2] - s[2][1], s[2][0] - s[0][2],
         s[0][1] - s[1][0]},
        {0, s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2]},
        {0, 0, s[1][1] - s[0][0] - s[2][2], s[1][2] + s[2][1]},
        {0, 0, 0, s[2][2] - s[0][0] - s[1][1]}};
    for (int k = 0; k < N; k++)
        for (int l = 0; l < k; l++)
            m[k][l] = m[l][k];
    const double value = largest_eigenvector(m, q);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[3][3] = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z),
                             2 * (x * z + w * y)},
                            {2 * (x * y + w * z), w * w - x * x + y * y - z * z,
                             2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x),
                             w * w - x * x - y * y + z * z}};
    memcpy(motion->rotation, r, sizeof r);
    for (int d = 0; d < 3; d++)
        motion->shift[d] = to[d] - tsr_vec3_dot(r[d], from);
    return sqrt(fmax(0.0, (squares - 2.0 * value) / n));
}
