#!/bin/sh
# Models in density maps: tessera map. Prints one line a test (tests/run.sh).
. tests/cli/expect.sh

# The demo has centres of side chains, which are no atoms.
grep -v "^ATOM.* SC " "$demo/two_domain.pdb" >model.pdb

# A grid around the model, 2 Angstrom a voxel, as OpenDX; its values are those
# of awk's expression. A margin of 12 Angstrom, other numbers along x, y, z.
grid() { # FILE EXPRESSION
    awk -v "value=$2" '/^ATOM/ {
        for (c = 0; c < 3; c++) {
            v = substr($0, 31 + 8 * c, 8) + 0
            if (!n || v < low[c]) low[c] = v
            if (!n || v > high[c]) high[c] = v
        }
        n++
    }
    END {
        for (c = 0; c < 3; c++) {
            size[c] = int((high[c] - low[c] + 24) / 2) + 1
            low[c] = int(low[c]) - 12
        }
        printf "object 1 class gridpositions counts %d %d %d\n", \
            size[0], size[1], size[2]
        printf "origin %g %g %g\n", low[0], low[1], low[2]
        print "delta 2 0 0\ndelta 0 2 0\ndelta 0 0 2"
        total = size[0] * size[1] * size[2]
        print "object 3 class array type double rank 0 items " total \
            " data follows"
        for (i = 0; i < total; i++) print value
    }' model.pdb >"$1"
}
grid zero.dx 0
grid nan.dx nan

# On the host, except where a device is the matter: to open one takes longer than
# most of this does. Under sanitizers there is none.
device=auto
"$program" devices --no-test >/dev/null 2>&1 || device=reference
map() {
    case " $* " in
    *" --device "*) "$program" map "$@" ;;
    *) "$program" map "$@" --device reference ;;
    esac
}
value() { # KEY: the number of the first model in out.txt
    sed -n "s/.*\"$1\": *\([-0-9.e]*\).*/\1/p" out.txt | head -n 1
}
is_near() { # VALUE WANTED TOLERANCE
    awk -v a="$1" -v b="$2" -v t="$3" \
        'BEGIN {exit !(a != "" && a - b <= t && b - a <= t)}'
}

# ---- a map of the model itself ----
expect "help" 0 "" map cc --help
expect "simulate" 0 "wrote own.mrc" map simulate model.pdb --like zero.dx -r 6 \
    -o own.mrc
expect "cc" 0 "" map cc model.pdb --map own.mrc -r 6 --json
check "it is 1" is_near "$(value cc_box)" 1 2e-6
check "within the mask, too" is_near "$(value cc_mask)" 1 2e-6
check "sigma/R is told" is_near "$(value sigma_over_r)" 0.225 1e-9
check "the FSC does not fall" grep -q '"fsc_half_is_at_limit": *true' out.txt
expect "the same on a device" 0 "" map cc model.pdb --map own.mrc -r 6 --json \
    --device $device
check "is 1 as well" is_near "$(value cc_box)" 1 2e-6
expect "simulate there" 0 "wrote own-too.mrc" map simulate model.pdb \
    --like zero.dx -r 6 -o own-too.mrc --device $device
expect "best width" 0 "" map cc model.pdb --map own.mrc -r 6 --json \
    --sigma-over-r best
check "is found" is_near "$(value sigma_over_r)" 0.225 0.002
expect "electrons" 0 "" map cc model.pdb --map own.mrc -r 6 --json \
    --kernel electron
check "are a little wider" is_near "$(value cc_box)" 0.99 0.01
gzip -c own.mrc >own.mrc.gz
expect "gzipped" 0 "" map cc model.pdb --map own.mrc.gz -r 6
check "the same, as a table" grep -qE "^model.pdb +1.0000 +1.0000" out.txt
expect "a threshold" 0 "" map cc model.pdb --map own.mrc -r 6 --json \
    --threshold 1sd
check "has its own" is_near "$(value cc_above)" 1 2e-6
check "and fewer voxels" test "$(value n_voxels_above)" -lt "$(value n_voxels)"
expect "maps of it" 0 "" map cc model.pdb --map own.mrc -r 6 \
    --difference diff.mrc --spatial tiles.mrc
check "are there" test -s diff.mrc -a -s tiles.mrc
expect "the difference is small" 65 "" map cc model.pdb --map diff.mrc -r 6 \
    --mask zero.dx
check "a mask of nothing is told" grep -q "leaves 0 voxels" err.txt
grid one.dx 1
expect "a mask of all" 0 "" map cc model.pdb --map own.mrc -r 6 --mask one.dx \
    --json
check "changes nothing" is_near "$(value cc_box)" 1 2e-6
expect "a mask of another grid" 65 "is not on the grid" map cc model.pdb \
    --map own.mrc -r 6 --mask tiles.mrc

# ---- masks that are made ----
expect "a mask around the model" 0 "voxels are inside" map mask model.pdb \
    --map own.mrc --mask model --mask-distance 4 -o around.mrc
inside=$(sed -n 's/.*: \([0-9]*\) of .*inside/\1/p' err.txt)
expect "as a file" 0 "$inside of [0-9]+ voxels are inside the mask" \
    map cc model.pdb --map own.mrc -r 6 --mask around.mrc
expect "and by its word" 0 "$inside of [0-9]+ voxels are inside the mask" \
    map cc model.pdb --map own.mrc -r 6 --mask model --mask-distance 4
expect "around what is dense" 0 "voxels are inside" map mask --map own.mrc \
    --mask threshold:0.5 --mask-distance 0 --mask-edge 0 -o dense.mrc
check "is less" test \
    "$(sed -n 's/.*: \([0-9]*\) of .*inside/\1/p' err.txt)" -lt "$inside"
expect "no density at all" 65 "no voxel is at or above" map cc model.pdb \
    --map own.mrc -r 6 --mask threshold:1e9
expect "a threshold that is none" 64 "threshold:0.02" map cc model.pdb \
    --map own.mrc -r 6 --mask threshold:dense
expect "a mask without its model" 64 "there is no model here" map mask \
    --map own.mrc --mask model -o other.mrc
expect "a mask over its map" 64 "replace the input" map mask \
    --map own.mrc --mask threshold:0.5 -o own.mrc

# ---- what is wrong ----
expect "no verb" 64 "expected cc, simulate, timeline, dock, fsc or mask" \
    map find model.pdb
expect "no resolution" 64 "the resolution of the map is missing" \
    map cc model.pdb --map own.mrc
expect "no map" 64 "needs a density map: --map" map cc model.pdb -r 6
expect "no model" 64 "needs a model" map cc --map own.mrc -r 6
expect "an option of another verb" 64 "belongs to 'map timeline'" \
    map cc model.pdb --map own.mrc -r 6 --by chain
expect "an unknown kernel" 64 "expected one of gaussian, radius, electron" \
    map cc model.pdb --map own.mrc -r 6 --kernel box
expect "a wide resolution" 64 "" map cc model.pdb --map own.mrc -r 600
# Maps with which nothing can be compared, by every verb that compares.
cat >spoil.py <<'END'
"""spoil.py WHAT FILE: own.mrc with other voxels, or other words in its header."""
import gzip, math, os, struct, sys
what, path = sys.argv[1:]
b = bytearray(open("own.mrc", "rb").read())
n = struct.unpack_from("<3i", b, 0)
size = n[0] * n[1] * n[2]
value = list(struct.unpack_from("<%df" % size, b, 1024))
if what == "one huge":
    value[size // 2] = 3e38
elif what == "some nan":
    value[:7] = [math.nan] * 7
elif what == "huge":
    value = [3e38 * (-1) ** k for k in range(size)]
elif what in ("0", "1", "nan", "inf"):
    value = [float(what)] * size
elif what.startswith("voxels "):
    struct.pack_into("<3f", b, 40, *[float(what[7:]) * k for k in n])
elif what.startswith("origin "):
    struct.pack_into("<3f", b, 196, *[float(x) for x in what[7:].split()])
elif what == "angle 0":
    struct.pack_into("<f", b, 52, 0)
elif what == "18 GiB":
    b[0:12] = b[28:40] = struct.pack("<3i", 1700, 1700, 1700)
    value = []
b[1024:] = struct.pack("<%df" % len(value), *value)
open(path, "wb").write(b)
END
cat >spoilt.yaml <<END
structure: {file: model.pdb}
data: [{kind: map, file: spoilt.mrc, resolution: 6}]
END
spoilt() { # WHAT MESSAGE
    "$python" spoil.py "$1" spoilt.mrc
    for verb in "cc model.pdb" "dock model.pdb" "timeline model.pdb -o t"; do
        expect "$1: $verb" 65 "spoilt.mrc'.*$2" map $verb --map spoilt.mrc -r 6
    done
    expect "$1: fsc" 65 "spoilt.mrc'.*$2" map fsc own.mrc spoilt.mrc
    expect "$1: init" 65 "spoilt.mrc'.*$2" "$program" init model.pdb \
        --map spoilt.mrc --resolution 6
    expect "$1: a run" 65 "spoilt.mrc'.*$2" "$program" check spoilt.yaml
}
spoilt 0 "all voxels of the map have the same value \(values 0 to 0"
spoilt 1 "all voxels of the map have the same value"
spoilt nan "no voxel of the map is a finite number"
spoilt inf "no voxel of the map is a finite number"
spoilt huge "values beyond 1e20 are not densities \(values -3e\+38"
spoilt "one huge" "values beyond 1e20 are not densities"
spoilt "voxels 78" "voxels of 78 x 78 x 78 Angstrom .*is the unit wrong \(MRC CELLA"
spoilt "voxels 14060" "voxels of 1.406e\+04 x .*is the unit wrong \(MRC CELLA"
spoilt "voxels 1e-30" "voxels of 1e-30 x .*is the unit wrong \(MRC CELLA"
spoilt "origin nan 0 0" "voxels .* from \(nan, 0, 0\) on: .*ORIGIN, words 50"
spoilt "angle 0" "CELLB \(words 14 to 16\): alpha is 0 degrees"
spoilt "18 GiB" "ends within its voxels, after 1024 bytes"
check "without asking for memory" sh -c '! grep -q GiB err.txt'
"$python" spoil.py "voxels 8" wide.mrc
expect "voxels that cannot show it" 65 "its voxels are wider than the resolution" \
    map dock model.pdb --map wide.mrc -r 6
"$python" spoil.py "some nan" some.mrc
expect "some voxels NaN" 0 "7 of [0-9]* voxels are NaN and are left out" \
    map cc model.pdb --map some.mrc -r 6
expect "a map without values as a mask" 65 "leaves 0 voxels" map cc model.pdb \
    --map own.mrc -r 6 --mask nan.dx
expect "a map of one value as a grid" 0 "wrote" map simulate model.pdb \
    --like one.dx -r 6 -o like.mrc
sed 's/^\(ATOM.\{26\}\).\{8\}/\1 900.000/' model.pdb >far.pdb
expect "no overlap" 65 "does not overlap with the map: its atoms are from" \
    map cc far.pdb --map own.mrc -r 6
expect "over the input" 64 "would replace the input" \
    map simulate model.pdb --like own.mrc -r 6 -o own.mrc
echo mine >mine.mrc
expect "over another's file" 64 "not from tessera map" \
    map simulate model.pdb --like own.mrc -r 6 -o mine.mrc
expect "over its own" 0 "" map cc model.pdb --map own.mrc -r 6 \
    --difference diff.mrc

# The map of the model mirrored in the middle of the box is of the wrong hand.
middle=$(awk '/counts/ {n = $6} /^origin/ {print 2 * $2 + 2 * (n - 1)}' zero.dx)
awk -v "twice=$middle" '/^ATOM/ {
    printf "%s%8.3f%s\n", substr($0, 1, 30), twice - substr($0, 31, 8), \
        substr($0, 39)
}' model.pdb >mirror.pdb
expect "a mirrored map" 0 "" map simulate mirror.pdb --like zero.dx -r 6 \
    -o mirror.mrc
expect "is told" 0 "mirrored along x .* the map has the wrong hand" \
    map cc model.pdb --map mirror.mrc -r 6

# A model of which less than half is in the map is none of it, and one in part
# outside is told.
shift_x() { # BY
    awk -v "by=$1" '/^ATOM/ {printf "%s%8.3f%s\n", substr($0, 1, 30),
        substr($0, 31, 8) + by, substr($0, 39)}'
}
shift_x 60 <model.pdb >most.pdb
expect "most is outside" 65 "the map enough, [0-9]+ of [0-9]+ atoms are out" \
    map cc most.pdb --map own.mrc -r 6
shift_x 20 <model.pdb >some.pdb
expect "some is outside" 0 "[0-9]+ of [0-9]+ atoms are outside" map cc some.pdb \
    --map own.mrc -r 6

# The voxels of one map are 6 % too large; a model that does not fit for another
# reason, here one whose halves lie apart, is not taken for that.
"$python" - own.mrc large.mrc <<'END'
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
cell = struct.unpack_from("<3f", b, 40)
struct.pack_into("<3f", b, 40, *[1.06 * c for c in cell])
open(sys.argv[2], "wb").write(b)
END
expect "voxels that are too large" 0 "fits best with voxels of 2 A.* of 2.12" \
    map cc model.pdb --map large.mrc -r 6
awk '/^ATOM/ {printf "%s%8.3f%s\n", substr($0, 1, 30),
    substr($0, 31, 8) + (substr($0, 23, 4) + 0 > 57 ? 9 : 0), substr($0, 39)}' \
    model.pdb >apart.pdb
expect "a model that does not fit" 0 "" map cc apart.pdb --map own.mrc -r 6
check "is not said to be that" sh -c '! grep -q "fits best with" err.txt'

# ---- docking ----
# The model turned by 100 degrees about z, by 60 about x, and shifted.
turn() {
    awk '/^ATOM/ {
    x = substr($0, 31, 8); y = substr($0, 39, 8); z = substr($0, 47, 8)
    u = -0.1736 * x - 0.9848 * y; v = 0.9848 * x - 0.1736 * y
    y = 0.5 * v - 0.866 * z; z = 0.866 * v + 0.5 * z
    printf "%s%8.3f%8.3f%8.3f%s\n", substr($0, 1, 30), u + 40, y - 7, z + 90, \
        substr($0, 55)
}'
}
turn <model.pdb >turned.pdb
expect "dock" 0 "" map dock turned.pdb --map own.mrc -r 6 --json -o back.pdb \
    --device $device
check "comes back" is_near "$(value cc_box)" 1 0.002
check "to where it was" awk 'function r(a) {return substr(l, a, 8) - p[a]}
    {l = $0} !/^ATOM/ {next}
    FNR == NR {for (a = 31; a < 50; a += 8) m[n + 0, a] = substr(l, a, 8); n++; next}
    {for (a = 31; a < 50; a += 8) p[a] = m[k + 0, a]
     s += r(31) ^ 2 + r(39) ^ 2 + r(47) ^ 2; k++}
    END {exit !(k == n && s / k < 0.04)}' model.pdb back.pdb
check "no mirror image is better" sh -c '! grep -q mirror err.txt'
check "no other size" is_near "$(value best_scale)" 1 1e-9
expect "over another's model" 64 "not from tessera map" map dock turned.pdb \
    --map own.mrc -r 6 -o model.pdb
# Columns of PDB do not run together: what has no room is not written.
head -n 40 model.pdb >few.pdb
"$python" spoil.py "origin -1500 -1500 -1500" away.mrc
expect "a map far away" 65 "cannot write 'away.pdb': atom N of residue A:1 is at \
\(-1[0-9.]*, -1[0-9., -]*\) and has no room in PDB: a coordinate" \
    map dock few.pdb --map away.mrc -r 6 --poses 1 -o away.pdb
check "what was found is told" grep -q "^    1 " out.txt
check "nothing is written" test ! -e away.pdb
expect "as mmCIF" 0 "" map dock few.pdb --map away.mrc -r 6 --poses 1 -o away.cif
expect "and again" 0 "" map dock few.pdb --map away.mrc -r 6 --poses 1 -o away.cif
expect "where it belongs" 0 "" map cc away.cif --map away.mrc -r 6
awk '/^ATOM/ && !n++ {$11 = "1e12"} {print}' away.cif >apart.cif
expect "an atom far from the others" 65 "" map dock apart.cif --map own.mrc -r 6
# Under sanitizers one search is enough.
is_sanitized ||
    expect "a mirrored model" 0 "the map has the wrong hand; mirror it" \
        map dock mirror.pdb --map own.mrc -r 6
# The same voxels, said to be 6 % larger than they are.
"$python" - own.mrc <<'END' >grown.mrc
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
for at in (40, 44, 48, 196, 200, 204):
    b[at:at + 4] = struct.pack("<f", 1.06 * struct.unpack("<f", b[at:at + 4])[0])
sys.stdout.buffer.write(b)
END
expect "voxels too large" 0 "the model grown by 6 % fits better.* voxels of 2 A" \
    map dock turned.pdb --map grown.mrc -r 6 --laplacian

# A header of 1200^3 voxels, before what unpacks to as much at the very best:
# what it takes is told before anything is read.
"$python" - own.mrc <<'END' >large.mrc.gz
import gzip, os, struct, sys
head = bytearray(open(sys.argv[1], "rb").read(1024))
head[0:12] = head[28:40] = struct.pack("<3i", 1200, 1200, 1200)
sys.stdout.buffer.write(gzip.compress(bytes(head) + os.urandom(7000000), 1))
END
expect "a large map" 65 "1200 x 1200 x 1200 voxels: 6.4 GiB, up to 25.7 GiB" \
    map cc model.pdb --map large.mrc.gz -r 6

# ---- many models, timelines ----
{
    for k in 1 2 3; do
        echo "MODEL        $k"
        grep "^ATOM" model.pdb
        echo ENDMDL
    done
} >three.pdb
expect "models of a file" 0 "" map cc three.pdb --map own.mrc -r 6
check "have a line each" grep -qE "^three.pdb, model 3 +1.0000" out.txt
sed '/^MODEL  *2/,/^ENDMDL/{/ CA /d}' three.pdb >other.pdb
expect "models of other atoms" 65 "model 2 has other atoms than the first" \
    map cc other.pdb --map own.mrc -r 6
expect "a timeline" 0 "" map timeline three.pdb --map own.mrc -r 6 \
    --by structure -o line --device $device
check "says its files" grep -q "3 models: line.csv, line.svg" out.txt
check "its table" grep -q '^"helix A:.*,3,,,0\.[0-9]*,0.000000$' line.csv
check "its picture" grep -q "helix A:" line.svg
expect "again" 0 "" map timeline three.pdb --map own.mrc -r 6 --by chain \
    -o line.svg
expect "named rows" 0 "" map timeline three.pdb --map own.mrc -r 6 \
    -o line --select first=A:1-50 --select rest=A:65-114
check "have their names" grep -q '^"rest",1,' line.csv
expect "a range that is not there" 64 "contains no residue" map timeline \
    three.pdb --map own.mrc -r 6 -o line --select x=A:900-910
expect "parts that are not known" 64 "expected one of residue, structure, chain" \
    map timeline three.pdb --map own.mrc -r 6 -o line --by atom

# A trajectory of a water, which is no part of the density, and the model, that
# goes 1 Angstrom along x a frame.
{
    printf "HETATM%5d  O   HOH W   1    %8.3f%8.3f%8.3f  1.00  0.00" 1 0 0 0
    printf "           O\n"
    awk '/^ATOM/ {printf "%s%5d%s\n", substr($0, 1, 6), NR + 1, substr($0, 12)}' \
        model.pdb
} >wet.pdb
cat >dcd.py <<'END'
"""dcd.py KIND FILE: the four frames of wet.pdb as DCD."""
import struct, sys
kind, path = sys.argv[1:]
end = ">" if kind == "big" else "<"
xyz = [[float(l[30 + 8 * c:38 + 8 * c]) for c in range(3)]
       for l in open("wet.pdb") if l[:4] in ("ATOM", "HETA")]
if kind == "order":
    xyz.reverse()
if kind == "fewer":
    xyz.pop()
def record(data):
    n = struct.pack(end + "i", len(data))
    return n + data + n
head = [0] * 20
if kind == "cell":
    head[10] = head[11] = 1
if kind != "xplor":
    head[19] = 24
if kind == "fixed":
    head[8] = 7
out = record((b"VELD" if kind == "speeds" else b"CORD") +
             struct.pack(end + "20i", *head))
out += record(struct.pack(end + "i", 1) + b"made by a test".ljust(80))
out += record(struct.pack(end + "i", len(xyz)))
for k in range(4):
    if kind == "cell":
        out += record(struct.pack(end + "6d", 90, 90, 90, 90, 90, 90))
    for c in range(4 if kind == "cell" else 3):
        v = [x[c] + (k if c == 0 else 0) if c < 3 else 0.0 for x in xyz]
        if kind == "nan":
            v[3] = float("nan")
        out += record(struct.pack(end + "%df" % len(v), *v))
if kind == "cut":
    out = out[:-10]
if kind == "damaged":
    out = out[:-4] + b"\1\2\3\4"
open(path, "wb").write(out)
END
for kind in little big cell xplor; do
    "$python" dcd.py $kind $kind.dcd
    expect "a trajectory: $kind" 0 "" map cc wet.pdb -t $kind.dcd --map own.mrc \
        -r 6
    check "begins as the model" grep -qE "^wet.pdb, frame 1 +1.0000" out.txt
    check "and goes away" grep -qE "^wet.pdb, frame 4 +0.[0-8]" out.txt
    grep "^wet" out.txt >$kind.txt
    check "in the same way" cmp -s $kind.txt little.txt
done
awk '/^ATOM/ {
    printf "%s%8.3f%s\n", substr($0, 1, 30), substr($0, 31, 8) + 3, \
        substr($0, 39)}' model.pdb >moved.pdb
expect "a model 3 Angstrom away" 0 "" map cc moved.pdb --map own.mrc -r 6
check "agrees as the fourth frame does" awk '/^wet/ {frame = $4}
    /^moved/ {n++; bad = $2 != frame} END {exit n != 1 || bad}' little.txt out.txt
expect "two of its frames" 0 "" map cc wet.pdb -t big.dcd --map own.mrc -r 6 \
    --frames 2
check "are the first and the last" awk '/^wet/ {f = f $3} END {exit f != "14"}' \
    out.txt
expect "its timeline" 0 "" map timeline wet.pdb -t cell.dcd --map own.mrc -r 6 \
    -o frames --by chain
check "has frames" grep -q '^"[^"]*",4,,4,0' frames.csv
refused() { # KIND PATTERN
    "$python" dcd.py $1 $1.dcd
    expect "a trajectory: $1" 65 "$2" map cc wet.pdb -t $1.dcd --map own.mrc \
        -r 6
}
refused fixed "7 atoms are fixed"
refused speeds "contains velocities"
refused fewer "they must be the same"
refused order "or are in another order"
refused nan "frame 1, atom 4: a coordinate is not a finite number"
refused damaged "is damaged"
# The same as H5MD, in nm as other programs write it.
with_h5py=$source/.venv/bin/python
if "$with_h5py" -c "import h5py" 2>/dev/null; then
    cat >h5md.py <<'END'
"""h5md.py KIND FILE: the four frames of wet.pdb as H5MD."""
import sys
import h5py, numpy
kind, path = sys.argv[1:]
xyz = numpy.array([[float(l[30 + 8 * c:38 + 8 * c]) for c in range(3)]
                   for l in open("wet.pdb") if l[:4] in ("ATOM", "HETA")])
frames = numpy.array([xyz + [k, 0, 0] for k in range(4)])
with h5py.File(path, "w") as f:
    f.attrs["about"] = "a test"
    if kind != "none":
        f["particles/all/box/edges"] = [1.0, 1.0, 1.0]
        p = f.create_group("particles/all/position")
        p["value"] = frames[:, :, :2] if kind == "flat" else frames / 10
        p["value"].attrs["unit"] = "mile" if kind == "mile" else "nm"
END
    "$with_h5py" h5md.py nm nm.h5md
    expect "a trajectory: H5MD" 0 "" map cc wet.pdb -t nm.h5md --map own.mrc -r 6
    grep "^wet" out.txt >h5md.txt
    check "has the same frames" cmp -s h5md.txt little.txt
    for kind in none flat mile; do
        "$with_h5py" h5md.py $kind $kind.h5md
    done
    expect "HDF5, but no H5MD" 65 "is it H5MD" map cc wet.pdb -t none.h5md --map own.mrc -r 6
    expect "flat positions" 65 "is it H5MD" map cc wet.pdb -t flat.h5md --map own.mrc -r 6
    expect "H5MD in miles" 65 "are in 'mile'" map cc wet.pdb -t mile.h5md --map own.mrc -r 6
fi
"$python" dcd.py cut cut.dcd
expect "a trajectory: cut" 0 "ends within a frame" map cc wet.pdb -t cut.dcd \
    --map own.mrc -r 6
check "the rest is there" grep -q "frame 3" out.txt
expect "no trajectory" 65 "not a DCD trajectory" map cc wet.pdb -t wet.pdb \
    --map own.mrc -r 6
expect "a trajectory of two models" 64 "needs exactly one model" map cc wet.pdb \
    wet.pdb -t big.dcd --map own.mrc -r 6
expect "a trajectory where it is docked" 64 "belongs to 'map" map dock wet.pdb \
    -t big.dcd --map own.mrc -r 6

cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data:
  - {kind: distance, between: ["A:10", "A:100"], mean: 40, sd: 3}
sampler: {chains: 2, warmup: 40, draws: 12, thin: 2, temperatures: 1}
output: {directory: drawn, trajectory_every: 3}
device: {use: reference}
END
expect "a run" 0 "" "$program" run run.yaml
expect "its draws" 0 "lacks the missing atoms" map timeline drawn --map own.mrc \
    -r 6 -o drawn.csv --select first=A:1-50 --select rest=A:65-114
check "are numbered" grep -q '^"first",2,[0-9],[0-9]*,-*0' drawn.csv
expect "a trajectory beside a run" 64 "with its own trajectories" map cc drawn \
    -t big.dcd --map own.mrc -r 6
expect "and their correlations" 0 "" map cc drawn --map own.mrc -r 6
check "have a line each" grep -qE "^drawn, chain [0-9], draw [0-9]+ +0" out.txt

# ---- a map as data of a run ----
# One domain stays rigid, the other turns away and has to find back; the map was
# made of the model, whose side chains' centres the run has for atoms.
cp "$demo/two_domain.pdb" bodies.pdb
cat >fit.yaml <<END
structure: {file: bodies.pdb, flexible: ["A:51-64"]}
data:
  - {kind: map, file: own.mrc, resolution: 6}
sampler: {chains: 2, warmup: 150, draws: 20, thin: 4, temperatures: 1}
output: {directory: fitted, trajectory_every: 5}
device: {use: reference}
END
expect "check" 0 "voxels count as [0-9]+ independent ones" "$program" check \
    fit.yaml
check "resolved" grep -q "kind: map" out.txt
expect "without a resolution" 78 "data.0: a map needs its resolution" \
    "$program" check fit.yaml --set data.0.resolution=0
awk '/^ATOM/ {printf "%s%8.3f%s\n", substr($0, 1, 30), substr($0, 31, 8) + 60,
    substr($0, 39)}' bodies.pdb >away.pdb
expect "a start outside of the map" 65 \
    "the start does not overlap with the map enough, .* dock: true" "$program" \
    run fit.yaml --set structure.file=away.pdb --output away
check "begins nothing" test ! -e away
expect "a map of the wrong hand" 0 "mirrored along x .* the map has the wrong" \
    "$program" check fit.yaml --set data.0.file=mirror.mrc
expect "and of the right one" 0 "" "$program" check fit.yaml
check "is not told" sh -c '! grep -q mirror err.txt'
expect "a key of a curve" 78 "it belongs to kind: saxs" "$program" check \
    fit.yaml --set data.0.q_unit=auto
expect "what many replicas would do" 0 "" "$program" run fit.yaml \
    --dry-run --set sampler.chains=4 --set sampler.temperatures=6
check "start where the file has the molecule" \
    sh -c 'grep -q "plan: 4 chains x 6" out.txt && ! grep -q "draws of the prior" \
    out.txt err.txt'
expect "a run" 0 "" "$program" run fit.yaml
check "nothing is left out of one point" sh -c '! grep -E "nan|PSIS" out.txt'
check "the molecule moves as a whole" grep -q "^rigid_body  *[1-9]" err.txt
check "and with all torsions at once" grep -q "^collective  *[1-9]" err.txt
check "the map is kept" test -s fitted/input/own.mrc
expect "its summary" 0 "" "$program" summary fitted
check "has what the map leaves" grep -q "^map_chi2 " out.txt
expect "half of it" 0 "" "$program" run fit.yaml --output half --set \
    sampler.draws=10
expect "and the rest" 0 "" "$program" resume half --draws 20
for dir in fitted half; do
    expect "draws of $dir" 0 "" "$program" export $dir --draws all \
        --format csv -o $dir.csv
done
check "are the same to the bit" cmp -s fitted.csv half.csv
check "with the width of the blur" grep -q "map_sigma_over_r" half.csv
# Half-maps: the map and noise, of neighbours that are alike; and a mask.
dense=$("$python" - own.mrc <<'END'
import random, struct, sys
b = open(sys.argv[1], "rb").read()
v = struct.unpack("<%df" % ((len(b) - 1024) // 4), b[1024:])
def write(name, values):
    with open(name, "wb") as out:
        out.write(b[:1024] + struct.pack("<%df" % len(v), *values))
random.seed(1)
top = max(v)
half = []
for name in "half1.mrc", "half2.mrc":
    w = [random.gauss(0, 0.2 * top) for k in range(len(v) + 1)]
    half.append([x + w[k] + w[k + 1] for k, x in enumerate(v)])
    write(name, half[-1])
write("mean.mrc", [(a + c) / 2 for a, c in zip(*half)])
print(0.8 * top)
write("mask.mrc", [float(x > 0.02 * top) for x in v])
END
)
expect "with half-maps and a mask" 0 "half-maps agree .FSC 0.143. to" \
    "$program" run fit.yaml --output whitened --set data.0.file=mean.mrc \
    --set data.0.half_map_1=half1.mrc --set data.0.half_map_2=half2.mrc \
    --set data.0.mask=mask.mrc
check "the noise is whitened" grep -q "independent ones, the noise whitened" \
    err.txt
check "the map is cut to the mask" grep -q "cut to the mask's box" err.txt
check "copies of all are kept" test -s whitened/input/half2.mrc -a \
    -s whitened/input/mask.mrc
expect "and it goes on" 0 "" "$program" resume whitened --draws 24
expect "a mask around the start" 0 "cut to the mask's box" "$program" check \
    fit.yaml --set data.0.file=mean.mrc --set data.0.mask=model --set \
    data.0.mask_distance=6
check "stays a word" grep -q '^ *mask: model$' out.txt
expect "which knows its place" 78 "is not docked yet" \
    "$program" check fit.yaml --set data.0.mask=model --set data.0.dock=true
expect "a mask by threshold" 0 "the noise whitened" "$program" check fit.yaml \
    --set data.0.file=mean.mrc --set data.0.mask=threshold:$dense --set \
    data.0.mask_distance=2
expect "that is no number" 78 "data.0: mask 'threshold:x'" \
    "$program" check fit.yaml --set data.0.mask=threshold:x

# ---- shell correlation of maps ----
map_fsc() { "$program" map fsc "$@"; }
number() { # CURVE KEY, of out.txt in JSON
    "$python" -c "import json, sys; print(json.load(open('out.txt'))['$1']['$2'])"
}
expect "of half-maps" 0 "" map_fsc half1.mrc half2.mrc --mask mask.mrc --json \
    --svg fsc.svg
check "corrected for the mask" is_near "$(number corrected 143_inv_ang)" \
    "$(number masked 143_inv_ang)" 0.02
plain=$(number fsc 143_inv_ang)
expect "as a table" 0 "" map_fsc half1.mrc half2.mrc
check "says the same" grep -q "without a mask .* $(awk "BEGIN {
    printf \"%.2f\", 1 / $plain}")" out.txt
check "and the run's log" grep -q "half-maps agree .FSC 0.143. to $(awk "BEGIN {
    printf \"%.2f\", 1 / $plain}")" whitened/run.log
check "its picture" grep -q "phases at random" fsc.svg
expect "of one map" 64 "needs two maps" map_fsc half1.mrc
expect "of another grid" 65 "not on the grid of" map_fsc half1.mrc tiles.mrc
expect "with a map too many" 64 "given without --map" map_fsc half1.mrc \
    half2.mrc --map own.mrc

sed 's/bodies.pdb/away.pdb/' fit.yaml >turned.yaml
turn <bodies.pdb >away.pdb
expect "docked first" 0 "the starting structure is docked" "$program" run turned.yaml \
    --set data.0.dock=true --set sampler.draws=10 --output docked
check "in a map of the right hand" sh -c '! grep -q mirror err.txt'
expect "one of the wrong hand" 0 "mirror image of the starting structure fits better" \
    "$program" run turned.yaml --set data.0.dock=true --set sampler.draws=10 \
    --set sampler.warmup=10 --set data.0.file=mirror.mrc --output mirrored
expect "its summary" 0 "" "$program" summary docked
check "fits as one that started there" awk '/^map_chi2 / {exit !($2 < 0.2)}' \
    out.txt
expect "the verdict" 0 "" "$program" summary whitened
tr '\n' ' ' <out.txt >whole.txt
check "has the map" grep -q "mean.mrc: the start has a correlation of 0\.[0-9]* with the map, the draws 0" \
    whole.txt
check "and its noise" grep -q "of what the map shows beside noise the start leaves [0-9]* % unexplained, the draws [0-9]* %" \
    whole.txt
check "and what moved" grep -q "Since the start, against A:[0-9-]*: A:.* has turned by [0-9]" \
    whole.txt
expect "and as numbers" 0 "" "$program" summary whitened --json
"$python" - >judged.txt 2>&1 <<'END'
import json
v = json.load(open("out.txt"))["verdict"]
m = v["measured"][0]
assert m["kind"] == "map" and m["name"] == "mean.mrc", m
# the noise that was put in is white: half of it is what the mean has
assert 0.8 < m["limit"] < 1.0, m
assert m["start"] <= m["limit"] + 0.02 and m["draws"]["q95"] < 1.0, m
share = 1 - (m["draws"]["mean"] / m["limit"]) ** 2
assert abs(max(0, share) - m["draws_unexplained"]) < 1e-5, (share, m)
one = v["since_start"][0]
assert one["turn_degrees"]["q5"] >= 0 and one["distance_start"] > 5, one
END
check "they fit together" test ! -s judged.txt
cat judged.txt
expect "beside a distance, of two states" 0 "" "$program" run fit.yaml \
    --output both --set structure.states=2 --set \
    'data.1={kind: distance, between: ["A:10", "A:100"], mean: 40, sd: 3}'
check "which the verdict has, too" sh -c "tr '\n' ' ' <out.txt | grep -q \
    'distance of A:10, A:100: measured 40 +- 3 Angstrom, the start has [0-9.]*, the draws '"
expect "the report" 0 "" "$program" report both
check "has slices" test -s both/report/map-1-x.svg -a -s both/report/map-1-z.csv
check "residues" sh -c '[ "$(grep -c "draws, median" \
    both/report/map-1-residues.csv)" -ge 100 ]'
check "draw by draw, the start first" "$python" - <<'END'
import csv
def rows(name):
    return list(csv.DictReader(open("both/report/map-1-%s.csv" % name)))
start = {float(r["x"]): r["y"] for r in rows("residues") if r["series"] == "start"}
cells = rows("timeline")
assert len({c["x"] for c in cells}) >= 2 and len(start) >= 100
for c in cells:
    if float(c["x"]) == -0.5:
        assert c["y2"] == start[float(c["y"]) + 0.5], c
END
check "and the start" grep -q "^<tr><td>around the model</td><td>0\.[0-9]*</td>" \
    both/report.html
expect "with half-maps" 0 "" "$program" report whitened
check "their correlation" grep -q "half-maps, corrected for the mask" \
    whitened/report.html
check "and what noise leaves" grep -q "would have a correlation (as sampled) of 0\.[0-9]*" \
    whitened/report.html
rm whitened/input/half2.mrc
expect "a map that is gone" 0 "the map itself is not shown: .*half2.mrc" \
    "$program" report whitened

# ---- published maps ----
if [ -d "$shared/maps" ]; then
    published() { # MODEL MAP RESOLUTION CC
        expect "$1 in $2" 0 "" map cc "$shared/maps/$1" \
            --map "$shared/maps/$2.gz" -r "$3" --json
        check "is $4" is_near "$(value cc_box)" "$4" 5.1e-5
    }
    published 1UBI.pdb Ubi-4.5.mrc 4.5 0.9978
    published 1f7dA00.pdb 1f7dA00_8.mrc 8 0.9265
    published adk_4ake-target.pdb adk_4ake_5A.mrc 5 0.9651
    published adk_1ake-docked.pdb adk_4ake_5A.mrc 5 0.6145
    expect "adk_1ake-initial.pdb lies outside" 65 \
        "does not overlap with the map enough, 1580 of 1656 atoms are outside" \
        map cc "$shared/maps/adk_1ake-initial.pdb" \
        --map "$shared/maps/adk_4ake_5A.mrc.gz" -r 5
else
    echo "skip published maps: no $shared/maps"
fi

# ---- annealing: of the run above, the temperatures in warm-up ----
if [ $bad = 0 ]; then
    needs_venv "annealing"
    check "from a temperature of 5 down to 1" "$python" -c '
import h5py
t = h5py.File("fitted/trace.h5")["warmup_sample_stats/temperature"][0]
assert 4 < t[0] <= 5 and t[-1] == 1, t'
fi
exit $bad
