#!/bin/sh
# What every script of tests shares: sourced from the repository's folder, it enters
# a temporary folder, and offers functions that run tessera and print one line a
# check ("ok NAME", "not ok NAME", "skip NAME: reason"; tests/run.sh reads them).
# The output of a command is in out.txt and err.txt, and `bad` is 1 after a failure.
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
# the program alone, so that the others of its folder are not found in PATH
mkdir .bin && ln -s "$program" .bin/tessera && PATH=$work/.bin:$PATH

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

# needs_ranks WHAT: from here on tessera-mpi is in PATH, `$mpirun ...` starts ranks (by
# MPIRUN, such as mpiexec.mpich; default mpirun), and `ranks N COMMAND...` N of them.
needs_ranks() {
    mpirun=${MPIRUN:-mpirun}
    if ! command -v "$mpirun" >/dev/null || [ ! -e "$build/tessera-mpi" ]; then
        echo "skip $1: no $mpirun, or no $build/tessera-mpi"
        exit 0
    fi
    ln -s "$build/tessera-mpi" .bin
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    if "$mpirun" --version 2>/dev/null | grep -q "Open MPI"; then
        mpirun="$mpirun --oversubscribe --bind-to none --mca odls_base_sigkill_timeout 5"
    fi
}
ranks() {
    n_rank=$1
    shift
    $mpirun -np "$n_rank" "$@"
}

# has_other_processor WHAT: `env $other_processor COMMAND` runs as on a processor without
# fused multiply-add, for which the C library has versions of exp and sin that round
# otherwise. Where this processor has none, WHAT is skipped.
other_processor=GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4
has_other_processor() {
    grep -qw fma /proc/cpuinfo 2>/dev/null && return
    echo "skip $1: this processor has no fused multiply-add"
    false
}

# expect NAME STATUS PATTERN COMMAND...: the exit status of the command, and a
# pattern (grep -E) in its standard error, or with "STATUS>" in its output. A failure
# prints one message; the program alone prints its usage, and status 1 is an answer.
expect() {
    name=$1 want=${2%>} pattern=$3 where=err.txt
    [ "$want" = "$2" ] || where=out.txt
    shift 3
    "$@" >out.txt 2>err.txt </dev/null 3<&-
    got=$?
    if [ $got -ne "$want" ]; then
        echo "not ok $name: exit status $got, expected $want"
    elif [ -n "$pattern" ] && ! grep -qE -e "$pattern" $where; then
        echo "not ok $name: $where lacks '$pattern'"
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

# cases: a table on standard input. A row is a line, and goes on after a \ at its end:
#
#     NAME | STATUS PATTERN | COMMAND   one expect; with "STATUS>" for the output
#         NAME | TEST && TEST           indented: checks of what that command left
#     $ COMMAND                         a step between
#     > MORE                            more lines of the step or check before it
#     # remark
#
# A TEST is a command, or one of these, each to the end of the TEST:
#
#     out PATTERN, err PATTERN, in FILE PATTERN    grep -E in out.txt, err.txt, FILE
#     no out PATTERN ...                           and the pattern is not there
#     text PATTERN                                 in out.txt as one line of words
#     json EXPRESSION                              in Python, true of the JSON in out.txt
#         (or `json FILE:`, load("FILE")): its keys are attributes of d, its structures s
#
# ${variables} in names, patterns and expressions are expanded, as is all of a command.
cases() {
    row=
    while IFS= read -r next <&3 || [ -n "$row" ]; do
        while [ "$next" != "${next%\\}" ] && IFS= read -r more <&3; do
            next=${next%\\}${more#"${more%%[! ]*}"}
        done
        case $next in
        '> '*)
            row="$row
${next#??}"
            continue
            ;;
        esac
        case_of_row
        row=$next next=
    done 3<&0 </dev/null
}
case_of_row() {
    case $row in
    "" | "#"*) return ;;
    '$ '*)
        eval "${row#??}" 3<&-
        return
        ;;
    esac
    name=$(expand "${row%% | *}") rest=${row#* | }
    case $row in
    " "*)
        why=$(check_all "$rest" 2>&1) && why=
        name=${name#"${name%%[! ]*}"}
        if [ -z "$why" ]; then echo "ok $name"; return; fi
        echo "not ok $name"
        echo "$why" | sed 's/^/    /' | head -n 20
        bad=1
        ;;
    *)
        want=${rest%% *} pattern=${rest#"$want"} command=${rest#* | }
        pattern=${pattern%% | *}
        pattern=$(expand "${pattern# }")
        eval "expect \"\$name\" \"\$want\" \"\$pattern\" $command"
        ;;
    esac
}
expand() {
    case $1 in
    *'${'*) eval "printf '%s' \"$1\"" ;;
    *) printf '%s' "$1" ;;
    esac
}
# check_all TESTS: fails at the first that fails, with words.
check_all() {
    _tests=$1
    while [ -n "$_tests" ]; do
        _one=${_tests%% && *} _file=out.txt _not=
        [ "$_one" != "$_tests" ] && _tests=${_tests#* && } || _tests=
        case $_one in
        "no "*) _not=! _one=${_one#no } ;;
        esac
        _pattern=$(expand "${_one#* }")
        case $_one in
        "out "*) ;;
        "err "*) _file=err.txt ;;
        "text "*) tr -s ' \n' ' ' <out.txt >.text && _file=.text ;;
        "in "*) eval "_file=${_pattern%% *}" && _pattern=${_pattern#* } ;;
        "json "*) judge "$_pattern" || return; continue ;;
        *) # a command, to the first && that is not within quotes
            while ! (eval "true || $_one") 2>/dev/null && [ -n "$_tests" ]; do
                _one="$_one && ${_tests%% && *}"
                case $_tests in *" && "*) _tests=${_tests#* && } ;; *) _tests= ;; esac
            done
            eval "$_one" && continue
            echo "fails: $_one"
            return 1
            ;;
        esac
        if grep -aqE -e "$_pattern" "$_file"; then _found=; else _found=!; fi
        [ "$_found" = "$_not" ] && continue
        echo "$_file ${_not:+has}${_found:+lacks} '$_pattern'"
        return 1
    done
}
judge() {
    "$python" -c '
import json, math, re, sys
class Object(dict):
    __getattr__ = dict.__getitem__
def load(path):
    return json.load(open(path), object_hook=Object)
file, text = re.match(r"(?:([\w./]+\.json): )?(.*)", sys.argv[1], re.S).groups()
d = load(file or "out.txt")
s = d.get("structures") if isinstance(d, dict) else None
def near(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b))
sys.exit(0 if eval(text) else "not so: %s\n%.1000s" % (text, json.dumps(d)))' "$1"
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

# without_side_chains: the demo's model without centres of side chains, which are no atoms.
without_side_chains() { grep -v "^ATOM.* SC " "$demo/two_domain.pdb"; }

# shift_x BY [FIRST [CHAIN]]: the atoms of standard input, those from residue FIRST on
# moved along x, with another chain's letter.
shift_x() {
    awk -v by="$1" -v first="${2:--9999}" -v chain="$3" '/^ATOM/ {
        if (substr($0, 23, 4) + 0 >= first)
            $0 = sprintf("%s%8.3f%s", substr($0, 1, 30), substr($0, 31, 8) + by, substr($0, 39))
        print chain == "" ? $0 : substr($0, 1, 21) chain substr($0, 23)
    }'
}

# flat_map FILE MODEL STEP MARGIN [VALUE]: voxels of one value in a box around the model.
flat_map() {
    awk -v h="$3" -v margin="$4" -v value="${5:-0}" '
        /^ATOM/ {for (c = 1; c < 4; c++) {
            x = substr($0, 23 + 8 * c, 8) + 0
            if (!m || x < low[c]) low[c] = x
            if (!m || x > high[c]) high[c] = x
        } m++}
        END {total = 1
            for (c = 1; c < 4; c++) {
                n[c] = int((high[c] - low[c] + 2 * margin) / h) + 1
                total *= n[c]
            }
            print "object 1 class gridpositions counts", n[1], n[2], n[3]
            print "origin", int(low[1]) - margin, int(low[2]) - margin, int(low[3]) - margin
            printf "delta %g 0 0\ndelta 0 %g 0\ndelta 0 0 %g\n", h, h, h
            print "object 3 class array type double rank 0 items", total, "data follows"
            for (i = 0; i < total; i++) print value}' "$2" >"$1"
}

# spread FILE RESIDUE ATOM RESIDUE ATOM CONDITION: the largest less the least distance of
# two atoms over the models, as "< 0.01"; a residue is its number, or "NAME CHAIN NUMBER".
spread() {
    awk -v a="$2" -v m="$3" -v b="$4" -v n="$5" '
        function is(who, name, key) {
            key = substr($0, 18, 3) " " substr($0, 22, 1) " " substr($0, 23, 4) + 0
            sub(/^ */, "", key)
            return $3 == name && (who == key || who == substr($0, 23, 4) + 0)
        }
        function put(to) {for (k = 0; k < 3; k++) to[k] = substr($0, 31 + 8 * k, 8)}
        /^(ATOM|HETATM)/ {if (is(a, m)) {put(p); has_a = 1} if (is(b, n)) {put(q); has_b = 1}}
        /^ENDMDL/ {d = sqrt((p[0] - q[0]) ^ 2 + (p[1] - q[1]) ^ 2 + (p[2] - q[2]) ^ 2)
            if (!models++) low = high = d
            if (d < low) low = d; if (d > high) high = d}
        END {d = high - low
            printf "varies by %g A in %d models\n", d, models
            exit !(models > 1 && has_a && has_b && d '"$6"')}' "$1"
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

# soak NAME COMMAND MODE STOPS SEED [LIBRARY]: soak.py, which stops COMMAND again and again.
soak() {
    what=$1
    shift
    if "$python" "$source/tests/cli/soak.py" "$program" "soak-$what" "$@" >out.txt 2>&1; then
        echo "ok $what: $(tail -n 1 out.txt)"
    else
        echo "not ok $what"
        sed 's/^/    /' out.txt
        bad=1
    fi
}
