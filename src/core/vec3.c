/* Eigenvectors of small symmetric matrices, by GSL with its workspace on the
 * stack. */
#include "core/vec3.h"

#include <gsl/gsl_eigen.h>

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
