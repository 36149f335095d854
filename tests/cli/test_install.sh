#!/bin/sh
# make install PREFIX=X after a plain make: the program looks below X.
build=${BUILD:-build}
case $build in
*/san-*)
    echo "skip install: a sanitizer's build"
    exit 0
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"
cp -a "$build/src" "$build/gen" "$build/embed" "$build/libtessera.a" \
    "$build/tessera" "$work/build"
if make -s --no-print-directory install BUILD="$work/build" \
    PREFIX="$work/to" >"$work/log" 2>&1 &&
    grep -qa "$work/to" "$work/to/bin/tessera" &&
    [ -s "$work/to/share/tessera/data/prior.dat" ]; then
    echo "ok install PREFIX=X after a plain make"
else
    echo "not ok install PREFIX=X after a plain make"
    sed 's/^/    /' "$work/log"
fi
