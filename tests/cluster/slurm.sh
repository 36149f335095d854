#!/bin/bash
# configs/cluster/slurm.sh under a real Slurm: a run that is stopped in each way that
# a cluster has ends with the draws of one that never stopped. `make check-cluster`
# runs this script, which takes about three minutes. It starts a Slurm of its own,
# with two nodes on this machine, as any user and beside other Slurms, and stops it
# at the end. Debian: apt-get install munge slurmctld slurmd slurm-client.
. tests/cli/expect.sh
PATH=$PATH:/usr/sbin:/sbin
needs_venv "Slurm"
for program_needed in munged slurmctld slurmd sbatch; do
    command -v $program_needed >/dev/null && continue
    echo "skip Slurm: no $program_needed (apt-get install munge slurmctld slurmd slurm-client)"
    exit 0
done

# ---- a Slurm ----
# Processes of jobs are found by their environment: a job that was lost with its
# node is nobody's child.
# shellcheck disable=SC2317
tidy() {
    trap '' INT TERM
    for file in "$work"/*.pid; do
        [ -s "$file" ] && kill -TERM "$(cat "$file")" 2>/dev/null
    done
    for _ in $(seq 50); do
        processes_of "SLURM_CONF=$work/" >left
        [ -s left ] || break
        sleep 0.1
    done
    xargs -r kill -KILL <left 2>/dev/null
    cd / && rm -rf "$work"
}
processes_of() { # VARIABLE=VALUE...
    for folder in /proc/[0-9]*; do
        for variable; do
            grep -qsF "$variable" "$folder/environ" || continue 2
        done
        echo "${folder#/proc/}"
    done
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

host=$(hostname -s)
port=$((20000 + $$ % 20000))
cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=10
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
GresTypes=gpu
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=8 Gres=gpu:8
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=8 Gres=gpu:8
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=30
PartitionName=high Nodes=node2 PriorityTier=2
END
echo "NodeName=node[1-2] Name=gpu File=$work/gpu[0-7]" >gres.conf # no device is opened
touch gpu{0..7}
export SLURM_CONF=$work/slurm.conf TESSERA=$program
chmod 755 . # munge refuses a socket that others cannot reach
mkdir state
head -c 1024 /dev/urandom >munge.key
chmod 600 munge.key
munged --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
    --log-file="$work/munged.log" --seed-file="$work/munge.seed" --force 2>/dev/null &&
    slurmctld && slurmd -N node1 && slurmd -N node2
is_up() { [ "$(sinfo --noheader --Node --partition=low --format=%T 2>/dev/null)" = "$(printf 'idle\nidle')" ]; }
wait_until is_up
if ! is_up; then
    echo "not ok a Slurm starts"
    tail -n 20 ./*.log
    exit 1
fi

# submit NAME [OPTION...]: a job whose run is in the folder NAME; its number in $NAME.
submit() {
    folder=$1
    shift
    eval "$folder=\$(sbatch --parsable --cpus-per-task=1 --time=10 --output=$folder.out \"\$@\" \
        \"\$source/configs/cluster/slurm.sh\" good.yaml \$folder)"
}
field() { scontrol show job "$1" | grep -o "$2=[^ ]*" | cut -d = -f 2; } # JOB FIELD
is() { [ "$(field "$1" JobState | sort -u)" = "$2" ]; }                  # JOB STATE
# Slurm starts a requeued job only after two minutes.
is_over() {
    scontrol update JobId="$1" StartTime=now 2>/dev/null
    ! field "$1" JobState | grep -qE "PENDING|RUNNING|COMPLETING|PREEMPTED"
}
over() { # JOB...
    for job; do
        wait_until is_over "$job"
    done
}
went_on() { # JOB FOLDER: to the end, from a checkpoint
    is "$1" COMPLETED && [ "$(field "$1" Restarts)" -ge 1 ] &&
        grep -q "resumed from the checkpoint.*[1-9][0-9]* kept" "$2.out" && return
    field "$1" "JobState\|Restarts" >&2
    grep "interrupted\|re[a-z]*ed from" "$2.out" >&2
    return 1
}
# cut_power NODE: kills its slurmd and, with their parents, the processes of its jobs.
cut_power() {
    processes_of "SLURM_CONF=$work/" "SLURMD_NODENAME=$1" >left
    # shellcheck disable=SC2046
    kill -KILL $(cat "$1.pid" left) $(xargs -r ps -o ppid= -p <left)
}

short_model model.pdb
cat >good.yaml <<END
seed: 2
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: good.dat, noise: {model: student}}]
sampler: {chains: 4, warmup: 300, draws: 1200, thin: 20, temperatures: 2}
output: {trajectory_every: 10, checkpoint_every: 1}
device: {use: reference}
simulate: {points: 30, q_range: [0.01, 0.15], steps: 50}
contrast: {c2: 0}
END
tessera simulate good.yaml --output good.dat --quiet >/dev/null || exit 1

# ---- jobs ----
submit whole
submit cancelled
submit signalled
submit requeued
submit limit --time=1 --signal=B:TERM@48
submit array --array=1-2
submit preempted --nodelist=node2
for run in cancelled signalled requeued preempted; do
    wait_until has_draws $run
done
cases <<'END'
cancelled by its user | 0 | scancel $cancelled
told to stop | 0 | scancel --batch --signal=TERM $signalled
requeued by its user | 0 | scontrol requeue $requeued
preempted | 0 | sbatch --partition=high --exclusive --output=high.out --wrap "sleep 1"
$ over $cancelled $whole $signalled $requeued $limit $array $preempted
a whole run | 0 | is $whole COMPLETED
a cancelled job stays so | 0 | is $cancelled CANCELLED
    with a checkpoint | in cancelled.out to continue: tessera resume cancelled
a job that was told to stop goes on | 0 | went_on $signalled signalled
a requeued job | 0 | went_on $requeued requeued
a job at its time limit | 0 | went_on $limit limit
a preempted job | 0 | went_on $preempted preempted
the tasks of an array | 0 | is $array COMPLETED
    have their numbers as seeds | in array-1/config.yaml ^seed: 1 && in array-2/config.yaml ^seed: 2
$ submit cancelled
$ submit lost
$ wait_until has_draws lost
$ node=$(field $lost BatchHost)
a node without power | 0 | cut_power $node
$ over $cancelled $lost
another takes its job | 0 | went_on $lost lost
a job submitted again | 0 | is $cancelled COMPLETED
    goes on | in cancelled.out resumed from the checkpoint
$ submit cancelled
$ over $cancelled
and once more is finished | 0 | is $cancelled COMPLETED
    with words | in cancelled.out the run in cancelled is finished
END
# Both nodes are one host, which ranks of both must not know: no shared memory, and
# no srun over both, whose PMIx servers would share a folder.
ranks=
if [ -e "$build/tessera-mpi" ]; then
    ranks="by_srun by_mpirun"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=tcp,self
    slurmd -N "$node"
    wait_until is_up
    TESSERA="srun --mpi=pmix --kill-on-bad-exit=1 $build/tessera-mpi" submit by_srun --ntasks=3
    TESSERA="mpirun --bind-to none $build/tessera-mpi" submit by_mpirun --nodes=2 --ntasks=4
    wait_until has_draws by_srun
    wait_until has_draws by_mpirun
    cases <<'END'
ranks of srun are told to stop | 0 | scancel --batch --signal=TERM $by_srun
ranks of mpirun | 0 | scancel --batch --signal=TERM $by_mpirun
$ over $by_srun $by_mpirun
ranks of srun go on | 0 | went_on $by_srun by_srun
    three of them | in by_srun.out 3 ranks
ranks of mpirun go on | 0 | went_on $by_mpirun by_mpirun
    on two nodes | in by_mpirun.out 4 ranks
END
else
    echo "skip ranks: no $build/tessera-mpi (make MPI=1)"
fi
same "the draws of runs that were stopped" whole array-2 cancelled signalled requeued limit preempted lost $ranks
compared
exit $bad
