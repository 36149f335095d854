#include "io/yaml_marks.h"

#include <stdlib.h>
#include <string.h>

static void drop(tsr_yaml_marks *marks, int k)
{
    free(marks->item[k].key);
    free(marks->item[k].place);
    marks->item[k] = marks->item[--marks->n];
}

tsr_status tsr_yaml_marks_put(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err)
{
    size_t length = strlen(key);
    for (int k = marks->n - 1; k >= 0; k--) {
        const char *old = marks->item[k].key;
        if (strncmp(old, key, length) == 0 &&
            (old[length] == '\0' || old[length] == '.'))
            drop(marks, k);
    }
    return tsr_yaml_marks_add(marks, key, place, err);
}

tsr_status tsr_yaml_marks_add(tsr_yaml_marks *marks, const char *key,
                              const char *place, tsr_err *err)
{
    if (marks->n == marks->room) {
        int room = 2 * marks->room + 32;
        tsr_yaml_mark *more =
            realloc(marks->item, (size_t)room * sizeof *marks->item);
        if (more == NULL)
            return tsr_fail(err, TSR_E_NOMEM, "out of memory");
        marks->item = more;
        marks->room = room;
    }
    tsr_yaml_mark mark = {strdup(key), strdup(place)};
    if (mark.key == NULL || mark.place == NULL) {
        free(mark.key);
        free(mark.place);
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    marks->item[marks->n++] = mark;
    return TSR_OK;
}

const char *tsr_yaml_marks_find(const tsr_yaml_marks *marks, const char *key)
{
    for (size_t length = strlen(key); length > 0;) {
        for (int k = 0; k < marks->n; k++)
            if (strncmp(marks->item[k].key, key, length) == 0 &&
                marks->item[k].key[length] == '\0')
                return marks->item[k].place;
        do
            length--;
        while (length > 0 && key[length] != '.');
    }
    return NULL;
}

void tsr_yaml_marks_clear(tsr_yaml_marks *marks)
{
    while (marks->n > 0)
        drop(marks, marks->n - 1);
    free(marks->item);
    *marks = (tsr_yaml_marks){0};
}
