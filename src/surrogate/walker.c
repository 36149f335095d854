/* Where the numbers of a surrogate's job stand. */
#include "surrogate/walker.h"

#include <stddef.h>

tsr_surrogate_layout tsr_surrogate_layout_of(const tsr_surrogate_spec *spec)
{
    const int q = spec->n_q;
    tsr_surrogate_layout l = {.head = 0, .unit = 8};
    l.n_row = q + 1;
    l.curve_size = q * l.n_row + l.n_row + 1;
    l.angle = l.unit + TSR_SURROGATE_PRODUCTS;
    l.width = l.angle + 2 * spec->n_slot;
    l.factor = l.width + spec->n_torsion + 1 + spec->n_linker;
    l.amount = l.factor + spec->n_linker * TSR_SURROGATE_FACTOR;
    l.shape = l.amount + 4 * spec->n_bead;
    l.rest = l.shape + TSR_SURROGATE_SHAPES * q;
    l.top = l.rest + TSR_SURROGATE_POWERS * q;
    l.bottom = l.top + TSR_SURROGATE_POWERS * q;
    l.curve = l.bottom + TSR_SURROGATE_POWERS * q;
    l.size = l.curve + spec->n_curve * l.curve_size;
    return l;
}

void tsr_surrogate_engine_free(tsr_surrogate_engine *engine)
{
    if (engine != NULL)
        engine->free(engine);
}

void tsr_surrogate_walker_free(tsr_surrogate_walker *walker)
{
    if (walker != NULL)
        walker->engine->walker_free(walker);
}
