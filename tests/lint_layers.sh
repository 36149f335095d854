#!/bin/sh
# Who may include whom (docs/design.md, section 5), and lines that are too long.
# An include through "../" or without a folder would pass unseen.
bad=0
complain() { echo "lint: $*" >&2; bad=1; }

# A layer may include itself and the layers before it in this list. The layers of
# `sampler` know nothing of those of `rest`.
sampler="core files store molecule prior engine scattering gpu likelihood moves
    surrogate sampler"
rest="maps posterior analysis session answer report library commands"
tools="train bench" # programs of their own, which may include all

before=" "
for layer in $sampler $rest $tools; do
    before="$before$layer "
    for line in $(grep -Ho '^#include "[a-z_0-9]*/' src/$layer/*.[ch] \
        src/$layer/*.cc tools/$layer/*.[ch] 2>/dev/null |
        sed 's/#include "//; s/ //g'); do
        file=${line%%:*} from=${line#*:}
        case $before in
        *" ${from%/} "*) ;;
        *) complain "$file includes $from, which comes after $layer" ;;
        esac
    done
done
for path in src/*/ tools/*/; do
    case $before in
    *" $(basename "$path") "*) ;;
    *) complain "$path is in no list of layers" ;;
    esac
done

# x.c and x.h are one file here; files whose includes lead back to them.
sources=$(ls src/*/*.c src/*/*.h src/*/*.cc tools/*/*.c tools/*/*.h)
circle=$(grep -H '^#include "[a-z_0-9]*/' $sources |
    sed -E 's#^(src|tools)/([^.]*)\.[a-z]*:\#include "([^.]*)\..*#\2 \3#' |
    tsort 2>&1 >/dev/null | sed 's/^tsort: //')
[ -z "$circle" ] || complain "these include each other in a circle:" $circle

for file in $(ls src/*/*.h tools/*/*.h); do
    guard=TSR_$(echo "${file#*/}" | tr 'a-z/.' 'A-Z__')
    [ "$(grep -c "^#\(ifndef\|define\) $guard\$" "$file")" = 2 ] ||
        complain "$file: its guard is not $guard"
done

twins=$(ls src/*/*.c src/*/*.h src/*/*.cc tools/*/*.[ch] | sed 's#.*/##' | sort | uniq -d)
[ -z "$twins" ] || complain "files of one name in several layers:" $twins

escapes=$(grep -nE '^#[ \t]*include[ \t]+"(\.|[^/"]*")' src/*/*.[ch] src/*/*.cc \
    tools/*/*.[ch])
[ -z "$escapes" ] || complain "not as \"layer/file.h\": $escapes"

only() { # pattern, layer
    for file in $(grep -lE "^#include <$1" -r src tools | grep -vE "^src/$2/"); do
        complain "$file includes <$1...>; only src/$2 may"
    done
}
only 'CL/' '(gpu|maps|surrogate)'
only 'hdf5' store
only 'yaml' files
only 'gemmi/' 'molecule'
only 'fftw3' '(maps|scattering)'

# Who wants to know something of a term asks its type.
terms=$(sed -n 's/^    X(\([a-z_]*\)).*/\1/p' src/likelihood/term.h |
    paste -sd '|')
[ -n "$terms" ] || complain "no terms in src/likelihood/term.h"
for line in $(grep -noE "\<tsr_term_($terms)\>" src/*/*.[ch] tools/*/*.[ch] |
    grep -vE "^src/(likelihood|surrogate)/|^src/maps/term_map"); do
    complain "$line: knows a term by name"
done

for file in src/*/*.[ch] src/*/*.cc tools/*/*.[ch] kernels/* tests/*.h tests/*/*.[ch]; do
    long=$(grep -nE '^.{81,}' "$file" | head -1)
    [ -z "$long" ] || complain "$file:${long%%:*}: longer than 80 columns"
done
grep -nE '\<(strcpy|strcat|v?sprintf|gets)\(' src/*/*.[ch] src/*/*.cc tools/*/*.[ch] && {
    complain "these write without a bound"
}
exit $bad
