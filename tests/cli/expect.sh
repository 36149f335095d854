# For scripts of tests, to be sourced from the repository's folder: goes into a
# folder that is removed at the end. Results go to out.txt and err.txt in it;
# `bad` becomes 1 where a test fails.
source=$PWD
build=$PWD/${BUILD:-build}
program=$build/tessera
demo=$PWD/configs/demo
shared=$PWD/../shared/data
python=${PYTHON:-python3}
bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# Whether the build has sanitizers, which take ten times as long.
is_sanitized() {
    case $build in
    */san-*) ;;
    *) false ;;
    esac
}

# needs_venv WHAT: from here on $python is that of .venv, with its packages.
needs_venv() {
    if [ ! -e "$source/.venv/done" ]; then
        echo "skip $1: no .venv (make .venv/done; ${BUILD:-build}/venv.log)"
        exit 0
    fi
    python=$source/.venv/bin/python
}

# expect NAME STATUS PATTERN COMMAND...: exit status, and a pattern (grep -E) in
# what it said on standard error. A failure says one message; the program alone
# says how it is used, and status 1 is an answer.
expect() {
    name=$1 want=$2 pattern=$3
    shift 3
    "$@" >out.txt 2>err.txt </dev/null
    got=$?
    if [ $got -ne "$want" ]; then
        echo "not ok $name: exit status $got, expected $want"
    elif [ -n "$pattern" ] && ! grep -qE -e "$pattern" err.txt; then
        echo "not ok $name: the message lacks '$pattern'"
    elif [ "$want" -gt 1 ] && [ $# -gt 1 ] &&
        [ "$(grep -c '^tessera[ a-z]*:' err.txt)" -ne 1 ]; then
        echo "not ok $name: not one message"
    else
        echo "ok $name"
        return
    fi
    sed 's/^/    /' err.txt
    bad=1
}

# check NAME TEST...: a command that succeeds.
check() {
    name=$1
    shift
    if "$@"; then echo "ok $name"; else echo "not ok $name"; bad=1; fi
}

# background COMMAND...: begins it, $pid. Its files are emptied first: the child
# does that only once it has a processor, and until then what the command before
# it said would count as its own.
background() {
    : >out.txt
    : >err.txt
    "$@" >out.txt 2>err.txt &
    pid=$!
}

# ended: waits for $pid to end, its exit status after; not for longer than a
# minute, or a run that missed its signal would keep the tests for hours.
ended() {
    for _ in $(seq 600); do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL $pid 2>/dev/null
    wait $pid
}

# wait_until COMMAND...: it succeeds, or a minute is over, in which a machine
# under load gets there, too; what comes next then says what is wrong.
wait_until() {
    for _ in $(seq 600); do
        "$@" && break
        sleep 0.1
    done
}
has_draws() { # DIRECTORY: a run with draws on the disk
    "$program" status "$1" 2>/dev/null | grep -q "sampling *[1-9]"
}

# short_model FILE: the demo's linker with ten residues of each domain. A step of
# the reference costs a ninth of what it costs with all 114.
short_model() {
    awk '{n = substr($0, 23, 4) + 0} !/^ATOM/ || (n > 40 && n < 75)' \
        "$demo/two_domain.pdb" >"$1"
}

# same NAME DIR DIR...: runs whose draws, as they are now, are the same;
# `compared` then says so of all, since Python takes long to load.
same() {
    name=$1 folders=
    shift
    for run in "$@"; do
        n_kept=$((${n_kept:-0} + 1))
        mkdir -p kept/$n_kept
        cp "$run"/tra*.h5 kept/$n_kept # trace, trajectories
        folders="$folders kept/$n_kept"
    done
    echo "$name|$folders" >>kept/list
}
compared() {
    "$python" "$source/tests/cli/compare_runs.py" <kept/list || bad=1
}
