#!/bin/sh
# The wheel of a release, into dist: packaging/wheel.sh FOLDER, as root. Built in
# Debian 11, in FOLDER: it then runs where glibc is 2.31 or later (Ubuntu 20.04,
# Debian 11, RHEL 9), and holds 10 libraries; the HDF5 of Debian 12 links 30 more,
# for files on a network. Libraries of headers alone come from this machine's
# Debian.
set -eu
root=${1:?packaging/wheel.sh FOLDER}
cd "$(dirname "$0")/.."
debootstrap --variant=minbase --include=ca-certificates,g++,make,pkg-config,\
python3-venv,ocl-icd-opencl-dev,opencl-headers,libgsl-dev,libhdf5-dev,\
libyaml-dev,libfftw3-dev,zlib1g-dev bullseye "$root"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
mkdir "$root/src"
git archive HEAD | tar -x -C "$root/src"
(cd "$root/src" && for package in gemmi-dev tao-pegtl-dev librandom123-dev; do
    apt-get download "$package"
    dpkg -x "$package"_*.deb "$root"
done)
chroot "$root" make -C /src wheel DEB_PACKAGES= DEB_CHECK= DEB_BROWSER= \
    COMMIT="$(git describe --always)"
mkdir -p dist
cp "$root"/src/dist/*.whl "$root"/src/dist/*.spdx.json dist
