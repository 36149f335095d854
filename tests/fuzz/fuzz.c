/* Fuzz targets: one table, one row a kind of file that comes from elsewhere.
 *
 * LLVMFuzzerTestOneInput writes the input to a file in a scratch folder and
 * lets the readers of the target, or a command, read it. clang links libFuzzer
 * (make fuzz); without it main replays files, and with --mutate N
 * also N damaged copies of each. Beside crashes and reports of the sanitizers,
 * a finding is
 *   - an internal error, or an error without a message;
 *   - a control character in a message, which could command a terminal;
 *   - a result that breaks a promise of the reader's header.
 * The target is the name after the last '-' of the program's name, or
 * TESSERA_FUZZ. TESSERA_FUZZ_RUNS names a folder with the runs to be damaged
 * (tests/fuzz/seeds.sh). */
#define _XOPEN_SOURCE 700 /* nftw */
#include "commands/command.h"
#include "core/pool.h"
#include "files/checksum.h"
#include "files/dcd.h"
#include "files/file.h"
#include "maps/density_map.h"
#include "molecule/parts.h"
#include "molecule/prior_table.h"
#include "posterior/config.h"
#include "scattering/form_factor.h"
#include "scattering/saxs.h"
#include "store/hdf5_object.h"
#include "store/hdf5_store.h"
#include "store/trace.h"

#include <ftw.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "FUZZ: %s\n", what);
    abort();
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
void __sanitizer_set_death_callback(void (*callback)(void));

/* The child process that tries a file of HDF5 may die of it, and is no finding
 * for libFuzzer to write. */
static void forget_findings(void)
{
    __sanitizer_set_death_callback(NULL);
}
#else
static void forget_findings(void) {}
#endif

/* No control characters but the ends of lines and tabulators. */
static void check_text(const char *text)
{
    for (; *text != '\0'; text++)
        require((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t',
                "a control character in a message");
}

/* Returns 1 for success. */
static int good(tsr_status status, const tsr_err *err)
{
    if (status == TSR_OK)
        return 1;
    require(status != TSR_E_INTERNAL, err->message);
    require(err->message[0] != '\0', "an error without a message");
    check_text(err->message);
    return 0;
}

/* ---- readers ---- */

static char scratch[256], runs[1024]; /* folders */

static void try_structure(const char *path)
{
    tsr_structure *s = NULL;
    tsr_atoms *a = NULL;
    tsr_model_atoms *m = NULL;
    tsr_parts *parts = NULL;
    double(*xyz)[3] = NULL;
    int n_model = 0;
    tsr_err err = {0};

    if (good(tsr_structure_read(path, &s, &err), &err))
        for (int i = 0; i < s->n_atom; i++)
            for (int k = 0; k < 3; k++)
                require(isfinite(s->atom[i].xyz[k]), "coordinate");
    tsr_structure_free(s);
    s = NULL;
    if (good(tsr_structure_read_any(path, &s, &err), &err) &&
        good(tsr_parts_find(s, NULL, (tsr_parts_choices){0}, &parts, &err),
             &err))
        tsr_parts_free(parts);
    tsr_structure_free(s);
    (void)good(tsr_atoms_read(path, &a, &err), &err);
    tsr_atoms_free(a);
    a = NULL;
    if (good(tsr_atoms_read_models(path, &a, &n_model, &xyz, &err), &err))
        for (int i = 0; i < n_model * a->n_atom; i++)
            require(isfinite(xyz[i][0]), "coordinate of a model");
    tsr_atoms_free(a);
    if (good(tsr_model_atoms_read(path, &m, &err), &err)) {
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);
        tsr_pool pool = {0};
        tsr_cif_labels labels;
        if (good(tsr_cif_labels_make(m, &pool, &labels, &err), &err))
            for (int k = TSR_MODEL_PDB; k <= TSR_MODEL_CIF; k++) {
                tsr_model_spec spec = {.format = (tsr_model_format)k,
                                       .name = "fuzz",
                                       .atoms = m,
                                       .labels = &labels};
                tsr_model_begin(&spec, "fuzz", out);
                (void)good(tsr_model_write(&spec, 1, "one",
                                           (const double(*)[3])m->xyz, out,
                                           &err),
                           &err);
                tsr_model_end(&spec, out);
            }
        tsr_pool_clear(&pool);
        fclose(out);
        free(text);
    }
    tsr_model_atoms_free(m);
}

static void try_curve(const char *path)
{
    tsr_saxs *s = NULL;
    tsr_err err = {0};

    if (good(tsr_saxs_read(path, TSR_Q_AUTO, NULL, NULL, &s, &err), &err)) {
        require(s->n >= 5, "rows");
        for (int i = 0; i < s->n; i++)
            require(isfinite(s->intensity[i]) && isfinite(s->sigma[i]) &&
                        s->sigma[i] > 0 && isfinite(s->q[i]) && s->q[i] >= 0 &&
                        (i == 0 || s->q[i] > s->q[i - 1]),
                    "a row of a curve");
    }
    tsr_saxs_free(s);
}

/* A configuration, with its lines "#set KEY=VALUE" as overrides. */
static void try_config(const char *path)
{
    enum { MOST = 32 };
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    const char *set[MOST];
    int n = 0;
    tsr_config config;
    tsr_err err = {0};

    if (tsr_file_read(path, &text, &size, NULL) != TSR_OK)
        return;
    for (char *l = strtok_r(text, "\n", &rest); l != NULL && n < MOST;
         l = strtok_r(NULL, "\n", &rest))
        if (strncmp(l, "#set ", 5) == 0)
            set[n++] = l + 5;
    if (good(tsr_config_read(path, n, set, &config, &err), &err)) {
        char *written = NULL;
        size_t n_written = 0;
        FILE *out = open_memstream(&written, &n_written);
        (void)good(tsr_yaml_write(out, tsr_config_fields(), &config, &err),
                   &err);
        fclose(out);
        free(written);
    }
    tsr_config_clear(&config);
    free(text);
}

static void try_table(const char *path)
{
    tsr_form_factor_table *f = NULL;
    tsr_prior_table *p = NULL;
    tsr_err err = {0};

    (void)good(tsr_form_factor_read(path, &f, &err), &err);
    tsr_form_factor_free(f);
    (void)good(tsr_prior_table_read(path, &p, &err), &err);
    tsr_prior_table_free(p);
}

static void try_map(const char *path)
{
    for (int k = TSR_MAP_ORIGIN_AUTO; k <= TSR_MAP_ORIGIN_NSTART; k++) {
        tsr_pool pool = {0};
        tsr_map *map = NULL;
        tsr_err err = {0};
        if (good(tsr_map_read(path, (tsr_map_origin)k, NULL, &pool, &map, &err),
                 &err)) {
            for (int i = 0; i < 3; i++)
                require(map->grid.n[i] > 0 && map->grid.step[i] >= 0.1 &&
                            map->grid.step[i] <= 50 &&
                            fabs(map->grid.origin[i]) <= 1e6,
                        "grid of a map");
            (void)good(tsr_map_check(map, 8, NULL, &err), &err);
        }
        tsr_pool_clear(&pool);
    }
}

static void try_frames(const char *path)
{
    tsr_dcd *dcd = NULL;
    tsr_err err = {0};

    if (good(tsr_dcd_open(path, &dcd, &err), &err)) {
        const tsr_dcd_info info = tsr_dcd_info_get(dcd);
        double(*xyz)[3] = calloc((size_t)info.n_atom, sizeof *xyz);
        for (int k = 0; xyz != NULL && k < info.n_frame && k < 9; k++)
            if (good(tsr_dcd_read(dcd, k, xyz, &err), &err))
                for (int i = 0; i < info.n_atom; i++)
                    require(isfinite(xyz[i][0]), "coordinate of a frame");
        free(xyz);
    }
    tsr_dcd_free(dcd);
}

static void try_pae(const char *path)
{
    tsr_pool pool = {0};
    tsr_pae *pae = NULL;
    tsr_err err = {0};

    if (good(tsr_pae_read(&pool, path, &pae, &err), &err))
        for (int i = 0; i < pae->n * pae->n; i++)
            require(isfinite(pae->error[i]) && pae->error[i] >= 0, "error");
    tsr_pool_clear(&pool);
}

/* ---- files of a run ---- */

/* The bytes of an input, taken one after the other; 0 after the last. */
typedef struct {
    const uint8_t *at, *end;
} source;

static unsigned take(source *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

static double take_number(source *s)
{
    static const double special[] = {
        0,   -1,  1,    2,   NAN,    INFINITY, -INFINITY, 1e308,   1e-308,
        1e9, 1e5, -1e5, 2e9, -2.2e9, 4.3e9,    9.3e18,    -9.3e18, 0.5};
    const unsigned k = take(s);
    return k < sizeof special / sizeof *special ? special[k] : k - 128.0;
}

/* Overwrites, removes or repeats bytes, or cuts the end. */
static void edit_bytes(char **bytes, size_t *n, source *s)
{
    while (s->at<s->end && * n> 0) {
        const unsigned what = take(s), high = take(s), low = take(s);
        const size_t at = (high * 256 + low) * *n / 65536;
        size_t m = take(s) % 16 + 1;
        m = m < *n - at ? m : *n - at;
        if (what % 8 == 0) {
            *n = at;
        } else if (what % 8 == 1) {
            memmove(*bytes + at, *bytes + at + m, *n - at - m);
            *n -= m;
        } else if (what % 8 == 2) {
            char *more = realloc(*bytes, *n + m);
            require(more != NULL, "memory");
            memmove(more + at + m, more + at, *n - at);
            *bytes = more;
            *n += m;
        } else
            for (size_t i = 0; i < m; i++)
                (*bytes)[at + i] = (char)take(s);
    }
}

/* Gives records of the draw log checksums that agree with their content. */
static void mend_log(char *bytes, size_t n)
{
    struct {
        uint64_t magic, checksum;
        int64_t kind, first, n, n_chain, n_state;
        uint64_t size;
    } head;
    for (size_t at = 0; n - at > sizeof head;) {
        memcpy(&head, bytes + at, sizeof head);
        head.checksum = 0;
        head.checksum = tsr_checksum(0, &head, sizeof head);
        memcpy(bytes + at, &head, sizeof head);
        at += sizeof head;
        for (int64_t k = 0;
             k < 64 && head.n_state > 0 && k / head.n_state < head.n_chain;
             k++) {
            if (head.size > n || n - at < head.size + 8)
                return;
            const uint64_t sum = tsr_checksum(0, bytes + at, head.size);
            memcpy(bytes + at + head.size, &sum, sizeof sum);
            at += head.size + 8;
        }
    }
}

typedef struct {
    int n;
    char name[512][96];
} names;

static herr_t add_name(hid_t file, const char *name, const H5O_info_t *info,
                       void *context)
{
    names *list = context;
    (void)file, (void)info;
    if (list->n < 512 && strlen(name) < sizeof list->name[0])
        strcpy(list->name[list->n++], name);
    return 0;
}

/* Replaces an attribute by a number, a text or an array, or removes it. */
static void edit_attribute(hid_t object, source *s)
{
    char name[96] = "";
    const double value[4] = {take_number(s), take_number(s), 1, 2};
    const unsigned what = take(s);
    H5Aget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, take(s) % 16,
                       name, sizeof name, H5P_DEFAULT);
    if (name[0] == '\0' || H5Adelete(object, name) < 0 || what % 4 == 0)
        return;
    if (what % 4 == 1)
        (void)tsr_hdf5_texts(object, NULL, name,
                             value[0] > 0 ? "\033]0;<script>" : "", NULL);
    else
        (void)tsr_hdf5_attribute(object, name, H5T_NATIVE_DOUBLE,
                                 what % 4 == 2 ? 0 : 4, value, NULL);
}

/* Puts a data set of another type and shape in the place of an object. */
static void replace_object(hid_t file, const char *name, source *s)
{
    static const hsize_t side[] = {0, 1, 2, 3, 4, 16, 40, 1 << 20};
    const int rank = (int)(take(s) % 4);
    const hsize_t size[3] = {side[take(s) % 8], side[take(s) % 8],
                             side[take(s) % 8]};
    const unsigned type = take(s) % 3;
    hid_t text = tsr_hdf5_text_type();
    hid_t space = H5Screate_simple(rank, size, NULL);
    H5Ldelete(file, name, H5P_DEFAULT);
    hid_t data = H5Dcreate2(file, name,
                            type == 0   ? H5T_NATIVE_DOUBLE
                            : type == 1 ? H5T_NATIVE_INT
                                        : text,
                            space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    tsr_hdf5_close(data);
    tsr_hdf5_close(space);
    tsr_hdf5_close(text);
}

/* Sets one number of a data set, or all; or changes the length of an axis. */
static void edit_values(hid_t data, source *s)
{
    hsize_t size[H5S_MAX_RANK], at[H5S_MAX_RANK], one[H5S_MAX_RANK];
    const int rank = tsr_hdf5_shape(data, size);
    const unsigned what = take(s);
    const double value = take_number(s);

    for (int i = 0; i < rank; i++) {
        at[i] = size[i] > 0 ? take(s) % size[i] : 0;
        one[i] = 1;
    }
    if (what % 4 == 0 && rank > 0) {
        const unsigned n = take(s);
        size[what / 4 % (unsigned)rank] = n < 200 ? n % 20 : 1ull << n % 62;
        H5Dset_extent(data, size);
    } else if (what % 4 == 1 && rank > 0) {
        at[rank - 1] = 0;
        one[rank - 1] = size[rank - 1];
        double *row = calloc(one[rank - 1] + 1, sizeof *row);
        for (hsize_t i = 0; row != NULL && i < size[rank - 1]; i++)
            row[i] = value;
        tsr_hdf5_block(data, H5T_NATIVE_DOUBLE, rank, at, one, NULL, row);
        free(row);
    } else if (rank >= 0)
        tsr_hdf5_block(data, H5T_NATIVE_DOUBLE, rank, at, one, NULL, &value);
}

/* Changes objects of an HDF5 file and seals it again: HDF5 itself is not what
 * is tested, and a changed byte would end at the seal. */
static void edit_hdf5(const char *path, source *s)
{
    static names list;
    tsr_hdf5_output output;

    require(tsr_hdf5_output_start(path, path, &output, NULL) == TSR_OK,
            "cannot copy a file of the run");
    list.n = 0;
    H5Ovisit2(output.file, H5_INDEX_NAME, H5_ITER_INC, add_name, &list,
              H5O_INFO_BASIC);
    while (s->at < s->end) {
        const unsigned what = take(s), low = take(s), high = take(s);
        const char *name = list.name[(high * 256 + low) % (unsigned)list.n];
        const char *other = list.name[take(s) % (unsigned)list.n];
        hid_t object = H5Oopen(output.file, name, H5P_DEFAULT);
        if (what % 8 == 0)
            H5Ldelete(output.file, name, H5P_DEFAULT);
        else if (what % 8 == 1)
            replace_object(output.file, name, s);
        else if (what % 8 == 2)
            H5Lmove(output.file, name, output.file, other, H5P_DEFAULT,
                    H5P_DEFAULT);
        else if (what % 8 == 3 && object >= 0)
            edit_attribute(object, s);
        else if (object >= 0 && H5Iget_type(object) == H5I_DATASET)
            edit_values(object, s);
        tsr_hdf5_close(object);
    }
    (void)tsr_hdf5_output_end(&output, TSR_OK, NULL);
}

/* The files of the runs, in memory, in the order of their names. */
typedef struct {
    char *name, *bytes; /* bytes NULL: a folder */
    size_t n;
} run_file;
enum { MOST_FILES = 256 };
static run_file file[MOST_FILES];
static int n_file;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const run_file *)a)->name, ((const run_file *)b)->name);
}

static int add_file(const char *path, const struct stat *info, int type,
                    struct FTW *where)
{
    (void)info, (void)where;
    if (n_file == MOST_FILES || strcmp(path, runs) == 0)
        return 0;
    run_file *f = &file[n_file++];
    f->name = strdup(path + strlen(runs) + 1);
    return type == FTW_D
               ? 0
               : tsr_file_read(path, &f->bytes, &f->n, NULL) != TSR_OK;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *to = fopen(path, "wb");
    require(to != NULL && fwrite(bytes, 1, n, to) == n && fclose(to) == 0,
            "cannot write into the scratch folder");
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *where)
{
    (void)info, (void)type;
    return where->level > 0 ? remove(path) : 0;
}

static void clear_scratch(void)
{
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define COMMAND(word) &tsr_command_##word,
static const tsr_command *const commands[] = {TSR_COMMANDS(COMMAND) NULL};

/* Runs a command; @ in a word stands for the scratch folder. */
static void run_command(const char *line)
{
    enum { MOST = 24 };
    char words[4096], *rest = NULL, *text = NULL, *printed = NULL;
    const char *argv[MOST] = {"tessera"};
    size_t n = 0, n_printed = 0, at = 0;
    int argc = 1;

    for (; *line != '\0' && at < sizeof words - sizeof scratch; line++)
        at += (size_t)snprintf(words + at, sizeof words - at,
                               *line == '@' ? "%s" : "%.1s",
                               *line == '@' ? scratch : line);
    for (char *w = strtok_r(words, " ", &rest); w != NULL && argc < MOST;
         w = strtok_r(NULL, " ", &rest))
        argv[argc++] = w;
    FILE *out = open_memstream(&printed, &n_printed);
    FILE *message = open_memstream(&text, &n);
    const int status = tsr_program(commands, "", argc, argv, out, message);
    fclose(out);
    fclose(message);
    free(printed);
    require(status <= 1 || n > 0, "a failure without a message");
    check_text(text);
    free(text);
}

/* Input: command, file (two bytes), and what is changed in the file. */
static void try_run(const uint8_t *data, size_t size)
{
    static const char *const line[] = {
        "status @/ended",
        "status @/killed --json",
        "summary @/ended --json",
        "summary @/killed --verbose",
        "diagnose @/ended",
        "compare @/ended @/killed",
        "compare @/killed @/ended --json",
        "report @/ended",
        "report @/killed --prior @/ended",
        "export @/ended --draws all -o @/new.pdb",
        "export @/killed --draws even:3 --format cif --atoms all",
        "export @/ended --format csv",
        "summary @/ended/trace.h5",
        "export @/ended --draws all --raw --format mvsj",
        "export @/killed --draws arrangements",
        "resume @/ended --draws 10 --device reference",
        "resume @/killed --draws 1 --device reference",
        "map cc @/ended -r 8 --device reference --map @/map.mrc",
        "check @/killed/config.yaml"};
    source s = {data, data + size};
    const char *command = line[take(&s) % (sizeof line / sizeof *line)];
    unsigned k = take(&s);
    k = (k + 256 * take(&s)) % (unsigned)n_file;
    for (int tries = 0; file[k].bytes == NULL && tries < n_file; tries++)
        k = (k + 1) % (unsigned)n_file;

    clear_scratch();
    for (int i = 0; i < n_file; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", scratch, file[i].name);
        if (file[i].bytes == NULL) {
            mkdir(path, 0777);
            continue;
        }
        char *bytes = malloc(file[i].n + 1);
        size_t n = file[i].n;
        require(bytes != NULL, "memory");
        memcpy(bytes, file[i].bytes, n);
        const int is_hdf5 = n > 8 && memcmp(bytes + 1, "HDF", 3) == 0;
        if (i == (int)k && !is_hdf5)
            edit_bytes(&bytes, &n, &s);
        if (i == (int)k && strstr(path, "draws.log") != NULL)
            mend_log(bytes, n);
        write_file(path, bytes, n);
        if (i == (int)k && is_hdf5)
            edit_hdf5(path, &s);
        free(bytes);
    }
    run_command(command);
}

/* ---- the targets ---- */

static const struct {
    const char *name;
    void (*try)(const char *path);
} target[] = {
    {"pdb", try_structure}, {"cif", try_structure}, {"curve", try_curve},
    {"config", try_config}, {"table", try_table},   {"map", try_map},
    {"dcd", try_frames},    {"pae", try_pae},       {"run", NULL}};
enum { N_TARGET = sizeof target / sizeof *target };
static int chosen = -1;

static void at_exit(void)
{
    clear_scratch();
    rmdir(scratch);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("TESSERA_FUZZ"), *from;
    (void)argc;

    if (name == NULL && (name = strrchr((*argv)[0], '-')) != NULL)
        name++;
    for (int i = 0; i < N_TARGET; i++)
        if (name != NULL && strcmp(name, target[i].name) == 0)
            chosen = i;
    require(chosen >= 0, "no such target");
    signal(SIGPIPE, SIG_IGN);
    pthread_atfork(NULL, NULL, forget_findings);
    gsl_set_error_handler_off();
    tsr_hdf5_quiet();
    tsr_config_fields();
    setenv("OCL_ICD_VENDORS", "/dev/null/none", 1);
    from = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(scratch, sizeof scratch, "%s/tessera-fuzz-XXXXXX", from);
    require(mkdtemp(scratch) != NULL, "cannot make a scratch folder");
    atexit(at_exit);
    if (target[chosen].try == NULL) {
        from = getenv("TESSERA_FUZZ_RUNS");
        snprintf(runs, sizeof runs, "%s", from != NULL ? from : "runs");
        require(nftw(runs, add_file, 16, FTW_PHYS) == 0 && n_file > 0,
                "cannot read TESSERA_FUZZ_RUNS");
        qsort(file, (size_t)n_file, sizeof *file, by_name);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[320];

    if (target[chosen].try == NULL) {
        try_run(data, size);
        return 0;
    }
    snprintf(path, sizeof path, "%s/input", scratch);
    write_file(path, (const char *)data, size);
    target[chosen].try(path);
    return 0;
}

/* ---- replay without libFuzzer ---- */

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/* A copy with one to four bytes, numbers or pieces changed, by a random stream
 * of the copy's own. */
static void try_damaged(const char *bytes, size_t n, uint64_t seed)
{
    static const char *const word[] = {"-1",    "nan", "1e999", "99999999999",
                                       "\033[", "0x",  "%s",    "\""};
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    uint8_t *copy = malloc(n + 64);
    require(copy != NULL, "memory");
    memcpy(copy, bytes, n);
    for (int k = 0; k < 1 + (int)(seed % 4) && n > 0; k++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        const size_t at = x % n;
        const char *w = word[x >> 32 & 7];
        if ((x >> 40 & 7) == 0)
            n = at;
        else if ((x >> 40 & 1) != 0)
            for (size_t i = 0; w[i] != '\0' && at + i < n; i++)
                copy[at + i] = (uint8_t)w[i];
        else
            copy[at] = (uint8_t)(x >> 48);
    }
    uint8_t *exact = malloc(n + 1); /* so that a sanitizer sees its end */
    require(exact != NULL, "memory");
    memcpy(exact, copy, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    free(copy);
}

static char note[600]; /* the present input */

static void name_input(int which)
{
    (void)!write(STDERR_FILENO, note, strlen(note));
    signal(which, SIG_DFL);
    raise(which);
}

int main(int argc, char **argv)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    long n_copy = 0, n_input = 0;
    LLVMFuzzerInitialize(&argc, &argv);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], name_input);
    for (int i = 1; i < argc; i++) {
        char *bytes = NULL;
        size_t n = 0;
        if (strcmp(argv[i], "--mutate") == 0 && i + 1 < argc) {
            n_copy = atol(argv[++i]);
            continue;
        }
        if (tsr_file_read(argv[i], &bytes, &n, NULL) != TSR_OK) {
            fprintf(stderr, "cannot read %s\n", argv[i]);
            return 1;
        }
        for (long k = 0; k <= n_copy; k++, n_input++) {
            snprintf(note, sizeof note, "%s, copy %ld\n", argv[i], k);
            if (k == 0)
                LLVMFuzzerTestOneInput((uint8_t *)bytes, n);
            else
                try_damaged(bytes, n, (uint64_t)k);
        }
        free(bytes);
    }
    printf("%ld inputs\n", n_input);
    return 0;
}
#endif
