"""The conformance suite on a made-up peer: each change of a result is a complaint, either way."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tarfile

import expectations
import peer_tests
import pytest

PEER = """
import unittest
import spconv

class TestLayers(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(device(), "cpu")
    def test_fails(self):
        assert spconv is None, "a reason"

def device():
    return "cuda"

def test_alone():
    import torch
    assert torch.cuda.is_available()
"""
COMMIT = "0" * 40


@pytest.fixture
def foreign(tmp_path: pathlib.Path) -> pathlib.Path:
    tests = tmp_path / "peer" / "tests"
    tests.mkdir(parents=True)
    (tmp_path / "peer.commit").write_text(f"{COMMIT} 2026-01-01\n")
    (tests / "layers.py").write_text(PEER)
    (tests / "broken.py").write_text("import nothing_of_that_name\ndef test_a(): pass\n")
    return tmp_path


def made_up() -> peer_tests.Peer:
    return peer_tests.Peer("spconv", "peer", COMMIT, "", "tests/*.py", copied={"tests": "tests"})


def test_tests_run_with_the_substitutions_of_a_cpu(foreign: pathlib.Path) -> None:
    _, rules = peer_tests.peers_of()
    found = peer_tests.run_peer(made_up(), foreign, rules, limit=120)
    assert found.pop("tests/layers.py::TestLayers::test_fails").startswith("AssertionError: a reason")
    assert found.pop("tests/broken.py::test_a").startswith("does not import: ModuleNotFoundError")
    assert found == {"tests/layers.py::TestLayers::test_passes": "pass", "tests/layers.py::test_alone": "pass"}
    assert '"cuda"' in (foreign / "peer/tests/layers.py").read_text()  # only the copy is changed


def test_another_commit_or_no_checkout_is_a_sentence(foreign: pathlib.Path) -> None:
    with pytest.raises(peer_tests.NotThere, match="check out 1111"):
        peer_tests.folder_of(foreign, "peer", "1" * 40)
    for folder in (None, foreign / "peer"):
        with pytest.raises(peer_tests.NotThere, match="no folder with a checkout of other"):
            peer_tests.folder_of(folder, "other", COMMIT)


def test_the_table_complains_of_every_change() -> None:
    page = "groups are not there"
    expected = {
        "a": {"result": "pass"},
        "b": {"result": "documented", "because": "groups are not there", "error": "E"},
        "c": {"result": "internals", "because": "compiled code", "error": "E"},
    }
    same = {"a": "pass", "b": "E", "c": "E"}
    assert expectations.complaints(expected, same, page) == []
    assert expectations.complaints(expected, {**same, "a": "E"}, page) == ["a: passed, now: E"]
    assert expectations.complaints(expected, {**same, "b": "pass"}, page) == [
        "b: failed (documented), now: pass; record it"
    ]
    assert expectations.complaints(expected, {**same, "d": "pass"}, page) == ["d: pass; it is not in the table"]
    assert expectations.complaints(expected, {"a": "pass", "b": "E"}, page) == ["c: in the table, and not run"]
    assert expectations.complaints(expected, same, "") == ["b: the docs do not say: groups are not there"]


def test_recording_keeps_explanations_and_a_new_failure_has_none() -> None:
    before = {
        "a": {"result": "pass"},
        "b": {"result": "internals", "because": "compiled code", "error": "E"},
        "c": {"result": "internals", "because": "compiled code", "error": "E"},
    }
    run = {"date": "2030-01-02"}
    after = expectations.recorded(before, {"a": "new", "b": "E2", "c": "pass"}, **run)
    assert after["a"] == {"result": "unexplained", "error": "new", **run}
    assert after["b"] == {**before["b"], "error": "E2", **run}
    assert after["c"] == {"result": "pass", **run}
    assert expectations.complaints(after, {"a": "new", "b": "E2", "c": "pass"}) == [
        "a: fails and nobody says why: new"
    ]


def test_rows_say_when_they_ran() -> None:
    assert expectations.latest([{"date": "2030-01-02"}, {"date": "2029-12-31"}, {}]) == "2030-01-02"
    assert expectations.latest([]) == ""


def test_what_is_changed_in_a_copy_is_what_the_row_says(tmp_path: pathlib.Path) -> None:
    checkout, copy = tmp_path / "peer", tmp_path / "copy"
    (checkout / "tests").mkdir(parents=True)
    copy.mkdir()
    for name in ("one.py", "two.py"):
        (checkout / "tests" / name).write_text('device = "cuda"\nwith gpu(0):\n    for _ in range(1000): pass\n')
    peer = peer_tests.Peer(
        name="peer", checkout="peer", commit="", page="", tests="tests/*.py", copied={"tests": "tests"},
        shorter=[{"file": "tests/*.py", "pattern": r"range\(1000\)", "by": "range(1)"}],
        on_a_cpu=[{"pattern": r"with gpu\(0\):", "by": "if True:"}], kept=["tests/two.py"],
        written={"tests/three.py": "made = True\n"},
    )  # fmt: skip
    rules = [{"pattern": '"cuda"', "by": '"cpu"'}]
    peer_tests.copy_of(peer, checkout, copy, rules)
    assert (copy / "tests/one.py").read_text() == 'device = "cpu"\nif True:\n    for _ in range(1): pass\n'
    assert (copy / "tests/two.py").read_text() == 'device = "cuda"\nwith gpu(0):\n    for _ in range(1): pass\n'
    assert (copy / "tests/three.py").read_text() == "made = True\n"
    there = tmp_path / "on a GPU"
    there.mkdir()
    peer_tests.copy_of(peer, checkout, there, [])  # where no rule for a CPU counts
    assert (there / "tests/one.py").read_text() == 'device = "cuda"\nwith gpu(0):\n    for _ in range(1): pass\n'


NETWORK = """
import MinkowskiEngine as ME

class ExampleNetwork(ME.MinkowskiNetwork):
    def __init__(self, in_feat, out_feat, D):
        super().__init__(D)
        self.conv = ME.MinkowskiConvolution(in_feat, out_feat, 3, dimension=D)

    def forward(self, x):
        return self.conv(x)
"""


def test_networks_run_with_the_package_that_the_command_finds(tmp_path: pathlib.Path) -> None:
    rows = json.loads((peer_tests.HERE / "networks.json").read_text(encoding="utf-8"))
    (tmp_path / "MinkowskiEngine/examples").mkdir(parents=True)
    (tmp_path / "MinkowskiEngine/examples/example.py").write_text(NETWORK)
    (tmp_path / "MinkowskiEngine.commit").write_text(rows["repositories"]["MinkowskiEngine"][1])
    command = [sys.executable, str(peer_tests.ROOT / "tools/conformance.py"), "--networks", "--only", "ExampleNetwork"]
    environment = {**os.environ, "PUMICE_FOREIGN": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "0 complaints", done.stdout + done.stderr
    assert {"MinkowskiEngine ExampleNetwork, f32: pass", "MinkowskiEngine ExampleNetwork, half: pass"} <= set(
        done.stdout.splitlines()
    )


def test_a_pack_has_the_checkouts_and_says_what_it_leaves_out(tmp_path: pathlib.Path) -> None:
    peers, _ = peer_tests.peers_of()
    foreign, there = tmp_path / "here", tmp_path / "there"
    (foreign / "spconv/test").mkdir(parents=True)
    (foreign / "spconv/test/test_a.py").write_text("def test_a(): pass\n")
    (foreign / "spconv/large.pt").write_bytes(b"0" * 2**20)
    (foreign / "spconv/picture.png").write_bytes(b"0")
    (foreign / "spconv.commit").write_text(peers["spconv"].commit)
    tool = peer_tests.ROOT / "tools/pack_conformance.py"
    command = [sys.executable, str(tool), str(tmp_path / "packed.tar.xz"), "--largest", "0.5"]
    environment = {**os.environ, "PUMICE_FOREIGN": str(foreign)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=True)
    assert "packed: spconv\n" in done.stdout and "left out: spconv/large.pt has 1.0 MiB" in done.stdout
    assert "left out: PUMICE_FOREIGN names no folder with a checkout of torchsparse" in done.stdout
    with tarfile.open(tmp_path / "packed.tar.xz") as archive:
        archive.extractall(there, filter="data")
    packed = peer_tests.folder_of(there / "foreign", "spconv", peers["spconv"].commit)
    assert sorted(str(path.relative_to(packed)) for path in packed.rglob("*.*")) == ["test/test_a.py"]
    command = [sys.executable, str(there / "tools/conformance.py"), "--peer", "torchsparse"]
    environment["PUMICE_FOREIGN"] = str(there / "foreign")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    assert done.stdout.splitlines()[0] == "torchsparse: PUMICE_FOREIGN names no folder with a checkout of torchsparse"
