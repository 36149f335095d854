#!/bin/sh
# Ensembles from given structures: states that stay there find the weights of the
# mixture again, of several samples each its own; states that move start from their
# files, and other molecules are refused.
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" one.pdb
cat >base.yaml <<END
structure: {file: one.pdb, flexible: ["A:51-64"]}
simulate: {points: 10, steps: 3000}
END
cat >still.yaml <<END
structure: {file: one.pdb, states: 2, frozen: true, starts: [one.pdb, two.pdb]}
data: [{file: mixture.dat, q_unit: 1/A}]
sampler: {chains: 4, warmup: 1000, draws: 2000, thin: 10, temperatures: 1}
output: {directory: still}
contrast: {c2: 0}
END
cat >series.yaml <<END
structure: {file: one.pdb, states: 2, frozen: true, starts: [one.pdb, two.pdb]}
data:
  - {file: late.dat, q_unit: 1/A, share: states, at: 20, unit: min}
  - {file: mixture.dat, q_unit: 1/A, share: states, at: 5}
  - {file: again.dat, q_unit: 1/A, share: states, at: 20}
sampler: {chains: 4, warmup: 1000, draws: 1000, thin: 10, temperatures: 1}
output: {directory: series}
contrast: {c2: 0}
END
cat >moving.yaml <<END
structure:
  file: one.pdb
  states: 2
  flexible: ["A:51-64"]
  starts: [one.pdb, {file: two.pdb}]
data: [{file: mixture.dat, q_unit: 1/A}]
sampler: {chains: 2, warmup: 0, draws: 4, thin: 1, temperatures: 1}
output: {directory: moving}
device: {use: reference}
contrast: {c2: 0}
END
curve="--bodies two --q-max 0.3 --n-q 121 --c1 1 --c2 0"
cases <<'END'
another conformation | 0 | tessera simulate base.yaml --output two.dat
the curve of one | 0 | tessera profile one.pdb $curve --output one.curve
the curve of two | 0 | tessera profile two.pdb $curve --output two.curve
# 30 % of one, 70 % of two, errors of 1 %; 80 % of one, twice
$ for data in "0.3 4 mixture" "0.8 5 late" "0.8 6 again"; do
>     set -- $data
>     awk -v pi=3.14159265358979 -v w="$1" -v seed="$2" 'BEGIN {srand(seed)}
>     /^#/ {next}
>     FNR == NR {one[FNR] = $2; next}
>     $1 > 0.008 {
>         mean = w * one[FNR] + (1 - w) * $2
>         z = sqrt(-2 * log(1 - rand())) * cos(2 * pi * rand())
>         print $1, mean * (1 + 0.01 * z) / 1e5, mean * 0.01 / 1e5}' one.curve two.curve >"$3.dat"
> done
its Rg | 0 | tessera profile one.pdb --bodies two --json
$ rg=$(sed -n 's/.*"rg_model": *\([0-9.]*\).*/\1/p' out.txt)

# ---- states that stay ----
weights of structures that stay | 0 | tessera run still.yaml
    which is no cause for a warning | no err no proposal was accepted
and has converged, though nothing moves | 0 | tessera diagnose still
summary | 0 | tessera summary still --json
    states are in the order of Rg, and stay | json d.rg_1.sd < 1e-9 and d.rg_2.sd < 1e-9 and d.rg_1.mean < d.rg_2.mean
    the weights are found | json d.weight_1.sd < 0.08 and d.weight_1.rhat < 1.02 and abs(d.weight_1.mean \
        - (0.3 if abs(d.rg_1.mean - ${rg}) < abs(d.rg_2.mean - ${rg}) else 0.7)) < 3.5 * d.weight_1.sd

one state that stays | 0 | tessera run still.yaml --output alone \
        --set structure.states=1 --set structure.starts=[] --set sampler.draws=20
c2 alone, and tempered | 0 | tessera run still.yaml --output c2 \
        --set contrast.c2=infer --set sampler.temperatures=3 --set sampler.draws=20

# ---- several samples ----
one sample, of its own | 0 | tessera run still.yaml --output own --set data.0.share=states
its draws | 0 | tessera export own --format csv --output own.csv
those of a curve that shares | 0 | tessera export still --format csv --output still.csv
    are the same | cmp own.csv still.csv
a series | 0> 2.5 %  16.0 %  50.0 % | tessera run series.yaml
    is no conflict of sizes | ! grep -q 'cannot come from one' out.txt
summary of it | 0 | tessera summary series --json
    each sample has its weights, in the order of the series | \
        json [round(s['at']) for s in d.verdict.series] == [5, 20, 5, 20] and \
        all(abs(s['median'] - (w if abs(d.rg_1.mean - ${rg}) < abs(d.rg_2.mean - ${rg}) else 1 - w)) < 0.06 \
        for s, w in zip(d.verdict.series, [0.3, 0.8, 0.7, 0.2]))
    the intervals are nested | json all(s['interval_95'][0] < s['interval_68'][0] < s['median'] < \
        s['interval_68'][1] < s['interval_95'][1] for s in d.verdict.series)
    the weights of the run are their means | json abs(d.weight_1.mean - \
        0.5 * sum(d['curve_weight_1[%d]' % k]['mean'] for k in (0, 1))) < 1e-4
its report | 0 | tessera report series
    has them along the series | in series/report/populations.csv state 2,points,20,
shorter | 0 | tessera run series.yaml --output shorter --set sampler.draws=400
and as long | 0 | tessera resume shorter --draws 1000
draws of a run that stopped | 0 | tessera export shorter --format csv --output shorter.csv
draws of one that did not | 0 | tessera export series --format csv --output series.csv
    are the same | cmp shorter.csv series.csv
samples that are no series | 0> late.dat +1 | tessera run series.yaml --output apart \
        --set data.0.at=none --set sampler.draws=20
with one that shares weights | 0 | tessera run series.yaml --output mixed --set data.1.share=structure \
        --set data.1.at=none --set sampler.draws=20
all with the same weights | 0 | tessera run series.yaml --output together --set data.0.share=structure \
        --set data.0.at=none --set data.1.share=structure --set data.1.at=none \
        --set data.2.share=structure --set data.2.at=none
do the weights change? | 0> Run 1 is the best | tessera compare series together
init of a series | 0> at: 20 | tessera init one.pdb mixture.dat late.dat --at '5,20 min'
    names the unit | in out.txt unit: && in out.txt share: states

# ---- states that move ----
two states, drawn | 0 | tessera run moving.yaml --output drawn --device auto --set "structure.flexible=[A:56-59]" \
        --set sampler.warmup=40 --set sampler.draws=60 --set sampler.thin=30
their report | 0 | tessera report drawn
    says what weighs | in drawn/report.html weighted by the populations of the states
    has a line of mobility for each | in drawn/report/mobility.svg >state 1< && in drawn/report/mobility.svg >state 2<
    numbers the states as the trace does | \
        test "$(cut -d, -f3 drawn/report/conformations.csv | sort -u | tr '\n' ' ')" = "1 2 state "
states start from files | 0 | \
        tessera run moving.yaml --set moves.pivot=0 --set moves.regrow=0
    the config names the files | in moving/config.yaml two.pdb
summary of it | 0 | tessera summary moving --json
    # four steps do not lead far
    they are where the files are | json min(abs(d.rg_1.mean - ${rg}), abs(d.rg_2.mean - ${rg})) < 0.5 \
        and d.rg_2.mean - d.rg_1.mean > 0.5

# ---- a pool ----
$ for file in one.pdb two.pdb; do
>     echo MODEL; sed 's/ SC / CG /' "$file" | grep ^ATOM; echo ENDMDL
> done >pool.pdb
chains start at members | 0 chains start at members of structure.pool | \
        tessera run moving.yaml --output pool --set structure.states=1 --set structure.starts=[] \
        --set structure.pool=[pool.pdb] --set sampler.start=pool --set moves.pivot=0 --set moves.regrow=0 \
        --set output.trajectory_every=1
    the log says how near | in pool/run.log 2 of 2 conformations.*off by 0.[45] A .mean RMSD., 0.9 A at most
the first draw of the second chain | 0 | tessera export pool --draws 1/0 --atoms model --output second.pdb
its Rg | 0 | tessera profile second.pdb --bodies two --json
    is that of the second member | json abs(s[0].rg_model - ${rg}) > 2
jumps to members | 0 | tessera run moving.yaml --output jumps --set structure.states=1 --set structure.starts=[] \
        --set structure.pool=[pool.pdb] --set sampler.draws=400 --set moves.regrow=20
    with their acceptance in the log | in jumps/run.log regrow +[0-9]+ proposed, [0-9.]+ % accepted

# ---- refusals ----
$ awk '/^ATOM/ && substr($0, 23, 4) + 0 > 59 {
>     printf "%s%8.3f%s\n", substr($0, 1, 30), substr($0, 31, 8) + 50, substr($0, 39); next} {print}' pool.pdb >cut.pdb
$ sed '/ A  64 /d;s/ SC / CG /' two.pdb >short.pdb; sed 's/\(ATOM.\{13\}\)... A   9/\1TRP A   9/' two.pdb >mutant.pdb
$ sed -i 's/ SC / CG /' mutant.pdb
more files than states | 78 structure.starts: 2 files for 1 state | \
        tessera check moving.yaml --set structure.states=1
nothing moves, and yet | 78 structure.frozen.*leave.*flexible | tessera check moving.yaml --set structure.frozen=true
another molecule | 65 short.pdb.*residues, but structure.file has | \
        tessera check moving.yaml --set structure.starts.1.file=short.pdb
another residue | 65 mutant.pdb.*is TRP where structure.file has | \
        tessera check moving.yaml --set structure.starts.1.file=mutant.pdb
a place without weights | 78 data.1.at: the weights.*share: states | \
        tessera check series.yaml --set data.1.share=structure
equal weights of their own | 78 data.0.share.*structure.weights | \
        tessera check series.yaml --set structure.weights=equal
a series with too few numbers | 64 --at '5 min': expected a number for each of 2 | \
        tessera init one.pdb mixture.dat late.dat --at '5 min'
a file that is not there | 66 none.pdb | tessera check moving.yaml --set structure.starts.1.file=none.pdb
a pool of another molecule | 65 short.pdb.*A:65 is ASP where structure.file has GLY | \
        tessera check moving.yaml --set structure.pool=[short.pdb]
a pool of another residue | 65 mutant.pdb.*is TRP where structure.file has | \
        tessera check moving.yaml --set structure.pool=[mutant.pdb]
a pool cut by a periodic boundary | 65 backbone at A:60 is [0-9.]+ A long in model 1 | \
        tessera check moving.yaml --set structure.pool=[cut.pdb]
a pool without a file | 78 structure.pool.0: the key 'file' | \
        tessera check moving.yaml --set 'structure.pool=[{trajectory: none.dcd}]'
a pool where nothing moves | 78 structure.pool: nothing moves | \
        tessera check still.yaml --set structure.pool=[pool.pdb]
a start in no pool | 78 sampler.start: pool needs structure.pool | \
        tessera check moving.yaml --set sampler.start=pool
END
exit $bad
