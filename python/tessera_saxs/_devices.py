"""Which OpenCL drivers the loader finds: those of the system, the NVIDIA driver
of a container, and a driver for processors that pip has installed.

The loader (ocl-icd) reads one folder, in which each file NAME.icd holds the
path of a driver's library: /etc/OpenCL/vendors, or the folder that the variable
OCL_ICD_VENDORS names. Only root writes to the first, so that drivers are added
in a copy of it in the user's cache."""
import hashlib
import os
import re
import site
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Optional

_SYSTEM = Path("/etc/OpenCL/vendors")


def prepare() -> Optional[str]:
    """Sets OCL_ICD_VENDORS if a driver must be added and the user has set no
    variable of the loader. To be called before libtessera is loaded. Returns a
    remark for the user, or None."""
    if "OCL_ICD_VENDORS" in os.environ or "OPENCL_VENDOR_PATH" in os.environ:
        return None
    drivers = {icd.name: icd.read_text()
               for icd in sorted(_SYSTEM.glob("*.icd"))}
    named = "".join(drivers.values())
    added: dict[str, str] = {}
    if "nvidia" not in named:
        added.update(_first("nvidia.icd", "libnvidia-opencl.so.1", (
            "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
            "/usr/local/nvidia/lib64")))
    remark = None
    if "pocl" not in named and "intelocl" not in named:
        added.update(_first("intel.icd", "lib/libintelocl.so",
                            (sys.prefix, site.getuserbase())) or _pocl())
        if "libpocl" in "".join(added.values()) and not _known_to_pocl():
            del added["pocl.icd"]
            if not drivers and not added:
                remark = ("the PoCL of pip does not know this processor; pip "
                          'install "tessera-saxs[cpu-intel]" brings a driver '
                          "that does")
    if added:
        os.environ["OCL_ICD_VENDORS"] = str(_folder({**drivers, **added}))
    return remark


def _first(name: str, library: str, folders: tuple[str, ...]) -> dict[str, str]:
    """An .icd file of the first of the folders that holds the library."""
    for path in (Path(folder, library) for folder in folders):
        if path.exists():
            return {name: str(path)}
    return {}


def _pocl() -> dict[str, str]:
    """PoCL of the package pocl-binary-distribution."""
    package = find_spec("pocl_binary_distribution")
    if package is None or package.origin is None:
        return {}
    found = Path(package.origin).parents[1].glob("pyopencl/.libs/libpocl*")
    return {"pocl.icd": str(path) for path in found}


def _known_to_pocl() -> bool:
    """Whether PoCL 3.0 builds kernels for this processor. Its LLVM 14 has no
    name for the families after AMD's 25 (Zen 4) and Intel's 6, and then asks
    its own compiler for a processor 'generic', which x86 has not."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return True
    family = re.search(r"cpu family\s*: (\d+)", text)
    newest = 25 if "AuthenticAMD" in text else 6
    return family is None or int(family[1]) <= newest


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
