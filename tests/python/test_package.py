"""The installed package: the command, what it links and brings, the drivers
that it finds, and the same bits as of the build tree."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tessera_saxs
from tessera_saxs import _devices

PACKAGE = Path(tessera_saxs.__file__).parent
NATIVE = PACKAGE / "_native"
TESSERA = Path(sys.executable).parent / "tessera"
ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
LOADER = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
LONG = """\
structure: {sequence: AAAAAAAAAAAA}
sampler: {chains: 2, start: file, draws: 10000000, thin: 200}
device: {use: reference, threads: 1}
"""

pytestmark = pytest.mark.skipif(
    not TESSERA.exists() or not NATIVE.exists(),
    reason="the package is not installed (make check-wheel)")


def run(*words, **environment):
    """The command, in an environment without variables of the loader."""
    kept = {name: os.environ[name] for name in os.environ.keys() - LOADER}
    return subprocess.run([TESSERA, *map(str, words)], text=True,
                          capture_output=True, env={**kept, **environment})


def test_is_not_the_source_tree():
    assert ROOT / "python" not in PACKAGE.parents


@pytest.mark.parametrize("words, status", [
    (["--version"], 0), (["profile", "--help"], 0), (["train", "--help"], 0),
    (["bench", "--help"], 0), (["frobnicate"], 64), (["profile", "no.pdb"], 66)])
def test_output_and_status_are_those_of_the_program(words, status):
    direct = subprocess.run([NATIVE / "bin/tessera", *words],
                            capture_output=True, text=True)
    wrapped = run(*words, OCL_ICD_VENDORS="/none")
    assert direct.returncode == wrapped.returncode == status
    assert direct.stdout == wrapped.stdout
    assert direct.stderr == wrapped.stderr


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version
    assert f"tessera {version('tessera-saxs')}" in run("--version").stdout


def test_signals_reach_the_program(tmp_path):
    (tmp_path / "long.yaml").write_text(LONG)
    child = subprocess.Popen([TESSERA, "run", "long.yaml", "-o", "out"],
                             cwd=tmp_path, stderr=subprocess.DEVNULL)
    until = time.time() + 60
    while not (tmp_path / "out/draws.log").exists() and time.time() < until:
        time.sleep(0.1)
    file = os.readlink(f"/proc/{child.pid}/exe")
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 75
    assert file == str(NATIVE / "bin/tessera")
    assert run("status", tmp_path / "out").returncode == 0


def test_libraries_are_those_of_the_package_or_of_every_linux():
    """The second are the list of PEP 600 for manylinux."""
    everywhere = re.compile(r"(linux-vdso|ld-linux-x86-64|lib(c|m|z|dl|rt|pthread"
                            r"|resolv|gcc_s|stdc\+\+))\.so[.\d]*$")
    libraries = list(PACKAGE.parent.glob("tessera_saxs.libs/*"))
    if not libraries:
        pytest.skip("a wheel that auditwheel has not repaired")
    for file in [*(NATIVE / "bin").iterdir(), *(NATIVE / "lib").iterdir()]:
        found = subprocess.check_output(["ldd", file], text=True)
        assert "not found" not in found
        for path in re.findall(r"^\s(?:.* => )?(\S+) \(0x", found, re.M):
            assert (Path(os.path.realpath(path)) in libraries or
                    everywhere.match(os.path.basename(path))), (file, path)


def test_licences_of_all_that_the_wheel_holds():
    licences = {file.name for file in (NATIVE / "share/licenses").iterdir()}
    assert {"gemmi-dev", "tao-pegtl-dev", "librandom123-dev"} < licences
    metadata = next(PACKAGE.parent.glob("tessera_saxs-*.dist-info"))
    assert (metadata / "licenses/LICENSE").stat().st_size > 30000
    for parts in metadata.glob("sboms/auditwheel.cdx.json"):
        names = {part["name"] for part in json.loads(parts.read_text())[
            "components"] if part["purl"].startswith("pkg:deb")}
        assert names and names <= licences


def test_curves_have_the_bits_of_build_tree_and_installation(folder, tmp_path):
    """Library and program, which are started in a folder without tables."""
    if not (BUILD / "libtessera.so.0").exists():
        pytest.skip("no build tree")
    subprocess.run(["make", "-s", "-C", ROOT, "install",
                    f"DESTDIR={tmp_path}", "PREFIX=/usr"], check=True)
    code = ("import numpy, sys, tessera_saxs\nprint(tessera_saxs.profile("
            "sys.argv[1], numpy.linspace(0, 0.3, 101)).tobytes().hex())")
    got = []
    for library, program in ((NATIVE / "lib/libtessera.so.0", TESSERA),
                             (BUILD / "libtessera.so.0", BUILD / "tessera"),
                             (tmp_path / "usr/lib/libtessera.so.0",
                              tmp_path / "usr/bin/tessera")):
        got.append([subprocess.check_output(
            [sys.executable, "-c", code, folder / "atoms.pdb"], cwd=tmp_path,
            env={**os.environ, "TESSERA_LIBRARY": str(library)})])
        for words in (["atoms.pdb"], ["model.pdb", "--bodies", "two"]):
            got[-1].append(subprocess.check_output(
                [program, "profile", *words, "--data", "exp.dat", "--json"],
                cwd=folder))
            got[-1][-1] = re.sub(rb'_seconds": [^,}]+', b"", got[-1][-1])
    assert len(got[0][0]) > 1000
    assert got[0] == got[1] == got[2]


@pytest.fixture
def vendors(tmp_path, monkeypatch):
    """A folder in the place of /etc/OpenCL/vendors, and an empty cache."""
    (tmp_path / "vendors").mkdir()
    monkeypatch.setattr(_devices, "_SYSTEM", tmp_path / "vendors")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in LOADER:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "vendors"


@pytest.fixture
def pocl(monkeypatch):
    """A driver that pip has installed."""
    monkeypatch.setattr(_devices, "_pocl", lambda: {"pocl.icd": "/x/libpocl.so"})
    monkeypatch.setattr(_devices, "_known_to_pocl", lambda: True)
    return "/x/libpocl.so"


def drivers():
    """What the loader reads."""
    return {path.name: path.read_text() for path in
            Path(os.environ.get("OCL_ICD_VENDORS", "/none")).glob("*.icd")}


def test_a_driver_of_pip_joins_those_of_the_system(vendors, pocl):
    (vendors / "gpu.icd").write_text("libgpu.so.1\n")
    assert _devices.prepare() is None
    assert drivers().items() >= {"gpu.icd": "libgpu.so.1\n",
                                 "pocl.icd": pocl}.items()


def test_pocl_of_the_system_is_enough(vendors, pocl):
    (vendors / "pocl.icd").write_text("libpocl.so.2\n")
    _devices.prepare()
    assert pocl not in drivers().values()


def test_a_home_that_cannot_be_written(vendors, pocl, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    _devices.prepare()
    assert drivers()["pocl.icd"] == pocl


def test_what_the_user_sets_stays(vendors, pocl, monkeypatch):
    monkeypatch.setenv("OCL_ICD_VENDORS", "/mine")
    _devices.prepare()
    assert os.environ["OCL_ICD_VENDORS"] == "/mine"


@pytest.mark.parametrize("vendor, family, known", [
    ("AuthenticAMD", 25, True), ("AuthenticAMD", 26, False),
    ("GenuineIntel", 6, True), ("GenuineIntel", 18, False)])
def test_processors_that_pocl_knows(monkeypatch, vendor, family, known):
    text = f"vendor_id\t: {vendor}\ncpu family\t: {family}\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert _devices._known_to_pocl() is known


def test_pocl_of_pip_passes_the_self_test(vendors):
    pytest.importorskip("pocl_binary_distribution")
    remark = _devices.prepare()
    if remark:
        assert "cpu-intel" in remark and drivers() == {}
        pytest.skip(remark)
    result = run("devices", OCL_ICD_VENDORS=os.environ["OCL_ICD_VENDORS"])
    assert "self-test passed" in result.stdout, result.stderr
    assert result.returncode == 0


def test_drivers_of_the_system_are_found():
    if not list(Path("/etc/OpenCL/vendors").glob("*.icd")):
        pytest.skip("the system has no OpenCL driver")
    result = run("devices")
    assert result.returncode == 0, result.stderr
    assert "self-test passed" in result.stdout


def test_no_device_is_said_once_and_reference_runs(folder, tmp_path):
    (tmp_path / "short.yaml").write_text(
        f"structure: {{file: {folder}/model.pdb, flexible: ['A:51-64']}}\n"
        f"data: [{{file: {folder}/exp.dat}}]\ncontrast: {{c2: 0}}\n"
        "sampler: {chains: 2, warmup: 20, draws: 6, thin: 2}\n")
    result = run("run", tmp_path / "short.yaml", "-o", tmp_path / "out",
                 OCL_ICD_VENDORS="/none")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("uses reference") == 1
    assert run("devices", OCL_ICD_VENDORS="/none").returncode == 74
