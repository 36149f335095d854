#!/bin/sh
# tessera-mpi: the draws are the same to the bit for any number of ranks and for tessera;
# stopped or killed runs go on with another number of ranks; an error of one rank ends all.
. tests/cli/expect.sh
needs_venv "runs on several ranks"
needs_ranks "runs on several ranks"

short_model model.pdb
cat >run.yaml <<'END'
structure: {file: model.pdb, flexible: ["A:51-64"]}
data: [{file: curve.dat}]
sampler: {chains: 4, warmup: 100, draws: 30, thin: 5, temperatures: 4, start: prior}
output: {directory: whole, trajectory_every: 3, checkpoint_every: 0}
device: {use: reference, threads: 1}
simulate: {points: 30, q_range: [0.01, 0.15], steps: 50}
contrast: {c2: 0}
END
few="--set sampler.warmup=20 --set sampler.chains=4 --set sampler.thin=1 --set device.use=reference
    --set sampler.temperatures=4 --set sampler.draws=30 --set contrast.c2=0 --sample --states 1"

# ---- any number of ranks ----
cases <<'END'
a curve | 0 | tessera simulate run.yaml --output curve.dat
a run | 0 groups of chains were tempered | tessera run run.yaml
one rank | 0 | ranks 1 tessera-mpi run run.yaml --output one
two | 0 2 ranks, .*chains 0 to 1 | ranks 2 tessera-mpi run run.yaml --output two
three, of one and two chains | 0 3 ranks | ranks 3 tessera-mpi run run.yaml --output three
$ same "any number of ranks: the same draws" whole one two three
another command is that of one rank | 0> state *finished | ranks 2 tessera-mpi status two
    and printed once | test "$(grep -c state out.txt)" -eq 1
a plan | 0> time: | ranks 2 tessera-mpi run run.yaml --dry-run --output plan
more ranks than chains | 78 4 chains for 5 ranks | ranks 5 tessera-mpi run run.yaml --output five
$ mkdir tables && for table in "$source"/data/*; do : >"tables/${table##*/}"; done
an error on another rank | 65 another rank: .*tables/ | $mpirun -np 1 tessera-mpi run run.yaml \
    --output five : -np 1 env TESSERA_DATA=$work/tables tessera-mpi run run.yaml --output five
    leaves nothing | test ! -e five
    ranks of one kind | no in two/run.log another kind
solve | 0 | tessera solve model.pdb curve.dat --output solved $few
solve on two ranks | 0 | ranks 2 tessera-mpi solve model.pdb curve.dat --output solved-two $few
$ same "solve: the same draws" solved/1 solved-two/1
END
if has_other_processor "ranks on processors of two kinds"; then
    cases <<'END'
processors of two kinds | 0 rank 1 on .* of another kind than rank 0 | $mpirun -np 1 tessera-mpi run run.yaml \
    --output mixed : -np 1 env $other_processor tessera-mpi run run.yaml --output mixed
END
fi
atoms=$shared/saxs/lar_fn3_1_2/model.pdb
if [ -e "$atoms" ] && tessera devices --no-test 2>&1 | grep -q "^.*(CPU)"; then
    awk '/^ATOM/ && substr($0, 23, 4) + 0 >= 82 && substr($0, 23, 4) + 0 <= 122' "$atoms" >lar.pdb
    sed 's/^structure.*/structure: {file: lar.pdb, flexible: ["A:97-103"], bodies: atoms}/
        s/curve.dat/atoms.dat/; s/reference/cpu/; s/start: prior/start: file/
        s/warmup: 100/warmup: 800/; s/thin: 5/thin: 10/' run.yaml >atoms.yaml
    echo 'model_error: {conformations: 8}' >>atoms.yaml
    cases <<'END'
a curve of atoms | 0 | tessera simulate atoms.yaml --output atoms.dat
draws of atoms | 0 near the posterior: over [1-9] | tessera run atoms.yaml --output atoms
on two ranks | 0 near the posterior: over [1-9] | ranks 2 tessera-mpi run atoms.yaml --output atoms-two
$ same "the model error is learnt by all ranks: the same draws" atoms atoms-two
END
else
    echo "skip draws of atoms on two ranks: no $atoms, or no CPU as device"
fi

# ---- stopped ----
# begin DIR N: a long run on N ranks and one more, whose process is in second.pid
begin() {
    background $mpirun -np "$2" tessera-mpi run run.yaml --output "$1" \
        --set sampler.draws=1000000 : -np 1 sh -c 'echo $$ >second.pid; exec "$@"' - \
        tessera-mpi run run.yaml --output "$1"
    wait_until has_draws "$1"
}
done_of() { # DIR: its number of draws
    tessera status "$1" --json | "$python" -c '
import json, sys; print(json.load(sys.stdin)["draws"]["done"])'
}
begin stopped 1
kill -TERM $pid
ended 2>/dev/null
check "SIGTERM to mpirun stops all" grep -q "tessera resume stopped" err.txt
begin one-stopped 2
kill -TERM "$(cat second.pid)"
ended 2>/dev/null
status=$?
check "SIGTERM to one rank stops all: exit status 75" test $status -eq 75
begin killed 1
second=$(cat second.pid)
kill -KILL "$second"
ended 2>/dev/null
n=$(done_of stopped)
for run in one-stopped killed; do
    more=$(done_of $run)
    [ "$more" -le "$n" ] || n=$more
done
n=$((n + 20))
cases <<'END'
    no rank is left | test ! -e /proc/$second
status of a killed run | 0> state *interrupted | tessera status killed
the run without a stop | 0 | tessera run run.yaml --output straight --set sampler.draws=$n
three ranks go on with a stopped run of two | 0 resumed.* kept | ranks 3 tessera-mpi resume stopped --draws $n
tessera with one of three | 0 resumed | tessera resume one-stopped --draws $n
two ranks after a kill | 0 resumed | ranks 2 tessera-mpi resume killed --draws $n
$ same "stopped, killed: the same draws" straight stopped one-stopped killed
END
compared
exit $bad
