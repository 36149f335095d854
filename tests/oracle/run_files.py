"""The files of a run that was killed, as their users open them.

    python run_files.py DIRECTORY

where write_run wrote model.pdb, trajectory-000.h5, trace.h5, checkpoint.h5.
"""
import pathlib
import shutil
import subprocess
import sys
import warnings

import arviz
import h5py
import MDAnalysis
import netCDF4
import numpy as np
import xarray

N_ATOM, N_FRAME = 600, 30
MOVES = ["pivot", "crankshaft", "Ram\u00e9"]


def conformation(frame):
    i = np.arange(N_ATOM)
    return np.stack([0.75 * i - 100, np.full(N_ATOM, 10.0 + frame),
                     0.125 * (i % 7) - 0.5 * frame], axis=1).astype("f4")


def check_universe(folder):
    """MDAnalysis: topology, units, frames, positions, observables."""
    warnings.filterwarnings("ignore")
    u = MDAnalysis.Universe(folder / "model.pdb", folder / "trajectory-000.h5",
                            format="H5MD")  # it knows the ending .h5md only
    assert len(u.atoms) == N_ATOM and len(u.residues) == N_ATOM // 5
    assert list(u.atoms.names[:5]) == ["N", "CA", "C", "O", "SC"]
    assert list(u.segments.segids) == ["A", "B"]
    assert len(u.trajectory) == N_FRAME
    assert u.trajectory.units["length"] == "Angstrom", u.trajectory.units
    for frame, step in enumerate(u.trajectory):
        assert np.array_equal(step.positions, conformation(frame)), frame
        assert step.dimensions is None
        assert step.time == step.data["step"] == 10 * frame
        assert step.data["rg"] == 20 + frame and step.data["lp"] == -frame
        assert step.data["weight"] == 0.5
    u.trajectory[7]
    assert u.select_atoms("name CA").positions[0, 1] == 17.0
    model = MDAnalysis.Universe(folder / "model.pdb")
    assert np.abs(model.atoms.positions - conformation(0)).max() < 6e-4


def check_h5md(folder):
    """H5MD 1.1 as its text says."""
    with h5py.File(folder / "trajectory-000.h5") as f:
        assert list(f["h5md"].attrs["version"]) == [1, 1]
        assert f["h5md/creator"].attrs["name"] == "tessera"
        assert f["h5md/creator"].attrs["version"].count(".") == 2
        assert isinstance(f["h5md/author"].attrs["name"], str)
        assert sorted(f["particles"]) == ["atoms", "bodies"]
        for kind, n in (("atoms", N_ATOM), ("bodies", 40)):
            box = f[f"particles/{kind}/box"].attrs
            assert box["dimension"] == 3 and list(box["boundary"]) == ["none"] * 3
            position = f[f"particles/{kind}/position"]
            value = position["value"]
            assert value.shape == (N_FRAME, n, 3) and value.dtype == np.float32
            assert value.maxshape == (None, n, 3) and value.shuffle
            assert value.compression == "gzip"
            assert value.attrs["unit"] == "Angstrom"
            assert position["step"].dtype == np.int64
            assert position["step"] == f["observables/rg/step"]
            assert list(position["step"]) == list(range(0, 300, 10))
            assert np.array_equal(position["time"], position["step"])
        assert f["observables/rg/value"].attrs["unit"] == "Angstrom"
        assert "unit" not in f["observables/lp/value"].attrs
        assert f["parameters"].attrs["stride"] == 10


def check_trace(folder):
    """Labels of a dimension, in ArviZ, xarray, netCDF and h5py."""
    path = folder / "trace.h5"
    for engine in ("h5netcdf", "netcdf4"):
        stats = arviz.from_netcdf(path, engine=engine).sample_stats
        assert list(stats.move.values) == MOVES, stats.move
        assert stats.accepted.dims == ("chain", "draw", "move")
        assert (stats.accepted.sel(move="Ram\u00e9") == [[2, 5], [8, 11]]).all()
        assert list(stats.temperature.values) == [1, 1.5, 2.25]
        with xarray.open_dataset(path, group="sample_stats", engine=engine) as data:
            assert float(data.accepted.sel(move="pivot")[1, 1]) == 9
    table = arviz.summary(arviz.from_netcdf(path).sample_stats, kind="stats")
    assert "accepted[crankshaft]" in table.index, table.index
    with netCDF4.Dataset(path) as nc:
        assert list(nc["sample_stats/move"][:]) == MOVES
        assert nc["sample_stats/accepted"].dimensions == ("chain", "draw", "move")
    copy = folder / "trace-copy.h5"
    shutil.copy(path, copy)
    with netCDF4.Dataset(copy, "a") as nc:
        nc["sample_stats"].note = "appended"
    copy.unlink()


def check_checkpoint(folder):
    with h5py.File(folder / "checkpoint.h5") as f:
        assert f.attrs["format"] == "tessera checkpoint"
        assert f.attrs["format_version"] == 9
        assert f.attrs["config_hash"] == "00ff"
        assert list(f["chain/xyz"]) == [0.5, -1.25]
        assert list(f["chain/rng"]) == [-(2**63), 1, 2]
        assert f["config"][()].decode() == "seed: 1\n"


def check_h5dump(folder):
    if shutil.which("h5dump") is None:
        print("skip h5dump: not installed (Debian: hdf5-tools)")
        return
    for path in sorted(folder.glob("*.h5")):
        done = subprocess.run(["h5dump", path], capture_output=True, check=True)
        assert b"DATASET" in done.stdout and not done.stderr, path
    print("ok h5dump reads the files of a run that was killed")


folder = pathlib.Path(sys.argv[1])
check_trace(folder)
check_checkpoint(folder)
check_h5md(folder)
check_universe(folder)
check_h5dump(folder)
