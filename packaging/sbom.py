"""sbom.py WHEEL: what the wheel bundles, as SPDX 2.3 (ISO/IEC 5962) in JSON.

The document goes into the wheel, under .dist-info/sboms (PEP 770), and beside
it as WHEEL.spdx.json. Packages: tessera, each library that auditwheel copied
into NAME.libs, by the Debian package that it came from, and the libraries of
headers that are compiled in. The licences are those of third-party.md."""
import base64
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HEADERS = {"gemmi-dev": ("gemmi", "MPL-2.0"), "tao-pegtl-dev": ("PEGTL", "MIT"),
           "librandom123-dev": ("Random123", "BSD-3-Clause")}
# by the begin of the library's name; others: NOASSERTION
LICENCES = {"libgsl": "GPL-3.0-or-later", "libfftw3": "GPL-2.0-or-later",
            "libhdf5": "BSD-3-Clause", "libyaml": "MIT", "libz": "Zlib",
            "libOpenCL": "BSD-2-Clause OR Apache-2.0",
            "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
            "libgcc": "GPL-3.0-or-later WITH GCC-exception-3.1"}


def debian(*command):
    """The output of dpkg-query; '' where there is none."""
    try:
        return subprocess.run(["dpkg-query", *command], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def version_of(package):
    return debian("-W", "-f=${Version}\n", package).partition("\n")[0]


def entry(name, version, licence, purl=None, sha256=None):
    """A package of the document."""
    package = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
               "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
               "licenseConcluded": "NOASSERTION", "licenseDeclared": licence,
               "copyrightText": "NOASSERTION"}
    if version:
        package["versionInfo"] = version
    if sha256:
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    if purl:
        package["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER",
                                    "referenceType": "purl", "referenceLocator": purl}]
    return package


def debian_purl(package, version):
    return version and f"pkg:deb/debian/{package}@{version}".replace("+", "%2B")


def make(files):
    """The document. files: name -> bytes."""
    about = next(n for n in files if n.endswith(".dist-info/METADATA"))
    name, version = about.split("/")[0][:-len(".dist-info")].split("-")
    name = name.replace("_", "-")
    packages = [entry(name, version, "GPL-3.0-or-later", f"pkg:pypi/{name}@{version}")]
    links = [("SPDXRef-DOCUMENT", "DESCRIBES", packages[0]["SPDXID"])]

    def add(package, relation):
        packages.append(package)
        links.append((packages[0]["SPDXID"], relation, package["SPDXID"]))

    for path in sorted(n for n in files if re.match(r"[^/]*\.libs/.", n)):
        # auditwheel puts a hash before the ending: libgsl-1a2b3c4d.so.27
        library = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", path.split("/")[1])
        owner = debian("-S", "*/" + library).partition(":")[0]
        of_owner = version_of(owner) if owner else ""
        licence = next((l for begin, l in LICENCES.items()
                        if re.match(re.escape(begin) + r"[^a-zA-Z]", library)), "NOASSERTION")
        add(entry(library, of_owner, licence, debian_purl(owner, of_owner),
                  hashlib.sha256(files[path]).hexdigest()), "CONTAINS")
    for package, (of, licence) in HEADERS.items():
        of_package = version_of(package)
        add(entry(of, of_package, licence, debian_purl(package, of_package)), "STATIC_LINK")
    when = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0) or
                                               datetime.datetime.now().timestamp()),
                                           datetime.timezone.utc)
    content = hashlib.sha256(json.dumps(packages).encode()).hexdigest()[:32]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{name}-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{content}",
            "creationInfo": {"created": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": [f"Tool: {name}-sbom-{version}"]},
            "packages": packages,
            "relationships": [{"spdxElementId": a, "relationshipType": kind,
                               "relatedSpdxElement": b} for a, kind, b in links]}


def main(wheel):
    with zipfile.ZipFile(wheel) as file:
        infos = file.infolist()
        files = {i.filename: file.read(i) for i in infos}
    record = next(n for n in files if n.endswith(".dist-info/RECORD"))
    inside = record.replace("RECORD", "sboms/tessera.spdx.json")
    if inside in files:
        sys.exit(f"{wheel}: has a {inside} already")
    text = json.dumps(make(files), indent=1).encode() + b"\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
    rows = files[record].rstrip() + f"\n{inside},sha256={digest},{len(text)}\n".encode()
    with zipfile.ZipFile(wheel + ".new", "w", zipfile.ZIP_DEFLATED) as file:
        for info in infos:
            file.writestr(info, rows if info.filename == record else files[info.filename])
        file.writestr(zipfile.ZipInfo(inside, infos[-1].date_time), text,
                      zipfile.ZIP_DEFLATED)
    os.replace(wheel + ".new", wheel)
    Path(wheel.removesuffix(".whl") + ".spdx.json").write_bytes(text)


if __name__ == "__main__":
    main(sys.argv[1])
