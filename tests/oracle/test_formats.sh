#!/bin/sh
# Traces as others read them: ArviZ, xarray, netCDF4, h5py from PyPI.
. tests/cli/expect.sh
needs_venv formats
oracle=$source/tests/oracle
mkdir formats run
if "$build/tests/oracle/write_trace" formats >formats/summary.txt &&
    "$python" "$oracle/trace_arviz.py" formats; then
    echo "ok traces of every shape open in ArviZ and agree with its summary"
else
    echo "not ok traces in ArviZ"
fi

# What a run that was killed leaves.
"$build/tests/oracle/write_run" run 2>run.log
if [ $? -eq 137 ] && "$python" "$oracle/run_files.py" run; then
    echo "ok MDAnalysis, h5py and ArviZ open the files of a run that was killed"
else
    cat run.log
    echo "not ok the files of a run that was killed"
fi
