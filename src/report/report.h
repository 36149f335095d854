/* The report of a run: report.html, one file that works offline, and its
 * figures as SVG. */
#ifndef TSR_REPORT_REPORT_H
#define TSR_REPORT_REPORT_H

#include "analysis/diagnose.h"
#include "analysis/frames.h"
#include "analysis/shape.h"
#include "answer/verdict.h"
#include "core/log.h"
#include "maps/map_view.h"
#include "scattering/profile_fit.h"
#include "scattering/saxs.h"
#include "store/trace.h"

/* An entry of `data:`. */
typedef struct {
    int kind;      /* index into tsr_term_registry */
    char name[96]; /* its file, or what it is between; "": it has neither */
} tsr_report_data;

/* Where there was no run: a curve, and the structure's fit to it. */
typedef struct {
    const tsr_saxs *saxs;
    const double *curve; /* at its points: scale I + background */
    const tsr_profile_fit *fit;
    double rg_guinier, rg, d_max; /* Angstrom, of the structure */
} tsr_report_rigid_fit;

/* The prior density of a parameter, which needs no run. */
enum { TSR_REPORT_DENSITY = 120 };
typedef struct {
    char name[64]; /* as in the trace */
    double x[TSR_REPORT_DENSITY], y[TSR_REPORT_DENSITY];
} tsr_report_prior;

/* What a density map and the draws look like beside each other. */
typedef struct {
    const tsr_term_type *type;
    int ordinal; /* among the entries of its kind, from 0 */
    const tsr_atoms *atoms;
    tsr_map_view view;
} tsr_report_map;

typedef struct {
    const tsr_verdict *verdict; /* NULL: there was no run, but */
    int n_rigid;
    const tsr_report_rigid_fit *rigid; /* [n_rigid] */
    const char *solved;                /* as of tsr_report_solved */
    double mass;                       /* Da, of the model; NaN: not known */
    const char *file; /* beside the page: model or fit; NULL: none */
    const tsr_model_atoms *atoms; /* the start; NULL: no view of it */
    const char *name;             /* of the run, the title */
    const char *methods;          /* a paragraph for a paper; NULL: none */
    const char *remark;           /* "not finished ..."; NULL: none */
    int n_data;                   /* 0: names are not known */
    const tsr_report_data *data;  /* [n_data] the entries of `data:` */
    int n_map;                    /* maps that could be looked at */
    const tsr_report_map *map;    /* [n_map] */
    int is_prior;                 /* 1: the run saw no data */
    int n_density;
    const tsr_report_prior *density; /* [n_density] */
    tsr_trace_reader *prior;         /* a run of the prior alone; NULL: none */
    tsr_frames *frames;              /* its conformations; NULL: none */
    const tsr_shape *shape;          /* of these */
    const char *no_frames;      /* why there are none; NULL: nothing to say */
    const char *vega_directory; /* NULL: where Debian has it */
    tsr_diagnose_options diagnose;
} tsr_report_options;

/* What `solve` said, verdict.json, where `directory` is one of its runs; caller
 * frees; NULL: it is none. */
char *tsr_report_solved(const char *directory);

/* Writes `path` (HTML) and the SVG files into `folder`, which is there. trace
 * NULL: there was no run. Where
 * Vega is not found, figures stand still, and the log says what to install.
 * Figures for which the trace has nothing are left out. Progress goes to `log`.
 * Errors: TSR_E_IO, TSR_E_NOMEM, those of tsr_diagnose. */
tsr_status tsr_report_write(tsr_trace_reader *trace,
                            const tsr_report_options *options, const char *path,
                            const char *folder, tsr_log *log, tsr_err *err);

#endif
