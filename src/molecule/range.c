/* Reads a range and marks its residues. A range that names none, or reaches
 * beyond the chain, is a mistake of the user's and is refused with what there
 * is. */
#include "molecule/range.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tsr_status bad_range(const char *text, tsr_err *err)
{
    return tsr_fail(err, TSR_E_CONFIG,
                    "residue range '%s': expected CHAIN:FIRST-LAST, "
                    "CHAIN:NUMBER, CHAIN or, with one chain, FIRST-LAST",
                    text);
}

/* Reads a residue number; returns 0 where there is none. */
static int read_number(const char **at, long *number)
{
    char *end;
    if (!isdigit((unsigned char)**at) &&
        !(**at == '-' && isdigit((unsigned char)(*at)[1])))
        return 0;
    *number = strtol(*at, &end, 10);
    *at = end;
    return *number > INT_MIN && *number < INT_MAX;
}

const char *tsr_range_chains(int n_residue, const tsr_residue *residue,
                             char text[TSR_CHAINS_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < n_residue && used + 16 < TSR_CHAINS_SIZE; i++)
        if (residue[i].chain_first == i)
            used += (size_t)snprintf(
                text + used, TSR_CHAINS_SIZE - used, "%s%s", i > 0 ? ", " : "",
                used + 32 < TSR_CHAINS_SIZE ? residue[i].chain : "...");
    return text;
}

tsr_status tsr_range_mark(const char *text, int n_residue,
                          const tsr_residue *residue, int value, int *mark,
                          tsr_err *err)
{
    char chain[8] = "", chains[TSR_CHAINS_SIZE];
    long first = INT_MIN, last = INT_MAX;
    const char *at = text, *colon = strchr(text, ':');
    int has_number = 1;
    if (colon != NULL) {
        size_t n = (size_t)(colon - text);
        if (n == 0 || n >= sizeof chain)
            return bad_range(text, err);
        memcpy(chain, text, n);
        at = colon + 1;
    } else if (!read_number(&at, &first)) {
        if (strlen(text) == 0 || strlen(text) >= sizeof chain)
            return bad_range(text, err);
        memcpy(chain, text, strlen(text) + 1);
        has_number = 0;
    } else {
        at = text;
    }
    if (has_number) {
        if (!read_number(&at, &first))
            return bad_range(text, err);
        last = first;
        if (*at == '-') {
            at++;
            if (!read_number(&at, &last))
                return bad_range(text, err);
        }
        if (*at != '\0')
            return bad_range(text, err);
    }
    if (first > last)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': ends before it begins", text);
    if (chain[0] == '\0' && residue[n_residue - 1].chain_first != 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': the structure has several "
                        "chains; put the chain before it, as in %s:%s",
                        text, residue[0].chain, text);
    int n_found = 0, n_chain = 0, lowest = INT_MAX, highest = INT_MIN;
    for (int i = 0; i < n_residue; i++) {
        if (chain[0] != '\0' && strcmp(chain, residue[i].chain) != 0)
            continue;
        n_chain++;
        lowest = residue[i].number < lowest ? residue[i].number : lowest;
        highest = residue[i].number > highest ? residue[i].number : highest;
        if (residue[i].number < first || residue[i].number > last)
            continue;
        mark[i] = value;
        n_found++;
    }
    if (n_chain == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': there is no chain '%s'; "
                        "chains: %s",
                        text, chain,
                        tsr_range_chains(n_residue, residue, chains));
    if (n_found == 0)
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': names no residue; the chain goes "
                        "from %d to %d",
                        text, lowest, highest);
    if (has_number && (first < lowest || last > highest))
        return tsr_fail(err, TSR_E_CONFIG,
                        "residue range '%s': the chain goes from %d to %d only",
                        text, lowest, highest);
    return TSR_OK;
}
