/* Reads predicted aligned errors. Files hold up to tens of millions of numbers,
 * so the JSON is read as a stream (core/json.h) without building a tree. 2000
 * residues (23 MB) take 0.8 s. */
#include "molecule/parts.h"

#include "core/json.h"
#include "core/text.h"
#include "files/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TOKENS = 20000, NAME_SIZE = 32 };

/* Numbers of a list, which may contain lists. */
typedef struct {
    double *value;
    size_t n;
    int n_row; /* number of inner lists */
} numbers;

/* Raw content of a file. */
typedef struct {
    tsr_pool pool;
    numbers error, first, second, plddt, number;
    char (*chain)[8];
    size_t n_chain;
} content;

static void add_number(tsr_pool *pool, numbers *list, double value)
{
    if ((list->n & (list->n - 1)) == 0) { /* full at 1, 2, 4, 8, ... */
        double *bigger =
            tsr_pool_resize(pool, list->value, 2 * list->n + 1, sizeof *bigger);
        if (bigger == NULL)
            return;
        list->value = bigger;
    }
    list->value[list->n++] = value;
}

static void read_numbers(tsr_json_reader *r, tsr_pool *pool, numbers *list,
                         int depth)
{
    double value;
    if (!tsr_json_open(r, '[')) {
        tsr_json_skip(r);
        return;
    }
    while (!pool->failed && tsr_json_entry(r))
        if (depth == 0 && tsr_json_peek(r) == '[') {
            list->n_row++;
            read_numbers(r, pool, list, depth + 1);
        } else if (tsr_json_read_number(r, &value)) {
            add_number(pool, list, value);
        }
}

static void read_chains(tsr_json_reader *r, content *c)
{
    if (!tsr_json_open(r, '['))
        tsr_json_skip(r);
    else
        while (tsr_json_entry(r)) {
            if ((c->n_chain & (c->n_chain - 1)) == 0) {
                char(*bigger)[8] = tsr_pool_resize(
                    &c->pool, c->chain, 2 * c->n_chain + 1, sizeof *bigger);
                if (bigger == NULL)
                    return;
                c->chain = bigger;
            }
            (void)tsr_json_read_text(r, sizeof *c->chain,
                                     c->chain[c->n_chain++]);
        }
}

static void read_object(tsr_json_reader *r, content *c)
{
    char key[NAME_SIZE];
    while (tsr_json_member(r, sizeof key, key))
        if (strcmp(key, "predicted_aligned_error") == 0 ||
            strcmp(key, "pae") == 0 || strcmp(key, "distance") == 0)
            read_numbers(r, &c->pool, &c->error, 0);
        else if (strcmp(key, "residue1") == 0)
            read_numbers(r, &c->pool, &c->first, 0);
        else if (strcmp(key, "residue2") == 0)
            read_numbers(r, &c->pool, &c->second, 0);
        else if (strcmp(key, "plddt") == 0)
            read_numbers(r, &c->pool, &c->plddt, 0);
        else if (strcmp(key, "token_res_ids") == 0)
            read_numbers(r, &c->pool, &c->number, 0);
        else if (strcmp(key, "token_chain_ids") == 0)
            read_chains(r, c);
        else
            tsr_json_skip(r);
}

/* Fails with the reason why a file is not JSON. Boltz and Chai write NumPy
 * archives, AlphaFold 2 also pickles. */
static tsr_status not_json(const char *path, const char *text, size_t size,
                           long at, tsr_err *err)
{
    const int is_archive = size > 4 && memcmp(text, "PK\3\4", 4) == 0;
    const int is_array = size > 6 && memcmp(text, "\x93NUMPY", 6) == 0;
    char word[TSR_SHELL_SIZE];
    const int is_pickle = size > 2 && text[0] == '\x80' && text[1] < 6;
    if (!is_archive && !is_array && !is_pickle)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a JSON file with predicted aligned "
                        "errors: unexpected character at byte %ld",
                        path, at);
    return tsr_fail(
        err, TSR_E_DATA,
        "'%s' is %s; write its predicted aligned errors as JSON: python3 -c "
        "\"import json, numpy, sys; a = numpy.load(sys.argv[1], "
        "allow_pickle=True)%s; print(json.dumps({'pae': a.tolist()}))\" %s > "
        "pae.json",
        path,
        is_pickle ? "a Python pickle" : "of NumPy, as Boltz and Chai have them",
        is_pickle    ? "['predicted_aligned_error']"
        : is_archive ? "['pae']"
                     : "",
        tsr_text_shell(path, word));
}

static tsr_status read_content(const char *path, content *c, tsr_err *err)
{
    char *text;
    size_t size;
    tsr_status status = tsr_file_read(path, &text, &size, err);
    TSR_TRY(status);
    tsr_json_reader r = {.at = text, .end = text + size};
    if (tsr_json_open(&r, '[') && !tsr_json_entry(&r))
        r.is_bad = 1;
    if (tsr_json_open(&r, '{'))
        read_object(&r, c);
    else
        r.is_bad = 1;
    if (c->pool.failed)
        status = tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    else if (r.is_bad)
        status = not_json(path, text, size, (long)(r.at - text), err);
    free(text);
    return status;
}

static tsr_status copy_matrix(tsr_pool *pool, const content *c, tsr_pae *p,
                              tsr_err *err)
{
    const numbers *e = &c->error;
    size_t n = (size_t)p->n;
    int has_pairs = c->first.n == e->n && c->second.n == e->n && e->n > 0;
    tsr_pool_array(pool, p->error, n * n);
    TSR_TRY(tsr_pool_check(pool, err));
    for (size_t k = 0; k < e->n; k++) {
        size_t row = k / n, column = k % n;
        double i = has_pairs ? c->first.value[k] - 1.0 : (double)row;
        double j = has_pairs ? c->second.value[k] - 1.0 : (double)column;
        if (!(e->value[k] >= 0.0 && e->value[k] < 1e6) || !(i >= 0.0) ||
            !(j >= 0.0) || i >= p->n || j >= p->n)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': value %zu of the predicted aligned errors "
                            "is not an error in Angstrom",
                            p->path, k + 1);
        p->error[(size_t)i * n + (size_t)j] = (float)e->value[k];
    }
    return TSR_OK;
}

/* Copies pLDDT, chains and numbers, if the file gives them for every
 * residue. */
static tsr_status copy_tokens(tsr_pool *pool, const content *c, tsr_pae *p,
                              tsr_err *err)
{
    size_t n = (size_t)p->n;
    if (c->plddt.n == n) {
        tsr_pool_array(pool, p->plddt, n);
        TSR_TRY(tsr_pool_check(pool, err));
        memcpy(p->plddt, c->plddt.value, n * sizeof *p->plddt);
    }
    if (c->n_chain != n || c->number.n != n)
        return TSR_OK;
    tsr_pool_array(pool, p->number, n);
    tsr_pool_array(pool, p->chain, n);
    TSR_TRY(tsr_pool_check(pool, err));
    memcpy(p->chain, c->chain, n * sizeof *p->chain);
    for (size_t i = 0; i < n; i++)
        p->number[i] =
            fabs(c->number.value[i]) < 1e9 ? (int)c->number.value[i] : 0;
    return TSR_OK;
}

/* Checks that the errors form a square matrix. They are stored by row, or with
 * both residues named. */
static tsr_status check_square(const content *c, const char *path, tsr_err *err)
{
    double side = sqrt((double)c->error.n);
    int is_square = c->error.n > 0 && side == floor(side) &&
                    side <= MAX_TOKENS &&
                    (c->error.n_row == 0 || c->error.n_row == side);
    return is_square
               ? TSR_OK
               : tsr_fail(
                     err, TSR_E_DATA,
                     "'%s': %zu predicted aligned errors; a square matrix is "
                     "needed, one row per residue (AlphaFold's files name it "
                     "predicted_aligned_error or pae)%s",
                     path, c->error.n,
                     strstr(tsr_text_file_name(path), "summary") != NULL
                         ? "; a summary file lacks it: it is in the file of "
                           "confidences, or full_data, in the same folder"
                         : "");
}

static tsr_status store_content(tsr_pool *pool, content *c, const char *path,
                                tsr_pae **out, tsr_err *err)
{
    tsr_pae *p;
    TSR_TRY(read_content(path, c, err));
    TSR_TRY(check_square(c, path, err));
    tsr_pool_array(pool, p, 1);
    TSR_TRY(tsr_pool_check(pool, err));
    p->n = (int)sqrt((double)c->error.n);
    p->path = tsr_pool_text(pool, path);
    TSR_TRY(copy_matrix(pool, c, p, err));
    TSR_TRY(copy_tokens(pool, c, p, err));
    *out = p;
    return TSR_OK;
}

tsr_status tsr_pae_read(tsr_pool *pool, const char *path, tsr_pae **out,
                        tsr_err *err)
{
    content c = {0};
    *out = NULL;
    const tsr_status status = store_content(pool, &c, path, out, err);
    tsr_pool_clear(&c.pool);
    return status;
}

double tsr_pae_mean(const tsr_pae *pae, int row_a, int row_b)
{
    size_t n = (size_t)pae->n, a = (size_t)row_a, b = (size_t)row_b;
    return 0.5 *
           ((double)pae->error[a * n + b] + (double)pae->error[b * n + a]);
}

/* ---- finding the file and its rows ---- */

/* Rules that turn the name of a model into the name of its error file: a word
 * and its replacement. The empty word is the end of the name. */
static const struct {
    const char *model, *errors;
} rename_rule[] = {
    {"-model_", "-predicted_aligned_error_"}, /* AlphaFold database */
    {"_unrelaxed_rank_", "_scores_rank_"},    /* ColabFold */
    {"_relaxed_rank_", "_scores_rank_"},
    {"_model_", "_full_data_"}, /* AlphaFold server */
    {"_model", "_confidences"}, /* AlphaFold 3 */
    {"model", "confidences"},
    {"unrelaxed_model", "pae_model"}, /* AlphaFold 2 */
    {"relaxed_model", "pae_model"},
    {"", ""},
    {"", "_pae"},
    {"", "_predicted_aligned_error"},
    {"", "_predicted_aligned_error_v1"},
    {"", "_confidences"}};

static size_t stem_length(const char *path)
{
    static const char *const ending[] = {".gz", ".pdb", ".cif", ".ent",
                                         ".mmcif"};
    size_t n = strlen(path);
    for (size_t k = 0; k < sizeof ending / sizeof *ending; k++) {
        size_t m = strlen(ending[k]);
        if (n > m && strncmp(path + n - m, ending[k], m) == 0)
            n -= m;
    }
    return n;
}

/* The last occurrence of a word in the file name, of which the first n letters
 * of the path count; NULL: not found. */
static const char *find_word(const char *path, size_t n, const char *word)
{
    const size_t m = strlen(word);
    const char *found = NULL, *slash = strrchr(path, '/');
    if (m == 0)
        return path + n;
    for (size_t i = slash == NULL ? 0 : (size_t)(slash - path); i + m <= n; i++)
        if (strncmp(path + i, word, m) == 0)
            found = path + i;
    return found;
}

/* Applies a rule to the first n letters of a path, and appends an ending. NULL:
 * the rule does not apply. */
static char *rename_model(const char *model, size_t n, size_t rule,
                          const char *ending)
{
    const char *at = find_word(model, n, rename_rule[rule].model);
    if (at == NULL)
        return NULL;
    const char *rest = at + strlen(rename_rule[rule].model);
    return tsr_text_format("%.*s%s%.*s%s", (int)(at - model), model,
                           rename_rule[rule].errors, (int)(model + n - rest),
                           rest, ending);
}

char *tsr_pae_find_file(const char *model)
{
    static const char *const ending[] = {".json", ".json.gz"};
    size_t n = stem_length(model);
    for (size_t k = 0; k < sizeof rename_rule / sizeof *rename_rule; k++)
        for (int e = 0; e < 2; e++) {
            char *path = rename_model(model, n, k, ending[e]);
            if (path != NULL && access(path, R_OK) == 0)
                return path;
            free(path);
        }
    return NULL;
}

static void rows_by_name(const tsr_pae *p, const tsr_structure *s, int *row)
{
    for (int i = 0; i < s->n_residue; i++)
        for (int t = 0; t < p->n && row[i] < 0; t++)
            if (p->number[t] == s->residue[i].number &&
                strcmp(p->chain[t], s->residue[i].chain) == 0)
                row[i] = t;
}

/* Matches rows in order, or by number for a single chain. Returns 0 if neither
 * fits. */
static int rows_by_order(const tsr_pae *p, const tsr_structure *s, int *row)
{
    const int is_whole = p->n == s->n_residue;
    int fits = is_whole || (s->n_chain == 1 && p->chain == NULL);
    for (int i = 0; i < s->n_residue && !is_whole; i++)
        fits &= s->residue[i].number >= 1 && s->residue[i].number <= p->n;
    for (int i = 0; i < s->n_residue && fits; i++)
        row[i] = is_whole ? i : s->residue[i].number - 1;
    return fits;
}

tsr_status tsr_pae_rows(const tsr_pae *pae, const tsr_structure *s, int *row,
                        tsr_err *err)
{
    int missing = 0;
    for (int i = 0; i < s->n_residue; i++)
        row[i] = -1;
    if (pae->chain != NULL)
        rows_by_name(pae, s, row);
    while (missing < s->n_residue && row[missing] >= 0)
        missing++;
    if (missing == s->n_residue || rows_by_order(pae, s, row))
        return TSR_OK;
    if (pae->chain != NULL)
        return tsr_fail(
            err, TSR_E_DATA,
            "'%s' has no predicted aligned errors of residue %s:%d of '%s', "
            "and rows for %d residues and ligand atoms where the model has %d "
            "residues: give the file of this model, with the same chain names",
            pae->path, s->residue[missing].chain, s->residue[missing].number,
            s->path, pae->n, s->n_residue);
    return tsr_fail(err, TSR_E_DATA,
                    "'%s' has predicted aligned errors of %d residues, but "
                    "'%s' has %d residues: give the file of this model",
                    pae->path, pae->n, s->path, s->n_residue);
}
