/* Writes JSON (RFC 8259) as it is made: objects and arrays are opened and
 * closed in order, commas and lines come by themselves.
 *
 *     tsr_json j = {.out = out};
 *     tsr_json_object(&j, NULL);
 *     tsr_json_number(&j, "rg", 27.4);
 *     tsr_json_array(&j, "q");
 *     tsr_json_number(&j, NULL, 0.01);
 *     tsr_json_close(&j);
 *     tsr_json_close(&j);
 *
 * A member of an object has a key, an entry of an array has NULL. An object or
 * array within an array begins a line of its own, and so do the members of the
 * outermost object that are objects or arrays. After the last close the line is
 * ended. Errors of writing stay in the stream (ferror). An object or array that
 * is nested too deep is null, without what was to be in it, and is_bad is set;
 * the rest is whole. */
#ifndef TSR_CORE_JSON_H
#define TSR_CORE_JSON_H

#include <stdio.h>

enum { TSR_JSON_DEPTH = 32 }; /* brackets within each other, at most */

typedef struct {
    FILE *out;
    int digits;    /* significant ones of numbers that follow; 0: so many that
                      reading gives back the same double */
    int is_script; /* to stand in a script of a page: no blanks or lines, and
                      no '<', which with "/script" would end it */
    int is_bad;    /* out: something was nested deeper than can be written */
    int depth;     /* what follows is the writer's own */
    int too_deep;  /* open brackets that are not written */
    char close[TSR_JSON_DEPTH], has_entry[TSR_JSON_DEPTH];
} tsr_json;

void tsr_json_object(tsr_json *json, const char *key);
void tsr_json_array(tsr_json *json, const char *key);
void tsr_json_close(tsr_json *json); /* the object or array opened last */

/* null where it is not finite, which JSON cannot say. */
void tsr_json_number(tsr_json *json, const char *key, double value);
void tsr_json_numbers(tsr_json *json, const char *key, int n,
                      const double *value);
void tsr_json_integer(tsr_json *json, const char *key, long long value);
void tsr_json_truth(tsr_json *json, const char *key, int value);

/* NULL is null; a byte that is no UTF-8 becomes U+FFFD. */
void tsr_json_text(tsr_json *json, const char *key, const char *text);

#endif
