"""Arguments of the peers' public functions, classes and methods, and how those of this package differ.

`recorded` reads a checkout's sources and runs nothing; what it finds is kept in signatures/: names of arguments,
their order and their defaults. `complaints` compares them with what Pumice's package takes. A call that is right there
is right here where each argument stands at the same place, under the same name, and may be left out with the same
result. differences.json has a reason for each that differs.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pathlib
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "signatures"
Signatures = dict[str, dict[str, str]]  # {module: {"name" or "Class.method": "(argument, argument=default)"}}
KEPT = ("__init__", "__call__", "__new__")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def written(arguments: ast.arguments, bound: bool) -> str:
    """The arguments without annotations, and without the first if the method is bound to an object or a class."""
    bare = ast.parse("def f(): pass").body[0].args  # type: ignore[attr-defined]
    for kind in ("posonlyargs", "args", "kwonlyargs"):
        setattr(bare, kind, [ast.arg(arg=argument.arg) for argument in getattr(arguments, kind)])
    for kind in ("vararg", "kwarg"):
        argument = getattr(arguments, kind)
        setattr(bare, kind, ast.arg(arg=argument.arg) if argument else None)
    bare.defaults, bare.kw_defaults = arguments.defaults, arguments.kw_defaults
    if bound:
        del (bare.posonlyargs or bare.args)[:1]
        spare = len(bare.defaults) - len(bare.posonlyargs) - len(bare.args)
        bare.defaults = bare.defaults[max(spare, 0) :]
    return f"({ast.unparse(bare)})"


def methods(node: ast.ClassDef) -> dict[str, str]:
    """A class's own public methods and its constructor; `apply` of an autograd Function instead of `forward`."""
    found = {}
    function = any(ast.unparse(base).split(".")[-1] == "Function" for base in node.bases)
    for inner in node.body:
        if not isinstance(inner, ast.FunctionDef):
            continue
        marks = {ast.unparse(mark).split(".")[-1] for mark in inner.decorator_list}
        if marks & {"property", "setter", "cached_property", "overload"}:
            continue
        if function:
            if inner.name == "forward":  # torch passes arguments on by their places
                found["apply"] = written(inner.args, True)
        elif inner.name in KEPT or not inner.name.startswith("_"):
            found[inner.name] = written(inner.args, "staticmethod" not in marks)
    return found


def recorded(checkout: pathlib.Path, package: str) -> Signatures:
    """What the modules of a checkout's package define; a class has its bases' methods too."""
    modules: dict[str, ast.Module] = {}
    for file in sorted((checkout / package).rglob("*.py")):
        parts = list(file.relative_to(checkout).with_suffix("").parts)
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = ast.parse(file.read_text(encoding="utf-8"))
    classes = {node.name: node for tree in modules.values() for node in tree.body if isinstance(node, ast.ClassDef)}

    def with_bases(node: ast.ClassDef) -> dict[str, str]:
        found: dict[str, str] = {}
        for base in reversed(node.bases):
            *where, name = ast.unparse(base).split(".")
            if "nn" not in where and name in classes and classes[name] is not node:  # nn: PyTorch's
                found |= with_bases(classes[name])
        return found | methods(node)

    found: Signatures = {}
    for module, tree in modules.items():
        rows: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                rows[node.name] = written(node.args, False)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rows |= {f"{node.name}.{name}": row for name, row in with_bases(node).items()}
        if rows:
            found[module] = rows
    return found


def read(package: str) -> Signatures:
    return json.loads((FOLDER / f"{package}.json").read_text(encoding="utf-8"))


def write(package: str, signatures: Signatures) -> None:
    """A line for each function, and one for each class."""
    modules = []
    for module, rows in sorted(signatures.items()):
        lines: dict[str, list[str]] = {}
        for name, row in sorted(rows.items()):
            lines.setdefault(name.split(".")[0], []).append(f"{json.dumps(name)}: {json.dumps(row)}")
        inside = ",\n".join("  " + ", ".join(parts) for parts in lines.values())
        modules.append(f" {json.dumps(module)}: {{\n{inside}\n }}")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{package}.json").write_text("{\n" + ",\n".join(modules) + "\n}\n", encoding="utf-8")


def differences(package: str) -> dict[str, str]:
    """{name: why its arguments are others here}."""
    return json.loads((FOLDER / "differences.json").read_text(encoding="utf-8")).get(package, {})


def same_default(node: ast.expr, ours: Any) -> bool:
    """Whether a default as it is written there is the value here; names of constants are compared by their ends."""
    try:
        theirs = ast.literal_eval(node)
    except ValueError:
        if not isinstance(node, ast.Attribute):  # an expression, which is not run
            return True
        return node.attr in (getattr(ours, "name", None), getattr(ours, "__name__", None), str(ours).split(".")[-1])
    if isinstance(theirs, (tuple, list, dict)):
        return tuple(theirs) == tuple(ours or ())
    return type(theirs) is type(ours) and theirs == ours


def against(theirs: str, ours: inspect.Signature, by_place: bool = False) -> str:
    """What a call by `theirs` meets here, or nothing. `by_place`: no call has names."""
    arguments = ast.parse(f"def f{theirs}: pass").body[0].args  # type: ignore[attr-defined]
    if arguments.vararg and not arguments.args and not arguments.kwonlyargs:
        return ""  # it says of no argument what it is
    mine = dict(ours.parameters)
    kinds = {parameter.kind for parameter in mine.values()}
    rest, named = inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds
    places = [parameter for parameter in mine.values() if parameter.kind in POSITIONAL]
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for place, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        if place >= len(places):
            if rest and (named or by_place):
                continue
            return f"argument {place} is {argument.arg}, and {ours} takes none there"
        if places[place].name != argument.arg:
            return f"argument {place} is {argument.arg}, and {places[place].name} in {ours}"
        if fault := default_fault(argument.arg, default, places[place]):
            return fault
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if argument.arg not in mine:
            if named:
                continue
            return f"the keyword {argument.arg} is not in {ours}"
        if fault := default_fault(argument.arg, default, mine[argument.arg]):
            return fault
    if arguments.vararg and not rest:
        return f"any number of arguments, and {ours} takes no others"
    if arguments.kwarg and not named:
        return f"any keywords, and {ours} takes no others"
    if arguments.vararg:  # what follows here has no place there
        return ""
    for parameter in places[len(positional) :]:
        if parameter.default is parameter.empty:
            return f"{parameter.name} is needed in {ours}, and unknown there"
    return ""


def default_fault(name: str, theirs: ast.expr | None, ours: inspect.Parameter) -> str:
    if theirs is None:
        return ""
    if ours.default is ours.empty:
        return f"{name} may be left out, and not here"
    if not same_default(theirs, ours.default):
        return f"{name} is {ast.unparse(theirs)} by default, and {ours.default!r} here"
    return ""


def signature_of(found: Any, bound: bool) -> inspect.Signature | None:
    """What can be passed to a function, a class or a method of one; None if nothing is known of it."""
    try:
        taken = inspect.signature(found)
    except (TypeError, ValueError):
        return None
    rows = list(taken.parameters.values())
    return taken.replace(parameters=rows[1:]) if bound and rows else taken


def ours_at(module: str, name: str) -> inspect.Signature | str | None:
    """The signature here; a string says that the method is missing, None that the whole name is absent."""
    try:
        found = importlib.import_module(module)
    except ImportError:  # not there, or refused by name; names.py asks for these
        return None
    top, _, method = name.partition(".")
    if not hasattr(found, top):
        return None
    owner = getattr(found, top)
    if not method:
        return signature_of(owner, False)
    if not isinstance(owner, type):
        return None
    if method == "__init__" and owner.__init__ is not object.__init__:  # past a metaclass
        return signature_of(owner.__init__, True)
    if method in ("__init__", "__new__"):
        return signature_of(owner, False)
    if not hasattr(owner, method):
        return "no such method here"
    if method == "apply" and hasattr(owner, "forward"):  # which takes what forward takes
        return signature_of(owner.forward, True)
    static = isinstance(inspect.getattr_static(owner, method), (staticmethod, classmethod))
    return signature_of(getattr(owner, method), not static)


def complaints(signatures: Signatures) -> dict[str, str]:
    """{module.name: how it differs}. The package is installed before."""
    wrong = {}
    for module, rows in signatures.items():
        for name, theirs in rows.items():
            ours = ours_at(module, name)
            if isinstance(ours, str):
                wrong[f"{module}.{name}"] = ours
            elif ours is not None and (fault := against(theirs, ours, name.endswith(".apply"))):
                wrong[f"{module}.{name}"] = fault
    return wrong


def unexplained(found: dict[str, str], told: dict[str, str]) -> list[str]:
    """A sentence for each difference without a reason, and for each reason without a difference."""
    new = [f"{name}: {fault}" for name, fault in found.items() if name not in told]
    return new + [f"{name} has a reason to differ, and does not" for name in told if name not in found]
