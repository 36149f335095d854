#!/bin/bash
# A run of tessera under Slurm that continues beyond the time limit of a job:
# docs/cluster.md.
#
#   sbatch configs/cluster/slurm.sh CONFIG DIRECTORY [OPTION...]
#   sbatch --array=1-8 configs/cluster/slurm.sh CONFIG DIRECTORY
#
# In an array each task is a run, in DIRECTORY-TASK with the seed TASK.
#SBATCH --job-name=tessera
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16
#SBATCH --gpus-per-node=1
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue --open-mode=append

config=$1 directory=${2%/}
shift 2 || { echo "usage: sbatch $0 CONFIG DIRECTORY [OPTION...]" >&2; exit 64; }
tessera=${TESSERA:-tessera}
threads=${SLURM_CPUS_PER_TASK:-1}
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    directory=$directory-$SLURM_ARRAY_TASK_ID
    set -- "$@" --set "seed=$SLURM_ARRAY_TASK_ID"
fi

# Two minutes before the limit, and when the job is preempted, the batch shell gets
# SIGTERM and sends it to tessera, which writes a checkpoint.
pid='' stopped=0
trap 'stopped=1; [ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null' TERM

if [ -e "$directory/checkpoint.h5" ] ||
    [ -e "$directory/checkpoint.h5.previous" ]; then
    "$tessera" resume "$directory" --threads "$threads" &
else
    # A folder without a checkpoint, left by a node that failed early, is moved
    # away; a folder with a config.yaml that tessera did not write is not.
    if head -n 1 "$directory/config.yaml" 2>/dev/null |
        grep -Eq '^# tessera .*: the configuration (as resolved|with all defaults)$'; then
        mv "$directory" "$directory.unused-$(date +%Y%m%dT%H%M%S)"
    fi
    "$tessera" run "$config" --output "$directory" --threads "$threads" "$@" &
fi
pid=$!
[ "$stopped" -eq 0 ] || kill -TERM "$pid" 2>/dev/null # the signal came before the process
wait "$pid"
status=$?
while kill -0 "$pid" 2>/dev/null; do # the trap interrupted `wait`; the run continues
    wait "$pid"
    status=$?
done

# 75: stopped, can be resumed; 143: stopped before tessera handled the signal
[ "$stopped" -eq 1 ] && [ "$status" -eq 143 ] && status=75
if [ "$status" -eq 75 ] && [ -n "${SLURM_JOB_ID:-}" ]; then
    id=$SLURM_JOB_ID
    [ -n "${SLURM_ARRAY_JOB_ID:-}" ] &&
        id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    scontrol requeue "$id" && exit 0
fi
exit "$status"
