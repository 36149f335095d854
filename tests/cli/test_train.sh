#!/bin/sh
# tessera train as a user runs it, on a few structures: what is held out, and
# how tables are evaluated. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh
if [ ! -d "$shared/structures" ]; then
    echo "skip train: no $shared/structures"
    exit 0
fi
mkdir pdb
for id in 1ahs 1dx5 1hii 1hvr 1hwu 1i8n 1ubq 1vfy 1x0n 2pvb 2va0 3ny7; do
    cp "$shared/structures/$id.pdb.gz" pdb
done
cp -r "$source/data" data
demo=$demo/two_domain.pdb
refused() { # NAME STATUS PATTERN COMMAND...
    name=$1 want=$2 pattern=$3
    shift 3
    "$@" >/dev/null 2>err.txt
    check "$name" test "$?" -eq "$want"
    check "$name: says so" grep -qE -- "$pattern" err.txt
}
set -- train form-factors --bodies one
"$program" "$@" --hold-out 11 -o one.dat pdb 2>err.txt
check "training" test $? -eq 0
check "the heading has the command" \
    grep -q "^# command: tessera $* --hold-out 11 pdb" one.dat
check "and what was trained on" grep -q "^#   1ahs 1dx5.* 2pvb 3ny7$" one.dat
check "and what was held out" sh -c \
    'grep -A1 "^# held out: 1" one.dat | grep -q "^#   2va0$"'
"$program" "$@" --hold-out 11 -t 1 -o again.dat pdb 2>err.txt
check "threads change nothing" cmp -s one.dat again.dat

# The shipped tables were trained on all but 1ahs and 2va0.
"$program" "$@" --evaluate --json --table one.dat -o curve.csv \
    --table "$shared/form_factors/form_factors-one_body_model.dat" \
    pdb >out.json 2>err.txt
check "evaluation" test $? -eq 0
check "its JSON" "$python" -c "
import json
d = json.load(open('out.json'))
assert d['n_structure'] == 1, d
names = [(r['table'], r.get('self')) for r in d['rows']]
assert ('components_one_body.dat', None) in names
assert ('form_factors_one_body.dat', True) in names
assert ('one.dat', True) in names and ('one.dat', False) in names
assert ('form_factors-one_body_model.dat', False) in names
assert all(r['bodies'] == 'one' for r in d['rows'])
assert all(0 < e < 0.5 for r in d['rows']
           for e in r['median_rms_relative_error'])
"
check "a column a row" "$python" -c "
lines = open('curve.csv').read().splitlines()
assert len(lines) == 52 and lines[1].startswith('0.00,'), lines[:2]
assert len({line.count(',') for line in lines}) == 1
assert lines[0].startswith('q_inv_ang,form_factors_one_body.dat S,')
"
"$program" train form-factors --evaluate pdb >out.txt 2>err.txt
check "as text" grep -qE "^form_factors_two_body.dat +two +yes( +[0-9.]+){8}$" \
    out.txt
refused "only structures that were trained on" 65 "trained on; give others" \
    "$program" train form-factors --evaluate pdb/1ubq.pdb.gz
refused "--table alone" 64 "--evaluate" "$program" "$@" --table one.dat pdb
refused "--evaluate of priors" 64 "form-factors" \
    "$program" train priors --evaluate pdb
refused "nothing to train on" 64 "--hold-out 1" \
    "$program" "$@" --hold-out 1 pdb

# A published table in a run, by file name.
cat >run.yaml <<END
structure: {file: $demo, bodies: one,
            form_factors: $shared/form_factors/form_factors-one_body_model.dat}
data: [{file: run.dat}]
simulate: {points: 60, q_range: [0.01, 0.25], steps: 50}
contrast: {c2: 0}
END
"$program" simulate run.yaml --output run.dat >out.txt 2>err.txt
check "simulate with a published table" test $? -eq 0
rg=$(sed -n 's/^Rg[^0-9]*\([0-9.]*\).*/\1/p' out.txt)
sed 's/,$/}/; /form_factors/d' run.yaml >own.yaml
"$program" simulate own.yaml --output own.dat >own.txt 2>err.txt
check "Rg is the shipped table's" test -n "$rg" -a \
    "$rg" = "$(sed -n 's/^Rg[^0-9]*\([0-9.]*\).*/\1/p' own.txt)"
check "the curve is not" sh -c '! cmp -s run.dat own.dat'
sed 's/bodies: one/bodies: two/' run.yaml >two.yaml
refused "a table of the other bodies" 78 "structure.form_factors.*one" \
    "$program" check two.yaml
exit $bad
