#include "io/fit_file.h"

#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tsr_status finish(FILE *stream, char **text, size_t *size,
                         const char *path, tsr_err *err)
{
    int failed = ferror(stream);
    failed |= fclose(stream) != 0;
    tsr_status status =
        failed ? tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path)
               : tsr_file_replace(path, *text, *size, err);
    free(*text);
    return status;
}

tsr_status tsr_fit_file_write(const char *path, const tsr_fit_file *fit,
                              tsr_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path);
    double step =
        fit->n > 1 ? (fit->q[fit->n - 1] - fit->q[0]) / (fit->n - 1) : 0.0;
    fprintf(stream,
            "# SAXS profile: number of points = %d, q_min = %.8g, q_max = "
            "%.8g, delta_q = %.8g" TSR_FIT_FILE_MARK
            "# offset = %.8g, scaling c = %.8g, c1 = %.5f, c2 = %.5f, Chi^2 = "
            "%.6g%s\n"
            "#  q       exp_intensity   error model_intensity\n",
            fit->n, fit->q[0], fit->q[fit->n - 1], step, fit->background,
            fit->scale, fit->c1, fit->c2, fit->chi2, fit->note);
    for (int k = 0; k < fit->n; k++)
        fprintf(stream, "%.8f %.8g %.8g %.8g\n", fit->q[k], fit->intensity[k],
                fit->sigma[k], fit->model[k]);
    return finish(stream, &text, &size, path, err);
}

static void print_table(FILE *out, const char *heading, int n, int n_column,
                        const double *const *column)
{
    for (const char *p = heading; *p != '\0';) {
        int length = (int)strcspn(p, "\n");
        fprintf(out, "# %.*s\n", length, p);
        p += length + (p[length] == '\n');
    }
    for (int k = 0; k < n; k++)
        for (int c = 0; c < n_column; c++)
            fprintf(out, "%.8g%s", column[c][k],
                    c == n_column - 1 ? "\n" : " ");
}

tsr_status tsr_table_print(FILE *out, const char *heading, int n, int n_column,
                           const double *const *column, tsr_err *err)
{
    print_table(out, heading, n, n_column, column);
    return ferror(out) ? tsr_fail(err, TSR_E_IO, "cannot write the curve")
                       : TSR_OK;
}

tsr_status tsr_table_write(const char *path, const char *heading, int n,
                           int n_column, const double *const *column,
                           tsr_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory writing '%s'", path);
    print_table(stream, heading, n, n_column, column);
    return finish(stream, &text, &size, path, err);
}
