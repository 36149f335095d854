"""The figure of docs/forward-model.md that shows how the time of `tessera
profile` grows with the atoms, by method; and its table on standard output.

    python3 docs/figures/methods.py [TESSERA [DATA [FIGURE]]]

Seconds of the processor of the whole command, all threads added up: what other
programs do on the machine matters least to them. Structures: those of
bench/ausaxs.py."""
import json
import math
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../bench"))
from ausaxs import SIZES, SOURCE, copies, run  # noqa: E402
from svg_plot import BLUE, GREEN, GREY, RED, Figure, Panel  # noqa: E402

METHODS = (("direct", 45000, RED, "7 3"), ("quadrature", 13000, GREEN, "2 2"),
           ("fft", 1 << 30, BLUE, None))


def measure(tessera, data):
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            a2m = os.path.join(data, "saxs/a2m_native/model.pdb")
            path = os.path.join(data, "saxs", SOURCE.get(n, ""))
            if n not in SOURCE:
                path = os.path.join(folder, "large.pdb")
                copies(a2m, n, path)
            for method, most, _, _ in METHODS:
                if n > most:
                    continue
                out, wall, cpu, size = run(
                    [tessera, "profile", path, "--q-max", "0.5", "--n-q", "51",
                     "--json", "--quiet", "--method", method])
                s = json.loads(out)["structures"][0]
                seconds[method, n] = cpu
                print("| %d | %s | %.0f | %.2f | %.2f | %.3f | %.0f |" % (
                    n, method, s["d_max"], cpu, wall, s["predicted_seconds"],
                    size), flush=True)
    return seconds


def draw(seconds, path):
    figure = Figure(700, 440, "Time of tessera profile by the number of atoms")
    p = Panel(figure, 75, 50, 600, 330, (2.9, 6.1), (0.03, 200), log=True)
    p.axes("atoms, powers of ten", "seconds of the processor", n_x=4)
    n0 = 43652
    t0 = seconds["fft", n0]
    p.curve([3, 6], [t0 * 1e3 / n0, t0 * 1e6 / n0], GREY, 1.2, "2 3")
    for method, _, colour, dash in METHODS:
        at = sorted(n for m, n in seconds if m == method)
        x = [math.log10(n) for n in at]
        y = [seconds[method, n] for n in at]
        p.curve(x, y, colour, dash=dash)
        p.dots(x, y, colour)
    figure.legend(75, 28, [(m, colour, dash) for m, _, colour, dash in METHODS]
                  + [("linear growth", GREY, "2 3")])
    figure.write(path)


def main():
    given = sys.argv[1:] + ["build/tessera", "../shared/data",
                            "docs/figures/methods.svg"][len(sys.argv) - 1:]
    print("| atoms | method | D_max | CPU s | wall s | predicted sum | MB |\n"
          + "|" + "---|" * 7)
    draw(measure(given[0], given[1]), given[2])


main()
