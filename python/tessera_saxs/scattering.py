"""Curves of structures, and their fit to measured curves."""
from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from ._library import (Handle, TesseraError, UsageError, array, call, need,
                       texts)
from .structures import Structure

Bounds = Union[None, float, Sequence[float]]


@functools.lru_cache(maxsize=4)
def _open(q_max: float, deuterated: tuple[tuple[str, float], ...],
          scatterers: str = "atoms", density: Optional[float] = None,
          d2o: Optional[float] = None, exchange: float = 0.9,
          device: Any = "auto") -> Handle:
    kinds = ("atoms", "two", "one")  # their numbers in tessera.h
    if scatterers not in kinds:
        raise UsageError(f"scatterers: atoms, two or one, not {scatterers}")
    last = (max(q_max, 0.01), str(device).encode())
    if d2o is None:
        profiler = Handle("profiler", "new", kinds.index(scatterers), *last)
    elif scatterers != "atoms":
        raise UsageError("neutrons need the scatterers atoms")
    else:
        profiler = Handle("profiler", "new_neutron", d2o, exchange,
                          len(deuterated), texts([c for c, _ in deuterated]),
                          np.array([x for _, x in deuterated], float), *last)
    if density is not None:
        call("profiler_set_density", profiler, density)
    return profiler


def profiler(q_max: float, deuterated: Mapping[str, float] = {}, **how: Any
             ) -> Handle:
    """A device that was opened, now or before, for profiles up to q_max."""
    return _open(q_max, tuple(sorted(deuterated.items())), **how)


def _profiler_of_atoms(q_max: float, **how: Any) -> Handle:
    if how.get("scatterers", "atoms") != "atoms":
        raise UsageError("bodies of residues need a file, not coordinates")
    return profiler(q_max, **how)


class Profile:
    """Scattering of one conformation, for any q up to q_max, c1 and c2.

    structure: a file, a :class:`Structure`, coordinates [n_atom, 3] (Angstrom)
    with elements [n_atom], or an object of MDAnalysis, gemmi or Biopython.

    how: scatterers="atoms" (all, with hydrogens and a hydration layer), or, of
    a file, "two" or "one" bodies for each residue. density=0.334, electrons of
    the solvent per A^3. For neutrons d2o, volume fraction of D2O in the
    solvent; exchange=0.9, fraction of the amide hydrogens that exchange;
    deuterated={"B": 0.75}, fraction of deuterium at the carbons of chains.
    device="auto", "gpu", "cpu", a number, a part of a name, or "reference" (no
    OpenCL).

    Has mass (Da), volume (displaced at c1 = 1, A^3), rg and d_max (of the
    scatterers, A), absolute (1/cm at 1 mg/ml for I = 1); NaN where unknown.
    Errors: UsageError, DataError, MissingFileError, DeviceError."""

    def __init__(self, structure: Any, elements: Any = None,
                 q_max: float = 0.5, **how: Any) -> None:
        if isinstance(structure, Handle):  # of an Engine
            self._handle = structure
        elif isinstance(structure, (str, os.PathLike)):
            self._handle = Handle("profile", "file", profiler(q_max, **how),
                                  os.fsencode(structure))
        else:
            self._handle = Handle(
                "profile", "coordinates", _profiler_of_atoms(q_max, **how),
                Structure(structure, elements)._handle, None)
        numbers = np.empty(5)
        call("profile_numbers", self._handle, 5, numbers)
        (self.mass, self.volume, self.rg, self.d_max,
         self.absolute) = numbers.tolist()

    def intensity(self, q: Any, c1: float = 1.0, c2: float = 0.0
                  ) -> np.ndarray:
        """I(q) [n] at q [n]; see :func:`profile`."""
        q = array("q", q, None)
        result = np.empty(len(q))
        call("profile_intensity", self._handle, c1, c2, len(q), q, result)
        return result

    def fit(self, data: Curve, *, c1: Bounds = None, c2: Bounds = None,
            background: Optional[float] = None) -> Fit:
        """Fit to data; see :func:`fit`."""
        bounds = [None if b is None else array(
            "bounds", (b, b) if np.isscalar(b) else b, 2) for b in (c1, c2)]
        value, curve = np.empty(9), np.empty(len(data.q))
        call("fit", self._handle, data._handle, *bounds,
             math.nan if background is None else background, 9, value, curve)
        found: list[Any] = [*value.tolist(), curve, data, self]
        return Fit(*found)


def profile(structure: Any, elements: Any = None, q: Any = None, *,
            xyz: Any = None, c1: float = 1.0, c2: float = 0.0, **how: Any
            ) -> np.ndarray:
    """I(q) of a structure, or of many frames.

    >>> q = np.linspace(0, 0.5, 101)
    >>> profile("model.pdb", q)                      # [101]
    >>> profile(xyz, elements, q, c2=1)              # xyz [n_atom, 3]
    >>> profile("model.pdb", q, xyz=frames)          # [n_frame, 101]

    structure, how: as of :class:`Profile`; coordinates may have frames,
    [n_frame, n_atom, 3]. q [n_q]: 4 pi sin(theta) / lambda, 1/Angstrom. xyz
    [n_atom, 3] or [n_frame, n_atom, 3]: other coordinates of the atoms of the
    structure. c1: scale of the atomic radii in the displaced volume. c2:
    density of the hydration layer above the solvent's, about 0.01 e/A^3 for 1;
    0: no layer. Result: electrons squared, for neutrons fm^2."""
    if q is None:
        elements, q = None, elements
    q = array("q", [] if q is None else q, None)
    if not len(q) or not np.isfinite(q).all():
        raise UsageError("q is missing or not finite; profile(structure, q)")
    q_max = float(q.max())
    if xyz is None and elements is not None and np.ndim(structure) == 3:
        xyz, structure = structure, structure[0]
    if xyz is None:
        return Profile(structure, elements, q_max, **how).intensity(q, c1, c2)
    structure, is_one = Structure(structure, elements), np.ndim(xyz) == 2
    frames = structure.frames([xyz] if is_one else xyz)
    result = np.empty((len(frames), len(q)))
    profiler = _profiler_of_atoms(q_max, **how)
    for k, frame in enumerate(frames):  # a call for each: Ctrl-C is heeded
        try:
            one = Handle("profile", "coordinates", profiler, structure._handle,
                         frame)
            call("profile_intensity", one, c1, c2, len(q), q, result[k])
        except TesseraError as error:
            raise type(error)(f"frame {k}: {error}") from None
    return result[0] if is_one else result


class Curve:
    """A measured curve: q (1/Angstrom), intensity, sigma [n].

    >>> Curve("curve.dat", q_max=0.3)       # columns q, I, sigma
    >>> Curve(q, intensity, sigma)

    Files are text, sasCIF, canSAS XML, NXcanSAS, or of ATSAS or FoXS. The unit of q is
    found from the header or the largest q (if that is wrong, give arrays);
    points outside q_min..q_max or without a positive sigma are left out. smear:
    fitted curves are smeared with the standard deviation of q (a fourth column
    or Qdev) and the slit of the file, if it has them.
    Errors: MissingFileError, DataError (file and line), UsageError."""

    def __init__(self, source: Any, intensity: Any = None, sigma: Any = None,
                 *, q_min: float = 0.0, q_max: Optional[float] = None,
                 smear: bool = False) -> None:
        if isinstance(source, (str, os.PathLike)):
            self._handle = Handle("data", "read", os.fsencode(source), q_min,
                                  q_max or 0.0, smear)
        else:
            q = array("q", source, None)
            used = ~((q < q_min) | (q > (q_max or math.inf)))
            columns = [q, array("intensity", intensity, len(q)),
                       array("sigma", sigma, len(q))]
            self._handle = Handle("data", "new", int(used.sum()),
                                  *(column[used] for column in columns))
        self.q, self.intensity, self.sigma = np.empty(
            (3, call("data_size", self._handle)))
        call("data_get", self._handle, self.q, self.intensity, self.sigma)

    def __repr__(self) -> str:
        return f"<Curve of {len(self.q)} points to q {self.q[-1]:.4g} 1/A>"


@dataclass(frozen=True)
class Fit:
    """The curve of a structure fitted to data.

    chi2: sum of squares / number of points; reduced_chi2: / degrees of
    freedom. c1, c2: scale of the atomic radii in the displaced volume, density
    of the hydration layer; c1_at, c2_at: -1 or 1 at their lower or upper bound,
    else 0. cormap_p: probability of as long a run of residuals of one sign
    (Franke et al. 2015); NaN where neighbouring points share their noise. curve
    [n]: scale I + background, at data.q."""

    chi2: float
    reduced_chi2: float
    scale: float
    background: float
    c1: float
    c2: float
    c1_at: float
    c2_at: float
    cormap_p: float
    curve: np.ndarray = field(repr=False)
    data: Curve = field(repr=False)
    profile: Profile = field(repr=False)

    def plot(self) -> Any:
        """Figure of matplotlib: data and curve, residuals below."""
        plt = need("matplotlib.pyplot", "plot()").pyplot
        data = self.data
        figure, (top, below) = plt.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": (3, 1)})
        top.errorbar(data.q, data.intensity, data.sigma, fmt=".", color="0.6",
                     markersize=3, label="data", zorder=1)
        top.plot(data.q, self.curve, "C3", label=f"chi2 {self.chi2:.3g}")
        top.set(yscale="log", ylabel="I(q)")
        top.legend()
        below.plot(data.q, (data.intensity - self.curve) / data.sigma, ".",
                   color="0.6", markersize=3)
        below.axhline(0, color="C3")
        below.set(xlabel="q (1/Å)", ylabel="residual / σ")
        plt.close(figure)  # a notebook would show it twice
        return figure


def fit(model: Any, curve: Any, *, elements: Any = None, c1: Bounds = None,
        c2: Bounds = None, background: Optional[float] = None,
        q_min: float = 0.0, q_max: Optional[float] = None, **how: Any) -> Fit:
    """Least-squares fit of scale, background, c1 and c2 of the curve of a
    structure to data, as `tessera profile`.

    >>> fit("model.pdb", "curve.dat").chi2
    >>> fit(universe.atoms, (q, intensity, sigma)).plot()

    model, elements, how: as of :class:`Profile`. curve: a file, a
    :class:`Curve`, or q, intensity and sigma, [3, n]. c1, c2: bounds (low,
    high) or a fixed number; by default 0.95 to 1.05 and 0 to 4, for neutrons
    c1 = 1. background: fixed, in the unit of the data; by default fitted. A
    neutron curve is smeared with the fourth column of its file.
    Errors: of :class:`Profile` and :class:`Curve`."""
    if not isinstance(curve, Curve):
        parts = [curve] if isinstance(curve, (str, os.PathLike)) else curve
        if len(parts) not in (1, 3):
            raise UsageError("a curve is a file, or q, intensity and sigma")
        curve = Curve(*parts, q_min=q_min, q_max=q_max,
                      smear=how.get("d2o") is not None)
    elif q_min or q_max:
        raise UsageError("q_min and q_max belong to the Curve")
    found = Profile(model, elements, call("data_q_max", curve._handle), **how)
    return found.fit(curve, c1=c1, c2=c2, background=background)
