#!/bin/sh
# summary, diagnose and report as a user runs them: on a finished run, and on
# every folder that holds something else. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 20, draws: 12, thin: 2, temperatures: 2}
device: {use: reference}
output: {directory: run, trajectory: none}
simulate: {points: 40, q_range: [0.01, 0.2], steps: 50}
contrast: {c2: 0}
END
"$program" simulate run.yaml --output good.dat --quiet >sim.txt &&
    "$program" run run.yaml --quiet >run.txt 2>run.err &&
    "$program" run run.yaml --quiet --prior-only --output prior \
        --set sampler.chains=4 --set sampler.draws=300 \
        --set sampler.thin=50 --set sampler.warmup=1000 \
        >prior.txt 2>prior.err || {
    echo "not ok runs to look at"
    cat run.err prior.err
    exit 1
}

# ---- reweight ----
expect "reweight to the same data" 0 "" "$program" reweight run --output w.csv
check "says that nothing changes" grep -q "24.0 of 24.*all weights are equal" \
    out.txt
check "equal weights" test \
    "$(awk -F, 'NR > 1 && ($3 - 1 / 24) ^ 2 < 1e-20' w.csv | wc -l)" -eq 24
expect "reweight by maximum entropy" 0 "" "$program" reweight run --maxent \
    --json
check "is JSON with an L-curve" "$python" -c "import json
r = json.load(open('out.txt'))
chi2 = [p['chi2'] for p in r['l_curve']]
assert len(chi2) > 9 and chi2 == sorted(chi2, reverse=True), chi2
assert r['theta'] in [p['theta'] for p in r['l_curve']]"
expect "reweight to a q range" 1 "concentrate on .* of 24 draws.*run with these data" \
    "$program" reweight run --q-range 0.15,0.2
"$program" run run.yaml --quiet --output single --set sampler.draws=1 \
    >single.txt 2>single.err
expect "reweight of single draws" 1 "worth .* independent ones.*more draws" \
    "$program" reweight single
expect "a q range that is none" 64 "q-range.*not ascending" \
    "$program" reweight run --q-range 0.2,0.1
expect "a q range without points" 65 "5 are needed" \
    "$program" reweight run --q-range 0.3,0.4
expect "noise that is none" 64 "'poisson' is not known: expected one of measured" \
    "$program" reweight run --noise poisson
awk '/^[ 0-9]/ {print $1 + 0.1, $2, $3}' good.dat >far.dat
expect "data beyond the run's q" 65 "outside the q range.*--q-range" \
    "$program" reweight run --data far.dat
expect "reweight the prior alone" 65 "without curves" \
    "$program" reweight prior

# ---- summary ----
expect "summary" 0 "" "$program" summary run
check "one line a variable" test "$(grep -c '^[a-z_0-9]*  *Angstrom' out.txt)" -eq 3
expect "summary of the trace itself" 0 "" "$program" summary run/trace.h5
expect "summary with the prior" 0 "" "$program" summary run --prior prior
check "the prior's columns" grep -q "prior_mean.*learned" out.txt
expect "JSON with the prior" 0 "" "$program" summary run --prior prior --json
check "holds the prior" grep -q '"prior": {"mean"' out.txt
expect "a prior that saw data" 65 "used data.*--prior-only" \
    "$program" summary run --prior run
expect "a prior that is not there" 66 "prior.*cannot open 'none'" \
    "$program" summary run --prior none

# ---- diagnose ----
expect "diagnose says no" 1 "" "$program" diagnose run
check "names the rarest exchange" grep -q "smallest exchange rate" out.txt
check "says why" grep -q "NO .*enough independent draws" out.txt
grep "^    tessera resume run --draws [0-9]*   (about" out.txt >advice.txt
check "and what to do, once" test "$(wc -l <advice.txt)" -eq 1
expect "diagnose says yes" 0 "" "$program" diagnose prior --rhat 1.1 --ess 100
check "says so" grep -q "^converged" out.txt
expect "diagnose of the trace itself" 1 "" "$program" diagnose run/trace.h5
expect "a limit that is none" 64 "rhat" "$program" diagnose run --rhat 0.5
expect "diagnose --json" 1 "" "$program" diagnose run --json
check "one object" grep -q '"converged": false' out.txt
check "R-hat by q" grep -q '"intensity_mean": {"q": \[0.01' out.txt

# ---- export ----
expect "export of the trace" 0 "" "$program" export run --format csv --draws 1:11:5
check "a header" grep -q "^chain,draw,rg,d_max" out.txt
check "three draws of two chains" test "$(wc -l <out.txt)" -eq 7
expect "export into a file" 0 "" \
    "$program" export run --format csv --draws best --output best.csv
check "holds one draw" test "$(wc -l <best.csv)" -eq 2
check "and no scripts, no remains" test "$(ls best.csv*)" = best.csv
expect "a format that is none" 64 "pdb, cif, xyz or csv" \
    "$program" export run --format doc
expect "draws that are none" 64 "expected all, best" \
    "$program" export run --draws first
expect "draws that are not there" 65 "none of the 12 draws" \
    "$program" export run --format csv --draws 100
expect "a run without conformations" 66 "output.trajectory_every" \
    "$program" export prior --output new.pdb
check "leaves no file" test -z "$(ls new.pdb* 2>/dev/null)"

# ---- what is no run, for every command that reads one ----
mkdir empty foreign waiting damaged text above warm
echo x >foreign/notes.txt
cp run/config.yaml waiting
echo "2026-01-01T00:00:00Z info: the last words" >waiting/run.log
cp run/config.yaml damaged
head -c 20000 run/trace.h5 >damaged/trace.h5
echo "not HDF5" >text/trace.h5
mv warm above/inner
cp run/trace.h5 above/inner
cp -r run stopped
sed 's/^  draws: .*/  draws: 5000/' run/config.yaml >stopped/config.yaml
cp -r run strange
echo "no: such: yaml" >strange/config.yaml
"$program" run run.yaml --quiet --output warmup --set sampler.warmup=1000000 \
    --set sampler.thin=1000 >warm.txt 2>warm.err &
warm=$!
has_trace() { head -c 4 warmup/trace.h5 2>/dev/null | grep -q HDF; }
wait_until has_trace
kill -STOP $warm # it is there, and takes no time
for command in summary diagnose report 'export --format csv'; do
    expect "$command, no folder" 66 "cannot open 'none'" \
        "$program" $command none
    expect "$command, an empty folder" 66 "'empty' is empty" \
        "$program" $command empty
    expect "$command, a foreign folder" 66 "not the folder of a run.*notes" \
        "$program" $command foreign
    expect "$command, the folder above" 66 "did you mean 'above/inner'" \
        "$program" $command above
    expect "$command, a run before its trace" 66 "the last words" \
        "$program" $command waiting
    expect "$command, a damaged trace" 65 "damaged/trace.h5.*config.yaml beside it repeats" \
        "$program" $command damaged
    expect "$command, a text" 65 "text/trace.h5.*HDF5" \
        "$program" $command text
    "$program" $command stopped >out.txt 2>err.txt
    check "$command, a stopped run" \
        grep -q "not finished: 12 of 5000 draws.*it was stopped; to go on: tessera resume stopped" err.txt
    check "has its numbers" test -s out.txt
    "$program" $command strange >out.txt 2>err.txt
    check "$command, a config that cannot be read" \
        grep -q "settings of the run are unknown" err.txt
    check "has its numbers, too" test -s out.txt
    expect "$command, a run in its warm-up" 65 "no draw yet.*it is running .process $warm " \
        "$program" $command warmup
done
kill -KILL $warm 2>/dev/null
wait $warm 2>/dev/null
exit $bad
