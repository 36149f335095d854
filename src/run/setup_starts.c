/* Where the states of an ensemble start. */
#include "run/setup.h"

#include "io/structure.h"

#include <stdlib.h>
#include <string.h>

/* The same residues, joined in the same places. */
static tsr_status check_alike(const tsr_topology *own,
                              const tsr_topology *other, const char *path,
                              tsr_err *err)
{
    if (own->n_residue != other->n_residue)
        return tsr_fail(err, TSR_E_DATA,
                        "'%s': %d residues, structure.file has %d; a state has "
                        "the same molecule",
                        path, other->n_residue, own->n_residue);
    for (int i = 0; i < own->n_residue; i++) {
        const tsr_residue *a = &own->residue[i], *b = &other->residue[i];
        if (a->amino != b->amino)
            return tsr_fail(
                err, TSR_E_DATA,
                "'%s': residue %s:%d is %s where structure.file "
                "has %s (%s:%d); a state has the same molecule",
                path, b->chain, b->number, tsr_amino_table[b->amino].three,
                tsr_amino_table[a->amino].three, a->chain, a->number);
        if (a->linked != b->linked)
            return tsr_fail(err, TSR_E_DATA,
                            "'%s': %s peptide bond before %s:%d, unlike in "
                            "structure.file; complete the chain in both",
                            path, b->linked ? "a" : "no", b->chain, b->number);
    }
    return TSR_OK;
}

static tsr_status read_start(const char *path, tsr_log *log, tsr_setup *s,
                             tsr_conformation **out, tsr_err *err)
{
    const tsr_topology *own = s->topology;
    tsr_structure *structure = NULL;
    tsr_topology *topology = NULL;
    tsr_conformation *read = NULL, *c = NULL;
    tsr_status status = tsr_structure_read(path, &structure, err);
    if (status == TSR_OK)
        status = tsr_topology_from_structure(
            structure, own->body_model, (tsr_flexibility){.is_still = 1},
            s->prior_table, log, &topology, &read, err);
    if (status == TSR_OK)
        status = check_alike(own, topology, path, err);
    if (status == TSR_OK) {
        c = tsr_conformation_new(own);
        if (c == NULL)
            status = tsr_fail(err, TSR_E_NOMEM, "out of memory");
    }
    if (status == TSR_OK) {
        tsr_conformation_copy(own, c, read, 0, own->n_residue);
        tsr_conformation_place_bodies(own, c, 0, own->n_residue);
        *out = c;
    }
    tsr_conformation_free(read);
    tsr_topology_free(topology);
    tsr_structure_free(structure);
    return status;
}

tsr_status tsr_setup_starts(const tsr_config *config, tsr_log *log,
                            tsr_setup *setup, tsr_err *err)
{
    tsr_setup *s = setup;
    const tsr_list *starts = &config->structure.starts;
    const tsr_start_config *start = starts->item;
    tsr_status status = TSR_OK;
    if (starts->n == 0)
        return TSR_OK;
    s->start = calloc((size_t)starts->n, sizeof(*s->start));
    if (s->start == NULL)
        return tsr_fail(err, TSR_E_NOMEM, "out of memory");
    for (int k = 0; k < starts->n && status == TSR_OK; k++) {
        status = read_start(start[k].file, log, s, &s->start[k], err);
        s->n_start += status == TSR_OK;
    }
    return status;
}
