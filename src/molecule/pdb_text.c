/* Copies the records that count, line by line, and refuses a wrong one with its
 * line number before gemmi sees it. */
#include "molecule/pdb_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RECORD = 81 }; /* 80 columns and a newline */

/* Record name in columns 1 to 6, blanks after it. */
static int is_record(const char *line, size_t size, const char *name)
{
    size_t n = strlen(name);
    if (size < n || strncasecmp(line, name, n) != 0)
        return 0;
    for (; n < 6 && n < size; n++)
        if (line[n] != ' ')
            return 0;
    return 1;
}

/* Six-figure serial numbers reach into the columns of the record's name. */
static int is_atom(const char *line, size_t size)
{
    return size > 4 && ((strncasecmp(line, "ATOM", 4) == 0 &&
                         (line[4] == ' ' || isdigit((unsigned char)line[4]))) ||
                        (size > 6 && strncasecmp(line, "HETATM", 6) == 0));
}

/* Blanks, a sign, digits and a point among them, blanks: what nearly all fields
 * are, told without the library's conversion. */
static int is_plain_number(const char *field, size_t width)
{
    size_t k = 0, n_digit = 0, n_point = 0;
    while (k < width && field[k] == ' ')
        k++;
    k += k < width && (field[k] == '-' || field[k] == '+');
    for (; k < width && field[k] != ' '; k++) {
        const int is_point = field[k] == '.';
        if (!is_point && !(field[k] >= '0' && field[k] <= '9'))
            return 0;
        n_point += (size_t)is_point;
        n_digit += (size_t)!is_point;
    }
    while (k < width && field[k] == ' ')
        k++;
    return k == width && n_digit > 0 && n_point <= 1;
}

/* A field of fixed width that holds one number and blanks. */
static int is_number(const char *field, size_t width)
{
    char text[16], *end;
    if (is_plain_number(field, width))
        return 1;
    memcpy(text, field, width);
    text[width] = '\0';
    if (strpbrk(text, "xX") != NULL)
        return 0;
    (void)strtod(text, &end);
    if (end == text)
        return 0;
    while (*end == ' ')
        end++;
    return *end == '\0';
}

static int is_water(const char *residue)
{
    static const char *const name[] = {"HOH", "WAT", "DOD",
                                       "H2O", "TIP", "SOL"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (strncasecmp(residue, name[i], 3) == 0)
            return 1;
    return 0;
}

static tsr_status check_atom(const char *path, const char *line, size_t size,
                             long number, tsr_err *err)
{
    if (size < 54)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s', line %ld: the atom record ends before its "
                        "coordinates do; is the file complete?",
                        path, number);
    for (int k = 0; k < 3; k++)
        if (!is_number(line + 30 + 8 * k, 8))
            return tsr_fail(err, TSR_E_DATA,
                            "'%s', line %ld: the %c coordinate '%.8s' is not a "
                            "number; columns 31 to 54 must hold x, y, z",
                            path, number, "xyz"[k], line + 30 + 8 * k);
    /* A letter begins a hybrid-36 number. Water often has none that is right,
     * and does not matter. */
    if (!is_number(line + 22, 4) && !isalpha((unsigned char)line[22]) &&
        !is_water(line + 17))
        return tsr_fail(err, TSR_E_DATA,
                        "'%s', line %ld: the residue number '%.4s' is not a "
                        "number; columns 23 to 26 must hold it",
                        path, number, line + 22);
    return TSR_OK;
}

/* Columns 1 to 66, and 77 to 78 where they hold an element. */
static void copy_atom(char out[RECORD], const char *line, size_t size)
{
    memset(out, ' ', RECORD);
    memcpy(out, line, size < 66 ? size : 66);
    for (size_t k = 76; k < 78 && k < size; k++)
        if (isalpha((unsigned char)line[k]))
            out[k] = line[k];
    out[RECORD - 1] = '\n';
}

static size_t trimmed(const char *line, size_t size)
{
    while (size > 0 && isspace((unsigned char)line[size - 1]))
        size--;
    return size;
}

tsr_status tsr_pdb_first_model(const char *path, const char *text, size_t size,
                               char **kept, size_t *kept_size, int *n_model,
                               tsr_err *err)
{
    /* An atom record of 54 columns becomes one of 81 characters. */
    size_t n = 0, room = size / 54 * RECORD + size + RECORD + 1;
    char *out = malloc(room);
    if (out == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory reading '%s'", path);
    /* Atoms after END are read too: where files were put together, they are
     * other chains, or repeat residues and are refused for that. */
    int in_model = 0;
    long number = 1;
    *n_model = 0;
    for (const char *p = text, *end = text + size; p < end; number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        if (stop == NULL)
            stop = end;
        size_t length = trimmed(p, (size_t)(stop - p));
        if (is_atom(p, length)) {
            in_model = 1;
            if (*n_model == 0) {
                tsr_status status = check_atom(path, p, length, number, err);
                if (status != TSR_OK) {
                    free(out);
                    return status;
                }
                copy_atom(out + n, p, length);
                n += RECORD;
            }
        } else if (is_record(p, length, "MODEL") ||
                   is_record(p, length, "ENDMDL")) {
            *n_model += in_model;
            in_model = 0;
        } else if (*n_model == 0 && length >= 3 &&
                   strncasecmp(p, "TER", 3) == 0 &&
                   (length == 3 || p[3] == ' ')) {
            memcpy(out + n, "TER\n", 4);
            n += 4;
        }
        p = stop + 1;
    }
    *n_model += in_model;
    if (*n_model == 0) {
        free(out);
        return tsr_fail(err, TSR_E_DATA,
                        "'%s' is not a structure: it has no atom records of "
                        "PDB and does not begin as mmCIF; give a PDB or mmCIF "
                        "file",
                        path);
    }
    out[n] = '\0';
    *kept = out;
    *kept_size = n;
    return TSR_OK;
}
