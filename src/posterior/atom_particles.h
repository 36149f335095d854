/* All atoms of a run's molecule, with their water, as particles of an engine.
 *
 * The atoms go where those of atom_curves.h go. The water is the layer outside
 * the surface (scattering/atom_model.h) that one conformation has, and each of
 * its beads rides on the atom that it belongs to: a rigid part takes its own
 * layer along, as in programs that put molecules together of domains (Petoukhov
 * & Svergun 2005, Biophys. J. 89, 1237). What that gets wrong where the surface
 * is another one, a run learns as it does for bodies (docs/statistics.md). */
#ifndef TSR_POSTERIOR_ATOM_PARTICLES_H
#define TSR_POSTERIOR_ATOM_PARTICLES_H

#include "likelihood/likelihood.h"
#include "likelihood/particles.h"
#include "posterior/atom_curves.h"

typedef struct {
    const tsr_topology *topology;     /* borrowed, as all here */
    const tsr_conformation *first;    /* whose layer rides */
    const tsr_likelihood *likelihood; /* of bodies: its probes */
    const tsr_neutron *sample;        /* [n_probe] of neutrons */
    const tsr_parameter *contrast;    /* [TSR_N_CONTRAST] */
} tsr_atom_particles_spec;

/* Takes the curves, which need no device, also after an error. Errors:
 * TSR_E_NOMEM, those of tsr_atom_curves_place and tsr_neutron_apply. */
tsr_status tsr_atom_particles_new(const tsr_atom_particles_spec *spec,
                                  tsr_atom_curves *curves, tsr_particles **out,
                                  tsr_err *err);

#endif
