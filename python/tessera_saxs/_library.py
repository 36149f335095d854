"""libtessera by ctypes: finding and loading the library, the prototypes of
tessera.h, owned handles, and statuses as exceptions."""
from __future__ import annotations

import ctypes
import functools
import os
import shutil
import weakref
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np


class TesseraError(Exception):
    """Base of the errors of tessera_saxs, with the library's message."""


class UsageError(TesseraError, ValueError):
    """An argument that the function does not accept."""


class DataError(TesseraError, ValueError):
    """Bad content of a file or array; the message names the place."""


class ConfigError(TesseraError, ValueError):
    """Invalid configuration of a run; the message names key and line."""


class MissingFileError(TesseraError, FileNotFoundError):
    """A missing or unreadable file."""


class NumericError(TesseraError, ValueError):
    """A number is not finite."""


class RangeError(TesseraError, ValueError):
    """Outside the range of the object, as q beyond q_max."""


class StorageError(TesseraError, OSError):
    """Reading or writing failed."""


class DeviceError(TesseraError, RuntimeError):
    """No usable OpenCL device, or the device failed."""


class OutOfMemoryError(TesseraError, MemoryError):
    """No memory for the result."""


class InternalError(TesseraError, RuntimeError):
    """A fault of the library: please report it."""


class MissingPackageError(TesseraError, ImportError):
    """An optional Python package that the call needs is not installed."""


class Interrupted(KeyboardInterrupt):
    """A run was stopped after a checkpoint.

    ``folder``: the folder of the run, for :func:`tessera_saxs.resume`."""

    folder: Optional[Path] = None


INTERRUPTED = 11
_ERRORS: dict[int, type[TesseraError]] = {
    2: UsageError, 3: DataError, 4: MissingFileError, 5: InternalError,
    6: OutOfMemoryError, 7: NumericError, 8: RangeError, 9: StorageError,
    10: DeviceError, 12: ConfigError}


class _Array:
    """Type of a pointer to an array; None is NULL."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def from_param(self, array: Optional[np.ndarray]) -> Any:
        if array is None:
            return None
        if array.dtype != self.dtype or not array.flags.c_contiguous:
            raise TypeError(f"a contiguous array of {self.dtype} is needed")
        return ctypes.c_void_p(array.ctypes.data)


class Handle:
    """Owns an object of the library, which the function ``free`` destroys.
    ``keep`` outlives the object."""

    def __init__(self, free: str, pointer: ctypes.c_void_p,
                 keep: Any = None) -> None:
        self.pointer = pointer
        function = load()[free]
        function.argtypes = [ctypes.c_void_p]
        function.restype = None

        def release(keep: Any) -> None:
            function(pointer)

        weakref.finalize(self, release, keep).atexit = False

    @classmethod
    def from_param(cls, handle: Optional[Handle]) -> Any:
        return None if handle is None else handle.pointer


PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
                            ctypes.c_int64, ctypes.c_int64)

# The arguments of a function, a letter each, and after a colon its result if
# that is no status.
_TYPES: dict[str, Any] = {
    "h": Handle, "o": ctypes.POINTER(ctypes.c_void_p), "i": ctypes.c_int,
    "l": ctypes.c_int64, "d": ctypes.c_double, "s": ctypes.c_char_p,
    "S": ctypes.POINTER(ctypes.c_char_p), "D": _Array(np.float64),
    "F": _Array(np.float32), "I": _Array(np.int32), "L": _Array(np.int64),
    "f": PROGRESS, "v": ctypes.c_void_p}
_PROTOTYPES = {
    "version": ":s", "message": ":s",
    "data_read": "sddio", "data_new": "iDDDo", "data_size": "h:i",
    "data_get": "hDDD",
    "structure_read": "so", "structure_size": "h:i", "structure_get": "hDI",
    "profiler_new": "idso", "profiler_new_neutron": "ddiSDdso",
    "profile_file": "hso", "profile_coordinates": "hhDo",
    "profile_frames": "hhiDddiDD", "profile_intensity": "hddiDD",
    "profile_numbers": "hiD", "fit": "hhDDdiDD",
    "engine_new": "iIiiidDdiso", "engine_of_file": "siddiso",
    "engine_n_body": "h:i", "engine_bodies": "hDI",
    "engine_profile_size": "h:i", "engine_text": "h:s",
    "profile_of_engine": "hDo",
    "batch_new": "hio", "batch_set": "hiDD", "batch_propose": "hiIIIDD",
    "batch_accept": "hi", "batch_reject": "hi", "batch_profile": "hiD",
    "run_new": "ssiSo", "run_start": "hfv", "run_stop": "h:",
    "run_folder": "h:s",
    "draws_open": "so", "draws_n_column": "hi:i", "draws_column": "hii:s",
    "draws_shape": "hisI", "draws_read": "hislD",
    "draws_coordinates": "hisiD",
}

_NATIVE = Path(__file__).parent / "_native"


@functools.lru_cache(maxsize=None)
def load() -> ctypes.CDLL:
    """The library: the file that TESSERA_LIBRARY names, else the one of this
    package, else the system's."""
    named = os.environ.get("TESSERA_LIBRARY")
    bundled = _NATIVE / "lib" / "libtessera.so.0"
    path = named or (str(bundled) if bundled.exists() else "libtessera.so.0")
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise MissingPackageError(
            f"libtessera cannot be loaded: {error}. Install the wheel of "
            "tessera-saxs, or set TESSERA_LIBRARY to the path of a "
            "libtessera.so.0") from None


@functools.lru_cache(maxsize=None)
def program() -> str:
    """Path of the program `tessera` that belongs to the library."""
    named = os.environ.get("TESSERA_LIBRARY")
    folder = Path(named).resolve().parent if named else _NATIVE / "lib"
    for path in (folder / "../bin/tessera", folder / "tessera"):
        if path.exists():
            return str(path.resolve())
    found = shutil.which("tessera")
    if found is None:
        raise MissingPackageError("the program tessera is not installed")
    return found


@functools.lru_cache(maxsize=None)
def _function(name: str) -> tuple[Callable[..., Any], bool]:
    arguments, colon, result = _PROTOTYPES[name].partition(":")
    function = load()["tessera_" + name]
    function.argtypes = [_TYPES[letter] for letter in arguments]
    function.restype = (_TYPES[result] if result else
                        None if colon else ctypes.c_int)
    return function, not colon


def call(name: str, *arguments: Any) -> Any:
    """Calls tessera_NAME. A status other than 0 raises its exception."""
    function, has_status = _function(name)
    result = function(*arguments)
    if has_status and result != 0:
        raise error_of(result, text(_function("message")[0]()))
    return result


def make(kind: str, name: str, *arguments: Any, keep: Any = None) -> Handle:
    """Calls a function whose last argument is a new object of a kind."""
    pointer = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(pointer))
    return Handle(f"tessera_{kind}_free", pointer, keep)


def error_of(status: int, message: str) -> BaseException:
    """The exception of a status of the library."""
    if status == INTERRUPTED:
        return Interrupted(message)
    return _ERRORS.get(status, TesseraError)(message)


def text(value: Optional[bytes]) -> str:
    return (value or b"").decode(errors="replace")


def texts(values: list[str]) -> Any:
    """A C array of texts."""
    return (ctypes.c_char_p * len(values))(*(v.encode() for v in values))


def path_bytes(path: "str | os.PathLike[str]") -> bytes:
    return os.fsencode(os.fspath(path))


def array(name: str, value: Any, *shape: Optional[int],
          dtype: Any = np.float64) -> np.ndarray:
    """A contiguous array of a shape, in which None is any length."""
    try:
        result = np.ascontiguousarray(value, dtype=dtype)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is not an array of numbers") from None
    if result.ndim != len(shape) or any(
            want not in (None, have)
            for want, have in zip(shape, result.shape)):
        want_text = ", ".join("n" if n is None else str(n) for n in shape)
        raise UsageError(f"{name} has shape {result.shape}; "
                         f"({want_text}) is needed")
    return result


def need(package: str, purpose: str) -> Any:
    """Imports an optional package."""
    try:
        return __import__(package)
    except ImportError:
        raise MissingPackageError(
            f"{purpose} needs the Python package {package}: "
            f"pip install {package}") from None
