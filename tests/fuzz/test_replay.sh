#!/bin/sh
# Every fuzz target reads its seeds, what fuzzing found before (found/TARGET),
# and some damaged copies of each, always the same ones.
. tests/cli/expect.sh

check "seeds" "$source/tests/fuzz/seeds.sh" "$program" made
export TESSERA_FUZZ_RUNS="$PWD/made/runs"
for target in pdb:40 cif:40 curve:100 config:200 table:60 map:60 dcd:2000 pae:2000 run:0; do
    name=${target%:*}
    check "$name" env TESSERA_FUZZ="$name" "$build/tests/fuzz/fuzz" --mutate "${target#*:}" \
        made/seeds/"$name"/*
    set -- "$source/tests/fuzz/found/$name"/*
    [ ! -e "$1" ] || check "$name, found" env TESSERA_FUZZ="$name" "$build/tests/fuzz/fuzz" "$@"
done
exit $bad
