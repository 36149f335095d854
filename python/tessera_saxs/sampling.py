"""Sampling of structures with the program `tessera`, and the results."""
from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Union

import numpy as np

from ._library import MissingFileError, call, make, need, path_bytes, text
from ._program import Progress, execute, read_json

PathLike = Union[str, "os.PathLike[str]"]
Settings = Mapping[str, Any]

_GROUPS = {"posterior": 0, "sample_stats": 1, "posterior_predictive": 2,
           "log_likelihood": 3, "observed_data": 6, "constant_data": 7}


def run(config: PathLike, output: Optional[PathLike] = None, *,
        settings: Settings = {}, progress: Progress = True,
        device: Optional[str] = None, threads: Optional[int] = None) -> "Run":
    """Samples the posterior of a configuration, as `tessera run`.

    >>> result = run("lar.yaml", settings={"sampler.draws": 5000})

    output: folder, instead of output.directory. settings: keys instead of
    those in the file. progress: a bar in terminal and notebook, or a function
    of its text, whose true result stops the run. Ctrl-C stops with a checkpoint
    and raises Interrupted; :func:`resume` continues. A run that has not
    converged is returned, too (Run.converged).
    Errors: ConfigError, MissingFileError, DataError, StorageError."""
    return _sample(["run", os.fspath(config)], progress, output=output,
                   set=settings, device=device, threads=threads)


def resume(folder: PathLike, *, draws: Optional[int] = None,
           until: Optional[str] = None, progress: Progress = True,
           device: Optional[str] = None, threads: Optional[int] = None
           ) -> "Run":
    """Continues a stopped run, with the draws of an uninterrupted one; or a
    finished one, to `draws` a chain or until "rhat<1.01,ess>400"."""
    return _sample(["resume", os.fspath(folder)], progress, draws=draws,
                   until=until, device=device, threads=threads)


def solve(model: PathLike, *curves: PathLike,
          output: Optional[PathLike] = None, states: int = 3,
          time_limit: float = 3600, settings: Settings = {},
          sans: Mapping[str, float] = {}, map: Optional[PathLike] = None,
          resolution: Optional[float] = None, sample: bool = False,
          progress: Progress = True, device: Optional[str] = None,
          threads: Optional[int] = None) -> "Solution":
    """From a model and curves to an answer, as `tessera solve`: does the rigid
    model fit, what moves, how many states do the data ask for?

    >>> print(solve("model.pdb", "curve.dat").verdict)

    curves: X-ray curves. output: folder, by default runs/MODEL. states: the
    largest number. time_limit: of each run, s. sans: neutron curves,
    {file: fraction of D2O}. map: a density map, in which the model is placed,
    of a resolution in A. sample: also where the rigid model fits and only tails
    are flexible. The same call continues after Ctrl-C (Interrupted).
    Errors: as of :func:`run`."""
    found = _json(["solve", os.fspath(model), *(os.fspath(c) for c in curves)],
                  progress, output=output, states=states,
                  time_limit=time_limit, set=settings, sans=sans, map=map,
                  resolution=resolution, sample=sample, device=device,
                  threads=threads)
    return Solution(Path(found["directory"]))


def open(folder: PathLike) -> "Run | Solution":
    """The Run or Solution in a folder, of a process that still works, too.
    Errors: MissingFileError."""
    path = Path(folder)
    if (path / "verdict.json").exists():
        return Solution(path)
    if not (path / "trace.h5").exists() and not (path / "draws.log").exists():
        raise MissingFileError(f"'{path}' is no folder of a run")
    return Run(path)


@dataclass(frozen=True)
class CurveDraws:
    """Draws of a fitted curve beside its data.

    q, intensity, sigma, rigid [n_q]: the data, and the best fit of the first
    conformation. draws [n_draw, n_q]: scale I(q) + background of each draw."""

    q: np.ndarray
    intensity: np.ndarray
    sigma: np.ndarray
    rigid: np.ndarray
    draws: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean curve [n_q] of the draws."""
        return np.asarray(self.draws.mean(axis=0))

    def interval(self, probability: float = 0.9) -> np.ndarray:
        """Lower and upper limits [2, n_q] of the draws at each q."""
        tail = (1 - probability) / 2
        return np.asarray(np.quantile(self.draws, [tail, 1 - tail], axis=0))


class Report:
    """A page, report.html, which a notebook shows. path: the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<Report {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        page = html.escape(self.path.read_text(encoding="utf-8"))
        return ('<iframe style="width: 100%; height: 45em; border: 0" '
                f'srcdoc="{page}"></iframe>')


class Run:
    """The folder of a run."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<Run {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        return _paragraphs(self.verdict)

    def status(self) -> dict[str, Any]:
        """Progress: state ("running", "finished", "interrupted"), draws,
        seconds_left, chi2, as `tessera status --json`."""
        return read_json(["status", str(self.folder)])

    def summary(self) -> dict[str, Any]:
        """Of each variable mean, sd, q5, q95, ess_bulk, ess_tail and rhat; the
        verdict and the evidence, as `tessera summary --json`."""
        return read_json(["summary", str(self.folder)])

    @property
    def verdict(self) -> str:
        """What the draws say, in sentences."""
        return "\n".join(self.summary()["verdict"]["sentences"])

    @property
    def converged(self) -> bool:
        """Has the criterion of the run been reached?"""
        return bool(self.summary()["verdict"]["advice"]["converged"])

    def columns(self, group: str = "posterior") -> list[str]:
        """Names of the columns of a group of trace.h5 (docs/files.md)."""
        draws = self._open()
        n = call("draws_n_column", draws, _GROUPS[group])
        return [text(call("draws_column", draws, _GROUPS[group], i))
                for i in range(n)]

    def draws(self, column: str, group: str = "posterior") -> np.ndarray:
        """Draws of a column, [n_chain, n_draw] or [n_chain, n_draw, n], as
        "rg", "chi2", "c2". Errors: DataError (no such column)."""
        values = self._read(self._open(), group, column)
        return values[..., 0] if values.shape[2] == 1 else values

    @property
    def curves(self) -> list[CurveDraws]:
        """Fitted curves, in the order of ``data:``."""
        draws, curves = self._open(), []
        for name in self.columns("observed_data"):
            if not name.startswith("intensity"):
                continue
            end = name[len("intensity"):]
            fixed = [self._read(draws, group, column + end)[0, 0]
                     for group, column in (("observed_data", "intensity"),
                                           ("constant_data", "sigma"),
                                           ("constant_data", "rigid"))]
            q = np.empty(len(fixed[0]))
            call("draws_coordinates", draws, _GROUPS["observed_data"],
                 name.encode(), len(q), q)
            means = self._read(draws, "posterior_predictive",
                               "intensity_mean" + end)
            curves.append(CurveDraws(q, *fixed, means.reshape(-1, len(q))))
        return curves

    def to_arviz(self) -> Any:
        """The draws as InferenceData of ArviZ."""
        arviz = need("arviz", "to_arviz()")
        self._open()  # adds the draws of a killed run to trace.h5
        return arviz.from_netcdf(str(self.folder / "trace.h5"))

    def trajectory(self, state: Optional[int] = None) -> Any:
        """Conformations of all chains as a Universe of MDAnalysis; of an
        ensemble, those of one state, from 1."""
        MDAnalysis = need("MDAnalysis", "trajectory()")
        end = "" if state is None else f"-{state}"
        files = sorted(self.folder.glob(f"trajectory-[0-9][0-9][0-9]{end}.h5"))
        if not files:
            raise MissingFileError(f"'{self.folder}' has no trajectory of "
                                   f"state {state}")
        for file in files:  # adds the draws of a killed run
            make("frames", "frames_open", path_bytes(file))
        return MDAnalysis.Universe(str(self.folder / "model.pdb"),
                                   [str(file) for file in files],
                                   format="H5MD")

    def report(self) -> Report:
        """Writes report.html, which a notebook shows, with its figures."""
        execute(["report", str(self.folder), "--quiet"])
        return Report(self.folder / "report.html")

    def _open(self) -> Any:
        return make("draws", "draws_open", path_bytes(self.folder))

    @staticmethod
    def _read(draws: Any, group: str, column: str) -> np.ndarray:
        shape = np.empty(3, dtype=np.int32)
        where = (draws, _GROUPS[group], column.encode())
        call("draws_shape", *where, shape)
        values = np.empty(tuple(shape))
        call("draws_read", *where, values.size, values)
        return values


class Solution:
    """The folder of `solve`."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<Solution {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        return _paragraphs(self.verdict)

    @property
    def result(self) -> dict[str, Any]:
        """The numbers of the verdict so far, as `tessera solve --json`."""
        file = self.folder / "verdict.json"
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found

    @property
    def verdict(self) -> str:
        """The answer in sentences."""
        return "\n".join(self.result["verdict"])

    @property
    def runs(self) -> list[Run]:
        """The runs with 1, 2, ... states; none where the rigid model fits."""
        return [Run(self.folder / str(run["states"]))
                for run in self.result["runs"]]

    @property
    def run(self) -> Optional[Run]:
        """The run with the smallest number of states that the data do not
        exclude; None without runs."""
        states = self.result.get("states")
        return None if states is None else Run(self.folder / str(states))

    def report(self) -> Report:
        """The page of the chosen run, or of the rigid fit."""
        run = self.run
        return run.report() if run else Report(self.folder / "report.html")


def _sample(command: list[str], progress: Progress, **options: Any) -> Run:
    return Run(Path(_json(command, progress, **options)["directory"]))


def _json(command: list[str], progress: Progress, **options: Any
          ) -> dict[str, Any]:
    """The JSON of a command with options; None and False: not given."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            for key, item in value.items():
                item = item if isinstance(item, str) else json.dumps(item)
                command += [option, f"{key}={item}"]
        elif value is True:
            command.append(option)
        elif value is not None and value is not False:
            command += [option, str(value)]
    found: dict[str, Any] = json.loads(execute([*command, "--json"], progress))
    return found


def _paragraphs(verdict: str) -> str:
    return "".join(f"<p>{html.escape(line)}</p>"
                   for line in verdict.splitlines())
