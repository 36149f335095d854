#!/bin/sh
# packaging/build_deb.sh FOLDER, as root in a container: installs what debian/
# names, builds the packages, and leaves those that a user needs in FOLDER.
set -eu
apt-get update
apt-get install -y --no-install-recommends build-essential
apt-get build-dep -y --no-install-recommends "$PWD"
DEB_BUILD_OPTIONS='noautodbgsym nocheck' dpkg-buildpackage -us -uc -b
mkdir -p "$1"
mv ../tessera_*.deb ../tessera-data_*.deb "$1"
