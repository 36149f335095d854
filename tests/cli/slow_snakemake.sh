#!/bin/sh
# configs/cluster/Snakefile: a job a row, and the table is that of one batch; jobs that are
# killed with Snakemake go on to the same draws.
. tests/cli/expect.sh
if ! command -v snakemake >/dev/null; then
    echo "skip the Snakefile: snakemake is missing"
    exit 0
fi
cp "$demo/two_domain.pdb" two.pdb
awk '!/^ATOM/ || substr($0, 23, 4) + 0 < 50' two.pdb >"one part.pdb"
cat >truth.yaml <<'EOF'
structure: {file: two.pdb, flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 40, q_range: [0.02, 0.3]}
EOF
expect "a curve" 0 "" tessera simulate truth.yaml --output exp.dat
printf '%s\n' 'name|model|curve|options' '# a remark' 'two|two.pdb|exp.dat|--set seed=7' \
    "one|'one part.pdb'|exp.dat|" | tr '|' '\t' >rows.tsv
few="--states 1 --set sampler.warmup=20 --set sampler.chains=2 --set sampler.thin=1
    --set sampler.temperatures=4 --set sampler.until=null --set model_error.learn=none
    --set sampler.draws=2000 --set device.use=reference"
# shellcheck disable=SC2086
expect "one batch" 1 "" tessera batch rows.tsv -o whole -- $few
snake() {
    snakemake -s "$source/configs/cluster/Snakefile" -c 2 --config table=rows.tsv \
        output=jobs tessera="$program" threads=1 options="$(echo "$few" | tr -s ' \n' ' ')" "$@"
}
background snake
wait_until has_draws jobs/two/1
solve=$(tessera status jobs/two/1 --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')
check "a job is killed" kill -KILL "$(ps -o ppid= -p "$solve" | tr -d ' ')"
ended
check "and repeated" test $? -eq 0
check "from its checkpoint" grep -q "tessera solve: interrupted" jobs/two/batch.log
for dir in whole jobs; do
    cut -f 1,5,8-24 $dir/batch.tsv >$dir.tsv # without seconds and folders
done
check "the table is that of one batch" cmp whole.tsv jobs.tsv
needs_venv "the draws of jobs"
echo "the draws are the same|whole/two/1 jobs/two/1" |
    "$python" "$source/tests/cli/compare_runs.py" || bad=1
exit $bad
