"""chi2/N of `tessera profile` for the curves in ../shared/data/saxs, by solvent
model, with and without a background, and its ratio to that of FoXS's formula
with its own bounds of c2 (-2 to 4), and with c2 from 0. Prints Markdown.

    python3 bench/forward_model.py [--tessera build/tessera] [--data
        ../shared/data] [--rotations N] [CASE...]

--rotations: prints instead the spread of chi2/N over N random orientations of
each structure, in percent.
"""
import argparse
import json
import math
import os
import random
import subprocess
import tempfile

CASES = [
    ("lysozyme_2epe", "model.pdb"), ("lysozyme_raw", "model.pdb"),
    ("lysozyme_6lyz", "model.pdb"), ("ribonuclease_a", "model.pdb"),
    ("carbonic_anhydrase", "model.pdb"), ("lair1s", "model.pdb"),
    ("lar_fn3_1_2", "model.pdb"), ("nup133_3kfo", "model.pdb"),
    ("nup133_3kfo", "model_crystal.pdb"), ("mpro_sasdjg5", "model.pdb"),
    ("glucose_isomerase", "model_rechained.pdb"),
    ("xylose_isomerase_consensus", "model.pdb"),
    ("tim9_10_sasdjq4", "model.pdb"), ("a2m_native", "model.pdb")]


def profile(a, case, structure, *options):
    folder = os.path.join(a.data, "saxs", case)
    # a consensus curve has its spread between laboratories in another file
    data = next(f for f in ("exp_spread.dat", "exp.dat")
                if os.path.exists(os.path.join(folder, f)))
    out = subprocess.run(
        [a.tessera, "profile", structure, "--data",
         os.path.join(folder, data), "--json", "--quiet", *options],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(out.stdout)["structures"][0]


def name(case, model):
    return case if model != "model_crystal.pdb" else case + ", crystal"


def number(value, fit, key):
    return "%.3g%s" % (value, "*" if fit[key + "_at_bound"] else "")


def compare(a):
    ways = [("layer",), ("atoms",), ("foxs",), ("foxs", "--c2", "0:4")]
    for background in "none", "fit":
        print("\nbackground %s\n" % background)
        print("| case | layer | r0 | e/A^3 | atoms | FoXS | c2 | FoXS, c2 "
              "from 0 | layer / FoXS | layer / FoXS, c2 from 0 |")
        print("|" + "---|" * 10)
        ratios = [[], []]
        for case, model in a.cases:
            path = os.path.join(a.data, "saxs", case, model)
            fit = [profile(a, case, path, "--background", background,
                           "--solvent-model", *way) for way in ways]
            for k in 0, 1:
                ratios[k].append(fit[0]["chi2"] / fit[2 + k]["chi2"])
            print("| %s | %.4g | %s | %s | %.4g | %.4g | %s | %.4g | %.3f | "
                  "%.3f |" % (
                name(case, model), fit[0]["chi2"],
                number(fit[0]["displaced_radius"], fit[0], "c1"),
                number(fit[0]["layer_contrast"], fit[0], "c2"),
                fit[1]["chi2"], fit[2]["chi2"],
                number(fit[2]["c2"], fit[2], "c2"), fit[3]["chi2"],
                ratios[0][-1], ratios[1][-1]), flush=True)
        print("| geometric mean, worst | | | | | | | | %s |" % " | ".join(
            "%.3f, %.3f" % (math.exp(sum(map(math.log, r)) / len(r)), max(r))
            for r in ratios))


def rotation(generator):
    """A random rotation matrix, from a unit quaternion."""
    w, x, y, z = (generator.gauss(0, 1) for _ in range(4))
    n = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / n, x / n, y / n, z / n
    return ((1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)))


def turned(path, matrix, to):
    with open(path) as lines, open(to, "w") as out:
        for line in lines:
            if line.startswith(("ATOM", "HETATM")):
                at = [float(line[30 + 8 * k:38 + 8 * k]) for k in range(3)]
                new = [sum(m * x for m, x in zip(row, at)) for row in matrix]
                line = line[:30] + "".join("%8.3f" % x for x in new) + line[54:]
            out.write(line)


def rotate(a):
    print("| case | chi2/N | spread, % |\n|---|---|---|")
    generator = random.Random(1)
    for case, model in a.cases:
        chi2 = []
        path = os.path.join(a.data, "saxs", case, model)
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(a.rotations):
                to = os.path.join(folder, "turned.pdb")
                turned(path, rotation(generator), to)
                chi2.append(profile(a, case, to,
                                    "--background", "none")["chi2"])
        print("| %s | %.4f | %.4f |" % (
            name(case, model), chi2[0],
            100 * (max(chi2) - min(chi2)) / min(chi2)), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--rotations", type=int, default=0)
    parser.add_argument("case", nargs="*")
    a = parser.parse_args()
    a.cases = [c for c in CASES if not a.case or c[0] in a.case]
    rotate(a) if a.rotations else compare(a)


main()
