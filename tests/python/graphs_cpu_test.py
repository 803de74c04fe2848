"""The benchmark of graphs on the CPU beside PyTorch and PyG, on a small input."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch_geometric", reason="torch_geometric is not installed, which the benchmark measures beside")

SCRIPT = Path(__file__).parents[2] / "benchmarks/peers/graphs_cpu.py"


def test_prints_a_ratio_for_each_matrix_and_their_mean(tmp_path):
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices/ring.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern symmetric\n6 6 5\n" + "".join(f"{i + 1} {i}\n" for i in range(1, 6)))
    folder = tmp_path / "graphs/openke_FB15K237"
    folder.mkdir(parents=True)
    (folder / "entity2id.txt").write_text("4\na\t0\nb\t1\nc\t2\nd\t3\n")
    (folder / "relation2id.txt").write_text("2\nr\t0\ns\t1\n")
    (folder / "train2id.txt").write_text("3\n0 1 0\n1 2 1\n3 2 0\n")
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--seconds", "0", "--channels", "3", "--least-entries", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "ring" in printed and "10 entries F   3" in printed
    assert "openke_FB15K237" in printed and "R-GCN, openke_FB15K237" in printed
    assert "geometric mean" in printed
