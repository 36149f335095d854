/* Eigenvectors of small symmetric matrices, by GSL with its workspace on the
 * stack, and superposition by quaternions (Horn 1987): the best rotation is the
 * eigenvector with the largest eigenvalue of a 4 x 4 matrix. */
#include "core/vec3.h"

#include <gsl/gsl_eigen.h>
#include <string.h>

void tsr_eigen(int n, double *matrix, double *value, double *vector)
{
    const size_t m = (size_t)n;
    double workspace[4][TSR_MAX_EIGEN];
    gsl_eigen_symmv_workspace work = {m, workspace[0], workspace[1],
                                      workspace[2], workspace[3]};
    gsl_matrix_view a = gsl_matrix_view_array(matrix, m, m);
    gsl_matrix_view v = gsl_matrix_view_array(vector, m, m);
    gsl_vector_view e = gsl_vector_view_array(value, m);
    gsl_eigen_symmv(&a.matrix, &e.vector, &v.matrix, &work);
    gsl_eigen_symmv_sort(&e.vector, &v.matrix, GSL_EIGEN_SORT_VAL_DESC);
    gsl_matrix_transpose(&v.matrix);
}

/* Position of the chosen point number i, which is point at[i]; at NULL: point
 * i. */
static const double *point_of(const double (*x)[3], const int *at, int i)
{
    return x[at != NULL ? at[i] : i];
}

void tsr_centroid(int n, const int *at, const double (*x)[3], double out[3])
{
    out[0] = out[1] = out[2] = 0.0;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            out[d] += point_of(x, at, i)[d];
    for (int d = 0; d < 3; d++)
        out[d] /= n;
}

double tsr_superpose(int n, const int *at, const double (*fixed)[3],
                     const double (*moving)[3], tsr_motion *motion)
{
    double to[3], from[3], s[3][3] = {{0.0}}, squares = 0.0;
    double value[4], q[4][4];
    tsr_centroid(n, at, fixed, to);
    tsr_centroid(n, at, moving, from);
    for (int i = 0; i < n; i++) {
        double a[3], b[3];
        tsr_vec3_sub(a, point_of(moving, at, i), from);
        tsr_vec3_sub(b, point_of(fixed, at, i), to);
        squares += tsr_vec3_dot(a, a) + tsr_vec3_dot(b, b);
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < 3; l++)
                s[k][l] += a[k] * b[l];
    }
    /* Horn's matrix */
    double m[4][4] = {
        {s[0][0] + s[1][1] + s[2][2], s[1][2] - s[2][1], s[2][0] - s[0][2],
         s[0][1] - s[1][0]},
        {0, s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2]},
        {0, 0, s[1][1] - s[0][0] - s[2][2], s[1][2] + s[2][1]},
        {0, 0, 0, s[2][2] - s[0][0] - s[1][1]}};
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < k; l++)
            m[k][l] = m[l][k];
    tsr_eigen(4, m[0], value, q[0]);
    const double w = q[0][0], x = q[0][1], y = q[0][2], z = q[0][3];
    const double r[3][3] = {{w * w + x * x - y * y - z * z, 2 * (x * y - w * z),
                             2 * (x * z + w * y)},
                            {2 * (x * y + w * z), w * w - x * x + y * y - z * z,
                             2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x),
                             w * w - x * x - y * y + z * z}};
    memcpy(motion->rotation, r, sizeof r);
    for (int d = 0; d < 3; d++)
        motion->shift[d] = to[d] - tsr_vec3_dot(r[d], from);
    return sqrt(fmax(0.0, (squares - 2.0 * value[0]) / n));
}
