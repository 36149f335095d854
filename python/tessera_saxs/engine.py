"""Profiles after moves, for samplers and simulations of others."""
from __future__ import annotations

import os
import warnings
from typing import Any, Sequence

import numpy as np

from . import scattering
from ._library import Handle, array, call, texts


class Engine:
    """Pair sums of conformations, updated after moves of some bodies.

    >>> engine = Engine("model.pdb", d_bound=150)
    >>> engine.set(engine.xyz)
    >>> move = (0, [(120, 60, 1)], xyz)    # of system 0: bodies 120 to 179
    >>> partials, = engine.propose([move])
    >>> engine.profile(partials).fit(curve).chi2
    >>> engine.accept()                    # or reject()

    A proposal costs only the tiles of pairs in which a distance may have
    changed, its acceptance or rejection nothing. Partial profiles [n_pair, n_q]
    are those of the components 00 01 02 11 12 22 at q = k dq:
    I_ab(q) = sum_ij F_i^a(q) F_j^b(q) sinc(q r_ij), i = j included
    (docs/design.md, section 3). An Engine belongs to one thread at a time.

    source: a file, whose residues get "two" or "one" bodies (scatterers) for
    X-rays up to q_max, with the components solute, solvent, hydration. Then xyz
    [n_body, 3] are their positions, residues [n_body] their residues, from 0.
    Or residues ["LYS", ...] with xyz [n_body, 3], as the beads of a simulation:
    the centres of mass of the heavy atoms of each residue, or of its backbone
    (N, CA, C, O, CB) and then its side chain (ALA and GLY have one body).
    Or the types [n_body] of any bodies, with form_factors
    [n_comp, n_type, n_q] and dq, 1/Angstrom, at most pi / d_bound.
    d_bound: largest distance that will be proposed, Angstrom; 0: unchecked.
    systems: number of conformations. device: as of Profile, later its text.
    Errors: UsageError (shapes, NaN, a larger distance), DeviceError."""

    def __init__(self, source: Any, form_factors: Any = None, dq: float = 0.0,
                 *, xyz: Any = None, d_bound: float = 0.0,
                 q_max: float = 0.5, scatterers: str = "two",
                 systems: int = 1, device: Any = "auto") -> None:
        is_file, n_comp = isinstance(source, (str, os.PathLike)), 3
        if is_file or xyz is not None:
            profiler = scattering.profiler(q_max, scatterers=scatterers,
                                           device=device)
        if is_file:
            self._engine = Handle("engine", "of_file", profiler,
                                  os.fsencode(source), d_bound, systems)
        elif xyz is not None:
            xyz = array("xyz", xyz, None, 3)
            self._engine = Handle("engine", "of_residues", profiler,
                                  len(source), texts(source), len(xyz), xyz,
                                  d_bound, systems)
        else:
            types = array("types", source, None, dtype=np.int32)
            table = array("form_factors", form_factors, None, None, None)
            n_comp, n_type, n_q = table.shape
            self._engine = Handle("engine", "new", len(types), types, n_type,
                                  n_comp, n_q, dq, table, d_bound, systems,
                                  str(device).encode())
        self.device = call("engine_text", self._engine).decode()
        if device == "auto" and self.device.startswith("reference"):
            warnings.warn("no OpenCL device; the reference engine is many "
                          "times slower", RuntimeWarning, stacklevel=2)
        self._batch = Handle("batch", "new", self._engine, systems,
                             keep=self._engine)
        self.n_body = call("engine_n_body", self._engine)
        n_pair = n_comp * (n_comp + 1) // 2
        self._shape = (
            n_pair, call("engine_profile_size", self._engine) // n_pair)
        self.xyz = np.full((self.n_body, 3), np.nan)
        self.residues = np.full(self.n_body, -1, dtype=np.int32)
        if form_factors is None:
            call("engine_bodies", self._engine, self.xyz, self.residues)

    def set(self, xyz: Any, system: int = 0) -> np.ndarray:
        """Partial profiles of a system, after placing its bodies at xyz
        [n_body, 3], Angstrom."""
        xyz, result = array("xyz", xyz, self.n_body, 3), np.empty(self._shape)
        call("batch_set", self._batch, system, xyz, result)
        return result

    def propose(self, moves: Sequence[tuple[int, Any, Any]]) -> np.ndarray:
        """Partial profiles [n_move, n_pair, n_q] after moves, each of another
        system: (system, ranges, xyz).

        ranges [n_range, 3]: first body, number of bodies, rigid group, in
        ascending order. Ranges of a group > 0 moved rigidly together, which
        the caller guarantees; 0: distances within may have changed.
        xyz [sum of the numbers, 3]: new positions, range after range."""
        ranges = [array("ranges", move[1], None, 3, dtype=np.int32)
                  for move in moves]
        places = [array("xyz", move[2], int(rows[:, 1].sum()), 3)
                  for move, rows in zip(moves, ranges)]
        result = np.empty((len(moves), *self._shape))
        if moves:
            call("batch_propose", self._batch, len(moves),
                 np.array([move[0] for move in moves], dtype=np.int32),
                 np.array([len(rows) for rows in ranges], dtype=np.int32),
                 np.concatenate(ranges), np.concatenate(places), result)
        return result

    def accept(self, system: int = 0) -> None:
        """Accepts the pending proposal of a system, if there is one."""
        call("batch_accept", self._batch, system)

    def reject(self, system: int = 0) -> None:
        """Rejects the pending proposal of a system, if there is one."""
        call("batch_reject", self._batch, system)

    def partials(self, system: int = 0) -> np.ndarray:
        """Partial profiles of the accepted positions."""
        result = np.empty(self._shape)
        call("batch_profile", self._batch, system, result)
        return result

    def profile(self, partials: Any) -> scattering.Profile:
        """Profile of partial profiles, with self terms; of an engine of
        residues."""
        return scattering.Profile(Handle("profile", "of_engine", self._engine,
                              array("partials", partials, *self._shape)))
