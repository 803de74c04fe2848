"""Stands in for the compiled module of MinkowskiEngine: every name is there and fails when it is called."""


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)

    def __init__(self: object, *_: object, **__: object) -> None:
        raise NotImplementedError(f"{name} is compiled code of MinkowskiEngine, which is not here")

    return type(name, (), {"__init__": __init__})
