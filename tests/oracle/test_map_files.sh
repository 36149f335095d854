#!/bin/sh
# Maps as others read them (mrcfile from PyPI), and correlations by NumPy.
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
exit $bad
