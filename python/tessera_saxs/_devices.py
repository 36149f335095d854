"""Which OpenCL drivers the loader finds: those of the system, the NVIDIA
driver of a container, and PoCL of `pip install "tessera-saxs[cpu]"`.

The loader (ocl-icd) reads one folder, in which each file NAME.icd holds the
path of a driver's library: /etc/OpenCL/vendors, or the folder that the variable
OCL_ICD_VENDORS names. No user may write to the first, so that a driver is added
by a copy of it in the user's cache."""
import hashlib
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Optional

_SYSTEM = Path("/etc/OpenCL/vendors")
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64",
              "/usr/local/nvidia/lib64")


def prepare() -> None:
    """Sets OCL_ICD_VENDORS if a driver must be added and the user has set no
    variable of the loader. To be called before libtessera is loaded."""
    if "OCL_ICD_VENDORS" in os.environ or "OPENCL_VENDOR_PATH" in os.environ:
        return
    drivers = {icd.name: icd.read_text()
               for icd in sorted(_SYSTEM.glob("*.icd"))}
    added = {f"{name}.icd": library
             for name, library in (("nvidia", _nvidia()), ("pocl", _pocl()))
             if library and not any(name in text for text in drivers.values())}
    if added:
        os.environ["OCL_ICD_VENDORS"] = str(_folder({**drivers, **added}))


def _nvidia() -> Optional[str]:
    """The NVIDIA driver, which containers get without its .icd file."""
    found = [path for folder in _LIBRARIES
             for path in Path(folder).glob("libnvidia-opencl.so.1")]
    return str(found[0]) if found else None


def _pocl() -> Optional[str]:
    """PoCL, which computes on processors, of a package from PyPI."""
    package = find_spec("pocl_binary_distribution")
    if package is None or package.origin is None:
        return None
    found = list(Path(package.origin).parents[1].glob("pyopencl/.libs/libpocl*"))
    return str(found[0]) if found else None


def _folder(drivers: dict[str, str]) -> Path:
    """A folder of .icd files, named after their content, in the user's cache,
    or a temporary one where that cannot be written."""
    key = hashlib.sha256(repr(sorted(drivers.items())).encode()).hexdigest()
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return _write(Path(cache, "tessera", f"opencl-{key[:16]}"), drivers)
    except (OSError, RuntimeError):  # Path.home: no home
        return _write(Path(tempfile.mkdtemp(prefix="tessera-")), drivers)


def _write(folder: Path, drivers: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, library in drivers.items():
        if not (folder / name).exists():  # whole, or not at all
            part = folder / f"{name}.{os.getpid()}"
            part.write_text(library)
            part.replace(folder / name)
    return folder
