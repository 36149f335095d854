"""Compares models of the hydration layer with explicit water around a frozen
protein.

    python3 -m venv VENV && VENV/bin/pip install numpy scipy openmm==8.6.1
    VENV/bin/python bench/explicit_water.py [--structure
        ../shared/data/saxs/lysozyme_2epe/model.pdb] [--minutes 20]
        [--water FILE]

A molecular dynamics of TIP3P water (OpenMM, CPU, 293 K) around the fixed atoms of
the file, without its waters and ligands. The scattering is that of the protein
and of the mean density of water within 6.5 Angstrom of it, less bulk water
(Park et al. 2009, J. Chem. Phys. 130, 134114; Chen & Hub 2014, Biophys. J. 107,
435), without the fluctuations of the water; the intensity is the product of the
amplitudes of two halves of the run, so that noise does not add to it. c1 and c2
of each model are fitted to log I, on the absolute scale. Prints the density of
the molecules' centres by distance from the atoms' spheres, and c1, c2 and the rms
deviation of each model. --water: where positions are kept, and read from if the
file exists.
"""
import argparse
import os
import sys
import tempfile
import time

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial import cKDTree

import solvent_models as sm

N_BULK = 0.0332  # molecules in a cubic Angstrom of TIP3P at 293 K
SHELL, H = 6.5, 0.75


def simulate(a, path):
    import openmm as mm
    from openmm import app, unit
    with tempfile.NamedTemporaryFile("w", suffix=".pdb") as clean:
        for x in open(a.structure):
            if x.startswith("ATOM") and x[16] in " A" and \
                    x[76:78].strip() != "H" and x[17:20].strip() in sm.ONE:
                clean.write(x[:16] + " " + x[17:])
        clean.flush()
        pdb = app.PDBFile(clean.name)
    field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
    m = app.Modeller(pdb.topology, pdb.positions)
    m.addHydrogens(field, pH=7.0)
    n = m.topology.getNumAtoms()
    at = np.array(m.positions.value_in_unit(unit.nanometer))
    box = np.ptp(at, axis=0).max() + 2.0
    m.addSolvent(field, boxSize=mm.Vec3(box, box, box) * unit.nanometer,
                 model="tip3p", neutralize=False)
    at = np.array(m.positions.value_in_unit(unit.nanometer))
    # a new box leaves gaps: molecules move inwards to the density of the bulk
    heavy = [x.index for x in m.topology.atoms() if x.index < n and
             x.element.symbol != "H"]
    volume = 17.4 * len(heavy)
    side = ((len(at) - n) / 3 / N_BULK + volume) ** (1 / 3) / 10
    middle, oxygen = at[:n].mean(0), np.arange(n, len(at), 3)
    away = at[oxygen] - middle
    move = (away - box * np.round(away / box)) * (side / box) - away
    for k in range(3):
        at[oxygen + k] += move
    m.topology.setPeriodicBoxVectors(
        [mm.Vec3(*x) for x in np.diag([side] * 3)] * unit.nanometer)
    system = field.createSystem(
        m.topology, nonbondedMethod=app.PME, constraints=None, rigidWater=True,
        nonbondedCutoff=0.8 * unit.nanometer, hydrogenMass=4 * unit.amu)
    for i in range(n):
        system.setParticleMass(i, 0)  # frozen
    run = app.Simulation(m.topology, system, mm.LangevinMiddleIntegrator(
        293 * unit.kelvin, 2 / unit.picosecond, 0.004 * unit.picoseconds),
        mm.Platform.getPlatformByName("CPU"), {"Threads": "2"})
    run.context.setPositions(at * unit.nanometer)
    run.minimizeEnergy(maxIterations=60)
    run.context.setVelocitiesToTemperature(293 * unit.kelvin)
    run.step(2000)
    frames, until = [], time.time() + 60 * a.minutes
    while time.time() < until:
        run.step(60)
        x = run.context.getState(getPositions=True).getPositions(asNumpy=True)
        frames.append(10 * np.asarray(x.value_in_unit(unit.nanometer))[oxygen])
    np.savez(path, box=10 * side, protein=10 * at[heavy],
             water=np.array(frames, np.float32))


def density(xyz, sphere, box, water):
    """Excess of water around the atoms, for each half of the run, as weights at
    the points of a grid; the distance of a point from the atoms' spheres."""
    low = xyz.min(0) - SHELL - 3
    size = np.ceil((xyz.max(0) + SHELL + 3 - low) / H).astype(int)
    points = low + H * (np.argwhere(np.ones(size, bool)) + 0.5)
    d, j = cKDTree(xyz).query(points, k=12)
    d = (d - sphere[j]).min(1)
    near = d <= SHELL
    number = np.where(near, np.cumsum(near) - 1, -1)
    count, outside = np.zeros((2, near.sum())), 0
    middle = xyz.mean(0)
    for f, x in enumerate(water):
        x = x - box * np.round((x - middle) / box)
        i = np.floor((x - low) / H).astype(int)
        i = i[((i >= 0) & (i < size)).all(1)]
        k = number[np.ravel_multi_index(i.T, size)]
        outside += len(x) - (k >= 0).sum()
        count[f * 8 // len(water) % 2] += np.bincount(k[k >= 0],
                                                      minlength=count.shape[1])
    bulk = outside / len(water) / (box ** 3 - near.sum() * H ** 3)
    halves = np.bincount(np.arange(len(water)) * 8 // len(water) % 2)
    g = count / halves[:, None] / H ** 3 / bulk
    return points[near], (g - 1) * sm.RHO / 10 * H ** 3, d[near], g.mean(0)


class Case:
    def __init__(self, path, saved):
        xyz, element, n = sm.read(path)
        xyz = xyz + saved["protein"][0] - xyz[0]
        self.kinds = sorted(set(zip(element, n)))
        fraser = np.array([sm.FRASER[e] + h * sm.FRASER["H"]
                           for e, h in zip(element, n)])
        group = np.array([sm.GROUP[k] for k in zip(element, n)])
        self.sphere = np.cbrt(0.75 * (0.6 * fraser + 0.4 * group) / np.pi)
        self.radius = np.cbrt(0.75 * fraser / np.pi).mean()
        self.outer = self.sphere.mean()
        share, _ = sm.exposed(xyz, np.cbrt(0.75 * fraser / np.pi), 1.8)
        points, weight, d, g = density(xyz, self.sphere, float(saved["box"]),
                                       saved["water"])
        for low in np.arange(0, SHELL, 0.5):
            s = (d > low) & (d <= low + 0.5)
            print("%.1f to %.1f A: %.2f of bulk" % (low, low + 0.5,
                                                    g[s].mean()))
        basis = [(xyz[(element == e) & (n == h)], 1.0)
                 for e, h in self.kinds]
        basis += [(xyz, share)]
        basis += [sm.beads(xyz, self.sphere, p) for p in sm.PROBES]
        basis += [(points, w) for w in weight]
        self.names = ["at atoms"] + ["beads %g" % p for p in sm.PROBES] + \
            ["water 0", "water 1"]
        self.q = np.linspace(0, 0.25, 51)
        self.table = sm.carry(*sm.products(basis, 0.25), self.q)

    def at(self, name):
        return len(self.kinds) + self.names.index(name)


def fit(c, model, q_max):
    f, scale = sm.amplitudes(c, model)
    q, explicit = c.q, []
    water = (sm.factor("O", q) + 2 * sm.factor("H", q) *
             np.sinc(0.957 * q / np.pi)) * np.exp(q * q * H * H / 24)
    for half in "water 0", "water 1":
        a = sm.amplitudes(c, {})[0][0].copy()
        a[c.at(half)] = water
        explicit.append(a)
    i = np.einsum("iq,qij,jq->q", explicit[0], c.table, explicit[1])
    part = np.einsum("aiq,qij,bjq->abq", f, c.table, f, optimize=True)
    s = q <= q_max

    def rest(p):
        k = [1.0, -scale(p[0]), p[1]]
        curve = sum(k[a] * k[b] * part[a, b] for a in range(3)
                    for b in range(3))
        return (np.log(np.abs(curve)) - np.log(i))[s]
    r = least_squares(rest, [1.0, 0.5])
    return r.x, 100 * np.sqrt(np.mean(r.fun ** 2))


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--structure",
                   default="../shared/data/saxs/lysozyme_2epe/model.pdb")
    p.add_argument("--minutes", type=float, default=20.0)
    p.add_argument("--water", default="water.npz")
    a = p.parse_args()
    if not os.path.exists(a.water):
        simulate(a, a.water)
    c = Case(a.structure, np.load(a.water))
    models = {"FoXS": dict(foxs=True),
              "Fraser + 0.4 (group - Fraser), at the atoms": dict(volumes=0.4)}
    for by in 1.0, 0.69:
        for probe in sm.PROBES:
            models["exponent x %g, beads %g" % (by, probe)] = dict(
                volumes=0.4, exponent=by, layer="beads %g" % probe)
    print("| model | c1 | c2 | rms, %, q to 0.15 | to 0.2 |")
    print("|---|---|---|---|---|")
    for name, m in models.items():
        x, near = fit(c, m, 0.15)
        _, far = fit(c, m, 0.2)
        print("| %s | %.3f | %.2f | %.3f | %.2f |" % (name, *x, near, far),
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
