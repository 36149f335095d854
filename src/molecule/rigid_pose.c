/* Finds consecutive rigid parts along the chains, and measures their relative
 * pose from the backbone coordinates. */
#include "molecule/rigid_pose.h"

#include "core/vec3.h"

/* Least number of residues of a rigid part and of a tail. The CA of a tail's
 * first residue is fixed relative to the part, and that of the second residue
 * hardly moves. */
enum { MIN_PART = 4, MIN_TAIL = 3 };

const tsr_pose_variable tsr_pose_variables[TSR_N_POSE_VALUE] = {
    {"distance", "Angstrom", "distance of their centres", 0},
    {"from_x", NULL, "x", 1},
    {"from_y", NULL, "y", 1},
    {"from_z", NULL, "z", 1},
    {"to_x", NULL, "x", 2},
    {"to_y", NULL, "y", 2},
    {"to_z", NULL, "z", 2},
    {"twist", "rad",
     "rotation of the second part about the line of the centres", 0}};

const tsr_pose_variable tsr_tail_variables[TSR_N_TAIL_VALUE] = {
    {"distance", "Angstrom", "end-to-end distance", 0},
    {"x", NULL, "direction of the end, x", 0},
    {"y", NULL, "direction of the end, y", 0},
    {"z", NULL, "direction of the end, z", 0}};

/* Returns the first residue of the next rigid part from residue i on, and sets
 * *last to its last residue. n_residue: no further part. */
static int next_part(const tsr_topology *t, int i, int *last)
{
    for (; i < t->n_residue; i = *last + 1) {
        const tsr_residue *r = &t->residue[i];
        *last = i;
        if (r->unit < 0)
            continue;
        while (*last < r->chain_last && t->residue[*last + 1].unit == r->unit)
            ++*last;
        if (*last - i + 1 >= MIN_PART)
            break;
    }
    return i;
}

int tsr_pose_find(const tsr_topology *t, int k, tsr_pose *pose)
{
    int last, first = next_part(t, 0, &last);
    while (first < t->n_residue) {
        int end, begin = next_part(t, last + 1, &end);
        if (begin >= t->n_residue)
            return 0;
        const tsr_residue *a = &t->residue[first], *b = &t->residue[begin];
        int varies = a->unit != b->unit;
        if (varies && k-- == 0) {
            *pose = (tsr_pose){{first, begin}, {last, end}};
            return 1;
        }
        first = begin;
        last = end;
    }
    return 0;
}

int tsr_tail_find(const tsr_topology *t, int k, tsr_tail *tail)
{
    for (int i = 0; i < t->n_residue; i++) {
        const tsr_residue *r = &t->residue[i];
        int ends[2] = {r->chain_first, r->chain_last};
        if (r->unit < 0)
            continue;
        for (int side = 0; side < 2; side++) {
            int step = side == 0 ? -1 : 1, j = i;
            while (j != ends[side] && t->residue[j + step].unit < 0)
                j += step;
            if (j == ends[side] && (j - i) * step >= MIN_TAIL && k-- == 0) {
                *tail = (tsr_tail){i, j};
                return 1;
            }
        }
    }
    return 0;
}

int tsr_only_tails_flexible(const tsr_topology *t)
{
    tsr_pose pose;
    const tsr_residue *r = t->residue;
    int n_tail = 0, last;
    for (int i = 0; i < t->n_residue; i = last + 1) {
        int head = i, foot = last = r[i].chain_last;
        while (head <= last && r[head].unit < 0)
            head++;
        while (foot > head && r[foot].unit < 0)
            foot--;
        if (head > last)
            return 0; /* the whole chain is flexible */
        n_tail += (head > i) + (foot < last);
        for (; head <= foot; head++)
            if (r[head].unit < 0)
                return 0;
    }
    return n_tail > 0 && !tsr_pose_find(t, 0, &pose);
}

static void centre_of(const tsr_conformation *c, int first, int last,
                      double centre[3])
{
    centre[0] = centre[1] = centre[2] = 0.0;
    for (int i = first; i <= last; i++)
        for (int d = 0; d < 3; d++)
            centre[d] += c->backbone[i][TSR_CA][d] / (last - first + 1);
}

/* Unit vector from one point to another, in the frame of a residue. */
static void direction_in(double (*residue)[3], const double from[3],
                         const double to[3], double frame[3][3], double out[3])
{
    double u[3];
    const double origin[3] = {0.0, 0.0, 0.0};
    tsr_vec3_sub(u, to, from);
    tsr_vec3_normalize(u);
    tsr_frame(frame, residue[TSR_N], residue[TSR_CA], residue[TSR_C]);
    tsr_frame_to_local(out, frame, origin, u);
}

void tsr_pose_measure(const tsr_conformation *c, const tsr_pose *pose,
                      double value[TSR_N_POSE_VALUE])
{
    double centre[2][3], frame[3][3], y[2][3];
    for (int p = 0; p < 2; p++)
        centre_of(c, pose->first[p], pose->last[p], centre[p]);
    value[0] = tsr_vec3_distance(centre[0], centre[1]);
    for (int p = 0; p < 2; p++) {
        int joint = p == 0 ? pose->last[0] : pose->first[1];
        direction_in(c->backbone[joint], centre[p], centre[1 - p], frame,
                     value + 1 + 3 * p);
        for (int d = 0; d < 3; d++)
            y[p][d] = centre[p][d] + frame[d][1];
    }
    value[7] = tsr_vec3_torsion(y[0], centre[0], centre[1], y[1]);
}

void tsr_tail_measure(const tsr_conformation *c, const tsr_tail *tail,
                      double value[TSR_N_TAIL_VALUE])
{
    double frame[3][3];
    double(*joint)[3] = c->backbone[tail->joint];
    const double *end = c->backbone[tail->end][TSR_CA];
    value[0] = tsr_vec3_distance(joint[TSR_CA], end);
    direction_in(joint, joint[TSR_CA], end, frame, value + 1);
}
