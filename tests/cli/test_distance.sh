#!/bin/sh
# Measured distances as data of a run: alone, beside curves, in groups that come from
# the prior with log evidence, stopped and continued to the bit; wrong entries are
# refused.
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
printf '# r (nm) and P(r)\n3.0 0.01\n3.5 0.3\n4.0 1.0\n4.5 0.4\n5.0 0.02\n' >p.dat
cat >curve.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [curve.dat]
device: {use: reference}
simulate: {points: 30, q_range: [0.01, 0.15], steps: 50}
contrast: {c2: 0}
END
cases <<'END'
simulate | 0 | tessera simulate curve.yaml --output curve.dat
help of the kinds | 0> ^ +kind: saxs \(default\) | tessera run --help data
    and of this one | out ^ +kind: distance
check resolves the kind | 0> kind: distance | tessera check good.yaml
$ cp out.txt resolved.yaml
the resolved config is a config | 0 | tessera check resolved.yaml
    and resolves to itself | cmp -s out.txt resolved.yaml
no sd | 78 data.0: a distance needs mean and sd | tessera check good.yaml --set data.0.sd=0
sd and file | 78 data.0: give mean and sd, or a file, not both | tessera check good.yaml --set data.0.file=p.dat
unknown residue | 78 data.0: between | tessera check good.yaml --set 'data.0.between=["A:10", "A:900"]'
a rigid pair | 78 data.0: between: .*in one rigid part | \
        tessera check good.yaml --set 'data.0.between=["A:10", "A:12"]'
a key of a curve | 78 data.0.noise': it has no effect with kind: distance; it belongs to kind: saxs | \
        tessera check good.yaml --set data.0.noise.model=student
no such kind | 78 data.0.kind': value 'nmr' is unknown.*saxs, sans, distance | \
        tessera check good.yaml --set data.0.kind=nmr
END

# run NAME DIR OPTION...: a run into DIR, whose summary names the distance.
run() {
    what=$1 into=$2
    shift 2
    expect "run, $what" 0 "" tessera run good.yaml --output "$into" "$@"
    cases <<'END'
its summary has chi2 of the distance, and its scale | 0> ^distance_chi2  | tessera summary "$into"
    the scale | out ^distance_scale
END
}
many() { # DIR DRAWS OPTION...: many chains, from the prior
    into=$1 draws=$2
    shift 2
    tessera run good.yaml --output "$into" --set sampler.draws="$draws" --set sampler.chains=16 \
        --set sampler.temperatures=4 --set sampler.evidence=true --set sampler.warmup=200 --threads 2 "$@"
}
group() { # CHAINS: a short run of chains from the prior
    tessera run good.yaml --output "of-$1" --set sampler.chains="$1" \
        --set sampler.start=prior --set sampler.warmup=2 --set sampler.draws=2
}
expect "run and report, at one temperature" 0 "" tessera run good.yaml --output plain
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
cases <<'END'
report | 0 | tessera report two
40 chains start from 8 draws | 0 from 8 draws of the prior, in | group 40
36 chains start from 4 draws | 0 from 4 draws of the prior, in | group 36
25 chains start from 5 draws | 0 from 5 draws of the prior, in | group 25
8 chains start from 4 draws, two each | 0 from 4 draws of the prior, in | group 8
END
background tessera run good.yaml --output starts \
    --set sampler.chains=9973 --set sampler.start=prior
wait_until grep -q "^hydration" err.txt
sleep 0.2
kill -TERM $pid
ended
status=$?
check "stopped while chains get their starts" test $status -eq 75
check "it says so" grep -q "nothing was written" err.txt

# ---- stopped and continued ----
needs_venv "resumed runs with distances"
for kept in alone beside two; do
    cp -r $kept $kept-part
    cases <<'END'
longer: ${kept} | 0 resumed from the checkpoint | tessera resume $kept-part --draws 18 --threads 1
as long from the start: ${kept} | 0 | tessera run $kept/config.yaml --output $kept-long --set sampler.draws=18
END
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

# ---- many chains, from the prior, stopped and continued ----
cases <<'END'
many chains | 0 chains start from 4 draws of the prior, in groups | many groups 20
one thread, stopped | 0 | many part 12
and to the end | 0 resumed | tessera resume part --draws 20 --threads 1
$ same "the same draws: many chains" part groups
    they came from the prior | in groups/run.log groups of chains were tempered from the prior in
their status | 0 | tessera status groups --json
END
check "half of the warm-up is left behind populations" "$python" -c '
import h5py, json
stored = h5py.File("groups/trace.h5")["warmup_posterior/rg"].shape[1]
said = json.load(open("out.txt"))["warmup"]
n = 200 // 2 // 2 # steps, thin
assert stored == n == said["done"] == said["planned"], (stored, n, said)'
on_the_way() { # DIR: a run that takes a while to come from the prior
    many "$1" 4 --set sampler.temperatures=2 --set sampler.warmup=80
}
cases <<'END'
log evidence in the summary | 0> ^log evidence: -[0-9.]+ \+- [0-9.]+ nat | tessera summary groups
in JSON | 0 | tessera summary groups --json
    with both kinds of R-hat | json d.rg.rhat < d.rg.rhat_chains
    with both kinds of evidence | json -8 < d.evidence.log < -2 and d.evidence.error < 1 and d.evidence.t_max == 1e6 \
        and d.evidence.temperatures == 4 and abs(d.evidence.population.log - d.evidence.log) < 1 \
        and 0 < d.evidence.population.error < 1
whole | 0 | on_the_way whole
END
on_the_way way >way.txt 2>&1 &
wait_until test -e way/checkpoint.h5
pkill -INT -P $! -x tessera || kill -INT $!
wait $!
few="--set sampler.draws=2 --set sampler.warmup=4 --set sampler.chains=2 --set sampler.temperatures=2"
cases <<'END'
stopped on the way from the prior | 0 resumed | tessera resume way
$ same "the same draws: from the prior" way whole
no temperatures but the evidence | 0 | \
        tessera run good.yaml --output one --set sampler.evidence=true --set sampler.chains=16
its summary has that of the populations | 0> -[0-9.]+ \+- [0-9.]+ nat \(by populations from the prior\) | \
        tessera summary one
few temperatures, and where chains start left open | 0 groups of chains were tempered from the prior in | \
        tessera run good.yaml --output short --set data.0.sd=0.2 --set sampler.chains=16 \
        --set sampler.temperatures=4 --set sampler.warmup=200 --set sampler.draws=20
their evidence | 0 | tessera summary short --json
    is that of the populations | json d.evidence.t_max == 20 and d.evidence.temperatures == 4 and -12 < d.evidence.log \
        < -2 and d.evidence.log == d.evidence.population.log and d.evidence.error == d.evidence.population.error \
        and 'note' not in d.evidence
fewer than 16 replicas are no population | 0 | tessera run good.yaml --output few --set sampler.chains=3 \
        --set sampler.temperatures=5 --set sampler.warmup=20 --set sampler.draws=4
    and start from the structure | in few/config.yaml start: file
evidence under flat priors | 0 no log evidence can be computed | tessera run curve.yaml --output flat $few \
        --set sampler.evidence=true --set data.0.noise.model=student
    nor under normal errors | 0 no log evidence can be computed.*flat prior | tessera run curve.yaml --output flat-s \
        $few --set sampler.chains=16 --set sampler.evidence=true --set data.0.nuisance=sample
a proper prior of the background is a path | 0 were tempered from the prior | tessera run curve.yaml --output path \
        $few --set sampler.chains=16 --set sampler.evidence=true --set data.0.noise.model=student \
        --set data.0.intensity_scale=1
a ladder that ends below the prior has none | 0> log evidence: unknown \( | tessera summary two
END
compared
exit $bad
