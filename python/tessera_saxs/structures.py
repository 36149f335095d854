"""Structures from files, arrays, and objects of MDAnalysis, gemmi and
Biopython."""
from __future__ import annotations

import os
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np

from . import _library
from ._library import UsageError, array, call, make, path_bytes, texts

#: What a function takes as a structure: a path, a Structure, coordinates
#: [n_atom, 3], or an object of MDAnalysis, gemmi or Biopython.
StructureLike = Any


class Structure:
    """Atoms whose curve is computed.

    >>> Structure("model.pdb")              # PDB or mmCIF, gzipped or not
    >>> Structure(xyz, elements)            # [n_atom, 3] in Angstrom, symbols
    >>> Structure(universe.atoms)           # MDAnalysis: its present frame
    >>> Structure(gemmi.read_structure("model.pdb"))
    >>> Structure(Bio.PDB.PDBParser().get_structure("x", "model.pdb"))

    Without waters and further alternate locations; of several models the
    first. Residue and atom names let hydrogens that the structure lacks be
    added exactly; give them with ``residues``, ``names``, ``chains``,
    ``numbers`` [n_atom] beside an array of coordinates.

    Errors: MissingFileError, DataError (damaged file, unknown element),
    NumericError, UsageError (shapes, an unknown kind of object)."""

    def __init__(self, source: StructureLike,
                 elements: Optional[Sequence[str]] = None, *,
                 residues: Optional[Sequence[str]] = None,
                 names: Optional[Sequence[str]] = None,
                 chains: Optional[Sequence[str]] = None,
                 numbers: Optional[Sequence[int]] = None) -> None:
        if isinstance(source, (str, os.PathLike)):
            self._handle = make("structure", "structure_read",
                                path_bytes(source))
        else:
            raise UsageError(f"{type(source).__name__} is no structure")

    @property
    def xyz(self) -> np.ndarray:
        """Coordinates [n_atom, 3], Angstrom."""
        xyz = np.empty((len(self), 3))
        call("structure_get", self._handle, xyz, None)
        return xyz

    @property
    def in_file(self) -> np.ndarray:
        """Index [n_atom] of each atom among all atoms of the source."""
        index = np.empty(len(self), dtype=np.int32)
        call("structure_get", self._handle, None, index)
        return index

    def __len__(self) -> int:
        return int(call("structure_size", self._handle))

    def __repr__(self) -> str:
        return f"<Structure of {len(self)} atoms>"

    def frames(self, xyz: Any) -> np.ndarray:
        """Coordinates of frames [n_frame, len(self), 3] from those of all
        atoms of the source, or of this structure's."""
        xyz = np.asarray(xyz, dtype=float)
        xyz = array("xyz", xyz[None] if xyz.ndim == 2 else xyz, None, None, 3)
        if xyz.shape[1] == len(self):
            return xyz
        index = self.in_file
        if xyz.shape[1] <= index.max():
            raise UsageError(f"xyz has {xyz.shape[1]} atoms, the structure "
                             f"{len(self)}")
        return np.ascontiguousarray(xyz[:, index])
