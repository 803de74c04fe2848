"""The layers of the Python package, and the check that its modules keep to them; check_layers.py runs it.

A module may import its own layer and the layers before it in LAYERS, and modules may not import each other in a
circle. Every import counts: one inside a function, one under `if TYPE_CHECKING`, and importlib.import_module with
a name written out, since a reader of the file needs the other one whenever it is loaded. Importing pumice.ops.rows
from outside of pumice.ops runs pumice/ops/__init__.py first, so it counts as an import of both. One import does
not count: that of the extension, `_C`, which imports nothing of the package.
"""

import ast

PACKAGE = "pumice"
EXTENSION = f"{PACKAGE}._C"

# From the lowest to the highest: a name is a module of the package, or a folder with all that is in it.
# docs/architecture.md has the same table, with a sentence for each layer.
LAYERS = {
    "base": ["_checks", "_edges", "_entries", "_framework", "_keywords", "_needs_torch", "_program", "_progress", "_registry", "_tensors", "_version", "_where", "doctor", "memory", "window"],
    "sites": ["_fields", "_objects", "_sites", "coords", "formats", "graph", "typed_graph"],
    "operators": ["ops"],
    "tensors": ["_torch_functions", "joining", "points", "tensor", "tensor_values", "view", "voxels"],
    "layers": ["nn"],
    "networks": ["convert", "layer_calls", "models", "passes", "planned", "profiling", "tuning", "weights"],
    "training": ["_classes", "data", "losses", "metrics"],
    "interfaces": ["compat"],
    "package": ["__init__", "__main__"],
}
NAMES = list(LAYERS)
DOCUMENT = "docs/architecture.md"


class Package:
    """The modules of python/pumice, what they import, and what is wrong with that."""

    def __init__(self, root):
        self.root = root
        self.folder = root / "python" / PACKAGE
        self.errors = []   # (file, line, message)
        self.files = {self.module_of(path): path for path in sorted(self.folder.rglob("*.py"))}
        self.imports = {module: list(self.imports_of(module)) for module in self.files}

    def module_of(self, path):
        parts = path.relative_to(self.folder.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def layer_of(self, module):
        """The number of a module's layer; None where LAYERS lacks it."""
        name = f"{module}.__init__".split(".")[1]
        return next((number for number, layer in enumerate(LAYERS.values()) if name in layer), None)

    def imports_of(self, module):
        """(line, imported module of ours), the packages that run on the way behind each."""
        path = self.files[module]
        parts = module.split(".")
        package = parts if path.name == "__init__.py" else parts[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            for name in self.named_by(node, package):
                if name.split(".")[0] == PACKAGE and name != EXTENSION:
                    yield from ((node.lineno, run) for run in self.run_by(name, package))

    def named_by(self, node, package):
        """The modules that one import statement, or one call of import_module, names."""
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            return {name if name in self.files or name == EXTENSION else base for name in names}
        if isinstance(node, ast.Call) and "import_module" in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
            return [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        return []

    def run_by(self, name, package):
        """`name`, and the packages around it that the importing file is not in itself."""
        yield name
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            if package[:end] != parts[:end]:
                yield ".".join(parts[:end])

    def check(self):
        """All that is wrong, as (file, line, message)."""
        self.check_layers()
        self.check_circles()
        self.check_document()
        return self.errors

    def error(self, module, line, message):
        self.errors.append((self.files[module], line, message))

    def check_layers(self):
        for module, imports in self.imports.items():
            here = self.layer_of(module)
            if here is None:
                self.error(module, 1, f"{module} stands in no layer: name it in LAYERS of tools/python_layers.py")
                continue
            seen = set()
            for line, target in imports:
                there = self.layer_of(target)
                if target not in self.files:
                    self.error(module, line, f"{target} names no module")
                elif there is not None and there > here and (line, there) not in seen:
                    seen.add((line, there))
                    self.error(module, line, f"{NAMES[here]} imports {target} of {NAMES[there]}, a later layer")

    def check_circles(self):
        done = set()
        for start in self.imports:
            trail = [(start, iter(self.imports[start]))] if start not in done else []
            while trail:
                module, rest = trail[-1]
                _, target = next(rest, (0, None))
                on_trail = [name for name, _ in trail]
                if target is None:
                    done.add(module)
                    trail.pop()
                elif target in on_trail:
                    circle = on_trail[on_trail.index(target) :] + [target]
                    self.error(module, 1, "import circle: " + " -> ".join(circle))
                elif target not in done and target in self.imports:
                    trail.append((target, iter(self.imports[target])))

    def check_document(self):
        """The table of the documentation has the same layers with the same modules, in this order."""
        document = self.root / DOCUMENT
        if not self.files or not document.is_file():
            return
        text = document.read_text(encoding="utf-8")
        at = 0
        for layer, modules in LAYERS.items():
            row = f"| {layer} | {', '.join(f'`{module}`' for module in modules)} |"
            found = text.find(row, at)
            if found < 0:
                self.errors.append((document, 1, f"its table of Python layers lacks, or has elsewhere: {row}"))
                return
            at = found
