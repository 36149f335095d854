"""Every file of a run, finished or not, opens in the programs that people use.
(ArviZ, which takes seconds to load, opens those of tests/oracle.) Prints a line
for each run (tests/run.sh).

    python open_run.py DIR...
"""
import glob
import subprocess
import sys
import traceback
import warnings

import h5py
import MDAnalysis
import netCDF4
import numpy as np


def look(directory):
    with netCDF4.Dataset(f"{directory}/trace.h5") as file:
        file.set_auto_mask(False)
        data = {group: {name: variable[:] for name, variable in of.variables.items()}
                for group, of in file.groups.items()}
        dims = file["sample_stats/changed_by_move"].dimensions
    posterior, stats = data["posterior"], data["sample_stats"]
    n_draw = len(posterior["draw"])
    assert "pivot" in stats["move"], stats["move"]
    terms = sum(stats[f"log_prior_{name}"] for name in
                ("torsion", "angle", "side", "clash", "restraint"))
    assert np.abs(terms - stats["log_prior"]).max() < 1e-6
    ladder = stats["ladder_temperature"]
    assert (ladder[..., 0] == 1).all() and (np.diff(ladder, axis=-1) > 0).all()
    cold = stats["ladder_log_lik"][..., 0]
    assert np.abs(cold / stats["log_lik"] - 1).max() < 1e-6
    by_move = stats["changed_by_move"]
    assert dims == ("chain", "draw", "move"), dims
    assert ((by_move > 0) & (by_move <= 1) | np.isnan(by_move)).all()
    assert np.isfinite(by_move).any()
    assert ((stats["changed_fraction"] > 0) & (stats["changed_fraction"] <= 1)).all()

    files = sorted(glob.glob(f"{directory}/trajectory-*.h5"))
    assert files
    n_frame = 0
    for path in files:
        with h5py.File(path) as file:
            n = file["particles/atoms/position/value"].shape[0]
            step = file["particles/atoms/position/step"][()]
            rg = file["observables/rg/value"][()]
        subprocess.run(["h5dump", "-H", path], check=True, stdout=subprocess.DEVNULL)
        n_frame += n
        if n == 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            universe = MDAnalysis.Universe(f"{directory}/model.pdb", path, format="H5MD",
                                           convert_units=False)
        assert len(universe.trajectory) == n
        if "-1.h5" in path or path.count("-") > directory.count("-") + 1:
            continue
        chain = int(path[-6:-3])
        alpha, nitrogen = (universe.select_atoms(f"name {name}") for name in ("CA", "N"))
        for frame in universe.trajectory[::10]:
            bonds = np.linalg.norm(alpha.positions - nitrogen.positions, axis=1)
            assert np.abs(bonds - 1.46).max() < 0.12, bonds
        kept = step < n_draw
        assert np.allclose(rg[kept], posterior["rg"][chain, step[kept]],
                           rtol=1e-12)
    for name in ("trace.h5", "checkpoint.h5"):
        subprocess.run(["h5dump", "-H", f"{directory}/{name}"], check=True,
                       stdout=subprocess.DEVNULL)
    return f"{n_draw} draws, {len(files)} trajectories, {n_frame} frames"


for directory in sys.argv[1:]:
    name = f"the files of '{directory}' open in netCDF4, MDAnalysis, h5py, h5dump"
    try:
        print(f"ok {name}: {look(directory)}")
    except Exception:
        print(f"not ok {name}\n{traceback.format_exc()}")
