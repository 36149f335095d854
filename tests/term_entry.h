/* A term read from an entry of `data:`, as a configuration has it. */
#ifndef TSR_TESTS_TERM_ENTRY_H
#define TSR_TESTS_TERM_ENTRY_H

#include "tests/io_files.h"

#include "files/yaml.h"
#include "likelihood/term.h"

/* entry: what follows the kind, as "mean: 42, sd: 3". */
static inline tsr_status read_term(const tsr_topology *topology,
                                   const char *kind, const char *entry,
                                   tsr_term **out)
{
    static const tsr_field fields[] = {
        {.name = "data",
         .type = TSR_FIELD_LIST,
         .selector = "kind",
         .kind = tsr_term_kind,
         .element_size = sizeof(tsr_term_options)},
        {0}};
    char text[600];
    tsr_list data;
    int n = snprintf(text, sizeof text, "data: [{kind: %s, %s}]", kind, entry);
    const char *path = io_write("run.yaml", text, (size_t)n);
    OK(tsr_fields_init(fields, &data, &err));
    *out = NULL;
    tsr_status status =
        tsr_yaml_read_marked(path, fields, &data, 0, NULL, NULL, &err);
    if (status == TSR_OK) {
        const tsr_term_source source = {
            .options = data.item, .number = 0, .topology = topology};
        status = tsr_term_read(&source, out, &err);
    }
    tsr_fields_clear(fields, &data);
    return status;
}

#endif
