#!/usr/bin/env python3
"""Measures this machine, and writes its part of docs/speed.md (`make bench`).

    bench/speed.py [--tessera build/tessera] [--device gpu] [--threads N]
        [--data ../shared/data] [--time SECONDS] [--commit C] [--file docs/speed.md]
        [CONFIG...]

Curves: the least of five processes that read a structure, fit its curve to the data
and print the fit. Runs: `tessera bench --sampling` of the demo and of configs/.
Engine: `tessera bench --json`. The part of a machine stands between two marks with
the name of its device, and is replaced; a new machine gets a part at the end.
"""
import argparse
import datetime
import json
import os
import subprocess
import time

SAXS = {1001: "lysozyme_2epe/model", 4734: "mpro_sasdjg5/model",
        12204: "glucose_isomerase/model_rechained", 43652: "a2m_native/model"}
CONFIGS = {"demo/demo": "two domains, 114 residues", "lar": "two domains, 208",
           "nup133": "a domain with two tails", "ligase": "four domains, 2 linkers"}


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True).stdout


def number(value):
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table(head, rows):
    return ["", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"] + [
        "| " + " | ".join(map(str, row)) + " |" for row in rows]


def curves(a):
    rows = []
    for atoms, name in SAXS.items():
        saxs = os.path.join(a.data, "saxs")
        folder = os.path.join(saxs, name.split("/")[0])
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            output(a.tessera, "profile", os.path.join(saxs, name + ".pdb"),
                   "--data", os.path.join(folder, "exp.dat"), "--quiet")
            times.append(time.perf_counter() - begin)
        rows.append([f"{atoms:,}", number(1e3 * min(times))])
    return table(["atoms", "curve and fit, ms"], rows)


def runs(a):
    os.makedirs("build/demo", exist_ok=True)
    output(a.tessera, "simulate", "configs/demo/demo.yaml", "--force",
           "-o", "build/demo/truth.dat")
    found = json.loads(output(
        a.tessera, "bench", "--sampling", *[f"configs/{c}.yaml" for c in a.config],
        "--time", str(a.time), "--json", "--device", a.device,
        *(["--set", f"device.threads={a.threads}"] if a.threads else [])))
    rows = []
    for r in found["sampling"]:
        draws = [r["least_ess_bulk_per_second"], r["least_ess_tail_per_second"]]
        rows.append([
            f"`{r['config']}`", CONFIGS.get(r["config"][8:-5], ""),
            number(r["seconds_to_convergence"]) or f"not in {r['seconds']:.0f}",
            number(r["rhat"]), "" if None in draws else number(min(draws)),
            number(r["steps_per_second"])])
    return table(["configuration", "", "converged after, s", "R-hat",
                  "effective draws/s", "steps/s"], rows)


def engine(result):
    rows = result["rows"]
    cases = list(dict.fromkeys(r["case"] for r in rows))
    batches = sorted({r["batch"] for r in rows})
    lines = []
    for n in sorted({r["n_body"] for r in rows}):
        own = {(r["case"], r["batch"]): r for r in rows if r["n_body"] == n}
        lines.append([n] + [
            " / ".join(number(own[c, b]["wall_us_per_profile"]) if (c, b) in own
                       else "-" for b in batches) +
            f" ({number(own[c, batches[0]]['bound_us_per_profile'])})"
            for c in cases])
    errors = [r["max_rel_error"] for r in rows if r["max_rel_error"] is not None]
    return table(["bodies", *cases], lines) + [
        "", f"Worst relative error of I(q): {max(errors):.1e}."]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("config", nargs="*", default=list(CONFIGS), metavar="CONFIG",
                   help=", ".join(CONFIGS))
    p.add_argument("--tessera", default="build/tessera")
    p.add_argument("--device", default="auto")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--data", default="../shared/data")
    p.add_argument("--time", type=int, default=60)
    p.add_argument("--commit")
    p.add_argument("--file", default="docs/speed.md")
    a = p.parse_args()
    commit = a.commit or output("git", "describe", "--always", "--dirty").strip()
    result = json.loads(output(a.tessera, "bench", "--json", "--device", a.device))
    cores = a.threads or len(os.sched_getaffinity(0))
    name = f"{result['device']}, {cores} processor cores"
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    block = [begin, f"## {name}", "",
             f"{result['platform']}, driver {result['driver']}; "
             f"{datetime.date.today()}, commit {commit}.",
             "", "One profile of the engine, µs, in batches of 1 / 8 / 64 (bound):",
             *engine(result)]
    print(*block, sep="\n", flush=True)
    for part in curves, runs:
        lines = part(a)
        print(*lines, sep="\n", flush=True)
        block += lines
    block.append(end)
    with open(a.file, encoding="utf-8") as file:
        text = file.read()
    head, _, rest = text.partition(begin)
    tail = rest.partition(end)[2] if rest else "\n"
    with open(a.file, "w", encoding="utf-8") as file:
        file.write(head.rstrip("\n") + "\n\n" + "\n".join(block) + tail)


if __name__ == "__main__":
    main()
