"""libtessera by ctypes: loading, prototypes of tessera.h, handles, errors."""
from __future__ import annotations

import ctypes
import functools
import os
import shutil
import warnings
import weakref
from pathlib import Path
from typing import Any, Optional

import numpy as np

from . import _devices


class TesseraError(Exception):
    """Base of the errors, with the library's message."""

class UsageError(TesseraError, ValueError):
    """An argument that is not accepted: a shape, a range, NaN."""

class DataError(TesseraError, ValueError):
    """Bad content of a file or array; the message names the place."""

class ConfigError(TesseraError, ValueError):
    """Invalid configuration of a run; the message names key and line."""

class MissingFileError(TesseraError, FileNotFoundError):
    """A missing or unreadable file."""

class StorageError(TesseraError, OSError):
    """Writing or reading failed."""

class DeviceError(TesseraError, RuntimeError):
    """No usable OpenCL device, or the device failed."""

class MissingPackageError(TesseraError, ImportError):
    """An optional package, or libtessera itself, is not installed."""

class Interrupted(KeyboardInterrupt):
    """A run was stopped. folder: for :func:`resume`; None: none written."""

    folder: Optional[Path] = None


# By status of tessera.h; the others are faults of the library, or no memory.
ERRORS: dict[int, type[TesseraError]] = {
    2: UsageError, 3: DataError, 4: MissingFileError, 7: UsageError,
    8: UsageError, 9: StorageError, 10: DeviceError, 12: ConfigError}
# A letter for each argument; p: a handle, an array or the place of a new
# handle. After a colon the result, where it is not a status.
_TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p, "s": ctypes.c_char_p, "i": ctypes.c_int,
    "l": ctypes.c_int64, "d": ctypes.c_double, "-": None}
_PROTOTYPES = {
    "batch_accept": "pi", "batch_free": "p:-", "batch_new": "pip",
    "batch_profile": "pip", "batch_propose": "pippppp", "batch_reject": "pi",
    "batch_set": "pipp", "data_free": "p:-", "data_get": "pppp",
    "data_new": "ipppp", "data_q_max": "p:d", "data_read": "sddip",
    "data_size": "p:i",
    "draws_column": "pii:s", "draws_coordinates": "pisip", "draws_free": "p:-",
    "draws_n_column": "pi:i", "draws_open": "sp", "draws_read": "pislp",
    "draws_shape": "pisp", "engine_bodies": "ppp", "engine_free": "p:-",
    "engine_n_body": "p:i", "engine_new": "ipiiidpdisp",
    "engine_of_file": "psdip", "engine_of_residues": "pipipdip",
    "engine_profile_size": "p:i",
    "engine_text": "p:s", "fit": "ppppdipp", "frames_free": "p:-",
    "frames_open": "sp", "message": ":s", "profile_coordinates": "pppp",
    "profile_file": "psp", "profile_free": "p:-", "profile_intensity": "pddipp",
    "profile_numbers": "pip", "profile_of_engine": "ppp",
    "profiler_free": "p:-", "profiler_new": "idsp",
    "profiler_new_neutron": "ddippdsp", "profiler_set_density": "pd",
    "structure_free": "p:-", "structure_get": "ppp",
    "structure_new": "ippppppp", "structure_read": "sp",
    "structure_size": "p:i", "version": ":s"}
_FOLDER = Path(__file__).parent / "_native" / "lib"


@functools.lru_cache(maxsize=None)
def _prepare_devices() -> None:
    remark = _devices.prepare()
    if remark:
        warnings.warn(remark, RuntimeWarning, stacklevel=2)


@functools.lru_cache(maxsize=None)
def _load() -> ctypes.CDLL:
    """The library that TESSERA_LIBRARY names, or of the wheel, or the
    system's."""
    _prepare_devices()
    name = "libtessera.so.0"
    bundled = str(_FOLDER / name) if (_FOLDER / name).exists() else name
    try:
        return ctypes.CDLL(os.environ.get("TESSERA_LIBRARY", bundled))
    except OSError as error:
        raise MissingPackageError(
            f"libtessera cannot be loaded: {error}. Install the wheel of "
            f"tessera-saxs, or set TESSERA_LIBRARY to a {name}") from None


def program() -> str:
    """Path of the program `tessera` that belongs to the library."""
    _prepare_devices()
    library = os.environ.get("TESSERA_LIBRARY", str(_FOLDER / "-"))
    folder = Path(library).resolve().parent
    found = shutil.which("tessera", path=os.pathsep.join(
        [str(folder.parent / "bin"), str(folder), os.environ.get("PATH", "")]))
    if found is None:
        raise MissingPackageError("the program tessera is not installed")
    return found


@functools.lru_cache(maxsize=None)
def _function(name: str) -> Any:
    arguments, _, result = _PROTOTYPES[name].partition(":")
    function = _load()["tessera_" + name]
    function.argtypes = [_TYPES[letter] for letter in arguments]
    function.restype = _TYPES[result or "i"]
    return function


def call(name: str, *arguments: Any) -> Any:
    """Calls tessera_NAME with numbers, bytes, arrays and handles; None: NULL.
    A status other than 0 raises its exception."""
    try:
        result = _function(name)(*(
            a.ctypes if isinstance(a, np.ndarray) else a for a in arguments))
    except ctypes.ArgumentError as error:
        raise UsageError(f"tessera_{name}: {error}") from None
    if ":" not in _PROTOTYPES[name] and result != 0:
        raise ERRORS.get(result, TesseraError)(
            call("message").decode(errors="replace"))
    return result


class Handle:
    """Owns an object, which the last argument of tessera_KIND_NAME makes.
    `keep` lives longer than the object."""

    def __init__(self, kind: str, name: str, *arguments: Any,
                 keep: Any = None) -> None:
        self._as_parameter_ = pointer = ctypes.c_void_p()
        call(f"{kind}_{name}", *arguments, ctypes.byref(pointer))
        free = _function(f"{kind}_free")
        weakref.finalize(self, lambda keep: free(pointer), keep).atexit = False


def texts(values: Any) -> Any:
    """A C array of texts; None is NULL."""
    if values is None:
        return None
    encoded = [str(value).encode() for value in values]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def array(name: str, value: Any, *shape: Optional[int],
          dtype: Any = np.float64) -> np.ndarray:
    """A contiguous array of a shape, in which None is any length."""
    try:
        result = np.array(value, dtype=dtype, order="C")
    except (TypeError, ValueError):
        raise UsageError(f"{name} is not an array of numbers") from None
    if result.ndim != len(shape) or any(
            n not in (None, have) for n, have in zip(shape, result.shape)):
        wanted = ", ".join("n" if n is None else str(n) for n in shape)
        raise UsageError(f"{name} has the shape {result.shape}, not ({wanted})")
    return result


def need(package: str, purpose: str) -> Any:
    """Imports an optional package."""
    try:
        return __import__(package)
    except ImportError as error:
        name = package.split(".")[0]
        raise MissingPackageError(f"{purpose} needs the package {name}: "
                                  f"pip install {name}") from error
