/* Vectors of three doubles as plain arrays, rigid motions, local frames, and
 * eigenvectors of small symmetric matrices. */
#ifndef TSR_CORE_VEC3_H
#define TSR_CORE_VEC3_H

#include <math.h>

#define TSR_PI 3.14159265358979323846

static inline void tsr_vec3_copy(double out[3], const double a[3])
{
    out[0] = a[0], out[1] = a[1], out[2] = a[2];
}

static inline void tsr_vec3_sub(double out[3], const double a[3],
                                const double b[3])
{
    out[0] = a[0] - b[0], out[1] = a[1] - b[1], out[2] = a[2] - b[2];
}

static inline double tsr_vec3_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void tsr_vec3_cross(double out[3], const double a[3],
                                  const double b[3])
{
    double x = a[1] * b[2] - a[2] * b[1];
    double y = a[2] * b[0] - a[0] * b[2];
    double z = a[0] * b[1] - a[1] * b[0];
    out[0] = x, out[1] = y, out[2] = z;
}

static inline double tsr_vec3_norm(const double a[3])
{
    return sqrt(tsr_vec3_dot(a, a));
}

static inline double tsr_vec3_distance2(const double a[3], const double b[3])
{
    double d[3];
    tsr_vec3_sub(d, a, b);
    return tsr_vec3_dot(d, d);
}

static inline double tsr_vec3_distance(const double a[3], const double b[3])
{
    return sqrt(tsr_vec3_distance2(a, b));
}

static inline void tsr_vec3_normalize(double a[3])
{
    double f = 1.0 / tsr_vec3_norm(a);
    a[0] *= f, a[1] *= f, a[2] *= f;
}

/* Angle a-b-c at b, rad, in [0, pi]. */
static inline double tsr_vec3_angle(const double a[3], const double b[3],
                                    const double c[3])
{
    double u[3], v[3], w[3];
    tsr_vec3_sub(u, a, b);
    tsr_vec3_sub(v, c, b);
    tsr_vec3_cross(w, u, v);
    return atan2(tsr_vec3_norm(w), tsr_vec3_dot(u, v));
}

/* Torsion a-b-c-d with the IUPAC sign: x is its cosine and y its sine, both
 * multiplied by the same positive factor. */
static inline void tsr_vec3_torsion_xy(const double a[3], const double b[3],
                                       const double c[3], const double d[3],
                                       double *x, double *y)
{
    double u[3], v[3], w[3], m[3], n[3];
    tsr_vec3_sub(u, b, a);
    tsr_vec3_sub(v, c, b);
    tsr_vec3_sub(w, d, c);
    tsr_vec3_cross(m, u, v);
    tsr_vec3_cross(n, v, w);
    *x = tsr_vec3_dot(m, n);
    *y = tsr_vec3_norm(v) * tsr_vec3_dot(u, n);
}

/* Torsion a-b-c-d, rad, in (-pi, pi]. */
static inline double tsr_vec3_torsion(const double a[3], const double b[3],
                                      const double c[3], const double d[3])
{
    double x, y;
    tsr_vec3_torsion_xy(a, b, c, d, &x, &y);
    return atan2(y, x);
}

/* A rigid motion: x -> rotation x + shift. */
typedef struct {
    double rotation[3][3];
    double shift[3];
} tsr_motion;

/* Rotation by angle_rad about the axis from `from` to `to` (right-handed). */
static inline void tsr_motion_about(tsr_motion *m, const double from[3],
                                    const double to[3], double angle_rad)
{
    double u[3];
    tsr_vec3_sub(u, to, from);
    tsr_vec3_normalize(u);
    double c = cos(angle_rad), s = sin(angle_rad);
    double h = sin(0.5 * angle_rad), t = 2.0 * h * h; /* 1 - cos */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            m->rotation[i][j] = t * u[i] * u[j] + (i == j ? c : 0.0);
    m->rotation[0][1] -= s * u[2], m->rotation[1][0] += s * u[2];
    m->rotation[0][2] += s * u[1], m->rotation[2][0] -= s * u[1];
    m->rotation[1][2] -= s * u[0], m->rotation[2][1] += s * u[0];
    for (int i = 0; i < 3; i++)
        m->shift[i] = from[i] - tsr_vec3_dot(m->rotation[i], from);
}

static inline void tsr_motion_apply(const tsr_motion *m, double x[3])
{
    double y[3];
    for (int i = 0; i < 3; i++)
        y[i] = tsr_vec3_dot(m->rotation[i], x) + m->shift[i];
    tsr_vec3_copy(x, y);
}

/* Composition: out(x) = second(first(x)). */
static inline void tsr_motion_compose(tsr_motion *out, const tsr_motion *second,
                                      const tsr_motion *first)
{
    tsr_motion m;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            m.rotation[i][j] = 0.0;
            for (int k = 0; k < 3; k++)
                m.rotation[i][j] +=
                    second->rotation[i][k] * first->rotation[k][j];
        }
        m.shift[i] =
            tsr_vec3_dot(second->rotation[i], first->shift) + second->shift[i];
    }
    *out = m;
}

/* Orthonormal frame of a residue: origin at CA, x towards C, z normal to the
 * plane N-CA-C. The axes are the columns of `frame`. */
static inline void tsr_frame(double frame[3][3], const double n[3],
                             const double ca[3], const double c[3])
{
    double x[3], y[3], z[3], v[3];
    tsr_vec3_sub(x, c, ca);
    tsr_vec3_normalize(x);
    tsr_vec3_sub(v, n, ca);
    tsr_vec3_cross(z, x, v);
    tsr_vec3_normalize(z);
    tsr_vec3_cross(y, z, x);
    for (int i = 0; i < 3; i++)
        frame[i][0] = x[i], frame[i][1] = y[i], frame[i][2] = z[i];
}

static inline void tsr_frame_to_global(double out[3], double frame[3][3],
                                       const double origin[3],
                                       const double local[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = origin[i] + tsr_vec3_dot(frame[i], local);
}

static inline void tsr_frame_to_local(double out[3], double frame[3][3],
                                      const double origin[3],
                                      const double global[3])
{
    double d[3];
    tsr_vec3_sub(d, global, origin);
    for (int i = 0; i < 3; i++)
        out[i] = frame[0][i] * d[0] + frame[1][i] * d[1] + frame[2][i] * d[2];
}

/* Eigenvalues [n], largest first, and unit eigenvectors [n][n], one per row, of
 * a symmetric matrix [n][n]. n is at most TSR_MAX_EIGEN. The matrix is
 * overwritten. */
enum { TSR_MAX_EIGEN = 4 };
void tsr_eigen(int n, double *matrix, double *value, double *vector);

/* Mean of points. at [n]: indices of the points; NULL: the first n. */
void tsr_centroid(int n, const int *at, const double (*x)[3], double out[3]);

/* Superposes points of `moving` on the same points of `fixed`. at [n]: indices
 * of the points; NULL: the first n. *motion out: moves `moving` onto `fixed`.
 * Returns the least root mean square distance, in the unit of the points.
 * Rotations only, no reflections. Source: Horn 1987, J. Opt. Soc. Am. A 4, 629
 * (unit quaternions). */
double tsr_superpose(int n, const int *at, const double (*fixed)[3],
                     const double (*moving)[3], tsr_motion *motion);

#endif
