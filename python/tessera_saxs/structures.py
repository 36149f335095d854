"""Structures: files, arrays, and objects of MDAnalysis, gemmi, Biopython."""
from __future__ import annotations

import os
from typing import Any, Iterator, Optional, Sequence

import numpy as np

from ._library import Handle, UsageError, array, call, texts


class Structure:
    """Atoms whose curve is computed.

    >>> Structure("model.pdb")              # PDB or mmCIF, gzipped or not
    >>> Structure(xyz, elements)            # [n_atom, 3] in Angstrom, symbols
    >>> Structure(universe.atoms)           # MDAnalysis: its present frame
    >>> Structure(gemmi.read_structure("model.pdb"))
    >>> Structure(PDBParser().get_structure("x", "model.pdb"))  # Biopython

    The first model, without waters and further alternate locations. Atom
    names ("CA"), residues ("LYS"), numbers and chains [n_atom] beside
    coordinates let hydrogens be added by residue; without them, missing ones
    follow from bond lengths and angles.
    Errors: MissingFileError, DataError (damaged file, unknown element, two
    atoms in one place), UsageError (shapes, NaN, a kind of object)."""

    def __init__(self, source: Any, elements: Optional[Sequence[str]] = None,
                 *, names: Optional[Sequence[str]] = None,
                 residues: Optional[Sequence[str]] = None,
                 numbers: Any = None, chains: Optional[Sequence[str]] = None
                 ) -> None:
        self._kept: Sequence[int] = ()  # of the atoms of an object
        if isinstance(source, (str, os.PathLike)):
            self._handle = Handle("structure", "read", os.fsencode(source))
            return
        if isinstance(source, Structure):
            self._handle, self._kept = source._handle, source._kept
            return
        if elements is None:
            (source, elements, names, residues, numbers, chains,
             self._kept) = _columns(source)
        xyz = array("xyz", source, None, 3)
        for column in (elements, names, residues, chains):
            if column is not None and len(column) != len(xyz):
                raise UsageError(f"{len(column)} texts for {len(xyz)} atoms")
        if numbers is not None:
            numbers = array("numbers", numbers, len(xyz), dtype=np.int32)
        self._handle = Handle("structure", "new", len(xyz), xyz,
                              texts(elements), texts(names), texts(residues),
                              numbers, texts(chains))

    def __len__(self) -> int:
        return int(call("structure_size", self._handle))

    @property
    def xyz(self) -> np.ndarray:
        """Coordinates [n_atom, 3], Angstrom."""
        xyz = np.empty((len(self), 3))
        call("structure_get", self._handle, xyz, None)
        return xyz

    @property
    def index(self) -> np.ndarray:
        """Index [n_atom] of each atom among all atoms of the source."""
        index = np.empty(len(self), dtype=np.int32)
        call("structure_get", self._handle, None, index)
        return np.array(self._kept)[index] if self._kept else index

    def frames(self, xyz: Any) -> np.ndarray:
        """Coordinates [n_frame, len(self), 3] of these atoms, from those of
        the same or of all atoms of the source in each frame."""
        frames = array("xyz", xyz, None, None, 3)
        if frames.shape[1] == len(self):
            return frames
        if frames.shape[1] <= self.index.max():
            raise UsageError(f"xyz has {frames.shape[1]} atoms, and the "
                             f"structure {len(self)}")
        return array("xyz", frames[:, self.index], None, None, 3)


def _columns(source: Any) -> tuple[Any, ...]:
    """xyz, elements, names, residues, numbers, chains, and index of the atoms
    of an object, of alternates those of the highest occupancy."""
    kind = f"{type(source).__module__}.{type(source).__name__}"
    if hasattr(getattr(source, "atoms", None), "positions"):
        rows = _mdanalysis(source.atoms)
    elif hasattr(source, "get_atoms"):
        rows = _biopython(source)
    elif kind in ("gemmi.Structure", "gemmi.Model"):
        rows = _gemmi(source)
    else:
        raise UsageError(f"{kind} is no structure; coordinates need elements")
    kept: dict[Any, tuple[Any, ...]] = {}
    for index, (xyz, element, altloc, occupancy, *atom) in enumerate(rows):
        key = (*atom, None if altloc.strip(" \0") else index)
        if key not in kept or occupancy > kept[key][0]:
            kept[key] = (occupancy, xyz, element, *atom, index)
    if not kept:
        raise UsageError(f"{kind} has no atoms")
    columns: list[Any] = list(zip(*kept.values()))
    _, xyz, elements, chains, numbers, codes, residues, names, index = columns
    if not all(elements):
        raise UsageError("an atom has no element; with MDAnalysis: universe."
                         "guess_TopologyAttrs(to_guess=['elements'])")
    if any(code.strip() for code in codes):  # several residues of one number
        place = list(zip(chains, numbers, codes))
        numbers = np.cumsum([a != b for a, b in zip(place, place[:1] + place)])
    if not all(residues) or not all(names):
        names = residues = numbers = None
    return xyz, elements, names, residues, numbers, chains, index


# The rows: xyz, element, alternate location, occupancy, chain, residue number,
# insertion code, residue name, atom name.


def _mdanalysis(atoms: Any) -> Iterator[tuple[Any, ...]]:
    def column(*names: str, default: Any = "") -> Any:
        found = [name for name in names if hasattr(atoms, name)]
        return getattr(atoms, found[0]) if found else [default] * len(atoms)

    return zip(atoms.positions, column("elements"), column("altLocs"),
               column("occupancies", default=1.0),
               column("chainIDs", "segids"), atoms.resids, column("icodes"),
               column("resnames"), column("names"))


def _biopython(source: Any) -> Iterator[tuple[Any, ...]]:
    if hasattr(source, "get_models"):
        source = next(source.get_models())
    for atom in source.get_atoms():
        chain, (_, number, code), _ = atom.full_id[-3:]
        yield (atom.coord, atom.element, "", 1.0, chain, number, code,
               atom.get_parent().resname.strip(), atom.name)


def _gemmi(source: Any) -> Iterator[tuple[Any, ...]]:
    for place in (source[0] if hasattr(source, "entities") else source).all():
        residue, atom = place.residue, place.atom
        yield (atom.pos.tolist(), atom.element.name, atom.altloc, atom.occ,
               place.chain.name, residue.seqid.num, residue.seqid.icode,
               residue.name, atom.name)
