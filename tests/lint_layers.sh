#!/bin/sh
# Who may include whom (docs/design.md, section 8), and files that grew too
# long. An include through "../" or without a folder would pass unseen.
bad=0
complain() { echo "lint: $*" >&2; bad=1; }

allowed() {
    case $1 in
    core) echo core ;;
    io) echo core io ;;
    model) echo core io model ;;
    likelihood) echo core io model likelihood ;;
    gpu) echo core likelihood gpu ;;
    moves) echo core model moves ;;
    sampler) echo core io model likelihood moves sampler ;;
    analysis) echo core io model likelihood analysis ;;
    cli) echo core io model likelihood gpu moves sampler analysis cli ;;
    esac
}

for layer in core io model likelihood gpu moves sampler analysis cli; do
    may=" $(allowed $layer) "
    for line in $(grep -Ho '^#include "[a-z_0-9]*/' src/$layer/*.[ch] \
        src/$layer/*.cc 2>/dev/null | sed 's/#include "//; s/ //g'); do
        file=${line%%:*} from=${line#*:}
        case $may in
        *" ${from%/} "*) ;;
        *) complain "$file includes $from, which $layer may not" ;;
        esac
    done
done

escapes=$(grep -nE '^#[ \t]*include[ \t]+"(\.|[^/"]*")' src/*/*.[ch] src/*/*.cc)
[ -z "$escapes" ] || complain "not as \"layer/file.h\": $escapes"

only() { # pattern, layer
    for file in $(grep -lE "^#include <$1" -r src | grep -v "^src/$2/"); do
        complain "$file includes <$1...>; only src/$2 may"
    done
}
only 'CL/' gpu
only 'hdf5' io
only 'yaml' io
only 'gemmi/' io

for file in src/*/*.[ch] src/*/*.cc kernels/* tests/*.h tests/*/*.[ch]; do
    n=$(wc -l <"$file")
    [ "$n" -le 600 ] || complain "$file has $n lines: two concerns?"
    long=$(grep -nE '^.{81,}' "$file" | head -1)
    [ -z "$long" ] || complain "$file:${long%%:*}: longer than 80 columns"
done
grep -nE '\<(strcpy|strcat|v?sprintf|gets)\(' src/*/*.[ch] src/*/*.cc && {
    complain "these write without a bound"
}
exit $bad
