/* Rigid poses and tails are found, and their coordinates describe the motion of
 * the parts. */
#include "core/vec3.h"
#include "molecule/rigid_pose.h"
#include "tests/model_sample.h"
#include "tests/test.h"

/* Two tails, two linkers, a part of two residues that is too short for one. */
static const char sequence[] = "GSTKAAAAAKGSTVKGGAAGKLAAAAAGKS";

typedef struct {
    tsr_prior_table table;
    tsr_topology *t;
    tsr_conformation *c;
} fixture;

static void open_fixture(fixture *f)
{
    char text[4][16] = {"A:1-4", "A:10-17", "A:20-22", "A:28-30"};
    char *item[4] = {text[0], text[1], text[2], text[3]};
    const tsr_strings flexible = {4, item};
    sample_prior_table(&f->table);
    sample_chain(sequence, &flexible, &f->table, &f->t, &f->c);
}

TEST(finds)
{
    fixture f;
    open_fixture(&f);
    tsr_pose pose;
    tsr_tail tail;
    assert_true(tsr_pose_find(f.t, 0, &pose));
    assert_ints(pose.first[0], 4, pose.last[0], 8, pose.first[1], 22,
                pose.last[1], 26);
    assert_false(tsr_pose_find(f.t, 1, &pose));
    assert_true(tsr_tail_find(f.t, 0, &tail));
    assert_ints(tail.joint, 4, tail.end, 0);
    assert_true(tsr_tail_find(f.t, 1, &tail));
    assert_ints(tail.joint, 26, tail.end, 29);
    assert_false(tsr_tail_find(f.t, 2, &tail));
}

/* Tails alone: nothing between two rigid parts, and something that is rigid. */
TEST(tails_alone)
{
    static const struct {
        const char *range[2];
        int n, alone;
    } known[] = {{{"A:1-4", "A:28-30"}, 2, 1},
                 {{"A:29-30"}, 1, 1},
                 {{"A:1-4", "A:10-17"}, 2, 0},
                 {{"A:12-13"}, 1, 0},
                 {{"A:1-30"}, 1, 0}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        fixture f;
        char text[2][16], *item[2] = {text[0], text[1]};
        for (int k = 0; k < known[i].n; k++)
            snprintf(text[k], sizeof text[k], "%s", known[i].range[k]);
        const tsr_strings flexible = {known[i].n, item};
        sample_prior_table(&f.table);
        sample_chain(sequence, &flexible, &f.table, &f.t, &f.c);
        assert_int_equal(tsr_only_tails_flexible(f.t), known[i].alone);
    }
}

static void all_values(const fixture *f, double value[16])
{
    tsr_pose pose;
    tsr_tail tail;
    tsr_pose_find(f->t, 0, &pose);
    tsr_pose_measure(f->c, &pose, value);
    for (int k = 0; k < 2; k++) {
        tsr_tail_find(f->t, k, &tail);
        tsr_tail_measure(f->c, &tail, value + 8 + 4 * k);
    }
}

/* Moving all of it changes nothing; directions are unit vectors. */
TEST(sees_no_rigid_motion)
{
    fixture f;
    double before[16], after[16];
    const double from[3] = {1.0, -2.0, 3.0}, to[3] = {4.0, 5.0, -7.0};
    tsr_motion motion;
    open_fixture(&f);
    all_values(&f, before);
    tsr_motion_about(&motion, from, to, 1.1);
    motion.shift[0] += 20.0;
    tsr_conformation_move(f.t, f.c, 0, f.t->n_residue - 1, &motion);
    all_values(&f, after);
    for (int i = 0; i < 16; i++)
        assert_near(after[i], before[i], 1e-11);
    for (int k = 0; k < 4; k++) {
        const int at[4] = {1, 4, 9, 13};
        assert_near(tsr_vec3_norm(after + at[k]), 1.0, 1e-12);
    }
}

/* Six motions of the second part: each is seen by the numbers that it should
 * be, and a turn about the line of the centres by the twist alone. */
TEST(sees_six)
{
    fixture f;
    tsr_pose pose;
    double before[8], after[8], centre[2][3] = {{0}}, other[3];
    open_fixture(&f);
    tsr_pose_find(f.t, 0, &pose);
    tsr_pose_measure(f.c, &pose, before);
    for (int p = 0; p < 2; p++)
        for (int i = pose.first[p]; i <= pose.last[p]; i++)
            for (int d = 0; d < 3; d++)
                centre[p][d] += f.c->backbone[i][TSR_CA][d] / 5.0;
    tsr_conformation *moved = new_conformation(f.t);
    tsr_motion motion;
    tsr_conformation_copy(f.t, moved, f.c, 0, f.t->n_residue);
    tsr_motion_about(&motion, centre[0], centre[1], 0.3);
    tsr_conformation_move(f.t, moved, pose.first[1], pose.last[1], &motion);
    tsr_pose_measure(moved, &pose, after);
    for (int i = 0; i < 7; i++)
        assert_near(after[i], before[i], 1e-11);
    assert_true(fabs(remainder(after[7] - before[7] - 0.3, 2.0 * TSR_PI)) <
                1e-10);
    /* along the line: the distance alone */
    tsr_conformation_copy(f.t, moved, f.c, 0, f.t->n_residue);
    motion = (tsr_motion){.rotation = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (int d = 0; d < 3; d++)
        motion.shift[d] = 0.5 * (centre[1][d] - centre[0][d]);
    tsr_conformation_move(f.t, moved, pose.first[1], pose.last[1], &motion);
    tsr_pose_measure(moved, &pose, after);
    assert_near(after[0], 1.5 * before[0], 1e-10);
    for (int i = 1; i < 8; i++)
        assert_near(after[i], before[i], 1e-11);
    /* turned about its own centre: the second direction, not the first */
    for (int axis = 0; axis < 2; axis++) {
        double change = 0.0, line[3], across[3] = {axis == 0, axis == 1, 0.3};
        tsr_vec3_sub(line, centre[1], centre[0]);
        tsr_vec3_cross(other, line, across);
        for (int d = 0; d < 3; d++)
            other[d] += centre[1][d];
        tsr_conformation_copy(f.t, moved, f.c, 0, f.t->n_residue);
        tsr_motion_about(&motion, centre[1], other, 0.2);
        tsr_conformation_move(f.t, moved, pose.first[1], pose.last[1], &motion);
        tsr_pose_measure(moved, &pose, after);
        for (int i = 0; i < 4; i++)
            assert_near(after[i], before[i], 1e-11);
        for (int i = 4; i < 7; i++)
            change += pow(after[i] - before[i], 2.0);
        assert_near(sqrt(change), 2.0 * sin(0.1), 1e-10);
    }
}
