#!/bin/sh
# Files of strangers: their names and words stay text in pages, pictures, terminals and
# suggested commands; their sizes do not fill the memory; their paths lead nowhere else.
# docs/files.md lists what is checked where.
. tests/cli/expect.sh

check "a run" "$source/tests/fuzz/seeds.sh" "$program" made
cp -r made/runs/* .
few="--states 1 --time-limit 1 --device reference --threads 1 --set model_error.learn=none"
for set in warmup=2 draws=4 chains=2 temperatures=2 start=file; do
    few="$few --set sampler.$set"
done

# ---- HTML ----
page='<img src=x onerror=alert(1)>'
awk '/^ATOM/ {print substr($0, 1, 21) "<" substr($0, 23)}' model.pdb >"$page.pdb"
cp curve.dat "$page.dat"
sed "s/ A / <u> /" made/seeds/cif/draws.cif >marked.cif
cat >mark.py <<'END'
import glob
import sys

marks = sys.argv[2:]
pages = [f for kind in ("html", "svg") for f in glob.glob(sys.argv[1] + "/**/*." + kind, recursive=True)]
assert pages
for name in pages:
    text = open(name, encoding="utf-8").read()
    for mark in marks:
        assert mark not in text, (name, mark)
assert any("&lt;" in open(name).read() for name in pages)
END
cases <<'END'
names of files and chains with tags | 0 | tessera solve "$page.pdb" "$page.dat" -o tags $few
    are text in the page and the pictures | "$python" mark.py tags "<img src=x" "chain <"
two runs with such names | 0 | tessera compare tags/1 tags/1 -o tags/two.svg
    are text in the picture | "$python" mark.py tags "<img src=x" "chain <"
$ cp -r tags/1 "$page"; mkdir out
folders with tags | 0 | tessera report "$page" -o out
    are text in the page | "$python" mark.py out "<img src=x" "chain <"
END

# ---- terminals ----
esc=$(printf 'r\033[2J\033]0;x\007\302\2332Jn')
cp -r ended "$esc"
for kind in pdb dat mrc; do
    case $kind in pdb) from=model ;; dat) from=curve ;; mrc) from=map ;; esac
    cp $from.$kind "$esc.$kind"
done
printf 'ATOM      1  CA  \033[2  A   1       1.000   1.0\033[   1.000  1.00  0.00           C\n' >esc.pdb
{ printf '# \033]0;x\007 q [1/nm]\n'; sed 's/^0.05[^ ]*/\033[2J/' curve.dat; } >esc.dat
printf 'name: "\\e[2J"\n"\\e[2J": 1\n' >esc.yaml
cat >terminal.py <<'END'
"""terminal.py COMMAND...: runs it with a terminal for standard output and standard error, and
fails if the terminal gets a control character other than those of lines and progress."""
import os
import pty
import re
import subprocess
import sys

ours, theirs = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
os.close(theirs)
got = b""
try:
    while piece := os.read(ours, 65536):
        got += piece
except OSError: # the end
    pass
child.wait()
bad = re.findall(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]", got)
sys.exit(("%s in %s" % (set(bad), got)) if bad or not got else 0)
END
while read -r words; do
    set --
    for word in $words; do
        case $word in @*) word=$esc${word#@} ;; esac
        set -- "$@" "$word"
    done
    check "no control characters: $words" "$python" terminal.py tessera "$@" </dev/null
done <<'END'
status @
summary @
diagnose @
compare @ @
report @
export @ --format csv
reweight @
map cc @ -r 8 --device reference --map @.mrc
map fsc @.mrc @.mrc
profile @.pdb --data @.dat --device reference
profile esc.pdb --data esc.dat --device reference
profile @.pdb --data esc.dat --device reference
check esc.yaml
init @.pdb @.dat
resume @ --draws 8 --device reference
check @/nothing
@
END

# ---- shells ----
mkdir shell
odd='a; touch pwned; $(touch pwned) `touch pwned` '\''"\'
cp model.pdb "shell/$odd.pdb"
cat >shell.py <<'END'
import re
import shlex
import sys

lines = [l for l in open("out.txt").read().splitlines() if re.match(" +tessera resume ", l)]
assert lines, open("out.txt").read()
assert shlex.split(lines[0], comments=True)[:3] == ["tessera", "resume", sys.argv[1]], lines
END
cases <<'END'
a name with all that a shell reads | 0 | tessera solve "shell/$odd.pdb" curve.dat -o "shell/$odd" $few
    is one word of the suggested command | "$python" shell.py "shell/$odd/1"
    and nothing ran | test ! -e pwned -a ! -e shell/pwned
END

# ---- sizes ----
"$python" - <<'END'
import gzip
import struct

def write(name, *parts):
    with open(name, "wb") as file:
        for part in parts:
            file.write(part)

def record(content, order="<"):
    return struct.pack(order + "i", len(content)) + content + struct.pack(order + "i", len(content))

head = [0] * 20
head[0] = head[3] = 2**31 - 1
dcd = record(b"CORD" + struct.pack("<20i", *head)) + record(struct.pack("<i", 0))
write("atoms.dcd", dcd, record(struct.pack("<i", 2**31 - 1)), b"\0" * 100)
write("minus.dcd", dcd, record(struct.pack("<i", -1)), b"\0" * 100)
write("titles.dcd", record(b"CORD" + struct.pack("<20i", *head)), struct.pack("<i", 2**31 - 1))
header = struct.pack("<10i3f3f", 2**15 - 1, 2**15 - 1, 2**15 - 1, 2, 0, 0, 0, 1, 1, 1, 9, 9, 9, 90, 90, 90)
write("claim.mrc", header, struct.pack("<3i", 1, 2, 3), b"\0" * 140, b"MAP DD\0\0".ljust(816, b"\0"))
extended = bytearray(open("map.mrc", "rb").read())
extended[92:96] = struct.pack("<i", 2**31 - 1)
write("extended.mrc", extended)
zeros = gzip.compress(bytes(1 << 25))
for kind in "yaml", "dat", "json":
    write("bomb.%s.gz" % kind, zeros)
# 16 levels of 16 aliases each
write("aliases.yaml", "".join("k%d: &a%d [%s]\n" % (k, k, ", ".join(["*a%d" % (k - 1)] * 16) if k else "1")
                              for k in range(16)).encode())
END
# With 3 GiB of address space, a size that is believed ends in "out of memory".
small() { (ulimit -v 3000000 && exec "$@"); }
frames="map cc model.pdb --map map.mrc -r 8 --device reference --trajectory"
cases <<'END'
voxels beyond the file | 65 ends within | small tessera map fsc claim.mrc map.mrc
a header beyond the file | 65 ends within|extended | small tessera map fsc extended.mrc map.mrc
atoms beyond the file | 65 atoms.dcd | small tessera $frames atoms.dcd
a negative number of atoms | 65 minus.dcd | small tessera $frames minus.dcd
titles beyond the file | 65 titles.dcd | small tessera $frames titles.dcd
a packed configuration | 78 bomb.yaml.gz.*more than 16 MiB | small tessera check bomb.yaml.gz
aliases of aliases | 78 aliases | small tessera check aliases.yaml
a packed curve | 65 bomb.dat.gz | small tessera profile model.pdb --data bomb.dat.gz --device reference
packed predicted errors | 65 bomb.json.gz | small tessera init model.pdb --pae bomb.json.gz
END

# ---- paths ----
sed -i "s|^name: .*|name: ../../elsewhere|" killed/config.yaml
cp -r ended moved
sed -i "s|directory: .*|directory: $work/elsewhere|" moved/config.yaml
ln -s ../curve.dat ended/report.html
cases <<'END'
a run whose name is a path | 78 cannot name a folder | tessera resume killed --draws 50000
a run whose configuration names another folder | 0 | tessera resume moved --draws 7 --device reference
    goes on where it is | test ! -e elsewhere && tessera status moved | grep -q "7 of 7"
a page that is a link to a stranger's file | 64 not from tessera | small tessera report ended
    is not written through | cmp -s curve.dat made/runs/curve.dat
END
exit $bad
