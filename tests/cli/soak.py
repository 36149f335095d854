"""A run that is killed again and again ends like one that never was.

    python soak.py TESSERA DIRECTORY CONFIG KILLS [damage]

An uninterrupted run, then one that SIGKILL ends at KILLS random moments and
that is resumed each time, with other numbers of threads; with `damage`, the
newest checkpoint is cut short or a byte of it is flipped after every third
kill, and the one before it has to do. Both must hold the same draws, and
every file must open at every stop.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py

from compare_runs import compare

program, folder, config, kills = *sys.argv[1:4], int(sys.argv[4])
damage = "damage" in sys.argv[5:]
chance = random.Random(7)


def start(*words):
    return subprocess.Popen([program, *words, "--quiet"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def finish(*words):
    process = start(*words)
    message = process.communicate()[1]
    assert process.returncode == 0, (words, process.returncode, message)
    return message


def kill_after(seconds, *words):
    """1 where it was killed; 0 where it was done before."""
    process = start(*words)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    message = process.communicate()[1]
    assert process.returncode in (-signal.SIGKILL, 0, 64), (process.returncode, message)
    if process.returncode == 64:
        assert "finished" in message, message
    return process.returncode == -signal.SIGKILL


def hurt(path):
    """Cuts a file short, or flips one byte of it."""
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


def files_open(directory):
    for name in sorted(os.listdir(directory)):
        if name.startswith(("trace", "trajectory")) and name.endswith(".h5"):
            with h5py.File(f"{directory}/{name}", "r") as file:
                file.visititems(lambda _, thing: thing[()]
                                if isinstance(thing, h5py.Dataset) else None)


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
whole, killed = f"{folder}/whole", f"{folder}/killed"
begun = time.time()
finish("run", config, "--output", whole)
length = time.time() - begun
done = hurts = fell_back = early = 0
while not os.path.exists(f"{killed}/checkpoint.h5"):
    shutil.rmtree(killed, ignore_errors=True)
    early += kill_after(chance.uniform(0.02, 1.0) * length, "run", config, "--output",
                        killed)
while done < kills:
    subprocess.run([program, "status", killed], check=True, stdout=subprocess.DEVNULL)
    if damage and done % 3 == 2 and os.path.exists(f"{killed}/checkpoint.h5.previous"):
        hurt(f"{killed}/checkpoint.h5")
        hurts += 1
    pause = chance.uniform(0.1, 1.0) * min(length, 1.5)
    if not kill_after(pause, "resume", killed, "--threads", str(1 + done % 3)):
        break
    files_open(killed)
    done += 1
assert done == kills, f"only {done} kills before the run was over"
message = finish("resume", killed, "--threads", "2")
n_file, n_set, n_number = compare(whole, killed)
print(f"{early} kills before the first checkpoint, {done} after it, {hurts} checkpoints "
      f"damaged: {n_file} files, {n_set} data sets, {n_number} numbers are the same")
