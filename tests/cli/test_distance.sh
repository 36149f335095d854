#!/bin/sh
# A measured distance in a run: alone, beside scattering curves, as an entry of
# another kind, stopped and gone on with. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data:
  - {kind: distance, between: ["A:10", "A:100"], mean: 40, sd: 3}
sampler: {chains: 2, warmup: 40, draws: 12, thin: 2, temperatures: 1}
output: {directory: alone, trajectory_every: 3}
device: {use: reference}
END
cat >p.dat <<END
# r (nm) and P(r)
3.0 0.01
3.5 0.3
4.0 1.0
4.5 0.4
5.0 0.02
END
cat >curve.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [curve.dat]
device: {use: reference}
simulate: {points: 30, q_range: [0.01, 0.15], steps: 50}
contrast: {c2: 0}
END
expect "simulate" 0 "" "$program" simulate curve.yaml --output curve.dat

expect "help" 0 "" "$program" run --help data
check "help of the kinds" grep -qE "^ +kind: saxs \(default\)" out.txt
check "and of this one" grep -qE "^ +kind: distance" out.txt
expect "check" 0 "" "$program" check good.yaml
check "resolved" grep -q "kind: distance" out.txt
cp out.txt resolved.yaml
expect "the resolved config is a config" 0 "" "$program" check resolved.yaml
check "and resolves to itself" cmp -s out.txt resolved.yaml

expect "no sd" 78 "data.0: a distance needs mean and sd" \
    "$program" check good.yaml --set data.0.sd=0
expect "sd and file" 78 "data.0: give mean and sd, or a file, not both" \
    "$program" check good.yaml --set data.0.file=p.dat
expect "unknown residue" 78 "data.0: between" \
    "$program" check good.yaml --set 'data.0.between=["A:10", "A:900"]'
expect "a rigid pair" 78 "data.0: between: .*in one rigid part" \
    "$program" check good.yaml --set 'data.0.between=["A:10", "A:12"]'
expect "a key of a curve" 78 \
    "data.0.noise': it has no effect with kind: distance; it belongs to kind: saxs" \
    "$program" check good.yaml --set data.0.noise.model=student
expect "no such kind" 78 "data.0.kind': value 'nmr' is not known.*saxs, sans, distance" \
    "$program" check good.yaml --set data.0.kind=nmr

# run NAME DIR OPTION...: a run into DIR, whose summary names the distance.
run() {
    what=$1 into=$2
    shift 2
    expect "run, $what" 0 "" "$program" run good.yaml --output "$into" "$@"
    expect "its summary" 0 "" "$program" summary "$into"
    check "has chi2 of the distance" grep -q "^distance_chi2 " out.txt
    check "and its scale" grep -q "^distance_scale " out.txt
}
expect "run and report, at one temperature" 0 "" "$program" run good.yaml \
    --output plain
check "no evidence is told of it" sh -c '! grep -q "log evidence" out.txt'
run "alone" alone --threads 2
check "no curve" test "$(grep -cE "^(chi2|scale|background) " out.txt)" -eq 0
run "from a table" table --set \
    'data=[{kind: distance, between: ["A:10", "A:100"], file: p.dat, unit: nm}]'
check "the table is kept" test -s table/input/p.dat
run "beside a curve" beside --set data.1.file=curve.dat
check "chi2 of the curve" grep -q "^chi2 " out.txt
run "two of them, states and temperatures" two --set data.1.file=curve.dat \
    --set 'data.2={kind: distance, between: ["A:20", "A:90"], at: ca, mean: 35, sd: 4}' \
    --set structure.states=2 --set sampler.temperatures=2
check "the second has its own" grep -q "^distance_chi2_2 " out.txt
expect "report" 0 "" "$program" report two
grouped() { # CHAINS DRAWS
    expect "$1 chains start from $2 draws" 0 "from $2 draws of the prior, in" \
        "$program" run good.yaml --output "of-$1" --set sampler.chains="$1" \
        --set sampler.start=prior --set sampler.warmup=2 --set sampler.draws=2
}
grouped 40 8
grouped 36 4
grouped 25 5
background "$program" run good.yaml --output starts \
    --set sampler.chains=9973 --set sampler.start=prior
wait_until grep -q "^hydration" err.txt
sleep 0.2
kill -TERM $pid
ended
check "stopped while chains get their starts" test $? -eq 75
check "it says so" grep -q "nothing was written" err.txt

# ---- stopped and gone on with ----
needs_venv "resumed runs with distances"
for kept in alone beside two; do
    cp -r $kept $kept-part
    expect "longer: $kept" 0 "resumed from the checkpoint" \
        "$program" resume $kept-part --draws 18 --threads 1
    expect "as long from the start: $kept" 0 "" "$program" run \
        $kept/config.yaml --output $kept-long --set sampler.draws=18
    same "the same draws: $kept" $kept-part $kept-long
done
check "chi2 in the trace is that of the distances there" "$python" -c '
import h5py
import numpy as np
with h5py.File("alone-long/trace.h5") as f:
    r = f["posterior_predictive/distance_mean"][()].squeeze()
    names = []
    f.visit(names.append)
    (name,) = [n for n in names if n.endswith("/distance_chi2") and "warmup" not in n]
    chi2 = f[name][()]
assert r.shape == chi2.shape == (2, 18), (r.shape, chi2.shape)
assert np.allclose(chi2, ((r - 40) / 3) ** 2, rtol=1e-4), (chi2, r)'

# ---- many chains, from the prior, stopped and gone on with ----
many() { # DIR DRAWS
    "$program" run good.yaml --output "$1" --set sampler.draws="$2" \
        --set sampler.chains=16 --set sampler.temperatures=4 \
        --set sampler.evidence=true --set sampler.warmup=200 --threads 2
}
expect "many chains" 0 "chains start from 4 draws of the prior, in groups" \
    many groups 20
expect "one thread, stopped and gone on with" 0 "" many part 12
expect "to the end" 0 "resumed" "$program" resume part --draws 20 --threads 1
same "the same draws: many chains" part groups
check "they came from the prior" grep -q "groups of chains were tempered from the prior in" \
    groups/run.log
expect "their status" 0 "" "$program" status groups --json
check "half of the warm-up is left behind populations" "$python" -c '
import h5py, json
stored = h5py.File("groups/trace.h5")["warmup_posterior/rg"].shape[1]
said = json.load(open("out.txt"))["warmup"]
n = 200 // 2 // 2 # steps, thin
assert stored == n == said["done"] == said["planned"], (stored, n, said)'
expect "their summary" 0 "" "$program" summary groups
check "log evidence" grep -qE "^log evidence: -[0-9.]+ \+- [0-9.]+ nat" out.txt
expect "in JSON" 0 "" "$program" summary groups --json
check "with both kinds of R-hat" "$python" -c '
import json
s = json.load(open("out.txt"))
assert s["rg"]["rhat"] < s["rg"]["rhat_chains"], s["rg"]
assert -8 < s["evidence"]["log"] < -2 and s["evidence"]["error"] < 1, s["evidence"]
assert s["evidence"]["temperatures"] == 4 and s["evidence"]["t_max"] == 1e6
p = s["evidence"]["population"]
assert abs(p["log"] - s["evidence"]["log"]) < 1 and 0 < p["error"] < 1, p'
on_the_way() { # DIR: a run that takes a while to come from the prior
    "$program" run good.yaml --output "$1" --set sampler.draws=4 \
        --set sampler.chains=16 --set sampler.temperatures=2 \
        --set sampler.evidence=true --set sampler.warmup=80 --threads 2
}
expect "whole" 0 "" on_the_way whole
on_the_way way >way.txt 2>&1 &
wait_until test -e way/checkpoint.h5
pkill -INT -P $! -x tessera || kill -INT $!
wait $!
expect "stopped on the way from the prior" 0 "resumed" "$program" resume way
same "the same draws: from the prior" way whole
expect "no temperatures but the evidence" 0 "" "$program" run good.yaml \
    --output one --set sampler.evidence=true --set sampler.chains=16
expect "its summary" 0 "" "$program" summary one
check "has it of the populations" \
    grep -qE -- "-[0-9.]+ \+- [0-9.]+ nat \(by populations from the prior\)" out.txt
expect "few temperatures, and where chains start left open" 0 \
    "groups of chains were tempered from the prior in" "$program" run good.yaml \
    --output short --set data.0.sd=0.2 --set sampler.chains=16 --set sampler.temperatures=4 \
    --set sampler.warmup=200 --set sampler.draws=20
expect "their evidence" 0 "" "$program" summary short --json
check "is that of the populations" "$python" -c '
import json
e = json.load(open("out.txt"))["evidence"]
assert e["t_max"] == 20 and e["temperatures"] == 4, e
assert e["log"] == e["population"]["log"] and -12 < e["log"] < -2, e
assert e["error"] == e["population"]["error"] and "note" not in e, e'
expect "fewer than 16 replicas are no population" 0 "" "$program" run good.yaml \
    --output few --set sampler.chains=3 --set sampler.temperatures=5 \
    --set sampler.warmup=20 --set sampler.draws=4
check "and start from the structure" grep -q "start: file" few/config.yaml
expect "evidence under flat priors" 0 "no log evidence can be computed" \
    "$program" run curve.yaml --output flat --set sampler.evidence=true \
    --set data.0.noise.model=student --set sampler.draws=2 \
    --set sampler.warmup=4 --set sampler.chains=2 --set sampler.temperatures=2
expect "a ladder that ends below the prior" 0 "" "$program" summary two
check "has none" grep -q "log evidence: unknown (" out.txt
compared
exit $bad
