/* Superposition by quaternions (Horn 1987): the best rotation is the
 * eigenvector of the largest eigenvalue of a 4 x 4 matrix. The mean of many
 * conformations and their superpositions on it are found in turns. */
#include "analysis/mean_shape.h"

#include <stdlib.h>
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

int tsr_frames_that_fit(int n_residue)
{
    const double bytes = 200e6;
    const double fits = bytes / (3.0 * sizeof(float) * n_residue);
    return fits > 1e6 ? 1000000 : fits < 2.0 ? 2 : (int)fits;
}

tsr_status tsr_frames_gather_ca(tsr_frames *frames, int n, const int *at,
                                float **ca, tsr_err *err)
{
    const tsr_model_atoms *model = tsr_frames_atoms(frames);
    const size_t one = 3 * (size_t)model->n_residue;
    tsr_status status = TSR_OK;
    *ca = malloc(((size_t)n * one + 1) * sizeof **ca);
    if (*ca == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "no memory for %d conformations", n);
    for (int i = 0; i < n && status == TSR_OK; i++) {
        const float *xyz;
        status = tsr_frames_read(frames, at[i], &xyz, err);
        for (int r = 0; status == TSR_OK && r < model->n_residue; r++)
            memcpy(*ca + (size_t)i * one + 3 * (size_t)r,
                   xyz + 3 * (size_t)model->ca[r], 3 * sizeof **ca);
    }
    if (status != TSR_OK) {
        free(*ca);
        *ca = NULL;
    }
    return status;
}

void tsr_ca_of(const float *all, int n_residue, int i, double (*ca)[3])
{
    const float *from = all + (size_t)i * 3 * (size_t)n_residue;
    for (int r = 0; r < n_residue; r++)
        for (int d = 0; d < 3; d++)
            ca[r][d] = (double)*from++;
}

/* Each one on the mean of the pass before, at first on the first; the last pass
 * takes the deviations. */
tsr_status tsr_mean_shape_make(int n, int n_residue, const float *all,
                               double (*mean)[3], double *square, tsr_err *err)
{
    enum { PASSES = 3 };
    const size_t room = (size_t)n_residue;
    double(*ca)[3] = calloc(room, sizeof *ca);
    double(*sum)[3] = calloc(room, sizeof *sum);
    if (ca == NULL || sum == NULL) {
        free(ca);
        free(sum);
        return tsr_fail(err, TSR_E_NOMEM, "no memory for the mean");
    }
    memset(square, 0, room * sizeof *square);
    tsr_ca_of(all, n_residue, 0, mean);
    for (int pass = 0; pass <= PASSES; pass++) {
        memset(sum, 0, room * sizeof *sum);
        for (int i = 0; i < n; i++) {
            tsr_motion motion;
            tsr_ca_of(all, n_residue, i, ca);
            tsr_superpose(n_residue, (const double(*)[3])mean,
                          (const double(*)[3])ca, &motion);
            for (int r = 0; r < n_residue; r++) {
                tsr_motion_apply(&motion, ca[r]);
                if (pass == PASSES)
                    square[r] += tsr_vec3_distance2(ca[r], mean[r]) / n;
                for (int d = 0; d < 3; d++)
                    sum[r][d] += ca[r][d] / n;
            }
        }
        if (pass < PASSES)
            memcpy(mean, sum, room * sizeof *sum);
    }
    free(ca);
    free(sum);
    return TSR_OK;
}
