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
has "what moves" '^What moves: A:51-64' out.txt
has "what is not converged" '^Not converged: the run of 1 state' out.txt
check "the report is there" test -s "$(sed -n 's/^report: //p' out.txt)"
has "under the model's name" '<h1>model.pdb with [12] state' \
    "$(sed -n 's/^report: //p' out.txt)"
has "the runs have the evidence" 'evidence: true' runs/model/1/config.yaml
has "and as many states" 'states: 2' runs/model/2/config.yaml
check "a run's log is its own" sh -c '! grep -q model/2 runs/model/1/run.log'

# ---- again: nothing is repeated, and the numbers are those of the runs ----
cksum runs/model/*/trace.h5 >before.txt
expect "again" 0 "runs/model/2 is finished" \
    "$program" solve model.pdb exp.dat --states 2 --json
cp out.txt solve.json
cksum runs/model/*/trace.h5 >after.txt
check "runs stay as they were" cmp -s before.txt after.txt
for k in 1 2; do "$program" summary runs/model/$k --json >$k.json 2>err.txt; done
"$program" profile model.pdb --data exp.dat --bodies two --background fit --json >rigid.json \
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
counts = gain > max(1, 2 * error)
assert two["gain_counts"] is counts and s["states"] == 1 + counts, s
assert s["flexible"] == ["A:51-64"] and s["bodies"] == "two", s
start = "tessera resume runs/model/%d --draws " % s["states"]
assert s["more"].startswith(start), s["more"]
assert len(s["verdict"]) == 5 and "may change" in s["verdict"][2], s["verdict"]
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
expect "one draw more" 0 "" "$program" $(cat more.txt) 61
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
sed -i 's/time_limit: 1000/time_limit: 0.1/' stopped/1/config.yaml
expect "goes on, until its time is over" 0 "resumed from the checkpoint" \
    "$program" solve model.pdb exp.dat -o stopped --states 1
has "with a verdict" '^Whether the data ask for more than one state was not' out.txt
has "its time was over" "the time limit is over" stopped/1/run.log
expect "its folder is no run's" 66 "folder of a solve.*tessera solve MODEL" \
    "$program" resume stopped

# ---- a configuration that was edited ----
mkdir edited
sed 's/^  flexible.*/  still: true/; /^    - "A:/d' stopped/solve.yaml \
    >edited/solve.yaml
expect "nothing flexible" 0 "going on with edited/solve.yaml" \
    "$program" solve model.pdb exp.dat -o edited
check "ends with the rigid fit" sh -c 'tr "\n" " " <out.txt |
    grep -q "nothing to sample: the rigid fit is the answer"'
check "and without a run" test ! -e edited/1
expect "as JSON" 0 "" "$program" solve model.pdb exp.dat -o edited --json
check "with no run in it" "$python" -c 'import json
s = json.load(open("out.txt"))
assert s["runs"] == [] and s["flexible"] == [] and s["report"] is None, s'
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

# ---- wrong inputs ----
expect "no curve" 64 "expected MODEL CURVE" "$program" solve model.pdb
expect "a model that is not there" 66 "cannot open 'no.pdb'" \
    "$program" solve no.pdb exp.dat -o no
check "leaves no folder" test ! -e no
expect "another curve" 64 "'edited/solve.yaml' is of another curve than 'other.dat'" \
    "$program" solve model.pdb other.dat -o edited
expect "another model" 64 "is of another model than 'other.pdb'" \
    "$program" solve other.pdb exp.dat -o edited
expect "the folder of a run" 78 "holds a run already" \
    "$program" solve model.pdb exp.dat -o runs/model/1
expect "no states" 64 "states" "$program" solve model.pdb exp.dat --states 0
expect "no number of seconds" 64 "time-limit" \
    "$program" solve model.pdb exp.dat --time-limit soon
expect "a key that is not there" 78 "sampler.drawz" \
    "$program" solve model.pdb exp.dat -o edited --set sampler.drawz=1
exit $bad
