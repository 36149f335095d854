#include "cli/init_curves.h"

#include "core/text.h"

#include <stdlib.h>
#include <string.h>

/* FILE=X; the name may have signs of equality of its own. */
static tsr_status read_sans(const char *text, char **path, double *d2o,
                            tsr_err *err)
{
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    const double share = equals != NULL ? strtod(equals + 1, &end) : -1.0;
    if (equals == NULL || equals == text || end == equals + 1 || *end != '\0' ||
        !(share >= 0.0 && share <= 1.0))
        return tsr_fail(err, TSR_E_USAGE,
                        "--sans '%s': expected FILE=X, X the share of D2O in "
                        "the solvent, 0 to 1: %s=0.42",
                        text, equals == NULL ? text : "exp.dat");
    *d2o = share;
    *path = tsr_words_of("%.*s", (int)(equals - text), text);
    return *path != NULL ? TSR_OK : tsr_fail(err, TSR_E_NOMEM, "out of memory");
}

/* What all curves of neutrons have. */
static tsr_status read_sample(const tsr_args *args, tsr_init_curves *c,
                              tsr_err *err)
{
    tsr_neutron neutron = {.n_deuterated = 0};
    c->exchange = TSR_NEUTRON_EXCHANGE;
    c->n_deuterated = tsr_args_values(args, "deuterated", &c->deuterated);
    const int has_exchange = tsr_args_count(args, "exchange") > 0;
    if (c->n == c->n_xray && (has_exchange || c->n_deuterated > 0))
        return tsr_fail(err, TSR_E_USAGE, "--%s goes with --sans FILE=X",
                        has_exchange ? "exchange" : "deuterated");
    for (int k = 0; k < c->n_deuterated; k++)
        if (!tsr_neutron_deuterate(&neutron, c->deuterated[k]))
            return tsr_fail(err, TSR_E_USAGE,
                            "--deuterated '%s': expected CHAIN=X, X from 0 to "
                            "1 (without it 1), each chain once, %d at most",
                            c->deuterated[k], TSR_NEUTRON_CHAINS);
    return has_exchange
               ? tsr_args_double(args, "exchange", 0.0, 1.0, &c->exchange, err)
               : TSR_OK;
}

tsr_status tsr_init_curves_read(const tsr_args *args, int n,
                                const char *const *argument,
                                tsr_init_curves *curves, tsr_err *err)
{
    const char *const *sans;
    const int n_sans = tsr_args_values(args, "sans", &sans);
    tsr_init_curves *c = curves;
    *c = (tsr_init_curves){.n = n + n_sans, .n_xray = n};
    c->path = calloc((size_t)c->n + 1, sizeof *c->path);
    c->d2o = calloc((size_t)c->n + 1, sizeof *c->d2o);
    if (c->path == NULL || c->d2o == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int k = 0; k < n; k++) {
        c->path[k] = strdup(argument[k]);
        if (c->path[k] == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    for (int k = 0; k < n_sans; k++)
        TSR_TRY(read_sans(sans[k], &c->path[n + k], &c->d2o[n + k], err));
    return read_sample(args, c, err);
}

void tsr_init_curves_clear(tsr_init_curves *curves)
{
    for (int k = 0; curves->path != NULL && k < curves->n; k++)
        free(curves->path[k]);
    free(curves->path);
    free(curves->d2o);
    *curves = (tsr_init_curves){.n = 0};
}
