"""One network of networks.json, forward and backward, in this process: prints "pass" or an error, for
f32 and then for half precision under autocast.

    python run_network.py FOLDER NAME      the device is the GPU where there is one
"""

from __future__ import annotations

import codecs
import copy
import encodings.utf_8
import functools
import importlib
import json
import os
import pathlib
import random
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


def unet_of_openpcdet(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    settings = Settings(RETURN_ENCODED_TENSOR=False)
    return module.UNetV2(settings, 5, np.array([64, 64, 40]), [0.1, 0.1, 0.1], np.array([0.0, 0, 0, 6.4, 6.4, 4]))


def spvnas_sampled(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    random.seed(0)
    net = module.SPVNAS(19, macro_depth_constraint=1, pres=0.05, vres=0.05)
    net.random_sample()
    return net.determinize()


def scn_of_centerpoint(module: ModuleType, row: dict[str, Any]) -> torch.nn.Module:
    class OnCells(torch.nn.Module):
        """Gives the network the grid that its readers give it."""

        def __init__(self) -> None:
            super().__init__()
            self.net = getattr(module, row["class"])(num_input_features=5)

        def forward(self, given: dict[str, Any]) -> Any:
            return self.net(given["voxel_features"], given["voxel_coords"], 2, [64, 64, 40])[0]

    return OnCells()


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
    if kind == "openpcdet_pillars":
        pillars = torch.unique(cells[:, :3], dim=0)
        return {"pillar_features": features[: len(pillars)], "pillar_coords": pillars, "batch_size": 2}
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
        names = ("encoded_spconv_tensor", "point_features", "multi_scale_2d_features")
        found = [t for name in names if name in out for t in tensors_in(out[name])]
        return found or [t for each in out.values() for t in tensors_in(each)]
    if isinstance(out, (list, tuple)):
        return [t for each in out for t in tensors_in(each)]
    for name in ("features", "F", "feats"):
        if isinstance(getattr(out, name, None), torch.Tensor):
            return [getattr(out, name)]
    raise TypeError(f"no tensor in {type(out).__name__}")


def prepare(row: dict[str, Any], folder: pathlib.Path) -> ModuleType:
    """The module of the network, with Pumice under the library's name."""
    pumice.compat.install(row["library"])
    if row.get("version"):
        importlib.import_module(row["library"]).use_version(row["version"])
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


PASSES = 3  # layers called one by one run together from the second or third one on


def agree(what: str, first: list[torch.Tensor], later: list[torch.Tensor], tolerance: float) -> None:
    """Raises ArithmeticError where outputs of a later pass differ from those of the first one."""
    for one, two in zip(first, later):
        difference = (one.float() - two.float()).abs().max().item() if one.numel() else 0.0
        largest = one.float().abs().max().item() if one.numel() else 0.0
        if one.shape != two.shape or not difference <= tolerance * max(largest, 1.0):
            raise ArithmeticError(f"{what}: outputs of a later pass differ by {difference:.2g} of {largest:.2g}")


def run(row: dict[str, Any], module: ModuleType, half: bool) -> None:
    """Some passes in training with the same weights and statistics, forward and backward, then in evaluation."""
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
    state = copy.deepcopy(net.state_dict())

    def outputs() -> list[torch.Tensor]:
        torch.manual_seed(1)
        with torch.autocast(device, kind, enabled=half):
            out = tensors_in(net(input_of(row["input"], cells, features)))
        if not all(t.isfinite().all() for t in out):
            raise ArithmeticError("an output is not finite")
        return out

    tolerance = 0.1 if half else 1e-3
    first: dict[str, list[torch.Tensor]] = {}
    for _ in range(PASSES):
        net.load_state_dict(state)
        net.zero_grad()
        out = outputs()
        sum(t.float().square().mean() for t in out).backward()
        agree("training", first.setdefault("training", [t.detach() for t in out]), out, tolerance)
    net.eval()
    with torch.no_grad():
        for _ in range(PASSES):
            out = outputs()
            agree("evaluation", first.setdefault("evaluation", out), out, tolerance)
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
    os.chdir(HERE / "supplied")  # where examples look for the scan that they would download
    for half in (False, True):
        try:
            module = module or prepare(row, pathlib.Path(sys.argv[1]).resolve())
            run(row, module, half)
            print("pass", flush=True)
        except Exception as error:  # the boundary of the process: the sentence is the result
            reason = str(error).splitlines()[0] if str(error) else ""
            print(f"{type(error).__name__}: {reason}"[:200], flush=True)


if __name__ == "__main__":
    main()
