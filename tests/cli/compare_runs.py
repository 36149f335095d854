"""Run directories hold the same draws as the first of them: every data set of
every HDF5 file, to the bit. Prints a line for each line of the standard input
(tests/run.sh), which are "NAME|DIR DIR...".

    python compare_runs.py <LINES
"""
import functools
import glob
import os
import sys

import h5py
import numpy as np


def data_sets(path):
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, thing: found.update({name: thing[()]})
                        if isinstance(thing, h5py.Dataset) else None)
    return found


of_first = functools.lru_cache(maxsize=8)(data_sets)  # it is often compared with many


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "O":
        return a.shape == b.shape and (a == b).all()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def compare(one, other):
    """Returns (files, data sets, numbers) compared; raises where they differ."""
    names = [sorted(os.path.basename(p) for p in
                    glob.glob(f"{d}/trace.h5") + glob.glob(f"{d}/trajectory-*.h5"))
             for d in (one, other)]
    assert names[0] == names[1] and names[0], names
    n_set = n_number = 0
    for name in names[0]:
        a, b = of_first(f"{one}/{name}"), data_sets(f"{other}/{name}")
        assert a.keys() == b.keys(), (name, a.keys() ^ b.keys())
        for key in a:
            assert same(a[key], b[key]), f"{name}: {key} differs"
            n_set += 1
            n_number += np.asarray(a[key]).size
    return len(names[0]), n_set, n_number


def main():
    bad = 0
    for line in sys.stdin:
        name, folders = line.rstrip("\n").split("|")
        one, *others = folders.split()
        assert others, line
        total = np.zeros(3, int)
        try:
            for other in others:
                total += compare(one, other)
            print(f"ok {name}:", "%d files, %d data sets, %d numbers are the same"
                  % tuple(total))
        except Exception as error:
            print(f"not ok {name}\n    {one} and {other}: {error!r}")
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
