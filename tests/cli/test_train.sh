#!/bin/sh
# tessera train, on a few structures: a table names what it was trained on and what was
# held out, is the same for any number of threads, and evaluations cover every table.
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
published=$shared/form_factors/form_factors-one_body_model.dat
# A published table in a run, by file name.
cat >run.yaml <<END
structure: {file: $demo/two_domain.pdb, bodies: one, form_factors: $published}
data: [{file: run.dat}]
simulate: {points: 60, q_range: [0.01, 0.25], steps: 50}
contrast: {c2: 0}
END
sed 's/, form_factors.*}/}/' run.yaml >own.yaml
sed 's/bodies: one/bodies: two/' run.yaml >two.yaml
one="train form-factors --bodies one"
cases <<'END'
training | 0 | tessera $one --hold-out 11 -o one.dat pdb
    the heading has the command | in one.dat ^# command: tessera ${one} --hold-out 11 pdb
    and what was trained on | in one.dat ^#   1ahs 1dx5.* 2pvb 3ny7$
    and what was held out | grep -A1 "^# held out: 1" one.dat | grep -q "^#   2va0$"
training on one thread | 0 | tessera $one --hold-out 11 -t 1 -o again.dat pdb
    threads change nothing | cmp -s one.dat again.dat
# the shipped tables were trained on all but 1ahs and 2va0
evaluation | 0 | tessera $one --evaluate --json --table one.dat -o curve.csv --table "$published" pdb
    of one structure, of all tables, with S and without | json d.n_structure == 1 and {('components_one_body.dat', \
        None), ('form_factors_one_body.dat', True), ('one.dat', True), ('one.dat', False), \
        ('form_factors-one_body_model.dat', False)} <= {(r.table, r.get('self')) for r in d.rows}
    errors are a share of the curve | json all(r.bodies == 'one' and all(0 < e < 0.5 for e in \
        r.median_rms_relative_error) for r in d.rows)
    a column a row | awk -F, 'NR == 1 {n = NF; good = /^q_inv_ang,form_factors_one_body.dat S,/} NF != n {bad = 1}
>       NR == 2 {bad += !/^0.00,/} END {exit !(good && !bad && NR == 52)}' curve.csv
as text | 0> ^form_factors_two_body.dat +two +yes( +[0-9.]+){8}$ | tessera train form-factors --evaluate pdb
only structures that were trained on | 65 trained on; give others | \
        tessera train form-factors --evaluate pdb/1ubq.pdb.gz
--table alone | 64 --evaluate | tessera $one --table one.dat pdb
--evaluate of priors | 64 form-factors | tessera train priors --evaluate pdb
nothing to train on | 64 --hold-out 1 | tessera $one --hold-out 1 pdb
simulate with the shipped table | 0 | tessera simulate own.yaml --output own.dat
$ rg=$(sed -n 's/^Rg[^0-9]*\([0-9.]*\).*/\1/p' out.txt)
simulate with a published table: Rg is the shipped table's | 0> ^Rg[^0-9]*${rg:?}([^0-9.]|$) | \
        tessera simulate run.yaml --output run.dat
    the curve is not | ! cmp -s run.dat own.dat
a table of the other bodies | 78 structure.form_factors.*one | tessera check two.yaml
END
exit $bad
