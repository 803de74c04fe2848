"""Dictionaries whose keys are attributes, with the methods that TorchSparse's have."""

from __future__ import annotations

import copy
import pickle

import pytest

from pumice.compat.torchsparse.nn.functional.conv.utils import AttributeDict


def test_dictionaries_in_it_have_attributes_too() -> None:
    made = AttributeDict({"a": {"b": 1}, "c": 2})
    assert made.a.b == 1 and made.c == made["c"] == 2
    made.d = {"e": 3}
    made.update({"f": {"g": 4}}, h=5)
    assert made.d.e == 3 and made.f.g == 4 and made.h == 5
    assert made.setdefault("i", {"j": 6}).j == 6 and made.setdefault("c", 0) == 2
    assert list(AttributeDict([("x", 1), ("y", 2)])) == ["x", "y"]
    assert AttributeDict(entries={"a": 1}) == {"a": 1} and AttributeDict() == {} and AttributeDict(None) == {}


def test_iterators_of_python_2() -> None:
    made = AttributeDict({"a": 1, "b": 2})
    assert list(made.iterkeys()) == ["a", "b"] and list(made.itervalues()) == [1, 2]
    assert list(made.iteritems()) == [("a", 1), ("b", 2)]


def test_plain_dictionaries() -> None:
    made = AttributeDict({"a": {"b": {"c": 1}}})
    for plain in (made.to_dict(), AttributeDict.dict(made)):
        assert plain == {"a": {"b": {"c": 1}}}
        assert type(plain) is type(plain["a"]) is type(plain["a"]["b"]) is dict
    assert AttributeDict.dict() == {} and AttributeDict.dict(None) is None
    assert AttributeDict.fromkeys(["a", "b"], 1) == {"a": 1, "b": 1}
    assert type(AttributeDict.fromkeys(keys=["a"], value=None)) is AttributeDict


def test_what_is_not_there() -> None:
    made = AttributeDict({"a": 1, "__b__": 2})
    assert list(made) == ["a"]
    assert made.pop("c") is None and made.pop("c", 3) == 3 and made.pop("a") == 1
    with pytest.raises(AttributeError, match="there is no 'a'"):
        made.a
    with pytest.raises(AttributeError, match="there is no 'a'"):
        del made.a


def test_copies_are_of_their_own() -> None:
    made = AttributeDict({"a": {"b": 1}})
    for other in (made.copy(), copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is AttributeDict and other == made and other.a.b == 1
        other.c = 2
        assert "c" not in made and "a" in dir(other)
