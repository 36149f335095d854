"""damage.py SAMPLES: in the current folder, beside model.pdb, good.cif, strand.pdb, good.dat, own.mrc,
good.yaml and the run in `run`: files as no program should write them, and as users have them.
SAMPLES: a folder with files of runs that did harm, if it is there."""
import gzip
import math
import os
import re
import shutil
import struct
import subprocess
import sys


def read(name):
    with open(name, "rb") as file:
        return file.read()


def write(name, content):
    with open(name, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


NOISE = bytes(i * i * 31 % 251 for i in range(5000))
write("empty", "")
write("noise", NOISE)
write("noise.gz", b"\x1f\x8b\x08" + NOISE)
write("line", "1 " * 300000)
os.symlink("loop", "loop")
os.mkfifo("fifo")
for name in "model.pdb", "own.mrc", "good.dat":
    write("cut_%s.gz" % name, gzip.compress(read(name))[:200])

# ---- structures ----
ATOMS = read("model.pdb").decode().splitlines()[:-1]
STRAND = [l for l in read("strand.pdb").decode().splitlines() if l[:4] == "ATOM"]


def put(lines, text, column=30, residue=None):
    return [l[:column] + text + l[column + len(text):] if residue in (None, int(l[22:26]))
            else l for l in lines]


def pdb(name, *models):
    write(name + ".pdb", "\n".join(l for k, m in enumerate(models) for l in (
        ["MODEL %8d" % k, *m, "ENDMDL"] if models[1:] else m)) + "\nEND\n")


NAN, FAR, ZERO = "     nan", "9999.000" * 3, "   0.000" * 3
HEM = ["HETATM 9%03d  C%-2d HEM L 900    %8.3f%8.3f%8.3f  1.00  0.00           C" % (
    k, k, *(float(ATOMS[40][30 + 8 * c:38 + 8 * c]) + 1.4 * (k == c) for c in range(3)))
    for k in range(4)]
pdb("zero_residue", put(ATOMS, ZERO, residue=45))
pdb("far_residue", put(ATOMS, FAR, residue=45))
pdb("zero", put(ATOMS, ZERO))
pdb("one_point", put(ATOMS, "   1.250  -2.000   3.000"))
pdb("tenth", [l[:30] + "%8.3f" * 3 % tuple(float(x) / 10 for x in l[30:54].split()) + l[54:]
              for l in ATOMS])
pdb("no_ca", [l for l in ATOMS if l[12:16] != " CA " or int(l[22:26]) != 45])
pdb("doubled", ATOMS + put(ATOMS, "B", 21))
pdb("nan", put(ATOMS, NAN, residue=45))
pdb("stars", put(ATOMS, "********", residue=45))
pdb("numbers", put(ATOMS, "****", 22, 45))
pdb("occupancy", put(ATOMS, "   nan-1e300", 54, 45))
pdb("water", put(ATOMS, "HOH", 17))
pdb("ligand", ATOMS + HEM)
pdb("ligand_alone", HEM)
pdb("ligand_nan", ATOMS + HEM[:3] + put(HEM[3:], NAN))
pdb("ligand_far", ATOMS + HEM[:3] + put(HEM[3:], FAR))
pdb("dna", STRAND)
pdb("dna_zero", put(STRAND, ZERO, residue=3))
pdb("dna_nan", put(STRAND, NAN, residue=3))
pdb("dna_beside", ATOMS + STRAND)
pdb("models", ATOMS, ATOMS, ATOMS)
pdb("models_other", ATOMS, ATOMS[:50])
pdb("models_nan", ATOMS, put(ATOMS, NAN))
write("cut.pdb", "\n".join(ATOMS)[:4321])
MMCIF = read("good.cif").decode()
ROW = next(l for l in MMCIF.splitlines() if " CA . " in l and " 45 ALA" in l)
for name, column, text in (("e300", 10, "1e300"), ("million", 10, "1e6"), ("text", 10, "'a b'"),
                           ("number", 15, "99999999999")):
    words = ROW.split()
    words[column] = text
    write(name + ".cif", MMCIF.replace(ROW, " ".join(words)))
write("cut.cif", MMCIF[:3000])

# ---- curves ----
CURVE = [tuple(map(float, l.split())) for l in read("good.dat").decode().splitlines()
         if l[0] != "#"]
for name, change in {
        "columns": lambda q, i, s: (q, s, i), "log": lambda q, i, s: (q, math.log10(i), s),
        "small_sigma": lambda q, i, s: (q, i, s * 1e-4), "zero_sigma": lambda q, i, s: (q, i, 0),
        "tiny_sigma": lambda q, i, s: (q, i, 1e-320), "percent": lambda q, i, s: (q, i, "3%"),
        "nan_i": lambda q, i, s: (q, math.nan, s), "inf_i": lambda q, i, s: (q, math.inf, s),
        "huge_i": lambda q, i, s: (q, i * 1e300, s), "minus_i": lambda q, i, s: (q, -i, s),
        "nan_q": lambda q, i, s: (math.nan, i, s), "tiny_q": lambda q, i, s: (q * 1e-13, i, s),
        "huge_q": lambda q, i, s: (q * 1e9, i, s), "minus_q": lambda q, i, s: (-q, i, s),
        "same_q": lambda q, i, s: (0.1, i, s)}.items():
    write(name + ".dat", "".join("%.9g %.9g %s\n" % change(*row) for row in CURVE))
write("million.dat", "".join("%.9f %.9g 1\n" % (0.01 + 1.9e-7 * k, 100 - 9e-5 * k)
                             for k in range(1000000)))
write("header.dat", b"40 2 3\n7.5 1 9\n" + read("good.dat"))
write("utf16.dat", read("good.dat").decode().encode("utf-16"))
write("bomb.xml", '<!DOCTYPE x [<!ENTITY a "a">' + "".join(
    '<!ENTITY %s "%s">' % (b, ("&%s;" % a) * 10) for a, b in zip("abcdefghi", "bcdefghij")) +
      ']><SASroot>&j;</SASroot>')

# ---- maps ----
MAP = read("own.mrc")
SIDE = struct.unpack_from("<3i", MAP)


def mrc(name, voxels=MAP[1024:], **words):
    """A word of the header, counted from 1, is named by its type and number."""
    head = bytearray(MAP[:1024])
    for word, value in words.items():
        struct.pack_into("<" + word[0], head, 4 * int(word[1:]) - 4, value)
    write(name + ".mrc", bytes(head) + voxels)


for name, value, n in (
        ("constant", 1.5, 12100), ("zeros", 0.0, 12100), ("nan", math.nan, 12100),
        ("inf", math.inf, 12100), ("some_nan", math.nan, 99), ("some_huge", 3e38, 9)):
    mrc(name, struct.pack("<f", value) * n + MAP[1024 + 4 * n:])
mrc("huge", struct.pack("<2f", 3e38, -3e38) * 6050)
for size in 78, 14060, 1e-30, 0, -2, 3e38, math.nan:
    mrc("voxel_%g" % size, **dict(zip(("f11", "f12", "f13"), (min(n * size, 3e38)
                                                              for n in SIDE))))
mrc("origin_1500", f50=-1500.0, f51=-1500.0, f52=-1500.0)
mrc("origin_nan", f50=math.nan)
mrc("origin_1e30", f50=1e30)
mrc("angle_0", f14=0.0)
mrc("axes", i17=1, i18=1, i19=1)
mrc("mode", i4=99)
mrc("side", i1=-5)
mrc("sampling", i8=2 ** 31 - 1)
mrc("claims", b"", i1=1700, i2=1700, i3=1700, i8=1700, i9=1700, i10=1700)
mrc("extended", i24=2 ** 31 - 1)
write("cut.mrc", MAP[:3000])
write("head.mrc", MAP[:500])
for name, old, new in ("fewer", "\n0\n0\n", "\n"), ("counts", "25 22 22", "99999 99999 99999"), (
        "step", "delta 3", "delta nan"):
    write(name + ".dx", read("grid.dx").decode().replace(old, new, 1))

# ---- configurations ----
GOOD = read("good.yaml").decode()
for name, content in {
        "cut": GOOD[:60], "nul": GOOD.replace("A:48", "A\0:48"),
        "latin": GOOD.encode() + b"name: \xff\n", "utf16": GOOD.encode("utf-16"),
        "twice": GOOD + GOOD, "documents": GOOD + "---\n" + GOOD,
        "self": "name: &a [*a]\n" + GOOD, "deep": "name: " + "[" * 100000,
        "nan": GOOD + "solvent: {density: .nan}\n", "seed": GOOD + "seed: 1e300\n",
        "entries": "structure: {file: model.pdb}\ndata:\n" + "- {file: good.dat}\n" * 10000,
        "up": "name: ../../up\n" + GOOD, "slash": "name: /tmp\n" + GOOD,
        "dots": "name: ..\n" + GOOD, "page": "name: <script>x</script>\n" + GOOD,
        "no_name": "name: ''\n" + GOOD, "no_folder": GOOD.replace("run}", "''}"),
        "long": GOOD.replace("run}", "x" * 5000 + "}"),
        "proc": GOOD.replace("run}", "/proc/new}"), "file": GOOD.replace("run}", "good.dat/new}"),
        "input": GOOD.replace("run}", "run/input}")}.items():
    write(name + ".yaml", content)


# ---- runs ----
def checksum(before, content):
    """As src/files/checksum.c."""
    state = (before + 0xcbf29ce484222325) % 2 ** 64
    for word in [len(content)] + [int.from_bytes(content[k:k + 8], "little")
                                  for k in range(0, len(content), 8)] + [0x2545f4914f6cdd1d]:
        state = (state ^ word) * 0x9e3779b97f4a7c15 % 2 ** 64
        state ^= state >> 32
    return state


def sealed(content):
    """A checkpoint with the seal of src/store/hdf5_store.c."""
    pages = [content[k:k + 4096].ljust(4096, b"\0") for k in range(0, len(content), 4096)]
    total = sum(checksum(k + 1, page) for k, page in enumerate(pages) if any(page))
    return content + (b"\ntessera: %16d bytes, page sum %016x\n"
                      % (len(content), total % 2 ** 64)).ljust(64)


def flip(content, part):
    """One bit, at so many ninths of the content and a little."""
    byte = 77 + part * len(content) // 9
    return content[:byte] + bytes([content[byte] ^ 4]) + content[byte + 1:]


def run(name, file, change):
    """A run whose file becomes what change returns, or is what it makes at the path."""
    shutil.copytree("run", name)
    for path in [file, "checkpoint.h5.previous"] if file == "checkpoint.h5" else [file]:
        path = name + "/" + path
        content = read(path)
        os.unlink(path)
        content = change(path, content)
        if content is not None:
            write(path, content)


for file in ("config.yaml", "trace.h5", "trajectory-000.h5", "checkpoint.h5", "model.pdb",
             "run.log", "input/model.pdb", "input/good.dat"):
    for kind, change in {
            "missing": lambda path, c: None, "empty": lambda path, c: b"",
            "noise": lambda path, c: NOISE, "cut": lambda path, c: c[:len(c) * 2 // 3],
            "folder": lambda path, c: os.mkdir(path),
            "loop": lambda path, c: os.symlink(os.path.basename(path), path),
            "flip0": lambda path, c: flip(c, 0), "flip5": lambda path, c: flip(c, 5),
            "flip8": lambda path, c: flip(c, 8)}.items():
        run("%s_%s" % (file.replace("input/", "its_").split(".")[0], kind), file, change)
for name in "status_segv", "scales_crash":
    sample = "%s/%s_trace.h5.gz" % (sys.argv[1], name)
    if os.path.exists(sample):
        run(name, "trace.h5", lambda path, c: gzip.decompress(read(sample)))
shutil.copy("run/trace.h5", "linked")
run("trace_link", "trace.h5", lambda path, c: os.symlink(os.path.abspath("linked"), path))
for name, field, k, value in (
        ("no_warmup", "run/integer", 0, 0), ("minus_warmup", "run/integer", 0, -2 ** 63),
        ("draws", "run/integer", 1, 7), ("look", "run/integer", 2, -4),
        ("steps", "run/integer", 4, 2 ** 62), ("chains", "run/integer", 8, -1),
        ("replica", "sampler/integer", 4, -1), ("replicas", "sampler/integer", 5, 9),
        ("random", "sampler/integer", 20, -1)) if shutil.which("h5dump") else ():
    said = subprocess.run(["h5dump", "-p", "-H", "-d", field, "run/checkpoint.h5"],
                          capture_output=True, text=True, check=True).stdout
    byte = int(said.split("OFFSET")[1].split()[0]) + 8 * k
    run("forged_" + name, "checkpoint.h5", lambda path, c: sealed(
        c[:byte] + struct.pack("<q", value) + c[byte + 8:-64]))
# As an older version wrote both, which lacked a key.
run("forged_older", "checkpoint.h5",
    lambda path, c: sealed(c[:-64].replace(b"\n  relax:", b"\n  #elax:")))
write("forged_older/config.yaml",
      read("forged_older/config.yaml").replace(b"\n  relax:", b"\n  #elax:"))
run("forged_future", "checkpoint.h5", lambda path, c: sealed(
    re.sub(rb"20(\d\d-\d\d-\d\dT)", rb"29\1", c[:-64])))
