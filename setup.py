"""The native half of the package for Python: what `make install` installs, in
the folder _native. The rest is in pyproject.toml."""
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
        if shutil.which("dpkg-query"):
            copy_licenses(native)


def copy_licenses(native: Path) -> None:
    """Licences of all that the library contains or links, by Debian's packages,
    with the common licences to which they refer."""
    to = native / "share/licenses"
    to.mkdir(parents=True)
    linked = subprocess.check_output(["ldd", native / "lib/libtessera.so.0"],
                                     text=True)
    files = [os.path.basename(os.path.realpath(path))
             for path in re.findall(r"=> (/\S+)", linked)]
    owners = subprocess.check_output(
        ["dpkg-query", "-S", *(f"*/{file}" for file in files)], text=True)
    for package in {"gemmi-dev", "tao-pegtl-dev", "librandom123-dev",
                    *re.findall(r"^([^:, ]+)", owners, re.M)}:
        text = Path("/usr/share/doc", package, "copyright").read_text()
        (to / package).write_text(text)
        for common in re.findall(r"/common-licenses/([\w.+-]*\w)", text):
            shutil.copy(f"/usr/share/common-licenses/{common}", to)


class NativeDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class AnyPython(bdist_wheel):
    """ctypes opens the library, so that one wheel serves every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(distclass=NativeDistribution,
      cmdclass={"build_py": BuildNative, "bdist_wheel": AnyPython})
