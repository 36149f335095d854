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
TESSERA = Path(sys.executable).parent / "tessera"
NATIVE = PACKAGE / "_native"
ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
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
    loader = ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH")
    kept = {name: os.environ[name] for name in os.environ.keys() - loader}
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
    wrapped = run(*words)
    assert direct.returncode == wrapped.returncode == status
    assert direct.stdout == wrapped.stdout
    assert direct.stderr == wrapped.stderr.split("a driver that does\n")[-1]


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version
    assert f"tessera {version('tessera-saxs')}" in run("--version").stdout


def test_signals_reach_the_program(tmp_path):
    (tmp_path / "long.yaml").write_text(LONG)
    child = subprocess.Popen([TESSERA, "run", "long.yaml", "-o", "out"],
                             cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until = time.time() + 60
    while not (tmp_path / "out/draws.log").exists() and time.time() < until:
        time.sleep(0.1)
    file = os.readlink(f"/proc/{child.pid}/exe")
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 75, child.stderr.read()
    assert file == str(NATIVE / "bin/tessera")
    assert run("status", tmp_path / "out").returncode == 0


def test_libraries_are_those_of_the_package_or_of_every_linux():
    """The second are the list of PEP 600, of which libz is one."""
    everywhere = re.compile(r"(linux-vdso|ld-linux-x86-64|lib(c|m|z|dl|rt|pthread"
                            r"|resolv|gcc_s|stdc\+\+))\.so[.\d]*$")
    libraries = list(PACKAGE.parent.glob("tessera_saxs.libs/*"))
    if not libraries:
        pytest.skip("a wheel that auditwheel has not repaired")
    for file in [*(NATIVE / "bin").iterdir(), *(NATIVE / "lib").iterdir()]:
        found = subprocess.check_output(["ldd", file], text=True)
        assert "not found" not in found
        for path in re.findall(r"^\s(?:.* => )?(\S+) \(0x", found, re.M):
            path = os.path.realpath(path) if "/" in path else path
            assert (Path(path) in libraries or
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


def test_tables_are_found_elsewhere(folder, tmp_path):
    bits = []
    for library in (NATIVE / "lib/libtessera.so.0", BUILD / "libtessera.so.0"):
        if library.exists():
            bits.append(subprocess.check_output(
                [sys.executable, "-c", "import numpy, sys, tessera_saxs\n"
                 "print(tessera_saxs.profile(sys.argv[1], numpy.linspace("
                 "0, 0.3, 101)).tobytes().hex())", folder / "atoms.pdb"],
                env={**os.environ, "TESSERA_LIBRARY": str(library)},
                cwd=tmp_path))
    assert len(set(bits)) == 1 and len(bits[0]) > 1000


@pytest.mark.skipif(not (BUILD / "tessera").exists(), reason="no build tree")
def test_curves_have_the_bits_of_the_build_tree(folder, tmp_path):
    curves = []
    for program in (TESSERA, BUILD / "tessera"):
        for bodies in ("all", "two"):
            model = "atoms.pdb" if bodies == "all" else "model.pdb"
            curves.append(subprocess.check_output(
                [program, "profile", folder / model, "--data",
                 folder / "exp.dat", "--bodies", bodies, "--json"],
                cwd=tmp_path))
    assert curves[:2] == curves[2:]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """No driver of the system but `system`, and an empty cache."""
    (tmp_path / "vendors").mkdir()
    monkeypatch.setattr(_devices, "_SYSTEM", tmp_path / "vendors")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    monkeypatch.delenv("OPENCL_VENDOR_PATH", raising=False)
    return tmp_path


def drivers():
    """What the loader reads."""
    return {path.name: path.read_text() for path in
            Path(os.environ.get("OCL_ICD_VENDORS", "/none")).glob("*.icd")}


def test_a_driver_of_pip_is_added_to_those_of_the_system(cache, monkeypatch):
    monkeypatch.setattr(_devices, "_pocl", lambda: {"pocl.icd": "/x/libpocl.so"})
    monkeypatch.setattr(_devices, "_known_to_pocl", lambda: True)
    (cache / "vendors/gpu.icd").write_text("libgpu.so.1\n")
    assert _devices.prepare() is None
    assert drivers().items() >= {"gpu.icd": "libgpu.so.1\n",
                                 "pocl.icd": "/x/libpocl.so"}.items()
    before = os.environ["OCL_ICD_VENDORS"]
    _devices.prepare()
    assert os.environ["OCL_ICD_VENDORS"] == before


def test_the_system_has_pocl(cache, monkeypatch):
    monkeypatch.setattr(_devices, "_pocl", lambda: {"pocl.icd": "/x/libpocl.so"})
    (cache / "vendors/pocl.icd").write_text("libpocl.so.2\n")
    _devices.prepare()
    assert "/x/libpocl.so" not in drivers().values()


def test_no_cache(cache, monkeypatch):
    monkeypatch.setattr(_devices, "_pocl", lambda: {"pocl.icd": "/x/libpocl.so"})
    monkeypatch.setattr(_devices, "_known_to_pocl", lambda: True)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    _devices.prepare()
    assert drivers()["pocl.icd"] == "/x/libpocl.so"


def test_what_the_user_sets_stays(cache, monkeypatch):
    monkeypatch.setenv("OCL_ICD_VENDORS", "/mine")
    _devices.prepare()
    assert os.environ["OCL_ICD_VENDORS"] == "/mine"


def test_pocl_of_pip_passes_the_self_test(cache):
    pytest.importorskip("pocl_binary_distribution")
    remark = _devices.prepare()
    if remark:
        assert "cpu-intel" in remark and drivers() == {}
        pytest.skip(remark)
    result = run("devices", OCL_ICD_VENDORS=os.environ["OCL_ICD_VENDORS"])
    assert "self-test passed" in result.stdout
    assert result.returncode == 0


def test_drivers_of_the_system_are_found():
    if not list(Path("/etc/OpenCL/vendors").glob("*.icd")):
        pytest.skip("the system has no OpenCL driver")
    result = run("devices")
    assert result.returncode == 0, result.stderr
    assert "self-test passed" in result.stdout


def test_no_device_is_said_once_and_reference_runs(tmp_path):
    (tmp_path / "short.yaml").write_text(
        LONG.replace("reference", "auto").replace("10000000", "20"))
    result = run("run", tmp_path / "short.yaml", "-o", tmp_path / "out",
                 OCL_ICD_VENDORS="/none")
    assert result.returncode in (0, 1)
    assert result.stderr.count("uses reference") == 1
    assert (tmp_path / "out/trace.h5").exists()
    assert run("devices", OCL_ICD_VENDORS="/none").returncode == 74
