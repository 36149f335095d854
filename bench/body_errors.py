#!/usr/bin/env python3
"""Errors of profiles of bodies against all atoms of the same structures: rms in
percent, by bands of q, for the tables of docs/forward-model.md.

    python3 bench/body_errors.py FILE...

c1 is 1. c2 of the bodies is given in the table; c2 of a layer is such that the
layer has as many electrons. The scale makes the mean ratio of the profiles 1
below q = 0.1."""

import os
import subprocess
import sys

PROGRAM = os.path.join(os.environ.get("BUILD", "build"), "tessera")
BANDS = [(0.0, 0.1), (0.1, 0.2), (0.2, 0.35), (0.35, 0.5)]


def curve(path, *options):
    """(q, I) for q from 0 to 0.5 in steps of 0.005."""
    command = [PROGRAM, "profile", path, "--c1", "1", "--device", "reference",
               "--q-max", "0.5", "--n-q", "101", *options]
    text = subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout
    rows = [line.split() for line in text.splitlines()
            if line and line[0] != "#"]
    return [(float(q), float(i)) for q, i, *_ in rows]


def errors(bodies, atoms):
    ratio = [(q, b / a) for (q, b), (_, a) in zip(bodies, atoms)]
    low = [r for q, r in ratio if q <= 0.1]
    scale = sum(low) / len(low)
    out = []
    for start, end in BANDS:
        band = [(r / scale - 1.0) ** 2 for q, r in ratio if start <= q <= end]
        out.append(100.0 * (sum(band) / len(band)) ** 0.5)
    return " | ".join(f"{e:.2f}" for e in out)


def rise(path, *options):
    """The relative increase of the amplitude at q = 0 by c2 = 1."""
    dry, wet = (curve(path, "--c2", c2, *options)[0][1] for c2 in "01")
    return (wet / dry) ** 0.5 - 1.0


def main():
    print("| structure | against | c2 | two-body | | | | one-body | | | |")
    for path in sys.argv[1:]:
        name = os.path.basename(path)
        per_layer = rise(path, "--bodies", "two") / rise(path)
        for c2 in (0.0, 1.0):
            bodies = [curve(path, "--bodies", b, "--c2", str(c2))
                      for b in ("two", "one")]
            for model, unit in (("atoms", 1.0), ("layer", per_layer)):
                atoms = curve(path, "--solvent-model", model, "--c2",
                              str(unit * c2))
                print(f"| {name} | {model} | {unit * c2:.2f} | "
                      + " | ".join(errors(b, atoms) for b in bodies) + " |",
                      flush=True)


main()
