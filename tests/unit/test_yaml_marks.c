/* The reader marks where each key of a configuration was given. */
#include "../config_table.h"
#include "files/yaml.h"
#include "tests/io_files.h"
#include "tests/test.h"

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
    const char *path = io_text("run.yaml", text);
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

/* A key under its former name is read as the key, and marked; both names are
 * the same key twice. */
TEST(former_names)
{
    static const char *const set[] = {"title=second"};
    config c = {0};
    tsr_yaml_marks marks = {0};
    const char *path = io_text("run.yaml", "title: first\n");
    for (int n_set = 0; n_set < 2; n_set++) {
        OK(tsr_fields_init(config_fields, &c, &err));
        OK(tsr_yaml_read_marked(path, config_fields, &c, n_set, set, &marks,
                                &err));
        assert_string_equal(c.name, n_set ? "second" : "first");
        assert_int_equal(marks.n, 1);
        assert_string_equal(marks.item[0].key, "name");
        assert_string_equal(marks.item[0].former, "title");
        tsr_yaml_marks_clear(&marks);
        tsr_fields_clear(config_fields, &c);
    }
    path = io_text("run.yaml", "title: first\nname: second\n");
    OK(tsr_fields_init(config_fields, &c, &err));
    FAILS(tsr_yaml_read_marked(path, config_fields, &c, 0, NULL, NULL, &err),
          TSR_E_CONFIG, "repeated key");
    tsr_fields_clear(config_fields, &c);
}
