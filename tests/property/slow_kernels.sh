#!/bin/sh
# Kernels in Oclgrind, a simulator of devices: no data race, no access out of bounds, no
# value used that was never written, no wrong call. Its plugin for such values (21.10)
# cannot follow `restrict` and what clang optimises.
. tests/cli/expect.sh
if ! command -v oclgrind >/dev/null; then
    echo "skip kernels in a simulator: no oclgrind (apt-get install oclgrind)"
    exit 0
fi
cd "$source" || exit 1
# simulate PROGRAM TEST [VARIANT]: of a test program in Oclgrind, on a device of $kind with
# work-groups of at most $most work-items; any message fails.
kind=gpu most=1024
simulate() {
    TESSERA_SIMULATED=$kind TESSERA_TEST_DEVICE=$kind TESSERA_TEST=$2 TESSERA_TEST_VARIANT=${3:-*} \
        oclgrind --max-wgsize $most --data-races --check-api --uninitialized \
        --global-mem-size 4000000000 --log "$work/log" --max-errors 20 \
        --build-options "-Drestrict= -cl-opt-disable" \
        sh -c 'LD_PRELOAD=$0:$LD_PRELOAD exec "$@"' "$build/tests/support/simulated.so" \
        "$build/tests/$1" >"$work/out.txt" 2>&1
    status=$?
    cat "$work/log" >>"$work/out.txt" 2>/dev/null
    if [ $status -eq 0 ] && [ ! -s "$work/log" ]; then
        echo "ok $1 $2 $3"
    else
        echo "not ok $1 $2 $3: exit status $status"
        head -n 40 "$work/out.txt" | sed 's/^/    /'
        bad=1
    fi
}
simulate property/test_engine_moves self_test "SIMD, tile 16*"
export TESSERA_TEST_TILE=16 # a sixteenth of the pairs
simulate property/test_engine_moves self_test "SIMT"
simulate property/test_engine_moves self_test "SIMT, no atomics, diff*"
simulate property/test_engine_moves self_test "SIMT, copied*"
simulate property/test_density self_test
simulate unit/test_debye_sum progress_tells_and_stops
simulate property/test_plane_wave units_move_at_small_q
kind=cpu most=16
simulate property/test_plane_wave units_move_at_small_q
simulate property/test_surrogate few_walks
kind=gpu
simulate property/test_surrogate few_walks
exit $bad
