/* YAML configurations are read into a field table; every error names file,
 * line, column, key and the allowed values. The reader marks where each key of
 * a configuration was given. */
#include "../config_table.h"
#include "files/yaml.h"
#include "tests/io_files.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <time.h>

/* Every test writes a file of this name; messages name it. */
static const char name[] = "run.yaml";

static void clear_config(void *c)
{
    tsr_fields_clear(config_fields, c);
}

static void clear_kinds(void *k)
{
    tsr_fields_clear(kinds_fields, k);
}

/* Reads the file, then `set` (NULL: none); freed with the test. */
static tsr_status read_file_set(const char *path, config *c, const char *set)
{
    OK(tsr_fields_init(config_fields, c, &err));
    const tsr_status status = tsr_yaml_read_marked(
        path, config_fields, c, set != NULL, &set, NULL, &err);
    own_copy(c, clear_config);
    return status;
}

static tsr_status read_file(const char *path, config *c)
{
    return read_file_set(path, c, NULL);
}

static tsr_status read_text(const char *text, config *c, const char *set)
{
    return read_file_set(io_text(name, text), c, set);
}

static config *read_well(const char *text, const char *set)
{
    static config c;
    if (read_text(text, &c, set) != TSR_OK)
        fail_msg("%s\n--set %s\nrefused: %s", text, set ? set : "",
                 err.message);
    return &c;
}

static const char example[] =
    "name: ligase\n"
    "seed: 7\n"
    "structure:\n"
    "  file: ligase.pdb\n"
    "  bodies: one\n"
    "  flexible: [\"A:262-269\", B:1-5]\n"
    "data:\n"
    "  - file: ../ligase.dat\n"
    "    q_unit: 1/nm\n"
    "    q_range: [0.01, 0.3]\n"
    "    noise: {model: student, scale: infer}\n"
    "    background: 0.5\n"
    "  - file: /abs/b.dat   # the rest by default\n"
    "prior: {clash: \"off\", restraints: [], use: No}\n"
    "moves: {pivot: 3, crankshaft: {step: 0.5}}\n"
    "sampler: {chains: 4, temperatures: 12}\n";

TEST(test_example)
{
    config *c = read_well(example, NULL);
    assert_string_equal(c->name, "ligase");
    const char *want = format("%s/ligase.pdb", io_dir);
    assert_string_equal(c->structure.file, want);
    assert_null(c->structure.sequence);
    assert_ints(c->seed, 7, c->structure.bodies, 0, c->structure.flexible.n, 2);
    assert_string_equal(c->structure.flexible.item[1], "B:1-5");
    assert_ints(c->structure.states, 1, c->data.n, 2);
    const config_data *d = c->data.item;
    assert_string_equal(d[0].file, "/tmp/ligase.dat");
    assert_int_equal(d[0].q_unit, 2);
    assert_true(d[0].q_range[0] == 0.01 && d[0].q_range[1] == 0.3);
    assert_ints(d[0].noise.model, 2, d[0].noise.scale.word, 0,
                d[0].background.word, -1);
    assert_true(d[0].background.number == 0.5);
    assert_string_equal(d[1].file, "/abs/b.dat");
    assert_true(d[1].q_range[0] == 0.0 && d[1].q_range[1] == 0.0);
    assert_true(d[1].noise.alpha_inv_ang == 0.15);
    assert_ints(c->prior.clash, 1, c->prior.restraints.n, 0, c->prior.use, 0);
    assert_true(c->moves.pivot.weight == 3.0 && c->moves.pivot.step_rad == 0.1);
    assert_true(c->moves.crankshaft.weight == 1.0);
    assert_true(c->moves.crankshaft.step_rad == 0.5);
    assert_ints(c->sampler.chains, 4, c->sampler.draws, 20000);
    assert_true(c->sampler.temperatures.number == 12.0);
}

/* ".." goes where it says only from a real folder: not from a link, nor from
 * what is not there. */
TEST(test_shortened_paths)
{
    static const char *const pairs[][2] = {
        {"./a.dat", "%s/a.dat"},
        {"././b/./a.dat", "%s/b/a.dat"},
        {"../../x/a.dat", "/x/a.dat"},
        {"../../../../a.dat", "/../../a.dat"},
        {".hidden/..a/a..dat", "%s/.hidden/..a/a..dat"},
        {"nowhere/../a.dat", "%s/nowhere/../a.dat"},
        {"link/../a.dat", "%s/link/../a.dat"},
        {"link/../../a.dat", "%s/link/../../a.dat"},
        {"/tmp/../a.dat", "/tmp/../a.dat"}};
    assert_int_equal(symlink("/usr", io_path("link")), 0);
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        const char *text = format("structure: {file: %s}", pairs[i][0]);
        config *c = read_well(text, NULL);
        const char *rest = strstr(pairs[i][1], "%s");
        const char *want = format("%s%s", rest != NULL ? io_dir : "",
                                  rest != NULL ? rest + 2 : pairs[i][1]);
        assert_string_equal(c->structure.file, want);
    }
    assert_int_equal(unlink(io_path("link")), 0);
}

TEST(test_short_forms)
{
    static const char *const empty[] = {
        "", "\n", "# nothing\n", "---\n", "~", "---\n...\n", "\xef\xbb\xbf"};
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        config *c = read_well(empty[i], NULL);
        assert_string_equal(c->name, "run");
        assert_ints(c->sampler.chains, 8, c->prior.restraints.n, 0);
    }
    config *c = read_well("structure:\n  # file: x\nsampler:\n"
                          "data: {file: /x.dat}\nprior: {restraints: one}\n",
                          NULL);
    assert_int_equal(c->data.n, 1);
    assert_string_equal(((config_data *)c->data.item)->file, "/x.dat");
    assert_int_equal(c->prior.restraints.n, 1);
    c = read_well("data: [/x.dat, {file: /y.dat}, ]\nname: 'null'\n"
                  "prior: {restraints: }\nstructure: {file: null}\n",
                  NULL);
    assert_int_equal(c->data.n, 2);
    assert_string_equal(((config_data *)c->data.item)[0].file, "/x.dat");
    assert_string_equal(c->name, "null");
    assert_int_equal(c->prior.restraints.n, 0);
    c = read_well("moves: {pivot: &m {weight: 2, step: 0.3}, crankshaft: *m}\n"
                  "data: [&d {file: /x.dat}, *d]\r\nseed: \"12\"\r\n",
                  NULL);
    assert_true(c->moves.crankshaft.step_rad == 0.3);
    assert_string_equal(((config_data *)c->data.item)[1].file, "/x.dat");
    assert_int_equal(c->seed, 12);
}

typedef struct {
    const char *text;
    const char *message; /* after the file's name */
} refused;

TEST(test_messages)
{
#define SAMPLER_KEYS                                                         \
    "expected mapping with keys among chains, draws, temperatures, target, " \
    "window, n_bin"
#define DATA_KEYS                                                     \
    "expected mapping with keys among file, q_unit, q_range, noise, " \
    "background, or path (its 'file')"
#define SEED "expected integer in [0, 9007199254740992]"
#define LIST_1 "value is a list of 1: "
#define NO_MAPPING ": expected lines of 'key: value' (a mapping)"
#define TEXTS "expected list of texts"
    static const refused rows[] = {
        {"seed: 1\nsampler:\n  chains: 0\n",
         ":3:11: key 'sampler.chains': value '0' is out of range: expected "
         "integer in [1, 4096]"},
        {"sampler:\n  chians: 4\n",
         ":2:3: key 'sampler.chians': unknown key; did you mean 'chains'?"},
        {"moves: {rotate: 1}\n", ":1:9: key 'moves.rotate': unknown key; known "
                                 "keys: pivot, crankshaft"},
        {"chains: 4\n", ":1:1: key 'chains': unknown key; did you mean "
                        "'sampler.chains'? Known here: name, seed, structure, "
                        "data, prior, moves, sampler, output"},
        {"name: a\nseed: 1\nname: b\n",
         ":3:1: key 'name': repeated key: the first is in line 1"},
        {"sampler: 4\n",
         ":1:10: key 'sampler': value '4' is a single value: " SAMPLER_KEYS},
        {"sampler: [chains]\n", ":1:10: key 'sampler': " LIST_1 SAMPLER_KEYS},
        {"seed: {a: 1}\n", ":1:7: key 'seed': value is a mapping: " SEED},
        {"seed: [1]\n", ":1:7: key 'seed': " LIST_1 SEED},
        {"seed:\n", ":1:6: key 'seed': no value: " SEED},
        {"name:\n", ":1:6: key 'name': no value: expected text"},
        {"name: [a]\n", ":1:7: key 'name': " LIST_1 "expected text"},
        {"data:\n  - q_range: [0.3, 0.1]\n",
         ":2:14: key 'data.0.q_range': value '[0.3, 0.1]' is not ascending: "
         "expected ascending pair [low, high] within [0, 10] (1/\xc3\x85)"},
        {"data:\n  - q_range: [1]\n",
         ":2:14: key 'data.0.q_range': " LIST_1
         "expected ascending pair [low, high] within [0, 10]"},
        {"data:\n  - {}\n  - [a]\n", ":3:5: key 'data.1': " LIST_1 DATA_KEYS},
        {"data:\n- noise: {model: gauss}\n",
         ":2:18: key 'data.0.noise.model': value 'gauss' is not known: "
         "expected one of measured, relative, student"},
        {"moves: {pivot: off}\n", ":1:16: key 'moves.pivot': value 'off' is "
                                  "not a number: expected number in [0, 1000]"},
        {"structure: {flexible: [a, [b]]}\n",
         ":1:27: key 'structure.flexible.1': " LIST_1 TEXTS},
        {"structure: {flexible: {a: b}}\n",
         ":1:23: key 'structure.flexible': value is a mapping: " TEXTS},
        {"moves:\n  pivot: &m {step: 1}\n  crankshaft:\n    <<: *m\n",
         ":4:5: key 'moves.crankshaft.<<': merge keys are not supported: write "
         "the keys out, or use an alias for a whole value"},
        {"sampler: &s\n  chains: *s\n",
         ":1:10: key 'sampler.chains': value is a mapping: expected integer in "
         "[1, 4096]"},
        {"data: &d [*d]\n", ":1:7: key 'data.0': " LIST_1 DATA_KEYS},
        {"name: *nowhere\n", ":1:7: not YAML: found undefined alias"},
        {"name: !include x\n", ":1:7: key 'name': tag '!include' is not "
                               "supported: write the value itself"},
        {"? [a]\n: b\n", ":1:3: a list where a key is expected"},
        {"name: \"a\\0b\"\n", ":1:7: key 'name': a NUL character in 'a'"},
        {"sampler: {window: [\"1\\0x\", 2]}\n",
         ":1:20: key 'sampler.window': a NUL character in '1'"},
        {"sampler: {window: [1, [2]]}\n",
         ":1:19: key 'sampler.window': value is a list of 2: expected "
         "ascending pair [low, high]"},
        {"[1, 2]\n", ":1:1: the file is a list" NO_MAPPING},
        {"ATOM      1  N   MET A   1\nATOM      2  CA  MET A   1\n",
         ":1:1: the file is a single value" NO_MAPPING},
        {"name: a\n---\nname: b\n", ":3:1: a second document starts here: one "
                                    "file holds one configuration"},
        {"sampler:\n\tchains: 3\n",
         ":2:1: not YAML: found character that cannot start any token, while "
         "scanning for the next token; indent with spaces, not with tabs"},
        {"name: a: b\n",
         ":1:8: not YAML: mapping values are not allowed in this context"},
        {"name: {a\n", ":2:1: not YAML: did not find expected ',' or '}', "
                       "while parsing a flow mapping"},
        {"# \xc3\x85ngstr\xc3\xb6m\nname: \xc3\xa5\x80\n",
         ":2:8: not YAML: invalid leading UTF-8 octet; save the file as UTF-8"},
        {"\x89HDF\r\n\x1a\n",
         ":1:1: not YAML: invalid leading UTF-8 octet; save the file as UTF-8"},
        {"name: \x01\n", ":1:7: not YAML: control characters are not allowed"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        config c;
        err = (tsr_err){0};
        const char *want = format("%s%s", io_path(name), rows[i].message);
        assert_int_equal(read_text(rows[i].text, &c, NULL), TSR_E_CONFIG);
        assert_int_equal(err.status, TSR_E_CONFIG);
        assert_string_equal(err.message, want);
        /* and a caller who wants no text gets the same status */
        OK(tsr_fields_init(config_fields, &c, &err));
        assert_int_equal(tsr_yaml_read_marked(io_path(name), config_fields, &c,
                                              0, NULL, NULL, NULL),
                         TSR_E_CONFIG);
        own_copy(&c, clear_config);
    }
}

TEST(test_files)
{
    config c;
    assert_int_equal(read_file("/nonexistent/x.yaml", &c), TSR_E_NOINPUT);
    assert_string_equal(err.message, "cannot open '/nonexistent/x.yaml': No "
                                     "such file or directory");
    assert_int_equal(read_file("/tmp", &c), TSR_E_NOINPUT);
    assert_string_equal(err.message,
                        "'/tmp' is a directory; name a file in it");
    size_t n = (16u << 20) + 1;
    char *big = array(n, 1);
    memset(big, '#', n);
    const char *path = io_write(name, big, n);
    FAILS(read_file(path, &c), TSR_E_CONFIG, "has more than 16 MiB");
    if (geteuid() == 0) {
        print_message("unreadable file not tried: root reads everything\n");
    } else {
        assert_int_equal(chmod(path, 0), 0);
        FAILS(read_file(path, &c), TSR_E_NOINPUT, "Permission denied");
        assert_int_equal(chmod(path, 0600), 0);
    }
}

TEST(test_set)
{
    char here[512];
    config *c = read_well(example, "sampler.chains=16");
    assert_int_equal(c->sampler.chains, 16);

    c = read_well(example, "data.0.noise={scale: 2}");
    const config_data *d = c->data.item;
    assert_true(d[0].noise.scale.number == 2.0);
    assert_int_equal(d[0].noise.model, 2); /* as in the file */
    assert_int_equal(c->data.n, 2);

    /* paths of the command line start at the current folder */
    assert_non_null(getcwd(here, sizeof here));
    const char *want = format("%s/c.dat", here);
    c = read_well(example, "data.2=c.dat");
    d = c->data.item;
    assert_int_equal(c->data.n, 3);
    assert_string_equal(d[2].file, want);
    assert_true(d[2].noise.alpha_inv_ang == 0.15);

    c = read_well(example, "data=[c.dat]");
    assert_int_equal(c->data.n, 1);
    assert_string_equal(((config_data *)c->data.item)->file, want);

    c = read_well(example, "structure.flexible=[A:1-2,A:9-12]");
    assert_int_equal(c->structure.flexible.n, 2);
    assert_string_equal(c->structure.flexible.item[0], "A:1-2");

    c = read_well(example, "moves.crankshaft=0.25");
    assert_true(c->moves.crankshaft.weight == 0.25);
    c = read_well(example, "name=a=b");
    assert_string_equal(c->name, "a=b");
}

TEST(test_set_messages)
{
    static const char *const rows[][2] = {
        {"sampler.chains", "expected KEY=VALUE, as in --set sampler.chains=4"},
        {"=4", "expected KEY=VALUE, as in --set sampler.chains=4"},
        {"sampler.chains=x", "key 'sampler.chains': value 'x' is not an "
                             "integer: expected integer in [1, 4096]"},
        {"sampler.chains=",
         "key 'sampler.chains': no value: expected integer in [1, 4096]"},
        {"sampler.chians=3",
         "key 'sampler.chians': unknown key; did you mean 'chains'?"},
        {"a..b=3", "key 'a': unknown key; known keys: name, seed, structure, "
                   "data, prior, moves, sampler, output"},
        {"seed.x=3", "key 'seed': it has no subkeys"},
        {"data.file=3", "key 'data': this is a list: name an element by its "
                        "number, as in 'data.0'"},
        {"data.3.file=3",
         "key 'data': the list has 2 elements: expected a number from 0 to 2"},
        {"data.1.q_unit=m", "key 'data.1.q_unit': value 'm' is not known: "
                            "expected one of auto, 1/A, 1/nm"},
        {"name=[a", "the value is not YAML: did not find expected ',' or ']', "
                    "while parsing a flow sequence; quote it"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        config c;
        err = (tsr_err){0};
        const char *want = format("--set %s: %s", rows[i][0], rows[i][1]);
        assert_int_equal(read_text(example, &c, rows[i][0]),
                         i < 2 ? TSR_E_USAGE : TSR_E_CONFIG);
        assert_string_equal(err.message, want);
    }
}

/* A path that is relative when it is written means the same file to a reader of
 * a config.yaml in another folder. */
TEST(test_write_path)
{
    char here[512];
    config before, after;
    OK(tsr_fields_init(config_fields, &before, &err));
    before.structure.file = strdup("x.pdb");
    const char *path = io_path(name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    OK(tsr_yaml_write(out, config_fields, &before, &err));
    fclose(out);
    OK(read_file(path, &after));
    assert_non_null(getcwd(here, sizeof here));
    const char *want = format("%s/x.pdb", here);
    assert_string_equal(after.structure.file, want);

    before.sampler.target = (double)NAN;
    out = fopen("/dev/null", "w");
    assert_int_equal(tsr_yaml_write(out, config_fields, &before, &err),
                     TSR_E_NUMERIC);
    before.sampler.target = 0.5;
    before.structure.sequence = strdup("\xff");
    assert_int_equal(tsr_yaml_write(out, config_fields, &before, &err),
                     TSR_E_DATA);
    fclose(out);
    before.structure.sequence[0] = 'M';
    out = fopen("/dev/full", "w");
    if (out == NULL) {
        print_message("full disk not tried: no /dev/full\n");
    } else {
        assert_int_equal(tsr_yaml_write(out, config_fields, &before, &err),
                         TSR_E_IO);
        assert_string_equal(err.message, "cannot write the configuration: No "
                                         "space left on device");
        fclose(out);
    }
    tsr_fields_clear(config_fields, &before);
}

/* An alias may stand for much; what it stands for is counted where it is used,
 * so that a small file cannot become a huge object. */
TEST(test_aliases_counted)
{
    FILE *out = text_begin();
    fprintf(out, "prior: {restraints: &r [");
    for (int i = 0; i < 3000; i++)
        fprintf(out, "a,");
    fprintf(out, "]}\nstructure: {flexible: *r}\n");
    char *text = text_end(out);
    config c;
    OK(read_text(text, &c, NULL));
    assert_int_equal(c.structure.flexible.n, 3000);

    out = text_begin();
    fprintf(out, "data: [&d {file: x, q_unit: 1/A, q_range: [0, 1], "
                 "background: none, noise: {model: student, scale: 1, "
                 "alpha: 1}}");
    for (int i = 0; i < 12000; i++)
        fprintf(out, ",*d");
    fprintf(out, "]\n");
    FAILS(read_text(text_end(out), &c, NULL), TSR_E_CONFIG,
          "more than 100000 values once aliases "
          "are followed");
}

/* As many levels as no configuration has, and as many values as one may have,
 * take no time that a user notices. The limit is many times what they take. */
TEST(test_depth_and_length)
{
    const int slow = getenv("ASAN_OPTIONS") != NULL; /* other builds see more */
    const int many = slow ? 2000 : 200000, length = slow ? 990 : 99000;
    static const char *const open[] = {"[", "{a: ", "- ", "? "};
    const clock_t most = 30 * CLOCKS_PER_SEC;
    config c;
    CLEARED(tsr_yaml_marks) marks = {0};
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        FILE *out = text_begin();
        for (int k = 0; k < many; k++)
            fputs(open[i], out);
        char *text = text_end(out);
        clock_t before = clock();
        assert_int_equal(read_text(text, &c, NULL), TSR_E_CONFIG);
        assert_true(clock() - before < most);
        assert_has(err.message, "nested more than 64 deep");
    }
    const char *path = io_text(name, "structure: {flexible: [a");
    FILE *out = fopen(path, "ab");
    assert_non_null(out);
    for (int k = 1; k < length; k++)
        fputs(", a", out);
    fputs("]}\n", out);
    fclose(out);
    clock_t before = clock();
    OK(tsr_fields_init(config_fields, &c, &err));
    OK(tsr_yaml_read_marked(path, config_fields, &c, 0, NULL, &marks, &err));
    assert_true(clock() - before < most);
    own_copy(&c, clear_config);
    assert_int_equal(c.structure.flexible.n, length);
}

/* Damaged files: cut anywhere, and with bytes changed. Each is read or refused
 * with a message that names the file, and what is read can be written. */
static void check_damaged(const char *text, size_t n)
{
    config c;
    err = (tsr_err){0};
    const char *path = io_write(name, text, n);
    tsr_status status = read_file(path, &c);
    if (status != TSR_OK) {
        assert_int_equal(status, TSR_E_CONFIG);
        assert_memory_equal(err.message, path, strlen(path));
        assert_null(strchr(err.message, '\n'));
    } else {
        FILE *out = fopen("/dev/null", "w");
        OK(tsr_yaml_write(out, config_fields, &c, &err));
        fclose(out);
    }
}

TEST(test_damaged)
{
    size_t n = sizeof example - 1;
    char copy[sizeof example];
    const int most = io_rounds(3000);
    for (size_t i = 0; i <= n; i++)
        check_damaged(example, i);
    uint64_t bits = 42;
    static const char marks[] = "\t\n:-[]{}&*!|>%@`\"'#,?<~\\ \x80\xff\xc3";
    for (int i = 0; i < most; i++) {
        memcpy(copy, example, sizeof copy);
        for (int flips = 1 + i % 4; flips > 0; flips--) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            size_t at = (size_t)(bits >> 33) % n;
            unsigned kind = (unsigned)(bits >> 29) & 3u;
            char *to = &copy[at];
            if (kind == 0)
                *to = (char)(*to ^ (1 << ((bits >> 20) & 7)));
            else if (kind == 1)
                *to = marks[(bits >> 20) % (sizeof marks - 1)];
            else if (kind == 2)
                *to = copy[(size_t)(bits >> 13) % n];
            else
                memmove(to, to + 1, n - at - 1);
        }
        check_damaged(copy, n);
    }
}

/* ---- kinds: selector, messages, --set and output ---- */

static tsr_status read_kinds(const char *text, const char *set, kinds *k)
{
    const char *path = io_text(name, text);
    OK(tsr_fields_init(kinds_fields, k, &err));
    const tsr_status status = tsr_yaml_read_marked(
        path, kinds_fields, k, set != NULL, &set, NULL, &err);
    own_copy(k, clear_kinds);
    return status;
}

static kinds *kinds_well(const char *text, const char *set)
{
    static kinds k;
    if (read_kinds(text, set, &k) != TSR_OK)
        fail_msg("%s refused: %s", text, err.message);
    return &k;
}

/* The selector may stand anywhere in the mapping. */
TEST(test_kinds)
{
    static const char *const texts[] = {
        "one: {shape: box, size: [3, 4], name: a}",
        "one: {size: [3, 4], name: a, shape: box}",
        "one:\n  size: [3, 4]\n  shape: box\n  name: a\n"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        kinds *k = kinds_well(texts[i], NULL);
        assert_int_equal(k->one.box.shape, 1);
        assert_true(k->one.box.size[0] == 3.0 && k->one.box.size[1] == 4.0);
        assert_string_equal(k->one.box.name, "a");
    }
    kinds *k = kinds_well("one: {radius: 2}\n"
                          "many: [b, {shape: crate}, {radius: 5}]\n",
                          NULL);
    const kinds_shape *shape = k->many.item;
    assert_true(k->one.ball.radius == 2.0);
    assert_int_equal(k->many.n, 3);
    assert_string_equal(shape[0].ball.name, "b");
    assert_ints(shape[1].box.shape, 2, shape[1].box.lines.n, 0);
    assert_true(shape[2].ball.radius == 5.0);
}

static const char shapes[] = "one: {shape: box, name: a, size: [3, 4]}\n"
                             "many: [{radius: 2, name: b}]\n";

TEST(test_kinds_set)
{
    kinds *k = kinds_well(shapes, "one.shape=ball");
    assert_int_equal(k->one.ball.shape, 0);
    assert_string_equal(k->one.ball.name, "a"); /* both have it */
    assert_true(k->one.ball.radius == 1.0);
    k = kinds_well(shapes, "one={shape: crate}");
    assert_int_equal(k->one.box.shape, 2);
    assert_true(k->one.box.size[0] == 3.0);
    k = kinds_well(shapes, "one.size=[5, 6]"); /* of the file's kind */
    assert_true(k->one.box.size[0] == 5.0);
    k = kinds_well(shapes, "many.0.shape=box");
    assert_string_equal(((kinds_shape *)k->many.item)->box.name, "b");
    assert_int_equal(((kinds_shape *)k->many.item)->box.shape, 1);
    k = kinds_well(shapes, "many.1={size: [7, 8], shape: box}");
    assert_int_equal(k->many.n, 2);
    assert_true(((kinds_shape *)k->many.item)[1].box.size[0] == 7.0);
}

TEST(test_kinds_messages)
{
    static const struct {
        const char *text, *set, *message;
    } rows[] = {
        {"one: {shape: bal}\n", NULL,
         ":1:14: key 'one.shape': value 'bal' is unknown: expected one of "
         "ball, box, crate"},
        {"one:\n  name: a\n  size: [1, 2]\n", NULL,
         ":3:3: key 'one.size': it has no effect with shape: ball; it belongs "
         "to shape: box"},
        {"many: [{radius: 2, shape: crate}]\n", NULL,
         ":1:9: key 'many.0.radius': it has no effect with shape: crate; it "
         "belongs to shape: ball"},
        {"one: {radis: 2}\n", NULL,
         ":1:7: key 'one.radis': unknown key; did you mean 'radius'?"},
        {"one: {shape: box, shape: ball}\n", NULL,
         ":1:19: key 'one.shape': repeated key: the first is in line 1"},
        {"one: {shape: [box]}\n", NULL,
         ":1:14: key 'one.shape': expected one word, the shape, such as ball"},
        {"one: {shape: }\n", NULL,
         ":1:14: key 'one.shape': expected one word, the shape, such as ball"},
        {shapes, "one.shape=bal",
         "--set one.shape=bal: key 'one.shape': value 'bal' is unknown: "
         "expected one of ball, box, crate"},
        {shapes, "one.radius=2",
         "--set one.radius=2: key 'one.radius': it has no effect with shape: "
         "box; it belongs to shape: ball"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        kinds k;
        err = (tsr_err){0};
        const char *want = format(
            "%s%s", rows[i].set != NULL ? "" : io_path(name), rows[i].message);
        assert_int_equal(read_kinds(rows[i].text, rows[i].set, &k),
                         TSR_E_CONFIG);
        assert_string_equal(err.message, want);
    }
}

/* What is written reads back as the same. */
TEST(test_kinds_written)
{
    kinds *k = kinds_well("one: {shape: crate, size: [3, 4]}\n"
                          "many: [{radius: 2}, {shape: box, lines: []}]\n",
                          NULL);
    FILE *out = text_begin();
    OK(tsr_yaml_write(out, kinds_fields, k, &err));
    char *first = text_end(out);
    assert_has(first, "shape: crate\n");
    assert_has(first, "- shape: box\n");
    k = kinds_well(first, NULL);
    assert_int_equal(k->one.box.shape, 2);
    assert_true(k->one.box.size[1] == 4.0);
    assert_int_equal(((kinds_shape *)k->many.item)[1].box.lines.n, 0);
    out = text_begin();
    OK(tsr_yaml_write(out, kinds_fields, k, &err));
    assert_string_equal(first, text_end(out));
}

/* ---- where each key was given ---- */

TEST(where_keys_were_given)
{
    static const char *const set[] = {"structure.flexible=[A:1-2]",
                                      "data.0.file=x"};
    const struct {
        const char *key, *place;
    } want[] = {
        {"seed", ":1:7"},
        {"structure", ":3:3"},
        {"structure.flexible.1", "--set structure.flexible=[A:1-2]"},
        {"structure.flexible.0", "--set structure.flexible=[A:1-2]"},
        {"structure.file", ":3:9"},
        {"structure.d_max", ":3:3"}, /* not given: what is above it */
        {"data.0.file", "--set data.0.file=x"},
        {"data.0.q_range", ":5:8"},
    };
    CLEARED(tsr_yaml_marks) marks = {0};
    config c = {0};
    static const char text[] =
        "seed: 3\nstructure:\n  file: a\n  flexible: [A:1-2, B:1]\n"
        "data: [{file: b}]\n";
    const char *path = io_text(name, text);
    OK(tsr_fields_init(config_fields, &c, &err));
    OK(tsr_yaml_read_marked(path, config_fields, &c, 2, set, &marks, &err));
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        const char *place = tsr_yaml_marks_find(&marks, want[i].key);
        if (place == NULL || strstr(place, want[i].place) == NULL)
            fail_msg("%s: at %s", want[i].key, place == NULL ? "-" : place);
    }
    assert_null(tsr_yaml_marks_find(&marks, "sampler.chains"));
    assert_null(tsr_yaml_marks_find(&marks, ""));
    tsr_fields_clear(config_fields, &c);
}
