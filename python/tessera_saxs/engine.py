"""Profiles after moves, for samplers and simulations of others."""
from __future__ import annotations

import os
from typing import Any, Sequence

import numpy as np

from ._library import Handle, UsageError, array, call
from .scattering import SCATTERERS, Profile


class Engine:
    """Pair sums of conformations, updated after moves of some bodies.

    >>> engine = Engine.of_file("model.pdb", d_bound=150)
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

    types [n_body]: type of each body. form_factors [n_comp, n_type, n_q].
    dq: 1/Angstrom, at most pi / d_bound. d_bound: largest distance that will
    be proposed, Angstrom; 0: unchecked. systems: number of conformations.
    Errors: UsageError (shapes, NaN, a larger distance), DeviceError."""

    xyz: np.ndarray
    residues: np.ndarray

    def __init__(self, types: Any, form_factors: Any, dq: float, *,
                 d_bound: float = 0.0, systems: int = 1, device: str = "auto"
                 ) -> None:
        types = array("types", types, None, dtype=np.int32)
        table = array("form_factors", form_factors, None, None, None)
        n_comp, n_type, n_q = table.shape
        self._begin(Handle("engine", "new", len(types), types, n_type, n_comp,
                           n_q, dq, table, d_bound, systems, device.encode()),
                    systems, n_comp)

    @classmethod
    def of_file(cls, path: Any, *, d_bound: float, q_max: float = 0.5,
                scatterers: str = "two", systems: int = 1,
                device: str = "auto") -> Engine:
        """X-ray engine of the bodies of a structure, "two" or "one" for each
        residue, with the components solute, solvent, hydration. Has xyz
        [n_body, 3] of the file and residues [n_body], from 0."""
        self = cls.__new__(cls)
        self._begin(Handle("engine", "of_file", os.fsencode(path),
                           SCATTERERS.index(scatterers), q_max, d_bound,
                           systems, device.encode()), systems, 3)
        self.xyz = np.empty((self.n_body, 3))
        self.residues = np.empty(self.n_body, dtype=np.int32)
        call("engine_bodies", self._engine, self.xyz, self.residues)
        return self

    def _begin(self, engine: Handle, systems: int, n_comp: int) -> None:
        self._engine = engine
        self._batch = Handle("batch", "new", engine, systems, keep=engine)
        self.n_body = call("engine_n_body", engine)
        n_pair = n_comp * (n_comp + 1) // 2
        self._shape = (n_pair, call("engine_profile_size", engine) // n_pair)

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

    def profile(self, partials: Any) -> Profile:
        """Profile of partial profiles, with self terms; of an engine of a
        file."""
        return Profile(Handle("profile", "of_engine", self._engine,
                              array("partials", partials, *self._shape)))
