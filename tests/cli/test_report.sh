#!/bin/sh
# tessera report: the page of a run, as a browser without a network shows it, has the
# figures, numbers and conformations of that run, and its first screen the answer.
. tests/cli/expect.sh

cp "$demo/two_domain.pdb" model.pdb
cat >run.yaml <<END
name: two <domains> & a "linker"
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}, {file: good.dat, q_range: [0.02, 0.15]}]
sampler: {chains: 3, warmup: 40, draws: 60, thin: 1, temperatures: 2}
device: {use: reference}
output: {directory: run, trajectory: none}
simulate: {points: 60, q_range: [0.01, 0.25], steps: 50}
contrast: {c2: 0}
END
# Measurements beside curves, which have no file to be called after.
sed 's/^data: .*/data:\
  - {kind: distance, between: ["A:2", "A:100"], mean: 41, sd: 2}\
  - good.dat\
  - {kind: distance, between: ["A:9", "A:90"], mean: 37, sd: 3}\
  - {file: good.dat, q_range: [0.02, 0.15]}/' run.yaml >both.yaml
quiet() { tessera "$@" --quiet; }
cases <<'END'
a curve | 0 | quiet simulate run.yaml --output good.dat
a run | 0 | quiet run run.yaml
a run of the prior | 0 | quiet run run.yaml --prior-only --output prior
END
[ $bad -eq 0 ] || exit 1
cases <<'END'
a report without conformations | 0 | quiet report prior
    says how to have some, and offers the start | in prior/report.html output.trajectory_every \
        && in prior/report.html <a href="model.pdb" download>
    knows that it saw no data | in prior/report.html Run without data
    and says so in its figures, and its methods | no in prior/report/posterior-rg.svg >posterior< \
        && in prior/report.html <p>The prior of the structure, without any
a run of one draw | 0 | quiet run run.yaml --output single --set sampler.chains=1 --set sampler.draws=1 \
        --set output.trajectory=atoms --set output.trajectory_every=1
a report of one draw | 0 | quiet report single
    says what it is too few for | in single/report.html One conformation is too few \
        && in single/report.html Too few draws for dist
    shows it as a point, and draws no empty figures | in single/report/trace.svg <circle \
        && test ! -e single/report/mobility.svg -a ! -e single/report/posterior-rg.svg
a run with distances, too | 0 | quiet run both.yaml --output both
its report | 0 | quiet report both
    has a section of them | in both/report.html <h2 id="distance">Distances
    with a row of the first and one of the second | in both/report.html <td>1: A:2, A:100</td><td>Angstrom</td>\
        <td>41</td><td>2</td> && in both/report.html <td>2: A:9, A:90</td>
    and a figure of each | test -s both/report/distance-1.svg -a -s both/report/distance-2.svg
    the prior of a parameter is there without a run of it | in both/report/posterior-noise_scale.csv ,prior,dashes \
        && in both/report/posterior-noise_scale_2.csv ,prior,dashes
    curves keep their files' names | in both/report.html <h3>Data set 1: good.dat</h3> \
        && in both/report.html <h3>Data set 2: .*good.*dat</h3>
conformations of two states | 0 | "$build/tests/oracle/write_trajectory" run 3 60
report | 0 | quiet report run --prior prior
    whether it converged is one line | test "$(grep -c '<details class="state' run/report.html)" -eq 1
    nuisance parameters are apart | sed '/id="nuisance"/q' run/report.html >before.txt \
        && in before.txt <td>radius of gyration <code>rg</code></td> && no in before.txt <code>noise_scale</code>
END
for figure in fit fit_2 guinier kratky trace posterior-rg posterior-d_max pair-distances \
    mobility distance-mean distance-sd; do
    check "figure $figure" test -s "run/report/$figure.svg"
done
cat >figures.py <<'END'
"""figures.py WHAT: the figures of run/report, and the tables beside them."""
import csv, glob, sys
import xml.etree.ElementTree
folder = "run/report/"
def rows(name):
    return list(csv.DictReader(open(folder + name)))
pictures = sorted(glob.glob(folder + "*.svg"))
fit = rows("fit.csv")
if sys.argv[1] == "pictures": # well-formed and finite
    for path in pictures:
        page = open(path).read()
        top = xml.etree.ElementTree.fromstring(page)
        assert top.tag == "{http://www.w3.org/2000/svg}svg", (path, top.tag)
        assert not any(t in page.replace("infinity", "") for t in ("nan", "inf")), path
elif sys.argv[1] == "tables":
    assert len(pictures) > 20, pictures
    for picture in pictures:
        table = list(csv.DictReader(open(picture[:-4] + ".csv")))
        assert table and all(len(r) == 6 and None not in r.values() for r in table)
    data = [tuple(map(float, line.split()[:2])) for line in open("good.dat") if line[0] != "#"]
    points = [(float(r["x"]), float(r["y"])) for r in fit
              if r["series"] == "measured" and r["mark"] == "points"]
    assert len(points) == len(data) == 60
    for (a, b), (c, d) in zip(points, data):
        assert abs(a - c) < 1e-6 * c and abs(b - d) < 1e-5 * abs(d), (a, b, c, d)
    drawn = rows("conformations.csv")
    assert len(drawn) == 180 and drawn[0]["state"] == "1", len(drawn)
    assert {(r["chain"], r["draw"]) for r in drawn} == {
        (str(c), str(d)) for c in range(3) for d in range(60)}
    far = [float(r["distance_1_2_angstrom"]) for r in drawn]
    assert max(far) - min(far) > 3, (min(far), max(far))
    assert all(0 <= float(r["turn_1_2_degree"]) <= 180 for r in drawn)
else:
    for series in "prior", "posterior": # as high as each other
        top = max(float(r["y"]) for r in rows("posterior-rg.csv") if r["series"] == series)
        assert abs(top - 1) < 1e-6, (series, top)
    start, mean = ([float(r["y"]) for r in fit if r["series"] == series]
                   for series in ("starting structure", "mean curve"))
    assert len(start) == len(mean) == 60
    # the data are of another conformation: the start is close to them, not there
    off = [abs(a / b - 1) for a, b in zip(start, mean)]
    assert 1e-4 < max(off) < 1, max(off)
END

# The first screen: a box with the answer, fit and molecule; no long paragraph.
tessera summary run --json >summary.json 2>err.txt
mkdir solved
cp -r run solved/1
cat >solved/verdict.json <<'END'
{"verdict": ["All <atoms> fit."],
 "rigid": [{"curve": "some/a&b.dat", "fits": true, "reduced_chi2": 1.234, "cormap_p": 0.25}],
 "runs": [{"states": 1, "directory": "solved/1", "evidence": {"log": 100.0, "error": 0.3},
           "probability": 0.12},
          {"states": 2, "directory": "solved/2", "evidence": {"log": 102.0, "error": 0.4},
           "gain": 2.0, "gain_error": 0.5, "probability": 0.88}]}
END
sed 's/"probability": 0.88/"probability": 0.88, "conclusion": "undecided"/' \
    solved/verdict.json >unsure.json
cp -r run alone
cp solved/verdict.json verdict.json
quiet report solved/1 >out.txt
quiet report alone >out.txt
cat >first.py <<'END'
import html, json, re, sys
def first(path):
    page = open(path).read()
    screen = re.search(r'<div class="first">(.*?)</section></div>', page, re.S)
    return screen.group(1), page
def rows(screen):
    found, asks = {}, None
    box = re.search(r'<table class="box">(.*?)</table>', screen, re.S).group(1)
    for th, td in re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", box, re.S):
        asks = th or asks
        found.setdefault(asks, []).append(
            html.unescape(re.sub("<[^>]*>", "", td)).replace("\xa0", " "))
    return found
def numbers(text):
    return [float(x) for x in re.findall(r"-?[0-9.]+(?:e-?[0-9]+)?", text)]
s = json.load(open("summary.json"))
screen, page = first("run/report.html")
box = rows(screen)
for name, asks in (("rg", "Rg"), ("d_max", "D<sub>max</sub>")):
    said = numbers(box[asks][0])
    want = [s[name][k] for k in ("mean", "q5", "q95")]
    assert all(abs(a - b) <= 0.51 * s[name]["sd"] for a, b in zip(said, want)), \
        (said, want)
curves = s["verdict"]["curves"]
assert len(box["Flexible model fits?"]) == 2, box
for text, c in zip(box["Flexible model fits?"], curves):
    assert text.startswith("yes " if c["fits"] else "no "), (text, c)
    assert "CorMap p %.2g" % c["cormap_p"] in text, (text, c)
assert "Rigid model fits?" not in box, box # whether it does solve says
assert box["States"] == ["1"], box
assert 'id="fit"' in screen and 'id="figure-fit"' in screen, screen[:500]
assert 'id="molecule"' in screen and "state no" in screen
shown = re.sub("<details.*?</details>", "", screen, flags=re.S)
for text in re.findall("<p[ >].*?</p>", shown, re.S):
    assert len(re.sub("<[^>]*>", " ", text).split()) <= 40, text
for link in re.findall('href="([^"#]+)" download', page):
    open("run/" + link)
assert 'href="report/arrangement-1.cif"' in screen
# a run of a solve: what the folder above says of all atoms and all runs
box = rows(first("solved/1/report.html")[0])
assert box["Rigid model fits?"] == [
    "yes a&b.dat: reduced \u03c7\u00b2 1.23, CorMap p 0.25"], box
one, two = box["States"]
assert one == "1 (shown): log evidence 100.0 \u00b1 0.3; probability 0.12", one
assert two == ("2: log evidence 102.0 \u00b1 0.4, +2.0 \u00b1 0.5 against 1; "
               "probability 0.88"), two
assert "All &lt;atoms&gt; fit." in open("solved/1/report.html").read()
# not of a run that the solve does not know
assert "All &lt;atoms&gt; fit." not in open("alone/report.html").read()
assert len(rows(first("alone/report.html")[0])["States"]) == 1
# as a data bank has them
cells = re.findall(r"<tr><td>(Rg, Guinier|I\(0\), Guinier|mass)[^<]*</td>"
                   r"<td>([^<]*)", page)
table = dict(reversed(cells)) # of the first data set
rg = s["verdict"]["curves"][0]["rg_guinier_data"]
assert abs(numbers(table["Rg, Guinier"])[0] - rg) < 0.006, (table, rg)
assert len(cells) == 6 and 5 < numbers(table["mass"])[0] < 20, cells
END
mkdir elsewhere mine
echo "my notes" >mine/report.html
cases <<'END'
    their numbers are there, and those of the conformations | "$python" figures.py tables
    the prior is as high as the posterior, the start's curve is there | "$python" figures.py prior
    pictures are well-formed and finite | "$python" figures.py pictures
    the first screen has the answer, fit and molecule | "$python" first.py
$ cp unsure.json solved/verdict.json
a report of a run of solve | 0 | quiet report solved/1
    states that the data do not tell apart are undecided | in solved/1/report.html \
        probability 0.88: <b class=.open.>undecided</b>
$ echo "no JSON" >solved/verdict.json
a verdict that is none | 0 | quiet report solved/1
    is passed over | in solved/1/report.html Flexible model fits\?
    variables have names for readers | in run/report.html \
        <td>direction of A:65-[0-9]* seen from A:1-50, z <code>pose_1_from_z</code>
$ n=$(grep -c ",posterior,line," run/report/posterior-rg.csv)
    few draws have few bars | test "$n" -ge 14 -a "$n" -le 30
    the chain has its name | in run/report.html "chains": *\[ *\{"name": *"chain A", *"first": *0
    two arrangements are found, and no third | in run/report.html less than 15 &Aring; apart \
        && test ! -e run/report/arrangement-3.cif
    the middle of each | test -s run/report/arrangement-1.cif -a -s run/report/arrangement-2.cif
    shares are the trajectories' | in run/report.html <td>1</td><td>(6|7)[0-9]\.[0-9]&nbsp;%
    the molecule shows them | in run/report.html centre of arrangement 2 \(
diagnose sees them | 1> 2 arrangements of the domains, with an overlap | tessera diagnose run
an ensemble for other programs | 0 | quiet export run --draws even:10 --output draws.pdb
    has its models | test "$(grep -c ^MODEL draws.pdb)" -eq 10
the arrangements for other programs | 0 | tessera export run --draws arrangements --format cif
    have a model of each | test "$(awk '/^ATOM/ {print $NF}' out.txt | sort -u | wc -l)" -eq 2
$ touch run/report/arrangement-7.cif
a second report replaces the first | 0 | quiet report run --prior prior
    arrangements of the first go | test ! -e run/report/arrangement-7.cif
    names are escaped | in run/report.html two &lt;domains&gt; &amp; a
    nothing is fetched | no in run/report.html (src|href)="?(https?:)?//
    the configuration is there | in run/report.html q_range: \[0.02, 0.15\]
    methods name seed and chains, and the noise | in run/report.html 3 chains, each with replicas at 2 temp \
        && in run/report.html The data were good.dat, with normal errors
    and the points that were used, not q_range | in run/report.html \
        32 points were used, q from 0.0222 to 0.1483 1/Angstrom
    residues have the file's numbers | in run/report/mobility.svg residue of chain A
    data sets have their names | in run/report.html <h3>Data set 2: .*good.*dat<
another place | 0 | quiet report run/trace.h5 --output elsewhere
    holds the page | test -s elsewhere/report.html
    its figures are there without scripts | in elsewhere/report.html <figure id="figure-fit"><svg
a page of somebody else's is refused | 64 | quiet report run --output mine
    and stays | in mine/report.html my notes
END

# More conformations than the report looks at. A run that ends when it has
# converged was asked for no number of draws.
cat >long.yaml <<END
structure: {sequence: GSAGSA}
sampler: {warmup: 50, draws: 4400, thin: 1, chains: 1}
output: {trajectory_every: 1}
END
long="run long.yaml --prior-only --device reference --threads 1"
cases <<'END'
many conformations | 0 | quiet $long --output long
a report of many conformations | 0 | quiet report long --threads 1
$ mkdir shared && quiet report long --output shared --threads 3 >out.txt
    is the same by three threads | diff -r long/report shared/report && test -s shared/report/mobility.csv
a run until converged | 0 | quiet $long --output soon --set sampler.until='rhat<9,ess>2'
a report of a run until converged | 0 | quiet report soon
    it lacks nothing | no in soon/report.html of (the )?4400
status tells the bound as one | 0> ^  sampling +[0-9]+ draws per chain \(4400 at most\), 1 chain$ | tessera status soon
END

. "$source/tests/cli/browser.sh"
play run
judge run
# On a desktop the first screen holds box, fit and molecule side by side.
sed '/<\/body><\/html>/d' run/report.html >wide.html
cat >>wide.html <<'END'
<script>
setTimeout(function () {
  var part = ['.box', '#figure-fit', '#molecule canvas'].map(function (name) {
    return document.querySelector(name).getBoundingClientRect();
  });
  document.body.setAttribute('data-wide', part.every(function (r, i) {
    return r.width > 300 && r.top < 300 && r.bottom < 900 &&
      (!i || r.left >= part[i - 1].right);
  }) && part[2].right > 0.9 * innerWidth);
}, 1500);
</script></body></html>
END
browse wide.html 1440,900
check "the first screen of a desktop is full" grep -q 'data-wide="true"' dom.html
# The page's own policy forbids it to fetch; the console would tell.
sed '/<body>/q' run/report.html >asking.html
echo '<img src="http://127.0.0.1:9/picture.png"></body></html>' >>asking.html
browse asking.html
check "a page that asked for more would be seen" \
    grep -q ":CONSOLE.*Content Security Policy" browser.txt
exit $bad
