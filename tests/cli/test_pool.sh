#!/bin/sh
# tessera pool finds a known mixture among given conformations, with its uncertainty,
# and says where no ensemble fits; pools that make no sense are refused.
. tests/cli/expect.sh

# Eight conformations, the second domain from 0 to 28 Angstrom farther out.
sed 's/ SC / CG /' "$demo/two_domain.pdb" | grep ^ATOM >atoms.pdb
for k in 0 1 2 3 4 5 6 7; do
    awk -v by=$((4 * k)) 'substr($0, 23, 4) + 0 > 57 {
        printf "%s%8.3f%s\n", substr($0, 1, 30), substr($0, 31, 8) + by, substr($0, 39)
        next} {print}' atoms.pdb >part$k.pdb
    printf 'MODEL     %4d\n' $((k + 1))
    cat part$k.pdb
    echo ENDMDL
done >pool.pdb
# 0.3 of the second, 0.7 of the seventh, errors of 1 %
for k in 1 6; do
    tessera profile --device reference part$k.pdb --c2 1 --q-max 0.3 --n-q 121 -q >curve$k.txt
done
paste curve1.txt curve6.txt | awk -v seed=1 'BEGIN {srand(seed)} !/^#/ && $1 > 0.008 {
    i = (0.3 * $2 + 0.7 * $4) * 1e-6; z = 0
    for (k = 0; k < 12; k++) z += rand()
    printf "%s %.9g %.9g\n", $1, i * (1 + 0.01 * (z - 6)), 0.01 * i}' >mix.dat
awk '{print $1, $2 * (1 + 9 * $1), $3}' mix.dat >other.dat
pool() { tessera pool --device reference --draws 256 "$@"; }
few="--members 1:3 --copies 10"
export few

cases <<'END'
help has the sizes | 0> 10,30,100 | pool --help
a mixture of two | 0 wrote out/ensemble.fit | pool pool.pdb --data mix.dat $few -o out --json
    two members, or three | json d.most_probable in ('2 members', '3 members') \
        and d.ensembles[2].probability > 0.3
    by far more probable than one, or the pool | json all(d.ensembles[2].log_z - \
        d.ensembles[k].log_z > 20 for k in (0, 1))
    the heaviest is the seventh | json d.conformations_of_largest_weight[0].number == 6 \
        and d.conformations_of_largest_weight[0].q5 < 0.75 and d.conformations_of_largest_weight[0].q95 > 0.65
    the next is the second | json d.conformations_of_largest_weight[1].number in (0, 1, 2)
    c2 is that of the curve | json d.c2.q5 < 1.1 and d.c2.q95 > 0.9 and d.c1.q5 == d.c1.q95 == 1
    the fit is good | json d.chi2 < 1.3 and d.reduced_chi2 < 1.4
    populations agree | json all(e.rhat < 1.05 for e in d.ensembles) and 'Converged' in d.verdict[-1]
    weights sum to 1 | json abs(sum(d.rg_distribution.weight) - 1) < 1e-6 \
        and abs(sum(g.weight for g in d.groups) - 1) < 1e-6
    files have the numbers | in out/weights.tsv ^6.pool.pdb, model 7 && in out/draws.tsv ^2.members
    members are models with weights | in out/members.pdb ^REMARK 999.*tessera && \
        test "$(grep -c ^MODEL out/members.pdb)" -ge 2
    the picture is one | in out/distribution.svg ^<svg && in out/distribution.csv middle 90
    the fit is that of the draw | in out/ensemble.fit Chi.2 = 0.9|Chi.2 = 1.[0-2]
$ cp out.txt one.json
again, by other threads | 0 | pool pool.pdb --data mix.dat $few --threads 3 -o out --json
    the same numbers | json d.ensembles == load('one.json').ensembles
files in place of models | 0 | pool part0.pdb part1.pdb part2.pdb part3.pdb part4.pdb part5.pdb \
        part6.pdb part7.pdb --data mix.dat $few --json
    the same posterior | json abs(d.ensembles[2].log_z - load('one.json').ensembles[2].log_z) < 0.05
a table | 0> ^Most probable: [23] members | pool pool.pdb --data mix.dat $few --c1 infer
    with c1 and groups | out ^c1 +[01] && out ^c2 +[01] && out ^groups of similar curves && out ^10 copies
data that no ensemble fits | 0 | pool pool.pdb --data other.dat --members 2 --copies none
    says so | text No ensemble of this pool fits
$ cp part1.pdb twin.pdb
twins | 0> do not decide: its odds against 2 of | pool part1.pdb twin.pdb --data mix.dat --members 1:2 --copies none
every second model | 0> ^pool of 4 conformations | pool pool.pdb --frames 4 --data mix.dat --members 1 --copies none
neutrons | 0> ^1 member | pool pool.pdb --radiation neutron --d2o 0.4 --data mix.dat --members 1 --copies none
$ head -c 20 mix.dat >short.dcd
$ sed '1s/N /X /;2d' part3.pdb >fewer.pdb
$ echo mine >mine.txt; mkdir taken; echo mine >taken/weights.tsv
no data | 64 needs a curve | pool pool.pdb
one conformation | 64 has one conformation | pool part0.pdb --data mix.dat
no list | 64 --members '2-3': expected sizes | pool pool.pdb --data mix.dat --members 2-3
a list of none | 64 --copies '0': expected sizes | pool pool.pdb --data mix.dat --copies 0
two structures of a trajectory | 64 needs one structure | pool part0.pdb part1.pdb -t x.dcd --data mix.dat
no trajectory | 65 short.dcd | pool part0.pdb -t short.dcd --data mix.dat
a file in the way | 74 cannot make the folder | pool pool.pdb --data mix.dat -o mine.txt
a user's file | 64 taken/weights.tsv | pool pool.pdb --data mix.dat -o taken
one of other atoms | 0 warning: 'fewer.pdb' has | pool pool.pdb fewer.pdb --data mix.dat --members 1 --copies none
neutrons without c1 | 64 no excluded volume | pool pool.pdb --radiation neutron --c1 infer --data mix.dat
END
# draws of the prior of a run
cases <<'END'
a run | 0 | tessera run "$demo/demo.yaml" --prior-only --device reference --set sampler.draws=8 \
        --set sampler.warmup=8 --set sampler.thin=2 -o prior
its draws are a pool | 0> prior, chain 0, draw | pool prior --data mix.dat --members 1 --copies none
END
exit $bad
