#!/bin/sh
# The configurations that ship, shortened, lead from the published model to a lower chi2 on
# real data, and ArviZ opens their traces.
. tests/cli/expect.sh
needs_venv "runs on real data"
if [ ! -d "$shared/saxs" ]; then
    echo "skip runs on real data: $shared/saxs is absent"
    exit 0
fi
if ! tessera devices --no-test >devices.txt 2>&1; then
    echo "skip runs on real data: no OpenCL device"
    exit 0
fi
set -- # what run_arviz.py is to look at: its packages take seconds to load
for what in "lar 166 measured" "lar 166 relative" "lar 166 student" \
    "ligase 475 measured"; do
    points=${what#* } noise=${what##* }
    out=${what%% *}-$noise points=${points% *}
    model="model: $noise"
    [ "$noise" != relative ] || model="$model, alpha: infer, beta: infer"
    if tessera run "$source/configs/${what%% *}.yaml" --output "$out" \
        --quiet --set sampler.chains=2 --set sampler.warmup=400 --set sampler.thin=5 \
        --set sampler.draws=20 --set model_error.conformations=6 \
        --set "data.0.noise={$model}" >"$out.txt"; then
        start=$(awk '$1 == "chi2" {at = $2} END {print at}' "$out.txt")
        set -- "$@" "$out" "$start" "$points" "$noise"
    else
        echo "not ok $out"
    fi
done
"$python" "$source/tests/oracle/run_arviz.py" "$@"
