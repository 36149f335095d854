#!/bin/sh
# The list of what a wheel bundles (packaging/sbom.py): SPDX 2.3 by the rules of spdx-tools, in
# the wheel and beside it, with the versions of this machine's packages. The wheel is a small
# one, with libraries that the program links under names as auditwheel gives them.
. tests/cli/expect.sh
needs_venv "the list of what a wheel bundles"

cat >wheel.py <<'END'
import re
import subprocess
import sys
import zipfile

linked = dict(re.findall(r"(\S+) => (/\S+)", subprocess.check_output(["ldd", sys.argv[1]], text=True)))
with zipfile.ZipFile("tessera_saxs-1.2-py3-none-any.whl", "w") as file:
    about = "tessera_saxs-1.2.dist-info/"
    for name, path in linked.items():
        if re.match("lib(gsl|z|hdf5_serial)[.]", name):
            file.write(path, "tessera_saxs.libs/" + name.replace(".so", "-0a1b2c3d.so"))
    file.writestr("tessera_saxs.libs/libother-0a1b2c3d.so.1", "x")
    file.writestr(about + "METADATA", "Name: tessera-saxs\nVersion: 1.2\n")
    file.writestr(about + "RECORD", "%sRECORD,,\n" % about)
END
cat >verify.py <<'END'
import base64
import hashlib
import json
import zipfile
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

name = "tessera_saxs-1.2-py3-none-any.spdx.json"
messages = validate_full_spdx_document(parse_file(name))
assert not messages, messages
wheel = zipfile.ZipFile(name.replace(".spdx.json", ".whl"))
inside = "tessera_saxs-1.2.dist-info/sboms/tessera.spdx.json"
text = wheel.read(inside)
assert text == open(name, "rb").read()
digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
rows = wheel.read("tessera_saxs-1.2.dist-info/RECORD").decode().splitlines()
assert "%s,sha256=%s,%d" % (inside, digest, len(text)) in rows, rows
assert len({i.filename for i in wheel.infolist()}) == len(wheel.infolist()) == len(rows) + \
    sum(n.startswith("tessera_saxs.libs/") or n.endswith("METADATA") for n in wheel.namelist())
packages = {p["name"]: p for p in json.loads(text)["packages"]}
gsl = next(p for n, p in packages.items() if n.startswith("libgsl.so"))
assert gsl["licenseDeclared"] == "GPL-3.0-or-later" and gsl.get("versionInfo", "2")[0] == "2", gsl
assert gsl["checksums"][0]["checksumValue"] == hashlib.sha256(next(
    wheel.read(n) for n in wheel.namelist() if "libgsl" in n)).hexdigest()
assert packages["libother.so.1"]["licenseDeclared"] == "NOASSERTION"
assert {"gemmi", "PEGTL", "Random123", "tessera-saxs"} <= set(packages)
END
"$python" wheel.py "$program"
check "a document is made" "$python" "$source/packaging/sbom.py" tessera_saxs-1.2-py3-none-any.whl
check "it is SPDX, and says what the wheel holds" "$python" verify.py
check "a second one is refused" sh -c '! "$0" "$1" tessera_saxs-1.2-py3-none-any.whl 2>/dev/null' \
    "$python" "$source/packaging/sbom.py"
exit $bad
