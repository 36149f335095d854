# Copyright the tessera maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recipe of Spack: copy to packages/tessera_saxs/package.py of a repository."""

from spack.package import *


class TesseraSaxs(MakefilePackage):
    """Bayesian inference of protein structure from small-angle scattering
    curves, distances and density maps."""

    license("GPL-3.0-or-later")

    # A release adds url and sha256: spack checksum tessera-saxs
    version("0.3.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fftw@3:+openmp precision=float,double")
    depends_on("gemmi")
    depends_on("gsl")
    depends_on("hdf5@1.10: ~mpi+hl")
    depends_on("libyaml")
    depends_on("opencl")
    depends_on("pegtl")
    depends_on("random123")
    depends_on("zlib-api")

    def install(self, spec, prefix):
        make("install", "PREFIX=" + prefix, "COMMIT=")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.tessera)("devices")
