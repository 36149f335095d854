#!/bin/sh
# summary, diagnose and export answer about a finished run, and say for every
# other folder what it holds instead.
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
cases <<'END'
a curve | 0 | tessera simulate run.yaml --output good.dat --quiet
a run | 0 | tessera run run.yaml --quiet
a run of the prior | 0 | tessera run run.yaml --quiet --prior-only --output prior --set sampler.chains=4 \
        --set sampler.draws=300 --set sampler.thin=50 --set sampler.warmup=1000
END
[ $bad -eq 0 ] || exit 1

cases <<'END'
# ---- summary ----
summary | 0 | tessera summary run
    one line a variable | test "$(grep -c '^[a-z_0-9]*  *Angstrom' out.txt)" -eq 3
$ tessera summary run --json --threads 1 >one.json
any number of threads | 0 | tessera summary run --json --threads 3
    gives the same numbers | cmp -s one.json out.txt
no threads | 64 '--threads': value '0' | tessera summary run --threads 0
summary of the trace itself | 0 | tessera summary run/trace.h5
summary with the prior: its columns | 0> prior_mean.*learned | tessera summary run --prior prior
JSON with the prior | 0> "prior": \{"mean" | tessera summary run --prior prior --json
a prior that saw data | 65 used data.*--prior-only | tessera summary run --prior run
a prior that is not there | 66 prior.*cannot open 'none' | tessera summary run --prior none

# ---- diagnose ----
diagnose says no | 1 | tessera diagnose run
    and why, with the smallest exchange rate | out NO .*enough independent draws && out smallest exchange rate
    and what to do, once | test "$(grep -c "^    tessera resume run --draws [0-9]*   (about" out.txt)" -eq 1
diagnose says yes | 0> ^converged | tessera diagnose prior --rhat 1.1 --ess 100
diagnose of the trace itself | 1 | tessera diagnose run/trace.h5
a limit that is none | 64 rhat | tessera diagnose run --rhat 0.5
diagnose --json | 1 | tessera diagnose run --json --threads 2
    one object, R-hat by q | out "converged": false && out "intensity_mean": \{"q": \[0.01

# ---- export ----
export of the trace has a header | 0> ^chain,draw,rg,d_max | tessera export run --format csv --draws 1:11:5
    three draws of two chains | test "$(wc -l <out.txt)" -eq 7
export into a file | 0 | tessera export run --format csv --draws best --output best.csv
    holds one draw | test "$(wc -l <best.csv)" -eq 2
    and no remains | test "$(ls best.csv*)" = best.csv
a format that is none | 64 pdb, cif, ihm, mvsj or csv | tessera export run --format doc
draws that are none | 64 expected all, best | tessera export run --draws first
draws that are not there | 65 none of the 12 draws | tessera export run --format csv --draws 100
a run without conformations | 66 output.trajectory_every | tessera export prior --output new.pdb
    leaves no file | test -z "$(ls new.pdb* 2>/dev/null)"
END

# ---- what is no run, for every command that reads one ----
mkdir foreign waiting damaged text
echo x >foreign/notes.txt
cp run/config.yaml waiting
echo "2026-01-01T00:00:00Z info: the last words" >waiting/run.log
cp run/config.yaml damaged
head -c 20000 run/trace.h5 >damaged/trace.h5
echo "not HDF5" >text/trace.h5
cp -r run stopped
sed 's/^  draws: .*/  draws: 5000/' run/config.yaml >stopped/config.yaml
cp -r run strange
echo "no: such: yaml" >strange/config.yaml
tessera run run.yaml --quiet --output warmup --set sampler.warmup=1000000 \
    --set sampler.thin=1000 >warm.txt 2>warm.err &
warm=$!
has_trace() { head -c 4 warmup/trace.h5 2>/dev/null | grep -q HDF; }
wait_until has_trace
kill -STOP $warm # it is there, and takes no time
try() { "$@" || test $? -eq 1; } # an answer of no is an answer
for way in summary diagnose report 'export --format csv'; do
    cases <<'END'
${way}, no folder | 66 cannot open 'none' | tessera $way none
${way}, a foreign folder | 66 not the folder of a run | tessera $way foreign
${way}, a run before its trace | 66 the last words | tessera $way waiting
${way}, a damaged trace | 65 damaged/trace.h5.*its config.yaml can repeat | tessera $way damaged
${way}, a text | 65 text/trace.h5.*HDF5 | tessera $way text
${way}, a stopped run | 0 not finished: 12 of 5000 draws.*it was stopped; to continue: tessera resume stopped | \
        try tessera $way stopped
    has its numbers | test -s out.txt
${way}, a config that cannot be read | 0 settings of the run are unknown | try tessera $way strange
    has its numbers, too | test -s out.txt
${way}, a run in its warm-up | 65 no draw yet.*it is running .process ${warm}  | tessera $way warmup
END
done
kill -KILL $warm 2>/dev/null
wait $warm 2>/dev/null
exit $bad
