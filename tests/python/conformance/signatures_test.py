"""Arguments stand at the places, under the names and with the defaults that the peers' releases give them."""

from __future__ import annotations

import inspect
import pathlib
from typing import Any

import peer_tests
import pytest
import signatures

PEERS, _ = peer_tests.peers_of()

@pytest.mark.parametrize("package", sorted(name for name, peer in PEERS.items() if not peer.library))
def test_arguments_are_those_of_the_release(package: str) -> None:
    found = peer_tests.found_of(package, "signatures", "complaints")
    assert signatures.unexplained(found, signatures.differences(package)) == []


def test_sources_are_read_and_not_run(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "peer"
    (package / "_private").mkdir(parents=True)
    (package / "_private" / "__init__.py").write_text("def hidden(): pass")
    (package / "base.py").write_text(
        "import torch.nn as nn\n"
        "class Base(nn.Module):\n"
        " def __init__(self, a, b=1): pass\n"
        " def forward(self, x): pass\n"
    )
    (package / "__init__.py").write_text(
        "raise RuntimeError\n"
        "from .base import Base\n"
        "class Layer(Base):\n"
        " def forward(self, x: int, *, y: int = 2) -> None: pass\n"
        " @property\n def p(self): pass\n"
        " @staticmethod\n def s(z): pass\n"
        " def _own(self): pass\n"
        "class Other(nn.Base): pass\n"
        "class Step(torch.autograd.Function):\n"
        " @staticmethod\n def forward(ctx, x, n=None): pass\n"
        " @staticmethod\n def backward(ctx, g): pass\n"
        "def call(*args, key, **rest): pass\n"
        "def _own(): pass\n"
    )
    base = {"Base.__init__": "(a, b=1)", "Base.forward": "(x)"}
    assert signatures.recorded(tmp_path, "peer") == {
        "peer.base": base,
        "peer": {
            "Layer.__init__": "(a, b=1)", "Layer.forward": "(x, *, y=2)", "Layer.s": "(z)",
            "Step.apply": "(x, n=None)", "call": "(*args, key, **rest)",
        },
    }  # fmt: skip


def renamed(a: Any, c: Any = 1) -> None: ...
def swapped(b: Any = 1, a: Any = None) -> None: ...
def another(a: Any, b: Any = 2) -> None: ...
def needing(a: Any, b: Any) -> None: ...
def longer(a: Any, b: Any = 1, c: Any = None) -> None: ...
def asking(a: Any, b: Any, c: Any) -> None: ...
def shorter(a: Any) -> None: ...
def anything(*args: Any, **named: Any) -> None: ...


@pytest.mark.parametrize("ours, complaint", [
    (renamed, "argument 1 is b, and c in"),
    (swapped, "argument 0 is a, and b in"),
    (another, "b is 1 by default, and 2 here"),
    (needing, "b may be left out, and not here"),
    (shorter, "argument 1 is b, and"),
    (longer, ""),
    (anything, ""),
])  # fmt: skip
def test_what_a_right_call_would_meet(ours: Any, complaint: str) -> None:
    said = signatures.against("(a, b=1)", inspect.signature(ours))
    assert said.startswith(complaint) and bool(said) == bool(complaint)


def test_more_than_is_known_there() -> None:
    assert "c is needed in" in signatures.against("(a, b)", inspect.signature(asking))
    assert "the keyword b is not in" in signatures.against("(a, *, b=1)", inspect.signature(shorter))
    assert "any keywords" in signatures.against("(a, **rest)", inspect.signature(shorter))
    assert signatures.against("(*args, **rest)", inspect.signature(shorter)) == ""


@pytest.mark.parametrize("theirs, ours, same", [
    ("1", 1, True), ("1", True, False), ("None", None, True), ("{}", (), True), ("()", None, True),
    ("[1, 2]", (1, 2), True), ("Mode.MAX", inspect.Parameter.KEYWORD_ONLY, False),
    ("Kind.KEYWORD_ONLY", inspect.Parameter.KEYWORD_ONLY, True), ("torch.Tensor", str, False), ("made()", 3, True),
])  # fmt: skip
def test_defaults(theirs: str, ours: Any, same: bool) -> None:
    node = signatures.ast.parse(theirs, mode="eval").body
    assert signatures.same_default(node, ours) is same


def test_reasons_and_differences_are_compared_both_ways() -> None:
    assert signatures.unexplained({"a.b": "differs"}, {"a.b": "so it is"}) == []
    assert signatures.unexplained({"a.b": "differs"}, {}) == ["a.b: differs"]
    assert signatures.unexplained({}, {"a.b": ""}) == ["a.b has a reason to differ, and does not"]
