#!/bin/sh
# make install: what it writes, that the tree can be moved, manual pages and completion
# in each shell, and that the program has the compiler's guards against exploits and no
# trace of the folder it was built in.
source=$PWD
build=${BUILD:-build}
case $build in
*/san-*)
    echo "skip install: a sanitizer's build"
    exit 0
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/    /' "$work/out"
    fi
}
has() { # NAME TOOL: whether the check NAME can run
    command -v "$2" >/dev/null || { echo "skip $1: no $2"; return 1; }
}
mkdir "$work/build"
cp -a "$build/src" "$build/tools" "$build/gen" "$build/embed" \
    "$build"/libtessera.* "$build"/tessera* "$work/build"
make_() { make -s --no-print-directory "$@" BUILD="$work/build" DESTDIR="$work/dest" PREFIX=/opt/t; }
check "make install" make_ install
to=$work/moved
mv "$work/dest/opt/t" "$to"
check "an installed tree can be moved, and starts its tools" \
    sh -c "env PATH='$to/bin:$PATH' tessera train --help &&
    env PATH='$to/bin:$PATH' tessera init configs/demo/two_domain.pdb"
mkdir -p "$work/dest/opt" && mv "$to" "$work/dest/opt/t"
check "make uninstall" make_ uninstall
check "  leaves no file" sh -c "! find '$work/dest' ! -type d | grep ."
make_ install >/dev/null 2>&1
to=$work/dest/opt/t

# ---- manual pages and completion ----

"$to/bin/tessera" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/tessera-\1.1/p' | sort >"$work/want"
(cd "$to/share/man/man1" && ls tessera-*) | sort >"$work/pages"
check "a manual page of each command" cmp "$work/want" "$work/pages"
check "  with its options" grep -q 'output.*FILE' "$to/share/man/man1/tessera-init.1"
check "keys of the configuration in a page" \
    grep -q 'time_limit' "$to/share/man/man5/tessera-config.5"
if has "mandoc -T lint" mandoc; then
    check "mandoc -T lint" mandoc -T lint "$to"/share/man/man?/*
fi
SOURCE_DATE_EPOCH=86400 tools/manual.sh "$to/bin/tessera" "$work/dated"
check "the date of the pages is SOURCE_DATE_EPOCH" \
    grep -q '^.TH TESSERA 1 1970-01-02' "$work/dated/tessera.1"

cat >"$work/complete.bash" <<'END'
. "$1"
try() { # WORDS WANT: completions of the last of the words
    COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    [[ $1 == *" " ]] && COMP_WORDS+=("") && ((COMP_CWORD++))
    _tessera
    [[ ${COMPREPLY[*]} == "$2" ]] || { echo "'$1': ${COMPREPLY[*]}, not $2"; bad=1; }
}
bad=0
try "tessera sol" solve
try "tessera help tr" train
try "tessera init --pi" --picture
try "tessera profile --bodies " "atoms two one"
try "tessera run --device = gp" gpu
try "tessera run --set sampler.dr" sampler.draws=
try "tessera solve --states " ""
exit $bad
END
cat >"$work/complete.fish" <<'END'
source $argv[1]
function try
    set -l got (complete -C $argv[1] | string split -f 1 \t)
    test "$got" = "$argv[2]"; or begin
        echo "'$argv[1]': $got, not $argv[2]"
        exit 1
    end
end
try "tessera sol" solve
try "tessera help tr" train
try "tessera init --pi" --picture
try "tessera profile --bodies " "atoms one two"
try "tessera run --device gp" gpu
try "tessera run --set sampler.dr" sampler.draws=
END
cat >"$work/complete.zsh" <<'END'
# types into a shell; each answer is awaited
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; print re''ady"
zpty -r -m z line '*ready*'
try() { print -r -- "$1"; zpty -w -n z "$1"$'\t'; zpty -r -m z line "*$2*"; }
try 'tessera sol' 've '
try ' --sam' 'ple '
try 'x; tessera help tr' 'ain '
try '; tessera profile --bodies at' 'oms '
try '; tessera run --device gp' 'u '
try ' --set sampler.dr' 'aws='
zpty -d z
END
share=$to/share
for shell in bash fish zsh; do
    case $shell in
    bash) file=$share/bash-completion/completions/tessera ;;
    fish) file=$share/fish/vendor_completions.d/tessera.fish ;;
    zsh) file=$share/zsh/site-functions ;;
    esac
    if has "completion in $shell" $shell; then
        check "completion in $shell" env HOME="$work" TERM=dumb timeout 30 \
            $shell "$work/complete.$shell" "$file"
    fi
done

# ---- the program ----

program=$to/bin/tessera
if ! has "what the program is built with" readelf; then
    exit 0
fi
for file in "$program" "$to/lib/libtessera.so.0"; do
    strip --strip-debug -o "$work/stripped" "$file"
    check "no folder of the build in ${file##*/}" sh -c "! grep -aq '$source' '$work/stripped'"
done
guard() { # NAME PATTERN readelf's OPTION...
    name=$1 pattern=$2
    shift 2
    check "$name" sh -c "readelf -W $* '$program' | grep -qE -e '$pattern'"
}
guard "at a random address (PIE)" "Type: +DYN" -h
guard "tables that are read-only once loaded (RELRO)" GNU_RELRO -l
guard "and all of them (BIND_NOW)" "BIND_NOW|Flags: NOW" -d
guard "a stack that cannot be run" "GNU_STACK .* RW +0x" -l
guard "a guarded stack" "__stack_chk_fail" --dyn-syms
case " ${CFLAGS--O2} " in
*" -O"[1-9sgf]*) guard "checked buffers (_FORTIFY_SOURCE)" "__snprintf_chk" --dyn-syms ;;
*) echo "skip checked buffers: not optimised" ;;
esac
