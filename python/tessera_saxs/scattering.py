"""Curves of structures, and their fit to measured curves."""
from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from ._library import (RangeError, UsageError, array, call, make, need,
                       path_bytes, texts)
from .structures import Structure, StructureLike

Bounds = Union[None, float, Sequence[float]]

SCATTERERS = ("atoms", "two", "one")


@dataclass(frozen=True)
class Neutrons:
    """Neutrons instead of X-rays.

    d2o: volume fraction of D2O in the solvent, 0 to 1.
    exchange: fraction of the amide hydrogens that exchange with it.
    deuterated: chains whose other hydrogens are deuterated, {"B": 0.75}."""

    d2o: float = 0.0
    exchange: float = 0.9
    deuterated: Union[Mapping[str, float], tuple[tuple[str, float], ...]] = ()

    def __post_init__(self) -> None:
        pairs = tuple(sorted(dict(self.deuterated).items()))
        object.__setattr__(self, "deuterated", pairs)


class Curve:
    """A measured curve: ``q`` (1/Angstrom), ``intensity``, ``sigma`` [n].

    >>> Curve("curve.dat")                  # columns q, I, sigma
    >>> Curve(q, intensity, sigma)

    Of a file, the unit of q is found from the header or the largest q; points
    outside q_min..q_max and without a positive sigma are left out. smear: a
    fourth column, the standard deviation of q, smears fitted curves.
    Errors: MissingFileError, DataError (file and line), NumericError."""

    def __init__(self, source: Any, intensity: Any = None, sigma: Any = None,
                 *, q_min: float = 0.0, q_max: Optional[float] = None,
                 smear: bool = False) -> None:
        if isinstance(source, (str, os.PathLike)):
            self._handle = make("data", "data_read", path_bytes(source), q_min,
                                q_max or 0.0, int(smear))
        else:
            q = array("q", source, None)
            self._handle = make(
                "data", "data_new", len(q), q,
                array("intensity", intensity, len(q)),
                array("sigma", sigma, len(q)))
        n = call("data_size", self._handle)
        self.q, self.intensity, self.sigma = np.empty((3, n))
        call("data_get", self._handle, self.q, self.intensity, self.sigma)

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        return (f"<Curve of {len(self)} points, q {self.q[0]:.4g} to "
                f"{self.q[-1]:.4g} 1/A>")


@dataclass(frozen=True)
class Fit:
    """A structure's curve fitted to data.

    chi2: sum of squares / number of points. reduced_chi2: sum of squares /
    degrees of freedom. c1, c2: scale of the atomic radii in the displaced
    volume, density of the hydration layer; c1_at, c2_at: -1 or 1 at the lower
    or upper bound, else 0. cormap_p: probability of runs of residuals as long
    (Franke et al. 2015). curve [n]: scale I + background at ``data.q``.
    background: in the unit of the data."""

    chi2: float
    reduced_chi2: float
    scale: float
    background: float
    c1: float
    c2: float
    c1_at: int
    c2_at: int
    cormap_p: float
    curve: np.ndarray
    data: Curve
    profile: "Profile"

    @property
    def residuals(self) -> np.ndarray:
        """(data - curve) / sigma [n]."""
        return (self.data.intensity - self.curve) / self.data.sigma

    def __repr__(self) -> str:
        return (f"<Fit: chi2 {self.chi2:.4g}, c1 {self.c1:.4g}, "
                f"c2 {self.c2:.4g}, CorMap p {self.cormap_p:.2g}>")

    def plot(self) -> Any:
        """Curve over data, residuals below; a Figure of matplotlib."""
        need("matplotlib", "plot()")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 5), layout="constrained")
        top, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        top.errorbar(self.data.q, self.data.intensity, self.data.sigma,
                     fmt=".", markersize=3, color="0.6", label="data")
        top.plot(self.data.q, self.curve, color="C3",
                 label=f"$\\chi^2$ = {self.chi2:.3g}")
        top.set(yscale="log", ylabel="I(q)")
        top.legend()
        below.plot(self.data.q, self.residuals, ".", markersize=3)
        below.axhline(0, color="C3")
        below.set(xlabel=r"q ($\mathrm{\AA}^{-1}$)", ylabel=r"$\Delta/\sigma$")
        return figure


class Profile:
    """Scattering of one conformation, at any q up to q_max, c1 and c2.

    mass (Da), volume (displaced at c1 = 1, A^3), rg and d_max (of the
    scatterers, A), absolute (1/cm at 1 mg/ml for I = 1); NaN where unknown."""

    def __init__(self, handle: Any, q_max: float) -> None:
        self._handle = handle
        self.q_max = q_max
        value = np.empty(5)
        call("profile_numbers", handle, 5, value)
        (self.mass, self.volume, self.rg, self.d_max,
         self.absolute) = value.tolist()

    def intensity(self, q: Any, c1: float = 1.0, c2: float = 0.0
                  ) -> np.ndarray:
        """I(q) [n] at q [n], 1/Angstrom: electrons squared; neutrons: fm^2.

        Errors: RangeError (q outside 0..q_max)."""
        q = _check_q(q, self.q_max)
        result = np.empty(len(q))
        call("profile_intensity", self._handle, c1, c2, len(q), q, result)
        return result

    def fit(self, data: Any, *, c1: Bounds = None, c2: Bounds = None,
            background: Optional[float] = None) -> Fit:
        """Least-squares fit of scale, c1, c2 and background; see
        :func:`tessera_saxs.fit`."""
        data = data if isinstance(data, Curve) else Curve(data)
        _check_q(data.q, self.q_max)
        value, curve = np.empty(9), np.empty(len(data))
        call("fit", self._handle, data._handle, _bounds("c1", c1),
             _bounds("c2", c2), math.nan if background is None else background,
             9, value, curve)
        v = value.tolist()
        return Fit(*v[:6], int(v[6]), int(v[7]), v[8], curve, data, self)


class Profiler:
    """Computes curves up to q_max on a device, opened once for many.

    scatterers: "atoms" (all, with hydrogens and a hydration layer), or "two"
    or "one" bodies for each residue. device: "auto", "gpu", "cpu", a number, a
    part of a name, or "reference" (no OpenCL; double precision). neutrons: a
    :class:`Neutrons`, with "atoms". May be used by several threads.
    Errors: DeviceError, UsageError."""

    def __init__(self, q_max: float = 0.5, *, scatterers: str = "atoms",
                 device: str = "auto",
                 neutrons: Optional[Neutrons] = None) -> None:
        self.q_max = max(float(q_max), 0.01)
        if scatterers not in SCATTERERS:
            raise UsageError(f"scatterers is one of {', '.join(SCATTERERS)}")
        self.scatterers = scatterers
        if neutrons is None:
            self._handle = make("profiler", "profiler_new",
                                SCATTERERS.index(scatterers), self.q_max,
                                device.encode())
        elif scatterers == "atoms":
            chains = dict(neutrons.deuterated)
            self._handle = make(
                "profiler", "profiler_new_neutron", neutrons.d2o,
                neutrons.exchange, len(chains), texts(list(chains)),
                array("deuterated", list(chains.values()), None), self.q_max,
                device.encode())
        else:
            raise UsageError("neutrons need scatterers='atoms'")

    def profile(self, structure: StructureLike, elements: Any = None
                ) -> Profile:
        """The Profile of one conformation: a file, a Structure, coordinates
        [n_atom, 3] with elements, or an object of another package."""
        if isinstance(structure, (str, os.PathLike)):
            handle = make("profile", "profile_file", self._handle,
                          path_bytes(structure))
        else:
            handle = make("profile", "profile_coordinates", self._handle,
                          _structure(structure, elements)._handle, None)
        return Profile(handle, self.q_max)

    def frames(self, structure: StructureLike, xyz: Any, q: Any,
               c1: float = 1.0, c2: float = 0.0) -> np.ndarray:
        """Curves [n_frame, n_q] at q [n_q] of the structure's atoms at xyz
        [n_frame, n_atom, 3], as of a trajectory."""
        structure = _structure(structure, None)
        xyz, q = structure.frames(xyz), _check_q(q, self.q_max)
        result = np.empty((len(xyz), len(q)))
        call("profile_frames", self._handle, structure._handle, len(xyz), xyz,
             c1, c2, len(q), q, result)
        return result


_cached_profiler = functools.lru_cache(maxsize=4)(Profiler)


def profile(structure: StructureLike, elements: Any = None, q: Any = None, *,
            xyz: Any = None, c1: float = 1.0, c2: float = 0.0,
            scatterers: str = "atoms", neutrons: Optional[Neutrons] = None,
            device: str = "auto") -> np.ndarray:
    """I(q) of a structure, or of many frames.

    >>> q = np.linspace(0, 0.5, 101)
    >>> profile("model.pdb", q)                      # [101]
    >>> profile(xyz, elements, q, c2=1)              # xyz [n_atom, 3]
    >>> profile("top.pdb", q, xyz=trajectory)        # [n_frame, 101]

    structure: a file, a Structure, coordinates [n_atom, 3] or
    [n_frame, n_atom, 3] in Angstrom with elements [n_atom] ("C", "N"), or an
    object of MDAnalysis, gemmi or Biopython. q [n_q]: 4 pi sin(theta) / lambda,
    1/Angstrom. xyz: other coordinates of the same atoms, one frame or many.
    c1: scale of the atomic radii in the displaced volume. c2: density of the
    hydration layer, about 0.01 e/A^3 for 1; 0: without a layer.
    Result: electrons squared; neutrons: fm^2.
    Errors: UsageError, DataError, MissingFileError, NumericError, DeviceError.
    """
    if q is None:
        elements, q = None, elements
    if q is None:
        raise UsageError("q is missing: profile(structure, q)")
    q = _check_q(q, math.inf)
    profiler = _cached_profiler(float(q.max()), scatterers=scatterers,
                                device=device, neutrons=neutrons)
    if xyz is None and getattr(structure, "ndim", 2) == 3:
        xyz, structure = structure, structure[0]
    if xyz is None:
        return profiler.profile(structure, elements).intensity(q, c1, c2)
    curves = profiler.frames(_structure(structure, elements), xyz, q, c1, c2)
    return curves if np.ndim(xyz) == 3 else curves[0]


def fit(model: StructureLike, curve: Any, *, elements: Any = None,
        c1: Bounds = None, c2: Bounds = None,
        background: Optional[float] = None, q_min: float = 0.0,
        q_max: Optional[float] = None, scatterers: str = "atoms",
        neutrons: Optional[Neutrons] = None, device: str = "auto") -> Fit:
    """Fits scale, background, c1 and c2 of a structure's curve to data.

    >>> fit("model.pdb", "curve.dat").chi2
    >>> fit(universe.atoms, Curve(q, intensity, sigma)).plot()

    curve: a file, a Curve, or (q, intensity, sigma). c1, c2: bounds (low,
    high), or a number: fixed; default 0.95 to 1.05 and 0 to 4, for neutrons
    c1 = 1. background: a fixed number, in the unit of the data; default:
    fitted.
    Errors: as of :func:`profile` and :class:`Curve`."""
    if not isinstance(curve, Curve):
        parts = (curve,) if isinstance(curve, (str, os.PathLike)) else curve
        curve = Curve(*parts, q_min=q_min, q_max=q_max)
    profiler = _cached_profiler(float(curve.q.max()), scatterers=scatterers,
                                device=device, neutrons=neutrons)
    return profiler.profile(model, elements).fit(
        curve, c1=c1, c2=c2, background=background)


def _structure(structure: StructureLike, elements: Any) -> Structure:
    if isinstance(structure, Structure):
        return structure
    return Structure(structure, elements)


def _check_q(q: Any, q_max: float) -> np.ndarray:
    q = array("q", np.atleast_1d(q), None)
    if not len(q) or not (q.min() >= 0 and q.max() <= q_max * (1 + 1e-9)):
        raise RangeError(f"q is outside 0 to {q_max:g} 1/A, or not finite")
    return q


def _bounds(name: str, bounds: Bounds) -> Optional[np.ndarray]:
    if bounds is None:
        return None
    return array(name, [bounds] * 2 if np.isscalar(bounds) else bounds, 2)
