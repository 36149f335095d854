"""A command that is stopped again and again ends like one that never was.

    python soak.py TESSERA DIRECTORY COMMAND damage|stops STOPS SEED [FAULT.SO]

COMMAND is a configuration for `run`, which `resume` continues, or the words of a
`solve`, which the same words continue. An uninterrupted one, then one that is stopped
STOPS times and continued each time, runs with other numbers of threads:

    damage  SIGKILL behind each new checkpoint, and after every third the newest one is
            cut short or a byte of it is flipped; the one before it has to do
    stops   SIGKILL or SIGTERM at a random moment; or at a random file operation SIGKILL,
            half a write, a power cut that loses what was not synced, or an error (a full
            disk, a quota, a broken disk) once or from then on (tests/support/fault.c)

One that ends is compared, and the next begins. All must hold the same draws, every file
must open at every stop, and no checkpoint may get lost. SEED gives the same choices
again; only the moments of signals depend on the machine.
"""
import glob
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time

import h5py

from compare_runs import compare

program, folder, command, mode, stops, seed = *sys.argv[1:5], int(sys.argv[5]), sys.argv[6]
fault_library = sys.argv[7] if mode == "stops" else None
chance = random.Random(seed)
whole, stopped = f"{folder}/whole", f"{folder}/stopped"
solves = command.startswith("solve ")
first = shlex.split(command) if solves else ["run", command]
# SIGTERM ends what comes before the runs of a solve without a word.
STOPPED = -signal.SIGKILL, -signal.SIGTERM, 74, 75


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


def is_complete(code, message):
    # of a solve 1 means that a run has not converged
    return code == 0 or (solves and code == 1) or is_finished(code, message)


def finish(*words, **environment):
    process = start(words, **environment)
    message = process.communicate()[1]
    assert is_complete(process.returncode, message), (words, process.returncode, message)


def runs(of):
    """The folders of the runs that have begun."""
    folders = sorted(glob.glob(f"{of}/[0-9]")) if solves else [of]
    return [run for run in folders if os.path.exists(f"{run}/config.yaml")]


def compared():
    pairs = list(zip(runs(whole), runs(stopped), strict=True))
    return [sum(n) for n in zip(*(compare(one, other) for one, other in pairs))]


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


def signal_after(seconds, what, words):
    process = start(words)
    # A checkpoint that is to be damaged has to be one with draws.
    while mode == "damage" and process.poll() is None and not is_farther():
        time.sleep(0.02)
    time.sleep(seconds)
    process.send_signal(what)
    message = process.communicate()[1]
    return process.returncode, message


def faulty(k, what):
    return {"LD_PRELOAD": fault_library, "TSR_FAULT_AT": str(k), "TSR_FAULT_DO": what,
            "TSR_FAULT_DIR": os.path.realpath(stopped),
            "TSR_FAULT_SEED": str(chance.randrange(1 << 30)),
            "TSR_FAULT_COUNT": f"{folder}/count"}


def stop_once(words):
    """One session that something ends: (exit status, message, what)."""
    if mode == "damage":
        # STOPS of them have to fit into the run
        pause = chance.uniform(0.1, 1.0) * min(0.5 * length / stops, 1.5)
        return *signal_after(pause, signal.SIGKILL, words), "kill"
    if chance.random() < 0.4:
        what = chance.choice([signal.SIGKILL, signal.SIGTERM])
        return *signal_after(chance.uniform(0, length), what, words), what.name
    what = chance.choice(["kill", "TERM", "TERM", "tear", "cut", "cut", "ENOSPC",
                          "ENOSPC+", "EIO", "EIO+", "EDQUOT+"])
    process = start(words, **faulty(chance.randrange(1, n_operation), what))
    message = process.communicate()[1]
    return process.returncode, message, what


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
    """Draws in the checkpoints; -1: there is none."""
    draws = -1
    for run in runs(stopped):
        out = subprocess.run([program, "status", run, "--json"], check=True,
                             capture_output=True, text=True).stdout
        at = json.loads(out)["checkpoint"]
        if at is not None:
            draws = max(draws, 0) + at["warmup"] + at["draws"]
    return draws


def files_open():
    for run in runs(stopped):
        for name in sorted(os.listdir(run)):
            if name.startswith(("trace", "trajectory")) and name.endswith(".h5"):
                with h5py.File(f"{run}/{name}", "r") as file:
                    file.visititems(lambda _, thing: thing[()]
                                    if isinstance(thing, h5py.Dataset) else None)


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
print(f"seed {seed}", flush=True)
begun = time.time()
finish(*first, "--output", whole)
length = time.time() - begun
n_operation = 0
if mode == "stops":  # in the course of one without a stop
    finish(*first, "--output", stopped, **faulty(0, ""))
    n_operation = int(open(f"{folder}/count").read())
    compared()
    shutil.rmtree(stopped)
done = early = hurts = n_whole = 0
seen = {}
best = -1
# A checkpoint can be damaged only where one before it is there already.
while (done < stops or (mode == "damage" and hurts == 0)) \
        and early < 50 + 5 * stops and done < 10 * stops:
    if solves or not runs(stopped):  # what is there is no run
        words = [*first, "--output", stopped]
    else:
        words = ["resume", stopped, "--threads", str(1 + done % 3)]
    code, message, what = stop_once(words)
    complete = is_complete(code, message)
    assert complete or code in STOPPED, (words, what, code, message)
    if code == 74:
        assert message.splitlines()[-1].startswith("tessera"), message
    if complete:  # an error that did no harm, or a signal that came too late
        compared()
        shutil.rmtree(stopped)
        early += 1
        n_whole += 1
        best = -1
        continue
    if not runs(stopped):
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
if solves or not runs(stopped):
    finish(*first, "--output", stopped)
else:
    finish("resume", stopped, "--threads", "2")
n_file, n_set, n_number = compared()
how = ", ".join(f"{n} {what}" for what, n in sorted(seen.items()))
print(f"{early} stops before the first checkpoint or too late, {how}; {hurts} checkpoints "
      f"damaged; {n_whole + 1} whole ones: {n_file} files, {n_set} data sets, {n_number} "
      f"numbers are the same (seed {seed})")
