"""Compares models of displaced solvent and hydration.

    python3 bench/solvent_models.py [--data ../shared/data] [--cells] [CASE...]

Fits the curves in ../shared/data/saxs with models that differ in the displaced
solvent (volumes and Gaussians of the atoms, or a volume on a grid) and in the
position of the hydration layer. c1 is in [0.95, 1.05], c2 has the bounds of FoXS,
but negative c2 is allowed in FoXS's own model only. Prints the geometric mean of
chi2 over that of FoXS's formula, and the worst ratio with its case, without and
with a background. Leave-one-out cross-validation: the ratio of each case with
the model that is best for the other cases. Needs numpy and scipy; a quarter of
an hour on one core.

--cells: prints instead the second moment of the space of an atom about the
atom: s in the Gaussian exp(-s V^(2/3) q^2).

A curve is the mean over directions of |A(q n)|^2. The sums of exp(i q x) over the
atoms of a kind, over beads and over grid points are computed once, and every
model is a combination of them.
"""
import argparse
import os

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

CASES = [
    ("lysozyme_2epe", "model.pdb"), ("lysozyme_raw", "model.pdb"),
    ("lysozyme_6lyz", "model.pdb"), ("ribonuclease_a", "model.pdb"),
    ("carbonic_anhydrase", "model.pdb"), ("lair1s", "model.pdb"),
    ("lar_fn3_1_2", "model.pdb"), ("nup133_3kfo", "model.pdb"),
    ("nup133_3kfo", "model_crystal.pdb"), ("mpro_sasdjg5", "model.pdb"),
    ("glucose_isomerase", "model_rechained.pdb"),
    ("tim9_10_sasdjq4", "model.pdb")]

RHO = 0.334
FRASER = {"H": 5.15, "C": 16.44, "N": 2.49, "O": 9.13, "S": 19.86}
# Tsai et al. 1999, J. Mol. Biol. 290, 253: mean Voronoi volumes of groups
GROUP = {("C", 0): 9.2, ("C", 1): 17.0, ("C", 2): 23.7, ("C", 3): 36.7,
         ("N", 0): 8.7, ("N", 1): 15.0, ("N", 2): 22.7, ("N", 3): 21.4,
         ("O", 0): 15.9, ("O", 1): 18.0, ("S", 0): 29.2, ("S", 1): 36.8}
# International Tables C (1992), 6.1.1.4: a, b, c
FACTOR = {
    "H": ([0.489918, 0.262003, 0.196767, 0.049879],
          [20.6593, 7.74039, 49.5519, 2.20159], 0.001305),
    "C": ([2.31, 1.02, 1.5886, 0.865], [20.8439, 10.2075, 0.5687, 51.6512],
          0.2156),
    "N": ([12.2126, 3.1322, 2.0125, 1.1663], [0.0057, 9.8933, 28.9975, 0.5826],
          -11.529),
    "O": ([3.0485, 2.2868, 1.5463, 0.867], [13.2771, 5.7011, 0.3239, 32.9089],
          0.2508),
    "S": ([6.9053, 5.2034, 1.4379, 1.5863], [1.4679, 22.2151, 0.2536, 56.172],
          0.8669)}

# ---- atoms ----

ONE = {"ALA": "", "GLY": "", "ARG": "CG2 CD2 NE1 CZ0 NH12 NH22",
       "ASN": "CG0 OD10 ND22", "ASP": "CG0 OD10 OD20", "CYS": "SG1",
       "GLN": "CG2 CD0 OE10 NE22", "GLU": "CG2 CD0 OE10 OE20",
       "HIS": "CG0 ND11 CD21 CE11 NE20", "ILE": "CG12 CG23 CD13",
       "LEU": "CG1 CD13 CD23", "LYS": "CG2 CD2 CE2 NZ3", "MET": "CG2 SD0 CE3",
       "PHE": "CG0 CD11 CD21 CE11 CE21 CZ1", "PRO": "CG2 CD2", "SER": "OG1",
       "THR": "OG11 CG23", "VAL": "CG13 CG23",
       "TRP": "CG0 CD11 CD20 NE11 CE20 CE31 CZ21 CZ31 CH21",
       "TYR": "CG0 CD11 CD21 CE11 CE21 CZ0 OH1"}


def hydrogens(residue, atom):
    if atom == "N":
        return 0 if residue == "PRO" else 1
    if atom == "CA":
        return 2 if residue == "GLY" else 1
    if atom == "CB":
        return {"ALA": 3, "ILE": 1, "THR": 1, "VAL": 1}.get(residue, 2)
    side = {w[:-1]: int(w[-1]) for w in ONE[residue].split()}
    return side.get(atom, 0)


def read(path):
    """Positions, elements and numbers of hydrogens of the atoms of amino acids."""
    at, element, n, seen = [], [], [], set()
    with open(path) as lines:
        for line in lines:
            name, residue = line[12:16].strip(), line[17:20].strip()
            residue = {"MSE": "MET"}.get(residue, residue)
            name = "SD" if name == "SE" else name
            kind = name.lstrip("0123456789")[:1]
            key = (name, line[17:27], line[21:26], len(seen))
            if not line.startswith(("ATOM", "HETATM")) or residue not in ONE \
                    or kind == "H" or line[16] not in " A":
                continue
            seen.add(key)
            at.append([float(line[30 + 8 * k:38 + 8 * k]) for k in range(3)])
            element.append(kind)
            n.append(hydrogens(residue, name))
    at = np.array(at)
    sulphur = [i for i, e in enumerate(element) if e == "S"]
    for i in sulphur:  # no hydrogen in a disulfide
        d = np.linalg.norm(at[sulphur] - at[i], axis=1)
        n[i] = 0 if ((d > 0.1) & (d < 2.5)).any() else n[i]
    return at, np.array(element), np.array(n)


# ---- surfaces and volumes ----

def spiral(n):
    k = np.arange(n)
    z, t = 1 - (2 * k + 1) / n, np.pi * (3 - 5 ** 0.5) * k
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(t), r * np.sin(t), z], 1)


def exposed(at, radius, probe, n=600):
    """Exposed share of each sphere, and the sum of unit vectors over it."""
    points, tree = spiral(n), cKDTree(at)
    share, vector = np.zeros(len(at)), np.zeros((len(at), 3))
    reach = radius + probe
    for i, x in enumerate(at):
        near = [j for j in tree.query_ball_point(x, reach[i] + reach.max())
                if j != i]
        on = x + reach[i] * points
        d = np.linalg.norm(at[near][:, None] - on[None], axis=2)
        free = (d >= reach[near][:, None]).all(0)
        share[i] = free.mean()
        vector[i] = points[free].sum(0) / n
    return share, vector


def beads(at, radius, probe):
    share, vector = exposed(at, radius, probe)
    k = share > 0
    by = (radius + probe)[k] / (share[k] * np.maximum(1 - share[k], 0.5))
    return at[k] + by[:, None] * vector[k], \
        4 * np.pi * (radius + probe)[k] ** 2 * share[k]


def grid(at, radius, h=0.5, probe=1.4, thick=3.0):
    """The solvent-excluded volume and a layer around it, as weighted points
    2 h apart, and the part of the volume that is nearest to each atom."""
    low = at.min(0) - radius.max() - 2 * probe - thick - 2
    size = (np.ceil((at.max(0) - low + 10) / h / 2) * 2).astype(int)
    axis = [low[c] + h * (np.arange(size[c]) + 0.5) for c in range(3)]
    near = np.zeros(size, bool)
    for x, r in zip(at, radius + probe):
        cut = [slice(max(0, int((x[c] - r - low[c]) / h)),
                     int((x[c] + r - low[c]) / h) + 2) for c in range(3)]
        d2 = sum(((axis[c][cut[c]] - x[c]) ** 2).reshape(
            [-1 if k == c else 1 for k in range(3)]) for c in range(3))
        near[tuple(cut)] |= d2 < r * r
    inside = np.clip((ndimage.distance_transform_edt(near) * h - probe) / h
                     + 0.5, 0, 1)
    out = ndimage.distance_transform_edt(inside < 0.5) * h
    layer = ((out > 0) & (out <= thick) & (inside < 0.5)).astype(float)
    result = []
    for field in inside, layer:
        f = field.reshape(size[0] // 2, 2, size[1] // 2, 2, size[2] // 2, 2)
        f = f.sum((1, 3, 5)) * h ** 3
        k = np.argwhere(f > 0)
        result.append((low + (k + 0.5) * 2 * h, f[f > 0]))
    points, weight = result[0]
    d, j = cKDTree(at).query(points, k=6)
    owner = j[np.arange(len(points)), np.argmin(d - radius[j], 1)]
    return result, np.bincount(owner, weight, len(at))


# ---- sums over directions ----

def directions(degree):
    z, w = np.polynomial.legendre.leggauss(degree // 2 + 1)
    t = 2 * np.pi * np.arange(degree + 1) / (degree + 1)
    half = z >= -1e-12
    z, w = z[half], np.where(abs(z[half]) < 1e-12, w[half] / 2, w[half])
    s = np.sqrt(1 - z * z)
    n = np.stack([np.outer(s, np.cos(t)), np.outer(s, np.sin(t)),
                  np.outer(z, np.ones_like(t))], 2).reshape(-1, 3)
    w = np.repeat(w, len(t))
    return n, w / w.sum()


def products(basis, q_max):
    """<A_i A_j*> averaged over directions, on a grid of q: dq, [q][i][j]."""
    at = np.concatenate([p for p, _ in basis])
    at -= at.mean(0)
    weight = np.concatenate([np.broadcast_to(w, len(p)) for p, w in basis])
    first = np.cumsum([0] + [len(p) for p, _ in basis])[:-1]
    d = 2 * np.linalg.norm(at, axis=1).max()
    dq = np.pi / (3 * d)
    n_q = int(np.ceil(q_max / dq)) + 6
    out = np.zeros((n_q, len(basis), len(basis)))
    block = max(1, int(2e5 // len(at)))
    bands = np.linspace(0, n_q, 7).astype(int)
    for low, high in zip(bands[:-1], bands[1:]):
        n, w = directions(int(1.15 * high * dq * d) + 8)
        for k in range(0, len(n), block):
            along = dq * (at @ n[k:k + block].T)
            step = np.exp(1j * along).astype(np.complex64)
            phase = (weight[:, None] * np.exp(1j * low * along)).astype(
                np.complex64)
            for q in range(low, high):
                a = np.add.reduceat(phase, first, 0).astype(complex)
                out[q] += ((a * w[k:k + block]) @ a.conj().T).real
                phase *= step
    return dq, out


def carry(dq, table, q):
    """Lagrange interpolation of order eight to any q."""
    even = np.concatenate([table[4:0:-1], table])
    out = np.zeros((len(q),) + table.shape[1:])
    for k, x in enumerate(q / dq):
        i = min(int(x) - 3, len(table) - 8) + np.arange(8)
        w = [np.prod([(x - m) / (j - m) for m in i if m != j]) for j in i]
        out[k] = np.tensordot(w, even[i + 4], 1)
    return out


# ---- one case ----

PROBES = (1.4, 2.2, 2.8, 3.4, 4.0)


class Case:
    def __init__(self, data, case, model):
        folder = os.path.join(data, "saxs", case)
        self.name = case + ("" if "crystal" not in model else ", crystal")
        self.q, self.y, self.sigma = np.loadtxt(
            os.path.join(folder, "exp.dat"), usecols=(0, 1, 2)).T
        at, element, n = read(os.path.join(folder, model))
        volume = np.array([FRASER[e] + h * FRASER["H"]
                           for e, h in zip(element, n)])
        radius = np.cbrt(0.75 * volume / np.pi)
        self.radius = radius.mean()
        self.kinds = sorted(set(zip(element, n)))
        basis = [(at[(element == e) & (n == h)], 1.0) for e, h in self.kinds]
        share, _ = exposed(at, radius, 1.8)
        between = np.array([0.6 * v + 0.4 * GROUP[e, h] for v, e, h in
                            zip(volume, element, n)])
        outer = np.cbrt(0.75 * between / np.pi)
        self.outer = outer.mean()
        own = np.where(element == "C", 1.8, np.where(element == "S", 1.8, 1.5))
        (inside, layer), voronoi = grid(at, own,
                                        0.5 if len(at) < 3000 else 0.75)
        basis += [(at, share), (at, voronoi), inside, layer]
        basis += [beads(at, outer, probe) for probe in PROBES]
        self.names = ["at atoms", "Voronoi", "grid", "grid layer"] + \
            ["beads %g" % p for p in PROBES]
        self.table = carry(*products(basis, self.q.max()), self.q)

    def at(self, name):
        return len(self.kinds) + self.names.index(name)


def factor(element, q):
    a, b, c = FACTOR[element]
    s2 = (q / (4 * np.pi)) ** 2
    return c + sum(x * np.exp(-y * s2) for x, y in zip(a, b))


def gaussian(volume, q, by=1.0):
    return np.exp(-by * volume ** (2 / 3) * q * q / (4 * np.pi))


def water(q):
    return factor("O", q) + 2 * factor("H", q) - RHO * 19.43 * gaussian(19.43,
                                                                        q)


def amplitudes(c, model):
    """[solute, displaced, hydration][basis][q] and G(c1)."""
    q, radius = c.q, c.radius
    if isinstance(model.get("volumes"), float):
        radius = c.outer
    mean = 4 / 3 * np.pi * radius ** 3
    f = np.zeros((3, c.table.shape[1], len(q)))
    foxs = model.get("foxs", False)
    by, volumes = model.get("exponent", 1.0), model.get("volumes", "Fraser")
    at = np.zeros_like(q) if foxs else q
    decay = np.exp(-0.115 * q * q) if foxs else 1.0
    for k, (e, h) in enumerate(c.kinds):
        v = FRASER[e] + h * FRASER["H"]
        f[0, k] = decay * (factor(e, at) + h * factor("H", at)) * \
            np.exp(-model.get("b", 0.0) * q * q / (16 * np.pi ** 2))
        if volumes == "Fraser":
            f[1, k] = decay * RHO * v * gaussian(v, at, by)
        if volumes == "common":
            f[1, k] = RHO * v * gaussian(mean, q, by)
        if volumes == "group" or isinstance(volumes, float):
            v += (1 if volumes == "group" else volumes) * (GROUP[e, h] - v)
            f[1, k] = RHO * v * gaussian(v, q, by)
    if volumes in ("Voronoi", "grid"):
        f[1, c.at(volumes)] = RHO * (gaussian(mean, q, by)
                                     if volumes == "Voronoi"
                                     else np.exp(-by * q * q))
    layer = model.get("layer", "at atoms")
    f[2, c.at(layer)] = decay * water(at) if layer == "at atoms" else \
        (0.01 if "grid" in layer else 0.03) * np.exp(-0.9 * q * q)
    power = radius ** 2 * q * q / (4 * np.pi)
    power *= 1.0 if foxs else by * (4 / 3 * np.pi) ** (2 / 3)
    if volumes == "grid":
        power = 0.0 * power
    return f, lambda c1: c1 ** 3 * np.exp(-(c1 * c1 - 1) * power)


def fit(c, model, background):
    f, g = amplitudes(c, model)
    part = np.einsum("aiq,qij,bjq->abq", f, c.table, f, optimize=True)
    w = 1 / c.sigma
    y, best = c.y * w, np.inf
    low, high = np.array([0.95, -2.0 if model.get("signed") else 0.0]), \
        np.array([1.05, 4.0])
    a, b = low.copy(), high.copy()
    for _ in range(5):
        c1, c2 = np.linspace(a[0], b[0], 21), np.linspace(a[1], b[1], 31)
        found = []
        for value in c1:
            s = g(value)
            x = (part[0, 0] - 2 * s * part[0, 1] + s * s * part[1, 1]
                 + np.outer(c2, 2 * (part[0, 2] - s * part[1, 2]))
                 + np.outer(c2 ** 2, part[2, 2])) * w
            if background:
                xx, xo, oo = (x * x).sum(1), x @ w, w @ w
                scale = (x @ y * oo - xo * (w @ y)) / (xx * oo - xo ** 2)
                rest = y - scale[:, None] * x - \
                    ((w @ y - scale * xo) / oo)[:, None] * w
            else:
                scale = x @ y / (x * x).sum(1)
                rest = y - scale[:, None] * x
            found.append(np.where(scale > 0, (rest ** 2).sum(1), np.inf))
        i, j = np.unravel_index(np.argmin(found), (21, 31))
        best = found[i][j]
        at, width = np.array([c1[i], c2[j]]), (b - a) / [14, 20]
        a, b = np.maximum(low, at - width), np.minimum(high, at + width)
    return best / len(y)


# ---- the space of an atom ----

def cells(data, case, model):
    """Second moment of the space of an atom about the atom: s in
    exp(-s V^(2/3) q^2), for all atoms."""
    at, element, _ = read(os.path.join(data, "saxs", case, model))
    own = np.where(element == "C", 1.85, np.where(element == "S", 1.8, 1.5))
    h = 0.25
    (points, weight), _ = grid(at, own, h)[0]
    d, j = cKDTree(at).query(points, k=8)
    k = np.argmin(d ** 2 - own[j] ** 2, 1)
    d, j = d[np.arange(len(d)), k], j[np.arange(len(d)), k]
    volume = np.bincount(j, weight, len(at))
    moment = np.bincount(j, weight * d * d, len(at))
    return moment.sum() / 6 / (volume ** (5 / 3)).sum()


# ---- the table ----

MODELS = {"FoXS": dict(foxs=True, signed=True),
          "FoXS, c2 from 0": dict(foxs=True)}
for k in 1.0, 0.5, 0.25:
    MODELS["Fraser, exponent x %g, at the atoms" % k] = dict(exponent=k)
for v in "common", "group", "Voronoi", "grid":
    MODELS[v + ", beads 2.8"] = dict(
        volumes=v, layer="beads 2.8", exponent=0.3 if v == "grid" else 1.0)
MODELS["Voronoi, exponent x 1.5, beads 2.8"] = dict(
    volumes="Voronoi", layer="beads 2.8", exponent=1.5)
MODELS["grid, layer of 3 A on it"] = dict(volumes="grid", layer="grid layer",
                                          exponent=0.3)
MODELS["Fraser, layer of 3 A on the grid"] = dict(layer="grid layer")
for p in PROBES:
    MODELS["Fraser, beads %g" % p] = dict(layer="beads %g" % p)
MODELS["Fraser, exponent x 0.7, beads 2.8"] = dict(layer="beads 2.8",
                                                  exponent=0.7)
MODELS["Fraser, B = 12, beads 2.8"] = dict(layer="beads 2.8", b=12.0)
MODELS["Fraser + 0.4 (group - Fraser), at the atoms"] = dict(volumes=0.4)
for p in PROBES:
    MODELS["Fraser + 0.4 (group - Fraser), beads %g" % p] = dict(
        volumes=0.4, layer="beads %g" % p)
for share in 0.2, 0.6:
    MODELS["Fraser + %g (group - Fraser), B = 12, beads 2.8" % share] = dict(
        volumes=share, layer="beads 2.8", b=12.0)
for p in 2.2, 2.8, 3.4, 4.0:
    MODELS["Fraser + 0.4 (group - Fraser), B = 12, beads %g" % p] = dict(
        volumes=0.4, layer="beads %g" % p, b=12.0)
for p in 2.8, 4.0:
    MODELS["Fraser + 0.4 (group - Fraser), exponent x 0.69, B = 12, beads %g"
           % p] = dict(volumes=0.4, layer="beads %g" % p, b=12.0,
                       exponent=0.69)


def mean(ratios):
    return np.exp(np.log(ratios).mean())


def show(cases):
    ratio = {}
    for background in 0, 1:
        chi2 = np.array([[fit(c, m, background) for c in cases]
                         for m in MODELS.values()])
        ratio[background] = chi2 / chi2[0]
    print("| model | mean | worst | with background: mean | worst |")
    print("|---|---|---|---|---|")
    for k, name in enumerate(MODELS):
        row = ["%.3f | %.3f (%s)" % (mean(r[k]), r[k].max(),
                                     cases[r[k].argmax()].name)
               for r in (ratio[0], ratio[1])]
        print("| %s | %s |" % (name, " | ".join(row)))
    for background in 0, 1:
        left, chosen = [], []
        for i in range(len(cases)):
            others = np.delete(ratio[background], i, 1)
            # the best mean of models at most 6 % worse in any case
            score = [mean(r) + 9.0 * (r.max() > 1.06) for r in others]
            chosen.append(list(MODELS)[int(np.argmin(score))])
            left.append(ratio[background][int(np.argmin(score)), i])
        print("\nleave one out, background %s: mean %.3f, worst %.3f; chosen: %s"
              % (("none", "fit")[background], mean(left), max(left),
                 ", ".join("%s (%d)" % (m, chosen.count(m))
                           for m in sorted(set(chosen)))))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--cells", action="store_true")
    parser.add_argument("case", nargs="*")
    a = parser.parse_args()
    if a.cells:
        for case, model in CASES:
            if not a.case or case in a.case:
                print("%s %.4f" % (case, cells(a.data, case, model)))
        return
    show([Case(a.data, *c) for c in CASES if not a.case or c[0] in a.case])


if __name__ == "__main__":
    main()
