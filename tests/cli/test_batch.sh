#!/bin/sh
# tessera batch: each row is what solve alone would give; a row that fails ends alone; whatever
# ends the batch, it goes on to the same draws; nothing starts before all rows were read.
. tests/cli/expect.sh
mkdir models "models/with a blank" alone
cp "$demo/two_domain.pdb" "models/with a blank/a b.pdb"
awk '!/^ATOM/ || substr($0, 23, 4) + 0 < 50' "$demo/two_domain.pdb" >models/one.pdb
cat >truth.yaml <<'END'
structure: {file: "models/with a blank/a b.pdb", flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 40, q_range: [0.02, 0.3]}
END
expect "a curve" 0 "" tessera simulate truth.yaml --output models/exp.dat
few="--states 1 --set sampler.warmup=20 --set sampler.chains=2 --set sampler.thin=1
    --set sampler.temperatures=4 --set sampler.until=null --set model_error.learn=none"
# table FILE ROW...: a table, whose rows have | for tabs
table() {
    file=$1
    shift
    printf '%s\n' 'name|of a user|model|curve|options' "$@" | tr '|' '\t' >"models/$file"
}
table screen.tsv '# rows in any order' "two|x|'with a blank/a b.pdb'|exp.dat|--set seed=7" \
    'one||one.pdb|exp.dat' '' 'both|y|one.pdb|exp.dat exp.dat|'
batch="batch models/screen.tsv -o all"
short="--device reference -- $few --set sampler.draws=60"
state() { # DIR NAME: of a row in the table
    awk -F '\t' -v name="$2" '$1 == name {print $5}' "$1/batch.tsv"
}

# ---- nothing starts before all rows were read ----
: >models/empty.dat
table bad.tsv 'one||one.pdb|exp.dat' 'one||one.pdb|exp.dat' '../up||one.pdb|exp.dat' \
    'lost||lost.pdb|exp.dat' 'empty||one.pdb|empty.dat' 'pair||one.pdb one.pdb|exp.dat' \
    'word||one.pdb|exp.dat|--staets 2' 'quote||one.pdb|exp.dat|"' 'own||one.pdb|exp.dat|-o x' \
    'call||one.pdb|exp.dat|$(touch called)' '<b>x||one.pdb|exp.dat'
printf 'name\tmodel\tcurves\n' >models/head.tsv
printf 'model\tcurve\n' >models/nameless.tsv
cases <<'END'
bad rows | 65 10 of 11 rows cannot be solved, so none was started | tessera batch models/bad.tsv -o bad
    a name twice, or no name of a folder | err row 'one': another row && err row '../up': a name has letters
    a missing model, two, a damaged curve | err row 'lost': cannot open && err row 'pair': there must be one \
        && err row 'empty': .*empty.dat
    options that solve does not have | err row 'word': unknown option '--staets'; did you mean \
        && err row 'own': option '--output' is given twice
    words of a shell, and no commands | err row 'quote': a shell cannot && err row 'call': a shell cannot \
        && test ! -e models/called
    nothing is there | test ! -e bad
a misspelt column | 65 'curves': did you mean 'curve' | tessera batch models/head.tsv -o bad
no names | 65 must name the columns | tessera batch models/nameless.tsv -o bad
no rows | 65 has no rows | tessera batch alone -o bad
a missing table | 66 nowhere.tsv | tessera batch nowhere.tsv -o bad
a dry run | 0 | tessera $batch --dry-run --json
    has the table | json [r.state for r in d.rows] == ['waiting'] * 3 and d.rows[0].rigid_chi2 is None
    and starts nothing | test ! -e all/two
one row | 0 | tessera $batch --dry-run --json --only one
    is listed | json [r.name for r in d.rows] == ['one']
    and the table keeps all | test "$(wc -l <all/batch.tsv)" -eq 4
a row that is not there | 65 has no rows of the name nobody | tessera $batch --dry-run --only nobody
a table over its own output | 64 | tessera batch all/batch.tsv -o all
END
mkdir alien
echo "my own words" >alien/index.html
expect "a page of others" 64 "not from tessera" tessera batch models/screen.tsv -o alien
expect "a bad row among others" 1 "of 11 rows 10 failed" \
    tessera batch models/bad.tsv -o some/ --skip-bad
check "is left out" test "$(state some lost)" = failed -a "$(state some one | head -n 1)" = misfit

check "a name with tags is text in the page" grep -q "&lt;b&gt;x</a>" some/index.html

# ---- each row is what solve gives ----
(cd alone && tessera solve ../models/one.pdb ../models/exp.dat --device reference -o one &&
    tessera solve "../models/with a blank/a b.pdb" ../models/exp.dat --device reference -o two \
        $few --set sampler.draws=60 --set seed=7) >alone.txt 2>&1
cat >judge.py <<'END'
import csv, json, os, re
def verdict(path):
    text = open(path + "/verdict.json").read()
    name = path.split("/")[1]
    for folder in (os.getcwd() + "/" + path, path, '"' + name):
        text = text.replace(folder, '"' if folder[0] == '"' else "")
    return json.loads(text)
rows = {r["name"]: r for r in json.load(open("all/batch.json"))["rows"]}
table = list(csv.DictReader(open("all/batch.tsv"), delimiter="\t"))
assert [r["name"] for r in table] == ["two", "one", "both"] == list(rows)
for name in ("one", "two"):
    a, b = verdict("alone/" + name), verdict("all/" + name)
    r = rows[name]
    for key in ("runs", "states", "converged", "undecided", "fits", "rg", "d_max", "worst"):
        if key == "runs":
            for x, y in zip(a[key], b[key]):
                assert x == y, (x, y)
        assert a.get(key) == b.get(key), (name, key, a.get(key), b.get(key))
    assert r["rigid_chi2"] == a["rigid"][0]["reduced_chi2"], r
    for key in ("chi2", "rg", "d_max"):
        x = (a["runs"][0] if a["runs"] else {}).get(key)
        assert r[key] == (x and x["mean"]) and r[key + "_q5"] == (x and x["q5"]), (r, x)
for r in table:
    for key, value in r.items():
        j = rows[r["name"]][key]
        assert value == {None: "", True: "true", False: "false"}.get(j, str(j)) or \
            float(value) == j, (key, value, j)
assert [rows[n]["state"] for n in ("two", "one", "both")] == [
    "not converged", "misfit", "misfit"]
assert rows["one"]["states"] is None and rows["one"]["fits"] is False
page = open("all/index.html").read()
names = [page.index('href="%s/' % n) for n in ("two", "one", "both")]
assert names == sorted(names)
fits = re.findall('<img src="([^"]*)"', page)
assert len(fits) == 3 and all(os.path.getsize("all/" + fit) > 1000 for fit in fits), fits
assert page.count('href="two/1/report.html"') == 1
END
cases <<'END'
rows that have not converged | 1 of 3 rows 0 failed and 1 have not converged \
    | tessera $batch -j 2 $short
    the table, the page and the verdicts | "$python" judge.py
    messages are those of solve | in all/one/batch.log ^The rigid model does not fit
$ cksum all/*/1/trace.h5 all/one/verdict.json >before.txt; touch -d 2020-01-01 all/one/verdict.json
again | 1 two: not converged | tessera $batch $short
    does nothing twice | cksum all/*/1/trace.h5 all/one/verdict.json | cmp -s before.txt - \
        && test -n "$(find all/one/verdict.json -not -newermt 2021-01-01)"
    a second verdict has the new draws | no err one:
$ echo "# more" >>models/exp.dat
another curve under an old name | 65 row 'one': its folder was made of other files | tessera $batch
$ sed -i '$d' models/exp.dat
END

# ---- stopped and taken up ----
table long.tsv "two||'with a blank/a b.pdb'|exp.dat|--set seed=7" 'one||one.pdb|exp.dat|'
long() { # DIR DRAWS
    background tessera batch models/long.tsv -o "$1" -j 2 --device reference -- $few \
        --set sampler.draws="$2" --set output.checkpoint_every=0
}
is_free() { # DIR: no process works there
    "$program" status "$1" 2>/dev/null | grep -q "state *interrupted"
}
is_running() {
    "$program" status "$1" 2>/dev/null | grep -q "state *running"
}
# shellcheck disable=SC2086
expect "not interrupted" 1 "" tessera batch models/long.tsv -o whole -j 2 --device reference -- \
    $few --set sampler.draws=400
for signal in TERM KILL; do
    long killed 400
    wait_until has_draws killed/two/1
    kill -$signal $pid
    ended
    status=$?
    wait_until is_free killed/two/1
    check "$signal ends the rows with the batch" is_free killed/two/1
    [ $signal = KILL ] || check "with 75" test $status -eq 75 -a "$(state killed two)" = interrupted
done
# Two batches at once share the rows: neither fails for the other.
long killed 400
first=$pid
again="tessera batch models/long.tsv -o killed --device reference -- $few"
wait_until is_running killed/two/1
# shellcheck disable=SC2086
expect "two batches at once" 75 "1 are solved by other processes" $again
check "leave a row to each other" test "$(state killed two)" = running
pid=$first
ended
check "both end" test $? -eq 1
# shellcheck disable=SC2086
expect "the table of both" 1 "" $again
check "has all rows" test "$(state killed two)" = "not converged" -a "$(state killed one)" = misfit
needs_venv "the draws of a batch"
echo "killed and continued, the draws are the same|whole/two/1 killed/two/1" |
    "$python" "$source/tests/cli/compare_runs.py" || bad=1

# ---- a row that is killed ends alone; folders ----
mkdir -p folders/a folders/b "folders/c d" folders/empty
cp models/one.pdb folders/a/model.pdb
cp models/one.pdb folders/a/old.pdb
cp models/exp.dat folders/a/exp.dat
cp models/exp.dat folders/a/raw.dat
cp models/one.pdb folders/b/x.pdb
gzip -c models/one.pdb >folders/b/y.pdb.gz
cp models/exp.dat folders/b/z.dat
cp models/one.pdb "folders/c d/x.pdb"
cases <<'END'
folders | 1 row 'b': there must be one model | tessera batch folders -o of_folders --skip-bad --json
    their files | json [(r.name, r.state, r.model, r.curve) for r in d.rows][0] == ('a', 'misfit', 'a/model.pdb', 'a/exp.dat') \
        and len(d.rows) == 3
    a folder without files is no row, a name with a blank is a bad one | err row 'c d': a name has
END
exit $bad
