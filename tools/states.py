#!/usr/bin/env python3
"""How often is the number of states found, for curves whose number is known?

    tools/states.py MODEL [--truths N] [--errors E,...] [--jobs N]
                    [--devices D,...] [--budget S] [--set KEY=VALUE] [-o DIR]
    tools/states.py --table RECORDS...

A truth is one structure, or two: independent draws of the prior, with a weight
of the flat prior and one c2. Its data are those of tools/coverage.py: a curve
of all atoms with normal errors. `tessera run` samples one and two states, with
--set as settings of both, and `tessera compare` judges. DIR/records.json has a
record for each curve; a second command goes on from there. After --budget
seconds no curve begins.
"""
import argparse
import concurrent.futures
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time

import numpy as np

import coverage


def mix(x, model, prior, job, device):
    """Writes the curve of a truth; returns its path and its record."""
    t, error, n_state = job
    # draws 3t of the prior for one state, 3t + 1 and 3t + 2 for two
    draws = [3 * t] if n_state == 1 else [3 * t + 1, 3 * t + 2]
    weight = np.random.default_rng([x.seed, t]).uniform() if n_state == 2 else 1
    c1, c2 = prior["c1"][draws[0]], prior["c2"][draws[0]]
    with x.drawing[t]:
        curves = [np.loadtxt(coverage.make_curve(x, model, k, c1, c2, device),
                             usecols=(0, 1)) for k in draws]
    path = os.path.join(x.output, f"curve_{t}_{n_state}_{error:g}.dat")
    np.savetxt(path, weight * curves[0] + (1 - weight) * curves[-1])
    rg = [float(prior["rg"][k]) for k in draws]
    spread = abs(rg[0] - rg[-1]) * math.sqrt(weight * (1 - weight))
    return path, {"truth": t, "error": error, "states": n_state, "rg": rg,
                  "weight": float(weight), "c2": float(c2), "spread": spread}


def judge(x, model, prior, job, device):
    """Samples one and two states; returns the record of a curve."""
    began = time.monotonic()
    curve, record = mix(x, model, prior, job, device)
    label = curve[:-len(".dat")]
    coverage.write_data(curve, label + "_data.dat", record["error"],
                        [x.seed, record["truth"], record["states"]])
    coverage.tessera(x, "init", model, label + "_data.dat", "-o",
                     label + ".yaml", "--force")
    runs = [f"{label}_run{n}" for n in (1, 2)]
    for n, run in enumerate(runs, start=1):
        shutil.rmtree(run, ignore_errors=True)
        settings = [f"structure.states={n}", f"model_error.file={label}_error.h5",
                    coverage.CONFORMATIONS, "sampler.evidence=true",
                    "output.trajectory=none", *x.set]
        coverage.tessera(x, "run", label + ".yaml", "-o", run, "-q", "--device",
                         device, "--threads", x.threads,
                         *[w for s in settings for w in ("--set", s)])
    found = json.loads(subprocess.run(
        [x.tessera, "compare", *runs, "--json", "-q"], check=True, text=True,
        capture_output=True).stdout)["runs"]
    for run in runs if not x.keep else ():
        shutil.rmtree(run)
    record.update(seconds=time.monotonic() - began,
                  gain=found[1]["evidence_gain"],
                  gain_error=found[1]["evidence_gain_error"],
                  **{key: [r[key] for r in found] for key in (
                      "evidence", "probability", "excluded", "converged")})
    print(f"{job}: {record['gain']} +- {record['gain_error']} nat, "
          f"{record['seconds']:.0f} s", file=sys.stderr, flush=True)
    return record


def measure(x):
    model, stop = x.model, time.monotonic() + x.budget
    path = os.path.join(x.output, "records.json")
    records = json.load(open(path)) if os.path.exists(path) else []
    done = {(r["truth"], r["error"], r["states"]) for r in records}
    x.drawing = [threading.Lock() for _ in range(x.truths)]
    jobs = [(t, e, n) for t in range(x.truths) for e in x.errors
            for n in (1, 2) if (t, e, n) not in done]
    x.truths *= 3  # draws of the prior
    prior = coverage.draw_prior(x, model)

    def work(k):
        while jobs and time.monotonic() < stop:
            try:
                records.append(judge(x, model, prior, jobs.pop(0),
                                     x.devices[k % len(x.devices)]))
            except (RuntimeError, subprocess.CalledProcessError) as e:
                print(f"failed: {e}", file=sys.stderr, flush=True)
            with open(os.path.join(x.output, f"records{k}.new"), "w") as f:
                json.dump(list(records), f)
            os.replace(f.name, path)

    with concurrent.futures.ThreadPoolExecutor(x.jobs) as pool:
        list(pool.map(work, range(x.jobs)))
    return records


def row(label, records):
    """Counts by `compare`; then of log odds (prior 2^-n) beyond log 20 by 0, 1
    and 2 standard errors. Last: the mean of Z of the wrong over Z of the true
    number, which is 1 for exact evidence of a model that is right."""
    kinds = [tuple(r["excluded"]) for r in records]
    cells = [label, str(len(records)), " / ".join(
        str(kinds.count(k)) for k in ((0, 1), (0, 0), (1, 0)))]
    for n_error in range(3):
        odds = [(r["gain"] - math.log(2), n_error * r["gain_error"])
                for r in records]
        one = sum(-v - e >= math.log(20) for v, e in odds)
        two = sum(v - e >= math.log(20) for v, e in odds)
        cells.append(f"{one} / {len(records) - one - two} / {two}")
    gain = np.array([r["gain"] for r in records])
    wrong = np.exp(np.where([r["states"] == 1 for r in records], gain, -gain))
    cells += [f"{np.mean([r['probability'][1] for r in records]):.2f}",
              f"{gain.mean():+.1f}, {gain.min():+.1f} to {gain.max():+.1f}",
              f"{np.median([r['gain_error'] for r in records]):.2f}",
              f"{wrong.mean():.2f} ± {(wrong.var() / len(wrong)) ** 0.5:.2f}"]
    return "| " + " | ".join(cells) + " |"


def table(records):
    known = [r for r in records if r["probability"][1] is not None]
    lines = ["| truth | curves | 1 / undecided / 2 states | beyond 20 to 1 | "
             "by one error | by two | mean P(2) | gain, nat | its error | "
             "odds against the truth |", "|---" * 10 + "|"]
    for error in sorted({r["error"] for r in known}):
        for n, low, high in ((1, 0, 1), (2, 0, math.inf), (2, 0, 0.5),
                             (2, 0.5, 1), (2, 1, 2), (2, 2, math.inf)):
            own = [r for r in known if low <= r["spread"] < high
                   and (r["states"], r["error"]) == (n, error)]
            label = f"{n} state{'s' * (n > 1)}, error {100 * error:g} %"
            if n > 1 and (low, high) != (0, math.inf):
                label += f", Rg ± {low:g} to {high:g} Å"
            if own:
                lines.append(row(label, own))
    n_bad = sum(not all(r["converged"]) for r in records)
    seconds = np.median([r["seconds"] for r in records])
    return "\n".join(lines + ["", f"{len(records)} curves, {n_bad} with a run "
                              f"not converged, median {seconds:.0f} s."])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", nargs="?")
    p.add_argument("--table", nargs="+", metavar="RECORDS", default=[])
    p.add_argument("--truths", type=int, default=40, help="of each number")
    p.add_argument("--seed", type=int, default=1000, help="of the truths")
    p.add_argument("--errors", default="0.01,0.03")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--threads", type=int, default=1, help="of each run")
    p.add_argument("--devices", default="auto", help="as --device, with commas")
    p.add_argument("--budget", type=float, default=math.inf, help="s")
    p.add_argument("--set", action="append", default=[], help="as of run")
    p.add_argument("--keep", action="store_true", help="the folders of runs")
    p.add_argument("--tessera", default="build/tessera")
    p.add_argument("-o", "--output", default="runs/states")
    x = p.parse_args()
    x.errors = [float(e) for e in x.errors.split(",")]
    x.devices = x.devices.split(",")
    records = [r for path in x.table for r in json.load(open(path))]
    if not x.table:
        records = measure(x)
    print(table(records) if records else "no curve")


if __name__ == "__main__":
    main()
