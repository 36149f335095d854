"""tessera from Python: curves of structures, their fit to small-angle
scattering data, and Bayesian sampling of structures.

>>> import numpy as np, tessera_saxs
>>> tessera_saxs.profile("model.pdb", np.linspace(0, 0.5, 101))
>>> tessera_saxs.fit("model.pdb", "curve.dat").plot()
>>> tessera_saxs.solve("model.pdb", "curve.dat").report()

Lengths are in Angstrom, q = 4 pi sin(theta) / lambda in 1/Angstrom."""
from . import _library
from ._library import (ConfigError, DataError, DeviceError, Interrupted,
                       MissingFileError, MissingPackageError, StorageError,
                       TesseraError, UsageError)
from .engine import Engine
from .sampling import (CurveDraws, Report, Run, Solution, open, pool, resume,
                       run, solve)
from .scattering import Curve, Fit, Profile, fit, profile
from .structures import Structure

__all__ = [
    "ConfigError", "Curve", "CurveDraws", "DataError", "DeviceError", "Engine",
    "Fit", "Interrupted", "MissingFileError", "MissingPackageError",
    "Profile", "Report", "Run", "Solution", "StorageError",
    "Structure", "TesseraError", "UsageError", "fit", "open", "pool",
    "profile", "resume", "run", "solve",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # of the library, which is loaded when asked
        return str(_library.call("version"), "ascii")
    raise AttributeError(name)
