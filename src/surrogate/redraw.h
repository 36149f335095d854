/* Stretches drawn anew: linkers and tails take another of many thousands of
 * shapes at once, by the surrogate of a run's posterior (surrogate/walker.h),
 * on the host.
 *
 * A curve holds the distance of two domains to a few tenths of an Angstrom, so
 * that of some 10^5 draws of a linker from the prior one will do. So many are
 * had by halves: with n draws of each half of a stretch, n^2 shapes of the
 * whole are candidates, and which of them have the right distance costs a
 * nanosecond each to say. Half k of the present shape is one of the draws, so
 * that the candidates are the same seen from any of them, and choosing one as g
 * says keeps g (Neal, Beal & Roweis 2003, embedded hidden Markov models;
 * Tjelmeland 2004). Let C be the candidates in a shell of distances that holds
 * the present one at a place drawn at random. g is a product of what is ever
 * dearer to say: torsions and each half's own overlaps, w0; the other overlaps,
 * w1; the curve, w2, summed over values of c2 that lie on a grid through the
 * present one. Of a set that holds the present member x, n draws by weights w
 * and x itself are another such set, in which what is left of g decides
 * (iterated sampling importance resampling: Andrieu, Lee & Vihola 2018). So 256
 * are drawn by w0, of these 64 by w1, and the end by w2.
 *
 * A job is that of a walk, of which only its place counts. A result has 0 and
 * the change of log g for log g at the start and at the end, and their bare
 * profiles (NaN where nothing could be drawn). */
#ifndef TSR_SURROGATE_REDRAW_H
#define TSR_SURROGATE_REDRAW_H

#include "surrogate/walker.h"

/* How many stretches there are to draw; 0: none, and there is no engine. */
int tsr_redraw_n_stretch(const tsr_surrogate_spec *spec);

/* Borrows the spec. NULL: out of memory. */
tsr_surrogate_engine *tsr_redraw_engine_new(const tsr_surrogate_spec *spec);

#endif
