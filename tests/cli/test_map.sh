#!/bin/sh
# tessera map and maps as data of a run: correlations, masks, docking, timelines and
# the run's verdict are right for a map of the model itself, and a map, model or
# trajectory that makes no sense is refused by name.
. tests/cli/expect.sh

without_side_chains >model.pdb
for value in 0 1 nan; do flat_map $value.dx model.pdb 2 12 $value; done
flat_map other.dx model.pdb 4 12 1

# On the host, except where a device is tested: to open one takes longer than
# most of this does. Under sanitizers there is none.
device=auto
tessera devices --no-test >/dev/null 2>&1 || device=reference
map() {
    case " $* " in
    *" --device "* | *" fsc "*) tessera map "$@" ;;
    *) tessera map "$@" --device reference ;;
    esac
}
cc() { # MODEL OPTION...
    model=$1
    shift
    map cc "$model" --map own.mrc -r 6 "$@"
}

# ---- a map of the model itself ----
cases <<'END'
help | 0 | map cc --help
simulate | 0 wrote own.mrc | map simulate model.pdb --like 0.dx -r 6 -o own.mrc
cc | 0 | cc model.pdb --json
    is 1, within the mask, too | json near(d.models[0].cc_box, 1, 2e-6) and near(d.models[0].cc_mask, 1, 2e-6)
    sigma/R is stated, the FSC does not fall | json near(d.models[0].sigma_over_r, 0.225, 1e-8) \
        and d.models[0].fsc_half_is_at_limit
the same on a device | 0 | cc model.pdb --json --device $device
    is 1 as well | json near(d.models[0].cc_box, 1, 2e-6)
simulate there | 0 wrote own-too.mrc | map simulate model.pdb --like 0.dx -r 6 -o own-too.mrc --device $device
best width | 0 | cc model.pdb --json --sigma-over-r best
    is found | json abs(d.models[0].sigma_over_r - 0.225) <= 0.002
electrons | 0 | cc model.pdb --json --kernel electron
    are a little wider | json abs(d.models[0].cc_box - 0.99) <= 0.01
$ gzip -c own.mrc >own.mrc.gz
gzipped, as a table | 0> ^model.pdb +1.0000 +1.0000 | map cc model.pdb --map own.mrc.gz -r 6
a threshold | 0 | cc model.pdb --json --threshold 1sd
    has its own, and fewer voxels | json near(d.models[0].cc_above, 1, 2e-6) \
        and d.models[0].n_voxels_above < d.models[0].n_voxels
a map of it | 0 | cc model.pdb --difference diff.mrc
    is there | test -s diff.mrc
a mask of nothing | 65 leaves 0 voxels | map cc model.pdb --map diff.mrc -r 6 --mask 0.dx
a mask of all | 0 | cc model.pdb --mask 1.dx --json
    changes nothing | json near(d.models[0].cc_box, 1, 2e-6)
a mask of another grid | 65 is not on the grid | cc model.pdb --mask other.dx

# ---- masks that are made ----
a mask around the model | 0 voxels are inside | \
        map mask model.pdb --map own.mrc --mask model --mask-distance 4 -o around.mrc
$ inside=$(sed -n 's/.*: \([0-9]*\) of .*inside/\1/p' err.txt)
as a file | 0 ${inside} of [0-9]+ voxels are inside the mask | cc model.pdb --mask around.mrc
and by its word | 0 ${inside} of [0-9]+ voxels are inside the mask | cc model.pdb --mask model --mask-distance 4
around what is dense | 0 voxels are inside | \
        map mask --map own.mrc --mask threshold:0.5 --mask-distance 0 --mask-edge 0 -o dense.mrc
    is less | test "$(sed -n 's/.*: \([0-9]*\) of .*inside/\1/p' err.txt)" -lt "$inside"
no density at all | 65 no voxel is at or above | cc model.pdb --mask threshold:1e9
a threshold that is none | 64 threshold:0.02 | cc model.pdb --mask threshold:dense
a mask without its model | 64 there is no model here | map mask --map own.mrc --mask model -o other.mrc
a mask over its map | 64 replace the input | map mask --map own.mrc --mask threshold:0.5 -o own.mrc

# ---- what is wrong ----
no verb | 64 expected cc, simulate, timeline, dock or mask | map find model.pdb
no resolution | 64 the resolution of the map is missing | map cc model.pdb --map own.mrc
no map | 64 needs a density map: --map | map cc model.pdb -r 6
no model | 64 needs a model | map cc --map own.mrc -r 6
an option of another verb | 64 belongs to 'map timeline' | cc model.pdb --by chain
an unknown kernel | 64 expected one of gaussian, radius, electron | cc model.pdb --kernel box
a wide resolution | 64 | map cc model.pdb --map own.mrc -r 600
END

# Maps with which nothing can be compared are in test_inputs.sh, for every verb.
cat >spoil.py <<'END'
"""spoil.py WHAT FILE: own.mrc with other voxels, or other words in its header."""
import gzip, math, os, random, struct, sys
what, path = sys.argv[1:]
b = bytearray(open("own.mrc", "rb").read())
n = struct.unpack_from("<3i", b, 0)
size = n[0] * n[1] * n[2]
value = list(struct.unpack_from("<%df" % size, b, 1024))
def scale(at, factor):
    struct.pack_into("<3f", b, at, *[factor * x for x in struct.unpack_from("<3f", b, at)])
word, *numbers = what.split()
if what == "some nan":
    value[:7] = [math.nan] * 7
elif word == "voxels":
    struct.pack_into("<3f", b, 40, *[float(numbers[0]) * k for k in n])
elif word == "origin":
    struct.pack_into("<3f", b, 196, *map(float, numbers))
elif what == "larger voxels": # by 6 %, with or without the origin
    scale(40, 1.06)
elif what == "grown":
    scale(40, 1.06)
    scale(196, 1.06)
elif what == "claims": # 1200^3 voxels, before what unpacks to as much at the very best
    b[0:12] = b[28:40] = struct.pack("<3i", 1200, 1200, 1200)
elif what == "halves": # the map and noise, of neighbours that are alike; and a mask
    random.seed(1)
    top, half = max(value), []
    for name in "half1", "half2":
        w = [random.gauss(0, 0.2 * top) for k in range(size + 1)]
        half.append([x + w[k] + w[k + 1] for k, x in enumerate(value)])
    half += [[(a + c) / 2 for a, c in zip(*half)], [float(x > 0.02 * top) for x in value]]
    for name, values in zip(("half1", "half2", "mean", "mask"), half):
        open(name + ".mrc", "wb").write(b[:1024] + struct.pack("<%df" % size, *values))
    sys.exit(print(0.8 * top))
b[1024:] = struct.pack("<%df" % len(value), *value)
open(path, "wb").write(gzip.compress(b[:1024] + os.urandom(7000000), 1) if what == "claims" else b)
END
spoil() { "$python" spoil.py "$@"; }
# ---- models and maps that do not belong together ----
spoil "voxels 8" wide.mrc
spoil "some nan" some.mrc
spoil "larger voxels" large.mrc
spoil claims claims.mrc.gz
sed 's/^\(ATOM.\{26\}\).\{8\}/\1 900.000/' model.pdb >far.pdb
echo mine >mine.mrc
# mirrored in the middle of the box: of the wrong hand
awk '/counts/ {n = $6} /^origin/ {twice = 2 * $2 + 2 * (n - 1)}
    /^ATOM/ {printf "%s%8.3f%s\n", substr($0, 1, 30), twice - substr($0, 31, 8), substr($0, 39)}' \
    0.dx model.pdb >mirror.pdb
for by in 60 20 3; do shift_x $by <model.pdb >by$by.pdb; done
shift_x 9 58 <model.pdb >halves_apart.pdb
cases <<'END'
voxels that cannot show it | 65 its voxels are wider than the resolution | map dock model.pdb --map wide.mrc -r 6
some voxels NaN | 0 7 of [0-9]* voxels are NaN and are left out | map cc model.pdb --map some.mrc -r 6
a map without values as a mask | 65 leaves 0 voxels | cc model.pdb --mask nan.dx
a map of one value as a grid | 0 wrote | map simulate model.pdb --like 1.dx -r 6 -o like.mrc
no overlap | 65 does not overlap with the map: its atoms are from | cc far.pdb
over the input | 64 would replace the input | map simulate model.pdb --like own.mrc -r 6 -o own.mrc
over another's file | 64 not from tessera map | map simulate model.pdb --like own.mrc -r 6 -o mine.mrc
over its own | 0 | cc model.pdb --difference diff.mrc
a mirrored map | 0 | map simulate mirror.pdb --like 0.dx -r 6 -o mirror.mrc
is named as such | 0 mirrored along x .* the map has the wrong hand | map cc model.pdb --map mirror.mrc -r 6
most is outside | 65 the map sufficiently .[0-9]+ of [0-9]+ atoms are out | cc by60.pdb
some is outside | 0 [0-9]+ of [0-9]+ atoms are outside | cc by20.pdb
voxels that are too large | 0 fits best with voxels of 2 A.* of 2.12 | map cc model.pdb --map large.mrc -r 6
a model that does not fit for another reason | 0 | cc halves_apart.pdb
    is not said to be that | no err fits best with
# what a large map takes is stated before anything is read
a large map | 65 1200 x 1200 x 1200 voxels: 6.4 GiB, up to 25.7 GiB | map cc model.pdb --map claims.mrc.gz -r 6
END

# ---- docking ----
# The model turned by 100 degrees about z, by 60 about x, and shifted.
turn() {
    awk '/^ATOM/ {
    x = substr($0, 31, 8); y = substr($0, 39, 8); z = substr($0, 47, 8)
    u = -0.1736 * x - 0.9848 * y; v = 0.9848 * x - 0.1736 * y
    y = 0.5 * v - 0.866 * z; z = 0.866 * v + 0.5 * z
    printf "%s%8.3f%8.3f%8.3f%s\n", substr($0, 1, 30), u + 40, y - 7, z + 90, substr($0, 55)
}'
}
deviation() { # FILE FILE: the mean square one of their atoms
    paste "$1" "$2" | awk '/^ATOM/ {h = length($0) / 2; n++; for (a = 31; a < 50; a += 8)
        s += (substr($0, a, 8) - substr($0, index($0, "\t") + a, 8)) ^ 2} END {print s / n}'
}
turn <model.pdb >turned.pdb
head -n 40 model.pdb >few.pdb
spoil grown grown.mrc
spoil "origin -1500 -1500 -1500" away.mrc
cases <<'END'
dock | 0 | map dock turned.pdb --map own.mrc -r 6 --json -o back.pdb --device $device
    comes back, in no other size | json abs(d.poses[0].cc_box - 1) <= 0.002 and near(d.best_scale, 1, 1e-9)
    no mirror image is better | no err mirror
$ grep ^ATOM model.pdb >a.txt; grep ^ATOM back.pdb >b.txt
    to where it was | awk "BEGIN {exit !($(deviation a.txt b.txt) < 0.04)}"
over another's model | 64 not from tessera map | map dock turned.pdb --map own.mrc -r 6 -o model.pdb
# columns of PDB do not run together: what has no room is not written
a map far away | 65 cannot write 'away.pdb': atom N of residue A:1 is at \(-1[0-9.]*, -1[0-9., -]*\) and \
        does not fit into PDB: a coordinate | map dock few.pdb --map away.mrc -r 6 --poses 1 -o away.pdb
    the result is printed, nothing is written | out ^    1  && test ! -e away.pdb
as mmCIF | 0 | map dock few.pdb --map away.mrc -r 6 --poses 1 -o away.cif
and again | 0 | map dock few.pdb --map away.mrc -r 6 --poses 1 -o away.cif
where it belongs | 0 | map cc away.cif --map away.mrc -r 6
$ awk '/^ATOM/ && !n++ {$11 = "1e12"} {print}' away.cif >apart.cif
an atom far from the others | 65 | map dock apart.cif --map own.mrc -r 6
voxels too large | 0 the model grown by 6 % fits better.* voxels of 2 A | \
        map dock turned.pdb --map grown.mrc -r 6 --laplacian
END
# Under sanitizers one search is enough.
is_sanitized || expect "a mirrored model" 0 "the map has the wrong hand; mirror it" \
    map dock mirror.pdb --map own.mrc -r 6

# ---- many models, timelines ----
for k in 1 2 3; do
    echo "MODEL        $k"
    grep "^ATOM" model.pdb
    echo ENDMDL
done >three.pdb
sed '/^MODEL  *2/,/^ENDMDL/{/ CA /d}' three.pdb >other.pdb
timeline="map timeline three.pdb --map own.mrc -r 6"
cases <<'END'
models of a file have a line each | 0> ^three.pdb, model 3 +1.0000 | cc three.pdb
models of other atoms | 65 model 2 has other atoms than the first | cc other.pdb
a timeline says its files | 0> 3 models: line.csv, line.svg | $timeline --by structure -o line --device $device
    its table, its picture | in line.csv ^"helix A:.*,3,,,0\.[0-9]*,0.000000$ && in line.svg helix A:
again | 0 | $timeline --by chain -o line.svg
named rows | 0 | $timeline -o line --select first=A:1-50 --select rest=A:65-114
    have their names | in line.csv ^"rest",1,
a range that is not there | 64 contains no residue | $timeline -o line --select x=A:900-910
parts that are not known | 64 expected one of residue, structure, chain | $timeline -o line --by atom
END

# A trajectory of a water, which is no part of the density, and the model, that
# goes 1 Angstrom along x a frame.
{
    printf "HETATM%5d  O   HOH W   1    %8.3f%8.3f%8.3f  1.00  0.00           O\n" 1 0 0 0
    awk '/^ATOM/ {printf "%s%5d%s\n", substr($0, 1, 6), NR + 1, substr($0, 12)}' model.pdb
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
head[8] = 7 if kind == "fixed" else 0
head[10] = head[11] = int(kind == "cell")
head[19] = 24 if kind != "xplor" else 0
out = record((b"VELD" if kind == "speeds" else b"CORD") + struct.pack(end + "20i", *head))
out += record(struct.pack(end + "i", 1) + b"made by a test".ljust(80))
out += record(struct.pack(end + "i", len(xyz)))
for k in range(4):
    if kind == "cell":
        out += record(struct.pack(end + "6d", 90, 90, 90, 90, 90, 90))
    for c in range(4 if kind == "cell" else 3):
        v = [x[c] + (k if c == 0 else 0) if c < 3 else 0.0 for x in xyz]
        if kind == "nan" or kind == "late" and k > 1:
            v[3] = float("nan")
        out += record(struct.pack(end + "%df" % len(v), *v))
if kind == "cut":
    out = out[:-10]
if kind == "damaged":
    out = out[:-4] + b"\1\2\3\4"
open(path, "wb").write(out)
END
for kind in little big cell xplor fixed speeds fewer order nan late damaged cut; do
    "$python" dcd.py $kind $kind.dcd
done
for kind in little big cell xplor; do
    cases <<'END'
a trajectory, ${kind}, begins as the model | 0> ^wet.pdb, frame 1 +1.0000 | cc wet.pdb -t $kind.dcd
$ grep "^wet" out.txt >$kind.txt
    and goes away, in the same way as little | out ^wet.pdb, frame 4 +0.[0-8] && cmp -s $kind.txt little.txt
END
done
cases <<'END'
a model 3 Angstrom away | 0 | cc by3.pdb
    agrees as the fourth frame does | awk '/^wet/ {frame = $4} /^by3/ {n++; bad = $2 != frame} \
        END {exit n != 1 || bad}' little.txt out.txt
two of its frames | 0 | cc wet.pdb -t big.dcd --frames 2
    are the first and the last | awk '/^wet/ {f = f $3} END {exit f != "14"}' out.txt
its timeline | 0 | map timeline wet.pdb -t cell.dcd --map own.mrc -r 6 -o frames --by chain
    has frames | in frames.csv ^"[^"]*",4,,4,0
a trajectory, late | 65 wet.pdb, frame 3.* not a finite number | cc wet.pdb -t late.dcd --threads 3
its timeline | 65 wet.pdb, frame 3 | map timeline wet.pdb -t late.dcd --map own.mrc -r 6 -o late \
    --threads 2
a trajectory, fixed | 65 7 atoms are fixed | cc wet.pdb -t fixed.dcd
a trajectory, speeds | 65 contains velocities | cc wet.pdb -t speeds.dcd
a trajectory, fewer | 65 they must be the same | cc wet.pdb -t fewer.dcd
a trajectory, order | 65 or are in another order | cc wet.pdb -t order.dcd
a trajectory, nan | 65 frame 1, atom 4: a coordinate is not a finite number | cc wet.pdb -t nan.dcd
a trajectory, damaged | 65 is damaged | cc wet.pdb -t damaged.dcd
a trajectory, cut | 0 ends within a frame | cc wet.pdb -t cut.dcd
    the rest is there | out frame 3
no trajectory | 65 not a DCD trajectory | cc wet.pdb -t wet.pdb
a trajectory of two models | 64 needs exactly one model | cc wet.pdb wet.pdb -t big.dcd
a trajectory where it is docked | 64 belongs to 'map | map dock wet.pdb -t big.dcd --map own.mrc -r 6
END
# One thread or three, on host and device, with atoms in files or frames: all bits.
for on in reference $device; do
    for n in 1 3; do
        map timeline wet.pdb -t big.dcd --map own.mrc -r 6 -o by$n --by residue \
            --threads $n --device $on >/dev/null 2>&1
        cc by3.pdb model.pdb wet.pdb three.pdb --json --threads $n --device $on 2>/dev/null
        cc wet.pdb -t big.dcd --sigma-over-r best --threads $n --device $on 2>/dev/null
        tessera profile wet.pdb -t big.dcd --json --threads $n -q | grep -v _seconds
        tessera profile three.pdb --frames all -o by$n/ --threads $n -q
        cat by$n/three-3.dat by$n.csv by$n.svg
    done >threads.txt 2>&1
    check "the same bits with three threads, $on" \
        awk '{line[NR] = $0} END {for (i = 1; 2 * i <= NR; i++) \
            if (line[i] != line[i + NR / 2]) exit 1; exit NR < 100}' threads.txt
done
cases <<'END'
frames of a trajectory | 0 | tessera profile wet.pdb -t big.dcd --frames 2 --json
    are the first and the last, moved | json [x.structure for x in s] == ["wet.pdb:1", "wet.pdb:4"] \
        and near(s[1].rg_model, s[0].rg_model, 1e-5)
models of a file | 0> ^three.pdb:3 | tessera profile three.pdb --frames all
    without it the first | test "$(tessera profile three.pdb -q | grep -vc "#")" -eq 501
frames of bodies | 64 needs one structure | tessera profile wet.pdb -t big.dcd --bodies two
frames of two | 64 needs one structure | tessera profile wet.pdb model.pdb --frames 3
a frame that is not there | 65 wet.pdb:3: wet.pdb, frame 3 | tessera profile wet.pdb -t late.dcd
END
# The same as H5MD, in nm as other programs write it.
with_h5py=$source/.venv/bin/python
if "$with_h5py" -c "import h5py" 2>/dev/null; then
    "$with_h5py" - <<'END'
import h5py, numpy
xyz = numpy.array([[float(l[30 + 8 * c:38 + 8 * c]) for c in range(3)]
                   for l in open("wet.pdb") if l[:4] in ("ATOM", "HETA")])
frames = numpy.array([xyz + [k, 0, 0] for k in range(4)])
for kind in "nm", "none", "flat", "mile":
    with h5py.File(kind + ".h5md", "w") as f:
        f.attrs["about"] = "a test"
        if kind != "none":
            f["particles/all/box/edges"] = [1.0, 1.0, 1.0]
            p = f.create_group("particles/all/position")
            p["value"] = frames[:, :, :2] if kind == "flat" else frames / 10
            p["value"].attrs["unit"] = "mile" if kind == "mile" else "nm"
END
    cases <<'END'
a trajectory: H5MD | 0 | cc wet.pdb -t nm.h5md
    has the same frames | grep "^wet" out.txt | cmp -s - little.txt
HDF5, but no H5MD | 65 is it H5MD | cc wet.pdb -t none.h5md
flat positions | 65 is it H5MD | cc wet.pdb -t flat.h5md
H5MD in miles | 65 are in 'mile' | cc wet.pdb -t mile.h5md
END
fi

# ---- draws of a run ----
cat >run.yaml <<END
structure: {file: model.pdb, flexible: ["A:51-64"]}
data:
  - {kind: distance, between: ["A:10", "A:100"], mean: 40, sd: 3}
sampler: {chains: 2, warmup: 40, draws: 12, thin: 2, temperatures: 1}
output: {directory: drawn, trajectory_every: 3}
device: {use: reference}
END
cases <<'END'
a run | 0 | tessera run run.yaml
its draws | 0 lacks the missing atoms | map timeline drawn --map own.mrc -r 6 -o drawn.csv \
        --select first=A:1-50 --select rest=A:65-114
    are numbered | in drawn.csv ^"first",2,[0-9],[0-9]*,-*0
a trajectory beside a run | 64 with its own trajectories | cc drawn -t big.dcd
and their correlations have a line each | 0> ^drawn, chain [0-9], draw [0-9]+ +0 | cc drawn
END

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
shift_x 60 <bodies.pdb >away.pdb
turn <bodies.pdb >turned.pdb
dense=$(spoil halves mean.mrc)
mean="--set data.0.file=mean.mrc"
halves="$mean --set data.0.half_map_1=half1.mrc --set data.0.half_map_2=half2.mrc --set data.0.mask=mask.mrc"
docked="--set structure.file=turned.pdb --set data.0.dock=true --set sampler.draws=10"
cases <<'END'
check | 0 voxels count as [0-9]+ independent ones | tessera check fit.yaml
    resolved, and the right hand is not remarked | out kind: map && no err mirror
without a resolution | 78 data.0: a map needs its resolution | tessera check fit.yaml --set data.0.resolution=0
a start outside of the map | 65 the starting structure does not overlap with the map sufficiently .* dock: true | \
        tessera run fit.yaml --set structure.file=away.pdb --output away
    begins nothing | test ! -e away
a map of the wrong hand | 0 mirrored along x .* the map has the wrong | \
        tessera check fit.yaml --set data.0.file=mirror.mrc
a key of a curve | 78 it belongs to kind: saxs | tessera check fit.yaml --set data.0.q_unit=auto
what many replicas would do | 0 | \
        tessera run fit.yaml --dry-run --set sampler.chains=4 --set sampler.temperatures=6
    start where the file has the molecule | out plan: 4 chains x 6 && no out draws of the prior \
        && no err draws of the prior
a run | 0 | tessera run fit.yaml
    nothing is left out of one point, the map is kept | no out nan|PSIS && test -s fitted/input/own.mrc
    the molecule moves as a whole, and with all torsions | err ^rigid_body  *[1-9] && err ^collective  *[1-9]
its summary has what the map leaves | 0> ^map_chi2  | tessera summary fitted
half of it | 0 | tessera run fit.yaml --output half --set sampler.draws=10
and the rest | 0 | tessera resume half --draws 20
draws of fitted | 0 | tessera export fitted --draws all --format csv -o fitted.csv
draws of half | 0 | tessera export half --draws all --format csv -o half.csv
    are the same to the bit, with the width of the blur | cmp -s fitted.csv half.csv && in half.csv map_sigma_over_r
with half-maps and a mask | 0 half-maps agree .FSC 0.143. to | tessera run fit.yaml --output whitened $halves
    the noise is whitened, the map cut to the mask | err independent ones, the noise whitened \
        && err cut to the mask's box
    copies of all are kept | test -s whitened/input/half2.mrc -a -s whitened/input/mask.mrc
and it goes on | 0 | tessera resume whitened --draws 24
a mask around the start | 0 cut to the mask's box | \
        tessera check fit.yaml $mean --set data.0.mask=model --set data.0.mask_distance=6
    stays a word | out ^ *mask: model$
which knows its place | 78 is not docked yet | \
        tessera check fit.yaml --set data.0.mask=model --set data.0.dock=true
a mask by threshold | 0 the noise whitened | \
        tessera check fit.yaml $mean --set data.0.mask=threshold:$dense --set data.0.mask_distance=2
that is no number | 78 data.0: mask 'threshold:x' | tessera check fit.yaml --set data.0.mask=threshold:x

# ---- what a run says of a map ----
docked first | 0 the starting structure is docked | tessera run fit.yaml $docked --output docked
    in a map of the right hand | no err mirror
one of the wrong hand | 0 mirror image of the starting structure fits better | \
        tessera run fit.yaml $docked --set sampler.warmup=10 --set data.0.file=mirror.mrc --output mirrored
its summary | 0 | tessera summary docked
    fits as one that started there | awk '/^map_chi2 / {exit !($2 < 0.2)}' out.txt
the verdict | 0 | tessera summary whitened
    has the map | text mean.mrc: the starting structure has a correlation of 0\.[0-9]* with the map, the draws 0
    and its noise | text of the map's signal the starting structure leaves [0-9]* % unexplained, the draws leave [0-9]* %
    and what moved | text Since the start of the run, relative to A:[0-9-]*: A:.* has turned by [0-9]
and as numbers | 0 | tessera summary whitened --json
    of this map | json d.verdict.measured[0].kind == 'map' and d.verdict.measured[0].name == 'mean.mrc'
    # the noise that was put in is white: half of it is what the mean has
    they fit together | json [(0.8 < m.limit < 1.0 and m.start <= m.limit + 0.02 and m.draws.q95 < 1.0 and \
        abs(max(0, 1 - (m.draws.mean / m.limit) ** 2) - m.draws_unexplained) < 1e-5) \
        for m in d.verdict.measured[:1]] == [True]
    since the start | json d.verdict.since_start[0].turn_degrees.q5 >= 0 \
        and d.verdict.since_start[0].distance_start > 5
beside a distance, of two states | 0 | tessera run fit.yaml --output both --set structure.states=2 \
        --set 'data.1={kind: distance, between: ["A:10", "A:100"], mean: 40, sd: 3}'
    which the verdict has, too | text distance of A:10, A:100: measured 40 \+- 3 Angstrom, the starting structure has [0-9.]*, the draws
the report | 0 | tessera report both
    has slices | test -s both/report/map-1-x.svg -a -s both/report/map-1-z.csv
    residues | test "$(grep -c "draws, median" both/report/map-1-residues.csv)" -ge 100
    and the start | in both/report.html ^<tr><td>around the model</td><td>0\.[0-9]*</td>
with half-maps | 0 | tessera report whitened
    their correlation, and what noise leaves | in whitened/report.html half-maps \
        && in whitened/report.html would have a correlation \(as sampled\) of 0\.[0-9]*
$ rm whitened/input/half2.mrc
a map that is gone | 0 the map itself is not shown: .*half2.mrc | tessera report whitened
END

# ---- published maps ----
published=$shared/maps
if [ -d "$published" ]; then
    while read -r model map resolution known <&4; do
        cases <<'END'
${model} in ${map} | 0 | map cc "$published/$model" --map "$published/$map.gz" -r $resolution --json
    is ${known} | json abs(d.models[0].cc_box - ${known}) <= 5.1e-5
END
    done 4<<'END'
1UBI.pdb Ubi-4.5.mrc 4.5 0.9978
1f7dA00.pdb 1f7dA00_8.mrc 8 0.9265
adk_4ake-target.pdb adk_4ake_5A.mrc 5 0.9651
adk_1ake-docked.pdb adk_4ake_5A.mrc 5 0.6145
END
    expect "adk_1ake-initial.pdb lies outside" 65 \
        "does not overlap with the map sufficiently .1580 of 1656 atoms are outside" \
        map cc "$published/adk_1ake-initial.pdb" --map "$published/adk_4ake_5A.mrc.gz" -r 5
else
    echo "skip published maps: no $published"
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
