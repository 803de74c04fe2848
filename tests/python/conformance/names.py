"""Public names and submodules of the peers' releases, and which of them are not here.

`recorded` reads a checkout's sources and runs nothing; what it finds is kept in names/, names only.
`absent` asks Pumice's package for them. What the docs list as absent stands between the markers
<!-- absent names --> and <!-- end of absent names --> of the peer's page, one line a module.
"""

from __future__ import annotations

import ast
import importlib
import json
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
SECTION = re.compile(r"(<!-- absent names -->\n)(.*?)(<!-- end of absent names -->)", re.DOTALL)
LINE = re.compile(r"^\* `([\w.]+)`(?:: (.*))?$", re.MULTILINE)
Names = dict[str, list[str]]


def public(file: pathlib.Path, whole: bool) -> list[str]:
    """What a file defines without an underscore; what it imports too where `whole` (an __init__.py)."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom) and whole:
            inside = file.parent / f"{(node.module or '').split('.')[-1]}.py"
            for name in node.names:
                if name.name == "*" and node.level and inside.exists():
                    names |= set(public(inside, False))
                elif name.name != "*":
                    names.add(name.asname or name.name)
    return sorted(name for name in names if not name.startswith("_"))


def recorded(checkout: pathlib.Path, package: str) -> Names:
    """{module: its public names}, of the package in a checkout."""
    found: Names = {}
    for file in sorted((checkout / package).rglob("*.py")):
        parts = list(file.relative_to(checkout).with_suffix("").parts)
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        whole = parts[-1] == "__init__"
        found[".".join(parts[:-1] if whole else parts)] = public(file, whole)
    return found


def read(package: str) -> Names:
    return json.loads((HERE / "names" / f"{package}.json").read_text(encoding="utf-8"))


def write(package: str, names: Names) -> None:
    rows = [f"  {json.dumps(module)}: {json.dumps(names[module])}" for module in sorted(names)]
    (HERE / "names" / f"{package}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def absent(names: Names) -> Names:
    """What cannot be imported; an empty list means the whole module. The package is installed before."""
    missing: Names = {}
    for module, members in names.items():
        if any(module.startswith(f"{above}.") for above, rest in missing.items() if not rest):
            continue
        try:
            found = importlib.import_module(module)
        except ImportError:  # not there, or refused by name
            missing[module] = []
            continue
        gone = [name for name in members if not hasattr(found, name)]
        if gone:
            missing[module] = gone
    return missing


def listed(page: str) -> Names:
    """What the page says is absent."""
    section = SECTION.search(page)
    if section is None:
        raise ValueError("the page has no part between <!-- absent names --> and its end")
    return {
        module: re.findall(r"`(\w+)`", members or "") for module, members in LINE.findall(section[2])
    }


def with_list(page: str, missing: Names) -> str:
    """The page with this list in place of its own."""
    lines = [f"* `{module}`" + (": " + ", ".join(f"`{name}`" for name in members) if members else "")
             for module, members in sorted(missing.items())]  # fmt: skip
    text = "".join(f"{line}\n" for line in lines) or "None.\n"
    return SECTION.sub(lambda found: f"{found[1]}\n{text}\n{found[3]}", page)


def complaints(missing: Names, said: Names) -> list[str]:
    """A sentence for each name that is neither there nor listed, and for each that is both."""
    wrong = []
    for module in sorted(missing.keys() | said.keys()):
        real, told = missing.get(module), said.get(module)
        if real is None:
            wrong.append(f"{module} is listed as absent, and complete")
        elif told is None:
            wrong.append(f"{module} lacks {', '.join(real) or 'everything'}, and the page does not say so")
        elif bool(real) != bool(told):
            wrong.append(f"{module}: the page says {told or 'all of it'} is absent, it is {real or 'all of it'}")
        else:
            wrong += [f"{module}.{name} is absent and not listed" for name in real if name not in told]
            wrong += [f"{module}.{name} is listed as absent and there" for name in told if name not in real]
    return wrong
