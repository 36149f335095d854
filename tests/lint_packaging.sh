#!/bin/sh
# tests/lint_packaging.sh PACKAGE...: the version of version.txt is that of all recipes,
# debian/control needs the packages that `make deps` installs, and the source archive has
# all folders that a build needs. Prints what differs.
version=$(cat version.txt)
bad=0
lacks() { # FILE PATTERN
    grep -qE -e "$2" "$1" || { echo "lint: $1 lacks $2"; bad=1; }
}
pattern=$(echo "$version" | sed 's/[.]/[.]/g')
[ "$(sed -n 's/^## \([0-9.]*\) .*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] ||
    { echo "lint: CHANGELOG.md does not begin with $version"; bad=1; }
date=$(sed -n "s/^## $pattern (\(.*\))$/\1/p" CHANGELOG.md)
lacks CITATION.cff "^version: $pattern\$"
lacks CITATION.cff "^date-released: \"$date\"\$"
head -n 1 debian/changelog | grep -qE "^tessera \($pattern(-[0-9]+)?\)" ||
    { echo "lint: debian/changelog does not begin with $version"; bad=1; }
lacks packaging/conda/recipe.yaml "^  version: \"$pattern\"\$"
lacks packaging/spack/package.py "version\(\"$pattern\""
for folder in $(git ls-files | sed -n 's|/.*||p' | sort -u); do
    case $folder in
    .ci | debian | python | runs) ;; # setuptools adds python
    *) lacks MANIFEST.in "^graft $folder\$" ;;
    esac
done
for package in "$@"; do
    case $package in
    g++ | pocl-opencl-icd | libcmocka-dev) ;; # in every Debian; for the tests
    *) lacks debian/control "[ ,]$package(,| |\$)" ;;
    esac
done
exit $bad
