/* What a user should look at: what the file lacks, and what was decided that
 * could be decided otherwise (private to src/parts). */
#ifndef TSR_PARTS_NOTES_H
#define TSR_PARTS_NOTES_H

#include "parts/parts.h"
#include "parts/parts_pieces.h"

/* Fills parts->note. Errors: TSR_E_NOMEM. */
tsr_status tsr_parts_take_notes(const tsr_parts_graph *graph,
                                const tsr_cut *cut, const tsr_pieces *pieces,
                                tsr_parts *parts, tsr_err *err);

#endif
