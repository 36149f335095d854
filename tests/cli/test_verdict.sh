#!/bin/sh
# The verdict of a run: its numbers are those of the trace, computed here once more; its
# command to go on is the same everywhere, and can be typed; runs are compared.
. tests/cli/expect.sh
needs_venv "the verdict"
short_model model.pdb
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:55-60"]}
data: [{file: exp.dat}]
contrast: {c1: 1, c2: infer}
sampler: {chains: 2, warmup: 60, draws: 60, thin: 4, temperatures: 2, t_max: 4}
device: {use: reference}
output: {trajectory_every: 2}
simulate: {points: 40, q_range: [0.02, 0.3], steps: 300}
END
cat >large.yaml <<END
structure: {file: $demo/two_domain.pdb, flexible: ["A:51-64"]}
contrast: {c2: 0}
simulate: {points: 40, q_range: [0.02, 0.3]}
END
sed 's/exp.dat/other.dat/' run.yaml >other.yaml
sed 's/, flexible.*/, frozen: true}/' run.yaml >still.yaml
sed 's/{file: exp.dat}/&, {file: other.dat}/' run.yaml >two.yaml
cat >judge.py <<END
import json, math
import h5py, numpy as np
f = h5py.File("a/trace.h5")
v = json.load(open("a.json"))["verdict"]
c = v["curves"][0]
def near(a, b, tolerance):
    assert abs(a - b) <= tolerance * max(abs(a), abs(b)), (a, b)
q = f["observed_data/q"][()]
I = f["observed_data/intensity"][()]
sigma = f["constant_data/sigma"][()]
# the start, rigid: as profile fits it, and as the curve in the trace says
r = json.load(open("rigid.json"))["structures"][0]
near(c["rigid"]["chi2"], r["chi2"], 1e-4)
near(c["rigid"]["reduced_chi2"], r["reduced_chi2"], 1e-4)
near(c["rigid"]["cormap_p"], r["cormap_p"], 1e-8)
near(c["rigid"]["chi2"],
     np.mean(((I - f["constant_data/rigid"][()]) / sigma) ** 2), 1e-9)
# the mean curve of the draws
mean = f["posterior_predictive/intensity_mean"][()].reshape(-1, len(q))
near(c["chi2"], np.mean(((I - mean.mean(0)) / sigma) ** 2), 1e-5)
# Guinier's law in data and draws, over the same points with the same weights
b = f["posterior/background"][()].reshape(-1)
n = np.searchsorted(q, c["guinier_q_range"][1]) + 1
y = I[:n] - b.mean()
used = y > sigma[:n]
def rg(curve):
    slope = np.polyfit(q[:n][used] ** 2, np.log(curve[used]), 1,
                       w=(y / sigma[:n])[used])[0]
    return math.sqrt(-3 * slope)
near(c["rg_guinier_data"], rg(y), 1e-6)
assert q[n - 1] * rg(y) < 1.3 < q[n] * rg(y) * 1.001
each = [rg(m[:n] - one) for m, one in zip(mean, b)]
near(c["rg_guinier"]["mean"], np.mean(each), 1e-5)
near(c["rg_guinier"]["q95"], np.quantile(each, 0.95), 1e-5)
# points left out, without smoothing: harmonic means
l = f["log_likelihood/intensity"][()].reshape(-1, len(q)).astype(float)
plain = -np.log(np.mean(np.exp(l.min(0) - l), 0)) + l.min(0)
assert abs(v["loo"]["elpd"] - plain.sum()) < 1.5, (v["loo"], plain.sum())
assert v["loo"]["points"] == len(q) and v["loo"]["p_loo"] > 0
# sizes, and the arrangements
for name in ("rg", "d_max"):
    near(v[name]["mean"], f["posterior"][name][()].mean(), 1e-9)
a = v["motion"]
assert a[0]["variable"] == "pose_1_distance", a
near(a[0]["distance"]["mean"], f["posterior/pose_1_distance"][()].mean(), 1e-9)
# the advice, in words as in numbers
assert v["advice"]["converged"] is False and v["advice"]["draws"] >= 120
assert len(v["sentences"]) >= 5, v["sentences"]
END
cat >compare.py <<END
import json
import numpy as np, h5py
c = json.load(open("out.txt"))
a, still, other = c["runs"]
loo = [json.load(open("%s.json" % k))["verdict"]["loo"]["elpd"]
       for k in ("a2", "still")]
assert abs(still["loo_gain"] - (loo[1] - loo[0])) < 1e-9, still
def points(run): # left out without smoothing: harmonic means
    l = h5py.File(run + "/trace.h5")["log_likelihood/intensity"][()]
    l = l.reshape(-1, l.shape[-1]).astype(float)
    return -np.log(np.mean(np.exp(l.min(0) - l), 0)) + l.min(0)
each = points("still") - points("a")
error = (len(each) * each.var(ddof=1)) ** 0.5
assert abs(still["loo_gain_error"] / error - 1) < 0.1, (still, error)
assert still["same_data_as_first"] and not other["same_data_as_first"]
assert other["loo_gain"] is None, other
assert [x["runs"] for x in c["conflicts"]] == [[0, 2], [1, 2]], c["conflicts"]
x, y = (h5py.File("%s/trace.h5" % k)["posterior/rg"][()].ravel()
        for k in ("a", "other"))
edges = np.linspace(min(x.min(), y.min()), max(x.max(), y.max()), 31)
want = np.minimum(np.histogram(x, edges)[0] / x.size,
                  np.histogram(y, edges)[0] / y.size).sum()
got = [o["overlap"] for o in c["overlaps"]
       if o["runs"] == [0, 2] and o["variable"] == "rg"]
assert abs(got[0] - want) < 0.02, (got, want)
END

# ---- one run ----
cases <<'END'
a curve | 0 | tessera simulate run.yaml --output exp.dat --quiet
a curve of another structure | 0 | tessera simulate large.yaml --output other.dat --quiet
the plan says how long it takes | 0> ^time: about a minute \(.* s per draw of all | \
        tessera run run.yaml --output a --dry-run
a run | 0 to continue: tessera resume a --draws | tessera run run.yaml --output a
    begins with the verdict, says what moves | out ^Not converged yet \
        && out ^Motion: parts A:41-54 and A:61-74, centres
    the rigid model, by the same bodies, as a number | \
        text With the same bodies, the starting structure kept rigid has chi2
    whether it fits all atoms say | no text kept rigid [^.]*(fits|does not fit)
$ cp out.txt run.txt
summary --json | 0 | tessera summary a --json
$ cp out.txt a.json
the rigid fit of profile | 0 | tessera profile model.pdb --data exp.dat --bodies two --background fit --c1 1 \
        --device reference --json
$ cp out.txt rigid.json
    its numbers are those of the trace | "$python" judge.py

# ---- one line of advice ----
$ advice=$("$python" -c 'import json; print(json.load(open("a.json"))["verdict"]["advice"]["command"])')
$ typed=${advice#tessera } # with fewer draws, for the sake of time
    run has it | in run.txt ^    ${advice}   \(about
summary, too | 0> ^    ${advice}   \(about | tessera summary a
diagnose, too | 1> ^    ${advice}   \(about | tessera diagnose a
report | 0 | tessera report a --quiet
    report, too | in a/report.html ${advice}   \(about
    the page begins with the answer | in a/report.html class="answer">Not converged
it can be typed | 0 resumed | tessera ${typed% *} 64
a folder with a blank | 0 resume 'a b' --draws | tessera run run.yaml --output "a b" --set sampler.draws=4

# ---- until ----
on until converged | 0 converged by the criterion | tessera resume "a b" --until "rhat<90,ess>2"
until, which is not reached: exit status 1 | 1 not converged by the criterion | \
        tessera run run.yaml --output never --until "ess>100000" --set sampler.draws=12
as JSON, too | 1 | tessera resume never --draws 16 --json
    which says so | json d.converged is False and d.verdict.advice.asked == 'ess>100000'

# ---- runs side by side ----
a run of other data | 0 | tessera run other.yaml --output other --quiet
a run in which nothing moves | 0 | tessera run still.yaml --output still --quiet
compare: data of two structures | 0> ^The data of runs 1 and 3 cannot come from one | \
        tessera compare a still other
$ tessera summary a --json >a2.json 2>err.txt; tessera summary still --json >still.json 2>err.txt
compare --json | 0 | tessera compare a still other --json
    its numbers are those of the runs | "$python" compare.py
data of two structures in one run | 0 | tessera run two.yaml --output two --json --set sampler.draws=4
    contradict each other | json [x.curves for x in d.verdict.conflicts] == [[0, 1]] \
        and any('other.dat cannot come from one structure' in x for x in d.verdict.sentences)
    each has its rigid fit | json ['other.dat' in x for x in d.verdict.sentences if x.count('kept rigid') == 1][1:] \
        == [True] and len(d.verdict.curves) == 2 and d.verdict.loo.points == 80
one run alone | 64 DIR | tessera compare a
no run | 66 none | tessera compare a none
END
exit $bad
