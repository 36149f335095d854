#!/bin/bash
set -euo pipefail
make -j"${CPU_COUNT:-1}" install PREFIX="$PREFIX" COMMIT= \
    CPPFLAGS="${CPPFLAGS:-} -I$SRC_DIR/random123/include -I$PREFIX/include" \
    LDFLAGS="${LDFLAGS:-} -L$PREFIX/lib" LDLIBS="-lgemmi_cpp -lz"
