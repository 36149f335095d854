#!/usr/bin/env python3
"""How often the number of states is found, by curves whose number is known.

    python3 tools/states.py MODEL --flexible A:97-103 -o DIR

Each truth is one structure, or two with weights: independent draws of the prior
of the model, c2 from its prior, weights from the flat prior. Its curve is that
of all atoms (`tessera simulate`), with normal errors. Each curve is sampled
with one and with two states, and `tessera compare` judges the runs. Several
runs go on at once, each on one device; those that begin before --seconds are
counted. DIR/results.json has a record for each curve; with --table only, the
tables of existing records are printed. Needs numpy."""

import argparse
import concurrent.futures
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np

PROGRAM = os.path.join(os.environ.get("BUILD", "build"), "tessera")
EXACT = 1e-6  # relative error of the simulated curves before noise is added
CONFIG = """\
name: states
structure:
  file: {model}
  flexible: [{flexible}]
contrast: {{c2: infer}}
sampler: {{evidence: true}}
output: {{trajectory: none}}
simulate: {{steps: 3000, points: 100, q_range: [0.01, 0.3], error: 1e-6}}
"""


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("model")
    p.add_argument("--flexible", default="A:97-103", metavar="RANGES",
                   help="flexible residues, with commas between ranges")
    p.add_argument("-o", "--output", default="states", metavar="DIR")
    p.add_argument("--truths", type=int, default=40, metavar="N",
                   help="curves of each number of states and error")
    p.add_argument("--errors", default="0.01,0.03", metavar="E,...",
                   help="relative errors at q = 0.1 1/Angstrom")
    p.add_argument("--jobs", type=int, default=1, metavar="N")
    p.add_argument("--devices", default="auto", metavar="D,...",
                   help="jobs are dealt to these devices in turn")
    p.add_argument("--threads", type=int, default=1, help="of each run")
    p.add_argument("--seconds", type=float, default=math.inf,
                   help="no curve begins later")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                   help="settings of all runs")
    p.add_argument("--table", action="store_true",
                   help="print the tables of an earlier call")
    return p.parse_args()


def tessera(*words, settings=(), wanted=(0,)):
    command = [PROGRAM, *map(str, words), "-q"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode not in wanted:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


def make_truth(o, place, states, number):
    """Returns (curve without noise [points][3], record)."""
    rng = np.random.default_rng([number, states])
    c2 = -1.0
    while not 0.0 <= c2 <= 4.0:  # prior of contrast.c2
        c2 = rng.normal(1.0, 1.5)
    weight = rng.uniform() if states == 2 else 1.0
    curves, rg = [], []
    for k in range(states):
        path = os.path.join(place, f"truth{k + 1}.dat")
        tessera("simulate", o.config, "-o", path, settings=(
            f"simulate.c2={c2:.4f}",
            f"seed={1000 * number + 10 * states + k + 1}"))
        with open(path) as file:
            rg.append(float(re.search(r"Rg ([\d.]+) Ang", file.read())[1]))
        curves.append(np.loadtxt(path))
    curve = weight * curves[0] + (1.0 - weight) * curves[-1]
    return curve, {"states": states, "number": number, "c2": c2, "rg": rg,
                   "weight": weight}


def judge(o, job, device):
    """Samples a curve with one and two states; returns its record."""
    error, states, number = job
    place = os.path.join(o.output, f"{states}-{number}-{error:g}")
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    began = time.time()
    curve, record = make_truth(o, place, states, number)
    curve[:, 2] *= error / EXACT
    rng = np.random.default_rng([number, states, round(error / EXACT)])
    curve[:, 1] += curve[:, 2] * rng.normal(size=len(curve))
    data = os.path.join(place, "curve.dat")
    np.savetxt(data, curve)
    runs = [os.path.join(place, str(n)) for n in (1, 2)]
    for n, run in enumerate(runs, start=1):
        tessera("run", o.config, "-o", run, "--device", device, "--threads",
                o.threads, wanted=(0, 1), settings=(
                    f"data.0.file={os.path.abspath(data)}",
                    f"structure.states={n}", *o.set))
    found = json.loads(tessera("compare", *runs, "--json"))["runs"]
    if o.jobs_left:  # the last folders stay, to be looked at
        shutil.rmtree(place)
    record.update(error=error, seconds=time.time() - began,
                  log=[r["evidence"]["log"] for r in found],
                  log_error=[r["evidence"]["error"] for r in found],
                  converged=[r["converged"] for r in found],
                  loo_gain=found[1]["loo_gain"],
                  gain=found[1]["evidence_gain"],
                  gain_error=found[1]["evidence_gain_error"],
                  probability=[r["probability"] for r in found],
                  excluded=[r["excluded"] for r in found])
    return record


def run_all(o):
    """Truths of both kinds and all errors in turn, so that what is done at the
    end of the time is balanced."""
    devices = o.devices.split(",")
    o.jobs_left = [(float(e), n, k) for k in range(1, o.truths + 1)
                   for e in o.errors.split(",") for n in (1, 2)]
    end, records = time.time() + o.seconds, []

    def work(k):
        device = devices[k % len(devices)]
        while o.jobs_left and time.time() < end:
            job = o.jobs_left.pop(0)
            try:
                records.append(judge(o, job, device))
            except (RuntimeError, TypeError) as trouble:
                print(f"{job}: {trouble}", file=sys.stderr, flush=True)
            with open(os.path.join(o.output, "results.json"), "w") as file:
                json.dump(list(records), file, indent=0)

    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        list(pool.map(work, range(o.jobs)))
    return records


def spread(record):
    """Standard deviation of Rg between the states of a truth, Angstrom."""
    w = record["weight"]
    return abs(record["rg"][0] - record["rg"][-1]) * math.sqrt(w * (1.0 - w))


def row(name, records):
    """Counts of one state, undecided and two by `compare`, then by log odds
    beyond log 20 by 0, 1 and 2 standard errors."""
    kinds = [tuple(r["excluded"]) for r in records]
    cells = [name, str(len(records)), "/".join(
        str(kinds.count(k)) for k in ((0, 1), (0, 0), (1, 0)))]
    for errors in range(3):
        odds = [(r["gain"] - math.log(2.0), errors * r["gain_error"])
                for r in records]
        two = sum(x - e >= math.log(20.0) for x, e in odds)
        one = sum(-x - e >= math.log(20.0) for x, e in odds)
        cells.append(f"{one}/{len(records) - one - two}/{two}")
    for values in ([r["probability"][1] for r in records],
                   [r["gain"] for r in records],
                   [r["gain_error"] for r in records]):
        cells.append(f"{np.mean(values):.2f}")
    print("| " + " | ".join(cells) + " |")


def tables(records):
    records = [r for r in records if r["gain"] is not None
               and r["gain_error"] is not None]
    print("| truth | curves | 1/undecided/2 | by 0 errors | 1 | 2 | mean P(2) "
          "| gain, nat | its error |\n|" + "---|" * 9)
    for error in sorted({r["error"] for r in records}):
        for n, low, high in ((1, 0, 1), (2, 0, math.inf), (2, 0, 0.5),
                             (2, 0.5, 1), (2, 1, 2), (2, 2, math.inf)):
            some = [r for r in records if low <= spread(r) < high
                    and (r["states"], r["error"]) == (n, error)]
            name = f"{n} state{'s' * (n > 1)}, {100 * error:g} %"
            if low > 0 or 1 < n < high < math.inf:
                name += f", spread of Rg {low:g} to {high:g} Å"
            if some:
                row(name, some)
    both = sum(all(r["converged"]) for r in records)
    seconds = np.mean([r["seconds"] for r in records])
    print(f"\n{both} of {len(records)} with both runs converged; "
          f"{seconds:.0f} s each")


def main():
    o = arguments()
    os.makedirs(o.output, exist_ok=True)
    o.config = os.path.join(o.output, "states.yaml")
    if not o.table:
        flexible = ", ".join(f'"{r}"' for r in o.flexible.split(","))
        with open(o.config, "w") as file:
            file.write(CONFIG.format(model=os.path.abspath(o.model),
                                     flexible=flexible))
        run_all(o)
    with open(os.path.join(o.output, "results.json")) as file:
        tables(json.load(file))


if __name__ == "__main__":
    main()
