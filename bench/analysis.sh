#!/bin/bash
# Speed of the analysis of trajectories (docs/cluster.md, "Analysis in parallel"):
#
#     bench/analysis.sh [THREADS...]      default 1 2 and so on, up to the processors
#
# A frame's cost is (time of all frames - time of two) / (frames - 2), so that start, map
# and device do not count; they are the first column of numbers. `cpu` is the processor
# time of a frame, of all threads: unlike the wall time it does not depend on other
# programs. The efficiency is that of the wall times against one thread. With RANKS="1 2 4"
# and build/tessera-mpi, that many ranks of one thread each instead of threads.
set -e
tessera=${TESSERA:-build/tessera}
shared=${SHARED:-../shared/data}
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
threads=${*:-$(for ((t = 1; t <= $(nproc); t *= 2)); do echo $t; done)}
make_frames() { # NAME MODEL COPIES FRAMES
    mkdir "$work/$1"
    "$python" bench/analysis_frames.py "$2" "$3" "$4" "$work/$1"
    "$tessera" map simulate "$work/$1/model.pdb" --like "$work/$1/grid.mrc" -r 6.5 \
        -o "$work/$1/map.mrc" -q
}
seconds() { # COMMAND...: its wall time and processor time
    local TIMEFORMAT='%R %U %S'
    { time "$@" >"$work/out" 2>"$work/err"; } 2>"$work/time" || { cat "$work/err" >&2; exit 1; }
    awk '{print $1, $2 + $3}' "$work/time"
}
measure() { # NAME FRAMES COMMAND...: for each number of threads or ranks
    local name=$1 n=$2 first= few all
    shift 2
    for t in ${RANKS:-$threads}; do
        each=$([ -n "$RANKS" ] && echo 1 || echo "$t")
        few=$(seconds "$@" --frames 2 --threads "$each")
        all=$(seconds "$@" --frames "$n" --threads "$each")
        first=${first:-$(echo "$all $few" | awk '{print $1 - $3}')}
        echo "$all $few $first" | awk -v n="$n" -v t="$t" -v name="$name" \
            '{wall = ($1 - $3) / (n - 2)
              printf "%-36s %2d: start %6.2f s, %9.2f frames/s, cpu %8.2f ms, efficiency %5.1f %%\n",
              name, t, $3, 1 / wall, 1000 * ($2 - $4) / (n - 2), 100 * $5 / (n - 2) / wall / t}'
    done
}
program() { # COMMAND...
    if [ -n "$RANKS" ]; then mpirun $MPIRUN_OPTIONS -np "$t" "$tessera-mpi" "$@"; else "$tessera" "$@"; fi
}
of() { # FOLDER COMMAND... with its model, trajectory and map
    local d=$work/$1
    shift
    case $1 in
    profile) program profile "$d/model.pdb" -t "$d/frames.dcd" "${@:2}" ;;
    *) program map "$@" "$d/model.pdb" -t "$d/frames.dcd" -m "$d/map.mrc" -r 6.5 --force ;;
    esac
}
uptime
scale=${SCALE:-1} # frames, as a multiple of those for two processors
make_frames tiny "$shared/saxs/lysozyme_2epe/model.pdb" 1 $((200 * scale))
make_frames small "$shared/maps/adk_4ake-target.pdb" 1 $((200 * scale))
make_frames middle "$shared/saxs/ligase_multifoxs/model.pdb" 1 $((100 * scale))
small=$((200 * scale)) middle=$((100 * scale))
measure "profile, 1001 atoms" $small of tiny profile
measure "profile, 4773 atoms" $middle of middle profile
measure "map cc, 1656 atoms, reference" $small of small cc --device reference
measure "map cc, 1656 atoms, device" $small of small cc
measure "map timeline, 1656 atoms, reference" $((small / 10)) \
    of small timeline -o "$work/line" --by structure --device reference
measure "map timeline, 1656 atoms, device" $small \
    of small timeline -o "$work/line" --by structure
if [ -n "$LARGE" ]; then # the size of a virus capsid
    make_frames large "${LARGE}" 15 $((30 * scale))
    measure "map timeline, large, device" $((30 * scale)) \
        of large timeline -o "$work/line" --by chain
fi
