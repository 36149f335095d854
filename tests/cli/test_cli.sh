#!/bin/sh
# The program as a user runs it: help, output, messages and exit status are right,
# every wrong input is refused by name, and nothing is left half-written.
. tests/cli/expect.sh

# Runs use the reference engine unless a device is tested: to open a device takes
# longer than they do.
has_device=1
tessera devices --no-test >out.txt 2>err.txt || has_device=

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
edit() { # SED WORD...: tessera with bad.yaml, a variant of good.yaml
    sed "$1; s/directory: out/directory: new/" good.yaml >bad.yaml
    shift
    tessera "$@"
}
small() { (ulimit -f "$blocks" && tessera "$@"); }
blocks=8 # of 512 or 1024 bytes a file
peptide="--set structure.file= --set structure.flexible=[] --set structure.sequence"

# ---- what works ----
cases <<'END'
no arguments | 64 Usage | "$program"
help goes to standard output | 0> Commands: | tessera --help
    help lists commands that are programs of their own | out ^  bench  *speed and accuracy of the engine
help of run names the sections, on a page | 0> ^  contrast  *excluded volume | tessera run --help
    of less than 60 lines | test "$(wc -l <out.txt)" -lt 60
help of a section shows live defaults and bounds | 0> ^  c1 +auto .* radius | tessera run --help contrast
    alone | no out draws|Options
help of the key data.saxs | 0> ^[a-z]*\.saxs  | tessera run --help data.saxs
help of the key moves.pivot | 0> ^[a-z]*\.pivot  | tessera check --help moves.pivot
help of the key pivot | 0> ^[a-z]*\.pivot  | tessera help run pivot
help of output.trajectory_every | 0> ^[a-z]*\.trajectory_every  | tessera simulate --help output.trajectory_every
$ mkdir data alone measured half empty dangling "a folder" "a folder/in it"
help of a key, beside a folder of that name | 0> ^data | tessera run --help data
help before a configuration | 0 | tessera run --help other.yaml
help of all keys shows units | 0> auto  *draws per chain | tessera run --help all
help of no key | 64 no key 'contrst'; did you mean 'contrast' | tessera run --help contrst
a key of no section | 64 did you mean 'c1_range' | tessera check --help contrast.c1_rang
version | 0> ^tessera [0-9.]+( \([^)]+\))?$ | tessera --version
    and what it was built with | out ^built with .*hdf5 [0-9]
unknown command | 64 did you mean 'run' | tessera runn good.yaml
unknown option | 64 output | tessera run good.yaml --ouput x

# ---- commands that are programs of their own ----
help of one | 0 | tessera train --help
$ cp out.txt train.txt; cp "$program" alone; ln -s nowhere dangling/run.log
    by its name | tessera help train | cmp -s - train.txt
    or as itself | "$build/tessera-train" --help | cmp -s - train.txt
one misused | 64 ^tessera bench: option '--engine': value 'x' | tessera bench --engine x
one that is not there | 66 'tessera-bench' is neither in the folder of tessera nor in | alone/tessera bench --help
found in PATH | 0 | env PATH="$build:$PATH" alone/tessera bench --help

# ---- simulate ----
simulate prints the true Rg | 0> ^Rg | tessera simulate good.yaml --output good.dat
    and writes the structure | test -s good.pdb
simulate replaces its own | 0 | tessera simulate good.yaml --output good.dat
$ cp good.yaml model.yaml; cp model.pdb before.pdb; cp model.pdb good.dat "a folder"
$ echo "0.01 1 0.1" >measured/good.dat; echo "HEADER" >measured/mine.pdb
simulate with the input's name | 64 model.pdb' would replace the input.*--output | tessera simulate model.yaml
    leaves the input, and writes nothing | cmp -s model.pdb before.pdb && test ! -e model.dat
simulate onto a measured curve | 64 not from tessera simulate.*--output | \
        tessera simulate good.yaml --output measured/good.dat
    leaves the curve | test "$(cat measured/good.dat)" = "0.01 1 0.1"
simulate onto a structure | 64 mine.pdb' exists and is not | tessera simulate good.yaml --output measured/mine.dat
simulate into one file | 64 name the curve .dat | tessera simulate good.yaml --output measured/new.pdb
a structure that cannot be written | 74 half/new | small simulate good.yaml --output half/new.dat
a curve that cannot be written | 74 half/new | small simulate good.yaml --output half/new.dat \
        $peptide=MKTAYIAKQR --set simulate.points=5000
    both leave nothing | test -z "$(ls half)"

# ---- check and run ----
$ awk '/^data:/ {print "data:"; for (i = 0; i < 300; i++) print "  - {file: good.dat}"; next} 1' \
        good.yaml >often.yaml
check | 0 free torsions | tessera check good.yaml
a file three hundred times | 0 data.0 and data.299 are the same file | tessera check often.yaml
    is named once an entry | test "$(grep -c 'same file' err.txt)" -eq 299
$ cp out.txt resolved.yaml
the resolved config is a config | 0 | tessera check resolved.yaml
    and resolves to itself | cmp -s out.txt resolved.yaml
dry run | 0 | tessera run good.yaml --dry-run
    a dry run writes nothing | test ! -e out
run | 0 engine: | tessera run good.yaml
    six draws have not converged | err not converged .*to continue: tessera resume [^ ]* --draws [0-9]*
    kernel options are for --verbose | no err -DTILE
    nor does the log hide it | in out/run.log warning: not converged
    run ends with a table, with convergence | out posterior && out R-hat +(inf|[0-9.]+) \(
    run writes its files | test -s out/config.yaml -a -s out/model.pdb -a -s out/run.log -a -s out/trace.h5
a run without warm-up | 0 not converged.*resume cold --draws | \
        tessera run good.yaml --output cold --set sampler.warmup=0
a folder that holds a run | 78 out.*already contains a run.*--output | tessera run good.yaml
the run's own config runs again | 0 | tessera run out/config.yaml --output again
summary has Rg and chi2 | 0> chi2 | tessera summary out
summary --json | 0 | tessera summary out --json
    is JSON | json 'ess_bulk' in d.rg
$ tr -d '\r' <good.yaml | sed "s/\$/$(printf '\r')/" >crlf.yaml
$ sed 's/directory: out/directory: "süd ost"/; s|good.dat|in it/../good.dat|' good.yaml >"a folder/my config.yaml"
$ sed 's/{file: good.dat}/{file: good.dat}, good.dat/' good.yaml >twice.yaml; sed '/^data/d' good.yaml >nodata.yaml
line ends of Windows | 0 | tessera check crlf.yaml
blanks and umlauts in paths | 0 /a folder/good.dat: 60 points | tessera run "a folder/my config.yaml"
    a path is relative to the config | test -s "a folder/süd ost/trace.h5"
a curve given twice | 0 data.0 and data.1 are the same | tessera check twice.yaml
no data is said | 0 samples the prior | tessera check nodata.yaml
prior only | 0 samples the prior | tessera run good.yaml --prior-only --output prior
its config.yaml says so | 0 samples the prior | tessera check prior/config.yaml
a peptide MKT | 0 | tessera run nodata.yaml --output MKT $peptide=MKT --set data.0.file=good.dat
a peptide GGG | 0 | tessera run nodata.yaml --output GGG $peptide=GGG --set data.0.file=good.dat
two states | 0 temperatures 1 [0-9.]+ 20; exchanged | \
        tessera run good.yaml --output states --set structure.states=2 --set sampler.temperatures=3
states of one weight | 0 | tessera run good.yaml --output equal --set structure.states=2 --set structure.weights=equal
summary of two states | 0 | tessera summary states --json
    a radius and a weight each | json d.rg_1.mean <= d.rg_2.mean and d.rg.mean and d.chi2.mean \
        and abs(d.weight_1.mean + d.weight_2.mean - 1.0) < 1e-9 and 'rg_3' not in d
summary of states of one weight, which is not told | 0> rg_2 | tessera summary equal --json
    without weights | no out weight_
the plan of many systems counts them | 0> ^systems: 30, of 2 chains x 5 temperatures x 3 states | \
        tessera run good.yaml --dry-run --output new --set structure.states=3 --set sampler.temperatures=5
the plan without data | 0 | tessera run good.yaml --prior-only --dry-run --output new
    has no systems | no out ^systems
reference engine | 0 engine: reference | \
        tessera run good.yaml --output reference --set sampler.warmup=4 --set sampler.draws=3
END

# ---- devices ----
# PoCL shows the processor as two devices on demand, alike or not.
two() { kinds=$1; shift; POCL_DEVICES=$kinds tessera "$@"; }
numbers() { tessera summary "$1" --json | sed '/^ *"verdict"/,$d' >"$1.json"; } # without seconds
few="--set sampler.warmup=4 --set sampler.draws=3"
if [ -z "$has_device" ]; then
    echo "skip devices: no device"
else
    cases <<'END'
run on a device | 0 engine: page-tile | tessera run good.yaml --device auto --output device
the plan of a device has the memory | 0> ^memory: .* bytes per system, 30 systems of  | tessera run good.yaml \
        --dry-run --device auto --output new --set structure.states=3 --set sampler.temperatures=5
all devices | 0 engine: | tessera run good.yaml --device all --output all $few
devices are tested | 0> self-test passed | tessera devices
devices --json | 0 | tessera devices --json
    is JSON | json d.devices[0].name
bench --json | 0 | tessera bench --quick --json
    rows | json d.device and len(d.rows) == 20 and all(r.wall_us_per_profile > r.bound_us_per_profile / 2 > 0 \
        for r in d.rows)
    errors | json [r.max_rel_error < 1e-5 for r in d.rows if r.batch == 1] == [True] * 10
bench --map | 0 | tessera bench --map --quick --json
    builds once | json [r.build_ms > 0 for c in ('cold', 'resident') for r in d.rows if r.case == c] == [True, False]
    is right | json [r.error_of_cc < 1e-6 for r in d.rows if r.case == 'resident'] == [True]
    what follows each other is no longer than the whole | json all(r.place_ms > 0 and r.kernels_ms > 0 \
        and r.place_ms + r.queue_ms <= r.wall_ms and max(r.kernels_ms, r.read_ms) <= r.wall_ms for r in d.rows)
a device that is not there | 74 quantum | tessera run good.yaml --output new --device quantum
the same device twice | 78 device.use: '0,0' names device 0 .*twice | \
        tessera run good.yaml --output new --device 0,0
one of a list that is not there | 74 'quantum'; devices: 0:  | \
        tessera run good.yaml --output new --device 0,quantum
reference in a list | 78 reference cannot be combined | tessera run good.yaml --output new --device 0,reference
devices that do not go together | 78 bad.yaml:7:15: device.use:  | \
        edit 's/use: reference/use: "reference,0"/' run bad.yaml
END
fi
if [ "$(two "pthread pthread" devices --no-test | grep -c compute)" -eq 2 ]; then
    cases <<'END'
one of two alike devices | 0 | two "pthread pthread" run good.yaml --device 0 --output alike-0
alike devices share equally | 0 engine: chain 0:  | two "pthread pthread" run good.yaml --device 0,1 --output alike-0,1
    chain 1, too, and no warning | err chain 1:  && no err not alike
$ numbers alike-0; numbers alike-0,1
    nor do they change a number | cmp -s alike-0.json alike-0,1.json && in alike-0.json rhat
the plan has the division | 0 2 threads instead of 1 | two "pthread pthread" run good.yaml --output new --dry-run \
        --device all --threads 1 --set sampler.chains=5
    a line a device, with all chains | out ^engine: chains 0 to 2:  && out ^engine: chains 3 to 4:
more devices than chains | 0 not used: there are fewer chains | \
        two "pthread pthread" run good.yaml --output new --dry-run --device all --set sampler.chains=1
devices that are not alike | 0 engine: chain 1: | \
        two "pthread basic" run good.yaml --device 0,1 --output unlike
    as the trace says | in unlike/trace.h5 ^chain 1:
END
else
    echo "skip several devices: no PoCL that shows two"
fi

# ---- structures ----
grep -v "CA  ... A  45" model.pdb >gap.pdb
grep -v " [NC]   ... A  45\| O   ... A  45\|CA  ... A  45" model.pdb >bare.pdb
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
cif() { # BY: the model in mmCIF, moved, of chain AA
    printf "data_AA\nloop_\n"
    for item in group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id \
        label_entity_id label_seq_id pdbx_PDB_ins_code Cartn_x Cartn_y Cartn_z occupancy \
        B_iso_or_equiv auth_seq_id auth_asym_id pdbx_PDB_model_num; do
        echo "_atom_site.$item"
    done
    awk -v by="$1" '/^ATOM/ {printf "ATOM %s %s %s . %s A 1 %s ? %s %s %s 1.0 0 %s AA 1\n",
        $2, substr($3, 1, 1), $3, $4, $6, $7 + by, $8, $9, $6}' model.pdb
}
cif 0 >aa.cif
cif 20000 >far.cif
sed 's/A:51/AA:51/; s/model.pdb/aa.cif/; /^data/d; s/directory: out/directory: aa/' good.yaml >aa.yaml
sed 's/aa.cif/far.cif/; s/directory: aa/directory: new/' aa.yaml >far.yaml
cases <<'END'
a residue without CA | 0 gap.pdb.*A:45 .no CA.; complete | edit 's/model.pdb/gap.pdb/' check bad.yaml
a residue without backbone | 0 bare.pdb.*A:45 .no N.; complete | edit 's/model.pdb/bare.pdb/' check bad.yaml
ligands and nucleotides | 0 warning: .*left out: ligands 1, nucleotides 1, models after the first 1 | \
        edit 's/model.pdb/mixed.pdb/; /^data/d' check bad.yaml
    are named once | test "$(grep -c 'left out' err.txt)" -eq 1
a chain id of two letters | 0 chain AA is chain A in PDB | tessera run aa.yaml
    is one in model.pdb | in aa/model.pdb ^ATOM.* A  51
simulate with it | 0 | tessera simulate aa.yaml --output aa.dat
check: far from the origin | 65 origin | tessera check far.yaml
run --dry-run: far from the origin | 65 origin | tessera run --dry-run far.yaml
run: far from the origin | 65 origin | tessera run far.yaml
END

# ---- configuration ----
printf 'structure:\n  sequence: MKB\n' >letter.yaml
printf 'structure: {sequence: MKT}\nmoves: {pivot: 0, crankshaft: 0, side_chain: 0, regrow: 0}\n' >moves.yaml
sed 's/^output/# &/; $a output: {directory: out}' good.yaml >folder.yaml
printf 'frobnicate: 1\n' >key.yaml
printf '{}\n' >empty.yaml
new="run good.yaml --output new --set"
cases <<'END'
misspelt key | 78 bad.yaml:3:.*chain.*did you mean.*chains | edit 's/chains/chain/' run bad.yaml
out of range | 78 bad.yaml:3:.*chains.*'?0'?.*1 | edit 's/chains: 2/chains: 0/' run bad.yaml
not a number | 78 bad.yaml:3:.*chains.*two | edit 's/chains: 2/chains: two/' run bad.yaml
unknown key | 78 key.yaml:1:1.*frobnicate | tessera run key.yaml
a chain that is not there | 78 'B' | edit 's/A:51-64/B:1-9/' run bad.yaml
a range of --set that is wrong names that | 78 --set structure.flexible=.*structure.flexible.0: .*A:500 | \
        tessera $new 'structure.flexible=["A:500-600"]'
a seed that a double cannot hold | 78 seed.*9007199254740993.*range | \
        tessera check good.yaml --set seed=9007199254740993
the largest seed is itself | 0> seed: 9007199254740992 | tessera check good.yaml --set seed=9007199254740992
half a thread | 78 --set device.threads=1.5: device.threads.*1.5.*whole | tessera $new device.threads=1.5
half a temperature | 78 sampler.temperatures.*2.5.*whole | tessera $new sampler.temperatures=2.5
part of a draw | 78 sampler.draws: 2.5 is not a whole number | tessera $new sampler.draws=2.5
its place in the file | 78 bad.yaml:1:.*structure.states.*40.*32 | edit '1s/file:/states: 40, file:/' check bad.yaml
an output without a name | 64 output is empty | tessera run good.yaml --output ""
file and sequence | 78 bad.yaml:1:12: .*not both | edit 's/\]}$/], sequence: MKT}/' run bad.yaml
d_max too small, found after the file was read | 78 bad.yaml:1:60: structure.d_max: 20 | \
        edit 's/51-64"\]/&, d_max: 20/' run bad.yaml
data without a file | 78 bad.yaml:2:8: data.0: .*'file' is missing | \
        edit 's/{file: good.dat}/{background: 0}/' run bad.yaml
an unknown letter | 78 letter.yaml:2:13: structure.sequence: .*'B' | tessera check letter.yaml
no moves | 78 moves.yaml:2:8: moves: no move | tessera run moves.yaml --output new
a folder of a run in the file | 78 folder.yaml:[678]:21: output.directory:  | tessera run folder.yaml
a key that is not there has no place | 78 empty.yaml: structure: give | tessera run empty.yaml
--set of an unknown key | 78 sampler.drws | tessera $new sampler.drws=3
--set without = | 64 KEY=VALUE|= | tessera $new sampler.draws
END
while read -r key range values; do
    for value in $values; do
        expect "$key=$value is refused" 78 "--set $key=$value: .*'$key'.*'$value'.*$(echo "$range" | tr _ ' ')" \
            tessera $new "$key=$value"
    done
done <<'END'
structure.states integer_in_\[1,_32\] 0 33 1.5
structure.weights one_of_infer,_equal some
sampler.temperatures number_in_\[1,_64\],_or_auto 0 65 hot
sampler.t_max number_in_\[1.001,_ 1 hot
sampler.swap_every integer_in_\[1,_ 0
sampler.anneal number_in_\[0,_0.9\] 0.95 -0.1
END

# ---- curves ----
awk '!/^#/ {print $1, $2}' good.dat >two.dat
sed '20s/ [^ ]*$/ nan/' good.dat >nan.dat
sed '20s/^[^ ]*/nan/' good.dat >nan_q.dat
awk '/^#/ {print; next} {line[++n] = $0} END {for (i = 1; i <= n; i++)
    print line[i == 9 ? 12 : i == 12 ? 9 : i]}' good.dat >unsorted.dat
awk '/^#/ {next} {printf "%.6f %s %s\n", 10 * $1, $2, $3}' good.dat >nm.dat
of() { # FILE WORD...: a run of another curve
    curve=$1
    shift
    tessera run good.yaml --set "data.0.file=$curve" "$@"
}
for power in 45 -45 200 -200; do
    awk -v e=e$power '/^#/ {print; next} {print $1, $2 e, $3 e}' good.dat >power$power.dat
done
mkfifo pipe # which would keep the program waiting for a writer
cases <<'END'
two columns | 0 two.dat.*sigma | of two.dat --output two
    the log has it, the trace, too | in two/run.log sigma is stated && in two/trace.h5 stated: 0.03 I\(q\)
NaN | 0 nan.dat: 1 rows dropped, .*not a number | tessera check good.yaml --set data.0.file=nan.dat
q that is NaN | 65 nan_q.dat.*line 20: q = nan is not a finite | of nan_q.dat --output new
unsorted | 65 unsorted.dat.*(sort|ascend|order) | of unsorted.dat --output new
1/nm by q_max | 0 1/nm | of nm.dat --output nm
    the log has the unit of q, the trace, too | in nm/run.log nm.dat: q in 1/nm \(q_max > 1\) \
        && in nm/trace.h5 1/nm \(q_max > 1\)
1/nm named wrongly | 78 1/nm | of nm.dat --output new --set data.0.q_unit=1/mm
intensities times 1e45 | 0 | of power45.dat --output power45
intensities times 1e-45 | 0 | of power-45.dat --output power-45
intensities times 1e200 | 65 | of power200.dat --output new
intensities times 1e-200 | 65 | of power-200.dat --output new
a pipe of the shell | 0 | sh -c 'cat good.dat | tessera profile model.pdb --bodies one --device reference \
        --data /dev/stdin'
END
while read -r words; do
    # shellcheck disable=SC2086
    expect "a named pipe: $words" 66 "pipe' is a named pipe" timeout -k 1 20 tessera $words
done <<'END'
run good.yaml --output new --set structure.form_factors=pipe
run good.yaml --output new --set data.0.resolution.beam_profile=pipe
init model.pdb --pae pipe
init model.pdb --map pipe -r 5
summary pipe
END

# ---- device and output ----
# Root can write in any folder but below /dev/null; another driver needs none.
no_cache() { env -u XDG_CACHE_HOME POCL_CACHE_DIR=/dev/null/x HOME=/dev/null/x tessera "$@"; }
if [ -n "$has_device" ] && ! no_cache devices --no-test >out.txt 2>&1; then
    cases <<'END'
PoCL without a cache folder | 74 in '/dev/null/x': Not a directory; .*POCL_CACHE_DIR | \
        no_cache run good.yaml --device auto --output new
# a disk with no more room, as far as a process can make one of its own
PoCL with a full disk | 74 needs 4 MiB .*'.': File too large; .*POCL_CACHE_DIR | \
        sh -c 'ulimit -f 4000 && POCL_CACHE_DIR=kernels tessera run good.yaml --device auto --output new'
END
else
    echo "skip PoCL without a cache folder: it is not the one device"
fi
cases <<'END'
no OpenCL device, but one is named | 74 pocl-opencl-icd | \
        env OCL_ICD_VENDORS=/dev/null/x tessera run good.yaml --output new --device cpu
no OpenCL driver | 0 pocl-opencl-icd.* uses reference | \
        env OCL_ICD_VENDORS=/dev/null/x tessera run good.yaml --output plain --device auto
an output below a file | 74 model.pdb | tessera run good.yaml --output model.pdb/run
    nothing is left behind by what was refused | test ! -e new
an input in the run's folder | 78 contains a file 'model.pdb'.*--output | tessera run good.yaml --output .
    stays as it was, and is alone | cmp -s model.pdb before.pdb && test ! -e config.yaml
check says so, too | 0 would fail.*'model.pdb' | tessera check good.yaml --set output.directory=.
a link to nowhere in the run's folder | 78 'run.log' | tessera run good.yaml --output dangling
$ echo mine >half/notes
files that cannot be made | 74 half/input.*/model.pdb | small run good.yaml --prior-only --output half
    take the others with them | test "$(ls half)" = notes
the same in an empty folder | 74 empty/input.*/model.pdb | small run good.yaml --prior-only --output empty
    which was there before | test -d empty
the same in a folder of its own | 74 of/its/own/input.*/model.pdb | \
        small run good.yaml --prior-only --output empty/of/its/own
    which was not | test ! -e empty/of
END
for i in 1 2 3 4; do
    tessera run good.yaml --output race >/dev/null 2>race.$i &
done
wait
check "of runs into one folder one wins" \
    test "$(cat race.? | grep -c 'already contains a run')" -eq 3

# ---- interrupted ----
# begin NAME COMMAND...: a long run into stopped-NAME, $pid, with draws on the
# disk, which come with each checkpoint.
begin() {
    into=stopped-$1
    shift
    background "$@" "$program" run good.yaml --output "$into" \
        --set sampler.draws=1000000 --set output.checkpoint_every=0 --threads 1
    wait_until has_draws "$into"
}
interrupted() { # NAME STATUS
    stopped=$1 status=$2
    cases <<'END'
    ${stopped}: exit status 75, in words, also in the log | test "$status" -eq 75 \
        && err interrupted.*of 1000000 draws && in $into/run.log error: interrupted
${stopped}: the trace can be read | 0 | tessera summary "$into"
END
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
expect "SIGKILL: the trace can be read" 0 "" tessera summary stopped-KILL
exit $bad
