"""Opens the trace of a run as a user would, with ArviZ.

    python run_arviz.py RUN_DIRECTORY START_CHI2 N_POINT
"""
import sys

import arviz
import numpy as np

directory, start_chi2, n_point = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
data = arviz.from_netcdf(f"{directory}/trace.h5")

groups = {"posterior", "sample_stats", "posterior_predictive", "log_likelihood",
          "observed_data", "constant_data", "warmup_posterior",
          "warmup_sample_stats"}
assert groups <= set(data._groups_all), data._groups_all
names = {"rg", "d_max", "scale", "background", "noise_scale", "chi2"}
assert names <= set(data.posterior.data_vars), data.posterior
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
# and background, the curve at drawn ones, so it fits a little less well.
mean = data.posterior_predictive["intensity_mean"]
sigma = data.constant_data["sigma"]
misfit = (((data.observed_data["intensity"] - mean) / sigma) ** 2).mean("q")
ratio = (misfit / data.posterior["chi2"]).mean()
assert 0.99 < ratio < 1.2, ratio
# and so do the pointwise log likelihoods
s = data.posterior["noise_scale"]
log_density = (-0.5 * ((data.observed_data["intensity"] - mean) / (s * sigma)) ** 2
               - np.log(s * sigma) - 0.5 * np.log(2 * np.pi))
error = np.abs(log_density - data.log_likelihood["intensity"]).max()
assert error < 1e-2, error

last = float(data.posterior["chi2"].isel(draw=slice(-5, None)).mean())
assert last < start_chi2, (last, start_chi2)
table = arviz.summary(data, var_names=["rg", "chi2"])
assert table.shape[0] == 2
print(f"chi2 {start_chi2:.4g} at the start, {last:.4g} at the end")
