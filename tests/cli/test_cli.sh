#!/bin/sh
# The program as a user runs it: output, messages, exit status, nothing left
# half-written. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

# The runs are the reference engine's, except where a device is the matter: to
# open one takes longer than they do.
has_device=1
"$program" devices --no-test >out.txt 2>err.txt || has_device=
on_device() { # expect or check, as above
    if [ -n "$has_device" ]; then "$@"; else echo "skip $2: no device"; fi
}

short_model model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 20, draws: 6, thin: 2}
output: {directory: out}
simulate: {points: 60, q_range: [0.01, 0.25], steps: 50}
contrast: {c2: 0}
device: {use: reference}
END
with() { # FILE, sed expression: a variant of good.yaml
    sed "$2; s/directory: out/directory: new/" good.yaml >"$1"
}

# ---- what works ----
expect "no arguments" 64 "Usage" "$program"
expect "help" 0 "" "$program" --help
check "help goes to standard output" grep -q "Commands:" out.txt
expect "help of run" 0 "" "$program" run --help
check "help names the sections" grep -q "^  contrast  *excluded volume" out.txt
check "on a page" test "$(wc -l <out.txt)" -lt 60
expect "help of a section" 0 "" "$program" run --help contrast
check "shows live defaults and bounds" grep -qE "^  c1 +1 .* radius" out.txt
check "alone" sh -c '! grep -qE "draws|Options" out.txt'
for key in "run --help data.saxs" "check --help moves.pivot" "help run pivot" \
    "simulate --help output.trajectory_every"; do
    # shellcheck disable=SC2086
    expect "$key" 0 "" "$program" $key
    check "begins with that key" \
        grep -q "^[a-z]*\.${key##*[. ]} " out.txt
done
mkdir -p data
check "help of a key, beside a folder of that name" sh -c \
    "'$program' run --help data | grep -q '^data'"
expect "help before a configuration" 0 "" "$program" run --help other.yaml
expect "help of all keys" 0 "" "$program" run --help all
check "shows units" grep -q "auto  *stored draws a chain" out.txt
expect "help of no key" 64 "no key 'contrst'; did you mean 'contrast'" \
    "$program" run --help contrst
expect "a key of no section" 64 "did you mean 'c1_range'" \
    "$program" check --help contrast.c1_rang
expect "version" 0 "" "$program" --version
expect "unknown command" 64 "did you mean 'run'" "$program" runn good.yaml
expect "unknown option" 64 "output" "$program" run good.yaml --ouput x

# ---- commands that are programs of their own ----
check "help lists them" sh -c "'$program' --help | grep -q '^  bench  *the engine'"
expect "help of one" 0 "" "$program" train --help
cp out.txt train.txt
check "by its name" sh -c "'$program' help train | cmp -s - train.txt"
check "or as itself" sh -c "'$build/tessera-train' --help | cmp -s - train.txt"
expect "one misused" 64 "^tessera bench: option '--engine': value 'x'" \
    "$program" bench --engine x
mkdir alone
cp "$program" alone
expect "one that is not there" 66 "'tessera-bench' is neither beside tessera nor in" \
    alone/tessera bench --help
expect "found in PATH" 0 "" env PATH="$build:$PATH" alone/tessera bench --help

expect "simulate" 0 "" "$program" simulate good.yaml --output good.dat
check "simulate prints the true Rg" grep -q "^Rg" out.txt
check "simulate writes the structure" test -s good.pdb
expect "simulate replaces its own" 0 "" \
    "$program" simulate good.yaml --output good.dat
cp good.yaml model.yaml
cp model.pdb before.pdb
expect "simulate with the input's name" 64 \
    "model.pdb' would replace the input.*--output" \
    "$program" simulate model.yaml
check "leaves the input" cmp -s model.pdb before.pdb
check "and writes nothing" test ! -e model.dat
mkdir measured
echo "0.01 1 0.1" >measured/good.dat
expect "simulate onto a measured curve" 64 "not from tessera simulate.*--output" \
    "$program" simulate good.yaml --output measured/good.dat
check "leaves the curve" test "$(cat measured/good.dat)" = "0.01 1 0.1"
echo "HEADER" >measured/mine.pdb
expect "simulate onto a structure" 64 "mine.pdb' exists and is not" \
    "$program" simulate good.yaml --output measured/mine.dat
expect "simulate into one file" 64 "name the curve .dat" \
    "$program" simulate good.yaml --output measured/new.pdb
mkdir half
small() { (ulimit -f "$blocks" && "$program" "$@"); }
blocks=8 # of 512 or 1024 bytes a file
expect "a structure that cannot be written" 74 "half/new" \
    small simulate good.yaml --output half/new.dat
expect "a curve that cannot be written" 74 "half/new" \
    small simulate good.yaml --output half/new.dat \
    --set structure.file= --set structure.flexible=[] \
    --set structure.sequence=MKTAYIAKQR --set simulate.points=5000
check "leave nothing" test -z "$(ls half)"
expect "check" 0 "free torsions" "$program" check good.yaml
awk '/^data:/ {print "data:"; for (i = 0; i < 300; i++)
    print "  - {file: good.dat}"; next} {print}' good.yaml >often.yaml
expect "a file three hundred times" 0 "data.0 and data.299 are the same file" \
    "$program" check often.yaml
check "is told once an entry" test "$(grep -c 'same file' err.txt)" -eq 299
cp out.txt resolved.yaml
expect "the resolved config is a config" 0 "" "$program" check resolved.yaml
check "and resolves to itself" cmp -s out.txt resolved.yaml
expect "dry run" 0 "" "$program" run good.yaml --dry-run
check "a dry run writes nothing" test ! -e out
expect "run" 0 "engine:" "$program" run good.yaml
on_device expect "run on a device" 0 "engine: page-tile" \
    "$program" run good.yaml --device auto --output device
check "run ends with a table" grep -q "posterior" out.txt
check "the table tells of convergence" grep -qE "R-hat +(inf|[0-9.]+) \\(" out.txt
check "six draws have not converged" \
    grep -q "not converged .*to continue: tessera resume [^ ]* --draws [0-9]* " err.txt
expect "a run without warm-up" 0 "not converged.*resume cold --draws" \
    "$program" run good.yaml --output cold --set sampler.warmup=0
check "nor does the log hide it" grep -q "warning: not converged" out/run.log
check "kernel options are for --verbose" sh -c '! grep -q -- -DTILE err.txt'
for file in config.yaml model.pdb run.log trace.h5; do
    check "run writes $file" test -s out/$file
done
expect "a folder that holds a run" 78 "out.*already contains a run.*--output" \
    "$program" run good.yaml
expect "the run's own config runs again" 0 "" \
    "$program" run out/config.yaml --output again
expect "summary" 0 "" "$program" summary out
check "summary has Rg and chi2" grep -q "chi2" out.txt
expect "summary --json" 0 "" "$program" summary out --json
check "JSON is JSON" "$python" -c \
    "import json; d = json.load(open('out.txt')); d['rg']['ess_bulk']"
tr -d '\r' <good.yaml | sed "s/\$/$(printf '\r')/" >crlf.yaml
expect "line ends of Windows" 0 "" "$program" check crlf.yaml
mkdir -p "a folder/in it"
sed 's/directory: out/directory: "süd ost"/; s|good.dat|in it/../good.dat|' \
    good.yaml >"a folder/my config.yaml"
cp model.pdb good.dat "a folder"
expect "blanks and umlauts in paths" 0 "/a folder/good.dat: 60 points" \
    "$program" run "a folder/my config.yaml"
check "a path is relative to the config" test -s "a folder/süd ost/trace.h5"
sed 's/{file: good.dat}/{file: good.dat}, good.dat/' good.yaml >twice.yaml
expect "a curve given twice" 0 "data.0 and data.1 are the same" \
    "$program" check twice.yaml
sed '/^data/d' good.yaml >nodata.yaml
expect "no data is said" 0 "prior alone" "$program" check nodata.yaml
expect "prior only" 0 "prior alone" \
    "$program" run good.yaml --prior-only --output prior
expect "its config.yaml says so" 0 "prior alone" \
    "$program" check prior/config.yaml
for sequence in MKT GGG; do
    expect "a peptide $sequence" 0 "" "$program" run nodata.yaml \
        --output $sequence --set structure.file= --set structure.flexible=[] \
        --set structure.sequence=$sequence --set data.0.file=good.dat
done
expect "two states" 0 "temperatures 1 [0-9.]+ 20; exchanged" "$program" run good.yaml \
    --output states --set structure.states=2 --set sampler.temperatures=3
"$program" summary states --json >out.txt
check "have a radius and a weight each" "$python" -c "
import json
d = json.load(open('out.txt'))
for name in 'rg_1', 'rg_2', 'weight_1', 'weight_2', 'rg', 'chi2':
    d[name]['mean']
assert d['rg_1']['mean'] <= d['rg_2']['mean']
assert abs(d['weight_1']['mean'] + d['weight_2']['mean'] - 1.0) < 1e-9
assert 'rg_3' not in d
"
expect "states of one weight" 0 "" "$program" run good.yaml \
    --output equal --set structure.states=2 --set structure.weights=equal
"$program" summary equal --json >out.txt
check "have none to tell" sh -c \
    'grep -q rg_2 out.txt && ! grep -q weight_ out.txt'
expect "the plan of many systems" 0 "" "$program" run good.yaml --dry-run \
    --output new --set structure.states=3 --set sampler.temperatures=5
check "counts them" grep -q \
    "^systems: 30, of 2 chains x 5 temperatures x 3 states" out.txt
on_device expect "and on a device" 0 "" "$program" run good.yaml --dry-run \
    --device auto --output new --set structure.states=3 \
    --set sampler.temperatures=5
on_device check "and so does the memory" grep -q \
    "^memory: .* bytes per system, 30 systems of " out.txt
expect "the plan without data" 0 "" "$program" run good.yaml --prior-only \
    --dry-run --output new
check "has no systems" sh -c '! grep -q "^systems" out.txt'
expect "reference engine" 0 "engine: reference" "$program" run good.yaml \
    --output reference --set sampler.warmup=4 --set sampler.draws=3
on_device expect "all devices" 0 "engine:" "$program" run good.yaml --device all \
    --output all --set sampler.warmup=4 --set sampler.draws=3
# PoCL shows the processor as two devices on demand, alike or not.
two() { kinds=$1; shift; POCL_DEVICES=$kinds "$program" "$@"; }
if [ "$(two "pthread pthread" devices --no-test | grep -c compute)" -eq 2 ]; then
    for list in 0 0,1; do
        expect "alike devices: $list" 0 "" two "pthread pthread" run good.yaml \
            --device $list --output alike-$list
        "$program" summary alike-$list --json |
            sed '/^ *"verdict"/,$d' >alike-$list.json # it tells of seconds
    done
    check "alike devices share equally" sh -c \
        'grep -q "engine: chain 0: " err.txt && grep -q "chain 1: " err.txt'
    check "and are not warned of" sh -c '! grep -q "devices differ" err.txt'
    check "nor do they change a number" cmp -s alike-0.json alike-0,1.json
    check "which is one" grep -q rhat alike-0.json
    expect "the plan has the division" 0 "2 threads instead of 1" \
        two "pthread pthread" run good.yaml --output new --dry-run \
        --device all --threads 1 --set sampler.chains=5
    check "a line a device" grep -q "^engine: chains 0 to 2: " out.txt
    check "with all chains" grep -q "^engine: chains 3 to 4: " out.txt
    expect "more devices than chains" 0 "not used: there are fewer chains" \
        two "pthread pthread" run good.yaml --output new --dry-run \
        --device all --set sampler.chains=1
    expect "devices that are not alike" 0 "warning: .*devices differ.*measured" \
        two "pthread basic" run good.yaml --device 0,1 --output unlike
    check "are measured" grep -qE "engine: chain 1 \([0-9.e+]+ profiles/s\)" \
        err.txt
    check "as the trace tells" grep -aqE "^chain 1 \([0-9.e+]+ profiles/s\)" \
        unlike/trace.h5
else
    echo "skip several devices: no PoCL that shows two"
fi
on_device expect "devices" 0 "" "$program" devices
on_device check "devices are tested" grep -q "self-test passed" out.txt
on_device expect "devices --json" 0 "" "$program" devices --json
on_device check "JSON is JSON, too" "$python" -c \
    "import json; json.load(open('out.txt'))['devices'][0]['name']"
on_device expect "bench --json" 0 "" "$program" bench --quick --json
on_device check "bench rows" "$python" -c "
import json
d = json.load(open('out.txt'))
assert d['device'] and len(d['rows']) == 20
for r in d['rows']:
    assert r['wall_us_per_profile'] > 0 and r['max_rel_error'] < 1e-5, r
"
on_device expect "bench --map" 0 "" "$program" bench --map --quick --json
on_device check "parts of its time" "$python" -c "
import json
rows = {r['case']: r for r in json.load(open('out.txt'))['rows']}
assert rows['cold']['build_ms'] > 0 and rows['resident']['build_ms'] == 0
assert rows['resident']['error_of_cc'] < 1e-6
for r in rows.values(): # what follows each other is no longer than the whole
    parts = [r[k + '_ms'] for k in ('place', 'queue', 'kernels', 'read')]
    assert r['place_ms'] > 0 and r['kernels_ms'] > 0, r
    assert r['place_ms'] + r['queue_ms'] <= r['wall_ms'], r
    assert max(parts) <= r['wall_ms'], r
"

# ---- files ----
with bad.yaml 's/model.pdb/gap.pdb/'
grep -v "CA  ... A  45" model.pdb >gap.pdb
expect "a residue without CA" 0 "gap.pdb.*A:45 .no CA.; complete" \
    "$program" check bad.yaml
grep -v " [NC]   ... A  45\| O   ... A  45\|CA  ... A  45" model.pdb >gap.pdb
with mixed.yaml 's/model.pdb/mixed.pdb/; /^data/d'
{
    echo "MODEL        1"
    sed '/^END/d' model.pdb
    for atom in "P    DA B   1 " "C1  HEM C   1 " "O   HOH C   2 "; do
        echo "HETATM 9999  $atom     50.000  50.000  50.000  1.00  0.00"
    done
    echo ENDMDL
    echo "MODEL        2"
    grep "^ATOM" model.pdb
    echo ENDMDL
} >mixed.pdb
expect "ligands and nucleotides" 0 \
    "warning: .*left out: ligands 1, nucleotides 1, models after the first 1" \
    "$program" check mixed.yaml
check "are told of once" test "$(grep -c 'left out' err.txt)" -eq 1
awk '/^ATOM/ {printf "ATOM %s %s %s . %s A 1 %s ? %s %s %s 1.0 0 %s AA 1\n",
    $2, substr($3, 1, 1), $3, $4, $6, $7 + shift, $8, $9, $6}' \
    shift=0 model.pdb >atoms.txt
cat >loop.txt <<END
data_AA
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_alt_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_entity_id
_atom_site.label_seq_id
_atom_site.pdbx_PDB_ins_code
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.occupancy
_atom_site.B_iso_or_equiv
_atom_site.auth_seq_id
_atom_site.auth_asym_id
_atom_site.pdbx_PDB_model_num
END
cat loop.txt atoms.txt >aa.cif
with aa.yaml 's/A:51/AA:51/; s/model.pdb/aa.cif/; /^data/d'
expect "a chain id of two letters" 0 "chain AA is chain A in PDB" \
    "$program" run aa.yaml --output aa
check "is one in model.pdb" grep -q "^ATOM.* A  51 " aa/model.pdb
expect "simulate with it" 0 "" "$program" simulate aa.yaml --output aa.dat
awk '{$11 += 20000; print}' atoms.txt | cat loop.txt - >far.cif
with far.yaml 's/A:51/AA:51/; s/model.pdb/far.cif/; /^data/d'
for command in check "run --dry-run" run; do
    expect "$command: far from the origin" 65 "origin" \
        "$program" $command far.yaml
done
expect "a residue without backbone" 0 "gap.pdb.*A:45 .no N.; complete" \
    "$program" check bad.yaml

# ---- configuration ----
with bad.yaml 's/chains/chain/'
expect "misspelt key" 78 "bad.yaml:3:.*chain.*did you mean.*chains" \
    "$program" run bad.yaml
with bad.yaml 's/chains: 2/chains: 0/'
expect "out of range" 78 "bad.yaml:3:.*chains.*'?0'?.*1" "$program" run bad.yaml
with bad.yaml 's/chains: 2/chains: two/'
expect "not a number" 78 "bad.yaml:3:.*chains.*two" "$program" run bad.yaml
printf 'frobnicate: 1\n' >bad.yaml
expect "unknown key" 78 "bad.yaml:1:1.*frobnicate" "$program" run bad.yaml
with bad.yaml 's/A:51-64/A:500-600/'
expect "a range that names nothing" 78 \
    "bad.yaml:1:41: structure.flexible.0: .*A:500-600" "$program" run bad.yaml
with bad.yaml 's/A:51-64/A:51-640/'
expect "a range beyond the chain" 78 "bad.yaml:1:41: .*A:51-640.* 41 to 74 only" \
    "$program" run bad.yaml
with bad.yaml 's/A:51-64/B:1-9/'
expect "a chain that is not there" 78 "'B'" "$program" run bad.yaml
with bad.yaml 's/\]}$/], sequence: MKT}/'
expect "a range of --set that is wrong names that" 78 \
    "--set structure.flexible=.*structure.flexible.0: .*A:500" \
    "$program" run good.yaml --output new \
    --set 'structure.flexible=["A:500-600"]'
expect "a seed that a double cannot hold" 78 "seed.*9007199254740993.*range" \
    "$program" check good.yaml --set seed=9007199254740993
expect "the largest seed" 0 "" \
    "$program" check good.yaml --set seed=9007199254740992
check "is itself" grep -q "seed: 9007199254740992" out.txt
expect "half a thread" 78 "--set device.threads=1.5: device.threads.*1.5.*whole" \
    "$program" run good.yaml --output new --set device.threads=1.5
for set in structure.states=0 structure.states=33 structure.states=1.5 \
    structure.weights=some sampler.temperatures=0 sampler.temperatures=65 \
    sampler.temperatures=hot sampler.t_max=1 sampler.t_max=hot \
    sampler.swap_every=0 sampler.anneal=0.95 sampler.anneal=-0.1; do
    key=${set%=*} value=${set#*=}
    case $key in
    structure.states) range="integer in \\[1, 32\\]" ;;
    structure.weights) range="one of infer, equal" ;;
    sampler.temperatures) range="number in \\[1, 64\\], or auto" ;;
    sampler.t_max) range="number in \\[1.001, " ;;
    sampler.swap_every) range="integer in \\[1, " ;;
    sampler.anneal) range="number in \\[0, 0.9\\]" ;;
    esac
    expect "$set is refused" 78 "--set $set: .*'$key'.*'$value'.*$range" \
        "$program" run good.yaml --output new --set $set
done
expect "half a temperature" 78 "sampler.temperatures.*2.5.*whole" \
    "$program" run good.yaml --output new --set sampler.temperatures=2.5
expect "part of a draw" 78 "sampler.draws: 2.5 is not a whole number" \
    "$program" run good.yaml --output new --set sampler.draws=2.5
with worse.yaml '1s/file:/states: 40, file:/'
expect "its place in the file" 78 "worse.yaml:1:.*structure.states.*40.*32" \
    "$program" check worse.yaml
expect "an output without a name" 64 "output is empty" \
    "$program" run good.yaml --output ""
expect "file and sequence" 78 "bad.yaml:1:12: .*not both" \
    "$program" run bad.yaml
# What is found after the file was read has its place, too.
with bad.yaml 's/51-64"\]/&, d_max: 20/'
expect "d_max too small" 78 "bad.yaml:1:60: structure.d_max: 20" \
    "$program" run bad.yaml
with bad.yaml 's/{file: good.dat}/{background: 0}/'
expect "data without a file" 78 "bad.yaml:2:8: data.0: .*'file' is missing" \
    "$program" run bad.yaml
printf 'structure:\n  sequence: MKB\n' >bad.yaml
expect "an unknown letter" 78 "bad.yaml:2:13: structure.sequence: .*'B'" \
    "$program" check bad.yaml
printf 'structure: {sequence: MKT}\nmoves: {pivot: 0, crankshaft: 0, side_chain: 0, regrow: 0, pose: 0}\n' >bad.yaml
expect "no moves" 78 "bad.yaml:2:8: moves: no move" \
    "$program" run bad.yaml --output new
sed '/^device/d; s/^output/device: {use: "reference,0"}\n&/' good.yaml |
    sed 's/directory: out/directory: new/' >bad.yaml
on_device expect "devices that do not go together" 78 "bad.yaml:4:15: device.use: " \
    "$program" run bad.yaml
sed 's/^output/# &/; $a output: {directory: out}' good.yaml >bad.yaml
expect "a folder of a run in the file" 78 "bad.yaml:[678]:21: output.directory: " \
    "$program" run bad.yaml
printf '{}\n' >bad.yaml
expect "a key that is not there has no place" 78 "bad.yaml: structure: give" \
    "$program" run bad.yaml
expect "--set of an unknown key" 78 "sampler.drws" \
    "$program" run good.yaml --output new --set sampler.drws=3
expect "--set without =" 64 "KEY=VALUE|=" \
    "$program" run good.yaml --output new --set sampler.draws

# ---- curves ----
with bad.yaml 's/good.dat/bad.dat/'
awk '!/^#/ {print $1, $2}' good.dat >bad.dat
expect "two columns" 0 "bad.dat.*sigma" "$program" run bad.yaml --output two
check "the log has it" grep -q "sigma is stated" two/run.log
check "the trace, too" grep -q "stated: 0.03 I(q)" two/trace.h5
sed '20s/ [^ ]*$/ nan/' good.dat >bad.dat
expect "NaN" 0 "bad.dat: 1 rows dropped, .*not a number" \
    "$program" check bad.yaml
sed '20s/^[^ ]*/nan/' good.dat >bad.dat
expect "q that is NaN" 65 "bad.dat.*line 20: q = nan is not a finite" \
    "$program" run bad.yaml --output new
awk '/^#/ {print; next} {line[++n] = $0} END {for (i = 1; i <= n; i++)
    print line[i == 9 ? 12 : i == 12 ? 9 : i]}' good.dat >bad.dat
expect "unsorted" 65 "bad.dat.*(sort|ascend|order)" \
    "$program" run bad.yaml --output new
awk '/^#/ {next} {printf "%.6f %s %s\n", 10 * $1, $2, $3}' good.dat >bad.dat
expect "1/nm by q_max" 0 "1/nm" "$program" run bad.yaml --output nm
check "the log has the unit of q" grep -q "bad.dat: q in 1/nm (q_max > 1)" \
    nm/run.log
check "the trace, too" grep -q "1/nm (q_max > 1)" nm/trace.h5
expect "1/nm named wrongly" 78 "1/nm" \
    "$program" run bad.yaml --output new --set data.0.q_unit=1/mm
for power in 45 -45 200 -200; do
    want=0
    [ ${power#-} -lt 100 ] || want=65
    awk -v e=e$power '/^#/ {print; next} {print $1, $2 e, $3 e}' good.dat >bad.dat
    expect "intensities times 1e$power" $want "" "$program" run bad.yaml \
        --output power$power
done
# A named pipe would keep the program waiting for who writes into it.
mkfifo pipe
for words in "run good.yaml --output new --set data.0.file=pipe" "run pipe" \
    "run good.yaml --output new --set structure.file=pipe" \
    "run good.yaml --output new --set structure.form_factors=pipe" \
    "run good.yaml --output new --set data.0.resolution.beam_profile=pipe" \
    "profile model.pdb --data pipe" "profile pipe" "init pipe" \
    "init model.pdb --pae pipe" "init model.pdb --map pipe -r 5" \
    "map cc model.pdb --map pipe -r 5" "summary pipe" \
    "export out --weights pipe"; do
    # shellcheck disable=SC2086
    expect "a named pipe: $words" 66 "pipe' is a named pipe" \
        timeout -k 1 20 "$program" $words
done
expect "a pipe of the shell" 0 "" sh -c 'cat good.dat | "$0" profile model.pdb \
    --bodies one --device reference --data /dev/stdin' "$program"

# ---- device and output ----
expect "no OpenCL device" 74 "pocl-opencl-icd" env OCL_ICD_VENDORS=/dev/null/x \
    "$program" run good.yaml --output new --device auto
# Root can write in any folder but below /dev/null; another driver needs none.
no_cache() {
    env -u XDG_CACHE_HOME POCL_CACHE_DIR=/dev/null/x HOME=/dev/null/x \
        "$program" "$@"
}
if [ -n "$has_device" ] && ! no_cache devices --no-test >out.txt 2>&1; then
    expect "PoCL without a cache folder" 74 \
        "in '/dev/null/x': Not a directory; .*POCL_CACHE_DIR" \
        no_cache run good.yaml --device auto --output new
    # a disk with no more room, as far as a process can make one of its own
    expect "PoCL with a full disk" 74 \
        "needs 4 MiB .*'.': File too large; .*POCL_CACHE_DIR" \
        sh -c 'ulimit -f 4000 && POCL_CACHE_DIR=kernels "$0" run good.yaml \
            --device auto --output new' "$program"
else
    echo "skip PoCL without a cache folder: it is not the one device"
fi
on_device expect "a device that is not there" 74 "quantum" \
    "$program" run good.yaml --output new --device quantum
on_device expect "the same device twice" 78 "device.use: '0,0' names device 0 .*twice" \
    "$program" run good.yaml --output new --device 0,0
on_device expect "one of a list that is not there" 74 "'quantum'; there are: 0: " \
    "$program" run good.yaml --output new --device 0,quantum
on_device expect "reference in a list" 78 "reference.*alone" \
    "$program" run good.yaml --output new --device 0,reference
expect "an output below a file" 74 "model.pdb" \
    "$program" run good.yaml --output model.pdb/run
check "nothing is left behind by what was refused" test ! -e new
expect "an input in the run's folder" 78 "contains a file 'model.pdb'.*--output" \
    "$program" run good.yaml --output .
check "stays as it was" cmp -s model.pdb before.pdb
check "and is alone" test ! -e config.yaml
expect "check says so, too" 0 "refuse.*'model.pdb'" \
    "$program" check good.yaml --set output.directory=.
mkdir dangling
ln -s nowhere dangling/run.log
expect "a link to nowhere in the run's folder" 78 "'run.log'" \
    "$program" run good.yaml --output dangling
echo mine >half/notes
expect "files that cannot be made" 74 "half/input.*/model.pdb" \
    small run good.yaml --prior-only --output half
check "take the others with them" test "$(ls half)" = notes
mkdir empty
expect "the same in an empty folder" 74 "empty/input.*/model.pdb" \
    small run good.yaml --prior-only --output empty
check "which was there before" test -d empty
expect "the same in a folder of its own" 74 "of/its/own/input.*/model.pdb" \
    small run good.yaml --prior-only --output empty/of/its/own
check "which was not" test ! -e empty/of
for i in 1 2 3 4; do
    "$program" run good.yaml --output race >/dev/null 2>race.$i &
done
wait
check "of runs into one folder one wins" \
    test "$(cat race.? | grep -c 'already contains a run')" -eq 3

# ---- interrupted ----
# begin NAME COMMAND...: a long run into stopped-NAME, $pid, with draws on the
# disk, where they come with each checkpoint.
begin() {
    into=stopped-$1
    shift
    background "$@" "$program" run good.yaml --output "$into" \
        --set sampler.draws=1000000 --set output.checkpoint_every=0 \
        --threads 1
    wait_until has_draws "$into"
}
interrupted() { # NAME STATUS
    check "$1: exit status 75" test "$2" -eq 75
    check "$1: says so" grep -q "interrupted.*of 1000000 draws" err.txt
    check "$1: the log, too" grep -q "error: interrupted" "$into/run.log"
    expect "$1: the trace can be read" 0 "" "$program" summary "$into"
}
# A shell cannot undo a SIGHUP that whoever started it ignores.
hang_up_is_ignored=
sh -c 'kill -HUP $$; exit 0' 2>/dev/null && hang_up_is_ignored=1
for signal in INT TERM HUP; do
    if [ $signal = HUP ] && [ -n "$hang_up_is_ignored" ]; then
        echo "skip SIGHUP: these tests run with it ignored"
        continue
    fi
    begin $signal env
    kill -$signal $pid
    ended 2>/dev/null
    interrupted SIG$signal $?
done
begin twice env
kill -TERM $pid
kill -INT $pid
kill -TERM $pid
ended 2>/dev/null
interrupted "two signals at once" $?
begin nohup nohup
kill -HUP $pid
sleep 0.5
check "nohup: goes on after SIGHUP" kill -0 $pid
kill -TERM $pid
ended 2>/dev/null
interrupted "nohup" $?
begin KILL env
kill -KILL $pid
ended 2>/dev/null
expect "SIGKILL: the trace can be read" 0 "" "$program" summary stopped-KILL
exit $bad
