"""Opens the traces of runs as a user would, with ArviZ, and prints a line for
each (tests/run.sh).

    python run_arviz.py (RUN_DIRECTORY START_CHI2 N_POINT NOISE_MODEL)...
"""
import re
import sys
import traceback

import arviz
import numpy as np
import scipy.stats
import xarray


def model_error(data):
    """The variance of each point by the model's own error: its curves, brought to the
    data as their reference is."""
    constant, observed = data.constant_data, data.observed_data["intensity"].values
    curves = [constant[n].values for n in constant if re.fullmatch("model_error_[a-z]", n)]
    assert len(curves) > 0
    reference = constant["model_error_reference"].values
    columns = np.stack([reference, np.ones_like(reference)], axis=1)
    own = np.hypot(constant["sigma"].values, 0.1 * observed)
    scale, _ = np.linalg.lstsq(columns / own[:, None], observed / own, rcond=None)[0]
    return xarray.DataArray(((scale * np.array(curves)) ** 2).sum(axis=0), dims="q")


def look(directory, start_chi2, n_point, model):
    data = arviz.from_netcdf(f"{directory}/trace.h5", engine="netcdf4")

    groups = {"posterior", "sample_stats", "posterior_predictive", "log_likelihood",
              "observed_data", "constant_data", "warmup_posterior",
              "warmup_sample_stats"}
    assert groups <= set(data._groups_all), data._groups_all
    noise = {"measured": {"noise_scale"}, "relative": {"noise_alpha", "noise_beta"},
             "student": {"noise_scale", "noise_nu"}}[model]
    found = re.search(r"^  states: (\d+)", data.posterior.attrs["config"], re.M)
    n_state = int(found.group(1)) if found else 1
    states = {f"{name}_{k + 1}" for name in ("rg", "weight")
              for k in range(n_state if n_state > 1 else 0)}
    contrast = set(re.findall(r"^  (c[12]): infer", data.posterior.attrs["config"], re.M))
    names = {"rg", "d_max", "scale", "background", "chi2"} | noise | states | contrast
    shapes = {str(name) for name in data.posterior.data_vars
              if str(name).startswith(("pose_", "tail_"))}
    assert names == set(data.posterior.data_vars) - shapes, data.posterior
    for name in contrast:
        assert data.posterior[name].std() > 0, name
    for name in noise:
        assert (data.posterior[name] > 0).all() and data.posterior[name].std() > 0, name
    assert {"lp", "acceptance_rate", "temperature"} <= set(data.sample_stats.data_vars)
    for variable in data.posterior.data_vars.values():
        assert variable.dims[:2] == ("chain", "draw"), variable
        assert np.isfinite(variable).all(), variable.name
    curve = data.posterior_predictive["intensity"]
    assert curve.dims == ("chain", "draw", "q") and curve.sizes["q"] == n_point
    assert data.observed_data["intensity"].sizes["q"] == n_point
    assert data.posterior.attrs["inference_library"] == "tessera"
    assert "structure:" in data.posterior.attrs["config"]
    assert data.posterior.attrs["q_unit"].startswith("1/Angstrom (")
    assert data.posterior.attrs["sigma"] == "measured"
    assert "created_at" in data.posterior.attrs

    # The stored curve, the data and chi2 belong together: chi2 is at the best scale
    # and background by least squares, the curve at drawn ones of a likelihood with
    # the model's own error, so it fits less well.
    mean = data.posterior_predictive["intensity_mean"]
    sigma = data.constant_data["sigma"]
    misfit = (((data.observed_data["intensity"] - mean) / sigma) ** 2).mean("q")
    ratio = (misfit / data.posterior["chi2"]).mean()
    assert 0.99 < ratio < (1.5 if model == "measured" else 20), ratio
    # and so do the pointwise log likelihoods
    draw, observed = data.posterior, data.observed_data["intensity"]
    if model == "relative":
        sd = observed * (mean.q + draw["noise_alpha"]) * draw["noise_beta"]
    else:
        sd = draw["noise_scale"] * sigma
    if model != "student": # which has no integral over the model's own error
        sd = np.sqrt(sd**2 + model_error(data))
    z = ((observed - mean) / sd).transpose("chain", "draw", "q")
    if model == "student":
        density = scipy.stats.t.logpdf(z, draw["noise_nu"].values[:, :, None])
    else:
        density = scipy.stats.norm.logpdf(z)
    log_density = density - np.log(sd.transpose(..., "q"))
    error = np.abs(log_density - data.log_likelihood["intensity"]).max()
    assert error < 1e-2, error

    # A replicate is about the curve, as wide as the noise.
    spread = ((data.posterior_predictive["intensity"] - mean) / sd).values
    quartile = np.median(np.abs(spread))
    assert 0.6 < quartile < 0.85, quartile  # 0.674 for the normal, 0.74 for nu = 4

    if states:
        weight = sum(data.posterior[f"weight_{k + 1}"] for k in range(n_state))
        square = sum(data.posterior[f"weight_{k + 1}"] * data.posterior[f"rg_{k + 1}"] ** 2
                     for k in range(n_state))
        assert np.abs(weight - 1).max() < 1e-6
        assert np.abs(square ** 0.5 / data.posterior["rg"] - 1).max() < 1e-6
    # A hundred steps are few: of the two chains the better one.
    last = float(data.posterior["chi2"].isel(draw=slice(-5, None)).mean("draw").min())
    # Relative errors weigh points otherwise than those of the data, of chi2.
    limit = (1.5 if model == "relative" else 1.0) * start_chi2
    assert last < limit, (last, start_chi2)
    table = arviz.summary(data, var_names=["rg", "chi2"])
    assert table.shape[0] == 2
    return f"chi2 {start_chi2:.4g} at the start, {last:.4g} at the end"


for k in range(1, len(sys.argv), 4):
    directory, start_chi2, n_point, model = sys.argv[k:k + 4]
    try:
        said = look(directory, float(start_chi2), int(n_point), model)
        print(f"ok {directory}: a lower chi2, a trace that ArviZ opens: {said}")
    except Exception:
        print(f"not ok {directory}\n{traceback.format_exc()}")
