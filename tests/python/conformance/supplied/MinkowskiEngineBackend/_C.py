"""Stands in for the compiled module of MinkowskiEngine: its enumerations are Pumice's, and every other name is there
and fails when it is called."""

from pumice.compat.minkowski import enums


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    if isinstance(getattr(enums, name, None), type):
        return getattr(enums, name)

    def __init__(self: object, *_: object, **__: object) -> None:
        raise NotImplementedError(f"{name} is compiled code of MinkowskiEngine, which is not here")

    return type(name, (), {"__init__": __init__})
