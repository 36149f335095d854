"""Sampling of structures by the program `tessera`, and the results."""
from __future__ import annotations

import html
import json
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Union

import numpy as np

from ._library import Handle, MissingFileError, TesseraError, call, need
from ._program import Progress, execute, execute_json

PathLike = Union[str, "os.PathLike[str]"]


def run(config: PathLike, output: Optional[PathLike] = None, *,
        settings: Mapping[str, Any] = {}, progress: Progress = True,
        **options: Any) -> Run:
    """Samples the posterior of a configuration, as `tessera run`.

    >>> result = run("lar.yaml", settings={"sampler.draws": 5000})

    output: folder, instead of output.directory. settings: keys that replace
    those of the file. progress: a bar in terminal and notebook, or a function
    of its text, whose true result stops the run. options: others of `tessera
    run --help`, as device="gpu", threads=4, until="rhat<1.01,ess>400".
    Ctrl-C stops with a checkpoint and raises Interrupted; :func:`resume`
    continues. A run that has not converged is returned: Run.converged.
    Errors: ConfigError, MissingFileError, DataError, UsageError,
    StorageError."""
    found = execute_json(["run", os.fspath(config)], progress, output=output,
                         set=settings, **options)
    return Run(found["directory"])


def resume(folder: PathLike, *, progress: Progress = True, **options: Any
           ) -> Run:
    """Continues a stopped run, with the draws of an uninterrupted one; or a
    finished one, with draws=8000 a chain or until="rhat<1.01,ess>400"."""
    return Run(execute_json(["resume", os.fspath(folder)], progress,
                            **options)["directory"])


def solve(model: PathLike, *curves: PathLike,
          output: Optional[PathLike] = None, settings: Mapping[str, Any] = {},
          sans: Mapping[PathLike, float] = {}, progress: Progress = True,
          **options: Any) -> Solution:
    """From a model and curves to an answer, as `tessera solve`: does the rigid
    model fit, what moves, how many states do the data require?

    >>> print(solve("model.pdb", "curve.dat").verdict)

    curves: files of X-ray curves. sans: of neutron curves, and the fraction of
    D2O, {"d2o.dat": 0.42}. output: folder, by default runs/MODEL. settings,
    progress: as of :func:`run`. options: others of `tessera solve --help`, as
    states=2, time_limit=600, map="map.mrc", resolution=6, sample=True. After
    Ctrl-C (Interrupted) the same call continues. Errors: of :func:`run`."""
    files = [os.fspath(file) for file in (model, *curves)]
    return Solution(execute_json(["solve", *files], progress, output=output,
                                 set=settings, sans=sans, **options)
                    ["directory"])


def pool(conformations: Any, curve: PathLike, *, progress: Progress = True,
         **options: Any) -> dict[str, Any]:
    """Weights of given conformations with their uncertainty, as `tessera pool`
    (docs/pools.md).

    >>> answer = pool("models.pdb", "curve.dat", output="pool")
    >>> answer = pool(universe.select_atoms("protein"), "curve.dat")
    >>> answer["ensembles"], answer["rg"]["median"], answer["verdict"]

    conformations: a structure file with several models, the folder of a run, a
    list of such, or a universe or group of atoms of MDAnalysis with its
    trajectory (XTC, TRR, ... in any format it reads), whose frames pass through
    a temporary file. options: those of `tessera pool --help`, as output="DIR",
    members="1:3", copies="none", c1="infer", frames=1000. Result: the object
    that `--json` prints. Errors: of :func:`run`."""
    if isinstance(conformations, (str, os.PathLike)):
        conformations = [conformations]
    words = ["pool", "--data", os.fspath(curve)]
    if isinstance(conformations, (list, tuple)):
        files = [os.fspath(file) for file in conformations]
        return execute_json([*words, *files], progress, **options)
    atoms, mdanalysis = conformations.atoms, need("MDAnalysis", "pool()")
    with tempfile.TemporaryDirectory() as folder:
        model, frames = (os.path.join(folder, name)
                         for name in ("model.pdb", "frames.dcd"))
        with warnings.catch_warnings():  # of columns that have no values
            warnings.simplefilter("ignore")
            atoms.write(model)
            with mdanalysis.Writer(frames, len(atoms)) as to:
                for _ in atoms.universe.trajectory:
                    to.write(atoms)
        return execute_json([*words, model], progress, trajectory=frames,
                            **options)


def open(folder: PathLike) -> Union[Run, Solution]:
    """The Run, or the Solution of :func:`solve`, in a folder; its process may
    still be at work. Errors: MissingFileError."""
    path = Path(folder)
    if (path / "verdict.json").exists():
        return Solution(path)
    if not (path / "config.yaml").exists():
        raise MissingFileError(f"'{path}' is no folder of a run")
    return Run(path)


@dataclass(frozen=True, repr=False)
class CurveDraws:
    """A curve of the data, and its fits.

    q (1/Angstrom), intensity, sigma [n_q]: the data. rigid [n_q]: best fit of
    the first conformation. draws [n_draw, n_q]: scale I(q) + background; mean
    [n_q]."""

    q: np.ndarray
    intensity: np.ndarray
    sigma: np.ndarray
    rigid: np.ndarray
    draws: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.draws.mean(axis=0))


@dataclass(frozen=True)
class Report:
    """The page report.html, which a notebook shows. path: the file."""

    path: Path

    def _repr_html_(self) -> str:
        page = html.escape(self.path.read_text(encoding="utf-8"))
        return ('<iframe style="width: 100%; height: 45em; border: 0" '
                f'srcdoc="{page}"></iframe>')


class _Folder:
    """Results in a folder, of which a notebook shows the verdict."""

    verdict: str

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        try:
            verdict = self.verdict
        except TesseraError as error:  # as of a run that has no draws yet
            verdict = str(error)
        return "".join(f"<p>{html.escape(line)}</p>"
                       for line in verdict.splitlines())


class Run(_Folder):
    """The folder of a run."""

    def status(self) -> dict[str, Any]:
        """state ("running", "finished", "interrupted"), draws, seconds_left,
        chi2, ...: `tessera status --json`."""
        return execute_json(["status", str(self.folder)])

    def summary(self) -> dict[str, Any]:
        """Of each variable mean, sd, q5, q95, ess_bulk, rhat; evidence and
        verdict: `tessera summary --json`."""
        return execute_json(["summary", str(self.folder)])

    @property
    def verdict(self) -> str:  # type: ignore[override]
        """What the draws say, in sentences."""
        return "\n".join(self.summary()["verdict"]["sentences"])

    @property
    def converged(self) -> bool:
        """Has the criterion of the run been reached?"""
        return bool(self.summary()["verdict"]["advice"]["converged"])

    def columns(self, group: str = "posterior") -> list[str]:
        """Names of the columns of a group of trace.h5 (docs/files.md)."""
        where = (self._open(), _GROUPS[group])
        return [call("draws_column", *where, i).decode()
                for i in range(call("draws_n_column", *where))]

    def draws(self, column: str, group: str = "posterior") -> np.ndarray:
        """Draws of a column such as "rg", "chi2", "c2": [n_chain, n_draw], or
        [n_chain, n_draw, n]. Errors: DataError (no such column)."""
        values = _read(self._open(), group, column)
        return values[..., 0] if values.shape[2] == 1 else values

    @property
    def curves(self) -> list[CurveDraws]:
        """Data and fits of the curves, in the order of ``data:``."""
        draws, curves = self._open(), []
        for name in self.columns("observed_data"):
            if name.startswith("intensity"):
                end = name[len("intensity"):]
                data, sigma, rigid, mean = (
                    _read(draws, group, column + end)
                    for group, column in (
                        ("observed_data", "intensity"),
                        ("constant_data", "sigma"), ("constant_data", "rigid"),
                        ("posterior_predictive", "intensity_mean")))
                q = np.empty(data.size)
                call("draws_coordinates", draws, _GROUPS["observed_data"],
                     name.encode(), q.size, q)
                curves.append(CurveDraws(q, data[0, 0], sigma[0, 0],
                                         rigid[0, 0], mean.reshape(-1, q.size)))
        return curves

    def to_arviz(self) -> Any:
        """The draws for ArviZ: InferenceData, from ArviZ 1.0 on a DataTree."""
        arviz = need("arviz", "to_arviz()")
        self._open()  # adds the draws that a killed run has left in its log
        return arviz.from_netcdf(str(self.folder / "trace.h5"))

    def trajectory(self, state: Optional[int] = None) -> Any:
        """Conformations of all chains, one after the other, as a Universe of
        MDAnalysis; state: of an ensemble, from 1."""
        end = "" if state is None else f"-{state}"
        files = sorted(self.folder.glob(f"trajectory-[0-9][0-9][0-9]{end}.h5"))
        if not files:
            raise MissingFileError(f"'{self.folder}' has no trajectory{end}")
        need("h5py", "trajectory()")
        mdanalysis = need("MDAnalysis", "trajectory()")
        for file in files:  # adds the draws that a killed run has left
            Handle("frames", "open", os.fsencode(file))
        return mdanalysis.Universe(self.folder / "model.pdb",
                                   [str(file) for file in files],
                                   format="H5MD")

    def report(self) -> Report:
        """Writes report.html and its figures."""
        execute(["report", str(self.folder)])
        return Report(self.folder / "report.html")

    def _open(self) -> Handle:
        return Handle("draws", "open", os.fsencode(self.folder))


class Solution(_Folder):
    """The folder of :func:`solve`."""

    @property
    def result(self) -> dict[str, Any]:
        """The numbers of the verdict so far, as `tessera solve --json`."""
        file = self.folder / "verdict.json"
        return dict(json.loads(file.read_text(encoding="utf-8")))

    @property
    def verdict(self) -> str:  # type: ignore[override]
        """The answer in sentences."""
        return "\n".join(self.result["verdict"])

    @property
    def runs(self) -> list[Run]:
        """Runs with 1, 2, ... states; none where the rigid model fits."""
        return [Run(self.folder / str(run["states"]))
                for run in self.result["runs"]]

    @property
    def run(self) -> Optional[Run]:
        """The run with the fewest states that the data allow."""
        states = self.result.get("states")
        return None if states is None else Run(self.folder / str(states))

    def report(self) -> Report:
        """The page of that run, or of the rigid fit."""
        return self.run.report() if self.run else Report(
            self.folder / "report.html")


_GROUPS = {"posterior": 0, "sample_stats": 1, "posterior_predictive": 2,
           "log_likelihood": 3, "observed_data": 6, "constant_data": 7}


def _read(draws: Handle, group: str, column: str) -> np.ndarray:
    """Values [n_chain, n_draw, n] of a column."""
    shape = np.empty(3, dtype=np.int32)
    where = (draws, _GROUPS[group], column.encode())
    call("draws_shape", *where, shape)
    values = np.empty(tuple(shape))
    call("draws_read", *where, values.size, values)
    return values
