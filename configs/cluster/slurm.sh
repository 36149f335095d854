#!/bin/bash
# A run of tessera under Slurm that continues beyond the time limit of a job:
# docs/cluster.md.
#
#   sbatch configs/cluster/slurm.sh CONFIG DIRECTORY [OPTION...]
#   sbatch --array=1-8 configs/cluster/slurm.sh CONFIG DIRECTORY
#
# In an array each task is a run, in DIRECTORY-TASK with the seed TASK. TESSERA is
# the command, if it is not tessera: "srun tessera-mpi", ./tessera.sif.
#SBATCH --job-name=tessera
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16
#SBATCH --gpus-per-node=1
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue --open-mode=append

# Slurm sends SIGTERM to this shell two minutes before the limit, and when the job
# is preempted, requeued or cancelled. tessera then writes a checkpoint and ends.
pid='' n_signal=0
# srun would kill its tasks at once, so these get the signal.
stop() {
    case $pid,${TESSERA:-} in
    ,*) ;;
    *,srun*) scancel --signal=TERM "$id" ;;
    *) kill -TERM "$pid" 2>/dev/null ;;
    esac
}
trap 'n_signal=$((n_signal + 1)); stop' TERM

config=$1 directory=${2%/}
shift 2 || { echo "usage: sbatch $0 CONFIG DIRECTORY [OPTION...]" >&2; exit 64; }
id=${SLURM_JOB_ID:-}
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    directory=$directory-$SLURM_ARRAY_TASK_ID
    set -- "$@" --set "seed=$SLURM_ARRAY_TASK_ID"
fi

# shellcheck disable=SC2086
${TESSERA:-tessera} run "$config" --output "$directory" --continue \
    --threads "${SLURM_CPUS_PER_TASK:-1}" "$@" &
pid=$!
[ "$n_signal" -eq 0 ] || stop # the signal came before the process
n=-1
while [ "$n" -ne "$n_signal" ]; do # a signal ends `wait`, not the run
    n=$n_signal
    wait "$pid"
    status=$?
done

# 75: stopped, can be resumed. After a signal, a launcher of MPI ends with a status
# of its own. A job that is no longer RUNNING was cancelled, or Slurm requeues it.
is_stopped() { [ "$status" -eq 75 ] || { [ "$status" -ne 0 ] && [ "$n_signal" -gt 0 ]; }; }
if is_stopped &&
    [ "$(squeue --noheader --jobs "$id" --format %T)" = RUNNING ]; then
    scontrol requeue "$id" && exit 0
fi
exit "$status"
