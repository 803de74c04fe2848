"""Every layer of the three interfaces, by what it does to rows: it keeps the sites, makes others, or sums items."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

import pumice.compat.minkowski as ME
import pumice.compat.spconv.pytorch as spconv
from pumice.compat import torchsparse
from pumice.compat.torchsparse import nn as spnn

EXTENT, CHANNELS = 10, 4
Cell = tuple[int, ...]


class Case(NamedTuple):
    make: Callable[[], Any]  # a layer
    call: Callable[[Any, Any], Any] = lambda layer, x: layer(x)
    leads: Callable[[Cell], Sequence[Cell]] | None = None  # the new cells a cell leads to, in order
    dimension: int = 3


class Interface(NamedTuple):
    tensor: Callable[[torch.Tensor, torch.Tensor], Any]  # of features and coordinates
    rows: Callable[[Any], tuple[torch.Tensor, torch.Tensor]]  # (features, coordinates)
    keeps: dict[str, Case]
    makes: dict[str, Case]
    items: dict[str, Case]  # one row for each batch item, or a dense tensor


# MinkowskiEngine.


def conv(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(ME, f"Minkowski{name}")(CHANNELS, 5, *arguments, dimension=3, **options)


def channelwise(*arguments: Any) -> Callable[[], Any]:
    return lambda: ME.MinkowskiChannelwiseConvolution(CHANNELS, *arguments, dimension=3)


def pool(name: str, *arguments: Any) -> Callable[[], Any]:
    return lambda: getattr(ME, f"MinkowskiPooling{name}" if name == "Transpose" else f"Minkowski{name}Pooling")(
        *arguments, dimension=3
    )


def coarse(*steps: int) -> Callable[[Cell], list[Cell]]:
    return lambda cell: [(cell[0], *(v // s * s for v, s in zip(cell[1:], steps)))]


def around(size: int, step: int = 1) -> Callable[[Cell], list[Cell]]:
    """What a kernel of `size` reaches from cells of `step` a side, the first axis fastest."""
    reach = [i - (size // 2 if size % 2 else 0) for i in range(size)]

    def leads(cell: Cell) -> list[Cell]:
        offsets = itertools.product(reach, repeat=len(cell) - 1)
        return [(cell[0], *(v * step + o for v, o in zip(cell[1:], reversed(offset)))) for offset in offsets]

    return leads


def from_coarse(layer: Any, x: ME.SparseTensor) -> Any:
    """On tensor stride 2, whose finer sites nobody has."""
    cells = x.C.clone()
    cells[:, 1:] *= 2
    return layer(ME.SparseTensor(x.F, cells, tensor_stride=2))


def and_back(layer: Any, x: ME.SparseTensor) -> Any:
    """Behind a pooling, back onto the sites there were."""
    return layer(ME.MinkowskiSumPooling(2, 2, dimension=3)(x))


def with_items(layer: Any, x: ME.SparseTensor) -> Any:
    return layer(x, ME.MinkowskiGlobalAvgPooling()(x))


def with_moved(layer: Any, x: ME.SparseTensor) -> Any:
    """And the sites beyond a plane, moved."""
    part = ME.MinkowskiPruning()(x, x.C[:, 1] > 3)
    moved = part.C + part.C.new_tensor([0, 4, 0, 0])
    return layer(x, ME.SparseTensor(part.F, moved, coordinate_manager=x.coordinate_manager))


def onto_itself_and_moved(cell: Cell) -> list[Cell]:
    return [cell] if cell[1] <= 3 else [cell, (cell[0], cell[1] + 4, *cell[2:])]


def at_points(layer: Any, x: ME.SparseTensor) -> torch.Tensor:
    points = torch.linspace(0, EXTENT - 1, 40, dtype=x.dtype, device=x.device)[:, None].repeat(1, 4)
    points[:, 0] = 1
    return layer(x, points)


ACTIVATIONS = """ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid PReLU ReLU ReLU6 SELU CELU GELU
Sigmoid SiLU Softplus Softshrink Softsign Tanh Tanhshrink Dropout AlphaDropout RReLU""".split()
SIDE_BY_SIDE = conv("Convolution", 3), conv("Convolution", 1)

minkowski = Interface(
    tensor=ME.SparseTensor,
    rows=lambda y: (y.F, y.C),
    keeps={
        "MinkowskiConvolution": Case(conv("Convolution", 3)),
        "MinkowskiConvolution of one offset": Case(conv("Convolution", 1)),
        "MinkowskiChannelwiseConvolution": Case(channelwise(3)),
        "MinkowskiConvolutionTranspose": Case(conv("ConvolutionTranspose", 2, 2), and_back),
        "MinkowskiPoolingTranspose": Case(pool("Transpose", 2, 2), and_back),
        **{f"Minkowski{kind}Pooling": Case(pool(kind, 3)) for kind in ("Sum", "Avg", "Max")},
        "MinkowskiLinear": Case(lambda: ME.MinkowskiLinear(CHANNELS, 5)),
        "MinkowskiBatchNorm": Case(lambda: ME.MinkowskiBatchNorm(CHANNELS)),
        "MinkowskiSyncBatchNorm": Case(lambda: ME.MinkowskiSyncBatchNorm(CHANNELS).eval()),
        "MinkowskiInstanceNorm": Case(lambda: ME.MinkowskiInstanceNorm(CHANNELS)),
        "MinkowskiStableInstanceNorm": Case(lambda: ME.MinkowskiStableInstanceNorm(CHANNELS)),
        **{f"Minkowski{n}": Case(lambda n=n: getattr(ME, f"Minkowski{n}")().eval()) for n in ACTIVATIONS},
        **{
            f"Minkowski{n}": Case(lambda n=n: getattr(ME, f"Minkowski{n}")(dim=1))
            for n in ("Softmin", "Softmax", "LogSoftmax")
        },
        "MinkowskiThreshold": Case(lambda: ME.MinkowskiThreshold(0.1, 2)),
        **{
            f"MinkowskiBroadcast{n}": Case(getattr(ME, f"MinkowskiBroadcast{n}"), with_items)
            for n in ("", "Addition", "Multiplication", "Concatenation")
        },
        "MinkowskiStackCat": Case(lambda: ME.MinkowskiStackCat(*(make() for make in SIDE_BY_SIDE))),
        **{
            f"MinkowskiStack{n}": Case(
                lambda n=n: getattr(ME, f"MinkowskiStack{n}")(*(make() for make in SIDE_BY_SIDE))
            )
            for n in ("Sum", "Mean", "Var")
        },
        "MinkowskiSinusoidal": Case(lambda: ME.MinkowskiSinusoidal(CHANNELS, 5)),
        "MinkowskiUnion": Case(ME.MinkowskiUnion, lambda layer, x: layer(x, x)),
        "MinkowskiToFeature": Case(ME.MinkowskiToFeature, lambda layer, x: x._with(layer(x))),
        "MinkowskiToSparseTensor": Case(
            ME.MinkowskiToSparseTensor, lambda layer, x: layer(ME.TensorField(x.F, x.C))
        ),
    },
    makes={
        "MinkowskiConvolution": Case(conv("Convolution", 2, 2), leads=coarse(2, 2, 2)),
        "MinkowskiConvolution of 3": Case(conv("Convolution", 3, 2), leads=coarse(2, 2, 2)),
        "MinkowskiConvolution, uneven": Case(conv("Convolution", 3, [1, 2, 3]), leads=coarse(1, 2, 3)),
        "MinkowskiConvolution, wider": Case(conv("Convolution", 3, expand_coordinates=True), leads=around(3)),
        "MinkowskiChannelwiseConvolution": Case(channelwise(3, 2), leads=coarse(2, 2, 2)),
        "MinkowskiConvolutionTranspose": Case(conv("ConvolutionTranspose", 2, 2), from_coarse, around(2, 2)),
        "MinkowskiGenerativeConvolutionTranspose": Case(
            conv("GenerativeConvolutionTranspose", 3, 2), from_coarse, around(3, 2)
        ),
        **{f"Minkowski{kind}Pooling": Case(pool(kind, 2, 2), leads=coarse(2, 2, 2)) for kind in ("Sum", "Avg", "Max")},
        "MinkowskiPoolingTranspose": Case(pool("Transpose", 2, 2), from_coarse, around(2, 2)),
        "MinkowskiPruning": Case(
            ME.MinkowskiPruning, lambda layer, x: layer(x, x.C[:, 2] > 4), lambda cell: [cell] * (cell[2] > 4)
        ),
        "MinkowskiUnion": Case(ME.MinkowskiUnion, with_moved),
    },
    items={
        **{f"MinkowskiGlobal{k}Pooling": Case(getattr(ME, f"MinkowskiGlobal{k}Pooling")) for k in ("", "Sum", "Avg", "Max")},
        "MinkowskiToDenseTensor": Case(
            lambda: ME.MinkowskiToDenseTensor(torch.Size([2, CHANNELS, *[EXTENT] * 3]))
        ),
        "MinkowskiInterpolation": Case(ME.MinkowskiInterpolation, at_points),
    },
)


# spconv.


def of_dimensions(name: str, *arguments: Any, channels: bool = True, **rest: Any) -> dict[str, Case]:
    first = (CHANNELS, 5) if channels else ()
    return {
        f"{name}{d}d": Case(
            lambda d=d: getattr(spconv, f"{name}{d}d")(*first, *arguments), dimension=d,
            **{key: value(d) for key, value in rest.items()},
        )
        for d in (1, 2, 3, 4)
    }


def down_and_back(dimension: int) -> Callable[[Any, Any], Any]:
    def call(layer: Any, x: Any) -> Any:
        down = getattr(spconv, f"SparseConv{dimension}d")(CHANNELS, CHANNELS, 2, 2, indice_key="down")
        torch.nn.init.ones_(down.weight)
        torch.nn.init.zeros_(down.bias)
        return layer(down.to(x.features.device, x.features.dtype)(x))

    return call


def inverse(dimension: int) -> Case:
    make = getattr(spconv, f"SparseInverseConv{dimension}d")
    return Case(lambda: make(CHANNELS, 5, 2, indice_key="down"), down_and_back(dimension), dimension=dimension)


def part_of(x: Any) -> Any:
    kept = x.indices[:, 1] > 3
    return spconv.SparseConvTensor(x.features[kept], x.indices[kept], x.spatial_shape, x.batch_size)


def batch_norm(kind: str) -> Case:
    return Case(lambda: getattr(spconv, kind)(CHANNELS).eval())


spconv_pytorch = Interface(
    tensor=lambda rows, cells: spconv.SparseConvTensor(rows, cells, [EXTENT] * (cells.shape[1] - 1), 2),
    rows=lambda y: (y.features, y.indices),
    keeps={
        **of_dimensions("SubMConv", 3),
        **{f"SparseInverseConv{d}d": inverse(d) for d in (1, 2, 3, 4)},
        "SparseConvolution": Case(lambda: spconv.SparseConvolution(3, CHANNELS, 5, 3, subm=True)),
        "SparseSequential": Case(lambda: spconv.SparseSequential(spconv.SubMConv3d(CHANNELS, 5, 3), torch.nn.ReLU())),
        "SparseBatchNorm": batch_norm("SparseBatchNorm"),
        "SparseSyncBatchNorm": batch_norm("SparseSyncBatchNorm"),
        "SparseReLU": Case(spconv.SparseReLU),
        "SparseIdentity": Case(spconv.SparseIdentity),
        "Identity": Case(spconv.Identity),
        "RemoveGrid": Case(spconv.RemoveGrid),
        "JoinTable": Case(spconv.JoinTable, lambda layer, x: layer([x, x])),
        "AddTable": Case(spconv.AddTable, lambda layer, x: layer([x, x])),
        "ConcatTable": Case(
            lambda: spconv.ConcatTable().add(spconv.SubMConv3d(CHANNELS, 5, 3)), lambda layer, x: layer(x)[0]
        ),
    },
    makes={
        **of_dimensions("SparseConv", 3, 2, 1),
        **of_dimensions("SparseConvTranspose", 3, 2, 1),
        **of_dimensions("SparseMaxPool", 2, 2, channels=False),
        **of_dimensions("SparseAvgPool", 2, 2, channels=False),
        "AddTableMisaligned": Case(spconv.AddTableMisaligned, lambda layer, x: layer([x, part_of(x)])),
    },
    items={
        "SparseGlobalMaxPool": Case(spconv.SparseGlobalMaxPool),
        "SparseGlobalAvgPool": Case(spconv.SparseGlobalAvgPool),
        "ToDense": Case(spconv.ToDense),
    },
)


# TorchSparse.


def torchsparse_conv(*arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: spnn.Conv3d(CHANNELS, 5, *arguments, **options)


def torchsparse_back(layer: Any, x: Any) -> Any:
    down = spnn.Conv3d(CHANNELS, CHANNELS, 2, 2)
    torch.nn.init.ones_(down.kernel)
    return layer(down.to(x.feats.device, x.feats.dtype)(x))


torchsparse_nn = Interface(
    tensor=lambda rows, cells: torchsparse.SparseTensor(rows, cells, spatial_range=(2, *[EXTENT] * 3)),
    rows=lambda y: (y.feats, y.coords),
    keeps={
        "Conv3d": Case(torchsparse_conv(3)),
        "Conv3d of one offset": Case(torchsparse_conv(1)),
        "Conv3d, transposed": Case(torchsparse_conv(2, 2, transposed=True), torchsparse_back),
        "BatchNorm": Case(lambda: spnn.BatchNorm(CHANNELS)),
        "SyncBatchNorm": Case(lambda: spnn.SyncBatchNorm(CHANNELS).eval()),
        "GroupNorm": Case(lambda: spnn.GroupNorm(2, CHANNELS)),
        "InstanceNorm": Case(lambda: spnn.InstanceNorm(CHANNELS)),
        **{n: Case(getattr(spnn, n)) for n in ("ReLU", "LeakyReLU", "SiLU")},
    },
    makes={
        "Conv3d": Case(torchsparse_conv(2, 2)),
        "Conv3d of 3": Case(torchsparse_conv(3, 2, 1)),
        "Conv3d, generative": Case(torchsparse_conv(2, 2, transposed=True, generative=True), torchsparse_back),
        "ToBEVReduction": Case(spnn.ToBEVReduction),
        "ToBEVConvolution": Case(lambda: spnn.ToBEVConvolution(CHANNELS, 5, EXTENT)),
    },
    items={
        "GlobalAvgPool": Case(spnn.GlobalAvgPool),
        "GlobalMaxPool": Case(spnn.GlobalMaxPool),
        "ToDenseBEVConvolution": Case(lambda: spnn.ToDenseBEVConvolution(CHANNELS, 5, [EXTENT] * 3)),
        "ToBEVHeightCompression": Case(lambda: spnn.ToBEVHeightCompression(CHANNELS, [EXTENT] * 3)),
    },
)

INTERFACES = {
    "minkowski": (ME, minkowski),
    "spconv": (spconv, spconv_pytorch),
    "torchsparse": (spnn, torchsparse_nn),
}
# Layers that keep one of several rows, whichever comes first, bases without rows of their own, and a loss, which
# has none either.
EXCEPTED = {
    "minkowski": {"MinkowskiModuleBase", "MinkowskiNetwork", "MinkowskiAdaptiveLogSoftmaxWithLoss"},
    "spconv": {"SparseModule", "RemoveDuplicate"},
    "torchsparse": {"SparseCrop"},
}
