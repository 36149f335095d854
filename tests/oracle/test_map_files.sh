#!/bin/sh
# mrcfile reads the maps that tessera writes, NumPy computes the same correlations, and
# tessera reads a trajectory of MDAnalysis.
. tests/cli/expect.sh
needs_venv "maps"
maps=$shared/maps
if [ ! -d "$maps" ]; then
    echo "skip maps: no $maps"
    exit 0
fi
device=auto
tessera devices --no-test >/dev/null 2>&1 || device=reference
model=$maps/adk_1ake-docked.pdb
gunzip -c "$maps/adk_4ake_5A.mrc.gz" >map.mrc
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
cc() { # MODEL OPTION...
    file=$1
    shift
    tessera map cc "$file" --map map.mrc -r 5 --device $device "$@"
}
cases <<'END'
simulate | 0 | tessera map simulate "$model" --like map.mrc -r 5 -o model.mrc --device $device
cc | 0 | cc "$model" --json --difference difference.mrc
$ cp out.txt cc.json
    mrcfile reads the maps, and NumPy computes the same | \
        "$python" "$source/tests/oracle/map_files.py" map.mrc model.mrc difference.mrc cc.json
    MDAnalysis writes a trajectory | "$python" dcd.py "$model"
its third frame | 0 | cc "$model" -t model.dcd
$ frame=$(awk '/frame 3/ {print $4, $5}' out.txt)
and as a model | 0 | cc third.pdb
    agree alike | test -n "$frame" -a "$(awk '/^third/ {print $2, $3}' out.txt)" = "$frame"
END
exit $bad
