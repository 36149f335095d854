#!/bin/sh
# ArviZ, xarray, netCDF4, MDAnalysis and h5py read the files of a run, also of one that was
# killed, and ArviZ's diagnostics are those of the summary.
. tests/cli/expect.sh
needs_venv formats
oracle=$source/tests/oracle
mkdir formats run
"$build/tests/oracle/write_trace" formats >formats/summary.txt ||
    echo "not ok traces are written"
"$build/tests/oracle/write_run" run 2>run.log # what a run that was killed leaves
if [ $? -ne 137 ]; then
    cat run.log
    echo "not ok a run is killed"
fi
# One process, since what they import takes seconds to load.
"$python" - "$oracle" <<'END'
import runpy
import sys
import traceback

oracle = sys.argv[1]
for script, folder, name in (
        ("trace_arviz.py", "formats",
         "traces of every shape open in ArviZ and agree with its summary"),
        ("run_files.py", "run",
         "MDAnalysis, h5py and ArviZ open the files of a run that was killed")):
    sys.argv[1:] = [folder]
    try:
        runpy.run_path(f"{oracle}/{script}", run_name="__main__")
        print("ok", name)
    except Exception:
        print("not ok", name)
        traceback.print_exc(file=sys.stdout)
END
