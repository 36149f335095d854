#!/bin/sh
# The examples in docs/examples work: put into a copy of the tree with the lines that
# docs/extend.md names, built without optimisation, and run.
. tests/cli/expect.sh
if is_sanitized; then
    echo "skip extend: a sanitizer's build"
    exit 0
fi
page=$source/docs/extend.md

# ---- the copy ----
# Objects come with their times, so that make builds what depends on the lists.
mkdir tree tree/build
cp -a "$source/Makefile" "$source/version.txt" "$source/src" "$source/kernels" "$source/include" tree
cp -a "$build/src" "$build/gen" "$build/embed" tree/build
cd tree || exit 1
ln -s "$source/data" "$source/configs" .
cp "$source/docs/examples/term_gyration.c" src/likelihood
cp "$source/docs/examples/psi_turn.c" src/moves
for file in term_gyration.c psi_turn.c; do
    check "the page names $file" grep -q "docs/examples/$file" "$page"
done
add() { # LIST HEADER: what the page says becomes the list's second line
    line=$(sed -n "s/^The line in \`$1\` is \`\(X([a-z_]*)\)\`.*/\1/p" "$page")
    check "the page has a line for $1" test -n "$line"
    sed "/^#define $1(X)/{n;s/\$/\n    $line \\\\/;}" "$2" >header
    check "which goes into $2" sh -c "! cmp -s header $2"
    cat header >"$2"
}
add TSR_TERMS src/likelihood/term.h
add TSR_MOVES src/moves/move.h
expect "it builds, without a warning" 0 "" make -s --no-print-directory \
    BUILD=build WERROR=1 CFLAGS="-O0 -g0" build/tessera
cd ..
[ -x tree/build/tessera ] || exit 1
ln -sf "$work/tree/build/tessera" .bin/tessera

# ---- what it does ----
cat >new.yaml <<END
structure: {file: "$demo/two_domain.pdb", flexible: ["A:51-64"]}
data:
  - {kind: gyration, mean: 26, sd: 0.2}
moves: {psi_turn: 2}
sampler: {chains: 2, warmup: 400, draws: 60, thin: 10}
output: {directory: out}
device: {use: reference}
END
sed 's/, mean: 26//' new.yaml >bad.yaml
cases <<'END'
help has the term, and the move | 0> kind: gyration .* a measured | tessera run --help all
    the move | out ^  *psi_turn .* turns one free psi
the term refuses what it cannot have | 78 bad.yaml:3:5: data.0: .*mean and sd | tessera check bad.yaml
a run without data | 0 psi_turn +[0-9]+ proposed, +[1-9] | tessera run new.yaml --prior-only --output prior
summary of it | 0 | tessera summary prior --json
    has no trace of the term | no out gyration
a run with both | 0 psi_turn +[0-9]+ proposed, +[1-9] | tessera run new.yaml
summary | 0 | tessera summary out --json
    the structures meet the radius, with bodies as points a little less | json 25.5 < d.rg.mean < 27.0 \
        and 0.0 < d.gyration_chi2.mean < 3.0
report | 0 | tessera report out
    which shows the term | in out/report.html <h2 id="gyration">Radius of gyration
END
exit $bad
