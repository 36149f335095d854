#!/bin/sh
# The configurations that ship, on real data, shortened: from the published model
# to a lower chi2, and a trace that ArviZ opens.
build=${BUILD:-build}
shared=../shared/data/saxs
if [ ! -d $shared ]; then
    echo "skip runs on real data: $shared is absent"
    exit 0
fi
if ! "$build/tessera" devices --no-test >"$build/devices.txt" 2>&1; then
    echo "skip runs on real data: no OpenCL device"
    exit 0
fi
if ! make -s --no-print-directory .venv/done >"$build/venv.log" 2>&1; then
    echo "skip runs on real data: the virtual environment could not be made"
    sed 's/^/    /' "$build/venv.log"
    exit 0
fi
run() { # NAME POINTS
    out=$build/runs/$1
    rm -rf "$out"
    if "$build/tessera" run "configs/$1.yaml" --output "$out" --quiet \
        --set sampler.chains=2 --set sampler.warmup=1000 \
        --set sampler.draws=25 >"$build/$1.txt" &&
        start=$(awk '$1 == "chi2" {print $2}' "$build/$1.txt") &&
        .venv/bin/python tests/oracle/run_arviz.py "$out" "$start" "$2"; then
        echo "ok $1: a lower chi2, a trace that ArviZ opens"
    else
        echo "not ok $1"
    fi
}
run lar 166
run ligase 475
