"""One network of networks.json, forward and backward, in this process: prints "pass" or an error, for
f32 and then for half precision under autocast. A row with "training" trains some steps besides: its loss has to fall.

    python run_network.py FOLDER NAME      the device is the GPU where there is one
"""

from __future__ import annotations

import codecs
import copy
import encodings.utf_8
import importlib
import json
import os
import pathlib
import random
import sys
from types import ModuleType
from typing import Any

import absent_packages
import numpy as np
import torch
from torch.nn import functional

import pumice.compat

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def cells_of(seed: int, extent: int = 40, count: int = 3000) -> torch.Tensor:
    """int32 [N, 4], distinct, two items: batch index first, sorted."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randint(0, extent, (count, 3), generator=generator)
    batch = torch.randint(0, 2, (count, 1), generator=generator)
    return torch.unique(torch.cat([batch, cells], 1), dim=0).int()


def shells_of(seed: int, extent: int = 32) -> torch.Tensor:
    """int32 [N, 4]: the surface of a sphere in each of two items, a scene whose shape can be learned."""
    generator = torch.Generator().manual_seed(seed)
    towards = functional.normalize(torch.randn(2, 4000, 3, generator=generator), dim=2)
    radius = (torch.rand(2, 1, 1, generator=generator) * 0.15 + 0.25) * extent
    points = (towards * radius + extent / 2).floor()
    batch = torch.arange(2)[:, None, None].expand(2, 4000, 1)
    return torch.unique(torch.cat([batch, points], 2).reshape(-1, 4), dim=0).int()


def scene_of(row: dict[str, Any], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cells, and features whose first three channels say where the cell is, which is what a network can learn."""
    if row.get("scene") == "shells":
        cells = shells_of(seed).to(DEVICE)
    else:
        cells = cells_of(seed, row.get("extent", 40), row.get("count", 3000)).to(DEVICE)
    features = torch.randn(len(cells), row["channels"], device=DEVICE)
    if "training" in row:
        features *= 0.1
        features[:, :3] += cells[:, 1 : 1 + features[:, :3].shape[1]] / row.get("extent", 40)
    return cells, features


def input_of(kind: str, cells: torch.Tensor, features: torch.Tensor) -> Any:
    if kind == "spconv":
        spconv = importlib.import_module("spconv.pytorch")
        return spconv.SparseConvTensor(features, cells, [40, 40, 40], 2)
    if kind == "pointcept":
        offset = torch.bincount(cells[:, 0]).cumsum(0)
        return {"grid_coord": cells[:, 1:], "coord": cells[:, 1:].float(), "feat": features, "offset": offset}
    if kind == "openpcdet":
        return {"voxel_features": features, "voxel_coords": cells, "batch_size": 2}
    if kind == "openpcdet_pillars":
        pillars = torch.unique(cells[:, :3], dim=0)
        return {"pillar_features": features[: len(pillars)], "pillar_coords": pillars, "batch_size": 2}
    if kind == "rows":
        return {"cells": cells, "features": features}
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
        names = ("encoded_spconv_tensor", "point_features", "multi_scale_2d_features", "feat", "spatial_features_2d")
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
    pumice.compat.install(row["library"], *row.get("also", []))
    if row.get("version"):
        importlib.import_module(row["library"]).use_version(row["version"])
    if DEVICE == "cpu":  # as in the peers' tests: what asks for a GPU stays where it is
        library = importlib.import_module(row["library"])
        tensors = (getattr(library, name, None) for name in ("SparseTensor", "PointTensor"))
        for kind in filter(None, (torch.Tensor, torch.nn.Module, *tensors)):
            kind.cuda = lambda self, *_, **__: self
    os.environ.update(row.get("environment", {}))
    absent_packages.stand_in_for(row.get("absent", []))
    if row.get("source"):  # a declared encoding of the sources that is UTF-8 with another name
        utf_8 = encodings.utf_8.getregentry()
        codecs.register(lambda name: utf_8 if name == row["source"] else None)
    if not row.get("without_folder"):  # which would hide Pumice behind the peer's own package
        sys.path.insert(0, str(folder / row.get("under", "")))
    roots = [folder / row.get("under", ""), *(folder.parent / name for name in row.get("beside", []))]
    for name in row.get("bare", []):
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(base / name.replace(".", "/")) for base in roots]
    for name, modules in row.get("names", {}).items():  # what a bare package has from its modules
        for module in modules:
            content = vars(importlib.import_module(module)).items()
            vars(sys.modules[name]).update({key: value for key, value in content if not key.startswith("_")})
    return importlib.import_module(row["module"])


PASSES = 3  # layers called one by one run together from the second or third one on


def agree(what: str, first: list[torch.Tensor], later: list[torch.Tensor], tolerance: float) -> None:
    """Raises ArithmeticError where outputs of a later pass differ from those of the first one."""
    for one, two in zip(first, later):
        difference = (one.float() - two.float()).abs().max().item() if one.numel() else 0.0
        largest = one.float().abs().max().item() if one.numel() else 0.0
        if one.shape != two.shape or not difference <= tolerance * max(largest, 1.0):
            raise ArithmeticError(f"{what}: outputs of a later pass differ by {difference:.2g} of {largest:.2g}")


def seed(number: int) -> None:
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


def half_of(row: dict[str, Any]) -> torch.dtype:
    """bfloat16 on a CPU, except where the network itself hands its features to NumPy, which has no bfloat16."""
    return torch.float16 if DEVICE == "cuda" or row.get("half") == "float16" else torch.bfloat16


def train(row: dict[str, Any], net: torch.nn.Module, half: bool) -> None:
    """Some steps on two scenes in turn: raises ArithmeticError where the loss does not fall as far as the row says."""
    settings, kind = row["training"], half_of(row)
    scenes = [scene_of(row, number) for number in (1, 2)]
    net.train()
    optimizer = torch.optim.Adam(net.parameters(), settings["rate"])
    scaler = torch.amp.GradScaler(DEVICE, init_scale=256.0, enabled=half and DEVICE == "cuda")
    losses = []
    for step in range(settings["steps"]):
        cells, features = scenes[step % 2]
        optimizer.zero_grad()
        with torch.autocast(DEVICE, kind, enabled=half):
            loss = net(input_of(row["input"], cells, features))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    first, last = sum(losses[:2]) / 2, sum(losses[-2:]) / 2
    print(f"the loss went from {first:.3g} to {last:.3g}", file=sys.stderr)
    if not last < settings["to"] * first:
        raise ArithmeticError(f"in {settings['steps']} steps the loss went from {first:.3g} to {last:.3g}")


def run(row: dict[str, Any], module: ModuleType, half: bool) -> None:
    """Some passes in training with the same weights and statistics, forward and backward, then in evaluation."""
    seed(0)
    if "build" in row:
        file, _, name = row["build"].partition(".")
        net = getattr(importlib.import_module(file), name)(module, row)
    else:
        net = getattr(module, row["class"])(*row.get("arguments", []), **row.get("named", {}))
    net = net.to(DEVICE)
    cells, features = scene_of(row, 0)
    kind = half_of(row)
    state = copy.deepcopy(net.state_dict())

    def restore() -> None:
        if row.get("state") == "copied":  # the project loads files of another layout only, and turns each
            with torch.no_grad():
                for name, kept in net.state_dict(keep_vars=True).items():
                    kept.copy_(state[name])
        else:
            net.load_state_dict(state)

    def outputs() -> list[torch.Tensor]:
        seed(1)
        with torch.autocast(DEVICE, kind, enabled=half):
            out = tensors_in(net(input_of(row["input"], cells, features)))
        if not all(t.isfinite().all() for t in out):
            raise ArithmeticError("an output is not finite")
        return out

    # More where rounding decides which cells are chosen, and in half where a norm of two rows magnifies it.
    tolerance = row.get("half_tolerance", 0.1) if half else row.get("tolerance", 1e-3)
    first: dict[str, list[torch.Tensor]] = {}
    for _ in range(PASSES):
        restore()
        net.zero_grad()
        out = outputs()
        loss = sum(t.float().square().mean() for t in out)
        (loss * row.get("loss_scale", 1.0)).backward()  # less where gradients of float16 would overflow
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
    if "training" in row and (not half or row["training"].get("half", True)):
        restore()
        train(row, net, half)


def main() -> None:
    rows = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))["networks"]
    row = rows[sys.argv[2]]
    module = None
    os.chdir(HERE / "supplied")  # where examples find the scan, and no script of theirs that would download more
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
