#!/bin/sh
# packaging/build_deb.sh FOLDER, as root in a container: installs what debian/
# names, builds the packages, and leaves those that a user needs in FOLDER, with
# tessera-mpi for OpenMPI, which belongs to no package.
set -eu
apt-get update
apt-get install -y --no-install-recommends build-essential libopenmpi-dev
apt-get build-dep -y --no-install-recommends "$PWD"
DEB_BUILD_OPTIONS='noautodbgsym nocheck' dpkg-buildpackage -us -uc -b
mkdir -p "$1"
make MPI=1 BUILD=build/debian build/debian/tessera-mpi
mv ../tessera_*.deb ../tessera-data_*.deb build/debian/tessera-mpi "$1"
