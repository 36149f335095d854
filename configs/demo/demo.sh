#!/bin/sh
# make demo: simulates a noisy curve from a known conformation, and samples the
# posterior.
set -e
program=${PROGRAM:-build/tessera}
config=configs/demo/demo.yaml
rm -rf build/demo
mkdir -p build/demo

"$program" simulate $config --output build/demo/truth.dat >build/demo/truth.txt
"$program" run $config --output build/demo/run >build/demo/run.txt

echo
echo "tessera demo: two domains on a flexible linker"
cat build/demo/run.txt
awk '/^Rg/ {printf "  %-14s %10.4g   (the simulated truth)\n", "true Rg", $2}' \
    build/demo/truth.txt
