"""Compares all-atom profiles with AUSAXS (Lytje & Pedersen, PyPI pyausaxs): time
and accuracy for a thousand to a million atoms, on this machine. Prints Markdown.

    python3 -m venv VENV && VENV/bin/pip install pyausaxs==1.3.0
    python3 bench/ausaxs.py --python VENV/bin/python [--tessera build/tessera]
        [--data ../shared/data] [--most N] [--repeat N] [ATOMS...]

Structures: lysozyme, glucose isomerase, a2m, and copies of a2m on a lattice of
170 Angstrom, the last copy truncated. Both programs read a file, place a
hydration layer and compute 51 values of q up to 0.5 with form factors and
excluded volume: AUSAXS one curve, tessera six partial profiles. Each run is a
process. Of --repeat runs (AUSAXS: up to 50,000 atoms) the one with the least
CPU time is shown. `wall`: elapsed time, which depends on other users of the
machine; `CPU / 2`: half the CPU time, the elapsed time on two idle cores if both
are always busy; `sum`: CPU / 2 of the sum alone.

Accuracy: the largest relative deviation over q. AUSAXS: from its own exact sum
(debye_exact) at 10 values of q, for the atoms of the file with weights 1 and
without water (debye_raw). tessera: from `--device reference`, with form factors
and hydration (c2 = 1). AUSAXS, which is quadratic, is not run above --most
atoms.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SIZES = [1001, 12204, 43652, 103000, 1000000]
SOURCE = {1001: "lysozyme_2epe/model.pdb",
          12204: "glucose_isomerase/model_rechained.pdb"}
LETTERS = ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
           "0123456789")
EXACT = 20000  # most atoms for which quadratic sums are computed

AUSAXS = """
import sys, time, json, resource
import numpy as np, pyausaxs as a
from pyausaxs.wrapper import ExactDebye as exact
a.settings.general(verbose=False)
def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
q = np.linspace(0.01, 0.5, 50)
m = a.create_molecule(sys.argv[1])
m.hydrate()
t = cpu()
m.debye(q)
out = {'sum': cpu() - t}
if len(sys.argv) > 2:
    q = np.linspace(0.05, 0.5, 10)
    x, y, z = np.array([[float(l[30 + 8 * i:38 + 8 * i]) for i in range(3)]
                        for l in open(sys.argv[1])
                        if l.startswith('ATOM')]).T.copy()
    m = a.create_molecule(x, y, z, np.ones_like(x))
    e = exact.unoptimized.debye_exact(m, q)[1]
    out['error'] = float(np.max(np.abs(m.debye_raw(q)[1] / e - 1)))
print(json.dumps(out))
"""


def copies(source, n_want, path):
    """Writes copies of the atoms of a file on a cubic lattice, n_want atoms in all."""
    atoms = [x for x in open(source) if x.startswith(("ATOM", "HETATM"))]
    chains = sorted({x[21] for x in atoms})
    n_copy = -(-n_want // len(atoms))
    side = next(s for s in range(1, 99) if s ** 3 >= n_copy)
    n = 0
    with open(path, "w") as out:
        for k in range(n_copy):
            shift = [170.0 * (k // side ** c % side) for c in range(3)]
            for x in atoms[:n_want - n]:
                n += 1
                c = chains.index(x[21]) + k * len(chains)
                at = [float(x[30 + 8 * i:38 + 8 * i]) + shift[i]
                      for i in range(3)]
                out.write("%s%5d%s%s%s%8.3f%8.3f%8.3f%s\n" % (
                    x[:6], n % 100000, x[11:20],
                    LETTERS[c // 62] + LETTERS[c % 62], x[22:30], *at,
                    x[54:].rstrip("\n")))
        out.write("END\n")


def run(command):
    """Runs a command. Returns its output, elapsed and CPU seconds, and MB."""
    started = time.time()
    p = subprocess.Popen(command, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    if status != 0:
        sys.exit("%s: status %d" % (" ".join(command[:3]), status))
    return (out.decode(), time.time() - started,
            usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def least(a, command, n):
    """Of several runs the one with the least CPU time."""
    times = a.repeat if n <= 50000 or command[0] == a.tessera else 1
    return min((run(command) for _ in range(times)), key=lambda r: r[2])


def column(text):
    return [float(x.split()[1]) for x in text.splitlines()
            if x and not x.startswith("#")]


def tessera(a, path, n):
    base = [a.tessera, "profile", path, "--q-max", "0.5", "--n-q", "51",
            "--quiet"]
    out, wall, cpu, size = least(a, base + ["--json"], n)
    s = json.loads(out)["structures"][0]
    error = None
    if n <= EXACT:
        ours = column(run(base + ["--c2", "1"])[0])
        exact = column(run(base + ["--c2", "1", "--device", "reference"])[0])
        error = max(abs(x / y - 1) for x, y in zip(ours, exact))
    return s["method"], wall, cpu, s["predicted_seconds"], size, error


def ausaxs(a, path, n):
    out, wall, cpu, size = least(a, [a.python, "-c", AUSAXS, path], n)
    s = json.loads(out.splitlines()[-1])
    if n <= EXACT:
        more = run([a.python, "-c", AUSAXS, path, "exact"])[0]
        s["error"] = json.loads(more.splitlines()[-1])["error"]
    return wall, cpu, s["sum"], size, s.get("error")


def text(error):
    return "" if error is None else ("%.0e" % error if error > 1e-7 else "< 1e-7")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("atoms", nargs="*", type=int, default=SIZES)
    p.add_argument("--python", required=True)
    p.add_argument("--tessera", default="build/tessera")
    p.add_argument("--data", default="../shared/data")
    p.add_argument("--most", type=int, default=200000)
    p.add_argument("--repeat", type=int, default=3)
    a = p.parse_args()
    print("| atoms | tessera, wall | CPU / 2 | MB | method, predicted sum | "
          "error | AUSAXS, wall | CPU / 2 | sum | MB | error | ratio of CPU |")
    print("|" + "---|" * 12)
    with tempfile.TemporaryDirectory() as folder:
        for n in a.atoms:
            saxs = os.path.join(a.data, "saxs")
            path = os.path.join(saxs, SOURCE.get(n, "a2m_native/model.pdb"))
            if n > 43652:
                path = os.path.join(folder, "large.pdb")
                copies(os.path.join(saxs, "a2m_native/model.pdb"), n, path)
            method, w, c, predicted, m, e = tessera(a, path, n)
            print("| %d | %.2f s | %.2f s | %.0f | %s, %.3f s | %s |"
                  % (n, w, c / 2, m, method, predicted, text(e)), end="")
            if n > a.most:
                print(" | | | | | |", flush=True)
                continue
            w2, c2, sum2, m2, e2 = ausaxs(a, path, n)
            print(" %.2f s | %.2f s | %.2f s | %.0f | %s | %.1f |"
                  % (w2, c2 / 2, sum2 / 2, m2, text(e2), c2 / c), flush=True)


if __name__ == "__main__":
    main()
