#!/usr/bin/env python3
"""Error of neutron profiles computed without positions of hydrogens.

    python3 bench/neutron_hydrogens.py [FILE.pdb]        # needs numpy and scipy

The reference is I(q) of atoms in vacuum less displaced solvent, with hydrogens at
the positions of the file, those of N, O and S exchanged. Printed is I(q) over the
reference with hydrogens at the positions of their carriers, and with hydrogens
averaged over a sphere of the bond length, as in the program. Averages over 1200
directions; about two minutes.
"""
import sys

import numpy as np
from scipy.spatial import cKDTree

LENGTH = {"H": -3.739, "C": 6.646, "N": 9.36, "O": 5.803, "S": 2.847}
DEUTERIUM = 6.671
VOLUME = {"H": 5.15, "C": 16.44, "N": 2.49, "O": 9.13, "S": 19.86}
BOND = {"C": 1.09, "N": 1.01, "O": 0.97, "S": 1.34}


def read(path):
    """Elements and coordinates of the first model."""
    element, xyz = [], []
    for line in open(path):
        if line.startswith("ENDMDL"):
            break
        if line.startswith(("ATOM", "HETATM")):
            name = line[76:78].strip() or line[12:16].strip().lstrip("0123456789")
            element.append(name[0])
            xyz.append([float(line[k:k + 8]) for k in (30, 38, 46)])
    return np.array(element), np.array(xyz)


def directions(n):
    k = np.arange(n) + 0.5
    polar, turn = np.arccos(1 - k / n), np.pi * (1 + 5 ** 0.5) * k
    return np.c_[np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar),
                 np.cos(polar)]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else \
        "../shared/data/saxs/tim9_10_sasdjq4/model.pdb"
    element, xyz = read(path)
    heavy, light = np.where(element != "H")[0], np.where(element == "H")[0]
    carrier = heavy[cKDTree(xyz[heavy]).query(xyz[light])[1]]
    bond = np.array([BOND[e] for e in element[carrier]])
    volume = np.array([VOLUME[e] for e in element])
    directed = directions(1200)

    def united(of):
        total = of.copy()
        np.add.at(total, carrier, of[light])
        return total[heavy]

    def amplitude(q, at, of):
        return np.exp(1j * q * (directed @ xyz[at].T)) @ of

    print("D2O    q   at the carrier   on the sphere")
    for d2o in (0.0, 1.0):
        density = (1 - d2o) * 0.033368 * (2 * LENGTH["H"] + LENGTH["O"]) + \
            d2o * 0.033225 * (2 * DEUTERIUM + LENGTH["O"])
        length = np.array([LENGTH[e] for e in element])
        length[light] += np.where(np.isin(element[carrier], ["N", "O", "S"]),
                                  d2o * (DEUTERIUM - LENGTH["H"]), 0.0)
        v = united(volume)
        for q in (0.05, 0.1, 0.2, 0.3, 0.4):
            solvent = amplitude(
                q, heavy, density * v * np.exp(-0.055 * q * q * v ** (2 / 3)))
            spread = length.copy()
            spread[light] *= np.sinc(q * bond / np.pi)
            every = np.arange(len(element))
            wanted, carried, program = (
                np.mean(abs(amplitude(q, at, of) - solvent) ** 2)
                for at, of in ((every, length), (heavy, united(length)),
                               (heavy, united(spread))))
            print(f"{d2o:3.0f} {q:5.2f} {carried / wanted:12.4f} "
                  f"{program / wanted:14.4f}")


main()
