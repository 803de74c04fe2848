"""One network of networks.json, forward and backward, in this process: prints "pass" or an error, for
f32 and then for half precision under autocast.

    python run_network.py FOLDER NAME      the device is the GPU where there is one
"""

from __future__ import annotations

import codecs
import encodings.utf_8
import functools
import importlib
import json
import pathlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import absent_packages
import numpy as np
import torch

import pumice.compat

HERE = pathlib.Path(__file__).resolve().parent


class Settings(dict[str, Any]):
    __getattr__ = dict.__getitem__


def cells_of(extent: int = 40, count: int = 3000) -> torch.Tensor:
    """int32 [N, 4], distinct, two items: batch index first, sorted."""
    generator = torch.Generator().manual_seed(0)
    cells = torch.randint(0, extent, (count, 3), generator=generator)
    batch = torch.randint(0, 2, (count, 1), generator=generator)
    return torch.unique(torch.cat([batch, cells], 1), dim=0).int()


def ublock_of_softgroup(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    norm = functools.partial(torch.nn.BatchNorm1d, eps=1e-4, momentum=0.1)
    return module.UBlock([16, 32, 48], norm, 2, module.ResidualBlock)


def spunet_of_pointcept(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    return module.SpUNetBase(6, 13, 16, (16, 32, 48, 64, 64, 48, 32, 16), (1,) * 8)


def backbone_of_openpcdet(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    grid = np.array([64, 64, 40])
    return getattr(module, row["class"])(Settings(), input_channels=5, grid_size=grid)


def res16unet_of_mask3d(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    config = SimpleNamespace(bn_momentum=0.02, conv1_kernel_size=5, dilations=[1, 1, 1, 1])
    return getattr(module, row["class"])(3, 20, config)


def input_of(kind: str, cells: torch.Tensor, features: torch.Tensor) -> Any:
    if kind == "spconv":
        spconv = importlib.import_module("spconv.pytorch")
        return spconv.SparseConvTensor(features, cells, [40, 40, 40], 2)
    if kind == "pointcept":
        offset = torch.bincount(cells[:, 0]).cumsum(0)
        return {"grid_coord": cells[:, 1:], "feat": features, "offset": offset}
    if kind == "openpcdet":
        return {"voxel_features": features, "voxel_coords": cells, "batch_size": 2}
    if kind == "torchsparse":
        return importlib.import_module("torchsparse").SparseTensor(features, cells)
    engine = importlib.import_module("MinkowskiEngine")
    if kind == "minkowski_field":
        return engine.TensorField(features, cells.float())
    return engine.SparseTensor(features, cells)


def tensors_in(out: Any) -> list[torch.Tensor]:
    if isinstance(out, torch.Tensor):
        return [out]
    if isinstance(out, dict):
        return [t for name in ("encoded_spconv_tensor",) if name in out for t in tensors_in(out[name])]
    if isinstance(out, (list, tuple)):
        return [t for each in out for t in tensors_in(each)]
    for name in ("features", "F", "feats"):
        if isinstance(getattr(out, name, None), torch.Tensor):
            return [getattr(out, name)]
    raise TypeError(f"no tensor in {type(out).__name__}")


def prepare(row: dict[str, Any], folder: pathlib.Path) -> ModuleType:
    """The module of the network, with Pumice under the library's name."""
    pumice.compat.install(row["library"])
    absent_packages.stand_in_for(row.get("absent", []))
    if row.get("source"):  # a declared encoding of the sources that is UTF-8 with another name
        utf_8 = encodings.utf_8.getregentry()
        codecs.register(lambda name: utf_8 if name == row["source"] else None)
    if not row.get("without_folder"):  # which would hide Pumice behind the peer's own package
        sys.path.insert(0, str(folder))
    for name in row.get("bare", []):
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(folder / name.replace(".", "/"))]
    return importlib.import_module(row["module"])


def run(row: dict[str, Any], module: ModuleType, half: bool) -> None:
    torch.manual_seed(0)
    if "build" in row:
        net = globals()[row["build"]](module, row)
    else:
        net = getattr(module, row["class"])(*row.get("arguments", []), **row.get("named", {}))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = net.to(device)
    cells = cells_of().to(device)
    features = torch.randn(len(cells), row["channels"], device=device)
    kind = torch.float16 if device == "cuda" else torch.bfloat16
    with torch.autocast(device, kind, enabled=half):
        out = tensors_in(net(input_of(row["input"], cells, features)))
        loss = sum(t.float().square().mean() for t in out)
    loss.backward()
    unused = tuple(row.get("unused", []))  # what the network's own forward leaves out
    for name, parameter in net.named_parameters():
        if unused and name.startswith(unused):
            continue
        if parameter.grad is None or not parameter.grad.isfinite().all():
            raise ArithmeticError(f"the gradient of {name} is {'missing' if parameter.grad is None else 'not finite'}")


def main() -> None:
    rows = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))["networks"]
    row = rows[sys.argv[2]]
    module = None
    for half in (False, True):
        try:
            module = module or prepare(row, pathlib.Path(sys.argv[1]))
            run(row, module, half)
            print("pass", flush=True)
        except Exception as error:  # the boundary of the process: the sentence is the result
            reason = str(error).splitlines()[0] if str(error) else ""
            print(f"{type(error).__name__}: {reason}"[:200], flush=True)


if __name__ == "__main__":
    main()
