#!/usr/bin/env python3
"""Draws the densities of (phi, psi) in data/prior.dat as prior_torsions.svg.

From the folder of the project: python3 docs/figures/prior_torsions.py
Each class is a map of 60 x 60 cells of the density's logarithm, white where
it is below a twentieth of the uniform one, with contours around 50, 90 and
98 % of the residues. Needs nothing but Python.
"""
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))
PRIOR = os.path.join(HERE, "..", "..", "data", "prior.dat")
OUT = os.path.join(HERE, "prior_torsions.svg")
N_MAP = 60    # cells of the map a side
N_LINE = 90   # points of the contours' grid a side
SIZE = 240    # pixels of one map
LEVELS = ((0.5, "#ffffff", 1.0), (0.9, "#ffffff", 0.7), (0.98, "#222222", 0.7))
N_SHADE = 16


def read_mixtures(path):
    """[(name, count, [(weight, phi, psi, k_phi, k_psi, lambda)])]"""
    mixtures, rows = [], None
    for line in open(path):
        if line.startswith("#:"):
            word = line.split()
            rows = None
            if word[1] == "torsion":
                rows = []
                mixtures.append((word[2], int(word[3]), rows))
        elif not line.startswith("#") and rows is not None:
            rows.append([float(x) for x in line.split()[1:]])
    return mixtures


def norm(k1, k2, lam):
    """1 / C less exp(k1 + k2), by the trapezoid rule over psi."""
    n, total = 2000, 0.0
    for i in range(n):
        y = 2.0 * math.pi * i / n
        a = math.hypot(k1, lam * math.sin(y))
        total += math.exp(k2 * (math.cos(y) - 1.0) + a - k1) * i0_scaled(a)
    return 4.0 * math.pi ** 2 * total / n


def i0_scaled(x):
    """I0(x) exp(-x): the series, or the asymptotic one."""
    if x > 20.0:
        term = total = 1.0
        for k in range(1, 12):
            term *= (2 * k - 1) ** 2 / (8.0 * x * k)
            total += term
        return total / math.sqrt(2.0 * math.pi * x)
    term = total = 1.0
    for k in range(1, 60):
        term *= (x / (2.0 * k)) ** 2
        total += term
    return total * math.exp(-x)


def density(rows, n):
    """At the centres of n x n cells, [psi][phi], from -180 degrees."""
    at = [-math.pi + 2.0 * math.pi * (i + 0.5) / n for i in range(n)]
    grid = [[0.0] * n for _ in range(n)]
    for w, phi, psi, k1, k2, lam in rows:
        scale = w / norm(k1, k2, lam)
        cp = [(math.cos(a - phi), math.sin(a - phi)) for a in at]
        cq = [(math.cos(a - psi), math.sin(a - psi)) for a in at]
        for j in range(n):
            for i in range(n):
                grid[j][i] += scale * math.exp(
                    k1 * (cp[i][0] - 1.0) + k2 * (cq[j][0] - 1.0)
                    + lam * cp[i][1] * cq[j][1])
    return grid


def levels_of(grid):
    """Densities above which the fractions of LEVELS lie."""
    flat = sorted((v for row in grid for v in row), reverse=True)
    total, below, out = sum(flat), 0.0, []
    for v in flat:
        below += v
        while len(out) < len(LEVELS) and below >= LEVELS[len(out)][0] * total:
            out.append(v)
    return out


def colour(x):
    """Of 0 to 1: white to blue, over the perceptual range of one hue."""
    stops = ((0.0, (255, 255, 255)), (0.35, (198, 219, 239)),
             (0.65, (66, 146, 198)), (1.0, (8, 48, 107)))
    for (a, p), (b, q) in zip(stops, stops[1:]):
        if x <= b:
            t = (x - a) / (b - a)
            return "#%02x%02x%02x" % tuple(
                round(u + t * (v - u)) for u, v in zip(p, q))
    return "#08306b"


def segments(grid, level):
    """Marching squares on the logarithms, in units of cells."""
    n, z = len(grid), math.log(level)
    log = [[math.log(v) - z for v in row] for row in grid]
    for j in range(n - 1):
        for i in range(n - 1):
            corner = ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
            v = [log[y][x] for x, y in corner]
            cut = []
            for k in range(4):
                a, b = v[k], v[(k + 1) % 4]
                if (a > 0) != (b > 0):
                    t = a / (a - b)
                    (x, y), (u, w) = corner[k], corner[(k + 1) % 4]
                    cut.append((x + t * (u - x), y + t * (w - y)))
            for k in range(0, len(cut) - 1, 2):
                yield cut[k], cut[k + 1]


def lines(found):
    """Chains of points out of segments that share their ends."""
    ends = {}
    key = lambda p: (round(p[0], 6), round(p[1], 6))
    for s in found:
        for p in s:
            ends.setdefault(key(p), []).append(s)
    used = set()
    for first in found:
        if id(first) in used:
            continue
        used.add(id(first))
        chain = list(first)
        for grow_front in (False, True):
            while True:
                tip = chain[0] if grow_front else chain[-1]
                more = [s for s in ends[key(tip)] if id(s) not in used]
                if not more:
                    break
                used.add(id(more[0]))
                a, b = more[0]
                other = b if key(a) == key(tip) else a
                if grow_front:
                    chain.insert(0, other)
                else:
                    chain.append(other)
        yield chain


def draw_map(out, x0, y0, name, count, rows):
    grid = density(rows, N_MAP)
    top = max(map(max, grid)) * 4.0 * math.pi ** 2
    step = SIZE / N_MAP
    shade = lambda v: round(N_SHADE * max(0.0, math.log(
        v * 4.0 * math.pi ** 2 / 0.05) / math.log(top / 0.05)))
    cells = {}  # runs of one shade in a row
    for j, row in enumerate(grid):
        i = 0
        while i < N_MAP:
            k = i
            while k < N_MAP and shade(row[k]) == shade(row[i]):
                k += 1
            if shade(row[i]) > 0:
                cells.setdefault(shade(row[i]), []).append(
                    "M%g %gh%gv%gh%gz" % (
                        x0 + i * step, y0 + SIZE - (j + 1) * step,
                        (k - i) * step, step, -(k - i) * step))
            i = k
    for k, runs in sorted(cells.items()):
        out.append('<path d="%s" fill="%s"/>' % ("".join(runs),
                                                 colour(k / N_SHADE)))
    fine = density(rows, N_LINE)
    for (_, stroke, width), level in zip(LEVELS, levels_of(fine)):
        path = []
        for chain in lines(list(segments(fine, level))):
            points = ["%.1f %.1f" % (x0 + (x + 0.5) * SIZE / N_LINE,
                                     y0 + SIZE - (y + 0.5) * SIZE / N_LINE)
                      for x, y in chain]
            path.append("M" + "L".join(points))
        out.append('<path d="%s" fill="none" stroke="%s" '
                   'stroke-width="%g"/>' % ("".join(path), stroke, width))
    out.append('<rect x="%g" y="%g" width="%g" height="%g" fill="none" '
               'stroke="#444444"/>' % (x0, y0, SIZE, SIZE))
    out.append('<text x="%g" y="%g" text-anchor="middle" font-size="14">'
               '%s (%s residues)</text>' % (x0 + SIZE / 2, y0 - 7, name,
                                            format(count, ",")))
    for t in (-180, -90, 0, 90, 180):
        x, y = x0 + (t + 180) * SIZE / 360, y0 + SIZE
        out.append('<path d="M%g %gv4M%g %gh-4" stroke="#444444"/>' % (
            x, y, x0, y0 + SIZE - (t + 180) * SIZE / 360))
        out.append('<text x="%g" y="%g" text-anchor="middle">%s</text>' % (
            x, y + 16, str(t).replace("-", "\N{MINUS SIGN}")))
        out.append('<text x="%g" y="%g" text-anchor="end">%s</text>' % (
            x0 - 7, y0 + SIZE - (t + 180) * SIZE / 360 + 4,
            str(t).replace("-", "\N{MINUS SIGN}")))


def main():
    pitch_x, pitch_y, left, top = SIZE + 70, SIZE + 80, 62, 34
    width, height = left + 3 * pitch_x - 40, top + 2 * pitch_y - 16
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
           'viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" '
           'shape-rendering="geometricPrecision">' % (width, height, width,
                                                      height),
           '<rect width="100%" height="100%" fill="white"/>']
    for k, (name, count, rows) in enumerate(read_mixtures(PRIOR)):
        x0, y0 = left + k % 3 * pitch_x, top + k // 3 * pitch_y
        draw_map(out, x0, y0, name, count, rows)
        out.append('<text x="%g" y="%g" text-anchor="middle" font-size="12">'
                   '\N{GREEK SMALL LETTER PHI} (degrees)</text>' % (
                       x0 + SIZE / 2, y0 + SIZE + 33))
        if k % 3 == 0:
            x, y = x0 - 45, y0 + SIZE / 2
            out.append('<text x="%g" y="%g" text-anchor="middle" '
                       'font-size="12" transform="rotate(-90 %g %g)">'
                       '\N{GREEK SMALL LETTER PSI} (degrees)</text>' % (
                           x, y, x, y))
    out.append("</svg>")
    with open(OUT, "w") as file:
        file.write("\n".join(out) + "\n")


main()
