"""Makes what bench/analysis.sh measures: a model of n copies, a trajectory, a map.

    analysis_frames.py MODEL.pdb COPIES FRAMES FOLDER

FOLDER gets model.pdb (the copies beside each other, each chain a letter of its own),
frames.dcd (a wave that grows from frame to frame) and grid.mrc (empty, 2 Angstrom).
"""
import array, math, os, struct, sys

path, copies, n_frame, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
atoms = [l.rstrip("\n") for l in open(path) if l.startswith("ATOM")]
xyz = [[float(l[30 + 8 * c : 38 + 8 * c]) for c in range(3)] for l in atoms]
low = [min(x[c] for x in xyz) for c in range(3)]
size = [max(x[c] for x in xyz) - low[c] + 4.0 for c in range(3)]
side = math.ceil(copies ** (1 / 3) - 1e-9)
chains = sorted({l[21] for l in atoms})
axes = [array.array("f") for _ in range(3)]
with open(os.path.join(folder, "model.pdb"), "w") as out:
    for k in range(copies):
        at = [k % side, k // side % side, k // side**2]
        for l, x in zip(atoms, xyz):
            y = [x[c] - low[c] + at[c] * size[c] for c in range(3)]
            chain = letters[(k * len(chains) + chains.index(l[21])) % len(letters)]
            out.write(l[:21] + chain + l[22:30] + "%8.3f%8.3f%8.3f" % tuple(y) + l[54:] + "\n")
            for c in range(3):
                axes[c].append(y[c])
n = len(axes[0])
def record(data):
    return struct.pack("<i", len(data)) + data + struct.pack("<i", len(data))
wave = [array.array("f", [math.sin(v / 15.0) for v in a]) for a in axes]
with open(os.path.join(folder, "frames.dcd"), "wb") as out:
    out.write(record(b"CORD" + struct.pack("<20i", n_frame, *[0] * 18, 24)))
    out.write(record(struct.pack("<i", 1) + b"made for a benchmark".ljust(80)))
    out.write(record(struct.pack("<i", n)))
    for k in range(n_frame):
        shift = 1.0 * k / n_frame
        for a, w in zip(axes, wave):
            out.write(record(array.array("f", [v + shift * s for v, s in zip(a, w)]).tobytes()))
voxels = [int((side * size[c] + 20.0) / 2.0) for c in range(3)]
head = struct.pack("<10i", *voxels, 2, 0, 0, 0, *voxels)
head += struct.pack("<6f3i3f", *[2.0 * v for v in voxels], 90, 90, 90, 1, 2, 3, 0, 0, 0)
head = head.ljust(196, b"\0") + struct.pack("<3f", -10, -10, -10) + b"MAP \x44\x44\0\0"
with open(os.path.join(folder, "grid.mrc"), "wb") as out:
    out.write(head.ljust(1024, b"\0") + bytes(4 * voxels[0] * voxels[1] * voxels[2]))
