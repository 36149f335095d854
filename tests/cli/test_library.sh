#!/bin/sh
# libtessera.so: its symbols are those of tessera.h, the examples run, and their numbers
# are the program's. After make install, pkg-config finds header and library, and a copy
# in another place finds its tables.
. tests/cli/expect.sh
library=$build/libtessera.so.0
sed 's/ SC / CG /' "$demo/two_domain.pdb" >atoms.pdb
api() { tr '\n' ' ' <"$source/include/tessera.h" | grep -oE 'TESSERA_API [^(]*\(' |
    grep -oE 'tessera_[a-z0-9_]*\(' | tr -d '(' | sort; }
same() { # NAME FILE FILE
    check "$1" cmp "$2" "$3"
}

# ---- symbols ----
api >api.txt
sed -n 's/^ *\(tessera_[a-z0-9_]*\);$/\1/p' "$source/src/library/tessera.map" >map.txt
same "the version script lists the functions of the header" api.txt map.txt
if is_sanitized; then
    echo "skip the exported symbols: a sanitizer adds its own"
else
    nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' |
        sed 's/@@TESSERA_0$//' | sort >symbols.txt
    same "the library exports these alone, in version TESSERA_0" api.txt symbols.txt
    readelf -dW "$library" >dynamic.txt
    check "its soname has the number of the ABI" grep -q 'SONAME.*libtessera.so.0' dynamic.txt
fi

# ---- examples ----
curve() { awk '!/^#/ {print $1, $2}' "$1"; }
cat >config.yaml <<'END'
seed: 1
structure: {sequence: AAAAAAAAAAAA}
sampler: {chains: 2, start: file, thin: 20, draws: 100, warmup: 20}
device: {use: reference, threads: 1}
END
summary() { tessera summary "$1" 2>&1 | sed "s/$1/RUN/g"; }
cases <<'END'
$ tessera profile atoms.pdb --device reference --c2 0.5 --q-max 0.5 --n-q 26 >want.txt 2>/dev/null
a curve | 0 | $build/examples/profile atoms.pdb
    is the program's | curve out.txt >a && curve want.txt >b && cmp a b
$ awk '!/^#/ {print $1, 2 * $2 + 40, 0.01 * $2 + 1}' want.txt >data.dat
$ tessera profile atoms.pdb --data data.dat --device reference --q-max 0.5 --json >fit.json 2>/dev/null
a fit | 0> chi2 | $build/examples/profile atoms.pdb data.dat
    is the program's | json fit.json: 'chi2 %.6g, c1 %.4f, c2 %.4f, scale %.6g' % \
        (s[0].chi2, s[0].c1, s[0].c2, s[0].scale) in open('out.txt').read()
proposals | 0> ^0.00 409600$ | $build/examples/proposals
a run of the library | 0> rg: mean .* over 2 chains of 100 draws | $build/examples/run config.yaml one rg
    with progress | err sampling: [0-9]+ of [0-9]+ steps
a run of the program | 0 | tessera run config.yaml -o two
    has the same draws | summary one >a && summary two >b && grep -q rg a && cmp a b
a bad key | 12 | $build/examples/run config.yaml four rg sampler.chain=3
    is named | err sampler.chain
    and leaves no folder | test ! -e four
END

# ---- installed ----
if is_sanitized || ! command -v pkg-config >/dev/null; then
    echo "skip the installed library: a sanitizer's build, or no pkg-config"
    exit 0
fi
mkdir build
cp -a "$build/src" "$build/tools" "$build/gen" "$build/embed" "$build"/libtessera.* \
    "$build"/tessera* build
cat >find.c <<'END'
#include <stdio.h>
#include <tessera.h>
int main(int argc, char **argv)
{
    tessera_profiler *p = NULL;
    int status = tessera_profiler_new(TESSERA_TWO_BODIES, 0.3, "reference", &p);
    tessera_profile *of = NULL;
    if (status == 0 && argc > 1)
        status = tessera_profile_file(p, argv[1], &of);
    printf("%s %s\n", tessera_version(), status ? tessera_message() : "found");
    tessera_profile_free(of);
    tessera_profiler_free(p);
    return status;
}
END
# CURDIR: a library that was built elsewhere, so that no table is in its sources
make -s --no-print-directory -C "$source" install CURDIR=/nowhere \
    BUILD="$work/build" DESTDIR="$work/dest" PREFIX=/opt/t >install.txt 2>&1
to=$work/dest/opt/t
check "make install with DESTDIR" test -e "$to/lib/libtessera.so" \
    -a -e "$to/include/tessera.h" -a -e "$to/lib/pkgconfig/tessera.pc"
PKG_CONFIG_PATH=$to/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --define-variable=prefix="$to" --cflags --libs tessera)
check "an installed header and library are enough" sh -c "${CC:-cc} find.c $flags -o find"
LD_LIBRARY_PATH=$to/lib expect "tables beside the library are found" 0\> "found" \
    ./find "$demo/two_domain.pdb"
rm -r "$to/share"
check "and these alone" sh -c "LD_LIBRARY_PATH=$to/lib ./find x | grep -q 'set TESSERA_DATA'"
