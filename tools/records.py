#!/usr/bin/env python3
"""Writes the table of docs/records.md: `tessera batch` on a folder of cases.

A case is a folder with exp.dat and a model. No case is left out, and no setting
differs between cases. --jobs cases run at a time, in turn on --devices, the
largest first. After --stop seconds all are interrupted, and the table has the
state that they leave. --table FOLDER writes it without a run.
"""
import argparse
import glob
import json
import os
import re
import signal
import subprocess

from coverage import add_options, write_page


def cases(x):
    """(name, model, curve) of each case."""
    found = []
    for curve in glob.glob(os.path.join(x.data, "*", "exp.dat")):
        folder = os.path.abspath(os.path.dirname(curve))
        for model in ("model_rechained.pdb", "model.pdb", "model.cif"):
            if os.path.exists(os.path.join(folder, model)):
                found.append((os.path.basename(folder),
                              os.path.join(folder, model),
                              os.path.join(folder, "exp.dat")))
                break
    return sorted(found, key=lambda c: -os.path.getsize(c[1]))


def solve(x):
    os.makedirs(x.output, exist_ok=True)
    table = os.path.join(x.output, "cases.tsv")
    with open(table, "w", encoding="utf-8") as f:
        f.writelines("\t".join(line) + "\n" for line in
                     [("name", "model", "curve"), *cases(x)])
    child = subprocess.Popen(
        [x.tessera, "batch", table, "-o", x.output, "--jobs", str(x.jobs),
         "--threads", str(x.threads * x.jobs),
         *(word for d in x.devices for word in ("--device", d)),
         "--", "--time-limit", str(x.time_limit)], stdout=subprocess.DEVNULL)
    for patience, stop in ((x.stop, signal.SIGINT), (60, signal.SIGKILL)):
        try:
            child.wait(patience)
            break
        except subprocess.TimeoutExpired:
            child.send_signal(stop)


def read(folder):
    """The rows of the table, and their verdicts."""
    with open(os.path.join(folder, "batch.json"), encoding="utf-8") as f:
        records = json.load(f)["rows"]
    for record in records:
        path = os.path.join(folder, record["name"], "verdict.json")
        record["verdict"] = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                record["verdict"] = json.load(f)
    return sorted(records, key=lambda record: record["name"])


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
    return (f"| {record['name']} | {'' if chi2 is None else f'{chi2:.3g}'} | "
            f"{states} | {interval('chi2', '.3g')} | {interval('rg', '.2f')} | "
            f"{('no', 'yes')[v['converged']] if chosen else ''} | "
            f"{record['seconds'] or 0:.0f} |")


def how(x):
    listed = dict(re.findall(r"^[* ] (\d+)  (.*?) \(", subprocess.run(
        [x.tessera, "devices", "--no-test"], capture_output=True,
        text=True).stdout, re.MULTILINE))
    used = [listed.get(d, f"device `{d}`") for d in x.devices]
    return (f"`tessera batch` with `--time-limit {x.time_limit:g}`, {x.jobs} "
            f"cases at a time, {x.threads} threads each, on " +
            ", ".join(f"{used.count(u)} × {u}" for u in dict.fromkeys(used)) +
            ".")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    x = add_options(p, (
        ("data", "../shared/data/saxs", "folder of the cases"),
        ("table", "", "output folder of an earlier run"),
        ("write", "", "page whose table, between its marks, is replaced"),
        ("jobs", 1, "cases at a time"), ("threads", os.cpu_count(), "of each"),
        ("devices", "auto", "as --device, with commas"),
        ("time-limit", 300.0, "s of a run"), ("stop", 1e6, "s"),
        ("tessera", "build/tessera", "program"),
        ("output", "runs/records", "folder")))
    if not x.table:
        solve(x)
    text = "\n".join(
        ["| case | rigid, reduced χ² | states (gain of one more, nat) | "
         "χ²/N | Rg, Å | converged | s |", "|---|---|---|---|---|---|---|",
         *map(row, read(x.table or x.output)), "", how(x)])
    print(text)
    if x.write:
        write_page(x.write, "records.py", text)


if __name__ == "__main__":
    main()
