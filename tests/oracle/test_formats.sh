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
