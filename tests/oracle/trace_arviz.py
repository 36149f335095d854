"""trace.h5 and `summary --json` judged by ArviZ, xarray, netCDF4 and h5py.

usage: trace_arviz.py DIRECTORY, where write_trace wrote NAME.h5, NAME.json.

An angle is judged by SciPy's circular mean and sd, and by ArviZ with the circle
cut opposite that mean.

Numbers must agree to 1e-8 relative (the two sum in different orders, and the
FFTs differ in length; 1e-6 is what a user could see). Two differences are meant,
see src/analysis/convergence.h: a constant variable has no diagnostics, and one
chain has an R-hat, which ArviZ's inner functions on its two halves judge.
"""

import json
import math
import pathlib
import shutil
import sys
import warnings

import arviz as az
import h5py
import netCDF4
import numpy as np
import scipy.stats
import xarray as xr

TOLERANCE = 1e-8
SHAPES = {"usual": (4, 1001), "many": (8, 250), "short": (2, 7), "least": (3, 4),
          "two": (2, 600), "one": (1, 400)}
SCALARS = ["ramp", "iid", "slow", "antithetic", "heavy", "shifted", "wide", "counts", "constant"]
ANGLES = ["angle"]
N_Q = 40
Q = 0.0078125 * np.arange(1, N_Q + 1)
GROUPS = {"posterior", "sample_stats", "posterior_predictive", "warmup_posterior",
          "observed_data", "constant_data"}


def ramp(n_chain, n_draw, n):
    c, d, k = np.ogrid[:n_chain, :n_draw, :n]
    return 100.0 * c + d + k / 64.0


def check_contents(idata, n_chain, n_draw):
    """Groups, dims, coordinates, values, attributes, as ArviZ sees them."""
    assert set(idata.groups()) == GROUPS, idata.groups()
    post = idata.posterior
    assert list(post.data_vars) == SCALARS + ANGLES + ["weight"], list(post.data_vars)
    assert dict(post.sizes) == {"chain": n_chain, "draw": n_draw, "state": 2}
    for name in ("chain", "draw", "state"):
        coord = post[name]
        assert coord.dtype == np.int64 and coord.dims == (name,)
        assert np.array_equal(coord, np.arange(post.sizes[name])), name
    curve, warm = idata.posterior_predictive.intensity, idata.warmup_posterior
    lp, observed = idata.sample_stats.lp, idata.observed_data.intensity
    n_point = idata.constant_data.n_point
    for data, dims, attrs in (
            (post.iid, ("chain", "draw"), {"units": "Angstrom", "long_name": "a sample chain"}),
            (post.weight, ("chain", "draw", "state"), None),
            (lp, ("chain", "draw"), {"long_name": "log posterior density"}),
            (curve, ("chain", "draw", "q"), None), (curve.q, ("q",), {"units": "1/Angstrom"}),
            (observed, ("q",), None), (n_point, (), None)):
        assert data.dims == dims and (attrs is None or data.attrs == attrs), data
    c, d = np.ogrid[:n_chain, :n_draw]
    for data, values in (
            (post.ramp, 1e4 * c + d), (post.weight, ramp(n_chain, n_draw, 2)),
            (curve, ramp(n_chain, n_draw, N_Q).astype("f4")), (curve.q, Q), (observed, Q),
            (warm.iid, ramp(n_chain, 3, 1)[:, :, 0]), (n_point, N_Q)):
        assert np.array_equal(data, values), data
    assert np.isfinite(post.heavy).all() and lp.shape == (n_chain, n_draw)
    assert curve.dtype == np.float32 and curve.q.dtype == np.float64
    assert dict(warm.sizes) == {"chain": n_chain, "draw": 3}
    assert set(idata.constant_data.data_vars) == {"sigma", "n_point"}

    for name in GROUPS:
        attrs = idata[name].attrs
        assert attrs["inference_library"] == "tessera"
        assert attrs["inference_library_version"].count(".") == 2
        np.datetime64(attrs["created_at"][:19])
        assert attrs["created_at"].endswith("+00:00")
        assert ("config" in attrs) == (name == "posterior")
    for attrs in (post.attrs, idata.attrs):
        assert attrs["config"] == "name: sample\nseed: 1\n"
        assert attrs["device"] == "r\u00e9f\u00e9rence"
        assert attrs["inference_library"] == "tessera"


def check_layout(path, n_chain):
    """Dimension scales and storage, as HDF5 sees them."""
    seen = set()
    with h5py.File(path) as f:
        for name, data in ((n, d) for group in f.values() for n, d in group.items()):
            if data.is_scale:
                ident = int(data.attrs["_Netcdf4Dimid"])
                assert data.attrs["NAME"].decode() == name and ident not in seen
                seen.add(ident)
                continue
            for axis in range(data.ndim):
                (scale,) = data.dims[axis].values()
                assert scale.parent == data.parent and scale.shape == (data.shape[axis],)
                where = [(f[r[0]].name, int(r[1])) for r in scale.attrs["REFERENCE_LIST"]]
                assert (data.name, axis) in where
            if data.ndim >= 2:
                assert data.dims[0][0].name.endswith("/chain")
                assert data.dims[1][0].name.endswith("/draw")
                assert data.maxshape[:2] == (n_chain, None)
                assert data.dims[1][0].maxshape == (None,)
            fill = data.attrs["_FillValue"]
            assert np.isnan(data.fillvalue) and np.isnan(fill) and fill.dtype == data.dtype
        curve = f["posterior_predictive/intensity"]
        assert curve.compression == "gzip" and curve.shuffle
        assert f["posterior/iid"].compression is None
        assert isinstance(f.attrs["config"], str)


def check_netcdf4(path):
    """netCDF itself, also for appending: needs the order of creation."""
    copy = path.with_suffix(".copy.h5")
    shutil.copy(path, copy)
    with netCDF4.Dataset(copy, "a") as nc:
        post = nc["posterior"]
        assert post.dimensions["draw"].isunlimited()
        assert not post.dimensions["chain"].isunlimited()
        assert list(post.variables)[:3] == ["chain", "draw", "state"]
        assert post["iid"].units == "Angstrom"
        n = len(post.dimensions["draw"])
        post["iid"][:, n] = 1.5
        post.note = "appended"
    with netCDF4.Dataset(copy) as nc:
        values = nc["posterior/iid"][:]
        assert values.shape[1] == n + 1 and (values[:, n] == 1.5).all()
        assert nc["posterior"].note == "appended"
    for engine in ("netcdf4", "h5netcdf"):
        with xr.open_dataset(path, group="posterior_predictive", engine=engine) as data:
            assert data.intensity.sel(q=Q[3]).shape[1] == n
    copy.unlink()


def same(ours, theirs, what):
    """Relative difference, 0 where both are missing."""
    if ours is None or not math.isfinite(theirs):
        assert ours is None and not math.isfinite(theirs), (what, ours, theirs)
        return 0.0
    difference = abs(ours - theirs) / max(abs(theirs), 1e-300)
    assert difference < TOLERANCE, (what, ours, theirs, difference)
    return difference


def variables(idata):
    for name in SCALARS + ANGLES:
        yield name, idata.posterior[name].values
    for k in range(2):
        yield f"weight[{k}]", idata.posterior.weight.values[:, :, k]
    yield "lp", idata.sample_stats.lp.values


def split_rhat_of_one(x):
    """ArviZ refuses one chain before it would split it."""
    diagnostics = az.stats.diagnostics
    split = diagnostics._split_chains(x)
    folded = abs(split - np.median(split))
    return max(diagnostics._rhat(diagnostics._z_scale(split)),
               diagnostics._rhat(diagnostics._z_scale(folded)))


def check_summary(idata, summary):
    worst = 0.0
    expected = dict(variables(idata))
    assert list(summary) == list(expected), list(summary)
    for name, x in expected.items():
        ours, theirs = summary[name], {}
        if name in ANGLES:
            assert ours.pop("circular") is True
            mean, sd = (f(x, high=np.pi, low=-np.pi)
                        for f in (scipy.stats.circmean, scipy.stats.circstd))
            x = mean + np.angle(np.exp(1j * (x - mean)))
            theirs = {"mean": mean, "sd": sd}
        q5, median, q95 = np.quantile(x, [0.05, 0.5, 0.95])
        theirs = {"mean": x.mean(), "sd": x.std(ddof=1), "median": median, "q5": q5,
                  "q95": q95} | theirs
        if x.min() == x.max():
            assert ours["sd"] == 0.0 and ours.pop("note") == "constant"
            del theirs["sd"]
            theirs |= dict.fromkeys(["mcse", "ess_bulk", "ess_tail", "rhat"], math.nan)
        else:
            theirs |= {"mcse": az.mcse(x), "ess_bulk": az.ess(x, method="bulk"),
                       "ess_tail": az.ess(x, method="tail"),
                       "rhat": az.rhat(x) if len(x) > 1 else split_rhat_of_one(x)}
        assert set(ours) == set(theirs) | {"sd"}
        for key, value in theirs.items():
            worst = max(worst, same(ours[key], float(value), (name, key)))
    return worst


def check_table(idata, summary):
    """And once more against the table that a user of ArviZ would print. For an
    odd number of draws its r_hat is not az.rhat: it folds around the median of
    all draws, az.rhat (and we) without the middle one that splitting drops."""
    table = az.summary(idata, var_names=SCALARS[:-1], round_to="none")
    columns = [("mean", "mean"), ("sd", "sd"), ("mcse_mean", "mcse"),
               ("ess_bulk", "ess_bulk"), ("ess_tail", "ess_tail")]
    if idata.posterior.sizes["draw"] % 2 == 0:
        columns.append(("r_hat", "rhat"))
    for name, row in table.iterrows():
        for column, key in columns:
            same(summary[name][key], float(row[column]), (name, column))


def main():
    folder = pathlib.Path(sys.argv[1])
    warnings.filterwarnings("ignore")
    np.seterr(all="ignore")
    for name, (n_chain, n_draw) in SHAPES.items():
        path = folder / f"{name}.h5"
        # the slower one where shapes are usual and where a chain is alone
        slower = ["h5netcdf"] if name in ("usual", "one") else []
        for engine in [*slower, "netcdf4"]:
            idata = az.from_netcdf(path, engine=engine)
            check_contents(idata, n_chain, n_draw)
        check_layout(path, n_chain)
        check_netcdf4(path)
        summary = json.loads((folder / f"{name}.json").read_text())
        worst = check_summary(idata, summary)
        if n_chain > 1:
            check_table(idata, summary)
        print(f"{name}: {n_chain} x {n_draw}, {len(summary)} variables, "
              f"largest relative difference {worst:.1e}")


if __name__ == "__main__":
    main()
