/* The list of noise models, made from TSR_NOISE_MODELS, and the choice of one.
 */
#include "likelihood/noise.h"

#include <string.h>

#define X(name) &tsr_noise_##name,
const tsr_noise_type *const tsr_noise_registry[] = {TSR_NOISE_MODELS(X) NULL};
#undef X

const char *const tsr_noise_infer_words[] = {"infer", NULL};

tsr_field_kind tsr_noise_kind(int number)
{
    const tsr_noise_type *type = tsr_noise_registry[number];
    return type == NULL ? (tsr_field_kind){.name = NULL}
                        : (tsr_field_kind){type->name, type->doc, type->fields};
}

tsr_status tsr_noise_choose(tsr_noise_options *options, const char *name,
                            tsr_err *err)
{
    const tsr_field noise[] = {TSR_NOISE_FIELD("noise", 0), {0}};
    tsr_noise_options fresh;
    if (strcmp(tsr_noise_registry[options->model]->name, name) == 0)
        return TSR_OK;
    tsr_status status = tsr_fields_init(noise, &fresh, err);
    if (status == TSR_OK)
        status = tsr_field_choose(noise, &fresh, name, err);
    if (status == TSR_OK)
        *options = fresh;
    return status;
}

void tsr_noise_carry_errors(const tsr_noise_spec *spec, double *out,
                            double *variance)
{
    const size_t n = (size_t)spec->saxs->n, n_q = (size_t)spec->n_q;
    for (size_t k = 0; k < n; k++)
        variance[k] = 0.0;
    for (size_t e = 0; e < (size_t)spec->n_error; e++)
        for (size_t k = 0; k < n; k++) {
            double sum = 0.0;
            for (size_t j = 0; j < n_q; j++)
                sum += spec->matrix[k * n_q + j] * spec->error[e * n_q + j];
            out[e * n + k] = sum;
            variance[k] += sum * sum;
        }
}
