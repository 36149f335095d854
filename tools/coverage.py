#!/usr/bin/env python3
"""Do 90 % intervals of `tessera run` hold the truth, when data come from atoms?

For each model, `tessera init` finds the parts that move. Truths are draws of a
run with --prior-only: conformation and c2. `tessera profile` computes the curve
of all their atoms, with the layer of the truth's own surface at its c2. Normal
errors are added, E of the intensity up to q = 0.1 and five times as much from
q = 0.2 on, linear between. `tessera run` then samples the posterior from the
model, which is not the truth, until it has converged. Rg, pose and c2 of the
truth are in the trace of the prior, those of the posterior in the trace of its
run, under the same names.

Each posterior is one process of --threads threads on one device; --jobs of them
run at a time, in turn on --devices. A truth is done with all models and errors
before the next begins; after --budget seconds no posterior begins. records.json
in --output has a record for each: the same command continues with those that
are missing, and --table RECORDS... writes the table of several.
"""
import argparse
import concurrent.futures
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np

Q_LOW, Q_HIGH, N_Q = 0.01, 0.35, 201     # 1/Angstrom, points from q = 0
TRUTH_STEPS = 20000                      # of the prior, between two truths
CONFORMATIONS = "model_error.conformations=512"  # as many as a run takes cost
                                                 # more time than the run
# Rows of the table, the variables of the trace that belong to each, and the
# range of the truth's c2.
GROUPS = [("Rg", r"rg", 0, 9), ("Rg, c2 below 1", r"rg", 0, 1),
          ("Rg, c2 above 2", r"rg", 2, 9), ("D_max", r"d_max", 0, 9),
          ("c1", r"c1", 0, 9), ("c2", r"c2", 0, 9),
          ("distance of domains", r"pose_\d+_distance", 0, 9),
          ("direction of domains", r"pose_\d+_(from|to)_[xyz]", 0, 9),
          ("tails", r"tail_\d+_(distance|[xyz])", 0, 9)]


def tessera(x, *words):
    """The exit status; 1: the run has not converged."""
    done = subprocess.run([x.tessera, *map(str, words)], capture_output=True,
                          text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr[-800:]}")
    return done.returncode


def settings(*pairs):
    return [word for pair in pairs for word in ("--set", pair)]


def read_trace(folder):
    """{name: [n_chain][n_draw]} of the quantities that the table has."""
    with h5py.File(os.path.join(folder, "trace.h5")) as f:
        return {name: values[()] for name, values in f["posterior"].items()
                if any(re.fullmatch(g[1], name) for g in GROUPS)}


def draw_prior(x, model):
    """The values of each truth. The folder of the model has the run."""
    folder = os.path.join(x.output, name_of(model))
    config, prior = (os.path.join(folder, n) for n in ("prior.yaml", "prior"))
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(prior, "trace.h5")):
        tessera(x, "init", model, "-o", config, "--force")
        tessera(x, "run", config, "--prior-only", "-o", prior, "-q",
                "--device", x.devices[0], "--threads", 1, *settings(
                    f"seed={x.seed}", "contrast.c1=infer", "contrast.c2=infer",
                    "sampler.chains=1", "sampler.temperatures=1",
                    f"sampler.draws={x.truths}",
                    f"sampler.warmup={TRUTH_STEPS}",
                    f"sampler.thin={TRUTH_STEPS}", "output.trajectory_every=1"))
    return {name: values[0] for name, values in read_trace(prior).items()}


def make_curve(x, model, t, c1, c2, device):
    """The curve of all atoms of draw t of the prior: path of the file."""
    folder = os.path.join(x.output, name_of(model))
    curve, atoms = (os.path.join(folder, f"truth_{t}.{e}")
                    for e in ("dat", "pdb"))
    if not os.path.exists(curve):
        tessera(x, "export", os.path.join(folder, "prior"), "--draws",
                f"0/{t}", "--atoms", "all", "-o", atoms, "--force", "-q")
        tessera(x, "profile", atoms, "--c1", float(c1), "--c2", float(c2),
                "--q-max", Q_HIGH, "--n-q", N_Q, "--device", device, "-o", curve,
                "--force", "-q")
    return curve


def write_data(curve, path, error, seed):
    q, intensity = np.loadtxt(curve, usecols=(0, 1), unpack=True)
    keep = q >= Q_LOW
    q, intensity = q[keep], 100.0 * intensity[keep] / intensity[0]
    sigma = intensity * error * (1.0 + 4.0 * np.clip((q - 0.1) / 0.1, 0, 1))
    noise = np.random.default_rng(seed).standard_normal(q.size)
    np.savetxt(path, np.c_[q, intensity + sigma * noise, sigma], fmt="%.8g",
               header="q (1/Angstrom), I, sigma")


def infer(x, slots, truth, model, t, error):
    """One posterior: {quantity: [truth, mean, sd, share of draws below]}."""
    if time.monotonic() > x.stop:
        return None
    folder = os.path.join(x.output, name_of(model))
    run = os.path.join(folder, f"run_{t}_{error:g}")
    data, config = run + ".dat", run + ".yaml"
    device, begin = slots.get(), time.monotonic()
    try:
        # the same noise in units of sigma for all errors of a truth
        write_data(make_curve(x, model, t, truth["c1"][t],
                              truth["c2"][t], device), data,
                   error, [x.seed, t])
        tessera(x, "init", model, data, "-o", config, "--force")
        shutil.rmtree(run, ignore_errors=True)
        status = tessera(
            x, "run", config, "-o", run, "-q", "--device", device, "--threads",
            x.threads, "--until", x.until, *settings(
                f"seed={x.seed + t}", f"sampler.time_limit={x.limit}",
                CONFORMATIONS, "output.trajectory=none", *x.set))
        trace = read_trace(run)
    except (RuntimeError, OSError) as why:
        print(f"{run}: {why}", file=sys.stderr, flush=True)
        return None
    finally:
        slots.put(device)
    shutil.rmtree(run)
    return {"model": name_of(model), "truth": t, "error": error,
            "seconds": time.monotonic() - begin, "converged": status == 0,
            "values": {n: [float(truth[n][t]), float(v.mean()), float(v.std()),
                           float(np.mean(v < truth[n][t]))]
                       for n, v in trace.items() if n in truth}}


def table(records):
    """A cell has the share of intervals that hold the truth, over truths and
    variables, and of z the mean and the spread."""
    lines = ["| model | error | truths | converged | " +
             " | ".join(g[0] for g in GROUPS) + " |", "|---" * (4 + len(GROUPS)) + "|"]
    for model, error in sorted({(r["model"], -r["error"]) for r in records}):
        own = [r for r in records
               if (r["model"], -r["error"]) == (model, error)]
        cells = [model, f"{-100 * error:g} %", str(len(own)),
                 str(sum(r["converged"] for r in own))]
        for _, pattern, low, high in GROUPS:
            v = np.array([[v for name, v in r["values"].items()
                           if re.fullmatch(pattern, name)] for r in own
                          if low <= r["values"]["c2"][0] < high])
            if v.size == 0:
                cells.append("")
                continue
            z = (v[..., 1] - v[..., 0]) / (v[..., 2] + 1e-12)
            held = np.mean((v[..., 3] > 0.05) & (v[..., 3] < 0.95))
            cells.append(f"{held:.2f} ({z.mean():+.1f}, {z.std():.2f})")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def name_of(model):
    folder, name = os.path.split(os.path.abspath(model))
    return os.path.basename(folder) if name == "model.pdb" else \
        name.split(".")[0]


def write_page(path, tool, text):
    """Replaces what is between the marks of the tool."""
    begin, end = f"<!-- {tool}: begin -->\n", f"<!-- {tool}: end -->"
    with open(path, encoding="utf-8") as f:
        before, rest = f.read().split(begin)
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + begin + text + "\n" + end + rest.split(end)[1])


def device_slots(x):
    """A job takes a device, and puts it back."""
    slots = queue.Queue()
    for i in range(x.jobs):
        slots.put(x.devices[i % len(x.devices)])
    return slots


def add_options(parser, options):
    for name, value, text in options:
        parser.add_argument("--" + name, type=type(value), default=value,
                            help=text + " (%(default)s)")
    x = parser.parse_args()
    x.devices = x.devices.split(",")
    return x


def measure(x):
    x.stop = time.monotonic() + x.budget
    path = os.path.join(x.output, "records.json")
    records = json.load(open(path)) if os.path.exists(path) else []
    done = {(r["model"], r["truth"], r["error"]) for r in records}
    slots = device_slots(x)
    with concurrent.futures.ThreadPoolExecutor(x.jobs) as pool:
        truths = dict(zip(x.model, pool.map(lambda m: draw_prior(x, m),
                                            x.model)))
        work = [pool.submit(infer, x, slots, truths[m], m, t, e)
                for t in range(x.truths) for m in x.model for e in x.errors
                if (name_of(m), t, e) not in done]
        for future in concurrent.futures.as_completed(work):
            record = future.result()
            if record is None:
                continue
            records.append(record)
            with open(path + ".new", "w") as f:
                json.dump(records, f)
            os.replace(path + ".new", path)
            rg = record["values"]["rg"]
            print(f"{record['model']} {record['truth']} {record['error']:g}: "
                  f"{record['seconds']:.0f} s, "
                  f"{'' if record['converged'] else 'not '}converged, "
                  f"Rg {rg[0]:.2f}: {rg[1]:.2f} +- {rg[2]:.2f}",
                  file=sys.stderr, flush=True)
    return records


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", nargs="*")
    p.add_argument("--table", nargs="+", metavar="RECORDS", default=[])
    p.add_argument("--set", action="append", default=[], help="as of run")
    x = add_options(p, (
        ("write", "", "page whose table, between its marks, is replaced"),
        ("truths", 24, "of each model"), ("seed", 1000, "of the truths"),
        ("errors", "0.02,0.01,0.005", "of I at low q"),
        ("jobs", 1, "processes at a time"), ("threads", 1, "of each process"),
        ("devices", "auto", "as --device, with commas"),
        ("until", "rhat<1.02,ess>200", "as of run"),
        ("limit", 0.0, "s of a run"), ("budget", 1e9, "s"),
        ("tessera", "build/tessera", "program"),
        ("output", "runs/coverage", "folder")))
    x.errors = [float(e) for e in x.errors.split(",")]
    records = [r for path in x.table for r in json.load(open(path))]
    records = records or measure(x)
    if not records:
        sys.exit("no posterior")
    text = table(records)
    print(text)
    if x.write:
        write_page(x.write, "coverage.py", text)


if __name__ == "__main__":
    main()
