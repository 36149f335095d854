#!/bin/sh
# Maps as others read them (mrcfile from PyPI), correlations by NumPy, and a
# trajectory as others write it (MDAnalysis).
. tests/cli/expect.sh
needs_venv "maps"
maps=$shared/maps
if [ ! -d "$maps" ]; then
    echo "skip maps: no $maps"
    exit 0
fi
device=auto
"$program" devices --no-test >/dev/null 2>&1 || device=reference
model=$maps/adk_1ake-docked.pdb
gunzip -c "$maps/adk_4ake_5A.mrc.gz" >map.mrc
expect "simulate" 0 "" "$program" map simulate "$model" --like map.mrc -r 5 \
    -o model.mrc --device $device
expect "cc" 0 "" "$program" map cc "$model" --map map.mrc -r 5 --json \
    --difference difference.mrc --device $device
mv out.txt cc.json
check "mrcfile reads the maps, and NumPy computes the same" "$python" \
    "$source/tests/oracle/map_files.py" map.mrc model.mrc difference.mrc cc.json

cat >dcd.py <<'END'
import sys, warnings
import MDAnalysis
warnings.simplefilter("ignore")
u = MDAnalysis.Universe(sys.argv[1])
with MDAnalysis.Writer("model.dcd", u.atoms.n_atoms) as out:
    for k in range(3):
        out.write(u.atoms)
        u.atoms.positions += [1, 0, 0]
        if k == 1:
            u.atoms.write("third.pdb")
END
check "MDAnalysis writes a trajectory" "$python" dcd.py "$model"
expect "its third frame" 0 "" "$program" map cc "$model" -t model.dcd \
    --map map.mrc -r 5 --device $device
frame=$(awk '/frame 3/ {print $4, $5}' out.txt)
expect "and as a model" 0 "" "$program" map cc third.pdb --map map.mrc -r 5 \
    --device $device
check "agree alike" [ "$(awk '/^third/ {print $2, $3}' out.txt)" = "$frame" ]
exit $bad
