#!/bin/sh
# After make install PREFIX=X the program finds its data below X, and it was built with the
# compiler's guards against exploits.
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
cp -a "$build/src" "$build/tools" "$build/gen" "$build/embed" \
    "$build"/libtessera.* "$build"/tessera* "$work/build"
if make -s --no-print-directory install BUILD="$work/build" \
    PREFIX="$work/to" >"$work/log" 2>&1 &&
    grep -qa "$work/to" "$work/to/bin/tessera" &&
    "$work/to/bin/tessera" train --help >/dev/null 2>&1 &&
    [ -s "$work/to/share/tessera/data/prior.dat" ]; then
    echo "ok install PREFIX=X after a plain make"
else
    echo "not ok install PREFIX=X after a plain make"
    sed 's/^/    /' "$work/log"
fi

program=$work/to/bin/tessera
has() { # NAME PATTERN readelf's OPTION...
    name=$1 pattern=$2
    shift 2
    if readelf -W "$@" "$program" 2>&1 | grep -qE -e "$pattern"; then
        echo "ok $name"
    else
        echo "not ok $name: readelf $* lacks '$pattern'"
    fi
}
if ! command -v readelf >/dev/null; then
    echo "skip what the program is built with: no readelf"
    exit 0
fi
has "at a random address (PIE)" "Type: +DYN" -h
has "tables that are read-only once loaded (RELRO)" GNU_RELRO -l
has "and all of them (BIND_NOW)" "BIND_NOW|Flags: NOW" -d
has "a stack that cannot be run" "GNU_STACK .* RW +0x" -l
has "a guarded stack" "__stack_chk_fail" --dyn-syms
case " ${CFLAGS--O2} " in
*" -O"[1-9sgf]*) has "checked buffers (_FORTIFY_SOURCE)" "__snprintf_chk" --dyn-syms ;;
*) echo "skip checked buffers: not optimised" ;;
esac
