#!/bin/sh
# The program touches only files that it wrote itself: other people's files and planted
# links stay, and a run killed before its first checkpoint goes on to the same draws.
. tests/cli/expect.sh

short_model model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 8, draws: 6, thin: 2, temperatures: 1}
output: {directory: whole, trajectory_every: 3}
device: {use: reference, threads: 2}
simulate: {points: 20, q_range: [0.01, 0.15], steps: 20}
contrast: {c2: 0}
END
small() { (ulimit -f 8 && tessera "$@"); }
cases <<'END'
simulate | 0 | tessera simulate good.yaml --output good.dat
a run | 0 | tessera run good.yaml
END

# ---- a refused run takes nothing away ----
for file in config.yaml run.lock trace.h5 draws.log trajectory-000.h5 trajectory-000-2.h5 \
    checkpoint.h5 checkpoint.h5.previous checkpoint.h5.tmp model.pdb run.log input; do
    mkdir mine
    echo precious >"mine/$file"
    cases <<'END'
${file} is in the way | 78 mine.* contains .*${file} | tessera run good.yaml --output mine
    it stays, alone | test "$(cat "mine/$file")$(ls mine)" = "precious$file"
END
    rm -r mine
done
mkdir mine links
echo precious >mine/notes
echo precious >victim
ln -s "$work/victim" links/run.log
cp -r whole linked
rm linked/run.log
ln -s "$work/victim" linked/run.log
ln -s "$work/victim" linked/checkpoint.h5.tmp
cases <<'END'
a run that cannot be written | 74 | small run good.yaml --output mine --set name=longer
    takes back what it made, and no more | test "$(ls mine)" = notes

# ---- links are not followed ----
a link with the name of the log | 78 run.log | tessera run good.yaml --output links
in a run that goes on | 74 run.log.*symbolic link | tessera resume linked --draws 9
$ rm linked/run.log
a link with the name of the next checkpoint | 0 | tessera resume linked --draws 9
    what they lead to stays | test "$(cat victim)" = precious
END
for file in trace.h5 trajectory-001.h5; do
    rm -rf linked
    cp -r whole linked
    mv linked/$file victim.h5
    cp victim.h5 before.h5
    ln -s "$work/victim.h5" linked/$file
    cases <<'END'
a link in the place of ${file} | 74 linked/${file}'.*symbolic link | tessera resume linked --draws 9
    what it leads to stays | cmp -s victim.h5 before.h5
and can be read | 0 | tessera export linked -o x.csv
END
done
rm x.csv

# ---- one rule for what may be written over ----
# over NAME FILE COMMAND...: refused, then with --force, then over its own.
over() {
    what=$1 file=$2
    shift 2
    mkdir -p "$(dirname "$file")"
    echo precious >"$file"
    expect "$what over another file" 64 "$file' exists and is not from.*--force" tessera "$@"
    check "it stays" test "$(cat "$file")" = precious
    expect "with --force" 0 "" tessera "$@" --force
    check "it is replaced" test "$(head -c 8 "$file")" != precious
    expect "over its own" 0 "" tessera "$@"
    expect "--help names --force" "0>" "--force" tessera "$1" --help
}
profile="profile model.pdb --bodies two --device reference"
cp model.pdb b.pdb
echo precious >t.dat
cases <<'END'
$ over "export, PDB" a.pdb export whole -o a.pdb
$ over "export, mmCIF" a.cif export whole -o a.cif
$ over "export, a scene" a.mvsj export whole -o a.mvsj
$ over "export, CSV" a.csv export whole -o a.csv
export over a structure | 64 b.pdb' exists | tessera export whole -o b.pdb
export over the trace | 64 replace the input | tessera export whole -o whole/trace.h5 --format csv --force
$ over "a curve" p.dat $profile -o p.dat
$ over "a fit" p.fit $profile --data good.dat -o p.fit
$ over "its picture" p.svg $profile --data good.dat -o p.fit
$ sed '1s/, by tessera//' p.fit >foxs.fit
a fit of FoXS | 64 foxs.fit' exists | tessera $profile --data good.dat -o foxs.fit
$ over "a simulated curve" s.dat simulate good.yaml -o s.dat
$ over "its structure" s.pdb simulate good.yaml -o s.dat
a table over another file | 64 t.dat' exists and is not from.*--force | tessera train priors "$demo" -o t.dat
an evaluation over another file | 64 t.dat' exists | \
        tessera train form-factors --evaluate "$demo" -o t.dat
$ over "a report" whole/report.html report whole
$ over "a figure of it" whole/report/fit.svg report whole
$ over "a table of it" whole/report/fit.csv report whole
$ echo precious >whole/report/notes.txt
a report beside notes | 0 | tessera report whole
    which stay | test "$(cat whole/report/notes.txt)" = precious
END

# ---- killed before the first checkpoint ----
if is_sanitized; then
    echo "skip runs that are killed: a sanitizer bears no library before it"
    exit $bad
fi
needs_venv "runs that are killed"
# at K: a run whose K-th file operation the process does not live to see.
at() {
    TSR_FAULT_DIR=$work/killed TSR_FAULT_AT=$1 TSR_FAULT_DO=kill \
        LD_PRELOAD=$build/tests/support/fault.so \
        "$program" run good.yaml --output killed >out.txt 2>err.txt
}
k=0 n_run=0 n_resume=0 n_bad=0 last_anew=200
while [ $k -lt $((last_anew + 12)) ]; do
    k=$((k + 1))
    rm -rf killed
    at $k && break
    if [ -e killed/config.yaml ]; then
        tessera run good.yaml --output killed >out.txt 2>err.txt
        [ $? -eq 78 ] && grep -q "tessera resume" err.txt || n_bad=$((n_bad + 1))
        tessera status killed >out.txt 2>err.txt || n_bad=$((n_bad + 1))
        tessera resume killed >out.txt 2>err.txt
        status=$? n_resume=$((n_resume + 1))
        grep -q "restarted from the beginning" err.txt && last_anew=$k
    else
        tessera run good.yaml --output killed >out.txt 2>err.txt
        status=$? n_run=$((n_run + 1))
    fi
    if [ $status -ne 0 ] || ls killed | grep -q tmp; then
        n_bad=$((n_bad + 1))
        echo "killed before operation $k: exit status $status"
        ls killed
        sed 's/^/    /' err.txt
        [ $n_bad -lt 5 ] || break
    fi
    mv killed ended-$k
done
check "killed before any of $k operations, it goes on ($n_run by run, \
$n_resume by resume) to its end" test $n_bad -eq 0
same "all hold the same draws" whole ended-*
compared
check "some were before config.yaml" test $n_run -gt 5
check "some were before the first checkpoint" test $last_anew -lt 200
exit $bad
