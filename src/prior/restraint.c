/* Finds the two residues that a restraint names, refuses pairs that cannot move
 * against each other, and evaluates it. */
#include "prior/restraint.h"

#include "core/vec3.h"
#include "molecule/range.h"

#include <math.h>
#include <stdlib.h>

enum { AT_CA, AT_SIDE_CHAIN };
static const char *const at_words[] = {"ca", "side_chain", NULL};

const tsr_field tsr_restraint_fields[] = {
    TSR_FIELD(
        STRINGS, "between", tsr_restraint_options, between, .initial = "[]",
        .doc = "two residues, as [\"A:17\", \"A:203\"]; of a nucleotide that "
               "moves its P"),
    TSR_FIELD(CHOICE, "at", tsr_restraint_options, at, .initial = "ca",
              .words = at_words,
              .doc = "between CA atoms or side-chain centres"),
    TSR_FIELD(PAIR, "distance", tsr_restraint_options, distance,
              .unit = "Angstrom", .initial = "[0, 30]", .min = 0.0,
              .max = 5000.0, .doc = "range that costs nothing"),
    TSR_FIELD(DOUBLE, "width", tsr_restraint_options, width, .unit = "Angstrom",
              .initial = "2", .min = 0.01, .max = 1000.0,
              .doc = "how far outside costs half a nat"),
    {0}};

/* Is the residue before it of the same nucleotide? */
static int is_same_nucleotide(const tsr_topology *t, int i)
{
    return i > t->residue[i].chain_first &&
           t->residue[i].link > TSR_LINK_PHOSPHATE &&
           t->residue[i - 1].nucleotide == t->residue[i].nucleotide;
}

/* The one residue that the text names; of a nucleotide its first link, whose CA
 * is P. */
static tsr_status find_one(const tsr_topology *t, const char *text, int *mark,
                           int *residue, tsr_err *err)
{
    int n = 0;
    for (int i = 0; i < t->n_residue; i++)
        mark[i] = 0;
    TSR_TRY(tsr_range_mark(text, t->n_residue, t->residue, 1, mark, err));
    for (int i = 0; i < t->n_residue; i++)
        if (mark[i] && !is_same_nucleotide(t, i)) {
            *residue = i;
            n++;
        }
    if (n != 1)
        return tsr_fail(err, TSR_E_CONFIG,
                        "'%s' names %d residues; expected one", text, n);
    return TSR_OK;
}

tsr_status tsr_restraint_make(const tsr_topology *topology,
                              const tsr_restraint_options *options,
                              tsr_restraint *restraint, tsr_err *err)
{
    const tsr_topology *t = topology;
    if (options->between.n != 2)
        return tsr_fail(err, TSR_E_CONFIG,
                        "between: names %d residue%s; expected two, as "
                        "[\"A:17\", \"A:203\"]",
                        options->between.n, options->between.n == 1 ? "" : "s");
    int *mark = calloc((size_t)t->n_residue, sizeof *mark);
    TSR_TRY(tsr_allocated(mark, err));
    *restraint = (tsr_restraint){{0, 0},
                                 options->at,
                                 options->distance[0],
                                 options->distance[1],
                                 1.0 / options->width};
    tsr_status status = TSR_OK;
    for (int k = 0; k < 2 && status == TSR_OK; k++) {
        status = find_one(t, options->between.item[k], mark,
                          &restraint->residue[k], err);
        if (status != TSR_OK)
            tsr_wrap(err, status, "between");
    }
    free(mark);
    if (status != TSR_OK)
        return status;
    const tsr_residue *a = &t->residue[restraint->residue[0]];
    const tsr_residue *b = &t->residue[restraint->residue[1]];
    if (a == b || (a->unit >= 0 && a->unit == b->unit))
        return tsr_fail(err, TSR_E_CONFIG,
                        "between: '%s' and '%s' are %s, so that their distance "
                        "cannot change",
                        options->between.item[0], options->between.item[1],
                        a == b ? "the same residue" : "in one rigid part");
    return TSR_OK;
}

static void anchor(const tsr_topology *t, const tsr_conformation *c, int at,
                   int i, double x[3])
{
    double(*backbone)[3] = c->backbone[i];
    if (at == AT_CA || t->residue[i].amino == TSR_GLY) {
        tsr_vec3_copy(x, backbone[TSR_CA]);
    } else if (!tsr_amino_has_side_chain(t->residue[i].amino)) {
        tsr_conformation_cb(t, c, i, x);
    } else {
        double frame[3][3];
        tsr_frame(frame, backbone[TSR_N], backbone[TSR_CA], backbone[TSR_C]);
        tsr_frame_to_global(x, frame, backbone[TSR_CA], c->side[i]);
    }
}

double tsr_restraint_distance(const tsr_topology *topology,
                              const tsr_restraint *restraint,
                              const tsr_conformation *conformation)
{
    double x[2][3];
    for (int k = 0; k < 2; k++)
        anchor(topology, conformation, restraint->at, restraint->residue[k],
               x[k]);
    return tsr_vec3_distance(x[0], x[1]);
}

double tsr_restraint_log(const tsr_restraint *restraint, double distance_ang)
{
    double out =
        fmax(distance_ang - restraint->upper, restraint->lower - distance_ang);
    double z = out > 0.0 ? out * restraint->inverse_width : 0.0;
    return -0.5 * z * z;
}
