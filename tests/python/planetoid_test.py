"""Planetoid's files are read as they are, by an unpickler that runs nothing; and networks learn the classes of their nodes."""

import collections
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import numpy as np
import programs
import pytest
import torch

import pumice

DATA = os.environ.get("PUMICE_DATA")
CORA = pathlib.Path(DATA or "/nowhere") / "graphs/planetoid"
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/train_nodes.py"
needs_cora = pytest.mark.skipif(not CORA.exists(), reason="PUMICE_DATA is not set, or has no graphs/planetoid")


@needs_cora
def test_cora_has_its_known_counts() -> None:
    nodes = pumice.data.planetoid(CORA)
    assert nodes.features.shape == (2708, 1433) and nodes.edge_index.shape == (2, 10556)
    assert [len(part) for part in (nodes.train, nodes.validation, nodes.test)] == [140, 500, 1000]
    assert torch.bincount(nodes.classes[nodes.train]).tolist() == [20] * 7
    assert torch.bincount(nodes.classes).tolist() == [351, 217, 418, 818, 426, 298, 180]
    torch.testing.assert_close(nodes.features.sum(1), torch.ones(2708))
    source, target = nodes.edge_index
    both = set(zip(source.tolist(), target.tolist(), strict=True))
    assert len(both) == 10556 and all((b, a) in both for a, b in both)


@needs_cora
@pytest.mark.parametrize("network", ["gcn", "sage", "gat"])
def test_the_example_learns(network: str) -> None:
    """In 15 epochs; chance finds 0.14 of seven classes. Whole trainings are in docs/how_to/come_from_pyg.md."""
    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    done = subprocess.run(
        [sys.executable, EXAMPLE, CORA, "--network", network, "--seeds", "1", "--epochs", "15", "--device", "cpu"],
        capture_output=True, text=True, env=programs.surroundings(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "cora: 2708 nodes, 10556 edges, 1433 channels" in done.stdout
    assert float(done.stdout.split("mean test accuracy ")[1].split()[0]) > 0.6, done.stdout


def small(folder: pathlib.Path) -> pathlib.Path:
    """Six nodes of two classes: two to learn from, two more, two of the test, whose list is in no order."""
    parts = {
        "x": np.eye(2, 3, dtype=np.float32), "y": np.eye(2, dtype=np.int32),
        "allx": np.eye(4, 3, dtype=np.float32), "ally": np.eye(4, 2, dtype=np.int32),
        "tx": np.full((2, 3), 2.0, np.float32), "ty": np.array([[0, 1], [1, 0]], np.int32),
        "graph": {0: [1, 1, 0], 4: [5], 5: [0]},
    }  # fmt: skip
    for name, value in parts.items():
        (folder / f"ind.small.{name}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / "ind.small.test.index").write_text("5\n4\n")
    return folder


def test_a_small_graph_is_put_together(tmp_path: pathlib.Path) -> None:
    nodes = pumice.data.planetoid(small(tmp_path), "small")
    assert nodes.classes.tolist() == [0, 1, 0, 0, 0, 1]
    assert nodes.test.tolist() == [4, 5]
    assert nodes.edge_index.tolist() == [[0, 0, 1, 4, 5, 5], [1, 5, 0, 5, 0, 4]]
    torch.testing.assert_close(nodes.features[4], torch.full((3,), 1 / 3))


class Command:
    def __reduce__(self):
        return os.system, ("touch /tmp/pumice_was_here",)


HOSTILE = {
    "a command": pickle.dumps(Command()),
    "another class": pickle.dumps(collections.OrderedDict()),
    "numpy's other functions": pickle.dumps(np.float64(1)),
    "a list": pickle.dumps([1, 2]),
    "edges that are no numbers": pickle.dumps({0: ["1"]}),
    "no pickle": b"\x00\x01",
    "nothing": b"",
    "half of one": pickle.dumps(np.eye(9))[:-40],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_other_pickles_are_refused_and_run_nothing(tmp_path: pathlib.Path, name: str) -> None:
    small(tmp_path)
    (tmp_path / "ind.small.graph").write_bytes(HOSTILE[name])
    with pytest.raises(pumice.UserError, match="ind.small.graph is no pickle of arrays"):
        pumice.data.planetoid(tmp_path, "small")
    assert not os.path.exists("/tmp/pumice_was_here")


def test_files_that_do_not_fit_are_named(tmp_path: pathlib.Path) -> None:
    small(tmp_path)
    for change, said in (
        (lambda: (tmp_path / "ind.small.test.index").write_text("4\n4\n"), "distinct nodes"),
        (lambda: (tmp_path / "ind.small.test.index").write_text("4\nx\n"), "whole numbers are needed"),
        (lambda: (tmp_path / "ind.small.test.index").write_text("6\n7\n"), "do not fit each other"),
        (lambda: (tmp_path / "ind.small.ty").unlink(), "ind.small.ty: there is no such file"),
    ):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        small(tmp_path)
        change()
        with pytest.raises(pumice.UserError, match=said):
            pumice.data.planetoid(tmp_path, "small")
    small(tmp_path)
    (tmp_path / "ind.small.graph").write_bytes(pickle.dumps({0: [6]}))
    with pytest.raises(pumice.UserError, match="leads to node 6 of 6"):
        pumice.data.planetoid(tmp_path, "small")
