#!/bin/sh
# tessera report: the page of a run as a browser without a network shows it.
# Prints one line a test (tests/run.sh).
. tests/cli/expect.sh
conformations=$build/tests/oracle/write_trajectory

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
"$program" simulate run.yaml --output good.dat --quiet >sim.txt 2>sim.err &&
    "$program" run run.yaml --quiet >run.txt 2>run.err &&
    "$program" run run.yaml --quiet --prior-only --output prior \
        >prior.txt 2>prior.err || {
    echo "not ok runs to report on"
    cat sim.err run.err prior.err
    exit 1
}

quiet() { "$program" "$@" --quiet >out.txt; }
check "a report without conformations" quiet report prior
check "says how to have some" grep -q "output.trajectory_every" \
    prior/report.html
check "knows that it saw no data" grep -q "Run without data" \
    prior/report.html
check "and says so in its figures" sh -c \
    '! grep -q ">posterior<" prior/report/posterior-rg.svg'
check "and its methods" grep -q "<p>The prior of the structure, without any" \
    prior/report.html
check "the start can be had" grep -q '<a href="model.pdb" download>' \
    prior/report.html
"$program" run run.yaml --quiet --output single --set sampler.chains=1 \
    --set sampler.draws=1 --set output.trajectory=all \
    --set output.trajectory_every=1 >single.txt 2>&1
check "a report of one draw" quiet report single
check "says what it is too few for" sh -c "grep -q 'One conformation is too few' \
    single/report.html && grep -q 'Too few draws for dist' single/report.html"
check "shows it as a point" grep -q "<circle" single/report/trace.svg
check "and draws no empty figures" test ! -e single/report/mobility.svg -a \
    ! -e single/report/posterior-rg.svg
# Measurements beside curves, which have no file to be called after.
sed 's/^data: .*/data:\
  - {kind: distance, between: ["A:2", "A:100"], mean: 41, sd: 2}\
  - good.dat\
  - {kind: distance, between: ["A:9", "A:90"], mean: 37, sd: 3}\
  - {file: good.dat, q_range: [0.02, 0.15]}/' run.yaml >both.yaml
check "a run with distances, too" quiet run both.yaml --output both
check "its report" quiet report both
check "has a section of them" grep -q '<h2 id="distance">Distances' \
    both/report.html
check "with a row of the first" grep -q "<td>1: A:2, A:100</td>\
<td>Angstrom</td><td>41</td><td>2</td>" both/report.html
check "and one of the second" grep -q "<td>2: A:9, A:90</td>" both/report.html
check "and a figure" test -s both/report/distance-1.svg -a \
    -s both/report/distance-2.svg
check "the prior of a parameter is there without a run of it" sh -c "
    grep -q ',prior,dashes' both/report/posterior-noise_scale.csv &&
    grep -q ',prior,dashes' both/report/posterior-noise_scale_2.csv"
check "curves keep their files' names" sh -c "
    grep -q '<h3>Data set 1: good.dat</h3>' both/report.html &&
    grep -q '<h3>Data set 2: .*good.*dat</h3>' both/report.html"
check "conformations of two states" "$conformations" run 3 60
check "report" quiet report run --prior prior
for figure in fit fit_2 guinier kratky trace rank posterior-rg \
    posterior-d_max pair-distances mobility distance-mean distance-sd timeline-change \
    timeline-contacts timeline-mobility; do
    check "figure $figure" test -s "run/report/$figure.svg"
done
"$python" - run/report/*.svg <<END >svg.txt 2>&1
import sys
import xml.etree.ElementTree
for path in sys.argv[1:]:
    page = open(path).read()
    top = xml.etree.ElementTree.fromstring(page)
    assert top.tag == "{http://www.w3.org/2000/svg}svg", (path, top.tag)
    for text in ("nan", "inf"):
        assert text not in page.replace("infinity", ""), (path, text)
END
"$python" - run/report run/report.html <<END >csv.txt 2>&1
import csv, glob, os, sys
folder = sys.argv[1]
pictures = sorted(glob.glob(folder + "/*.svg"))
assert len(pictures) > 20, pictures
for picture in pictures:
    rows = list(csv.DictReader(open(picture[:-4] + ".csv")))
    assert rows and all(len(r) == 6 and None not in r.values() for r in rows)
data = [tuple(map(float, line.split()[:2])) for line in open("good.dat")
        if line[0] != "#"]
points = [(float(r["x"]), float(r["y"]))
          for r in csv.DictReader(open(folder + "/fit.csv"))
          if r["series"] == "measured" and r["mark"] == "points"]
assert len(points) == len(data) == 60
for (a, b), (c, d) in zip(points, data):
    assert abs(a - c) < 1e-6 * c and abs(b - d) < 1e-5 * abs(d), (a, b, c, d)
rows = list(csv.DictReader(open(folder + "/conformations.csv")))
assert len(rows) == 180, len(rows)
assert {(r["chain"], r["draw"]) for r in rows} == {
    (str(c), str(d)) for c in range(3) for d in range(60)}
assert rows[0]["state"] == "1"
far = [float(r["distance_1_2_angstrom"]) for r in rows]
assert max(far) - min(far) > 3, (min(far), max(far))
assert all(0 <= float(r["turn_1_2_degree"]) <= 180 for r in rows)
END
check "their numbers are there, and those of the conformations" \
    test ! -s csv.txt
cat csv.txt
"$python" - run/report <<'END' >prior.txt 2>&1
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/posterior-rg.csv")))
for series in "prior", "posterior":
    top = max(float(r["y"]) for r in rows if r["series"] == series)
    assert abs(top - 1) < 1e-6, (series, top)
rows = list(csv.DictReader(open(sys.argv[1] + "/fit.csv")))
def curve(series):
    return [float(r["y"]) for r in rows if r["series"] == series]
start, mean = curve("starting structure"), curve("mean curve")
assert len(start) == len(mean) == 60
# the data are of another conformation: the start is close to them, not there
off = [abs(a / b - 1) for a, b in zip(start, mean)]
assert 1e-4 < max(off) < 1, max(off)
END
check "the prior is as high as the posterior, the start's curve is there" \
    test ! -s prior.txt
cat prior.txt
check "whether it converged is one line" sh -c \
    'grep -c "<details class=\"state" run/report.html | grep -qx 1'
check "nuisance parameters are apart" sh -c "sed '/id=\"nuisance\"/q' \
    run/report.html | grep -q '<td>radius of gyration <code>rg</code></td>' &&
    ! sed '/id=\"nuisance\"/q' run/report.html | grep -q '<code>noise_scale</code>'"

# The first screen: a box with the answer, fit and molecule; no long paragraph.
"$program" summary run --json >summary.json 2>err.txt
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
quiet report solved/1
sed 's/"probability": 0.[0-9]*/"probability": null/; s/"gain_error": 0.5/"gain_error": 1.5/' \
    solved/verdict.json >unsure.json
cp -r run alone
cp solved/verdict.json verdict.json
quiet report alone
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
"$python" first.py >first.txt 2>&1
check "the first screen has the answer, fit and molecule" test ! -s first.txt
cat first.txt
cp unsure.json solved/verdict.json
quiet report solved/1
check "states that the data do not tell apart are undecided" \
    grep -q "1.5 against 1: <b class=.open.>undecided</b>" solved/1/report.html
echo "no JSON" >solved/verdict.json
check "a verdict that is none" quiet report solved/1
check "is passed over" grep -q "Flexible model fits?" solved/1/report.html
check "variables have names for readers" grep -q \
    "<td>direction of A:65-[0-9]* seen from A:1-50, z <code>pose_1_from_z</code>" \
    run/report.html
check "few draws have few bars" sh -c '
    n=$(grep -c ",posterior,line," run/report/posterior-rg.csv)
    [ "$n" -ge 14 ] && [ "$n" -le 30 ]'
check "the chain has its name" grep -q \
    '"chains": *\[ *{"name": *"chain A", *"first": *0' run/report.html
check "pictures are well-formed and finite" test ! -s svg.txt
cat svg.txt
check "two arrangements are found" grep -q "less than 15 &Aring; apart" \
    run/report.html
for number in 1 2; do
    check "the centre of arrangement $number" test -s \
        run/report/arrangement-$number.cif
done
check "and no third" test ! -e run/report/arrangement-3.cif
check "shares are the trajectories'" grep -qE "<td>1</td><td>(6|7)[0-9]\.[0-9]&nbsp;%" \
    run/report.html
check "the molecule shows them" grep -q "centre of arrangement 2 (" run/report.html
"$program" diagnose run >out.txt 2>err.txt
check "diagnose sees them" grep -q "2 arrangements of the domains, with an overlap" \
    out.txt
check "an ensemble for other programs" \
    "$program" export run --draws even:10 --output draws.pdb --quiet
check "has its models" test "$(grep -c ^MODEL draws.pdb)" -eq 10
check "the arrangements for other programs" sh -c \
    "'$program' export run --draws arrangements --format cif >both.cif 2>err.txt"
check "has a model of each" test \
    "$(awk '/^ATOM/ {print $NF}' both.cif | sort -u | wc -l)" -eq 2
check "and scripts that open it" grep -q 'load("draws.pdb"' draws.pdb.pml
touch run/report/arrangement-7.cif
check "a second report replaces the first" quiet report run --prior prior
check "arrangements of the first go" test ! -e run/report/arrangement-7.cif
check "names are escaped" grep -q "two &lt;domains&gt; &amp; a" run/report.html
check "nothing is fetched" sh -c \
    '! grep -qE "(src|href)=\"?(https?:)?//" run/report.html'
check "the configuration is there" grep -q "q_range: \[0.02, 0.15\]" \
    run/report.html
check "methods name seed and chains" grep -q \
    "3 chains, each with replicas at 2 temp" run/report.html
check "and the noise" grep -q "The data were good.dat, with normal errors" \
    run/report.html
check "and the points that were used, not q_range" grep -q \
    "32 points were used, q from 0.0222 to 0.1483 1/Angstrom" run/report.html
check "residues have the file's numbers" grep -q "residue of chain A" \
    run/report/mobility.svg
check "data sets have their names" grep -q "<h3>Data set 2: .*good.*dat<" \
    run/report.html
check "the timeline has domains" grep -q ">domain<" \
    run/report/timeline-change.svg
check "and the chains' traces" test "$(grep -c ">chain [012]<" \
    run/report/timeline-change.svg)" -eq 3
mkdir elsewhere mine
check "another place" quiet report run/trace.h5 --output elsewhere
check "holds the page" test -s elsewhere/report.html
echo "my notes" >mine/report.html
"$program" report run --output mine --quiet >out.txt 2>err.txt
check "a page of somebody else's is refused" test $? -eq 64
check "and stays" grep -q "my notes" mine/report.html
check "its figures are there without scripts" \
    grep -q '<figure id="figure-fit"><svg' elsewhere/report.html

# More conformations than the report looks at: the columns of the timeline are
# then few of them, and the trace above each is that of its own draw.
cat >long.yaml <<END
structure: {sequence: GSAGSA}
sampler: {warmup: 50, draws: 4400, thin: 1, chains: 1}
output: {trajectory_every: 1}
END
quiet run long.yaml --prior-only --device reference --threads 1 --output long
check "a report of many conformations" quiet report long
quiet export long --draws all --format csv --output long.csv
check "the timeline's columns have the traces of their draws" awk -F, '
    NR == FNR { if (FNR > 1) lp[$2] = $5; next }
    $1 == "lp (nat)" {
        n++
        for (d = int($4) - 30; d <= $4 + 30; d++) {
            off = lp[d] - $5
            if (d in lp && off * off < 1e-8) { good++; break }
        }
    }
    END { exit !(n > 100 && good == n) }' long.csv long/report/timeline-change.csv

# A run that ends when it has converged was asked for no number of draws.
quiet run long.yaml --prior-only --device reference --threads 1 --output soon \
    --set sampler.until='rhat<9,ess>2'
check "a report of a run until converged" quiet report soon
check "it lacks nothing" sh -c '! grep -qE "of (the )?4400" soon/report.html'
check "status tells the bound as one" sh -c '"$0" status soon |
    grep -qE "^  sampling +[0-9]+ draws a chain \(4400 at most\), 1 chain$"' "$program"

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
