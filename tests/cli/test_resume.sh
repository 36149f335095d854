#!/bin/sh
# A run that stops goes on to the draws that it would have had without the stop, to
# the bit: after signals, kills, full disks, damaged files, lost and wrong devices;
# and what does not belong to the run is refused.
. tests/cli/expect.sh
needs_venv "resumed runs"
tests=$source/tests/cli

short_model model.pdb
mkdir starts empty elsewhere bin
cp model.pdb starts
sed 's/ SC / CG /' model.pdb >starts/pool.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"], starts: [starts/model.pdb], pool: [starts/pool.pdb]}
data: [{file: good.dat, noise: {model: student}}]
sampler: {chains: 2, warmup: 100, draws: 60, thin: 5, temperatures: 2}
output: {directory: whole, trajectory_every: 3}
device: {use: reference, threads: 2}
simulate: {points: 30, q_range: [0.01, 0.15], steps: 50}
contrast: {c2: 0}
END
cases <<'END'
simulate | 0 | tessera simulate good.yaml --output good.dat
a run | 0 | tessera run good.yaml
    no log of draws stays | test ! -e whole/draws.log

# ---- what cannot be resumed ----
no such folder | 66 no folder 'nowhere' | tessera resume nowhere
an empty folder | 66 not the folder of a run | tessera resume empty
a finished run | 64 finished.*--draws N | tessera resume whole
fewer draws | 64 already has [0-9]+ | tessera resume whole --draws 5
fewer than behind the checkpoint | 64 already has 60 | tessera resume whole --draws 59
draws without sense | 64 draws | tessera resume whole --draws zero
two folders | 64 | tessera resume whole empty
help names its options | 0> --draws N | tessera resume --help
END
for file in input/model.pdb input/1-model.pdb input/pool.pdb input/good.dat checkpoint.h5 trajectory-000.h5 \
    trajectory-001.h5 run.lock; do
    check "a run leaves $file" test -s whole/$file
done

# ---- extended ----
cases <<'END'
extended | 0 resumed from the checkpoint | tessera resume whole --draws 100 --threads 1
as long from the start | 0 | tessera run good.yaml --output long --set sampler.draws=100
$ same "extended: the same draws" whole long
    its config says so | in whole/config.yaml draws: 100
and is a config | 0 | tessera check whole/config.yaml
END

# ---- the model's own error is that of the checkpoint ----
atoms=$shared/saxs/lysozyme_6lyz
if [ -f "$atoms/exp.dat" ]; then
    cat >atoms.yaml <<END
structure: {file: $atoms/model.pdb, flexible: ["A:119-129"]}
data: [{file: $atoms/exp.dat, q_range: [0, 0.2]}]
contrast: {c1: 1, c2: infer}
model_error: {conformations: 6}
sampler: {chains: 2, warmup: 6, draws: 16, thin: 2, temperatures: 1}
device: {use: reference, threads: 2}
END
    cases <<'END'
corrected curves | 0 6 conformations.*integrated out | tessera run atoms.yaml --output atoms-whole
of other conformations | 0 7 conformations | tessera run atoms.yaml --output atoms-other --set model_error.conformations=7
fewer draws of them | 0 | tessera run atoms.yaml --output atoms --set sampler.draws=7
and more | 0 6 conformations.*from the checkpoint | tessera resume atoms --draws 16
$ same "corrected curves: the same draws" atoms-whole atoms
as the bodies are | 0 model_error is none | tessera run atoms.yaml --output bodies --set model_error=none
    another likelihood | ! cmp -s atoms/trace.h5 bodies/trace.h5
a file of it | 0 learnt in .* for '.*error.h5' | tessera run atoms.yaml --output atoms-kept --set model_error.file=error.h5
$ same "kept in a file: the same draws" atoms-whole atoms-kept
a run that reads it | 0 6 conformations.*from '.*error.h5' | tessera run atoms.yaml --output atoms-shared --set model_error.file=error.h5
$ same "read from a file: the same draws" atoms-whole atoms-shared
of another contrast | 65 was learnt for another | tessera run atoms.yaml --output no --set model_error.file=error.h5 --set contrast.c2_mean=2
of other settings | 65 settings | tessera run atoms.yaml --output no --set model_error.file=error.h5 --set model_error.conformations=7
another run writes it anew | 0 learnt in | tessera run atoms.yaml --output no --set model_error.file=other.h5 --set model_error.conformations=7
$ rm -rf no && cp other.h5 error.h5
that has changed since | 0 from the checkpoint | tessera resume atoms-shared --draws 20
that is damaged | 65 is damaged | tessera run atoms.yaml --output no --set model_error.file=atoms.yaml
where nothing can be written | 0 model_error.file: not written | tessera run atoms.yaml --output atoms-lost --set model_error.file=nowhere/error.h5
runs with two of them | 0> model errors of runs 1 and 2 differ | tessera compare atoms-whole atoms-other
END
    if has_other_processor "a run that moves to another processor"; then
        cat >moved.yaml <<END
structure: {file: $shared/saxs/lar_fn3_1_2/model.pdb, flexible: ["A:97-103"]}
data: [{file: $shared/saxs/lar_fn3_1_2/exp.dat, q_range: [0, 0.35]}]
model_error: none
sampler: {chains: 2, warmup: 6, draws: 3, thin: 1, temperatures: 1, start: file}
device: {use: reference, threads: 1}
END
        cases <<'END'
a run | 0 | tessera run moved.yaml --output moved
on a processor of another kind | 0 kind of processor changed | env $other_processor tessera resume moved --draws 5
and again | 0 | env $other_processor tessera resume moved --draws 7
    which is now the same | no err kind of processor
END
    fi
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
    background tessera run good.yaml --output "$into" \
        --set sampler.draws=1000000 --threads 1 "$@"
    wait_until has_draws "$into"
}
stop() { # SIGNAL: stops the run, $status
    kill "-$1" $pid
    ended 2>/dev/null
    status=$?
}
begin stopped
before=$(stat -c %Y.%i stopped/checkpoint.h5)
has_another() { [ "$before" != "$(stat -c %Y.%i stopped/checkpoint.h5)" ]; }
cases <<'END'
status of a run says that it runs | 0> state *running on .*process ${pid} | tessera status stopped
another on the same folder | 78 process ${pid} | tessera resume stopped
$ kill -USR1 $pid; wait_until has_another
    SIGUSR1 makes a checkpoint, and the run goes on | has_another && kill -0 $pid
END
stop TERM
cases <<'END'
    SIGTERM: exit status 75, says how to go on | test $status -eq 75 && err tessera resume stopped
status says interrupted | 0> state *interrupted | tessera status stopped
    and how to go on | out to go on *tessera resume stopped
status in JSON | 0 | tessera status stopped --json
    of its draws | json d.state == 'interrupted' and d.chains == 2 and 0 < d.acceptance_rate < 1 and d.chi2 > 0 \
        and 0 <= d.checkpoint.draws <= d.draws.done < 1000000 and d.steps_per_second > 0 and d.seconds_left > 0
END
done_of() { # DIR: its number of draws
    tessera status "$1" --json | "$python" -c '
import json, sys; print(json.load(sys.stdin)["draws"]["done"])'
}
stored=$(done_of stopped)

begin "let's; quit" --set $often
stop QUIT
typed="let'\\\\''s; quit"
cases <<'END'
    SIGQUIT: exit status 75 | test $status -eq 75
    says how to go on, as a shell takes it | err continue: tessera resume '${typed}'
so does status, in the same words | 0> to go on    tessera resume '${typed}' | tessera status "let's; quit"
a soft limit on processor time | 75 tessera resume limited | \
        sh -c 'ulimit -S -t 1 && exec tessera run good.yaml --output limited --set sampler.draws=1000000'
END
if tessera devices --no-test 2>&1 | grep -q "^.*(CPU)"; then
    ulimit -c 0
    begin aborted --device cpu --set $often
    stop ABRT
    check "SIGABRT kills, also where PoCL's LLVM has a handler" test $status -eq 134
else
    echo "skip SIGABRT under PoCL: no CPU as device"
fi

# Before the first step every replica's curve is computed: ten seconds of a
# processor. How many were is stated; time depends on the machine.
background tessera run good.yaml --output early --set sampler.chains=1024 \
    --set structure.file="$demo/two_domain.pdb" --set structure.starts=[] \
    --set structure.pool=[] --set sampler.temperatures=8 --set sampler.t_max=5
wait_until grep -q "^grid" err.txt
kill -USR1 $pid
stop TERM
begun=$(sed -n 's/.*interrupted after \([0-9]*\) of 8192 replicas.*/\1/p' err.txt)
cases <<'END'
    stopped before the first step: exit status 75 | test $status -eq 75
    with few replicas begun | test "${begun:-8192}" -lt 4096
    says that there is nothing to go on with, and leaves nothing | err start the run again && test ! -e early
END

if [ -f atoms.yaml ]; then
    background tessera run atoms.yaml --output early --set model_error.conformations=1000
    wait_until grep -q "^grid" err.txt
    stop TERM
    cases <<'END'
    stopped while it learns | test $status -eq 75 && err interrupted while the model error was learnt
END
fi

# ---- stopped twice between the populations phase and the first draw, which takes long ----
sed 's/, starts: [^]]*\]//; s/student/measured/' good.yaml >grow.yaml
grow="--set sampler.chains=8 --set sampler.warmup=1 --set sampler.draws=1 --set sampler.thin=2000"
background tessera run grow.yaml --output twice $grow
wait_until grep -q "chains were tempered" err.txt
stop TERM
check "stopped after the populations phase" test $status -eq 75
background tessera resume twice
wait_until grep -q "^resumed from" err.txt
sleep 0.2
stop TERM
cases <<'END'
    and again | test $status -eq 75
status finds no draw | 0> . | tessera status twice --json
    of warm-up either | json d.checkpoint.warmup == 0 and d.checkpoint.draws == 0
goes on | 0 0 draws of warm-up, 0 kept | tessera resume twice
without a stop | 0 chains were tempered | tessera run grow.yaml --output grown ${grow}
$ same "populations, stopped twice: the same draws" grown twice
END

begin killed --set $often
wait_until test -s killed/draws.log
stop KILL
check "its last draws are in the log" test -s killed/draws.log
tessera status killed --json >killed.json
tessera summary killed >/dev/null 2>&1
check "a command that reads it puts them into the trace" "$python" -c '
import h5py, json
n = h5py.File("killed/trace.h5")["posterior/rg"].shape[1]
assert n == json.load(open("killed.json"))["draws"]["done"] > 0, n'
"$python" "$tests/open_run.py" stopped killed

cp -r long extended
background tessera resume extended --draws 1000000
wait_until grep -q resumed err.txt
sleep 0.2
stop TERM
check "an extension that is stopped" test $status -eq 75
expect "status: it is not finished" "0>" "state *interrupted" tessera status extended

# ---- moved; input, config and trace that changed ----
copy() { rm -rf hurt && cp -r long hurt; }
other() { # KEY VALUE: a copy with another value in its config
    copy
    sed -i "s/^\( *$1\): .*/\1: $2/" hurt/config.yaml
    tessera resume hurt --draws 110
}
mv stopped elsewhere/moved
mv model.pdb starts good.dat elsewhere
cases <<'END'
moved, without the originals | 0 resumed | tessera resume elsewhere/moved --draws $((stored + 20))
$ mv elsewhere/model.pdb elsewhere/starts elsewhere/good.dat .
as long without a stop | 0 | tessera run good.yaml --output straight --set sampler.draws=$((stored + 20))
$ same "moved: the same draws" elsewhere/moved straight
another stride of the trajectories | 65 config.yaml differs from that.*trajectory_every: 7 | other trajectory_every 7
another seed | 65 config.yaml differs from that.*seed: 2 | other seed 2
$ copy; awk '!/^#/ && NF == 3 && !n++ {$2 = $2 * 1.01} {print}' good.dat >hurt/input/good.dat
other data | 65 the data: changed since the checkpoint was written | tessera resume hurt --draws 110
$ copy; for k in 1 2; do echo MODEL; grep ^ATOM starts/pool.pdb; echo ENDMDL; done >hurt/input/pool.pdb
another pool | 65 the structures?: changed since | tessera resume hurt --draws 110
another run with its own seed | 0 | tessera run good.yaml --output other --set seed=2 --set sampler.draws=100
$ copy; cp other/trace.h5 hurt
its trace | 65 trace.h5.*config.yaml differs from that.*seed: 1 | tessera resume hurt --draws 110
$ copy; truncate -s 3000 hurt/checkpoint.h5
status names a damaged checkpoint | 0> checkpoint.h5 | tessera status hurt
a damaged checkpoint | 0 checkpoint.h5.* | tessera resume hurt --draws 110
    is put aside | test -s hurt/checkpoint.h5.damaged
as long from the start | 0 | tessera run good.yaml --output longer --set sampler.draws=110
$ same "a damaged checkpoint: the one before does" hurt longer
END
if is_sanitized; then
    echo "skip stopped at once: a sanitizer bears no library before it"
else
    # Both checkpoints are then of sessions that were stopped before their first step.
    copy
    for at in 3 8; do
        expect "stopped at once, $at" 75 "resume hurt" env LD_PRELOAD="$build/tests/support/fault.so" \
            TSR_FAULT_DIR="$work/hurt" TSR_FAULT_AT=$at TSR_FAULT_DO=TERM \
            "$program" resume hurt --draws 110
    done
    expect "and it goes on" 0 resumed tessera resume hurt --draws 110
    same "stopped at once: the same draws" hurt longer
    # before the first draw, where warm-up is planned
    expect "stopped at the start" 75 "resume first" env LD_PRELOAD="$build/tests/support/fault.so" \
        TSR_FAULT_DIR="$work/first" TSR_FAULT_AT=60 TSR_FAULT_DO=TERM \
        "$program" run good.yaml --output first --set sampler.draws=110
    expect "goes on from there" 0 "0 draws of warm-up, 0 kept" tessera resume first
    same "stopped at the start: the same draws" first longer
fi

# ---- no room ----
# Files may grow to so many blocks of 512 bytes.
room() {
    blocks=$1
    shift
    sh -c "ulimit -f $blocks; exec \"\$@\"" sh tessera "$@"
}
size=$(stat -c %s long/trace.h5)
sed '/^sampler/d; /^data/d; s/51-64/57-60/' good.yaml >free.yaml
cases <<'END'
no room for the trace | 74 trace.h5.*resume tight | room $((size / 512 - 100)) run good.yaml --output tight \
        --set sampler.draws=160 --set $often
with room again | 0 resumed | tessera resume tight
as long from the start | 0 | tessera run good.yaml --output roomy --set sampler.draws=160
$ same "without room: the same draws" tight roomy
until, asked later | 0 converged by the criterion after 1[0-9][0-9]  | \
        tessera resume roomy --draws 500 --until "rhat<90,ess>1"

# ---- until converged, or no time is left ----
without a number of draws | 0 converged by the criterion after | \
        tessera run free.yaml --output free --set sampler.warmup=300
    the run says what it goes on to | in free/config.yaml until: .*rhat<1.01,ess>400
in half a second | 1 not converged by the criterion.*resume hasty --draws [0-9]+00 | \
        tessera run good.yaml --output hasty --set sampler.draws=auto --set sampler.time_limit=0.5
status: it is finished | 0> state *finished | tessera status hasty
summary of it | 0 | tessera summary hasty
    does not say that draws are missing | no err not finished
$ n=$(($(done_of hasty) + 20))
and goes on when it is told to | 1 not converged by the criterion | tessera resume hasty --draws $n
to the end | 0> sampling *${n} draws per chain \(${n} at most\) | tessera status hasty
$ begin bounded --set $often --set sampler.draws=auto --set sampler.time_limit=3000; stop TERM
status of a run with a limit of time | 0 | tessera status bounded --json
    the time left is no more than that | json 0 < d.seconds_left < 3000
# the time of warm-up is not that of a few draws, which would be five minutes
in no time | 1 rushed --draws [0-9]+00   \(about (a minute|2 minutes)\) | tessera run good.yaml --output rushed \
        --set sampler.draws=auto --set sampler.warmup=2000 --set sampler.time_limit=1e-9
    one number of draws is proposed | no err sampler.draws=
END
if is_sanitized; then
    echo "skip a clock that was set back: a sanitizer bears no library before it"
else
    clock() { env TSR_FAULT_CLOCK="$1" LD_PRELOAD="$build/tests/support/fault.so" tessera status bounded; }
    cases <<'END'
status by a clock that was set back tells no age | 0> checkpoint  .*\+00:00, by a clock ahead of this one:  | clock -3000000
and tells that of one that was set forward | 0> checkpoint  .*\+00:00, 3000... s ago:  | clock 3000000
END
fi
# The line on a terminal and status tell the same time: the end of the limit.
cat >line.py <<END
import os, pty, re, subprocess, sys
program, *words = sys.argv[1:]
pid, line = pty.fork()
if pid == 0:
    os.execv(program, [program, "run", *words])
text, told = b"", []
while len(told) < 3:
    text += os.read(line, 4096)
    shown = re.findall(rb", (?:at most )?(\d+):(\d+):(\d+) left", text)
    if not shown or b"sampling" not in text:
        continue
    out = subprocess.run([program, "status", words[-1]], capture_output=True).stdout
    left = re.findall(rb"time left +(?:at most )?(\d+):(\d+):(\d+)", out)
    if left:
        told.append([int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in (shown[-1], left[0])])
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

# ---- files that are taken away under a run ----
begin gone --set $often
rm -r gone
ended
status=$?
cases <<'END'
    a folder that was taken away: exit status 74, in words | test $status -eq 74 && err gone
END
# spoil DIR COMMAND...: while the run writes no file anew, then it is told to stop.
spoil() {
    begin "$1" --set $often
    while kill -STOP $pid && ls "$1" | grep -q '\.tmp$'; do
        kill -CONT $pid
        sleep 0.05
    done
    shift
    "$@" 2>/dev/null
    kill -TERM $pid
    stop CONT
}
cases <<'END'
$ spoil removed rm removed/trace.h5
    only the trace that was taken away: exit status 74, in words | test $status -eq 74 \
        && err removed/trace.h5.*No such file
$ spoil cut dd if=/dev/null of=cut/trace.h5 bs=1 seek=3000
    a trace that was cut off meanwhile: exit status 74, in words | test $status -eq 74 \
        && err cannot write.*'cut/trace.h5'
more chains than files that the shell allows | 0 | sh -c 'ulimit -S -n 40 && exec tessera run good.yaml \
        --prior-only --output files --set sampler.chains=60 --set sampler.warmup=10 --set sampler.draws=2'
END

# ---- the batch script, with a Slurm that only takes notes ----
printf '#!/bin/sh\necho "$@" >>%s/requeued\n' "$work" >bin/scontrol
printf '#!/bin/sh\necho ${state:-RUNNING}\n' >bin/squeue
chmod +x bin/scontrol bin/squeue
batch() { # TASK
    export TESSERA=$program SLURM_JOB_ID=99 SLURM_CPUS_PER_TASK=2
    export SLURM_ARRAY_JOB_ID=90 SLURM_ARRAY_TASK_ID=$1
    PATH=$work/bin:$PATH exec bash "$source/configs/cluster/slurm.sh" good.yaml job \
        --set sampler.draws=100000 --set $often >job.txt 2>&1
}
again() { (batch "$@"); }
batch 1 &
pid=$!
wait_until has_draws job-1
stop TERM
cases <<'END'
    a job that is told to stop: exit status 0 | test $status -eq 0
    goes back to the queue, and is interrupted | in requeued requeue 90_1 && in job.txt tessera resume job-1
END
(export state=COMPLETING && batch 2) &
pid=$!
wait_until has_draws job-2
stop TERM
cases <<'END'
    a job that is cancelled ends with 75, and stays cancelled | test $status -eq 75 && no in requeued 90_2
END
n=$(($(done_of job-1) + 100))
sed -i "s/draws: 100000/draws: $n/" job-1/config.yaml
mkdir own
cp good.yaml own/config.yaml
cp model.pdb good.dat own
cases <<'END'
once more, it ends | 0 | again 1
    where it was resumed, with the seed of its task | in job.txt resumed from the checkpoint \
        && in job-1/config.yaml ^seed: 1
END
own=own/config.yaml
cases <<'END'
a folder that is no run's is refused | 78 already contains a run | tessera run $own -o own --continue
    and stays | cmp -s own/config.yaml good.yaml
a run that has ended is continued | 0 run in job-1 is finished | tessera run good.yaml -o job-1 --continue
    from a file that has changed | 0 good.yaml was changed | touch good.yaml && tessera run good.yaml -o job-1 --continue
without a folder | 64 needs --output | tessera run good.yaml --continue
END

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
soak damage soak.yaml damage 2 7

# ---- a device that is lost ----
if ! tessera devices --no-test >devices.txt 2>&1; then
    echo "skip a lost device: no OpenCL device"
    compared
    exit $bad
fi
cp "$demo/two_domain.pdb" model.pdb # whose kernels have all their paths
cp model.pdb starts
sed 's/ SC / CG /' model.pdb >starts/pool.pdb
sed -i 's/warmup: 100/warmup: 300/; s/thin: 5/thin: 10/' good.yaml
cases <<'END'
simulate the whole protein | 0 | tessera simulate good.yaml --output good.dat --force
a run on a device | 0 | tessera run good.yaml --output device --device cpu
END
# PoCL's compiler catches signals itself.
rm -rf hurt
cp -r device hurt
statuses=
for delay in 0 0.03 0.06 0.1 0.15; do
    background tessera resume hurt --device cpu --draws 1000000
    for _ in $(seq 100); do
        test -s err.txt && break
        sleep 0.01
    done
    sleep $delay
    stop TERM
    statuses="$statuses $status"
done
check "stopped while the device is opened:$statuses" \
    test "$statuses" = " 75 75 75 75 75"

# Of the self-test and the check of the molecule nothing is wrong here: from
# launch 1200 on updates count 1.25 times.
faulty() { # VARIABLE=LAUNCH WORD...
    fault=$1
    shift
    env LD_PRELOAD="$build/tests/support/lost_device.so" "$fault" tessera "$@" --device cpu
}
# Kernels whose differences are wrong in some systems: beyond those of the
# self-test, and not of the check of the molecule. Then updates so wrong that
# all are rejected: no accepted profile shows it.
cp -r "$source/kernels" spoilt
sed -i 's/cache + w.before, scale, 0, 1, total);/&\
        if (b.x > 2) total[9] += total[9] \/ 4;/' spoilt/page_tile_simd.cl
check "kernels are spoilt" test "$(grep -c "b.x > 2" spoilt/page_tile_simd.cl)" = 1
cp -r spoilt rejecting
sed 's/cache + w.before, scale, 0, 1, total);/&\
        if (b.x > 1) total[9] -= (long)(scale * 1e7f);/
    s/scale, is_fresh, 0, total);/&\
        if (b.x > 1 \&\& !is_fresh) total[9] -= (long)(scale * 1e7f);/' \
    "$source/kernels/page_tile_simd.cl" >rejecting/page_tile_simd.cl
kernels() { # FOLDER WORD...
    folder=$1
    shift
    env TSR_KERNEL_DIR="$work/$folder" tessera "$@"
}
cases <<'END'
the device is lost | 74 resume lost | faulty TSR_LOST_AT=700 run good.yaml --output lost
the device is back | 0 resumed | tessera resume lost
$ same "a lost device: the same draws" lost device
on another device | 0 not bit-identical | tessera resume lost --device reference --draws 61
wrong sums later on | 74 chain [01], replica [01]: wrong sums: q = .*resume wrong | \
        faulty TSR_WRONG_AT=1200 run good.yaml --output wrong
    the message names the device, and is in run.log | err driver [^;]*; source [0-9a-f]*; \
        && in wrong/run.log wrong sums
a checkpoint stands before it | 0 | tessera status wrong --json
    in the midst of the run | json 0 < d.checkpoint.warmup < 30 or 0 <= d.checkpoint.draws < 60
on a device that is right | 0 resumed | tessera resume wrong
$ same "wrong sums: the same draws" wrong device
spoilt kernels pass the self-test | 0 | kernels spoilt devices
not a run | 74 chain 1, replica 1: wrong sums: .*without TSR_KERNEL_DIR, or .*resume some | \
        kernels spoilt run good.yaml --output some --device cpu
    the log names the folder | in some/run.log kernels are read from '${work}/spoilt' \(TSR_KERNEL_DIR\)
    the trace says so | in some/trace.h5 from TSR_KERNEL_DIR
updates that are all rejected | 74 chain 1, replica 0: wrong sums: .*a proposal's update.*double precision | \
        kernels rejecting run good.yaml --set seed=2 --output rejected --device cpu
with the program's own | 0 resumed | tessera resume some
$ same "spoilt kernels: the same draws" some device
END
compared
exit $bad
