#!/usr/bin/env python3
"""Writes a device's tables into bench/RESULTS.md from `tessera bench --json`.

    build/tessera bench --json | bench/results.py [--commit C] [--note TEXT]

The tables of a device are between two marks with its name and are replaced. Text
outside the marks is not changed. A new device gets a section at the end.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys


def number(value, unit=1.0):
    if value is None:
        return ""
    value *= unit
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def tables(result):
    """A table of sizes (rows) and cases (columns), then rates by threads."""
    rows = result["rows"]
    slow = max((r["wall_us_per_profile"] or 0 for r in rows), default=0) > 2e4
    unit, name = (1e-3, "ms") if slow else (1.0, "us")
    cases = list(dict.fromkeys(r["case"] for r in rows))
    sizes = sorted({r["n_body"] for r in rows})
    batches = sorted({r["batch"] for r in rows})

    def most(own, key):
        return max((r[key] for r in own if r[key] is not None), default=None)
    out = [f"Wall time of one profile, {name}, in batches of "
           f"{' / '.join(map(str, batches))}:", "",
           "| M | " + " | ".join(cases) + " | share of bound | worst error |",
           "|---|" + "---|" * len(cases) + "---|---|"]
    for n in sizes:
        own = [r for r in rows if r["n_body"] == n]
        wall = {(r["case"], r["batch"]): r["wall_us_per_profile"] for r in own}
        share, error = most(own, "share_of_bound"), most(own, "max_rel_error")
        out.append("| " + " | ".join(
            [str(n)] +
            [" / ".join(number(wall.get((c, b)), unit) or "-" for b in batches)
             for c in cases] +
            ["" if share is None else f"{100 * share:.0f} %",
             "" if error is None else f"{error:.1e}"]) + " |")
    threads = result["threads"]
    kinds = sorted({(t["n_body"], t["case"], t["batch"]) for t in threads})
    counts = sorted({t["threads"] for t in threads})
    rate = {(t["n_body"], t["case"], t["batch"], t["threads"]):
            t["profiles_per_second"] for t in threads}
    out += ["", "Profiles a second by host threads on one device, each thread "
            "with two batches:", "",
            "| M | case | batch | " + " | ".join(map(str, counts)) + " |",
            "|---|---|---|" + "---|" * len(counts)]
    for kind in kinds:
        out.append("| " + " | ".join(
            [str(k) for k in kind] +
            [number(rate.get(kind + (n,))) for n in counts]) + " |")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "RESULTS.md"))
    parser.add_argument("--commit")
    parser.add_argument("--date", default=str(datetime.date.today()))
    parser.add_argument("--command", default="tessera bench --json")
    parser.add_argument("--note", default="")
    args = parser.parse_args()
    result = json.load(sys.stdin)
    commit = args.commit or subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True,
        text=True, check=True).stdout.strip()
    device = result["device"]
    begin, end = f"<!-- bench: {device} -->", f"<!-- end: {device} -->"
    block = "\n".join(
        [begin, f"{device}, {result['platform']}, driver {result['driver']}; "
         f"{args.date}, commit {commit}: `{args.command}`. {args.note}".strip(),
         ""] + tables(result) + [end])
    with open(args.file, encoding="utf-8") as f:
        text = f.read()
    head, _, rest = text.partition(begin)
    if end in rest:
        text = head + block + rest.split(end, 1)[1]
    else:
        text = text.rstrip("\n") + f"\n\n## {device}\n\n{block}\n"
    with open(args.file, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
