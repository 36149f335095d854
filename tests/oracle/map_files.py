"""Maps that tessera wrote, as mrcfile reads them, and the numbers of `map cc`
computed again by NumPy: correlation, uncentred, line and Fourier shells.

map_files.py MAP MODEL_DENSITY DIFFERENCE CC.json
"""

import json
import sys
import warnings

import mrcfile
import numpy as np

warnings.simplefilter("error")
path, density, difference, told = sys.argv[1:]


def read(name):
    with mrcfile.open(name) as f:
        h = f.header
        origin = [float(h.origin[c]) for c in "xyz"]
        step = [float(f.voxel_size[c]) for c in "xyz"]
        return f.data.astype(float), origin, step


def check_written(name):
    if not mrcfile.validate(name, print_file=sys.stderr):
        sys.exit(f"{name} is not valid MRC2014")
    with mrcfile.open(name) as f:
        v, h = f.data.astype(float), f.header
        header = [float(h[k]) for k in ("dmin", "dmax", "dmean", "rms")]
        statistics = [v.min(), v.max(), v.mean(), v.std()]
        assert np.allclose(statistics, header, rtol=1e-5, atol=1e-7)


check_written(density)
check_written(difference)
e, origin, step = read(path)
s, origin_s, step_s = read(density)
d, origin_d, _ = read(difference)
assert np.allclose(origin, origin_s, atol=1e-3)
assert np.allclose(origin, origin_d, atol=1e-3)
assert np.allclose(step, step_s, rtol=1e-6)

with open(told) as f:
    model = json.load(f)["models"][0]
cc = np.corrcoef(e.ravel(), s.ravel())[0, 1]
assert abs(cc - model["cc_box"]) < 2e-6, (cc, model["cc_box"])
cosine = (e * s).sum() / np.sqrt((e * e).sum() * (s * s).sum())
assert abs(cosine - model["cc_box_uncentred"]) < 2e-6
slope, offset = np.polyfit(s.ravel(), e.ravel(), 1)
assert abs(slope / model["slope"] - 1) < 1e-5
assert np.abs(d - (e - slope * s - offset)).max() < 1e-4 * np.abs(e).max()

# Shells of 1 / (longest edge), up to Nyquist's frequency.
frequency = [np.fft.fftfreq(n, h) for n, h in zip(e.shape, step[::-1])]
radius = np.sqrt(
    frequency[0][:, None, None] ** 2
    + frequency[1][None, :, None] ** 2
    + frequency[2][None, None, :] ** 2
)
edge = max(n * h for n, h in zip(e.shape, step[::-1]))
shell = np.floor(radius * edge + 0.5).astype(int)
f, g = np.fft.fftn(e - e.mean()), np.fft.fftn(s - s.mean())
worst = 0.0
for k, value in enumerate(model["fsc"]):
    within = shell == k + 1
    norm = (np.abs(f[within]) ** 2).sum() * (np.abs(g[within]) ** 2).sum()
    fsc = (f[within] * g[within].conj()).real.sum() / np.sqrt(norm)
    worst = max(worst, abs(fsc - value))
assert worst < 1e-3, worst
