/* The Debye engine by plane waves on an OpenCL device (DESIGN 4): for molecules
 * so large that a step of n bodies is cheaper by directions than by pairs.
 *
 *     I_ab(q) = mean over n of Re A_a(q n) A_b(q n)*,
 *     A_a(q n) = sum_i F_i^a(q) exp(i q n r_i)
 *
 * The device keeps the amplitudes of every system, in two slots as page_tile
 * does. A step adds the waves of the bodies that moved, at their new places,
 * and takes away those at the old ones. Bodies of a rigid unit (spec->unit) do
 * so together, by a table of the unit's amplitude, for the price of some 24
 * bodies on a processor and 160 on a GPU, whatever their number
 * (scattering/plane_wave.h); smaller units are loose bodies. What a table is of
 * may be other particles than the unit's bodies (spec->inside). So neither the
 * size of the molecule nor that of its domains counts, and components after the
 * first cost little, those that a body lacks nothing. Directions are those of
 * scattering/plane_wave.h in bands of q, and their number grows with the square
 * of the largest distance; there are several sets of them, of which a system
 * has the smallest that its present size allows for.
 *
 * Where more than half of that moves, after TSR_PLANE_WAVE_AGE differences in a
 * row, once the molecule has turned as a whole, and where it asks for another
 * set, all waves are summed afresh. A unit whose bodies are not where its pose
 * says, or of which a part moves, is refused (TSR_E_INTERNAL). */
#ifndef TSR_GPU_ENGINE_PLANE_WAVE_H
#define TSR_GPU_ENGINE_PLANE_WAVE_H

#include "engine/engine.h"
#include "gpu/engine_page_tile.h"

enum { TSR_PLANE_WAVE_AGE = 64 };

/* The device is borrowed and outlives the engine. Single precision. as_gpu: 1
 * for the GPU's kernel even on a processor, which tests want. Errors:
 * TSR_E_DEVICE (build, memory with the numbers), TSR_E_INTERNAL (spec, or no
 * d_bound_ang), TSR_E_NOMEM. */
tsr_status tsr_engine_plane_wave_new(const tsr_engine_spec *spec,
                                     const tsr_device *device, int as_gpu,
                                     tsr_engine **out, tsr_err *err);

/* As tsr_engine_self_test, of this engine, with a rigid unit. */
tsr_status tsr_plane_wave_self_test(const tsr_device *device, int as_gpu,
                                    int n_comp, tsr_self_test *result,
                                    tsr_err *err);

/* Which of the two engines of a device. */
typedef enum {
    TSR_ENGINE_AUTO,
    TSR_ENGINE_TILES,
    TSR_ENGINE_PLANE_WAVES
} tsr_engine_choice;

/* AUTO: the one that a step of a rigid unit costs least, by costs that were
 * measured once for each kind of device, so that a run chooses the same on
 * every one of that kind; tiles where no d_bound_ang is given. Particles inside
 * of units: plane waves whatever the choice. */
tsr_engine_choice tsr_engine_choose(const tsr_engine_spec *spec,
                                    const tsr_device_info *info,
                                    tsr_engine_choice choice);

/* Errors: those of either engine. */
tsr_status tsr_engine_device_new(const tsr_engine_spec *spec,
                                 const tsr_device *device,
                                 tsr_engine_choice choice, tsr_engine **out,
                                 tsr_err *err);

/* Systems that the device has room for; 0: not known. */
double tsr_engine_room(const tsr_engine_spec *spec, const tsr_device *device,
                       tsr_engine_choice choice);

#endif
