#!/bin/sh
# Runs that stop and go on: kills, signals, full disks, damaged and foreign
# files, two processes on one folder. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh
needs_venv "resumed runs"
tests=$source/tests/cli

short_model model.pdb
mkdir starts
cp model.pdb starts
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], starts: [starts/model.pdb]}
data: [{file: good.dat, noise: {model: student}}]
sampler: {chains: 2, warmup: 100, draws: 60, thin: 5, temperatures: 2}
output: {directory: whole, trajectory_every: 3}
device: {use: reference, threads: 2}
simulate: {points: 30, q_range: [0.01, 0.15], steps: 50}
contrast: {c2: 0}
END
expect "simulate" 0 "" "$program" simulate good.yaml --output good.dat
expect "a run" 0 "" "$program" run good.yaml
for file in input/model.pdb input/1-model.pdb input/good.dat checkpoint.h5 trajectory-000.h5 \
    trajectory-001.h5 run.lock; do
    check "it leaves $file" test -s whole/$file
done
check "no log of draws stays" test ! -e whole/draws.log

# ---- what cannot be resumed ----
expect "no such folder" 66 "no folder 'nowhere'" "$program" resume nowhere
mkdir empty
expect "an empty folder" 66 "not the folder of a run" "$program" resume empty
expect "a finished run" 64 "finished.*--draws N" "$program" resume whole
expect "fewer draws" 64 "has [0-9]+ already" \
    "$program" resume whole --draws 5
expect "fewer than behind the checkpoint" 64 "has 60 already" \
    "$program" resume whole --draws 59
expect "draws without sense" 64 "draws" "$program" resume whole --draws zero
expect "two folders" 64 "" "$program" resume whole empty
expect "help" 0 "" "$program" resume --help
check "names its options" grep -q -e "--draws N" out.txt

# ---- extended ----
expect "extended" 0 "resumed from the checkpoint" \
    "$program" resume whole --draws 100 --threads 1
expect "as long from the start" 0 "" "$program" run good.yaml --output long \
    --set sampler.draws=100
same "extended: the same draws" whole long
check "its config says so" grep -q "draws: 100" whole/config.yaml
expect "and is a config" 0 "" "$program" check whole/config.yaml

# ---- the model's own error is learnt again ----
atoms=$shared/saxs/lysozyme_6lyz
if [ -f "$atoms/exp.dat" ]; then
    cat >atoms.yaml <<END
structure: {file: $atoms/model.pdb, flexible: ["A:119-129"]}
data: [{file: $atoms/exp.dat, q_range: [0, 0.2]}]
contrast: {c2: infer}
model_error: {conformations: 6}
sampler: {chains: 2, warmup: 6, draws: 16, thin: 2, temperatures: 1}
device: {use: reference, threads: 2}
END
    expect "corrected curves" 0 "6 conformations.*integrated out" \
        "$program" run atoms.yaml --output atoms-whole
    expect "fewer draws of them" 0 "" \
        "$program" run atoms.yaml --output atoms --set sampler.draws=7
    expect "and more" 0 "6 conformations.*integrated out" \
        "$program" resume atoms --draws 16
    same "corrected curves: the same draws" atoms-whole atoms
    expect "a trace to be weighed" 0 "" "$program" reweight atoms
    check "it gives its likelihood back" grep -q "all weights are equal" out.txt
    expect "as the bodies are" 0 "model_error is none" "$program" run \
        atoms.yaml --output bodies --set model_error=none
    check "another likelihood" sh -c "! cmp -s atoms/trace.h5 bodies/trace.h5"
else
    echo "skip the model's own error: no ../shared/data/saxs"
fi

# ---- stopped by signals ----
# begin DIR OPTION...: a run into DIR, $pid, with draws on the disk. Without
# checkpoints that are due it takes two seconds until the first is there.
often=output.checkpoint_every=0
begin() {
    into=$1
    shift
    background "$program" run good.yaml --output "$into" \
        --set sampler.draws=1000000 --threads 1 "$@"
    wait_until has_draws "$into"
}
begin stopped
expect "status of a run that goes on" 0 "" "$program" status stopped
check "says that it runs" grep -q "state *running on .*process $pid" out.txt
expect "another on the same folder" 78 "process $pid" "$program" resume stopped
before=$(stat -c %Y.%i stopped/checkpoint.h5)
kill -USR1 $pid
has_another() { [ "$before" != "$(stat -c %Y.%i stopped/checkpoint.h5)" ]; }
wait_until has_another
check "SIGUSR1 makes a checkpoint" has_another
check "and the run goes on" kill -0 $pid
kill -TERM $pid
ended
check "SIGTERM: exit status 75" test $? -eq 75
check "says how to go on" grep -q "tessera resume stopped" err.txt
expect "status of it" 0 "" "$program" status stopped
check "says interrupted" grep -q "state *interrupted" out.txt
check "and how to go on" grep -q "to go on *tessera resume stopped" out.txt
expect "status in JSON" 0 "" "$program" status stopped --json
check "is JSON" "$python" -c '
import json, sys
s = json.load(open("out.txt"))
assert s["state"] == "interrupted" and s["chains"] == 2, s
assert 0 <= s["checkpoint"]["draws"] <= s["draws"]["done"] < 1000000, s
assert s["steps_per_second"] > 0 and s["seconds_left"] > 0, s
assert 0 < s["acceptance_rate"] < 1 and s["chi2"] > 0, s'
stored=$("$python" -c '
import json; print(json.load(open("out.txt"))["draws"]["done"])')

begin "let's; quit" --set $often
kill -QUIT $pid
ended
check "SIGQUIT: exit status 75" test $? -eq 75
typed="tessera resume 'let'\\''s; quit'"
check "says how to go on, as a shell takes it" grep -qF "go on: $typed" err.txt
expect "so does status" 0 "" "$program" status "let's; quit"
check "in the same words" grep -qF "to go on    $typed" out.txt
expect "a soft limit on processor time" 75 "tessera resume limited" \
    sh -c 'ulimit -S -t 1 && exec "$0" run good.yaml --output limited \
        --set sampler.draws=1000000' "$program"
if "$program" devices --no-test 2>&1 | grep -q "^.*(CPU)"; then
    ulimit -c 0
    begin aborted --device cpu --set $often
    kill -ABRT $pid
    ended 2>/dev/null
    check "SIGABRT kills, also where PoCL's LLVM has a handler" test $? -eq 134
else
    echo "skip SIGABRT under PoCL: no CPU as device"
fi

# Before the first step every replica's curve is computed: ten seconds of a
# processor. How many were is told; time depends on the machine.
background "$program" run good.yaml --output early \
    --set sampler.chains=1024 --set structure.file="$demo/two_domain.pdb" \
    --set structure.starts=[] --set sampler.temperatures=8 \
    --set sampler.t_max=5
wait_until grep -q "^grid" err.txt
kill -USR1 $pid
kill -TERM $pid
ended
check "stopped before the first step: exit status 75" test $? -eq 75
begun=$(sed -n 's/.*interrupted after \([0-9]*\) of 8192 replicas.*/\1/p' err.txt)
check "with few replicas begun" test "${begun:-8192}" -lt 4096
check "says that there is nothing to go on with" grep -q "start the run again" err.txt
check "and leaves nothing" test ! -e early

begin killed --set $often
kill -KILL $pid
wait $pid 2>/dev/null
check "its last draws are in the log" test -s killed/draws.log
"$program" status killed --json >killed.json
"$program" summary killed >/dev/null 2>&1
check "a command that reads it puts them into the trace" "$python" -c '
import h5py, json
n = h5py.File("killed/trace.h5")["posterior/rg"].shape[1]
assert n == json.load(open("killed.json"))["draws"]["done"] > 0, n'
"$python" "$tests/open_run.py" stopped killed

cp -r long extended
background "$program" resume extended --draws 1000000
wait_until grep -q resumed err.txt
sleep 0.2
kill -TERM $pid
ended
check "an extension that is stopped" test $? -eq 75
expect "status of it" 0 "" "$program" status extended
check "is not finished" grep -q "state *interrupted" out.txt

# ---- moved, and taken up under another name ----
mkdir elsewhere
mv stopped elsewhere/moved
mv model.pdb starts good.dat elsewhere
expect "moved, without the originals" 0 "resumed" \
    "$program" resume elsewhere/moved --draws $((stored + 20))
mv elsewhere/model.pdb elsewhere/starts elsewhere/good.dat .
expect "as long without a stop" 0 "" "$program" run good.yaml --output straight \
    --set sampler.draws=$((stored + 20))
same "moved: the same draws" elsewhere/moved straight

# ---- a trace that is too short, input and config that changed ----
copy() { rm -rf hurt && cp -r long hurt; }
copy
cp hurt/config.yaml kept.yaml
sed -i 's/trajectory_every: .*/trajectory_every: 7/' hurt/config.yaml
expect "another stride of the trajectories" 65 \
    "config.yaml differs from that.*trajectory_every: 7" \
    "$program" resume hurt --draws 110
cp kept.yaml hurt/config.yaml
sed -i 's/^seed: 1/seed: 2/' hurt/config.yaml
expect "another seed" 65 "config.yaml differs from that.*seed: 2" \
    "$program" resume hurt --draws 110
copy
sed -i 's/^\(ATOM.* CA .*\) 0.00$/\1 0.00/; s/  1.000  1.00/  1.001  1.00/' \
    hurt/input/model.pdb
awk '/^ATOM/ && !n++ {sub(/ [0-9.-]+ /, " 9.999 ")} {print}' \
    hurt/input/good.dat >/dev/null
awk '!/^#/ && NF == 3 && !n++ {$2 = $2 * 1.01} {print}' hurt/input/good.dat \
    >changed.dat && mv changed.dat hurt/input/good.dat
expect "other data" 65 "the data: not what the checkpoint was made with" \
    "$program" resume hurt --draws 110
copy
expect "another run with its own seed" 0 "" "$program" run good.yaml \
    --output other --set seed=2 --set sampler.draws=100
cp other/trace.h5 hurt
expect "its trace" 65 "trace.h5.*config.yaml differs from that.*seed: 1" \
    "$program" resume hurt --draws 110
copy
truncate -s 3000 hurt/checkpoint.h5
expect "status with a damaged checkpoint" 0 "" "$program" status hurt
check "says so" grep -q "checkpoint.h5" out.txt
expect "a damaged checkpoint" 0 "checkpoint.h5.*" \
    "$program" resume hurt --draws 110
expect "as long from the start" 0 "" "$program" run good.yaml --output longer \
    --set sampler.draws=110
same "a damaged checkpoint: the one before does" hurt longer
check "the damaged one is put aside" test -s hurt/checkpoint.h5.damaged

# ---- no room ----
# Files may grow to so many blocks of 512 bytes.
room() {
    blocks=$1
    shift
    sh -c "ulimit -f $blocks; exec \"\$@\"" sh "$program" "$@"
}
size=$(stat -c %s long/trace.h5)
expect "no room for the trace" 74 "trace.h5.*resume tight" \
    room $((size / 512 - 100)) run good.yaml --output tight \
    --set sampler.draws=160 --set output.checkpoint_every=0
expect "with room again" 0 "resumed" "$program" resume tight
expect "as long from the start" 0 "" "$program" run good.yaml --output roomy \
    --set sampler.draws=160
same "without room: the same draws" tight roomy
expect "until, asked later" 0 "converged by the criterion after 1[0-9][0-9] " \
    "$program" resume roomy --draws 500 --until "rhat<90,ess>1"
# ---- until converged, or no time is left ----
sed '/^sampler/d; /^data/d; s/51-64/57-60/' good.yaml >free.yaml
expect "without a number of draws" 0 "converged by the criterion after" \
    "$program" run free.yaml --output free --set sampler.warmup=300
check "the run says what it goes on to" \
    grep -q "until: .*rhat<1.01,ess>400" free/config.yaml
expect "in half a second" 1 "not converged as asked.*resume hasty --draws [0-9]+00" \
    "$program" run good.yaml --output hasty --set sampler.draws=auto \
    --set sampler.time_limit=0.5
check "is finished" sh -c '"$0" status hasty | grep -q "state *finished"' "$program"
expect "summary of it" 0 "" "$program" summary hasty
check "does not say that draws are missing" sh -c '! grep -q "not finished" err.txt'
n=$("$program" status hasty --json | "$python" -c '
import json, sys; print(json.load(sys.stdin)["draws"]["done"] + 20)')
expect "and goes on when it is told to" 1 "not converged as asked" \
    "$program" resume hasty --draws $n
check "to the end" sh -c '"$0" status hasty | grep -q "sampling *$1 draws per chain ($1 at most)"' \
    "$program" "$n"
begin bounded --set $often --set sampler.draws=auto --set sampler.time_limit=3000
kill -TERM $pid
ended
expect "status of a run with a limit of time" 0 "" "$program" status bounded --json
check "the time left is no more than that" "$python" -c '
import json; s = json.load(open("out.txt"))["seconds_left"]; assert 0 < s < 3000, s'
if is_sanitized; then
    echo "skip a clock that was set back: a sanitizer bears no library before it"
else
    expect "status by a clock that was set back" 0 "" env TSR_FAULT_CLOCK=-3000000 \
        LD_PRELOAD="$build/tests/support/fault.so" "$program" status bounded
    check "tells no age" grep -q "checkpoint  .*+00:00, by a clock ahead of this one: " \
        out.txt
    expect "and by one that was set forward" 0 "" env TSR_FAULT_CLOCK=3000000 \
        LD_PRELOAD="$build/tests/support/fault.so" "$program" status bounded
    check "tells it" grep -q "checkpoint  .*+00:00, 3000... s ago: " out.txt
fi
# The line on a terminal and status tell the same time: the end of the limit.
cat >line.py <<END
import os, pty, re, subprocess, sys, time
program, *words = sys.argv[1:]
pid, line = pty.fork()
if pid == 0:
    os.execv(program, [program, "run", *words])
text, told = b"", []
while len(told) < 3:
    text += os.read(line, 4096)
    shown = re.findall(rb"\| (?:at most )?(\d+):(\d+):(\d+) left", text)
    if not shown or b"sampling" not in text:
        continue
    out = subprocess.run([program, "status", words[-1]], capture_output=True).stdout
    left = re.findall(rb"time left +(?:at most )?(\d+):(\d+):(\d+)", out)
    if left:
        told.append([int(h) * 3600 + int(m) * 60 + int(s)
                     for h, m, s in (shown[-1], left[0])])
    text = b"sampling"
os.kill(pid, 15)
try:
    while os.read(line, 4096):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
print(told)
assert all(250 < a <= 300 and abs(a - b) < 10 for a, b in told), told
END
expect "the progress line knows the limit, and as status does" 0 "" "$python" line.py \
    "$program" good.yaml --threads 1 --set sampler.draws=1000000 \
    --set sampler.time_limit=300 --set $often --output timed
# The time of warm-up is not that of a few draws, which would be five minutes.
expect "in no time" 1 "rushed --draws [0-9]+00   \(about (a minute|2 minutes)\)" \
    "$program" run good.yaml --output rushed --set sampler.draws=auto \
    --set sampler.warmup=2000 --set sampler.time_limit=1e-9
check "one number of draws is proposed" sh -c '! grep -q "sampler.draws=" err.txt'
begin gone --set $often
rm -r gone
ended
check "a folder that was taken away: exit status 74" test $? -eq 74
check "says so" grep -q "gone" err.txt
# pause DIR: stops the run while it writes no file anew.
pause() {
    while kill -STOP $pid && ls "$1" | grep -q '\.tmp$'; do
        kill -CONT $pid
        sleep 0.05
    done
}
begin removed --set $often
pause removed
rm removed/trace.h5
kill -TERM $pid
kill -CONT $pid
ended
check "only the trace that was taken away: exit status 74" test $? -eq 74
check "says which" grep -q "removed/trace.h5.*No such file" err.txt
begin cut --set $often
pause cut
dd if=/dev/null of=cut/trace.h5 bs=1 seek=3000 2>/dev/null
kill -TERM $pid
kill -CONT $pid
ended 2>/dev/null
check "a trace that was cut off meanwhile: exit status 74" test $? -eq 74
check "says which" grep -q "cannot write.*'cut/trace.h5'" err.txt

(ulimit -S -n 40 && exec "$program" run good.yaml --prior-only --output files \
    --set sampler.chains=60 --set sampler.warmup=10 --set sampler.draws=2) \
    >out.txt 2>err.txt
check "more chains than files that the shell allows" test $? -eq 0

# ---- the batch script, with a Slurm that only takes notes ----
mkdir bin
printf '#!/bin/sh\necho "$@" >>%s/requeued\n' "$work" >bin/scontrol
chmod +x bin/scontrol
batch() { # TASK
    export TESSERA=$program SLURM_JOB_ID=99 SLURM_CPUS_PER_TASK=2
    export SLURM_ARRAY_JOB_ID=90 SLURM_ARRAY_TASK_ID=$1
    PATH=$work/bin:$PATH exec bash "$source/configs/cluster/slurm.sh" good.yaml job \
        --set sampler.draws=100000 --set $often >job.txt 2>&1
}
batch 1 &
pid=$!
wait_until has_draws job-1
kill -TERM $pid
ended
check "a job that is told to stop: exit status 0" test $? -eq 0
check "goes back to the queue" grep -q "requeue 90_1" requeued
check "and is interrupted" grep -q "tessera resume job-1" job.txt
n=$("$program" status job-1 --json | "$python" -c '
import json, sys; print(json.load(sys.stdin)["draws"]["done"] + 100)')
sed -i "s/draws: 100000/draws: $n/" job-1/config.yaml
(batch 1)
check "once more, it ends" test $? -eq 0
check "where it was resumed" grep -q "resumed from the checkpoint" job.txt
check "with the seed of its task" grep -q "^seed: 1" job-1/config.yaml

mkdir own
cp good.yaml own/config.yaml
cp model.pdb good.dat own
short() { # CONFIG DIRECTORY
    TESSERA=$program bash "$source/configs/cluster/slurm.sh" "$@" \
        --set sampler.draws=2 >job.txt 2>&1
}
short own/config.yaml own
check "a folder that is no run's is refused" test $? -eq 78
check "and stays" cmp -s own/model.pdb model.pdb
mv job-1 job
rm -r job/checkpoint.h5*
short good.yaml job
check "a run without a checkpoint begins anew" test $? -eq 0
check "and is put aside" test -e "$(echo job.unused-*/trace.h5)"

# ---- killed again and again ----
# slow_soak.sh does it for long, and with faults of the file system; those of each
# file by itself are in property/test_durable.c, at the start in test_files.sh.
cat >soak.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], states: 2}
data: [{file: good.dat, noise: {model: student}}]
sampler: {chains: 2, warmup: 150, draws: 100, thin: 8, temperatures: 2}
output: {trajectory_every: 3, checkpoint_every: 0}
device: {use: reference, threads: 2}
contrast: {c2: 0}
END
if "$python" "$tests/soak.py" "$program" soak soak.yaml damage 2 >out.txt 2>&1; then
    echo "ok damage: $(tail -n 1 out.txt)"
else
    echo "not ok damage"
    sed 's/^/    /' out.txt
    bad=1
fi

# ---- a device that is lost ----
if ! "$program" devices --no-test >devices.txt 2>&1; then
    echo "skip a lost device: no OpenCL device"
    compared
    exit $bad
fi
cp "$demo/two_domain.pdb" model.pdb # whose kernels have all their paths
cp model.pdb starts
sed -i 's/warmup: 100/warmup: 300/; s/thin: 5/thin: 10/' good.yaml
expect "simulate the whole protein" 0 "" "$program" simulate good.yaml \
    --output good.dat --force
expect "a run on a device" 0 "" "$program" run good.yaml --output device \
    --device cpu
# PoCL's compiler catches signals itself.
rm -rf hurt
cp -r device hurt
statuses=
for delay in 0 0.03 0.06 0.1 0.15; do
    background "$program" resume hurt --device cpu --draws 1000000
    for _ in $(seq 100); do
        test -s err.txt && break
        sleep 0.01
    done
    sleep $delay
    kill -TERM $pid
    ended
    statuses="$statuses $?"
done
check "stopped while the device is opened:$statuses" \
    test "$statuses" = " 75 75 75 75 75"
LD_PRELOAD=$build/tests/support/lost_device.so TSR_LOST_AT=700
export LD_PRELOAD TSR_LOST_AT
expect "the device is lost" 74 "resume lost" \
    "$program" run good.yaml --output lost --device cpu
unset LD_PRELOAD TSR_LOST_AT
expect "the device is back" 0 "resumed" "$program" resume lost
same "a lost device: the same draws" lost device
expect "on another device" 0 "not bit-identical" \
    "$program" resume lost --device reference --draws 61

# ---- devices that sum wrongly ----
# Of the self-test and the check of the molecule nothing is wrong here: from
# launch 1200 on updates count 1.25 times.
LD_PRELOAD=$build/tests/support/lost_device.so TSR_WRONG_AT=1200
export LD_PRELOAD TSR_WRONG_AT
expect "wrong sums later on" 74 \
    "chain [01], replica [01]: wrong sums: q = .*resume wrong" \
    "$program" run good.yaml --output wrong --device cpu
unset LD_PRELOAD TSR_WRONG_AT
check "the message names the device" grep -q "driver [^;]*; source [0-9a-f]*;" \
    err.txt
check "and is in run.log" grep -q "wrong sums" wrong/run.log
expect "a checkpoint stands before it" 0 "" "$program" status wrong --json
check "in the midst of the run" "$python" -c '
import json
c = json.load(open("out.txt"))["checkpoint"]
assert 0 < c["warmup"] < 30 or 0 <= c["draws"] < 60, c'
expect "on a device that is right" 0 "resumed" "$program" resume wrong
same "wrong sums: the same draws" wrong device

# Kernels whose differences are wrong in some systems: beyond those of the
# self-test, and not of the check of the molecule.
cp -r "$source/kernels" spoilt
sed -i 's/cache + w.before, scale, 0, 1, total);/&\
        if (b.x > 2) total[9] += total[9] \/ 4;/' spoilt/page_tile_simd.cl
check "kernels are spoilt" test "$(grep -c "b.x > 2" spoilt/page_tile_simd.cl)" = 1
TSR_KERNEL_DIR=$work/spoilt
export TSR_KERNEL_DIR
expect "they pass the self-test" 0 "" "$program" devices
expect "not a run" 74 \
    "chain 1, replica 1: wrong sums: .*without TSR_KERNEL_DIR, or .*resume some" \
    "$program" run good.yaml --output some --device cpu
check "the log names the folder" \
    grep -q "kernels are read from '$work/spoilt' (TSR_KERNEL_DIR)" some/run.log
check "the trace says so" grep -q "from TSR_KERNEL_DIR" some/trace.h5

# Updates so wrong that all are rejected: no accepted profile shows it.
cp "$source/kernels/page_tile_simd.cl" spoilt
sed -i 's/cache + w.before, scale, 0, 1, total);/&\
        if (b.x > 1) total[9] -= (long)(scale * 1e7f);/
    s/scale, is_fresh, 0, total);/&\
        if (b.x > 1 \&\& !is_fresh) total[9] -= (long)(scale * 1e7f);/' \
    spoilt/page_tile_simd.cl
expect "updates that are all rejected" 74 \
    "chain 1, replica 0: wrong sums: .*a proposal's update.*double precision" \
    "$program" run good.yaml --set seed=2 --output rejected --device cpu
unset TSR_KERNEL_DIR
expect "with the program's own" 0 "resumed" "$program" resume some
same "spoilt kernels: the same draws" some device
compared
exit $bad
