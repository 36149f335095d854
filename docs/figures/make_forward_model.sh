#!/bin/sh
# The figures of docs/forward-model.md, from the public data in ../shared/data.
#
#     make && sh docs/figures/make_forward_model.sh [FOLDER]
#
# Computes what is plotted with build/tessera into FOLDER (kept; what is there
# already is not computed again) or a temporary one, then draws. Some 20 seconds
# on two cores.
set -eu
cd "$(dirname "$0")/../.."
tessera=${BUILD:-build}/tessera
data=${DATA:-../shared/data}
if [ $# -gt 0 ]; then
    work=$1
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

# Takes the name of the file only when all of it was written.
into() { # FILE COMMAND...
    into=$1
    shift
    [ -s "$into" ] && return
    "$@" >"$into.part"
    mv "$into.part" "$into"
}

# ---- fits to the measured curves ----
for model in lysozyme_2epe/model lysozyme_raw/model lysozyme_6lyz/model \
    glucose_isomerase/model_rechained mpro_sasdjg5/model nup133_3kfo/model \
    lar_fn3_1_2/model ligase_multifoxs/model a2m_native/model; do
    name=${model%%/*}
    for bodies in atoms two; do
        fit=$work/$name.$bodies.fit
        [ -s "$fit" ] || "$tessera" profile -q "$data/saxs/$model.pdb" \
            --data "$data/saxs/$name/exp.dat" --bodies $bodies \
            --background none --output "$fit"
    done
done

# ---- curves that other programs computed ----
published=$data/reference_profiles
crysol=$published/crysol_1hel
foxs=$published/foxs_6lyz
# Where nothing is fitted, with those programs' own volumes.
into "$work/1hel.dat" "$tessera" profile -q "$crysol/1HEL.pdb" \
    --solvent-model atoms --q-max 0.5 --n-q 51 --partials
into "$work/6lyz.dat" "$tessera" profile -q "$foxs/6lyz.pdb" \
    --solvent-model atoms --q-max 0.499 --n-q 500
into "$work/dna.dat" "$tessera" profile -q \
    "$published/plumed_rt-saxs/template.pdb" --solvent-model atoms --q-max 0.38 --n-q 3801
# Their totals as if measured, with errors of 1 %.
into "$work/crysol.dat" awk 'BEGIN {print "# q (1/Angstrom) I sigma"}
    NR > 2 {print $1 + 0, $2, 0.01 * $2}' "$crysol/1HEL00.int"
into "$work/foxs.dat" awk 'BEGIN {print "# q (1/Angstrom) I sigma"}
    !/^#/ && $1 > 0 {print $1, $2, 0.01 * $2}' "$foxs/6lyz.pdb.dat"
into "$work/foxs_3kfo.dat" awk 'BEGIN {print "# q (1/Angstrom) I sigma"}
    !/^#/ {print $1, $2, $3}' "$published/foxs_3kfo/3KFOfill.B99990003_saxs.fit"
[ -s "$work/crysol.fit" ] || "$tessera" profile -q "$crysol/1HEL.pdb" \
    --data "$work/crysol.dat" --background none --output "$work/crysol.fit"
[ -s "$work/foxs.fit" ] || "$tessera" profile -q "$foxs/6lyz.pdb" \
    --data "$work/foxs.dat" --c2 0 --background none --output "$work/foxs.fit"
[ -s "$work/foxs_3kfo.fit" ] || "$tessera" profile -q \
    "$published/foxs_3kfo/3KFOfill.B99990003.pdb" \
    --data "$work/foxs_3kfo.dat" --background none --output "$work/foxs_3kfo.fit"

# ---- bodies beside all atoms, on structures held out of the training ----
[ -s "$work/errors.csv" ] || "$tessera" train form-factors --evaluate -q \
    --threads 2 --output "$work/errors.csv" \
    --table "$data/form_factors/form_factors-two_body_model.dat" \
    --table "$data/form_factors/form_factors-one_body_model.dat" \
    "$data/structures"

"${PYTHON:-python3}" docs/figures/forward_model.py "$work" "$published" docs/figures
