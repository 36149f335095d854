/* Predicted aligned errors are read from the forms that programs write, matched
 * to their model and its residues, or refused. */
#include "molecule/parts.h"
#include "tests/io_files.h"
#include "tests/test.h"

OWNED(tsr_structure)

static const char demo[] = "configs/demo/two_domain.pdb"; /* linker 51 to 64 */
enum { DEMO = 114 };

static tsr_structure *read_demo(void)
{
    tsr_structure *s;
    OK(tsr_structure_read(demo, &s, &err));
    assert_int_equal(s->n_residue, DEMO);
    return s;
}

TEST(formats)
{
    static const char *const text[] = {
        "[{\"predicted_aligned_error\": [[0, 5], [7.0, 0]], \"max\": 31.75}]",
        "[{\"residue1\": [1, 1, 2, 2], \"residue2\": [1, 2, 1, 2],"
        " \"distance\": [0.0, 5.0, 7.0, 0.0], \"max\": 31.75}]",
        "{\"max_pae\": 3e1, \"x\": {\"a\": [null, true, \"]\\\"\"]},\n"
        " \"pae\": [[0, 5], [7, 0]], \"plddt\": [80.5, 40]}",
        "{\"pae\": [[0,5],[7,0]], \"token_chain_ids\": [\"B\", \"A\"],"
        " \"token_res_ids\": [3, 4]}"};
    tsr_pae *pae;
    tsr_pool pool = {0};
    for (int k = 0; k < 4; k++) {
        OK(tsr_pae_read(&pool, io_text("pae.json", text[k]), &pae, &err));
        assert_int_equal(pae->n, 2);
        assert_true(tsr_pae_mean(pae, 0, 1) == 6.0);
        assert_true(tsr_pae_mean(pae, 1, 1) == 0.0);
        assert_int_equal(pae->plddt != NULL, k == 2);
        assert_int_equal(pae->chain != NULL, k == 3);
        tsr_pool_clear(&pool);
    }
    unlink(io_text("pae.json", ""));
}

TEST(refused)
{
    static const char *const text[] = {
        "q I sigma",       "{\"plddt\": [1]}",          "{\"pae\": [[0, 1], [1",
        "{\"pae\": [[0]",  "{\"pae\": [[0, 1, 2]]}",    "{\"pae\": [[0], [1]]}",
        "{\"pae\": [-1]}", "{\"pae\": [[0, 1, 1, 0]]}", "[]",
        "{\"pae\": \"x\"}"};
    tsr_pae *pae;
    tsr_pool pool = {0};
    for (size_t k = 0; k < COUNT_OF(text); k++) {
        const char *path = io_text("pae.json", text[k]);
        FAILS(tsr_pae_read(&pool, path, &pae, &err), TSR_E_DATA, path);
        assert_null(pae);
        unlink(path);
        tsr_pool_clear(&pool);
    }
    assert_int_equal(tsr_pae_read(&pool, "/nowhere", &pae, &err),
                     TSR_E_NOINPUT);
}

/* Files of other kinds: what to do is said. */
TEST(other_files)
{
    static const struct {
        const char *name, *text, *says;
    } file[] = {{"a.npz", "PK\3\4 ...", "['pae']; print(json.dumps"},
                {"a.npy", "\x93NUMPY ...",
                 "numpy.load(sys.argv[1], allow_pickle=True);"},
                {"a';import os;'.npy", "\x93NUMPY ...",
                 "a'\\'';import os;'\\''.npy' > "},
                {"a.pkl", "\x80\4\x95 ...", "a Python pickle"},
                {"a_summary_confidences.json", "{\"ptm\": 0.7, \"iptm\": null}",
                 "a summary file lacks it"}};
    tsr_pae *pae;
    tsr_pool pool = {0};
    for (size_t k = 0; k < COUNT_OF(file); k++) {
        const char *path = io_text(file[k].name, file[k].text);
        FAILS(tsr_pae_read(&pool, path, &pae, &err), TSR_E_DATA, file[k].says);
        unlink(path);
        tsr_pool_clear(&pool);
    }
}

/* Tokens of AlphaFold 3: a ligand's atoms come before or after the residues.
 * Where they name another chain than the model does, there is no order to go
 * by. */
TEST(tokens_have_names)
{
    enum { LIGAND = 12, N = DEMO + LIGAND };
    FREED(tsr_structure) s = read_demo();
    char chain[N][8];
    int number[N], row[DEMO];
    tsr_pae pae = {.n = N, .chain = chain, .number = number};
    pae.path = io_dir;
    for (int t = 0; t < N; t++) {
        snprintf(chain[t], sizeof chain[t], t < LIGAND ? "L" : "A");
        number[t] = t < LIGAND ? 1 : t - LIGAND + 1;
    }
    OK(tsr_pae_rows(&pae, s, row, &err));
    for (int i = 0; i < DEMO; i++)
        assert_int_equal(row[i], i + LIGAND);
    for (int t = LIGAND; t < N; t++)
        chain[t][0] = 'B';
    FAILS(tsr_pae_rows(&pae, s, row, &err), TSR_E_DATA, "residue A:1");
}

/* Names that programs give model and errors. */
TEST(beside)
{
    static const char *const pair[][2] = {
        {"AF-P1-F1-model_v4.pdb", "AF-P1-F1-predicted_aligned_error_v4.json"},
        {"x_unrelaxed_rank_001_m.pdb", "x_scores_rank_001_m.json"},
        {"fold_a_model_0.cif", "fold_a_full_data_0.json"},
        {"a_model.cif.gz", "a_confidences.json"},
        {"b_model.cif", "b_confidences.json.gz"},
        {"model.cif", "confidences.json"},
        {"model.pdb", "model.json"}};
    for (size_t k = 0; k < COUNT_OF(pair); k++) {
        const char *model = format("%s/%s", io_dir, pair[k][0]);
        assert_null(tsr_pae_find_file(model));
        const char *path = io_text(pair[k][1], "{}");
        char *found = tsr_pae_find_file(model);
        assert_non_null(found);
        assert_string_equal(found, path);
        free(found);
        unlink(path);
    }
}

/* Rows by chain and number; in order; by number where residues were cut off. */
TEST(rows)
{
    FREED(tsr_structure) s = read_demo();
    static float error[DEMO * DEMO];
    static char chain[DEMO][8];
    static int number[DEMO];
    int row[DEMO];
    tsr_pae pae = {.path = io_dir, .n = DEMO, .error = error};
    OK(tsr_pae_rows(&pae, s, row, &err));
    assert_int_equal(row[113], 113);
    s->n_residue = 60;
    s->residue += 10; /* numbers 11 to 70 of 114 */
    OK(tsr_pae_rows(&pae, s, row, &err));
    assert_int_equal(row[0], 10);
    for (int t = 0; t < DEMO; t++) {
        strcpy(chain[t], "A");
        number[t] = DEMO - t;
    }
    pae.chain = chain;
    pae.number = number;
    OK(tsr_pae_rows(&pae, s, row, &err));
    assert_int_equal(row[0], DEMO - 11);
    pae.chain = NULL;
    s->residue[3].number = 500;
    assert_int_equal(tsr_pae_rows(&pae, s, row, &err), TSR_E_DATA);
    s->residue -= 10;
    s->n_residue = DEMO;
}
