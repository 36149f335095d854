#!/bin/sh
# Who may include whom (docs/design.md, section 8), and files that grew too
# long. An include through "../" or without a folder would pass unseen.
bad=0
complain() { echo "lint: $*" >&2; bad=1; }

allowed() {
    case $1 in
    core) echo core ;;
    io) echo core io ;;
    store) echo core io store ;;
    model) echo core io model ;;
    parts) echo core io model parts ;;
    prior) echo core io model prior ;;
    engine) echo core model engine ;;
    scattering) echo core io model engine scattering ;;
    density) echo core io model density ;;
    gpu) echo core io engine scattering density gpu ;;
    likelihood) echo core io model prior engine scattering density \
        likelihood ;;
    atoms) echo core io model engine scattering gpu likelihood atoms ;;
    moves) echo core model prior moves ;;
    sampler) echo core store model prior engine scattering likelihood moves \
        sampler ;;
    analysis) echo core io store atoms analysis ;;
    reweight) echo core io store scattering likelihood analysis reweight ;;
    report) echo core io store scattering likelihood atoms analysis report ;;
    run) echo core io store model parts prior engine scattering gpu likelihood \
        atoms moves sampler analysis run ;;
    train) echo core io model prior scattering train ;;
    cli) echo core io store model parts prior engine scattering density gpu \
        likelihood atoms moves sampler analysis reweight report run train \
        cli ;;
    bench) echo core io store model parts prior engine scattering density gpu \
        likelihood atoms moves sampler analysis reweight report run train \
        cli bench ;;
    esac
}

for path in src/*/; do
    room=$(basename "$path")
    may=" $(allowed "$room") "
    [ "$may" != "  " ] || complain "$path is a room that nobody may enter"
    for line in $(grep -Ho '^#include "[a-z_0-9]*/' "$path"*.[ch] \
        "$path"*.cc 2>/dev/null | sed 's/#include "//; s/ //g'); do
        file=${line%%:*} from=${line#*:}
        case $may in
        *" ${from%/} "*) ;;
        *) complain "$file includes $from, which $room may not" ;;
        esac
    done
    n=$(ls "$path" | wc -l)
    [ "$n" -le 40 ] || complain "$path has $n files: two subjects?"
done

twins=$(ls src/*/*.c src/*/*.h src/*/*.cc | sed 's#.*/##' | sort | uniq -d)
[ -z "$twins" ] || complain "files of one name in several rooms:" $twins

escapes=$(grep -nE '^#[ \t]*include[ \t]+"(\.|[^/"]*")' src/*/*.[ch] src/*/*.cc)
[ -z "$escapes" ] || complain "not as \"layer/file.h\": $escapes"

only() { # pattern, layer
    for file in $(grep -lE "^#include <$1" -r src | grep -vE "^src/$2/"); do
        complain "$file includes <$1...>; only src/$2 may"
    done
}
only 'CL/' gpu
only 'hdf5' store
only 'yaml' io
only 'gemmi/' io
only 'fftw3' '(density|scattering)'

# Who wants to know something of a term asks its type.
terms=$(sed -n 's/^    X(\([a-z_]*\)).*/\1/p' src/likelihood/term.h |
    paste -sd '|')
[ -n "$terms" ] || complain "no terms in src/likelihood/term.h"
for line in $(grep -noE "\<tsr_term_($terms)\>" src/*/*.[ch] |
    grep -v '^src/likelihood/'); do
    complain "$line: knows a term by name"
done

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
