#!/bin/sh
# The configurations that ship, on real data, shortened: from the published model
# to a lower chi2, and a trace that ArviZ opens.
. tests/cli/expect.sh
needs_venv "runs on real data"
if [ ! -d "$shared/saxs" ]; then
    echo "skip runs on real data: $shared/saxs is absent"
    exit 0
fi
if ! "$program" devices --no-test >devices.txt 2>&1; then
    echo "skip runs on real data: no OpenCL device"
    exit 0
fi
run() { # NAME POINTS NOISE
    out=$1-$3
    noise="model: $3"
    [ "$3" != relative ] || noise="$noise, alpha: infer, beta: infer"
    if "$program" run "$source/configs/$1.yaml" --output "$out" --quiet \
        --set sampler.chains=2 --set sampler.warmup=1000 \
        --set sampler.draws=25 --set "data.0.noise={$noise}" \
        >"$out.txt" &&
        start=$(awk '$1 == "chi2" {print $2}' "$out.txt") &&
        "$python" "$source/tests/oracle/run_arviz.py" "$out" "$start" "$2" "$3"
    then
        echo "ok $1, $3: a lower chi2, a trace that ArviZ opens"
    else
        echo "not ok $1, $3"
    fi
}
run lar 166 measured
run lar 166 relative
run lar 166 student
run ligase 475 measured
