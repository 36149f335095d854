#!/bin/sh
# clang's warnings for the kernels, without a device. A program is A.cl and one
# A_VARIANT.cl after it (src/gpu/engine_page_tile.c), or page_tile.cl and
# debye_sum_VARIANT.cl (src/gpu/debye_sum.c), with settings as the host gives
# them; a line number counts from the start of A.cl through both.
clang=${CLANG:-clang}
text=$(mktemp)
trap 'rm -f "$text"' EXIT
bad=0
n=0

lint() { # SETTING...: the program in $text
    n=$((n + 1))
    $clang -x cl -cl-std=CL1.2 -cl-mad-enable -fsyntax-only \
        -Xclang -finclude-default-header -Wall -Wextra -Werror $extra \
        "$@" "$text" || {
        echo "lint: kernels/$(basename "$base") and $(basename "$part") with $*" >&2
        bad=1
    }
}

for part in kernels/*_*_*.cl; do
    base=${part%_*}.cl extra=
    case $part in
    # It has use for the chains alone of what page_tile.cl holds.
    kernels/debye_sum_*) base=kernels/page_tile.cl extra=-Wno-unused-function ;;
    esac
    [ -e "$base" ] || {
        echo "lint: $part: no $base that it belongs to" >&2
        exit 1
    }
    cat "$base" "$part" >"$text"
    case $part in
    *simt*) lanes=1 ;;
    *) lanes="2 4 8 16" ;;
    esac
    for l in $lanes; do
        for switches in "0 0 0 0" "1 0 0 1" "0 1 0 2" "0 0 1 0" "1 1 1 2"; do
            set -- $switches
            lint -DTILE=32 -DPAGES=52 "-DLANES=$l" "-DGROUPS=$4" "-DBLOCKS=$4" \
                "-DSHORT_RANGE=$1" "-DATOMIC_OUT=$2" "-DWEIGHTED=$2" \
                "-DUSE_DOUBLE=$3"
        done
    done
done
part=kernels/map_sum.cl base=kernels/map_sum.cl extra=
cp "$part" "$text"
lint
part=kernels/surrogate.cl base=kernels/surrogate_turns.cl
cat "$base" kernels/surrogate_curve.cl "$part" >"$text"
for switches in "0 32" "1 32" "1 1"; do
    set -- $switches
    lint "-DHAS_C2=$1" "-DLANES=$2" -DN_POINT=40 -DN_BEAD=9 -DN_PAIR=30 -DN_TORSION=6 \
        -DN_SLOT=3 -DN_CONTACT_TYPE=21 -DN_KNOT=100 -DN_Q=20 -DN_CURVE=2 \
        -DJOB_SIZE=1500 -DAT_COUNT_UNIT=8 -DAT_ANGLE=11 -DAT_WIDTH=17 -DAT_AMOUNT=24 \
        -DWIDE=8 -DAT_SHAPE=60 -DAT_CONSTANT=120 -DAT_NUMERATOR=180 -DAT_DENOMINATOR=240 \
        -DAT_CURVE=300 -DCURVE_SIZE=442 -DN_LINKER=1 -DAT_FACTOR=1200
done
[ $n -gt 1 ] || { echo "lint: no kernel program found" >&2; bad=1; }
exit $bad
