#!/bin/sh
# A titration of two conformations of RPA, mixed with 10 to 90 % of the extended one
# and errors of 1 %: the 95 % intervals of the populations hold them where both
# conformations are known, and a solve finds conformations and populations.
# SOLVE has options of that solve, such as --device gpu.
#
# Then SEEDS titrations of the main protease, with dissociation constants, excluded
# volume and hydration from their priors: intervals hold the constants at about the
# stated rate.
. tests/cli/expect.sh

rpa=$shared/saxs/rpa_multifoxs_synthetic/model.pdb
if [ ! -f "$rpa" ]; then
    echo "skip the titration: $rpa is missing"
    exit 0
fi
truth="[0.1, 0.3, 0.5, 0.7, 0.9]"
cat >prior.yaml <<END
structure: {file: $rpa, flexible: ["A:290-301"]}
prior: {relax: true}
seed: 3
sampler: {chains: 4, warmup: 500, draws: 5, thin: 400, temperatures: 1}
output: {directory: prior, trajectory_every: 1}
device: {use: reference}
END
cat >known.yaml <<END
structure: {file: compact.pdb, states: 2, frozen: true, starts: [compact.pdb, extended.pdb]}
contrast: {c1: 1, c2: 0}
model_error: none
sampler: {draws: 500}
data:
END

# mix KIND OPTIONS: five mixtures KIND1.dat ... of the curves that profile computes.
mix() {
    kind=$1
    shift
    for k in compact extended; do
        tessera profile $k.pdb "$@" --q-max 0.3 --n-q 121 --c1 1 --output $k.curve --force >out.txt 2>err.txt
    done
    for w in 1 3 5 7 9; do
        awk -v pi=3.14159265358979 -v w=0.$w 'BEGIN {srand(7 + 10 * w)}
            /^#/ {next}
            FNR == NR {one[FNR] = $2; next}
            $1 > 0.008 {
                mean = w * one[FNR] + (1 - w) * $2
                z = sqrt(-2 * log(1 - rand())) * cos(2 * pi * rand())
                print $1, mean * (1 + 0.01 * z) / 1e5, mean * 0.01 / 1e5}' extended.curve compact.curve >"$kind$w.dat"
    done
}

cases <<'END'
draws of the prior | 0 | tessera run prior.yaml --prior-only
as models | 0 | tessera export prior --atoms all --output models.pdb
# the most compact and the most extended one
$ $python - <<'PY'
> import math
> models = open("models.pdb").read().split("MODEL")[1:]
> def rg(model):
>     x = [[float(line[k:k + 8]) for k in (30, 38, 46)] for line in model.splitlines() if line.startswith("ATOM")]
>     mean = [sum(c) / len(x) for c in zip(*x)]
>     return math.sqrt(sum((a - b) ** 2 for p in x for a, b in zip(p, mean)) / len(x))
> models.sort(key=rg)
> for name, model in ("compact", models[0]), ("extended", models[-1]):
>     lines = [line for line in model.splitlines() if line.startswith(("ATOM", "TER"))]
>     open(name + ".pdb", "w").write("\n".join(lines + ["END", ""]))
> PY
$ mix bodies --bodies two --c2 0
$ mix atoms --c2 1
$ for w in 1 3 5 7 9; do echo "  - {file: bodies$w.dat, share: states, at: ${w}0, unit: uM}"; done >>known.yaml
known conformations | 0 | tessera run known.yaml --output known
their summary | 0 | tessera summary known --json
    the intervals hold the truth | json all(s['interval_95'][0] < w < s['interval_95'][1] \
        for s, w in zip(d.verdict.series[5:], ${truth}))
conformations to be found | 0 | tessera solve $rpa atoms1.dat atoms3.dat atoms5.dat atoms7.dat atoms9.dat \
        --at '10,30,50,70,90 uM' --states 2 $SOLVE -o found
$ sed -n '/^  Population of each/,/^$/p' out.txt
its summary | 0 | tessera summary found/2 --json
    the populations are found | json all(abs(s['median'] - w) < 0.05 for s, w in zip(d.verdict.series[5:], ${truth}))
    the conformations are found | json abs(d.rg_1.mean - 22.6) < 1.5 and abs(d.rg_2.mean - 32.9) < 1.5
END

# ---- a monomer and its dimer ----
mpro=$shared/saxs/mpro_sasdjg5/model.pdb
cp "$mpro" dimer.pdb
grep '^ATOM.\{17\}A' "$mpro" >one.pdb
cat >kd.yaml <<'END'
structure: {file: dimer.pdb, frozen: true}
species:
  - {name: monomer, chains: [A]}
  - {name: dimer, chains: [A, B], kd: infer}
data:
  - {file: t2.dat, q_unit: 1/A, share: states, at: 2, unit: uM}
  - {file: t10.dat, q_unit: 1/A, share: states, at: 10}
  - {file: t50.dat, q_unit: 1/A, share: states, at: 50}
  - {file: t200.dat, q_unit: 1/A, share: states, at: 200}
sampler: {chains: 4, warmup: 1000, draws: 500, thin: 10, temperatures: 1}
device: {use: reference}
END
cat >titrate.py <<'END'
"""titrate.py SEED: a dissociation constant, and tC.dat for each concentration C."""
import math, random, subprocess, sys
r = random.Random(int(sys.argv[1]))
cut = lambda sd, low, high: next(x for x in iter(lambda: r.gauss(1, sd), None) if low < x < high)
kd, c1, c2 = 2 * 100 ** r.random(), cut(0.02, 0.95, 1.05), cut(1.5, 0, 4)
curve = []
for name in "one.pdb", "dimer.pdb":
    subprocess.run(["tessera", "profile", name, "--q-max", "0.3", "--n-q", "151", "--c1", str(c1), "--c2", str(c2),
                    "--output", "c.curve", "--force"], check=True, capture_output=True)
    curve.append([[float(x) for x in line.split()] for line in open("c.curve") if line[0] != "#"])
for c in 2, 10, 50, 200:
    b = 1 + kd / (4 * c)
    f = b - math.sqrt(b * b - 1)
    with open(f"t{c}.dat", "w") as out:
        for (q, one), (_, dimer) in list(zip(*curve))[6:]:
            mean = ((1 - f) * one + f * dimer / 2) / 1e5
            out.write(f"{q:g} {mean * (1 + 0.01 * r.gauss(0, 1)):.8g} {0.01 * mean:.8g}\n")
print(kd)
END
for seed in $(seq "${SEEDS:-20}"); do
    kd=$($python titrate.py "$seed")
    tessera run kd.yaml --output "kd$seed" >out.txt 2>err.txt || cat err.txt
    tessera summary "kd$seed" --json >out.txt 2>err.txt
    $python -c "import json; k = json.load(open('out.txt'))['kd']
print($kd, k['median'], k['q5'], k['q95'], ($kd - k['mean']) / k['sd'])" >>kd.txt
done
cat kd.txt
expect "90 % intervals hold the constants" 0 "" $python -c "
rows = [[float(x) for x in line.split()] for line in open('kd.txt')]
held = sum(low < kd < high for kd, _, low, high, _ in rows)
print('%d of %d intervals hold the constant' % (held, len(rows)))
assert len(rows) == ${SEEDS:-20} and held >= 0.75 * len(rows)"
cat out.txt
exit $bad
