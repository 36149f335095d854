"""The same I(q), to the bit, from the package's library and program, from the
build tree's and from an installation's."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessera_saxs

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
CURVES = """
import sys, numpy, tessera_saxs
q = numpy.linspace(0, 0.5, 101)
for scatterers in "atoms", "two":
    print(tessera_saxs.profile(sys.argv[1], q, c1=1.02, c2=0.7, device="reference",
                               scatterers=scatterers).tobytes().hex())
"""


def curves(library, program, model):
    """Bits of the curves by the library, and the program's text of one."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("TESSERA_LIBRARY", "TESSERA_DATA")}
    if library.parent.parent.name != "_native":
        environment["TESSERA_LIBRARY"] = str(library)
    return [subprocess.run(command, env=environment, check=True, text=True,
                           capture_output=True).stdout
            for command in ([sys.executable, "-c", CURVES, model],
                            [program, "profile", model, "--device", "reference", "-q"])]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not (BUILD / "libtessera.so.0").exists():
        pytest.skip("no build tree")
    return BUILD / "libtessera.so.0", BUILD / "tessera"


def test_installed(built, tmp_path, atoms):
    subprocess.run(["make", "-s", "-C", ROOT, "install", f"DESTDIR={tmp_path}",
                    "PREFIX=/usr"], check=True)
    library, = tmp_path.glob("usr/lib/**/libtessera.so.0")
    assert curves(*built, atoms) == curves(library, tmp_path / "usr/bin/tessera", atoms)


def test_package(built, atoms):
    native = Path(tessera_saxs.__file__).parent / "_native"
    if not native.exists():
        pytest.skip("the package is the source tree's, without a library")
    assert curves(*built, atoms) == curves(native / "lib/libtessera.so.0",
                                           native / "bin/tessera", atoms)
