"""The files of a reader that pages name: scans, labels, weights and checkpoints, small and made when they are first asked for.

Made of a simulated street, by the program alone where that is enough, so that no scan has to be in the tree.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock

# Names in pages that stand for such files. A command that writes one of them replaces it.
NAMES = re.compile(
    r"(?<![\w/.=-])(?:scan\.bin|[ab]\.bin|000000\.bin|000000\.label|sweep\.ply|few\.ply|in\.safetensors|matrix\.mtx|"
    r"(?:features|rows|graph|network|edges)\.safetensors|weights\.safetensors|(?:net|model)\.pth|train\.py|semantickitti)(?![\w.])"
)
PLY_TYPES = {"float": "f", "double": "d", "uint": "I", "int": "i", "ushort": "H", "short": "h", "uchar": "B", "char": "b"}
COLUMNS = ("x", "y", "z", "intensity", "label")
PLY_HEAD = """ply
format ascii 1.0
element vertex {}
property float x
property float y
property float z
property float intensity
property ushort label
end_header
"""
# A checkpoint of spconv, with names as detectors have them.
CHECKPOINT = """
import sys, torch
w = torch.randn
torch.save({"backbone.conv.weight": w(8, 3, 3, 3, 4), "backbone.last.weight": w(8, 1, 1, 1, 8),
            "seg_head.0.weight": w(5, 8), "seg_head.0.bias": w(5)}, sys.argv[1])
"""


class Files:
    """Kept in `folder`, copied to where a page wants them. `pumice` is the program, `root` the tree."""

    def __init__(self, folder, pumice, root):
        self.folder, self.pumice, self.root = folder, pumice, root
        self.lock = Lock()   # pages may run beside each other

    def put(self, name, folder):
        """Makes a copy of the file `name` in `folder`."""
        with self.lock:
            if not (self.folder / name).exists():
                kind = os.path.splitext(name)[1][1:] or "folder"
                getattr(self, f"make_{kind}")(name)
        source = self.folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)

    @cache
    def points(self):
        """(x, y, z, intensity, label) of every twelfth point of a simulated street within 15 m, some 1,500."""
        ply = self.folder / "street.ply"
        command = [self.pumice, "simulate", "--seed", "1", "--beams", "32", "--out", ply]
        subprocess.run(command, check=True, capture_output=True)
        head, data = ply.read_bytes().split(b"end_header\n", 1)
        fields = re.findall(r"property (\w+) (\w+)", head.decode("ascii"))
        row = struct.Struct("<" + "".join(PLY_TYPES[kind] for kind, _ in fields))
        column = {name: i for i, (_, name) in enumerate(fields)}
        chosen = [tuple(point[column[name]] for name in COLUMNS) for point in row.iter_unpack(data)]
        return [point for point in chosen if point[0] ** 2 + point[1] ** 2 < 225][::12]

    def make_bin(self, name):
        rows = (struct.pack("<4f", *point[:4]) for point in self.points())
        (self.folder / name).write_bytes(b"".join(rows))

    def make_label(self, name):
        rows = (struct.pack("<I", point[4]) for point in self.points())
        (self.folder / name).write_bytes(b"".join(rows))

    def make_ply(self, name):
        points = self.points()[:50] if name == "few.ply" else self.points()
        rows = "".join(" ".join(map(repr, point)) + "\n" for point in points)
        (self.folder / name).write_text(PLY_HEAD.format(len(points)) + rows, encoding="ascii")

    def make_safetensors(self, name):
        """Weights of a network, or what `pumice conv`, `spmm`, `sddmm`, `rgms` and `rgcn` read."""
        if name == "weights.safetensors":
            shutil.copy(self.root / "models/streets.safetensors", self.folder / name)
            return
        edges = {
            "edge_index": ("I64", [2, 3], struct.pack("<6q", 0, 1, 3, 2, 2, 0)),
            "edge_type": ("I64", [3], struct.pack("<3q", 0, 1, 1)),
        }
        if name == "edges.safetensors":
            self.write_tensors(name, edges)
            return
        if name == "network.safetensors":  # of four nodes without features
            self.write_tensors(name, {
                "convs.0.weight": ("F32", [2, 4, 3], struct.pack("<24f", *range(24))),
                "convs.0.root": ("F32", [4, 3], struct.pack("<12f", *range(12))),
                "convs.0.bias": ("F32", [3], struct.pack("<3f", *range(3))),
            }, {"network": "rgcn", "in_channels": "4", "widths": "3", "relations": "2"})
            return
        if name == "graph.safetensors":
            self.write_tensors(name, {
                "features": ("F32", [4, 2], struct.pack("<8f", *range(8))),
                **edges,
                "weight": ("F32", [2, 2, 3], struct.pack("<12f", *range(12))),
                "grad_output": ("F32", [4, 3], struct.pack("<12f", *range(12))),
            })
            return
        if name != "in.safetensors":  # beside matrix.mtx
            names = ("features", "grad_output") if name == "features.safetensors" else ("left", "right")
            self.write_tensors(name, {key: ("F32", [4, 2], struct.pack("<8f", *range(8))) for key in names})
            return
        cells = sorted({tuple(int(value // 1) for value in point[:3]) for point in self.points()})
        rows = len(cells)
        parts = {
            "coords": ("I32", [rows, 4], struct.pack(f"<{rows * 4}i", *(v for cell in cells for v in (0, *cell)))),
            "features": ("F32", [rows, 4], struct.pack(f"<{rows * 4}f", *(i % 7 for i in range(rows * 4)))),
            "weight": ("F32", [27, 4, 8], struct.pack("<864f", *(i % 5 - 2 for i in range(864)))),
        }
        self.write_tensors(name, parts)

    def write_tensors(self, name, parts, metadata=None):
        """`parts`: type, shape and bytes by name."""
        header, data = {"__metadata__": metadata} if metadata else {}, b""
        for key, (kind, shape, content) in parts.items():
            header[key] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        (self.folder / name).write_bytes(struct.pack("<Q", len(text)) + text + data)

    def make_mtx(self, name):
        lines = "2 1 0.5\n3 2 -1\n4 3 2\n4 4 1\n"
        (self.folder / name).write_text("%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n" + lines)

    def make_pth(self, name):
        subprocess.run([sys.executable, "-c", CHECKPOINT, self.folder / name], check=True)

    def make_py(self, name):
        """A program that somebody wrote for another library."""
        shutil.copy(self.root / "tests/docs/given" / name, self.folder / name)

    def make_folder(self, name):
        """As SemanticKITTI's, with four scans in each of two sequences."""
        for sequence in ("00", "08"):
            for kind, suffix, make in (("velodyne", "bin", self.make_bin), ("labels", "label", self.make_label)):
                place = Path(name, "sequences", sequence, kind)
                (self.folder / place).mkdir(parents=True)
                for i in range(4):
                    make(place / f"{i:06}.{suffix}")
