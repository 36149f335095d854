#!/bin/sh
# Every command refuses files that make no sense with one message and an exit status of its
# kind, leaves no file behind, and bears odd streams, folders and environments. damage.py
# makes the files, table.py says how a table is written.
. tests/cli/expect.sh

# Two domains and what links them, of residues whose side chains are whole.
awk '{n = substr($0, 23, 4) + 0}
    /^ATOM/ && !/ SC / && n > 30 && n < 85 {
        print substr($0, 1, 17) (/GLY/ ? "GLY" : "ALA") substr($0, 21)}
    END {print "END"}' "$demo/two_domain.pdb" >model.pdb
"$build/tests/oracle/write_strand" 6 dna >strand.pdb
{
    printf "object 1 class gridpositions counts 25 22 22\norigin -9 -49 -11\n"
    printf "delta 3 0 0\ndelta 0 3 0\ndelta 0 0 3\n"
    echo "object 3 class array type double rank 0 items 12100 data follows"
    yes 0 | head -n 12100
} >grid.dx
cat >good.yaml <<END
structure: {file: model.pdb, flexible: ["A:48-62"]}
data: [{file: good.dat}]
sampler: {chains: 2, warmup: 4, draws: 8, thin: 1, temperatures: 2, start: file}
contrast: {c2: 0}
model_error: {learn: none}
device: {use: reference, threads: 1}
simulate: {points: 30, q_range: [0.01, 0.2], steps: 9}
output: {directory: run}
END
sed 's/, flexible.*]//' good.yaml >any.yaml
sed 's/good.dat/own.mrc, kind: map, resolution: 8/; /^contrast\|^simul/d' good.yaml >map.yaml
printf 'name\tmodel\tcurve\nrow\tmodel.pdb\tgood.dat\n' >rows.tsv
map="-r 8 --device reference --map"
expect "a curve" 0 "" "$program" simulate good.yaml -o good.dat
expect "a map" 0 "" "$program" map simulate model.pdb --like grid.dx -r 8 --device reference -o own.mrc
expect "a run" 0 "" "$program" run good.yaml
expect "mmCIF" 0 "" "$program" export run --draws 0/0 --format cif --atoms all -o good.cif
check "files" "$python" "$source/tests/cli/damage.py" "$shared/damaged"
[ $bad -eq 0 ] || exit 1

# For lines of the tables: short runs; an environment that makes no sense; one
# that may write nothing here, as root may everywhere.
few="--states 1 --time-limit 1 --device reference --threads 1 --set model_error.learn=none"
for set in warmup=4 draws=4 chains=2 temperatures=2 start=file; do
    few="$few --set sampler.$set"
done
garbage="env TMPDIR=/nowhere HOME=/nowhere TESSERA_DATA=/nowhere
    TSR_KERNEL_DIR=/nowhere LC_ALL=de_DE.UTF-8 COLUMNS=-5 TERM= TZ=x"
nobody=env
[ "$(id -u)" -ne 0 ] || nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
chmod 755 .
export map few garbage nobody

"$python" "$source/tests/cli/table.py" "$program" <<'END' || bad=1
[structures]
check = $T check ../any.yaml --set structure.file=FILE
run = $T run ../any.yaml --set structure.file=FILE -o new
simu = $T simulate ../any.yaml --set structure.file=FILE -o new.dat
init = $T init FILE
solve = $T solve FILE ../good.dat $few -o own
prof = $T profile FILE --device reference --data ../good.dat
two = $T profile FILE --device reference --n-q 9 --bodies two
pool = $T pool FILE ../good.cif --data ../good.dat --device reference --radiation neutron --members 1 --copies none --draws 64
cc = $T map cc FILE $map ../own.mrc
dock = $T map dock FILE $map ../own.mrc -o new.pdb
train = mkdir own; cp -r FILE own/x.pdb; $T train form-factors --evaluate own -o new.csv
bench = $T bench --sampling ../any.yaml --set data=[] --set structure.file=FILE --quick --time 1
start = $T check ../any.yaml --set structure.pool=[FILE]
model.pdb,good.cif,occupancy.pdb,ligand.pdb,dna_beside.pdb,models.pdb 0 |
models_other.pdb,models_nan.pdb 0 0 0 0 0 0 0 65 65 65 0 0 65 | model 2|finite|nowhere near
dna.pdb       0  0  0  0  0  0  0  0  0  0 65  0 65 | no protein|: 0 residues
dna_nan.pdb,dna_zero.pdb 65 | S:3
ligand_alone.pdb 65 65 65 65 65 0 65 0 0 0 65 65 65 | no protein|: 0 residues
ligand_nan.pdb 65 | HEM L:900 is nowhere near
no_ca.pdb,cut.pdb 0 0 0 0 0 0 0 0 0 0 0 0 65 | A:51 is GLY|11 residues
nan.pdb,text.cif 65 | A:45 is nowhere near
stars.pdb,numbers.pdb,number.cif,cut.cif,water.pdb 65 | line 70: the|out of range|in the loop|no protein|no atoms but
noise,noise.gz,cut_model.pdb.gz,own.mrc,good.dat,line,empty 65 | binary file|damaged or incomplete gzip|not a structure|is empty
run,nowhere  66 66 66 66 66 66 66  -  -  -  - 66 66 | is a directory|cannot open|is a run
loop         66 66 66 66 66 66 66 66 66 66  - 66 66 | symbolic links

[curves]
check = $T check ../good.yaml --set data.0.file=FILE
run = $T run ../good.yaml --set data.0.file=FILE --set data.0.noise.model=student -o new
sans = $T run ../good.yaml --set 'data=[{kind: sans, d2o: 0.4, file: FILE}]' -o new
init = $T init ../model.pdb FILE --sans FILE=0.4
solve = $T solve ../model.pdb FILE $few -o own
prof = $T profile ../model.pdb --data FILE --device reference --background fit -o new.fit
pool = $T pool ../model.pdb ../good.cif --data FILE --device reference --members 1 --copies none --draws 64
dist = $T run ../good.yaml --set 'data=[{kind: distance, between: ["A:35", "A:80"], file: FILE}]' -o new
beam = $T check ../good.yaml --set data.0.resolution.beam_profile=FILE
good.dat      0  0  0  0  0  0  0  0  0 |
small_sigma.dat,log.dat 0 0 0 0 0 0 0 0 0 |
minus_i.dat   0  0  0  0 70 70 70 65 65 | no positive scale|above 0|intensities of 0
huge_q.dat   65 65 65 65 65 65 65  0 65 | outside|beyond any instrument|ascending u
zero_sigma.dat,tiny_sigma.dat,huge_i.dat 65 65 65 65 65 65 65 0 0 | no usable row|up to 1e.50 and sigma
nan_i.dat,inf_i.dat 65 | no usable row|density|intensities of 0
nan_q.dat,minus_q.dat,same_q.dat 65 | line [0-9]*: q|repeated q|above the previous distance|ascending u
header.dat 0 |
line,empty,noise,noise.gz,cut_good.dat.gz,percent.dat,bomb.xml,model.pdb,utf16.dat,own.mrc,run/trace.h5 65 | usable rows|no distribution|no intensity|is empty|not a text file|damaged or incomplete gzip|holds no table|no whole cansas1d|no NXcanSAS|columns is no
run,nowhere,loop 66 | is a directory|cannot open

[maps]
check = $T check ../map.yaml --set data.0.file=FILE
run = $T run ../map.yaml --set data.0.file=FILE --set data.0.dock=true -o new
init = $T init ../model.pdb --map FILE -r 8
best = $T map cc ../model.pdb $map FILE --sigma-over-r best
cc = $T map cc ../model.pdb $map FILE --difference new.mrc
dock = $T map dock ../model.pdb $map FILE -o new.pdb
simu = $T map simulate ../model.pdb --like FILE -r 8 --device reference -o new.mrc
line = $T map timeline ../model.pdb $map FILE -o new
mask = $T map mask --map FILE --mask threshold:0.1 -o new.mrc
inside = $T map cc ../model.pdb --map ../own.mrc -r 8 --mask FILE --device reference
own.mrc,some_nan.mrc 0 |
voxel_0.mrc,voxel_-2.mrc,voxel_nan.mrc,voxel_3e+38.mrc 65 | CELLA .words 11 to 13
axes.mrc,mode.mrc,side.mrc,extended.mrc,cut.mrc,cut_own.mrc.gz,head.mrc 65 | MAPC|MODE .word 4. is 99|are invalid in|ends within its|incomplete gzip
claims.mrc   65 | ends within its voxels, after 1024 bytes[^G]*$
fewer.dx,counts.dx,step.dx,line 65 | OpenDX: (the array ends|counts of|delta: a step|no 'object)
noise,model.pdb,good.dat,empty 65 | is the file a density map|not a density map|is empty
run,nowhere,loop 66 | cannot (open|read)|is a directory

[configurations]
check = $T check FILE
run = $T run FILE
dry = $T run FILE --dry-run
simu = $T simulate FILE -o new.dat
bench = $T bench --sampling FILE --set data=[] --quick --time 1
solve = mkdir own; cp -r FILE own/solve.yaml; $T solve ../model.pdb ../good.dat -o own --states 1
good.yaml,utf16.yaml 0 78 78 0 0 - | already contains a run
latin.yaml,nul.yaml,cut.yaml,noise 78 | not YAML
twice.yaml,documents.yaml,good.dat,self.yaml,deep.yaml,nan.yaml,seed.yaml,empty 78 | repeated key|a second document|expected lines|is a list|more than 64 deep|'.nan' is|'1e300'|either file or
up.yaml,slash.yaml,dots.yaml,page.yaml,no_name.yaml 78 | cannot name a folder
no_folder.yaml 78 78 78 78 0 78 | output.directory is empty
long.yaml,file.yaml 0 74 74 0 0 - | cannot read folder|Not a directory
proc.yaml    0 74  0  0  0  - | cannot make the folder
input.yaml   0 78 78  0  0  - | contains a file 'model.pdb'
run,nowhere,loop 66 66 66 66 66 - | is a directory|cannot open

[tables]
rows = $T batch FILE -o new --dry-run
rows.tsv,run 0 |
noise,noise.gz,empty,line,good.dat,utf16.yaml,own.mrc 65 | must name the columns|is empty|has no rows|gzip
nowhere,loop 66 | cannot open

[runs]
resume = cp -a FILE own; $T resume own --draws 12 --device reference
status = cp -a FILE own; $T status own
summary = cp -a FILE own; $T summary own --json
diagnose = cp -a FILE own; $T diagnose own
compare = cp -a FILE own; $T compare own ../run
report = cp -a FILE own; $T report own
pdb = cp -a FILE own; $T export own --draws all -o new.pdb
csv = cp -a FILE own; $T export own --format csv
cc = cp -a FILE own; $T map cc own $map ../own.mrc
run,run_missing,run_empty,run_noise,run_cut 0 0 0 1 0 0 0 0 0 |
run_folder,run_loop 74 0 0 1 0 0 0 0 0 | cannot open log file
checkpoint_missing                66 0  0  1  0  0  0  0 0 | no checkpoint
checkpoint_empty,checkpoint_noise,checkpoint_cut,checkpoint_flip0,checkpoint_flip5 65 0 0 1 0 0 0 0 0 | damaged
checkpoint_folder 65 0 0  1  0  0  0  0  0 | damaged
checkpoint_loop 74 0 0  1  0  0  0  0  0 | is a symbolic link
trace_empty,trace_noise,trace_cut,trace_folder,trace_flip0,trace_flip5,trace_flip8,status_segv,scales_crash 65 65 65 65 65 65 0 65 65 | trace.h5': the file is damaged
trace_missing 66 0 66 66 66 66 66 66 66 | missing|without trace
trace_loop 74 0 66 66 66 66 66 66 66 | symbolic link|cannot open|without trace
trajectory-000_empty,trajectory-000_noise,trajectory-000_cut,trajectory-000_flip0,trajectory-000_flip5 65 0 0 1 0 0 0 0 0 | trajectory-000.h5': the file is damaged
trajectory-000_missing            66 0  0  1  0  0  0  0  0 | cannot open
config_missing,config_loop        66 66 0  1  0  0  0  0 65 | no config.yaml|is needed|no input
config_folder                     66 66 0  1  0  0  0  0 65 | is a directory|is needed|no input
config_empty,config_noise         78 78 0  1  0  0  0  0 65 | not YAML|either file or sequence|is needed|no input
config_cut                        65 0  0  1  0  0  0  0  0 | differs from that of the checkpoint
model_empty,model_noise,model_cut  0 0  0  1  0  0 65  0 65 | model.pdb.*(is empty|binary file|line [0-9]*)
model_missing,model_folder,model_loop 0 0 0 1 0  0 66  0 66 | model.pdb
its_model_empty,its_model_noise,its_model_cut 65 0 0 1 0 0 0 0 65 | input/model.pdb|the structure: changed|of the input
its_model_missing,its_model_folder,its_model_loop 66 0 0 1 0 0 0 0 66 | input/model.pdb
its_good_empty,its_good_noise,its_good_cut 65 0 0 1  0  0  0  0  0 | good.dat|the data: changed
its_good_missing,its_good_folder,its_good_loop 66 0 0 1 0 0 0 0 0 | good.dat
forged_no_warmup,forged_minus_warmup,forged_draws,forged_look,forged_steps,forged_replica,forged_replicas,forged_chains 65 0 0 1 0 0 0 0 0 | its numbers of draws and steps|not a saved state|the number of chains
forged_older                      65 0  0  1  0  0  0  0  0 | has other keys or defaults
forged_random                      0 0  0  1  0  0  0  0  0 |

# streams, environments, folders that cannot be written
[every command]
check = FILE $T check ../good.yaml --set output.directory=new
init = FILE $T init ../model.pdb ../good.dat -o new.yaml
simu = FILE $T simulate ../good.yaml -o new.dat
run = FILE $T run ../good.yaml -o new
resume = cp -a ../run own; FILE $T resume own --draws 12
solve = FILE $T solve ../model.pdb ../good.dat $few -o own
status = FILE $T status ../run
summary = FILE $T summary ../run
diagnose = FILE $T diagnose ../run
compare = FILE $T compare ../run ../run
report = cp -a ../run own; FILE $T report own
pdb = FILE $T export ../run --draws all
csv = FILE $T export ../run --format csv
prof = FILE $T profile ../model.pdb --device reference --data ../good.dat -o new.fit
cc = FILE $T map cc ../run $map ../own.mrc
dock = FILE $T map dock ../model.pdb $map ../own.mrc -o new.pdb
mask = FILE $T map mask --map ../own.mrc --mask threshold:0.1 -o new.mrc
train = mkdir own; cp ../model.pdb own; FILE $T train form-factors --evaluate own
bench = FILE $T bench --sampling ../good.yaml --set data=[] --quick --time 1
help = FILE $T run --help
rows = FILE $T batch ../rows.tsv -o new --dry-run
>/dev/full,>&- 74 74 74 74 74 74 74 74 74 74 74 74 74 74 74 74  0 74 74 74 74 | cannot write
2>&-,2>/dev/full,<&- 0 0 0 0 0 0 0 0 1  0  0  0  0  0  0  0  0  0  0  0  0 |
$garbage        0  0  0  0  0  0  0  0  1  0  0  0  0  0  0  0  0  0  -  0  0 |
$nobody         0 74 74 74 74 74  0  0  1  0 74  0  0 74  0 74 74  0  0  0 74 | (cannot (write|make|open)|folder).*Permission denied

78 | model_error is none | $T run ../good.yaml --set structure.bodies=atoms --device reference -o new
78 | model_error is none | $T run ../good.yaml --set structure.bodies=atoms --device reference --dry-run
0 | | mkdir a; cp ../good.dat config.yaml; cp ../good.dat a; $T run ../good.yaml --set 'data=[{file: config.yaml}, {file: a/good.dat}, {file: ../good.dat}]' -o new && ls new/input/config.yaml

# ---- coordinates, columns, maps and files that made no sense and passed ----
[structures]
zero_residue.pdb,far_residue.pdb 65 | A:45|too far
zero.pdb,one_point.pdb 65 | A:31|identical|one place|backbone
e300.cif,million.cif 65 | A:45|too far
ligand_far.pdb 65 65 65 - 65 65 65 65 65 65 - 65 65 | L:900|9999
tenth.pdb    65 | are in nm
doubled.pdb  65 | two copies
fifo         66 66  - 66  - 66  -  -  - 66  -  - 66 | is a named pipe
[curves]
columns.dat  65 65 65 65 65 65 65  -  - | q, I, sigma in this order
percent.dat  65 65 65 65 65 65 65 - - | 3%
tiny_q.dat   65 65 65 65 65 65 65 - - | q
million.dat  0  -  -  0  -  -  -  0  - |
fifo         66 66  - 66  - 66  - 66  - | is a named pipe
[maps]
zeros.mrc    65 65 65  - 65 65  - 65  -  - | mrc'.*all voxels of the map have the same value .values 0 to 0
constant.mrc 65 65 65  - 65 65  - 65  -  - | mrc'.*all voxels of the map have the same value
nan.mrc,inf.mrc 65 65 65  - 65 65  - 65  -  - | mrc'.*no voxel of the map is a finite number
huge.mrc     65 65 65  - 65 65  - 65  -  - | mrc'.*values beyond 1e20 are not densities .values -3e.38
some_huge.mrc 65  - 65  - 65 65  - 65  -  - | mrc'.*values beyond 1e20 are not densities
voxel_78.mrc,voxel_14060.mrc,voxel_1e-30.mrc 65 - 65 - 65 65 - 65 - - | mrc'.*voxels of (78|1.406e.04|1e-30) x .*is the unit wrong .MRC CELLA
origin_1500.mrc 65 65  - 65 65 65  - 65  - 65 | -1500|overlap|on one grid|on the grid|does not fit into PDB
origin_nan.mrc 65 | from .nan, .*ORIGIN, words 50|origin
origin_1e30.mrc,sampling.mrc 65 65  - 65 65 65  - 65  - 65 |
angle_0.mrc  65 | CELLB .words 14 to 16.: alpha is 0 degrees
fifo         66  -  -  - 66  -  -  -  -  - | is a named pipe
[configurations]
entries.yaml 0 - - - - - | twice
fifo         66 66  -  -  -  - | is a named pipe
[runs]
trace_link   74 0  0  1  0  0  0  0  0 | trace.h5.*symbolic link
0 | | ! $T status ../forged_future | grep -e '-[0-9]* s ago'
0 | | $T init ../model.pdb -o 'a;b.yaml' 2>&1 | grep -qF "check 'a;b.yaml'"
74 | trace.h5 | $T run ../good.yaml -o new --set sampler.draws=1000000 --set output.checkpoint_every=0 & p=$!; until [ -s new/trace.h5 ]; do sleep 0.1; done; sleep 1; while kill -STOP $p; ls new | grep -q 'tmp$'; do kill -CONT $p; sleep 0.05; done; truncate -s 1000 new/trace.h5; kill $p; kill -CONT $p; wait $p
END
exit $bad
