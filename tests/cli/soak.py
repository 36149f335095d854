"""A run that is stopped again and again ends like one that never was.

    python soak.py TESSERA DIRECTORY CONFIG kills|damage|faults STOPS [FAULT.SO]

An uninterrupted run, then one that is stopped STOPS times and resumed each
time, with other numbers of threads:

    kills   SIGKILL at random moments
    damage  SIGKILL behind each new checkpoint, and after every third the newest one is
            cut short or a byte of it is flipped; the one before it has to do
    faults  at a random file operation SIGKILL, half a write, a power cut that
            loses what was not synced, or an error (a full disk, a quota, a
            broken disk) once or from then on (tests/support/fault.c)

Both must hold the same draws, every file must open at every stop, and no
checkpoint may get lost.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py

from compare_runs import compare

program, folder, config, mode, stops = *sys.argv[1:5], int(sys.argv[5])
fault_library = sys.argv[6] if mode == "faults" else None
chance = random.Random(7)
whole, stopped = f"{folder}/whole", f"{folder}/stopped"
KILLED = -signal.SIGKILL


def start(words, **environment):
    return subprocess.Popen([program, *words, "--quiet"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **environment})


def is_finished(code, message):
    """Did a session find that the killed one before it had left nothing to do?

    A kill can come behind the last checkpoint: the run has all its draws, and
    `resume` refuses to go on with it (exit status 64).
    """
    return code == 64 and "is finished" in message


def finish(*words):
    process = start(words)
    message = process.communicate()[1]
    assert process.returncode == 0 or is_finished(process.returncode, message), \
        (words, process.returncode, message)


def is_farther():
    """Has a run that goes on a checkpoint with new draws?

    This run writes all the time: when `status` gets no quiet moment to read it in, it
    says so with exit status 74, and is asked again.
    """
    if not os.path.exists(f"{stopped}/checkpoint.h5"):
        return False
    try:
        return status() > max(best, 0)
    except subprocess.CalledProcessError as error:
        assert error.returncode == 74, error
        return False


def kill_after(seconds, words):
    process = start(words)
    # A checkpoint that is to be damaged has to be one with draws.
    while mode == "damage" and process.poll() is None and not is_farther():
        time.sleep(0.02)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    message = process.communicate()[1]
    return process.returncode, message


def fault_at(k, what, words):
    process = start(words, LD_PRELOAD=fault_library, TSR_FAULT_AT=str(k),
                    TSR_FAULT_DIR=os.path.realpath(stopped), TSR_FAULT_DO=what,
                    TSR_FAULT_SEED=str(chance.randrange(1 << 30)),
                    TSR_FAULT_COUNT=f"{folder}/count")
    message = process.communicate()[1]
    return process.returncode, message


def stop_once(length, words):
    """One session that something ends: (exit status, message, what)."""
    if fault_library is None:
        # STOPS of them have to fit into the run
        pause = chance.uniform(0.1, 1.0) * min(0.5 * length / stops, 1.5)
        return *kill_after(pause, words), "kill"
    what = chance.choice(["kill", "tear", "tear", "cut", "cut", "cut", "ENOSPC",
                          "ENOSPC+", "EIO", "EDQUOT+"])
    return *fault_at(chance.randrange(1, 1500), what, words), what


def hurt(path):
    """Cuts a file short, or flips one byte of it.

    A kill may have come when it had two names, as the newest checkpoint and as the one
    before: only the first is hurt.
    """
    os.replace(shutil.copy(path, f"{path}.copy"), path)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        if chance.random() < 0.5:
            file.truncate(chance.randrange(size))
        else:
            at = chance.randrange(size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 0x10]))


def status():
    """Draws in the checkpoint; -1: there is none."""
    out = subprocess.run([program, "status", stopped, "--json"], check=True,
                         capture_output=True, text=True).stdout
    at = json.loads(out)["checkpoint"]
    return -1 if at is None else at["warmup"] + at["draws"]


def files_open():
    for name in sorted(os.listdir(stopped)):
        if name.startswith(("trace", "trajectory")) and name.endswith(".h5"):
            with h5py.File(f"{stopped}/{name}", "r") as file:
                file.visititems(lambda _, thing: thing[()]
                                if isinstance(thing, h5py.Dataset) else None)


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
begun = time.time()
finish("run", config, "--output", whole)
length = time.time() - begun
done = early = hurts = 0
seen = {}
best = -1
# A checkpoint can be damaged only where one before it is there already.
while (done < stops or (mode == "damage" and hurts == 0)) \
        and early < 50 + 5 * stops and done < 10 * stops:
    if not os.path.exists(f"{stopped}/config.yaml"):  # what is there is no run
        words = ["run", config, "--output", stopped]
    else:
        words = ["resume", stopped, "--threads", str(1 + done % 3)]
    code, message, what = stop_once(length, words)
    complete = code == 0 or (words[0] == "resume" and is_finished(code, message))
    assert complete or code in (KILLED, 74), (words, what, code, message)
    if code == 74:
        assert message.startswith("tessera"), message
    if complete:  # an error that did no harm, or a kill that came too late
        compare(whole, stopped)
        shutil.rmtree(stopped)
        early += 1
        best = -1
        continue
    if not os.path.exists(f"{stopped}/config.yaml"):
        early += 1
        continue
    now = status()
    if now <= 0:  # stopped while it made its files
        assert best <= 0, f"after {what}: {best} draws were safe: {message}"
        early += 1
        continue
    assert now >= best, f"after {what}: {now} draws, {best} were safe: {message}"
    best = now
    files_open()
    seen[what] = seen.get(what, 0) + 1
    done += 1
    previous = f"{stopped}/checkpoint.h5.previous"
    if mode == "damage" and done >= 3 * hurts + 2 and os.path.exists(previous):
        hurt(f"{stopped}/checkpoint.h5")
        hurts += 1
        best = status()
        assert best >= 0
assert done >= stops, f"only {done} stops, {early} that came early or late: {seen}"
assert mode != "damage" or hurts > 0, "no checkpoint was damaged"
finish("resume", stopped, "--threads", "2")
n_file, n_set, n_number = compare(whole, stopped)
how = ", ".join(f"{n} {what}" for what, n in sorted(seen.items()))
print(f"{early} stops before the first checkpoint or too late, {how}; {hurts} checkpoints "
      f"damaged: {n_file} files, {n_set} data sets, {n_number} numbers are the same")
