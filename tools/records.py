#!/usr/bin/env python3
"""Writes the table of docs/records.md: `tessera solve` on a folder of cases.

A case is a folder with exp.dat and a model. No case is left out, and no setting
differs between cases. --jobs cases run at a time, in turn on --devices, the
largest first. After --stop seconds all are interrupted, and the table has the
state that they leave. --table RECORDS writes it without a run.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import signal
import subprocess
import time

from coverage import add_options, device_slots, write_page


def cases(x):
    """(name, model, curve) of each case."""
    found = []
    for curve in glob.glob(os.path.join(x.data, "*", "exp.dat")):
        folder = os.path.dirname(curve)
        for model in ("model_rechained.pdb", "model.pdb", "model.cif"):
            if os.path.exists(os.path.join(folder, model)):
                found.append((os.path.basename(folder),
                              os.path.join(folder, model), curve))
                break
    return sorted(found, key=lambda c: -os.path.getsize(c[1]))


def solve(x, slots, begin, name, model, curve):
    device, own = slots.get(), time.monotonic()
    child = subprocess.Popen(
        [x.tessera, "solve", model, curve, "-o", os.path.join(x.output, name),
         "--json", "-q", "--device", device, "--threads", str(x.threads),
         "--time-limit", str(x.time_limit)], stdout=subprocess.DEVNULL)
    for patience, stop in ((max(begin + x.stop - own, 1), signal.SIGINT),
                           (25, signal.SIGKILL)):
        try:
            child.wait(min(patience, 1e6))
            break
        except subprocess.TimeoutExpired:
            child.send_signal(stop)
    child.wait()
    record = {"case": name, "seconds": time.monotonic() - own, "verdict": {}}
    slots.put(device)
    path = os.path.join(x.output, name, "verdict.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            record["verdict"] = json.load(f)
    return record


def row(record):
    v = record["verdict"]
    rigid, runs = (v.get("rigid") or [{}])[0], v.get("runs") or []
    chosen = next((r for r in runs if r["states"] == v.get("states")), {})

    def interval(key, form):
        own = chosen.get(key)
        return f"{own['mean']:{form}} [{own['q5']:{form}}, " \
            f"{own['q95']:{form}}]" if own else ""
    states = "not finished"
    if chosen:
        gains = [f"{r['gain']:+.1f} ± {r['gain_error']:.1f}" for r in runs
                 if r.get("gain") is not None]
        states = f"{chosen['states']}{' ?' if v['undecided'] else ''}" + \
            (f" ({', '.join(gains)})" if gains else "")
    elif v.get("finished"):
        states = "the rigid model"
    chi2 = rigid.get("reduced_chi2")
    return (f"| {record['case']} | {'' if chi2 is None else f'{chi2:.3g}'} | "
            f"{states} | {interval('chi2', '.3g')} | {interval('rg', '.2f')} | "
            f"{('no', 'yes')[v['converged']] if chosen else ''} | "
            f"{record['seconds']:.0f} |")


def table(records):
    return "\n".join(
        ["| case | rigid, reduced χ² | states (gain of one more, nat) | "
         "χ²/N | Rg, Å | converged | s |", "|---|---|---|---|---|---|---|"] +
        [row(r) for r in sorted(records["cases"], key=lambda r: r["case"])] +
        ["", records["how"]])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    x = add_options(p, (
        ("data", "../shared/data/saxs", "folder of the cases"),
        ("table", "", "records.json of an earlier run"),
        ("write", "", "page whose table, between its marks, is replaced"),
        ("jobs", 1, "cases at a time"), ("threads", os.cpu_count(), "of each"),
        ("devices", "auto", "as --device, with commas"),
        ("time-limit", 300.0, "s of a run"), ("stop", 1e9, "s"),
        ("tessera", "build/tessera", "program"),
        ("output", "runs/records", "folder")))
    if x.table:
        with open(x.table, encoding="utf-8") as f:
            records = json.load(f)
    else:
        os.makedirs(x.output, exist_ok=True)
        listed = re.findall(r"^[* ] (\d+)  (.*?) \(", subprocess.run(
            [x.tessera, "devices"], capture_output=True, text=True).stdout,
            re.MULTILINE)
        used = [dict(listed).get(d, f"device `{d}`") for d in x.devices]
        records = {"cases": [], "how":
                   f"`tessera solve MODEL CURVE --threads {x.threads} "
                   f"--time-limit {x.time_limit:g}`, {x.jobs} at a time on " +
                   ", ".join(f"{used.count(u)} × {u}" for u in dict.fromkeys(
                       used)) + "."}
        slots, begin = device_slots(x), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(x.jobs) as pool:
            for work in concurrent.futures.as_completed(
                    [pool.submit(solve, x, slots, begin, *c)
                     for c in cases(x)]):
                records["cases"].append(work.result())
                with open(os.path.join(x.output, "records.json"), "w") as f:
                    json.dump(records, f)
    text = table(records)
    print(text)
    if x.write:
        write_page(x.write, "records.py", text)


if __name__ == "__main__":
    main()
