#!/bin/sh
# tessera solve goes from a model and a curve to a verdict: what it says is what its runs
# hold, it goes on where it was stopped, and refuses what does not belong together.
. tests/cli/expect.sh
cp "$demo/two_domain.pdb" model.pdb
cat >truth.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 40, q_range: [0.02, 0.3]}
END
expect "a curve" 0 "" tessera simulate truth.yaml --output exp.dat
# So few draws converge nowhere.
few="--set sampler.warmup=20 --set sampler.chains=2 --set sampler.thin=1
    --set sampler.temperatures=4 --set sampler.draws=60"
solve="solve model.pdb exp.dat"

# ---- all of it ----
cases <<'END'
solve | 0 2 states: runs/model/2 | tessera $solve --states 2 $few
    the rigid fit comes first, then what moves | out ^The rigid model fits exp.dat \
        && out ^Flexible residues: A:51-64
    what is not converged | out ^Not converged, so the results may change: 1 state \(
    whether two states are needed | out data require .*states? && out P\(1\) = 0
    states are not conformations | out States are not
    one statement on the rigid model | test "$(grep -cE 'rigid.*(fits|does not fit)' out.txt)" -eq 1
    the first screen is of the protein | no err engine|pthread|host time|grid:
    the engine is in the run's log | in runs/model/1/run.log engine: .*precision
$ report=$(sed -n 's/^report: //p' out.txt)
    the report is there, under the model's name | test -s "$report" && in $report <h1>model.pdb with [12] state
    the runs have the evidence, and as many states | in runs/model/1/config.yaml evidence: true \
        && in runs/model/2/config.yaml states: 2
    a run's log is its own | no in runs/model/1/run.log model/2
$ sed -n '/^The rigid model/,$p' out.txt >said.txt; cksum runs/model/*/trace.h5 >before.txt
    the verdict is kept, as it was printed | sed -n "3,\$p" runs/model/verdict.txt | cmp -s - said.txt
END
for file in solve.yaml solve.svg rigid.fit rigid.svg 1/trace.h5 2/trace.h5; do
    check "it leaves $file" test -s runs/model/$file
done

# ---- again: nothing is repeated, and the numbers are those of the runs ----
cases <<'END'
again | 0 runs/model/2 is finished | tessera $solve --states 2 --json
    and in verdict.json | cmp -s out.txt runs/model/verdict.json
    runs stay as they were | cksum runs/model/*/trace.h5 | cmp -s before.txt -
END
cp out.txt solve.json
for k in 1 2; do tessera summary runs/model/$k --json >$k.json 2>err.txt; done
tessera profile model.pdb --data exp.dat --bodies two --json >rigid.json 2>err.txt
cat >judge.py <<END
import json, math
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
# 20 to 1 after two errors, with prior odds of 1/2
odds = gain - math.log(2)
is_decided = abs(odds) - 2 * error >= math.log(20)
assert s["undecided"] is not is_decided, s
assert s["states"] == 1 + (is_decided and odds > 0), s
assert [run["conclusion"] for run in s["runs"]] == (
    ["undecided"] * 2 if not is_decided else
    ["excluded", "possible"] if odds > 0 else ["possible", "excluded"]), s
assert near(one["probability"] + two["probability"], 1), s
damped = odds / math.sqrt(1 + math.pi / 8 * error ** 2)
assert near(two["probability"], 1 / (1 + math.exp(-damped))), s
assert s["finished"] is True and s["converged"] is False, s
for name in ("rg", "d_max"):
    assert s[name] == one[name] == s["answer"][name], (name, s[name])
assert s["flexible"] == ["A:51-64"] and s["bodies"] == "two", s
worst = max(s["runs"], key=lambda run: run["evidence"]["error"])["states"]
if is_decided:
    worst = s["states"]
assert s["more"].startswith("tessera resume runs/model/%d --draws " % worst), s
assert len(s["verdict"]) == 4 and "may change" in s["verdict"][3], s["verdict"]
assert 0 < s["more_seconds"] < 1000, s["more_seconds"]
rigid = json.load(open("rigid.json"))["structures"][0]
for key in ("chi2", "reduced_chi2", "cormap_p", "c1", "c2", "scale", "background"):
    assert near(s["rigid"][0][key], rigid[key]), (key, s["rigid"], rigid)
assert s["rigid"][0]["fits"] is True
open("more.txt", "w").write(s["more"].split(" ", 1)[1].rsplit(" ", 1)[0])
END
cases <<'END'
    the numbers are those of the runs | "$python" judge.py
# ---- the advice can be typed ----
one draw more | 0 | tessera $(sed 's/2 --draws/1 --draws/' more.txt) 61
is judged anew | 0 is finished | tessera $solve --states 2 --json
    with that draw | out "n_draw": 61
END

# ---- stopped and taken up ----
has_drawn() { # DIR PATTERN: its number of draws
    tessera status "$1" 2>/dev/null | grep -q "sampling *$2"
}
# stopped STATES PATTERN OPTION...: a solve that is interrupted with so many draws
stopped() {
    states=$1 pattern_of_draws=$2
    shift 2
    # shellcheck disable=SC2086
    background tessera $solve -o stopped --states "$states" --time-limit 1000 $few \
        --set sampler.draws=1000000 --set output.checkpoint_every=0 "$@"
    wait_until has_drawn "stopped/$states" "$pattern_of_draws"
    kill -INT $pid
    ended
}
stopped 1 '[1-9][0-9][0-9]' # of a hundred the evidence can be told
status=$?
cases <<'END'
    an interrupted one ends with 75, and says how it goes on | test $status -eq 75 \
        && err interrupted in the run of 1 state; repeat
    what is known is printed | out ^The rigid model fits exp.dat
    with the command that goes on | out ^    tessera solve model.pdb exp.dat -o stopped
    and stands in the folder | json stopped/verdict.json: d.rigid[0].fits and d.runs == [] and not d.finished \
        and d.flexible == ['A:51-64'] and d.more.startswith('tessera solve model.pdb exp.dat -o stopped')
$ sed -i 's/time_limit: 1000/time_limit: 0.1/' stopped/1/config.yaml
goes on, until its time is over | 0 1 state: stopped/1 goes on | tessera $solve -o stopped --states 1
    from its checkpoint, until its time was over | in stopped/1/run.log resumed from the checkpoint \
        && in stopped/1/run.log the time limit is reached
    with a verdict | out ^Whether the data require more than one state was not
END
# A second number of states that is stopped: the first one's verdict is told.
stopped 2 '[1-9]' --set sampler.until=null
status=$?
mkdir edited worse tails own
cases <<'END'
    interrupted in the second | test $status -eq 75
    the first is told, and what is open | out ^Run of 1 state, stopped/1: && out more than one state is not known yet
    and kept | json stopped/verdict.json: [r.states for r in d.runs] == [1] and d.states == 1 and not d.finished \
        and d.report is None
$ rm -r stopped/2
its folder is no run's | 66 folder of a solve.*tessera solve MODEL | tessera resume stopped

# ---- a configuration that was edited ----
$ sed 's/^  flexible.*/  frozen: true/; /^    - "A:/d' stopped/solve.yaml >edited/solve.yaml
$ sed 's/exp.dat/worse.dat/' edited/solve.yaml >worse/solve.yaml
$ awk '!/^#/ {print $1, $2 * (1 + 3 * $1), $3}' exp.dat >worse.dat
nothing flexible | 0 continuing with edited/solve.yaml | tessera $solve -o edited
    ends with the rigid fit, so that nothing need be tried | out so there is nothing to && no out may be tried
    and without a run, the verdict is kept | test ! -e edited/1 -a -s edited/verdict.txt
    its report has the fit and the molecule | test -s edited/report/fit.svg
as JSON | 0 | tessera $solve -o edited --json
    with no run in it | json d.runs == [] and d.flexible == [] and d.report == 'edited/report.html'
END
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
cp exp.dat other.dat
cp model.pdb other.pdb
echo "my own words" >own/verdict.txt
flat_map zero.dx model.pdb 4 25
cases <<'END'
    its numbers are those of the report | "$python" rigid.py
nothing flexible, and no fit | 0 | tessera solve model.pdb worse.dat -o worse
    says what may be tried, and no more than that | text Possible next steps: name residues && no out is the answer

# ---- tails alone, of a model that fits ----
$ sed 's/A:51-64/A:1-5/' stopped/solve.yaml >tails/solve.yaml
tails alone | 0 | tessera $solve -o tails --states 1 $few
    are not sampled where the model fits | out ^Only tails are flexible: A:1-5
    and there is no run, but a report | test ! -e tails/1 && in tails/report.html Only tails are flexible
    the verdict has no runs | json tails/verdict.json: d.finished and d.runs == []
$ more=$(sed -n 's/.*"more": *"tessera \([^"]*\)".*/\1/p' tails/verdict.json)
    the command that samples them is printed | out ^    tessera ${more}$
and can be typed | 0 1 state: tails/1 | tessera $more
    then they are | out ^Run of 1 state, tails/1:
and again without --sample | 0 tails/1 is finished | tessera $solve -o tails --states 1
$ sed 's/exp.dat/worse.dat/' tails/solve.yaml >worse/solve.yaml
where the model does not fit they are sampled | 0 1 state: worse/1 | \
        tessera solve model.pdb worse.dat -o worse --states 1 $few
$ touch -d "+1 minute" stopped/solve.yaml
a change after the run began | 0 solve.yaml was changed after the run | tessera $solve -o stopped --states 1

# ---- two curves, and a density map ----
two curves | 0 | tessera $solve other.dat -o two --states 1 $few
    each has its rigid fit, of which both are told | test -s two/rigid-2.fit && out fits other.dat
$ without_side_chains >backbone.pdb
a map | 0 | tessera map simulate backbone.pdb --like zero.dx --resolution 12 --device reference --output map.mrc
$ cp map.mrc other.mrc
curve and map | 0 | tessera $solve --map map.mrc --resolution 12 -o mapped --states 1 $few --set device.use=reference
    the map is fitted to, and told of | in mapped/solve.yaml kind: map && in mapped/verdict.txt map.mrc: .*correlation
a map without its resolution | 64 resolution R | tessera $solve --map map.mrc -o none
    leaves no folder either | test ! -e none
another map | 64 is of another map than 'other.mrc' | tessera $solve --map other.mrc --resolution 12 -o mapped

# ---- wrong inputs ----
no curve | 64 expected MODEL CURVE.*MODEL --map | tessera solve model.pdb
a model that is not there | 66 cannot open 'no.pdb' | tessera solve no.pdb exp.dat -o no
    leaves no folder | test ! -e no
another curve | 64 'edited/solve.yaml' is of another curve than 'other.dat' | \
        tessera solve model.pdb other.dat -o edited
another model | 64 is of another model than 'other.pdb' | tessera solve other.pdb exp.dat -o edited
a verdict of somebody else | 64 verdict.txt.*not from tessera solve | tessera $solve -o own
    is kept | in own/verdict.txt my own words
the folder of a run | 78 already contains a run | tessera $solve -o runs/model/1
no states | 64 states | tessera $solve --states 0
no number of seconds | 64 time-limit | tessera $solve --time-limit soon
a key that is not there | 78 sampler.drawz | tessera $solve -o edited --set sampler.drawz=1
END
exit $bad
