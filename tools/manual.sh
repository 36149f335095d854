#!/bin/sh
# tools/manual.sh PROGRAM FOLDER: manual pages and completion for bash, zsh and
# fish, from the tables of options that --help prints (PROGRAM COMMAND --help
# --table). The pages' date is SOURCE_DATE_EPOCH, else that of CHANGELOG.md.
set -eu
program=$1 out=$2
version=$(cat version.txt)
date=$(sed -n "s/^## $version (\(.*\))$/\1/p" CHANGELOG.md)
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then # GNU, then BSD
    date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F 2>/dev/null ||
        date -u -r "$SOURCE_DATE_EPOCH" +%F)
fi
mkdir -p "$out"
rm -f "$out"/*
for name in $("$program" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'); do
    "$program" "$name" --help --table
done >"$out/table"
awk -F '\t' '$1 == "command" {print $2 "\t" $4}' "$out/table" >"$out/commands"

# ---- manual pages ----

heading() { # PAGE SECTION
    printf '.TH %s %s %s "tessera %s" "tessera"\n' \
        "$(echo "$1" | tr a-z A-Z)" "$2" "$date" "$version"
}
# Text for roff: minus signs and backslashes as typed.
escape='function roff(s) {
    gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); gsub(/\047/, "\\(aq", s)
    return s ~ /^[.]/ ? "\\&" s : s
}
function fill(s,   n, word, i, line) { # lines of at most 79 characters
    n = split(s, word, " ")
    line = roff(word[1])
    for (i = 2; i <= n; i++) {
        if (length(line) + length(roff(word[i])) < 79)
            line = line " " roff(word[i])
        else {
            print line
            line = roff(word[i])
        }
    }
    print line
}'
for name in $(cut -f 1 "$out/commands"); do
    {
        heading "tessera-$name" 1
        awk -F '\t' -v name="$name" "$escape"'
        $1 == "command" {
            mine = $2 == name
            if (!mine) next
            print ".SH NAME"
            fill("tessera-" name " - " $4)
            print ".SH SYNOPSIS"
            print ".B tessera " name
            fill("[OPTION]... " $3)
            print ".SH DESCRIPTION"
            doc = $4
        }
        !mine { next }
        $1 == "about" && $2 == "" { print ".PP"; next }
        $1 == "about" { has_about = 1; fill($2) }
        $1 == "option" {
            if (!n++ && !has_about) fill(doc)
            if (n == 1) print ".SH OPTIONS"
            print ".TP"
            print ($3 != "" ? "\\fB\\-" $3 "\\fR, " : "") "\\fB" \
                roff("--" $2) "\\fR" ($4 != "" ? " \\fI" roff($4) "\\fR" : "")
            fill($5)
        }
        $1 == "key" && !keys++ {
            print ".SH CONFIGURATION\nThe keys of CONFIG are described in\n" \
                ".BR tessera\\-config (5)."
        }' "$out/table"
        printf '.SH SEE ALSO\n.BR tessera (1)\n'
    } >"$out/tessera-$name.1"
done
{
    heading tessera-config 5
    cat <<'END'
.SH NAME
tessera\-config \- keys of a configuration of tessera
.SH DESCRIPTION
A configuration is a YAML file. Every key but
.B structure
has a default. Paths are relative to the file. Columns: key, default, unit,
meaning and allowed values.
.PP
.nf
END
    "$program" run --help all | sed '1,/^Keys of CONFIG/d' |
        awk "$escape"'{ s = $0; lead = s; sub(/[^ ].*/, "", lead)
            sub(/^ +/, "", s); print lead == "" ? roff(s) : "\\&" lead roff(s) }'
    printf '.fi\n.SH SEE ALSO\n.BR tessera\\-run (1)\n'
} >"$out/tessera-config.5"
{
    heading tessera 1
    cat <<'END'
.SH NAME
tessera \- Bayesian inference of protein structure from scattering and maps
.SH SYNOPSIS
.B tessera
.I COMMAND
[\fIOPTION\fR]... [\fIARGUMENT\fR]...
.SH DESCRIPTION
tessera samples the structures of a flexible protein that agree with
small\-angle scattering curves of X\-rays and neutrons, distances and density
maps.
.B tessera solve
.I MODEL CURVE
goes from a model and a curve to an answer.
Each command has a page of its own.
.SH COMMANDS
END
    awk -F '\t' "$escape"'{ print ".TP\n.BR tessera\\-" $1 " (1)"; fill($2) }' \
        "$out/commands"
    cat <<'END'
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
The answer is no: not converged, or a failed self\-test.
.TP
.B 64, 65, 66
Wrong usage, bad data, missing input.
.TP
.B 70, 74
An internal error, a failed input or output.
.TP
.B 75
Interrupted; the same command, or
.BR tessera\-resume (1),
continues.
.TP
.B 78
A bad configuration.
.SH ENVIRONMENT
.TP
.B TESSERA_DATA
Folder of the trained tables, instead of share/tessera/data of a folder above
the program.
.TP
.B OCL_ICD_VENDORS
Folder or file of the OpenCL drivers that the loader offers.
.SH SEE ALSO
.BR tessera\-config (5)
END
} >"$out/tessera.1"

# ---- completion ----

# Columns of an option in the table: 2 name, 3 letter, 4 argument, 5 meaning,
# 6 words. An argument is a file if its name is among these.
files='^(FILE|DIR|PATH|DAT|MAP|MASK|SVG|JSON)$'
words='function words(   s) { # of the argument of an option
    s = $6
    if ($4 == "DEVICE") s = "auto gpu cpu reference"
    return s
}'
keys=$(awk '$1 == "key" {print $2 "="}' "$out/table" | sort -u | tr '\n' ' ')
names=$(cut -f 1 "$out/commands" | tr '\n' ' ')
{
    cat <<END
# bash completion for tessera; made by tools/manual.sh
_tessera() {
    local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]}
    local options= words= keys="$keys"
    # readline makes "=" a word of its own
    [[ \$before == "=" ]] && before=\${COMP_WORDS[COMP_CWORD - 2]}
    [[ \$word == "=" ]] && word=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=(\$(compgen -W "${names}help --help --version" -- "\$word"))
        return
    fi
    case \${COMP_WORDS[1]} in
    help) ((COMP_CWORD == 2)) && words="$names" ;;
END
    awk -F '\t' "$words"'
    function finish() {
        if (all != "") print "        *) options=\"" all "\" ;;\n        esac ;;"
        all = ""
    }
    $1 == "command" { finish(); print "    " $2 ")\n        case $before in" }
    $1 == "option" {
        at = $3 != "" ? "-" $3 " | --" $2 : "--" $2
        all = all "--" $2 " "
        if ($4 == "KEY=VALUE") print "        " at ") words=$keys ;;"
        else if (words() != "") print "        " at ") words=\"" words() "\" ;;"
        else if ($4 ~ /'"$files"'/) print "        " at ") return ;; # a file"
        else if ($4 != "") print "        " at ") words=\" \" ;;"
    }
    END { finish() }' "$out/table"
    cat <<'END'
    esac
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
        compopt +o default 2>/dev/null
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    fi
    return 0
}
complete -o default -F _tessera tessera
END
} >"$out/tessera.bash"

{
    cat <<'END'
# fish completion for tessera; made by tools/manual.sh
complete -c tessera -n __fish_use_subcommand -x -a help
complete -c tessera -n __fish_use_subcommand -l version -d 'the version'
complete -c tessera -n __fish_use_subcommand -l help
END
    printf "set -l keys %s\n" "$keys"
    awk -F '\t' "$words"'
    function quoted(s) { gsub(/\047/, "\\\047", s); return "\047" s "\047" }
    FNR == NR { print "complete -c tessera -n \047__fish_use_subcommand; or " \
        "__fish_seen_subcommand_from help\047 -x -a " $1 " -d " quoted($2); next }
    $1 == "command" { name = $2 }
    $1 == "option" {
        print "complete -c tessera -n \047__fish_seen_subcommand_from " name \
            "\047 -l " $2 ($3 != "" ? " -s " $3 : "") \
            ($4 == "" ? "" : $4 == "KEY=VALUE" ? " -x -a \"$keys\"" : \
             words() != "" ? " -x -a " quoted(words()) : \
             $4 ~ /'"$files"'/ ? " -r -F" : " -x") " -d " quoted($5)
    }' "$out/commands" "$out/table"
} >"$out/tessera.fish"

{
    cat <<END
#compdef tessera
# zsh completion for tessera; made by tools/manual.sh
_tessera_keys() { compadd -S '' -- $keys; }
_tessera() {
    local -a commands
    commands=(
END
    awk -F '\t' 'function quoted(s) { gsub(/\047/, "\047\\\047\047", s)
        return "\047" s "\047" }
        { gsub(/:/, "\\:", $2); print "        " quoted($1 ":" $2) }' \
        "$out/commands"
    cat <<'END'
        'help:list the options of a command'
    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    shift words
    ((CURRENT--))
    case $words[1] in
    help) _describe command commands ;;
END
    awk -F '\t' "$words"'
    function quoted(s) { gsub(/\047/, "\047\\\047\047", s)
        return "\047" s "\047" }
    $1 == "command" { if (n++) print "            \047*:file:_files\047 ;;"
                      print "    " $2 ")\n        _arguments -s \\" }
    $1 == "option" {
        text = $5; gsub(/[:\]\[]/, "\\\\&", text)
        argument = $4; gsub(/[:=]/, " ", argument)
        value = $4 == "" ? "" : ":" argument ":" ($4 == "KEY=VALUE" ? \
            "_tessera_keys" : words() != "" ? "(" words() ")" : \
            $4 ~ /'"$files"'/ ? "_files" : " ")
        many = text ~ /may be repeated/ ? "*" : ""
        if ($3 != "")
            print "            " quoted(many "-" $3 "[" text "]" value) " \\"
        print "            " quoted(many "--" $2 "[" text "]" value) " \\"
    }
    END { print "            \047*:file:_files\047 ;;" }' "$out/table"
    printf '    esac\n}\n_tessera "$@"\n'
} >"$out/_tessera"
rm "$out/commands" "$out/table"
