#!/bin/sh
# Exported conformations as other programs read them: MDAnalysis from PyPI.
build=${BUILD:-build}
shared=../shared/data/saxs/lar_fn3_1_2
if [ ! -d $shared ]; then
    echo "skip exports: $shared is absent"
    exit 0
fi
if ! make -s --no-print-directory .venv/done >"$build/venv.log" 2>&1; then
    echo "skip exports: the virtual environment could not be made"
    sed 's/^/    /' "$build/venv.log"
    exit 0
fi
out=$build/export
rm -rf "$out"
mkdir -p "$out"
# The input writes one atom twice, which is read once.
awk '/^ATOM/ {key = substr($0, 13, 15); if (seen[key]++) next} {print}' \
    $shared/model.pdb >"$out/input.pdb"
if "$build/tessera" run configs/lar.yaml --output "$out/run" --quiet \
    --device reference --set structure.file="$out/input.pdb" \
    --set sampler.chains=1 --set sampler.warmup=0 --set sampler.draws=2 \
    --set sampler.thin=1 --set output.trajectory=none --set sampler.temperatures=1 >"$out/run.txt" 2>&1 &&
    "$build/tests/oracle/write_trajectory" "$out/run" 2 20 &&
    "$build/tessera" export "$out/run" --draws 0/0:20:2 --quiet \
        --output "$out/draws.pdb" &&
    .venv/bin/python tests/oracle/export_files.py "$out/run" \
        "$out/draws.pdb" "$out/input.pdb"; then
    echo "ok MDAnalysis opens exported draws: names, order, bonds"
else
    echo "not ok exported draws in MDAnalysis"
    cat "$out/run.txt"
fi
