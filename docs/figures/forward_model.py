#!/usr/bin/env python3
"""Draws the figures of docs/forward-model.md: make_forward_model.sh calls it.

    forward_model.py FOLDER REFERENCE_PROFILES OUT
"""
import bisect
import csv
import math
import os
import sys

from svg_plot import (BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Figure,
                      Panel)

Q = "q (1/Å)"
CASES = [  # file, title, where the panel says more
    ("lysozyme_2epe", "lysozyme 2EPE"), ("lysozyme_raw", "lysozyme, RAW"),
    ("lysozyme_6lyz", "lysozyme 6LYZ"),
    ("glucose_isomerase", "glucose isomerase"),
    ("mpro_sasdjg5", "Mpro dimer"), ("nup133_3kfo", "nup133, completed"),
    ("lar_fn3_1_2", "LAR Fn3 1–2"), ("ligase_multifoxs", "DNA ligase"),
    ("a2m_native", "α2-macroglobulin")]
MOST_POINTS = 120


def read(path, width):
    """Columns of the lines that begin with `width` numbers."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                row = [float(word) for word in line.split()]
            except ValueError:
                continue
            if len(row) >= width:
                rows.append(row[:width])
    return [list(column) for column in zip(*rows)]


def read_fit(path):
    """q, I, sigma, model, chi2 as text, with a star where at a bound."""
    with open(path, encoding="utf-8") as lines:
        head = [next(lines) for _ in range(3)]
    chi2 = float(head[1].split("Chi^2 = ")[1].split()[0].rstrip(","))
    star = "*" if "bound" in "".join(head) else ""
    return read(path, 4) + [f"{chi2:.4g}" + star if chi2 > 100
                            else f"{chi2:.2f}" + star]


def group(q, intensity, sigma, models):
    """Weighted means of neighbouring points, so that few enough are left."""
    n = -(-len(q) // MOST_POINTS)
    out = []
    for i in range(0, len(q), n):
        s = slice(i, i + n)
        w = [1.0 / e ** 2 for e in sigma[s]]
        total = sum(w)
        out.append([sum(a * b for a, b in zip(w, column[s])) / total
                    for column in [q, intensity] + models]
                   + [total ** -0.5])
    q, intensity, *models, sigma = [list(c) for c in zip(*out)]
    return q, intensity, sigma, models


def fits(folder, path):
    figure = Figure(980, 1080, "Fits to nine measured curves: all atoms and "
                    "two bodies a residue")
    figure.legend(70, 22, [("measured", GREY, "dot"),
                           ("all atoms", BLUE, None),
                           ("two bodies a residue", RED, "6 3")])
    for i, (name, title) in enumerate(CASES):
        q, intensity, sigma, atoms, chi2 = read_fit(
            os.path.join(folder, name + ".atoms.fit"))
        *_, two, chi2_two = read_fit(os.path.join(folder, name + ".two.fit"))
        q_bin, i_bin, s_bin, models = group(q, intensity, sigma, [atoms, two])
        left, top = 70 + 315 * (i % 3), 40 + 347 * (i // 3)
        q_range = (0.0, math.ceil(q[-1] * 20 - 0.2) / 20)
        positive = sorted(x for x in i_bin if x > 0.0)
        low = min(min(atoms), positive[len(positive) // 50])
        upper = Panel(figure, left, top, 230, 195, q_range,
                      (low / 2, 1.6 * max(max(atoms), max(i_bin))), log=True)
        upper.axes(y_label="I(q), as in the data" if i % 3 == 0 else None,
                   x_numbers=False)
        upper.dots(q_bin, i_bin, GREY, 2.6, s_bin)
        upper.curve(q, atoms, BLUE)
        upper.curve(q, two, RED, dash="6 3")
        upper.label(title, "χ²/N, atoms " + chi2,
                    "two bodies " + chi2_two)
        residuals = [[(a - b) / e for a, b, e in zip(i_bin, m, s_bin)]
                     for m in models]
        extreme = max(4.0, 1.1 * max(map(abs, residuals[0] + residuals[1])))
        tick = max(t * 10 ** k for t in (1, 2, 5) for k in range(3)
                   if t * 10 ** k < extreme)
        lower = Panel(figure, left, top + 205, 230, 80, q_range,
                      (-extreme, extreme))
        lower.axes(Q if i > 5 else None,
                   "residual / σ" if i % 3 == 0 else None,
                   y_ticks=(-tick, 0, tick))
        lower.curve(q_range, (0.0, 0.0), BLACK, 0.8)
        for r, colour, dash in zip(residuals, (BLUE, RED), (None, "6 3")):
            lower.curve(q_bin, r, colour, 1.2, dash)
    figure.write(path)


def between(q, curve, at):
    """Between the points of a fine curve, linear in its logarithm."""
    i = min(max(bisect.bisect(q, at), 1), len(q) - 1)
    t = (at - q[i - 1]) / (q[i] - q[i - 1])
    return curve[i - 1] ** (1 - t) * curve[i] ** t


def ratio(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def tell(panel, text, x, y, colour):
    """The name of a curve beside it."""
    x, y = panel.at(x, y)
    panel.figure.add(f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}">{text}'
                     "</text>")


def programs(folder, published, path):
    figure = Figure(980, 900, "Curves of tessera beside those of CRYSOL, FoXS "
                    "and PLUMED")
    q, _, vacuum, excluded, _ = read(os.path.join(folder, "1hel.dat"), 5)
    crysol = read(os.path.join(published, "crysol_1hel/1HEL00.int"), 5)
    q_fit, _, _, fitted = read(os.path.join(folder, "crysol.fit"), 4)
    scale = crysol[1][1] / read(os.path.join(folder, "crysol.fit"), 2)[1][0]
    total = [scale * x for x in fitted]
    foxs_q, foxs = read(os.path.join(published, "foxs_6lyz/6lyz.pdb.dat"), 2)
    _, ours = read(os.path.join(folder, "6lyz.dat"), 2)
    foxs_fit = read(os.path.join(folder, "foxs.fit"), 4)
    nup = read(os.path.join(folder, "foxs_3kfo.fit"), 4)
    nup_foxs = read(os.path.join(
        published, "foxs_3kfo/3KFOfill.B99990003_saxs.fit"), 4)
    dna_q, dna = read(os.path.join(folder, "dna.dat"), 2)
    with open(os.path.join(published, "plumed_rt-saxs/plumed.dat"),
              encoding="utf-8") as lines:  # the first of its two blocks
        words = "".join(lines).split("ENDPLUMED")[0].split()
    plumed_q = [float(w.split("=")[1]) for w in words
                if w.startswith("QVALUE")][:15]
    plumed = read(os.path.join(
        published, "plumed_rt-saxs/colvar.reference"), 16)
    plumed = [column[0] for column in plumed[1:]]
    dna_at = [between(dna_q, dna, x) / dna[0] for x in plumed_q]

    x, width, height = (70, 395, 720), 235, 220
    y = (50, 335, 620)
    wide = (0.0, 0.5)

    def panel(column, row, y_range, x_range=wide, log=False):
        return Panel(figure, x[column], y[row], width, height, x_range,
                     y_range, log)

    figure.legend(70, 24, [("tessera", BLACK, None),
                           ("the other program", BLACK, "dot")])
    p = panel(0, 0, (1e3, 3e8), log=True)
    p.axes(y_label="I(q) (electrons²)")
    for theirs, our_q, own, colour in (
            (crysol[2], q, vacuum, BLUE), (crysol[3], q, excluded, RED),
            (crysol[1], q_fit, total, GREEN)):
        p.curve(our_q, own, colour)
        p.dots(crysol[0], theirs, colour, 4.5)
    p.label("CRYSOL 2, 1HEL")
    tell(p, "vacuum", 0.16, 3.4e7, BLUE)
    tell(p, "excluded volume", 0.23, 2.6e6, RED)
    tell(p, "total", 0.1, 2e5, GREEN)
    p = panel(1, 0, (1e3, 3e7), log=True)
    p.axes()
    p.curve(foxs_q, ours, GREEN)
    p.dots(foxs_q[::8], foxs[::8], GREEN, 4)
    p.label("FoXS, 6LYZ", "c1 = 1, c2 = 0")
    p = panel(2, 0, (3e-4, 4), (0.0, 0.4), log=True)
    p.axes(y_label="I(q) / I(0)")
    p.curve(dna_q, [v / dna[0] for v in dna], GREEN)
    p.dots(plumed_q, plumed, GREEN, 4.5)
    p.label("PLUMED, protein with DNA", "c1 = 1, c2 = 0")

    def ratios(column, row, y_range, curves, labels, x_range=wide, **more):
        p = panel(column, row, y_range, x_range)
        p.axes(Q if row == 2 or column == 2 and row == 1 else None,
               "ours / theirs" if column == 0 else None, **more)
        p.curve(x_range, (1.0, 1.0), BLACK, 0.8)
        for own_q, values, colour, dash in curves:
            p.curve(own_q, values, colour, dash=dash)
        p.label(*labels)
        return p

    p = ratios(0, 1, (0.97, 1.02),
               [(q, ratio(vacuum, crysol[2]), BLUE, None),
                (q, ratio(excluded, crysol[3]), RED, "6 3")],
               ("CRYSOL 2, 1HEL", "vacuum and excluded volume"),
               y_ticks=(0.97, 0.98, 0.99, 1, 1.01, 1.02))
    tell(p, "vacuum", 0.08, 1.001, BLUE)
    tell(p, "excluded volume", 0.03, 0.9725, RED)
    ratios(1, 1, (0.95, 1.45), [(foxs_q, ratio(ours, foxs), GREEN, None)],
           ("FoXS, 6LYZ", "total, c1 = 1, c2 = 0,", "nothing fitted"))
    p = ratios(2, 1, (0.92, 1.12),
               [(plumed_q, ratio(dna_at, plumed), GREEN, None)],
               ("PLUMED, protein with DNA", "total over that at q = 0"),
               (0.0, 0.4))
    p.dots(plumed_q, ratio(dna_at, plumed), GREEN, 5)
    ratios(0, 2, (0.8, 1.25), [(q_fit, ratio(total, crysol[1][1:]), GREEN,
                               None)],
           ("CRYSOL 2, 1HEL", "total, ours fitted to CRYSOL's",
            "(c2 at its bound)"))
    ratios(1, 2, (0.8, 1.25),
           [(foxs_fit[0], ratio(foxs_fit[3], foxs_fit[1]), GREEN, None)],
           ("FoXS, 6LYZ", "total, scale and c1 fitted to FoXS's"))
    ratios(2, 2, (0.9, 1.25),
           [(nup[0], ratio(nup[3], nup_foxs[3]), GREEN, None)],
           ("FoXS, nup133 (3KFO filled)", "total, both fitted to the",
            "measured curve"), (0.0, 0.3))
    figure.write(path)


def errors(folder, path):
    with open(os.path.join(folder, "errors.csv"), encoding="utf-8") as lines:
        head, *rows = csv.reader(lines)
    column = {name: [100 * float(row[i]) for row in rows]
              for i, name in enumerate(head)}
    q = [x / 100 for x in column[head[0]]]
    figure = Figure(980, 830, "Errors of bodies against all atoms, on "
                    "structures held out of the training")
    asked = {"two": (1, 2, 4), "one": (1.5, 5, 10)}
    first = [(" S", "with S(q)", BLUE, None), ("", "without S(q)", RED, "7 3")]
    for i, bodies in enumerate(("two", "one")):
        left = 75 + 465 * i
        for row, top in enumerate((60, 465)):
            p = Panel(figure, left, top, 420, 320, (0.0, 0.5), (0.02, 100),
                      log=True)
            p.axes(Q, "median |relative error| of I(q) (%)" if i == 0
                   else None)
            for level, a, b in zip(asked[bodies], (0.1, 0.2, 0.35),
                                   (0.2, 0.35, 0.5)):
                p.curve((a, b), (level, level), GREY, 2, "2 3")
            if row == 0:
                p.label(f"{bodies} bod{'ies' if i == 0 else 'y'} a residue, "
                        "c1 = 1, c2 = 0", right=False)
                p.curve(q, column[f"form_factors-{bodies}_body_model.dat"],
                        GREEN, dash="2 2")
                for suffix, _, colour, dash in first[::-1]:
                    p.curve(q, column[f"form_factors_{bodies}_body.dat"
                                      + suffix], colour, dash=dash)
            else:
                p.label(f"{bodies} bod{'ies' if i == 0 else 'y'} a residue, "
                        "three components, c1 = 1", right=False)
                for c2, colour, dash in ((2, PURPLE, "2 2"),
                                         (1, ORANGE, "7 3"),
                                         (0, BLUE, None)):
                    p.curve(q, column[f"components_{bodies}_body.dat c1=1 "
                                      f"c2={c2}"], colour, dash=dash)
    aim = ("asked of the rms over a band (issue 4)", GREY, "2 3")
    figure.legend(75, 28, [(name, colour, dash) for _, name, colour, dash in
                           first] + [("Stovgaard et al. 2010", GREEN, "2 2"),
                                     aim])
    figure.legend(75, 447, [("c2 = 0", BLUE, None), ("c2 = 1", ORANGE, "7 3"),
                            ("c2 = 2", PURPLE, "2 2"), aim])
    figure.write(path)


def main():
    folder, published, out = sys.argv[1:]
    fits(folder, os.path.join(out, "fits.svg"))
    programs(folder, published, os.path.join(out, "programs.svg"))
    errors(folder, os.path.join(out, "coarse_errors.svg"))


if __name__ == "__main__":
    main()
