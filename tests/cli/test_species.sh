#!/bin/sh
# Mixtures of a monomer and its dimer: curves of mixtures that profile computes from
# files of each give the dissociation constant, or the fractions, of the titration;
# moving and symmetric dimers; wrong configurations.
. tests/cli/expect.sh

lar=$shared/saxs/lar_fn3_1_2/model.pdb
if [ ! -e "$lar" ]; then
    echo "skip mixtures of species: no $lar"
    exit 0
fi
# the linker of two domains with some of both
awk '/^ATOM/ && substr($0, 23, 4) + 0 >= 82 && substr($0, 23, 4) + 0 <= 122' "$lar" >one.pdb
# the second subunit: turned by 180 degrees about an axis beside the first
awk '{x = substr($0, 31, 8); y = substr($0, 39, 8)
    least = NR == 1 || x < least ? x : least
    line[NR] = $0; xs[NR] = x; ys[NR] = y}
    END {for (i = 1; i <= NR; i++) print line[i]
    print "TER"
    for (i = 1; i <= NR; i++) printf "%sB%s%8.3f%8.3f%s\n", substr(line[i], 1, 21), substr(line[i], 23, 8),
        2 * (least - 2) - xs[i], -ys[i], substr(line[i], 47)
    print "END"}' one.pdb >dimer.pdb
cat >kd.yaml <<'END'
structure: {file: dimer.pdb, frozen: true}
species:
  - {name: monomer, chains: [A]}
  - {name: dimer, chains: [A, B], kd: infer}
data:
  - {file: high.dat, q_unit: 1/A, share: states, at: 100, unit: uM}
  - {file: low.dat, q_unit: 1/A, share: states, at: 5}
  - {file: middle.dat, q_unit: 1/A, share: states, at: 20}
sampler: {chains: 4, warmup: 1000, draws: 800, thin: 5, temperatures: 1}
device: {use: reference}
output: {directory: kd}
END
sed 's/, frozen: true/, flexible: ["A:97-103", "B:97-103"]/; s/directory: kd/directory: moving/
    s/draws: 800/draws: 10/; s/warmup: 1000/start: file, warmup: 10/' kd.yaml >moving.yaml
echo 'model_error: {conformations: 8}' >>moving.yaml
cases <<'END'
the curve of a monomer | 0 | tessera profile one.pdb --q-max 0.3 --n-q 121 --c1 1 --c2 1 --output one.curve
the curve of a dimer | 0 | tessera profile dimer.pdb --q-max 0.3 --n-q 121 --c1 1 --c2 1 --output dimer.curve
# kd = 20, errors of 0.5 %
$ for data in "5 low" "20 middle" "100 high" "1e9 pure" "1e-9 single"; do
>     set -- $data
>     awk -v pi=3.14159265358979 -v c="$1" 'BEGIN {srand(c); b = 1 + 20 / (4 * c); f = b - sqrt(b * b - 1)}
>     /^#/ {next}
>     FNR == NR {one[FNR] = $2; next}
>     $1 > 0.008 {
>         mean = (1 - f) * one[FNR] + f * $2 / 2
>         z = sqrt(-2 * log(1 - rand())) * cos(2 * pi * rand())
>         print $1, mean * (1 + 0.005 * z) / 1e5, mean * 0.005 / 1e5}' one.curve dimer.curve >"$2.dat"
> done

# ---- rigid species ----
a titration | 0> The dissociation constant of dimer into monomer is | tessera run kd.yaml
    lists the fractions by concentration | in out.txt Mass fraction of each species && in out.txt 5 *monomer
    is no conflict of sizes | ! grep -q 'cannot come from one' out.txt
its summary | 0 | tessera summary kd --json
    the constant is found | json abs(d.kd.mean - 20) < 3.5 * d.kd.sd and d.kd.sd < 2
    all curves fit | json all(d[k].mean < 1.4 for k in ('chi2', 'chi2_2', 'chi2_3'))
    fractions follow from it | json [round(s['at']) for s in d.verdict.series] == [5, 20, 100] * 2 and \
        all(abs(s['median'] - w) < 0.03 for s, w in zip(d.verdict.series[3:], (0.2679, 0.5, 0.7298))) and \
        d.verdict.series[3]['name'] == 'dimer'
its report | 0 | tessera report kd
    has them along the series | in kd/report/populations.csv dimer,points,20,
shorter | 0 | tessera run kd.yaml --output shorter --set sampler.draws=300
and as long | 0 | tessera resume shorter --draws 800
draws of a run that stopped | 0 | tessera export shorter --format csv --output shorter.csv
draws of one that did not | 0 | tessera export kd --format csv --output kd.csv
    are the same | cmp shorter.csv kd.csv
free fractions | 0 | tessera run kd.yaml --output free --set species.1.kd=none
their summary | 0 | tessera summary free --json
    each is found | json all(abs(s['median'] - w) < 0.05 for s, w in zip(d.verdict.series[3:], (0.2679, 0.5, 0.7298)))
one curve | 0> Mass fraction of each species | tessera run kd.yaml --output single --set species.1.kd=none \
        --set 'data=[{file: middle.dat, q_unit: 1/A}]' --set sampler.draws=100
on the absolute scale | 0 | tessera run kd.yaml --output absolute --set species.1.kd=none \
        --set 'data=[{file: middle.dat, q_unit: 1/A, intensity_scale: 1e-5}]' --set sampler.draws=100
a constant beyond what the samples show | 0> accumulates at *$|at the lower | tessera run kd.yaml --output tight \
        --set data.1.file=pure.dat --set data.0.file=pure.dat --set data.2.file=pure.dat --set sampler.draws=100

# ---- the rigid model of solve ----
$ rigid="--set structure.frozen=true --set structure.flexible=[] --set structure.fixed=[]"
a mixture | 0> Only a mixture fits | tessera solve dimer.pdb middle.dat $rigid -o mixed
    with its fraction | grep -q '"chi2_mixture": [01].*"fraction": 0.[45]' mixed/verdict.json
a dimer that fits | 0 | tessera solve dimer.pdb pure.dat $rigid -o pure
    is not compared | no in pure/verdict.txt identical
a monomer | 0> The first chain alone fits | tessera solve dimer.pdb single.dat $rigid -o alone

# ---- species that move ----
a dimer that moves | 0 | tessera run moving.yaml
    is compared with all atoms by species | in moving/run.log of monomer over .* of dimer over
by symmetry | 0 | tessera run moving.yaml --output symmetric --set structure.symmetry=C2 \
        --set 'structure.flexible=[A:97-103]'
all atoms | 0 | tessera run moving.yaml --output atoms --set structure.bodies=atoms --set sampler.draws=5

# ---- refusals ----
a chain that is not there | 78 species.0.chains: there is no chain 'C'; chains: A, B | tessera check kd.yaml --set 'species.0.chains=[C]'
no species of all chains | 78 species: none has all chains | tessera check kd.yaml --set 'species.1.chains=[B]' \
        --set species.1.kd=none
a constant of unequal parts | 78 species.1.kd: dimer weighs 1 times | tessera check kd.yaml \
        --set 'species.1.chains=[B]'
no concentration | 78 kd needs the concentration.*data.1 | tessera check kd.yaml --set data.1.at=none
a constant of the first | 78 species.0.kd | tessera check kd.yaml --set species.0.kd=3
a chain twice | 78 species.0.chains: 'A' is named twice | tessera check kd.yaml --set 'species.0.chains=[A, A]'
one species | 78 expected 2 to 8 species | tessera check kd.yaml --set 'species=[{name: a, chains: [A]}]'
without a name | 78 species.1: the key 'name' is missing | tessera check kd.yaml \
        --set 'species=[{name: a, chains: [A]}, {chains: [A, B]}]'
with neutrons | 78 species: data.0 is no X-ray curve | tessera check kd.yaml --set data.0.kind=sans
END
exit $bad
