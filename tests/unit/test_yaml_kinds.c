/* YAML of structs that have kinds: selector, messages, --set and output. */
#include "../config_table.h"
#include "files/yaml.h"
#include "tests/io_files.h"
#include "tests/test.h"

static const char *path; /* of the file that was read last */

static tsr_status read_kinds(const char *text, const char *set, kinds *k)
{
    path = io_write("run.yaml", text, strlen(text));
    OK(tsr_fields_init(kinds_fields, k, &err));
    return tsr_yaml_read_marked(path, kinds_fields, k, set != NULL, &set, NULL,
                                &err);
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
        tsr_fields_clear(kinds_fields, k);
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
    tsr_fields_clear(kinds_fields, k);
}

static const char shapes[] = "one: {shape: box, name: a, size: [3, 4]}\n"
                             "many: [{radius: 2, name: b}]\n";

TEST(test_kinds_set)
{
    kinds *k = kinds_well(shapes, "one.shape=ball");
    assert_int_equal(k->one.ball.shape, 0);
    assert_string_equal(k->one.ball.name, "a"); /* both have it */
    assert_true(k->one.ball.radius == 1.0);
    tsr_fields_clear(kinds_fields, k);
    k = kinds_well(shapes, "one={shape: crate}");
    assert_int_equal(k->one.box.shape, 2);
    assert_true(k->one.box.size[0] == 3.0);
    tsr_fields_clear(kinds_fields, k);
    k = kinds_well(shapes, "one.size=[5, 6]"); /* of the file's kind */
    assert_true(k->one.box.size[0] == 5.0);
    tsr_fields_clear(kinds_fields, k);
    k = kinds_well(shapes, "many.0.shape=box");
    assert_string_equal(((kinds_shape *)k->many.item)->box.name, "b");
    assert_int_equal(((kinds_shape *)k->many.item)->box.shape, 1);
    tsr_fields_clear(kinds_fields, k);
    k = kinds_well(shapes, "many.1={size: [7, 8], shape: box}");
    assert_int_equal(k->many.n, 2);
    assert_true(((kinds_shape *)k->many.item)[1].box.size[0] == 7.0);
    tsr_fields_clear(kinds_fields, k);
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
        char want[TSR_ERR_SIZE];
        snprintf(want, sizeof want, "%s%s", rows[i].set != NULL ? "" : path,
                 rows[i].message);
        assert_int_equal(read_kinds(rows[i].text, rows[i].set, &k),
                         TSR_E_CONFIG);
        assert_string_equal(err.message, want);
        tsr_fields_clear(kinds_fields, &k);
    }
}

/* What is written reads back as the same. */
TEST(test_kinds_written)
{
    char *first = NULL, *second = NULL;
    size_t n, n_second;
    kinds *k = kinds_well("one: {shape: crate, size: [3, 4]}\n"
                          "many: [{radius: 2}, {shape: box, lines: []}]\n",
                          NULL);
    FILE *out = open_memstream(&first, &n);
    OK(tsr_yaml_write(out, kinds_fields, k, &err));
    fclose(out);
    tsr_fields_clear(kinds_fields, k);
    assert_has(first, "shape: crate\n");
    assert_has(first, "- shape: box\n");
    k = kinds_well(first, NULL);
    assert_int_equal(k->one.box.shape, 2);
    assert_true(k->one.box.size[1] == 4.0);
    assert_int_equal(((kinds_shape *)k->many.item)[1].box.lines.n, 0);
    out = open_memstream(&second, &n_second);
    OK(tsr_yaml_write(out, kinds_fields, k, &err));
    fclose(out);
    tsr_fields_clear(kinds_fields, k);
    assert_string_equal(first, second);
    free(first);
    free(second);
}
