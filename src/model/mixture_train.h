/* Mixtures trained on observations from structures, with the number of parts
 * chosen on structures held out.
 *
 * Every sixth structure, in the order of the list, is held out; mixtures of all
 * numbers of parts are fitted to the others. The number is the least whose mean
 * log density of what was held out is below the best by no more than 0.002 nat
 * or one standard error of that difference (between structures). A mixture of
 * that many parts is then fitted to all observations. */
#ifndef TSR_MODEL_MIXTURE_TRAIN_H
#define TSR_MODEL_MIXTURE_TRAIN_H

#include "core/log.h"
#include "core/status.h"

#include <stddef.h>

typedef struct {
    int dim;         /* numbers an observation */
    int least, most; /* parts */
    size_t size;     /* bytes of a mixture */
    /* Fits n_part parts to x [n][dim]; effort: starts that are followed to
     * their maxima (em.h). */
    tsr_status (*fit)(long n, const double *x, int n_part, int effort,
                      void *mixture, tsr_err *err);
    /* value [n] out: log density, nat. */
    tsr_status (*evaluate)(const void *mixture, long n, const double *x,
                           double *value, tsr_err *err);
} tsr_mixture_type;

enum { TSR_MIXTURE_MOST = 24, TSR_MIXTURE_HOLD_OUT = 6 };

typedef struct {
    const char *name; /* for the log */
    const tsr_mixture_type *type;
    long n;
    const double *x; /* [n][dim] */
    const int *file; /* [n] number of the structure, from 0 */
    void *mixture;   /* out, type->size bytes */
    /* out */
    int n_part;
    long n_held_out;
    /* mean log density, nat, of those held out, by number of parts; NaN where
     * there are too few to choose: then n_part is the least */
    double held_out[TSR_MIXTURE_MOST + 1];
} tsr_mixture_task;

/* All tasks, over n_thread threads (0: one a processor), whose number changes
 * nothing. Errors: TSR_E_NOMEM. */
tsr_status tsr_mixture_train(int n_task, tsr_mixture_task *task, int n_thread,
                             tsr_log *log, tsr_err *err);

#endif
