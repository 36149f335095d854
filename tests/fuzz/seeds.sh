#!/bin/sh
# seeds.sh PROGRAM OUT: seed files of each fuzz target, OUT/seeds/TARGET, and the
# runs that are damaged, OUT/runs, all made by the program or written here.
set -e
program=$(realpath "$1")
here=$(cd "$(dirname "$0")/../.." && pwd)
rm -rf "$2.new"
mkdir -p "$2.new/runs"
cd "$2.new"
for target in pdb cif curve config table map dcd pae run; do mkdir -p seeds/$target; done

# Two helical turns and what links them: the smaller, the more inputs a second.
awk '{n = substr($0, 23, 4) + 0}
    /^ATOM/ && !/ SC / && n > 42 && n < 68 {
        print substr($0, 1, 17) (/GLY/ ? "GLY" : "ALA") substr($0, 21)}
    END {print "END"}' "$here/configs/demo/two_domain.pdb" >model.pdb
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:52-58"]}
data: [{file: curve.dat}]
sampler: {chains: 2, warmup: 2, draws: 4, thin: 1, temperatures: 2, start: file}
contrast: {c2: 0}
model_error: {learn: none}
device: {use: reference, threads: 1}
simulate: {points: 30, q_range: [0.01, 0.2], steps: 9}
output: {directory: runs/ended}
END
{
    printf "object 1 class gridpositions counts 16 14 14\norigin -9 -49 -11\n"
    printf "delta 4 0 0\ndelta 0 4 0\ndelta 0 0 4\n"
    echo "object 3 class array type double rank 0 items 3136 data follows"
    yes 0 | head -n 3136
} >grid.dx
"$program" simulate good.yaml -o curve.dat >seeds.log 2>&1
"$program" map simulate model.pdb --like grid.dx -r 8 --device reference -o map.mrc >seeds.log 2>&1
"$program" run good.yaml >seeds.log 2>&1

# A run that was killed, with its log of draws.
"$program" run good.yaml -o runs/killed --set sampler.draws=100000 \
    --set output.checkpoint_every=1000 --set sampler.thin=100 >seeds.log 2>&1 &
process=$!
for _ in $(seq 600); do
    [ -s runs/killed/draws.log ] && break
    sleep 0.05
done
sleep 0.2
kill -9 $process
wait $process 2>/dev/null || true
cp model.pdb curve.dat map.mrc runs

cp model.pdb seeds/pdb
cp runs/ended/model.pdb seeds/pdb/centres.pdb
sed 1,3d model.pdb | awk '/^ATOM/ {print} NR % 9 == 0 {
    print substr($0, 1, 16) "B" substr($0, 18)} END {
    print "HETATM  900  C1  HEM A 900      10.000  10.000  10.000  0.50  0.00           C"
    print "CONECT  900  900\nEND"}' >seeds/pdb/alternates.pdb
{ echo "MODEL        1"; grep ^ATOM model.pdb; echo ENDMDL
  echo "MODEL        2"; grep ^ATOM model.pdb; echo ENDMDL; } >seeds/pdb/models.pdb
"$program" export runs/ended --draws 0/0,0/1 --format cif --atoms all -o seeds/cif/draws.cif >seeds.log 2>&1
"$program" export runs/ended --draws 0/0 --format cif --atoms model -o seeds/cif/model.cif >seeds.log 2>&1
find seeds/cif -type f ! -name '*.cif' -exec rm {} +
cp curve.dat seeds/curve
"$program" profile model.pdb --data curve.dat --device reference -o seeds/curve/fit.fit >seeds.log 2>&1
awk '/^[^#]/ {print 10 * $1 "," $2}' curve.dat >seeds/curve/nm.csv
sed '1i # q [nm^-1] I sigma dq' curve.dat | awk '/^[^#]/ {print $0, 0.001; next} 1' >seeds/curve/dq.dat
gzip -nc curve.dat >seeds/curve/curve.dat.gz
"$program" profile model.pdb --data curve.dat --device reference -o seeds/curve/fit.sascif >seeds.log 2>&1
{
    echo '<?xml version="1.0"?><!-- c --><cs:SASroot version="1.1" xmlns:cs="urn:cansas1d:1.1"><cs:SASentry>'
    echo '<cs:SASdata name="a">'
    awk '/^[^#]/ {printf "<cs:Idata><cs:Q unit=\"1/nm\">%s</cs:Q><cs:I>%s</cs:I><cs:Idev>%s</cs:Idev>" \
        "<cs:Qdev>0.01</cs:Qdev></cs:Idata>\n", 10 * $1, $2, $3}' curve.dat
    echo '</cs:SASdata></cs:SASentry></cs:SASroot>'
} >seeds/curve/curve.xml
find seeds/curve -name '*.svg' -exec rm {} +
# NXcanSAS, where the tests' environment has h5py
"$here/.venv/bin/python" - <<'END' 2>/dev/null || echo "no seed of NXcanSAS: no h5py" >>seeds.log
import h5py
import numpy as np

q, intensity, sigma = np.loadtxt("curve.dat", usecols=(0, 1, 2)).T
for name, options in ("plain", {}), ("packed", {"compression": "gzip", "chunks": (16,)}):
    with h5py.File(f"seeds/curve/{name}.h5", "w") as file:
        data = file.create_group("sasentry/sasdata")
        data.attrs.update(canSAS_class="SASdata", signal="I", I_axes="Q", Q_indices=0)
        for column, value, unit in ("Q", 10 * q, "1/nm"), ("I", intensity, "1/cm"), ("Idev", sigma, "1/cm"):
            data.create_dataset(column, data=value, **options).attrs["units"] = unit
        data["I"].attrs["uncertainties"] = "Idev"
        data["dQl"] = [0.1]
END
cp good.yaml runs/ended/config.yaml seeds/config
cat >seeds/config/set.yaml <<'END'
structure: {file: model.pdb}
data: [{kind: sans, d2o: 0.4, file: a}, {kind: map, resolution: 8, file: b}, {kind: distance, between: ["A:1", "B:2"], file: c}]
#set sampler.draws=9
#set data.0.noise.model=student
#set moves.pivot.weight=0
#set data=[{file: x}]
END
cp "$here/data/prior.dat" seeds/table
for table in "$here"/data/*_body.dat; do
    awk '/^#: grid/ {print "#: grid 4 0.01"; next} /^#/ || $2 < 0.035' "$table" \
        >"seeds/table/${table##*/}"
done
cp map.mrc grid.dx seeds/map
gzip -nc map.mrc >seeds/map/map.mrc.gz
python3 - <<'END'
import json
import struct


def record(content, order):
    n = struct.pack(order + "i", len(content))
    return n + content + n


for name, order, cell in ("little", "<", 0), ("big", ">", 1):
    head = [3, 0, 1, 3] + [0] * 5 + [0] + [cell] + [0] * 8 + [24]
    with open("seeds/dcd/%s.dcd" % name, "wb") as file:
        file.write(record(b"CORD" + struct.pack(order + "20i", *head), order)
                   + record(struct.pack(order + "i", 1) + b"title".ljust(80), order)
                   + record(struct.pack(order + "i", 4), order))
        for _ in range(3):
            if cell:
                file.write(record(struct.pack(order + "6d", *range(6)), order))
            for _ in range(3):
                file.write(record(struct.pack(order + "4f", 1, 2, 3, 4), order))
pae = [[0, 1.5, 2], [1, 0, 3], [2, 3, 0]]
for name, content in (("database", [{"predicted_aligned_error": pae, "max_predicted_aligned_error": 31.75}]),
                      ("colabfold", {"pae": pae, "plddt": [90, 80, 70], "ptm": 0.5}),
                      ("three", {"pae": pae, "token_chain_ids": ["A", "A", "B"], "token_res_ids": [1, 2, 1]}),
                      ("old", [{"residue1": [1, 1, 2, 2], "residue2": [1, 2, 1, 2], "distance": [0, 1, 1, 0]}])):
    with open("seeds/pae/%s.json" % name, "w") as file:
        json.dump(content, file)
# of the target `run`: command, file, edits (fuzz.c)
for command in range(19):
    for file_number in range(command, 24, 6):
        name = "seeds/run/%d_%d" % (command, file_number)
        with open(name, "wb") as file:
            file.write(bytes([command, file_number, 0]) + bytes((command * 37 + file_number * 11 + 7 * i) % 251
                                                                for i in range(24 * (file_number % 2))))
END
cd - >/dev/null
rm -rf "$2/seeds" "$2/runs"
mkdir -p "$2"
mv "$2.new/seeds" "$2.new/runs" "$2"
rm -r "$2.new"
