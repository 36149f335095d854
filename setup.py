"""The package for Python: what `make install` installs goes into its folder
_native. Everything else is in pyproject.toml."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py


class BuildNative(build_py):
    def run(self) -> None:
        super().run()
        root = "python" if self.editable_mode else self.build_lib
        native = Path(root, "tessera_saxs", "_native").resolve()
        shutil.rmtree(native, ignore_errors=True)
        subprocess.check_call(["make", f"-j{os.cpu_count()}", "install",
                               f"DESTDIR={native}", "PREFIX="])
        # A wheel holds no symbolic links, and the program needs none.
        (native / "lib/libtessera.so").unlink()
        shutil.rmtree(native / "lib/pkgconfig")


class NativeDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class AnyPython(bdist_wheel):
    """The library is opened by ctypes, so that one wheel serves every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


version = re.search(r"^VERSION *:= *(\S+)", Path("Makefile").read_text(), re.M)
assert version is not None
setup(version=version[1], distclass=NativeDistribution,
      cmdclass={"build_py": BuildNative, "bdist_wheel": AnyPython})
