/* Exported models are the chosen draws, superposed, with the side chains of the
 * input put back. */
#include "analysis/export.h"
#include "analysis/shape.h"
#include "run_frames.h"
#include "tests/test.h"

OWNED(tsr_all_atoms)
OWNED(tsr_model_atoms)
OWNED(tsr_structure)

enum { N_CHAIN = 2, N_FRAME = 6 };

/* Lysine, alanine with all heavy atoms, named as other programs do, of a real
 * chain's geometry, and the model of it: the centre of each side chain beyond
 * CB. */
static const char input_text[] =
    "ATOM      1  N   LYN A  10      26.465  27.452  -2.490\n"
    "ATOM      2  CA  LYN A  10      25.497  26.862  -1.573\n"
    "ATOM      3  C   LYN A  10      26.193  26.179  -0.437\n"
    "ATOM      4  O   LYN A  10      27.270  25.549  -0.624\n"
    "ATOM      5  CB  LYN A  10      24.583  25.804  -2.239\n"
    "ATOM      6  CG  LYN A  10      25.091  24.375  -2.409\n"
    "ATOM      7  CD  LYN A  10      24.019  23.428  -2.996\n"
    "ATOM      8  CE  LYN A  10      23.591  24.028  -4.354\n"
    "ATOM      9  NZ  LYN A  10      24.299  23.972  -5.611\n"
    "ATOM     10  N   ALA A  11      25.585  26.331   0.737\n"
    "ATOM     11  CA  ALA A  11      26.124  25.748   1.949\n"
    "ATOM     12  C   ALA A  11      25.029  25.144   2.799\n"
    "ATOM     13  O   ALA A  11      23.862  25.541   2.736\n"
    "ATOM     14  CB  ALA A  11      26.860  26.797   2.766\n"
    "ATOM     15  OC2 ALA A  11      25.354  24.215   3.590\n"
    "END\n";

/* Model atoms of it: N CA C O CB SC, N CA C O CB. */
enum { N_MODEL_ATOM = 11, SC = 5 };

static void write_model(const char *path, const tsr_structure *input,
                        double (*xyz)[3])
{
    static const int of[N_MODEL_ATOM] = {0, 1, 2, 3, 4, -1, 9, 10, 11, 12, 13};
    FILE *out = fopen(path, "w");
    double mass = 0.0;
    assert_non_null(out);
    memset(xyz[SC], 0, sizeof xyz[SC]);
    for (int k = 5; k < 9; k++) {
        const double m = tsr_atom_mass(input->atom[k].z);
        mass += m;
        for (int d = 0; d < 3; d++)
            xyz[SC][d] += m * input->atom[k].xyz[d];
    }
    for (int i = 0; i < N_MODEL_ATOM; i++) {
        for (int d = 0; d < 3; d++)
            xyz[i][d] = i == SC ? xyz[i][d] / mass : input->atom[of[i]].xyz[d];
        fprintf(out,
                "ATOM  %5d  %-3s %s A%4d    %8.3f%8.3f%8.3f  1.00  0.00      "
                "     %c\n",
                i + 1, i == SC ? "SC" : input->atom[of[i]].name,
                i < 6 ? "LYS" : "ALA", i < 6 ? 10 : 11, xyz[i][0], xyz[i][1],
                xyz[i][2], i == SC ? 'C' : input->atom[of[i]].name[0]);
    }
    fclose(out);
}

typedef struct {
    tsr_structure *input;
    double model[N_MODEL_ATOM][3];
    tsr_frames *frames;
} fixture;

/* Turned about an axis through the origin, a little more every draw. */
static void turn(double x[3], double angle)
{
    const double from[3] = {0, 0, 0}, to[3] = {1, 2, 3};
    tsr_motion m;
    tsr_motion_about(&m, from, to, angle);
    tsr_motion_apply(&m, x);
}

static void put_draw(const void *context, int chain, int state, int draw,
                     gsl_rng *rng, double (*x)[3])
{
    const fixture *f = context;
    (void)state, (void)rng;
    for (int i = 0; i < N_MODEL_ATOM; i++) {
        tsr_vec3_copy(x[i], f->model[i]);
        turn(x[i], 0.3 * draw + chain);
    }
}

static void make(fixture *f)
{
    const char *input = io_text("input.pdb", input_text);
    OK(tsr_structure_read(input, &f->input, &err));
    assert_int_equal(f->input->n_atom, 15);
    write_model(io_path("model.pdb"), f->input, f->model);
    f->frames = run_frames(N_CHAIN, 1, N_MODEL_ATOM, N_FRAME, 10, put_draw, f);
}

static void clear(fixture *f)
{
    tsr_structure_free(f->input);
    tsr_frames_free(f->frames);
}

TEST(test_frames)
{
    fixture f;
    const tsr_drawn_frame *frame;
    const float *xyz;
    make(&f);
    assert_int_equal(tsr_frames_list(f.frames, &frame), N_CHAIN * N_FRAME);
    const int order[] = {0, 11, 3, 7, 6, 5};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        const int at = order[i];
        assert_int_equal(frame[at].chain, at / N_FRAME);
        assert_int_equal(frame[at].draw, 10 * (at % N_FRAME));
        OK(tsr_frames_read(f.frames, at, &xyz, &err));
        for (int k = 0; k < N_MODEL_ATOM; k++) {
            double x[3] = {f.model[k][0], f.model[k][1], f.model[k][2]};
            turn(x, 0.3 * (at % N_FRAME) + at / N_FRAME);
            for (int d = 0; d < 3; d++)
                assert_near((double)xyz[3 * k + d], x[d], 1e-5);
        }
    }
    clear(&f);
}

/* A damaged file is left out, and said. */
TEST(test_damaged_frames)
{
    fixture f;
    const tsr_drawn_frame *frame;
    tsr_frames *frames;
    FILE *stream = text_begin();
    tsr_log *log = tsr_log_new(stream, TSR_LOG_INFO);
    make(&f);
    io_text("trajectory-002.h5", "no HDF5");
    OK(tsr_frames_open(io_dir, log, &frames, &err));
    tsr_log_free(log);
    char *told = text_end(stream);
    assert_has(told, "1 trajectory is left out: ");
    assert_has(told, "trajectory-002.h5");
    assert_int_equal(tsr_frames_list(frames, &frame), N_CHAIN * N_FRAME);
    tsr_frames_free(frames);
    io_text("model.pdb", "ATOM      1  CA  ALA A   1       0.000   0.000   "
                         "0.000  1.00  0.00           C\n");
    FAILS(tsr_frames_open(io_dir, NULL, &frames, &err), TSR_E_DATA,
          "has 11 atoms");
    assert_null(frames);
    clear(&f);
}

/* The drawn conformation is the input's, turned: so are all its atoms. */
TEST(test_all_atoms)
{
    fixture f;
    tsr_all_atoms *all;
    double xyz[15][3], drawn[N_MODEL_ATOM][3];
    make(&f);
    OK(tsr_all_atoms_new(tsr_frames_atoms(f.frames), f.input, &all, &err));
    const tsr_model_atoms *list = tsr_all_atoms_list(all);
    assert_int_equal(list->n_atom, 15);
    memcpy(drawn, f.model, sizeof drawn);
    for (int i = 0; i < N_MODEL_ATOM; i++)
        turn(drawn[i], 1.0);
    tsr_all_atoms_place(all, (const double(*)[3])drawn, xyz);
    for (int i = 0; i < 15; i++) {
        double x[3] = {f.input->atom[i].xyz[0], f.input->atom[i].xyz[1],
                       f.input->atom[i].xyz[2]};
        turn(x, 1.0);
        assert_string_equal(list->atom[i].name, f.input->atom[i].file_name);
        /* OXT is put opposite O, not where the input had it */
        assert_near(tsr_vec3_distance(x, xyz[i]), 0.0, i == 14 ? 0.1 : 1e-9);
    }
    /* another centre: the side chain turns towards it and keeps its bonds */
    double away[3], ca[3], cb[3];
    tsr_motion half;
    tsr_vec3_copy(ca, f.model[1]);
    tsr_vec3_copy(cb, f.model[4]);
    tsr_motion_about(&half, ca, cb, 2.0);
    memcpy(drawn, f.model, sizeof drawn);
    tsr_motion_apply(&half, drawn[SC]);
    tsr_all_atoms_place(all, (const double(*)[3])drawn, xyz);
    for (int i = 5; i < 9; i++) {
        tsr_vec3_copy(away, f.input->atom[i].xyz);
        tsr_motion_apply(&half, away);
        assert_near(tsr_vec3_distance(away, xyz[i]), 0.0, 1e-9);
    }
    for (int i = 5; i < 9; i++)
        assert_near(
            tsr_vec3_distance(xyz[i], xyz[i - 1]),
            tsr_vec3_distance(f.input->atom[i].xyz, f.input->atom[i - 1].xyz),
            1e-9);
    tsr_all_atoms_free(all);
    clear(&f);
}

/* The ring of a proline stays closed where the angle at CA was drawn. */
TEST(test_proline)
{
    static const char text[] =
        "ATOM      1  N   PRO A 102       4.691  -0.753   8.894  1.00"
        "  0.00           N\n"
        "ATOM      2  CA  PRO A 102       5.035   0.586   8.407  1.00"
        "  0.00           C\n"
        "ATOM      3  C   PRO A 102       6.486   0.636   7.951  1.00"
        "  0.00           C\n"
        "ATOM      4  O   PRO A 102       7.356  -0.047   8.495  1.00"
        "  0.00           O\n"
        "ATOM      5  CB  PRO A 102       4.794   1.484   9.629  1.00"
        "  0.00           C\n"
        "ATOM      6  CG  PRO A 102       3.815   0.731  10.469  1.00"
        "  0.00           C\n"
        "ATOM      7  CD  PRO A 102       4.119  -0.725  10.253  1.00"
        "  0.00           C\n";
    enum { N, CA, C, O, CB, CG, CD, N_ATOM };
    static const int ring[][2] = {
        {N, CA}, {CA, CB}, {CB, CG}, {CG, CD}, {CD, N}};
    FREED(tsr_structure) input;
    FREED(tsr_model_atoms) model;
    FREED(tsr_all_atoms) all;
    tsr_motion open;
    double drawn[N_ATOM][3], xyz[N_ATOM][3], side[3], axis[3], other[3];
    const char *path = io_text("proline.pdb", text);
    if (tsr_structure_read(path, &input, &err) != TSR_OK ||
        tsr_model_atoms_read(path, &model, &err) != TSR_OK ||
        tsr_all_atoms_new(model, input, &all, &err) != TSR_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < N_ATOM; i++)
        tsr_vec3_copy(drawn[i], input->atom[i].xyz);
    /* N-CA-C wider by 6 degrees, within its plane */
    tsr_vec3_sub(side, drawn[N], drawn[CA]);
    tsr_vec3_sub(other, drawn[C], drawn[CA]);
    tsr_vec3_cross(axis, side, other);
    for (int d = 0; d < 3; d++)
        other[d] = drawn[CA][d] + axis[d];
    tsr_motion_about(&open, drawn[CA], other, 0.105);
    tsr_motion_apply(&open, drawn[C]);
    tsr_all_atoms_place(all, (const double(*)[3])drawn, xyz);
    for (size_t k = 0; k < COUNT_OF(ring); k++) {
        const int a = ring[k][0], b = ring[k][1];
        assert_near(tsr_vec3_distance(xyz[a], xyz[b]),
                    tsr_vec3_distance(input->atom[a].xyz, input->atom[b].xyz),
                    1e-9);
    }
}

/* Exported models open again, with the names and the order of the input, and
 * superposed: the draws are one conformation, turned. */
TEST(test_models)
{
    fixture f;
    tsr_all_atoms *all;
    make(&f);
    OK(tsr_all_atoms_new(tsr_frames_atoms(f.frames), f.input, &all, &err));
    static const char *const name[] = {"out.pdb", "out.cif"};
    for (int format = TSR_MODEL_PDB; format <= TSR_MODEL_CIF; format++) {
        const tsr_export_options options = {.format = (tsr_model_format)format,
                                            .name = "draws",
                                            .all = all,
                                            .state = -1};
        CLEARED(tsr_draw_choice) choice;
        FREED(tsr_structure) back;
        int n_model;
        FILE *out = fopen(io_path(name[format]), "w");
        OK(tsr_draw_choice_parse("1/0:20,0/50", &choice, &err));
        OK(tsr_export_models(f.frames, &choice, &options, out, &n_model, &err));
        fclose(out);
        assert_int_equal(n_model, 4);
        OK(tsr_structure_read(io_path(name[format]), &back, &err));
        assert_int_equal(back->n_model, 3); /* after the first */
        assert_int_equal(back->n_atom, 15);
        assert_string_equal(back->residue[0].file_name, "LYN");
        assert_string_equal(back->atom[14].file_name, "OC2");
        double first[15][3], theirs[15][3];
        for (int i = 0; i < 15; i++) {
            assert_string_equal(back->atom[i].file_name,
                                f.input->atom[i].file_name);
            assert_int_equal(back->atom[i].z, f.input->atom[i].z);
            tsr_vec3_copy(first[i], back->atom[i].xyz);
            tsr_vec3_copy(theirs[i], f.input->atom[i].xyz);
        }
        tsr_motion motion;
        /* OXT apart, equal up to the digits of the file */
        assert_near(tsr_superpose(14, NULL, (const double(*)[3])theirs,
                                  (const double(*)[3])first, &motion),
                    0.0, 2e-3);
    }
    tsr_all_atoms_free(all);
    clear(&f);
}

TEST(test_superpose)
{
    double a[5][3] = {{0, 0, 0}, {1, 0, 0}, {0, 2, 0}, {0, 0, 3}, {1, 1, 1}};
    double b[5][3];
    tsr_motion to, back;
    const double from[3] = {1, -2, 0.5}, axis[3] = {0.3, 1, 2};
    tsr_motion_about(&to, from, axis, 2.5);
    for (int i = 0; i < 5; i++) {
        tsr_vec3_copy(b[i], a[i]);
        tsr_motion_apply(&to, b[i]);
        b[i][1] += 7.0;
    }
    assert_near(tsr_superpose(5, NULL, (const double(*)[3])a,
                              (const double(*)[3])b, &back),
                0.0, 1e-7);
    for (int i = 0; i < 5; i++) {
        tsr_motion_apply(&back, b[i]);
        assert_near(tsr_vec3_distance(a[i], b[i]), 0.0, 1e-9);
    }
    /* a mirror image cannot be reached; what is left is what is returned */
    for (int i = 0; i < 5; i++)
        b[i][0] = -a[i][0], b[i][1] = a[i][1], b[i][2] = a[i][2];
    double rmsd = tsr_superpose(5, NULL, (const double(*)[3])a,
                                (const double(*)[3])b, &back);
    double sum = 0.0;
    for (int i = 0; i < 5; i++) {
        tsr_motion_apply(&back, b[i]);
        sum += tsr_vec3_distance2(a[i], b[i]) / 5;
    }
    assert_near(rmsd, sqrt(sum), 1e-9);
    assert_true(rmsd > 0.1);
}

TEST(test_choice)
{
    enum { N = 20 };
    static const struct {
        const char *text;
        const char *chosen; /* of draws 0..9 of chain 0, then of chain 1 */
    } good[] = {
        {"all", "11111111111111111111"},
        {"3", "00010000000001000000"},
        {"1/3", "00000000000001000000"},
        {"2:4", "00111000000011100000"},
        {"0/1:9:4", "01000100010000000000"},
        {"best", "00000001000000000000"},
        {"even:2", "00000100000000010000"},
        {"0,0/9,0", "10000000011000000000"},
        {"even:100", "11111111111111111111"},
    };
    static const char *const wrong[] = {
        "",       "x",  "1-2", "4:2",   "1:2:0", "even:",
        "even:0", "1,", "-1",  "best2", "1/2/3", "99999999999999999999"};
    int chain[N];
    long draw[N];
    double lp[N];
    char is_chosen[N];
    tsr_draw_choice choice;
    for (int i = 0; i < N; i++) {
        chain[i] = i / 10;
        draw[i] = i % 10;
        lp[i] = i == 7 ? 1.0 : i == 0 ? (double)NAN : -i;
    }
    for (size_t g = 0; g < COUNT_OF(good); g++) {
        char said[N + 1] = "";
        OK(tsr_draw_choice_parse(good[g].text, &choice, &err));
        tsr_draw_choice_apply(&choice, N, chain, draw, lp, is_chosen);
        for (int i = 0; i < N; i++)
            said[i] = is_chosen[i] ? '1' : '0';
        assert_string_equal(said, good[g].chosen);
        tsr_draw_choice_clear(&choice);
    }
    for (size_t w = 0; w < COUNT_OF(wrong); w++) {
        if (tsr_draw_choice_parse(wrong[w], &choice, &err) != TSR_E_USAGE)
            fail_msg("'%s' is taken", wrong[w]);
        tsr_draw_choice_clear(&choice);
    }
}

static test_fixture around_each = {io_setup, io_teardown};
