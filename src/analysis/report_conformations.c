/* The conformations behind the figures, a line each, for other programs. */
#include "analysis/report_sections.h"

#include "io/file.h"

static const double degree = 57.29577951308232;

static void print_rows(const tsr_report *r, const tsr_domains *domains,
                       FILE *out)
{
    const tsr_shape *s = r->options->diagnose.shape;
    const tsr_drawn_frame *frame;
    tsr_frames_list(r->options->frames, &frame);
    fputs("chain,draw,state,group", out);
    for (int k = 0; k < domains->n_pair; k++) {
        const int a = domains->pair[k].a + 1, b = domains->pair[k].b + 1;
        fprintf(out, ",distance_%d_%d_angstrom,turn_%d_%d_degree", a, b, a, b);
    }
    fputc('\n', out);
    for (int i = 0; i < s->n; i++) {
        const tsr_drawn_frame *f = &frame[s->at[i]];
        fprintf(out, "%d,%ld,%d,%d", f->chain, f->draw,
                f->state > 0 ? f->state : 1, s->clusters.of[i] + 1);
        for (int k = 0; k < domains->n_pair; k++)
            fprintf(out, ",%.6g,%.6g", domains->pair[k].distance[i],
                    degree * domains->pair[k].turn[i]);
        fputc('\n', out);
    }
}

tsr_status tsr_report_conformations(tsr_report *report,
                                    const tsr_domains *domains, tsr_err *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/conformations.csv", report->folder);
    tsr_file_writer to;
    tsr_status status = tsr_file_begin(&to, path, err);
    if (status == TSR_OK)
        print_rows(report, domains, to.out);
    return tsr_file_end(&to, status, err);
}
