#!/bin/sh
# Traces as others read them: ArviZ, xarray, netCDF4, h5py from PyPI.
build=${BUILD:-build}
if ! make -s --no-print-directory .venv/done >"$build/venv.log" 2>&1; then
    echo "skip formats: the virtual environment could not be made"
    sed 's/^/    /' "$build/venv.log"
    exit 0
fi
mkdir -p "$build/formats"
if "$build/tests/oracle/write_trace" "$build/formats" \
    >"$build/formats/summary.txt" &&
    .venv/bin/python tests/oracle/trace_arviz.py "$build/formats"; then
    echo "ok traces of every shape open in ArviZ and agree with its summary"
else
    echo "not ok traces in ArviZ"
fi

# What a run that was killed leaves.
rm -rf "$build/formats/run"
mkdir -p "$build/formats/run"
"$build/tests/oracle/write_run" "$build/formats/run" 2>"$build/formats/run.log"
if [ $? -eq 137 ] &&
    .venv/bin/python tests/oracle/run_files.py "$build/formats/run"; then
    echo "ok MDAnalysis, h5py and ArviZ open the files of a run that was killed"
else
    cat "$build/formats/run.log"
    echo "not ok the files of a run that was killed"
fi
