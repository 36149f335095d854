#!/bin/sh
# From a model and a curve to a verdict: what tessera solve says is what its runs
# hold, it goes on where it was stopped, and refuses what does not belong
# together. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh
has() { check "$1" grep -qE -e "$2" "$3"; }
cp "$demo/two_domain.pdb" model.pdb
cat >truth.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 40, q_range: [0.02, 0.3]}
END
expect "a curve" 0 "" "$program" simulate truth.yaml --output exp.dat
# So few draws converge nowhere.
few="--set sampler.warmup=20 --set sampler.chains=2 --set sampler.thin=1"
few="$few --set sampler.temperatures=4 --set sampler.draws=60"

# ---- all of it ----
expect "solve" 0 "2 states: runs/model/2" \
    "$program" solve model.pdb exp.dat --states 2 $few
for file in solve.yaml solve.svg rigid.fit rigid.svg 1/trace.h5 2/trace.h5; do
    check "it leaves $file" test -s runs/model/$file
done
has "the rigid fit comes first" '^The model as it is, rigid, fits exp.dat' out.txt
has "what moves" '^What can move: A:51-64' out.txt
has "what is not converged" '^Not converged, so the results may change: 1 state \(' out.txt
has "so few draws decide nothing" '^It is undecided whether the data require 2 states or 1' out.txt
has "states are not conformations" 'States are not' out.txt
check "one statement on the rigid model" \
    test "$(grep -cE 'rigid.*(fits|does not fit)' out.txt)" -eq 1
check "the first screen is of the protein" \
    sh -c '! grep -qE "engine|pthread|host time|grid:" err.txt'
has "the engine is in the run's log" "engine: .*precision" runs/model/1/run.log
check "the report is there" test -s "$(sed -n 's/^report: //p' out.txt)"
has "under the model's name" '<h1>model.pdb with [12] state' \
    "$(sed -n 's/^report: //p' out.txt)"
has "the runs have the evidence" 'evidence: true' runs/model/1/config.yaml
has "and as many states" 'states: 2' runs/model/2/config.yaml
check "a run's log is its own" sh -c '! grep -q model/2 runs/model/1/run.log'

# ---- the verdict is kept, as it was printed ----
for file in verdict.txt verdict.json; do
    check "$file" test -s runs/model/$file
done
sed -n '/^The model as/,$p' out.txt >said.txt
check "the text is what was printed" \
    sh -c 'sed -n "3,\$p" runs/model/verdict.txt | cmp -s - said.txt'
# ---- again: nothing is repeated, and the numbers are those of the runs ----
cksum runs/model/*/trace.h5 >before.txt
expect "again" 0 "runs/model/2 is finished" \
    "$program" solve model.pdb exp.dat --states 2 --json
cp out.txt solve.json
check "and in verdict.json" cmp -s out.txt runs/model/verdict.json
cksum runs/model/*/trace.h5 >after.txt
check "runs stay as they were" cmp -s before.txt after.txt
for k in 1 2; do "$program" summary runs/model/$k --json >$k.json 2>err.txt; done
"$program" profile model.pdb --data exp.dat --bodies two --json >rigid.json \
    2>err.txt
cat >judge.py <<END
import json
s = json.load(open("solve.json"))
def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))
for k, run in enumerate(s["runs"]):
    of = json.load(open("%d.json" % (k + 1)))
    assert run["states"] == k + 1 and run["n_draw"] == 60, run
    for key in ("log", "error"):
        assert run["evidence"][key] == of["evidence"][key], (run, of)
    for name in ("rg", "chi2"):
        for key in ("mean", "q5", "q95"):
            assert run[name][key] == of[name][key], (name, key)
    assert run["converged"] is False and "R-hat" in run["worst"], run
one, two = s["runs"]
gain = two["evidence"]["log"] - one["evidence"]["log"]
error = (one["evidence"]["error"] ** 2 + two["evidence"]["error"] ** 2) ** 0.5
assert near(two["gain"], gain) and near(two["gain_error"], error), two
assert min(one["ess"], two["ess"]) < 100, s
assert two["gain_counts"] is False and s["states"] == 1, s
assert s["undecided"] is True and two["probability"] is None, s
assert s["finished"] is True and s["converged"] is False, s
for name in ("rg", "d_max"):
    assert s[name] == one[name] == s["answer"][name], (name, s[name])
assert s["flexible"] == ["A:51-64"] and s["bodies"] == "two", s
least = min(s["runs"], key=lambda run: run["ess"])["states"]
assert s["more"].startswith("tessera resume runs/model/%d --draws " % least), s
assert len(s["verdict"]) == 4 and "may change" in s["verdict"][3], s["verdict"]
assert "Longer runs would decide" in s["verdict"][2], s["verdict"]
assert 0 < s["more_seconds"] < 1000, s["more_seconds"]
rigid = json.load(open("rigid.json"))["structures"][0]
for key in ("chi2", "reduced_chi2", "cormap_p", "c1", "c2", "scale",
            "background"):
    assert near(s["rigid"][0][key], rigid[key]), (key, s["rigid"], rigid)
assert s["rigid"][0]["fits"] is True
open("more.txt", "w").write(s["more"].split(" ", 1)[1].rsplit(" ", 1)[0])
END
check "the numbers are those of the runs" "$python" judge.py

# ---- the advice can be typed ----
sed 's/2 --draws/1 --draws/' more.txt >one.txt
expect "one draw more" 0 "" "$program" $(cat one.txt) 61
expect "is judged anew" 0 "is finished" \
    "$program" solve model.pdb exp.dat --states 2 --json
has "with that draw" '"n_draw": 61' out.txt

# ---- stopped and taken up ----
background "$program" solve model.pdb exp.dat -o stopped --states 1 \
    --time-limit 1000 $few --set sampler.draws=1000000 \
    --set output.checkpoint_every=0
has_hundred() { # draws, of which the evidence can be told
    "$program" status stopped/1 2>/dev/null | grep -q "sampling *[1-9][0-9][0-9]"
}
wait_until has_hundred
kill -INT $pid
ended
check "an interrupted one ends with 75" test $? -eq 75
has "and says how it goes on" "interrupted in the run of 1 state; the same" err.txt
has "what is known is printed" '^The model as it is, rigid, fits exp.dat' out.txt
has "with the command that goes on" "^    tessera solve model.pdb exp.dat -o stopped" \
    out.txt
check "and stands in the folder" "$python" -c 'import json
s = json.load(open("stopped/verdict.json"))
assert s["rigid"][0]["fits"] is True and s["runs"] == [], s
assert s["finished"] is False and s["flexible"] == ["A:51-64"], s
assert s["more"].startswith("tessera solve model.pdb exp.dat -o stopped"), s'
sed -i 's/time_limit: 1000/time_limit: 0.1/' stopped/1/config.yaml
expect "goes on, until its time is over" 0 "1 state: stopped/1 goes on" \
    "$program" solve model.pdb exp.dat -o stopped --states 1
has "from its checkpoint" "resumed from the checkpoint" stopped/1/run.log
has "with a verdict" '^Whether the data ask for more than one state was not' out.txt
has "its time was over" "the time limit is reached" stopped/1/run.log
# A second number of states that is stopped: the first one's verdict is told.
background "$program" solve model.pdb exp.dat -o stopped --states 2 \
    --time-limit 1000 $few --set sampler.draws=1000000 \
    --set output.checkpoint_every=0 --set sampler.until=null
has_second() {
    "$program" status stopped/2 2>/dev/null | grep -q "sampling *[1-9]"
}
wait_until has_second
kill -INT $pid
ended
check "interrupted in the second" test $? -eq 75
has "the first is told" '^Run of 1 state, stopped/1:' out.txt
has "as is what is open" 'more than one state is not known yet' out.txt
check "and kept" "$python" -c 'import json
s = json.load(open("stopped/verdict.json"))
assert [r["states"] for r in s["runs"]] == [1] and s["states"] == 1, s
assert s["finished"] is False and s["report"] is None, s'
rm -r stopped/2
expect "its folder is no run's" 66 "folder of a solve.*tessera solve MODEL" \
    "$program" resume stopped

# ---- a configuration that was edited ----
mkdir edited
sed 's/^  flexible.*/  frozen: true/; /^    - "A:/d' stopped/solve.yaml \
    >edited/solve.yaml
expect "nothing flexible" 0 "going on with edited/solve.yaml" \
    "$program" solve model.pdb exp.dat -o edited
has "ends with the rigid fit" "so there is nothing to" out.txt
check "which fits, so that nothing need be tried" \
    sh -c '! grep -q "Possible next steps" out.txt'
check "and without a run" test ! -e edited/1
check "its report has the fit and the molecule" test -s edited/report/fit.svg
cat >rigid.py <<'END'
import csv, html, json, re
page = open("edited/report.html").read()
box = re.search(r'<table class="box">(.*?)</table>', page, re.S).group(1)
box = {a: html.unescape(re.sub("<[^>]*>", "", b)) for a, b in
       re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", box, re.S)}
rigid = json.load(open("out.txt"))["rigid"][0]
want = "%s exp.dat: reduced \u03c7\u00b2 %.3g, CorMap p %.2g" % (
    "yes" if rigid["fits"] else "no", rigid["reduced_chi2"], rigid["cormap_p"])
assert box["Rigid model fits?"] == want, (box, want)
assert 10 < float(box["Rg"].split("\xa0")[0]) < 40, box
assert "nothing to sample" in page
assert 'href="rigid.fit"' in page and "tesseraMolecule={" in page
rows = list(csv.DictReader(open("edited/report/fit.csv")))
fit = [line.split() for line in open("edited/rigid.fit") if line[0] != "#"]
model = [r for r in rows if r["series"] == "rigid model"]
assert len(model) == len(fit) == 40
for a, b in zip(model, fit):
    assert abs(float(a["x"]) - float(b[0])) < 1e-6
    assert abs(float(a["y"]) / float(b[3]) - 1) < 1e-4, (a, b)
END
check "its verdict is kept" test -s edited/verdict.txt
expect "as JSON" 0 "" "$program" solve model.pdb exp.dat -o edited --json
check "with no run in it" "$python" -c 'import json
s = json.load(open("out.txt"))
assert s["runs"] == [] and s["flexible"] == [], s
assert s["report"] == "edited/report.html", s'
check "its numbers are those of the report" "$python" rigid.py
mkdir worse
sed 's/exp.dat/worse.dat/' edited/solve.yaml >worse/solve.yaml
awk '!/^#/ {print $1, $2 * (1 + 3 * $1), $3}' exp.dat >worse.dat
expect "nothing flexible, and no fit" 0 "" \
    "$program" solve model.pdb worse.dat -o worse
check "says what may be tried" \
    sh -c 'tr "\n" " " <out.txt | grep -q "Possible next steps: name residues"'
check "and no more than that" sh -c '! grep -q "is the answer" out.txt'

# ---- tails alone, of a model that fits ----
mkdir tails
sed 's/A:51-64/A:1-5/' stopped/solve.yaml >tails/solve.yaml
expect "tails alone" 0 "" \
    "$program" solve model.pdb exp.dat -o tails --states 1 $few
has "are not sampled where the model fits" "^Only tails are flexible: A:1-5" out.txt
check "and there is no run" test ! -e tails/1
check "but a report" grep -q "Only tails are flexible" tails/report.html
check "the command that samples them" "$python" -c 'import json
s = json.load(open("tails/verdict.json"))
assert s["finished"] is True and s["runs"] == [], s
open("more.txt", "w").write(s["more"].split(" ", 1)[1])'
has "is printed" "^    tessera $(cat more.txt)$" out.txt
expect "and can be typed" 0 "1 state: tails/1" "$program" $(cat more.txt)
has "then they are" "^Run of 1 state, tails/1:" out.txt
expect "and again without --sample" 0 "tails/1 is finished" \
    "$program" solve model.pdb exp.dat -o tails --states 1
sed 's/exp.dat/worse.dat/' tails/solve.yaml >worse/solve.yaml
expect "where the model does not fit they are sampled" 0 "1 state: worse/1" \
    "$program" solve model.pdb worse.dat -o worse --states 1 $few
touch -d "+1 minute" stopped/solve.yaml
expect "a change after the run began" 0 "solve.yaml was changed after the run" \
    "$program" solve model.pdb exp.dat -o stopped --states 1

# ---- two curves ----
cp exp.dat other.dat
cp model.pdb other.pdb
expect "two curves" 0 "" "$program" solve model.pdb exp.dat other.dat -o two \
    --states 1 $few
check "each has its rigid fit" test -s two/rigid-2.fit
has "of which both are told" 'fits other.dat' out.txt

# ---- a density map ----
awk '/^ATOM/ {n++; for (c = 0; c < 3; c++) x[c] += substr($0, 31 + 8 * c, 8)}
    END {print "object 1 class gridpositions counts 30 30 30"
        print "origin", x[0] / n - 58, x[1] / n - 58, x[2] / n - 58
        print "delta 4 0 0\ndelta 0 4 0\ndelta 0 0 4"
        print "object 3 class array type double rank 0 items 27000 data follows"
        for (i = 0; i < 27000; i++) print 0}' model.pdb >zero.dx
grep -v "^ATOM.* SC " model.pdb >backbone.pdb
"$program" map simulate backbone.pdb --like zero.dx --resolution 12 \
    --device reference --output map.mrc >map.txt 2>&1
expect "curve and map" 0 "" "$program" solve model.pdb exp.dat --map map.mrc \
    --resolution 12 -o mapped --states 1 $few --set device.use=reference
has "the map is fitted to" "kind: map" mapped/solve.yaml
has "and told of" "map.mrc: .*correlation" mapped/verdict.txt
expect "a map without its resolution" 64 "resolution R" \
    "$program" solve model.pdb exp.dat --map map.mrc -o none
check "leaves no folder either" test ! -e none
expect "another map" 64 "is of another map than 'other.mrc'" sh -c \
    'cp map.mrc other.mrc; "$@"' sh "$program" solve model.pdb exp.dat \
    --map other.mrc --resolution 12 -o mapped

# ---- wrong inputs ----
expect "no curve" 64 "expected MODEL CURVE.*MODEL --map" "$program" solve model.pdb
expect "a model that is not there" 66 "cannot open 'no.pdb'" \
    "$program" solve no.pdb exp.dat -o no
check "leaves no folder" test ! -e no
expect "another curve" 64 "'edited/solve.yaml' is of another curve than 'other.dat'" \
    "$program" solve model.pdb other.dat -o edited
expect "another model" 64 "is of another model than 'other.pdb'" \
    "$program" solve other.pdb exp.dat -o edited
mkdir own
echo "my own words" >own/verdict.txt
expect "a verdict of somebody else" 64 "verdict.txt.*not from tessera solve" \
    "$program" solve model.pdb exp.dat -o own
check "is kept" grep -q "my own words" own/verdict.txt
expect "the folder of a run" 78 "already contains a run" \
    "$program" solve model.pdb exp.dat -o runs/model/1
expect "no states" 64 "states" "$program" solve model.pdb exp.dat --states 0
expect "no number of seconds" 64 "time-limit" \
    "$program" solve model.pdb exp.dat --time-limit soon
expect "a key that is not there" 78 "sampler.drawz" \
    "$program" solve model.pdb exp.dat -o edited --set sampler.drawz=1
exit $bad
