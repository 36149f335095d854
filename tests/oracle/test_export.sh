#!/bin/sh
# MDAnalysis reads exported conformations: names, order, places and bonds are right.
. tests/cli/expect.sh
needs_venv exports
shared=$shared/saxs/lar_fn3_1_2
if [ ! -d "$shared" ]; then
    echo "skip exports: $shared is absent"
    exit 0
fi
# The input writes one atom twice, which is read once.
awk '/^ATOM/ {key = substr($0, 13, 15); if (seen[key]++) next} {print}' \
    "$shared/model.pdb" >input.pdb
if tessera run "$source/configs/lar.yaml" --output run --quiet \
    --device reference --set structure.file="$work/input.pdb" \
    --set sampler.chains=1 --set sampler.warmup=0 --set sampler.draws=2 \
    --set sampler.thin=1 --set output.trajectory=none \
    --set sampler.temperatures=1 --set model_error=none >run.txt 2>&1 &&
    "$build/tests/oracle/write_trajectory" run 2 20 &&
    tessera export run --draws 0/0:20:2 --quiet --output draws.pdb &&
    "$python" "$source/tests/oracle/export_files.py" run draws.pdb input.pdb
then
    echo "ok MDAnalysis opens exported draws: names, order, bonds"
else
    echo "not ok exported draws in MDAnalysis"
    cat run.txt
fi
