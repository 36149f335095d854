#!/bin/sh
# Whether two builds of the program draw the same bits: the same seed and
# configuration, every data set of every trace and trajectory. For changes that
# should not change what is computed.
#     tests/bits.sh OLD NEW       programs, e.g. ../before/build/tessera build/tessera
# Needs .venv (make .venv/done) and ../shared/data; takes some minutes.
[ $# -eq 2 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
old=$(realpath "$1") new=$(realpath "$2")
root=$(cd "$(dirname "$0")/.." && pwd)
data=$root/../shared/data
python=$root/.venv/bin/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

gunzip -c "$data/maps/adk_4ake_5A.mrc.gz" >adk.mrc
"$old" simulate "$root/configs/demo/demo.yaml" --output demo.dat >/dev/null 2>&1
"${WRITE_STRAND:-$root/build/tests/oracle/write_strand}" 8 rna >strand.pdb

# configure NAME: a configuration of standard input; all are as short.
configure() {
    cat >"$1.yaml"
    echo "output: {trajectory_every: 4}" >>"$1.yaml"
    names="$names $1"
}
short="warmup: 200, draws: 40, thin: 5"
lar=$data/saxs/lar_fn3_1_2
rpa=$data/saxs/rpa_multifoxs_synthetic
demo="structure: {file: $root/configs/demo/two_domain.pdb, flexible: [\"A:53-61\"]}"

configure reference <<END
$demo
data: [{file: demo.dat, noise: {model: student}}]
sampler: {chains: 2, temperatures: 2, $short}
device: {use: reference}
END
configure tiles <<END
$demo
data: [{file: demo.dat}, {kind: distance, between: ["A:10", "A:100"], mean: 42, sd: 3}]
sampler: {chains: 4, temperatures: 3, $short}
device: {use: cpu}
END
configure populations <<END
structure: {file: $lar/model.pdb, flexible: ["A:-6-10", "A:97-103", "A:197-201"]}
contrast: {c1: infer, c2: infer}
data: [{file: $lar/exp.dat, q_range: [0, 0.35]}]
sampler: {chains: 4, $short}
device: {use: cpu}
END
configure states <<END
structure: {file: $rpa/model.pdb, states: 2}
data: [{file: $rpa/exp.dat, q_range: [0, 0.2]}]
contrast: {c2: infer}
sampler: {chains: 4, temperatures: 2, $short}
device: {use: cpu}
END
configure walks <<END
structure: {file: $lar/model.pdb, flexible: ["A:97-103"]}
contrast: {c2: infer}
data: [{file: $lar/exp.dat, q_range: [0, 0.25]}]
moves: {surrogate: {devices: all}}
sampler: {chains: 2, temperatures: 2, $short}
device: {use: cpu}
END
configure atoms <<END
structure: {file: $lar/model.pdb, flexible: ["A:97-103"], bodies: atoms}
contrast: {c2: infer}
data: [{file: $lar/exp.dat, q_range: [0, 0.25]}]
sampler: {chains: 4, temperatures: 2, $short}
device: {use: cpu}
END
configure waves <<END
structure: {file: $lar/model.pdb, flexible: ["A:97-103"], bodies: atoms}
contrast: {c2: infer}
data: [{file: $lar/exp.dat, q_range: [0, 0.25]}]
sampler: {chains: 2, temperatures: 2, $short}
device: {use: cpu, engine: waves}
END
configure strand <<END
structure: {file: strand.pdb, flexible: ["S:4-8"]}
data: [{file: curve.dat}]
sampler: {chains: 2, temperatures: 2, $short}
device: {use: reference}
simulate: {points: 40, q_range: [0.01, 0.3], steps: 300, error: 0.03}
END
"$old" simulate strand.yaml --output curve.dat >/dev/null 2>&1
configure neutrons <<END
structure: {file: $lar/model.pdb, flexible: ["A:97-103"]}
data: [{file: $lar/exp.dat}, {kind: sans, file: $lar/exp.dat, d2o: 0.42}]
contrast: {c2: infer}
sampler: {chains: 2, temperatures: 2, $short}
device: {use: cpu}
END
configure map <<END
structure: {file: $data/maps/adk_1ake-docked.pdb}
data: [{kind: map, file: adk.mrc, resolution: 5}]
sampler: {chains: 2, temperatures: 2, $short}
device: {use: cpu}
END

for name in $names; do
    for side in old new; do
        eval "program=\$$side"
        "$program" run "$name.yaml" -v --threads 2 --output "$name-$side" \
            >"$name-$side.txt" 2>&1
        status=$?
        [ $status -le 1 ] || { echo "not ok $name: $side exits with $status"
            tail -3 "$name-$side.txt"; }
        # moves that a launch makes for many chains, told to be compared at all
        for move in $(case $name in
            walks) echo surrogate redraw ;;
            populations | states) echo redraw ;;
            esac); do
            grep -Eq "^ *$move +[0-9]+ proposed" "$name-$side.txt" ||
                echo "not ok $name: $side makes no $move"
        done
    done
    echo "$name|$name-old $name-new" >>list
done
"$python" "$root/tests/cli/compare_runs.py" <list
