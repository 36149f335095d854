#!/bin/bash
# Speed of the analysis of trajectories (docs/cluster.md, "Analysis in parallel"):
#
#     bench/analysis.sh [THREADS...]      default 1 2 and so on, up to the processors
#
# A frame's cost is (time of all frames - time of two) / (frames - 2), so that start, map
# and device do not count; they are the first column of numbers. The efficiency is that
# against one thread. Ranks too, where build/mpi/tessera-mpi and mpirun are there.
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
seconds() { # COMMAND...: its wall time
    local start
    start=$(date +%s.%N)
    "$@" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
    echo "$(date +%s.%N) $start" | awk '{print $1 - $2}'
}
measure() { # NAME FRAMES COMMAND...: for each number of threads
    local name=$1 n=$2 first= few all
    shift 2
    for t in $threads; do
        few=$(seconds "$@" --frames 2 --threads "$t")
        all=$(seconds "$@" --frames "$n" --threads "$t")
        first=${first:-$(echo "$all $few" | awk '{print $1 - $2}')}
        echo "$few $all $first" | awk -v n="$n" -v t="$t" -v name="$name" \
            '{printf "%-34s threads %2d: start %6.2f s, %9.2f frames/s, efficiency %5.1f %%\n",
              name, t, $1, (n - 2) / ($2 - $1), 100 * $3 / ($2 - $1) / t}'
    done
}
of() { # FOLDER COMMAND... with its model, trajectory and map
    local d=$work/$1
    shift
    case $1 in
    profile) "$tessera" profile "$d/model.pdb" -t "$d/frames.dcd" "${@:2}" ;;
    *) "$tessera" map "$@" "$d/model.pdb" -t "$d/frames.dcd" -m "$d/map.mrc" -r 6.5 --force ;;
    esac
}
uptime
scale=${SCALE:-1} # frames, as a multiple of those for two processors
make_frames small "$shared/maps/adk_4ake-target.pdb" 1 $((200 * scale))
make_frames middle "$shared/saxs/ligase_multifoxs/model.pdb" 1 $((100 * scale))
small=$((200 * scale)) middle=$((100 * scale))
measure "profile, 1656 atoms" $small of small profile
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
