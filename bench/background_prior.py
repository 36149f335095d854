"""Log evidence of the curves in ../shared/data/saxs, rigid structures, under
normal priors of the background b of several widths, against no background.
Prints Markdown.

    .venv/bin/python bench/background_prior.py [--tessera build/tessera]
        [--data ../shared/data] [--q-max Q...]

The curve I(q; c1, c2) is that of `tessera profile`: exact in c2 (a parabola),
and interpolated between seven values of c1. Scale c (flat prior), b and c1, c2
and s (priors of a run, c1 inferred) are integrated out: c and b in closed form,
the others on a grid. Widths are multiples of the root mean square intensity in
the last quarter of the q range.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import scipy.special

CASES = [
    ("lysozyme_2epe", "model.pdb", "exp.dat"),
    ("lysozyme_raw", "model.pdb", "exp.dat"),
    ("lysozyme_6lyz", "model.pdb", "exp.dat"),
    ("ribonuclease_a", "model.pdb", "exp.dat"),
    ("carbonic_anhydrase", "model.pdb", "exp.dat"),
    ("lair1s", "model.pdb", "exp.dat"),
    ("lar_fn3_1_2", "model.pdb", "exp.dat"),
    ("nup133_3kfo", "model.pdb", "exp.dat"),
    ("mpro_sasdjg5", "model.pdb", "exp.dat"),
    ("glucose_isomerase", "model_rechained.pdb", "exp.dat"),
    ("tim9_10_sasdjq4", "model.pdb", "exp.dat"),
    ("a2m_native", "model.pdb", "exp.dat"),
    ("xylose_isomerase_consensus", "model.pdb", "exp_spread.dat"),
    ("bsa", "model.pdb", "exp.dat")]
WIDTHS = [0.05, 0.2, 0.5, 1, 2, 10, 100]
KNOTS = np.linspace(0.95, 1.05, 7)
C1 = np.linspace(0.95, 1.05, 161)
C2 = np.linspace(0.0, 4.0, 321)
HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


def log_normal(x, mean, width):
    """Log of the prior's share of each point of a uniform grid."""
    log_p = -0.5 * ((x - mean) / width) ** 2
    return log_p - scipy.special.logsumexp(log_p)


def curve(a, case, model, data, c1, c2):
    folder = os.path.join(a.data, "saxs", case)
    with tempfile.TemporaryDirectory() as scratch:
        fit = os.path.join(scratch, "one.fit")
        out = subprocess.run(
            [a.tessera, "profile", os.path.join(folder, model), "--data",
             os.path.join(folder, data), "--json", "--quiet", "--background",
             "none", "--c1", str(c1), "--c2", str(c2), "-o", fit],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        table = np.loadtxt(fit)
    table[:, 3] /= json.loads(out.stdout)["structures"][0]["scale"]
    return table


def curves(a, *case):
    """q, I, sigma, and the model as powers of c2 at each c1 [c1, power, q]."""
    power = []
    for c1 in KNOTS:
        table = [curve(a, *case, c1, c2) for c2 in (0.0, 1.0, 2.0)]
        y = [t[:, 3] for t in table]
        square = 0.5 * (y[2] - 2.0 * y[1] + y[0])
        power.append([y[0], y[1] - y[0] - square, square])
    weight = np.array([np.prod([(C1 - k) / (own - k) for k in KNOTS if k != own],
                               axis=0) for own in KNOTS])
    q, intensity, sigma = table[0][:, :3].T
    return q, intensity, sigma, np.einsum("ki,kpq->ipq", weight, np.array(power))


class Posterior:
    """Of one curve: log evidence and means, for a prior width of b (0: none)."""

    def __init__(self, q, intensity, sigma, power, q_max):
        use = q <= q_max
        q, i, power = q[use], intensity[use], power[:, :, use]
        w = sigma[use] ** -2.0
        self.n, self.log_sigma = len(q), np.log(sigma[use]).sum()
        self.one, self.d, self.dd = w.sum(), w @ i, w @ i**2
        x = C2[:, None] ** np.arange(3)
        self.m, self.md = power @ w @ x.T, power @ (w * i) @ x.T
        self.mm = np.einsum("xa,iaq,ibq,q,xb->ix", x, power, power, w, x,
                            optimize=True)
        end = q >= q[0] + 0.75 * (q[-1] - q[0])
        self.end = np.sqrt(np.mean(i[end] ** 2))
        self.prior = (log_normal(C1, 1.0, 0.02)[:, None] +
                      log_normal(C2, 1.0, 1.5)[None])

    def fit(self, ridge):
        """|m|^2, c, |1|^2 and the sum of squares; ridge None: no background."""
        norm, cross, square, one = self.mm, self.md, self.dd, 1.0
        if ridge is not None:
            one = self.one + ridge
            norm = norm - self.m**2 / one
            cross = cross - self.m * self.d / one
            square = square - self.d**2 / one
        return norm, cross / norm, one, square - cross**2 / norm

    def at(self, width):
        least = self.fit(0.0 if width > 0 else None)[3].min()
        step = 0.5 / np.sqrt(2.0 * self.n)
        log_p, b = [], []
        grid = 0.5 * np.log(least / self.n) + step * np.arange(-16, 25)
        for log_s in grid:
            t = np.exp(2.0 * log_s)
            norm, c, one, square = self.fit(t / width**2 if width > 0 else None)
            log_p.append(
                self.prior - 0.5 * (log_s / 0.5) ** 2 - np.log(0.5) +
                np.log(step) - self.log_sigma - self.n * (log_s + HALF_LOG_2PI) -
                0.5 * np.log(norm / t) - 0.5 * square / t +
                scipy.special.log_ndtr(c * np.sqrt(norm / t)))
            if width > 0:
                log_p[-1] += 0.5 * np.log(t / (one * width**2))
            b.append((self.d - c * self.m) / one if width > 0 else 0.0 * c)
        log_z = scipy.special.logsumexp(log_p)
        p = np.exp(np.array(log_p) - log_z)
        mean_s = np.exp((p.sum(axis=(1, 2)) * grid).sum())
        return (log_z, (p * np.array(b)).sum(), (p.sum(axis=(0, 1)) * C2).sum(),
                mean_s)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--q-max", type=float, nargs="*", default=[0.5, 0.3, 0.2])
    a = parser.parse_args()
    known = {case: curves(a, *case) for case in CASES}
    for q_max in a.q_max:
        gains = []
        print("\nq to %g\n\n| case | b / rms | c2 | s | %s |" % (
            q_max, " | ".join("%g" % w for w in WIDTHS)))
        print("|---" * (4 + len(WIDTHS)) + "|")
        for case in CASES:
            one = Posterior(*known[case], q_max)
            none = one.at(0.0)
            found = [one.at(w * one.end) for w in WIDTHS]
            gains.append([f[0] - none[0] for f in found])
            free = found[WIDTHS.index(0.5)]
            print("| %s | %.2f | %.2f, %.2f | %.2f, %.2f | %s |" % (
                case[0], free[1] / one.end, none[2], free[2], none[3], free[3],
                " | ".join("%.1f" % g for g in gains[-1])), flush=True)
        print("| sum | | | | %s |" % " | ".join(
            "%.1f" % g for g in np.sum(gains, axis=0)))


main()
