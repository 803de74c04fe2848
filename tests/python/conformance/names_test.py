"""Every public name and submodule of the peers' releases is there, or in the docs' list of absent ones."""

from __future__ import annotations

import pathlib

import names
import peer_tests
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEERS, _ = peer_tests.peers_of()

@pytest.mark.parametrize("package", sorted(name for name, peer in PEERS.items() if not peer.library))
def test_names_are_there_or_listed_as_absent(package: str) -> None:
    missing = peer_tests.found_of(package, "names", "absent")
    page = (ROOT / PEERS[package].page).read_text(encoding="utf-8")
    assert names.complaints(missing, names.listed(page)) == []


def test_sources_are_read_and_not_run(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "peer"
    (package / "_private").mkdir(parents=True)
    (package / "_private" / "__init__.py").write_text("hidden = 1")
    (package / "layers.py").write_text("import os\nraise RuntimeError\nclass Layer: pass\n_a = 1\nB: int = 2\n")
    (package / "__init__.py").write_text("from .layers import *\nfrom os import path as place\n")
    found = names.recorded(tmp_path, "peer")
    assert found == {"peer": ["B", "Layer", "place"], "peer.layers": ["B", "Layer"]}


def test_absent_names_are_compared_both_ways() -> None:
    page = "<!-- absent names -->\n\n* `a.b`\n* `a`: `x`, `y`\n\n<!-- end of absent names -->"
    said = names.listed(page)
    assert said == {"a.b": [], "a": ["x", "y"]}
    assert names.complaints(said, said) == []
    assert names.complaints({"a.b": [], "a": ["x"]}, said) == ["a.y is listed as absent and there"]
    assert names.complaints({"a.b": [], "a": ["x", "y", "z"]}, said) == ["a.z is absent and not listed"]
    assert names.complaints({"a": ["x", "y"]}, said) == ["a.b is listed as absent, and complete"]
    assert names.listed(names.with_list(page, {"c": []})) == {"c": []}


def test_a_module_that_is_there_lacks_names_and_another_lacks_all() -> None:
    asked = {"json": ["loads", "nothing"], "json.absent": ["x"], "json.absent.below": ["y"]}
    assert names.absent(asked) == {"json": ["nothing"], "json.absent": []}
