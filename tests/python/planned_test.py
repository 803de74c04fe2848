"""Compiled models: sizes of buckets, what is given and returned, and on a GPU graphs against the layers themselves."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from conftest import NO_GPU, random_sites

import pumice
from pumice import _C, nn
from pumice.planned.sizes import Kept, capacity_for

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
EXTENT = 40


def cells_of(count: int, seed: int, batch: int = 2) -> torch.Tensor:
    """Sites in blobs, as dense in every scan of a size."""
    extent = max(4, round((8 * count) ** (1 / 3)))
    return random_sites(3, min(extent, EXTENT), count, batch, seed)


def scan(count: int, seed: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    cells = cells_of(count, seed)
    return cells.to(device), torch.randn(len(cells), 4, generator=generator).to(device, dtype)


def settle(net: torch.nn.Module) -> torch.nn.Module:
    """In evaluation, with statistics of norms that are not those they begin with."""
    generator = torch.Generator().manual_seed(5)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator) * 0.1)
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
    return net.eval()


def unet() -> torch.nn.Module:
    return settle(pumice.models.MinkUNet42(4, 5, width_factor=0.25))


def encoder() -> torch.nn.Module:
    """Ends on other sites than it begins with, beside a dense grid, features and a number."""

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.SubMConv3d(4, 16, 3), nn.BatchNorm(16), nn.ReLU())
            self.down = nn.Sequential(nn.Conv3d(16, 16, 3, stride=2, padding=1), torch.nn.LayerNorm(16), torch.nn.GELU())
            self.pool = nn.MaxPool(2, 2)
            self.bev = nn.ToBEV(shape=[16, 16, 16], crop=True)
            self.head = nn.GlobalPool("average")

        def forward(self, x: pumice.SparseTensor) -> dict[str, Any]:
            fine = self.stem(x)
            coarse = self.down(fine)
            return {
                "fine": fine,
                "both": (coarse, [self.pool(coarse), fine.features * 2]),
                "bev": self.bev(coarse),
                "items": self.head(coarse),
                "number": 7,
            }

    return settle(Encoder())


def tensors(value: Any) -> list[torch.Tensor]:
    """Of an output, exact, in its order; sites too."""
    if isinstance(value, dict):
        return [part for key in value for part in tensors(value[key])]
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in tensors(item)]
    if isinstance(value, pumice.CapacityTensor):
        return tensors(value.exact())
    if isinstance(value, pumice.SparseTensor):
        return [value.indices, value.features]
    return [value] if isinstance(value, torch.Tensor) else []


def in_order(made: list[torch.Tensor]) -> list[torch.Tensor]:
    """Rows by their sites: those of derived sites may come in another order."""
    result = []
    order = torch.arange(0)
    for tensor in made:
        if tensor.dtype == torch.int32:
            # CUDA has no product of whole numbers.
            keys = ((tensor.long() + 512) * torch.tensor([1 << 30, 1 << 20, 1 << 10, 1], device=tensor.device)).sum(1)
            order = keys.argsort()
        result.append(tensor[order] if tensor.dim() == 2 and len(tensor) == len(order) else tensor)
    return result


def expect_same(made: Any, expected: Any, bound: float = 1e-4) -> None:
    left, right = in_order(tensors(made)), in_order(tensors(expected))
    assert len(left) == len(right) > 0
    for one, other in zip(left, right):
        assert one.shape == other.shape and one.dtype == other.dtype and one.device == other.device
        if one.dtype == torch.int32 or one.numel() == 0:
            assert torch.equal(one, other)
        else:
            scale = other.float().abs().max().clamp(min=1e-6)
            torch.testing.assert_close(one.float() / scale, other.float() / scale, rtol=0, atol=bound)


def of_model(net: torch.nn.Module, cells: torch.Tensor, features: torch.Tensor, **site: Any) -> Any:
    with torch.no_grad():
        return net(pumice.SparseTensor(cells, features, batch_size=2, **site))


# Sizes.


def test_sizes_grow_by_the_ratio_in_steps() -> None:
    sizes = sorted({capacity_for(rows, 1.25) for rows in range(1, 200_000, 777)})
    assert sizes[0] == 1024 and all(size % 1024 == 0 for size in sizes)
    for small, large in zip(sizes, sizes[1:]):
        assert small < large <= max(small + 1024, 1.25 * small + 1024)
    for rows in (0, 1, 1023, 1024, 1025, 91_767, 5_000_000):
        room = capacity_for(rows, 1.25)
        assert rows <= room and (rows == 0 or capacity_for(room, 1.25) == room)


def test_a_most_ends_the_sizes() -> None:
    assert capacity_for(90_000, 1.25, 90_500) == 90_500
    assert capacity_for(500, 1.25, 700) == 700
    assert capacity_for(90_501, 1.25, 90_500) is None


class Held:
    def __init__(self, number: int) -> None:
        self.bytes = number


def test_the_least_recently_used_go_first() -> None:
    kept = Kept(3, 100)
    values = {name: kept.get(name, lambda: Held(30)) for name in "abc"}
    assert kept.get("a", lambda: Held(0)) is values["a"] and kept.bytes == 90 and kept.shrink() == []
    kept.get("d", lambda: Held(30))
    assert kept.shrink() == [values["b"]] and len(kept) == 3
    last = kept.get("e", lambda: Held(500))
    assert kept.shrink()[0] is values["c"] and list(kept) == [last], "the last one stays"


# What is given and returned, on the CPU: the model itself.


def test_on_the_cpu_the_model_runs_as_it_is() -> None:
    for net in (unet(), encoder()):
        fast = pumice.compile(net)
        for seed, count in enumerate((0, 1, 31, 33, 700)):
            given = scan(count, seed)
            expect_same(fast(*given, batch_size=2), of_model(net, *given), 0)


def test_results_stand_on_the_sites_given() -> None:
    net = nn.Sequential(nn.SubMConv3d(4, 8, 3)).eval()
    cells, features = scan(200, 1)
    x = pumice.SparseTensor(cells, features, batch_size=2, spatial_shape=[64] * 3)
    fast = pumice.compile(net)
    assert fast(x).coords is x.coords
    y = fast(cells.long(), features, batch_size=2, spatial_shape=[64] * 3)
    assert y.batch_size == 2 and y.spatial_shape == (64, 64, 64) and y.stride == (1, 1, 1) and len(y) == len(cells)
    assert torch.equal(y.indices, cells) and y.device == cells.device
    expect_same(nn.SubMConv3d(8, 2, 3).eval()(y), nn.SubMConv3d(8, 2, 3).eval()(y), 10)  # sites are made when asked for
    assert y.coords.sites.rows == len(cells) and y.dense().shape == (2, 8, 64, 64, 64)


def test_models_of_spconv_take_and_give_its_tensors() -> None:
    from pumice.compat import spconv

    net = settle(spconv.SparseSequential(
        spconv.SubMConv3d(4, 8, 3, bias=False, indice_key="a"), torch.nn.BatchNorm1d(8), torch.nn.ReLU()
    ))  # fmt: skip
    cells, features = scan(300, 2)
    x = spconv.SparseConvTensor(features, cells, [64] * 3, 2)
    y = pumice.compile(net)(x)
    assert type(y) is spconv.SparseConvTensor and y.indices is x.indices
    with torch.no_grad():
        torch.testing.assert_close(y.features, net(x).features + 0)


def test_input_makes_what_the_model_is_called_with() -> None:
    class Detector(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.SubMConv3d(4, 8, 3)

        def forward(self, batch: dict[str, Any]) -> dict[str, Any]:
            return {"voxels": self.layer(batch["voxels"]), "names": None}

    net = Detector().eval()
    cells, features = scan(100, 3)
    made = pumice.compile(net, input=lambda x: {"voxels": x})(cells, features, batch_size=2)
    assert made["names"] is None
    expect_same(made["voxels"], of_model(net.layer, cells, features), 0)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: pumice.compile(7), "model is a number|model is an int"),
    (lambda: pumice.compile(nn.SubMConv3d(4, 8, 3)), "training"),
    (lambda: pumice.compile(unet(), buckets=1), "buckets = 1"),
    (lambda: pumice.compile(unet(), max_voxels=0), "max_voxels = 0"),
    (lambda: pumice.compile(unet(), max_bytes=-1), "max_bytes = -1"),
    (lambda: pumice.compile(unet(), fallback="cpu"), "fallback = 'cpu'"),
    (lambda: pumice.compile(unet(), input=3), "input is"),
    (lambda: pumice.compile(unet())(3), "give coords"),
    (lambda: pumice.compile(unet())(*scan(9, 0), 4), "give coords"),
    (lambda: pumice.compile(unet())(scan(9, 0)[0].float(), torch.ones(9, 4)), "coords"),
    (lambda: pumice.compile(unet())(scan(9, 0)[0], scan(9, 0)[1].int()), "features"),
    (lambda: pumice.compile(unet())(scan(9, 0)[0], scan(5, 0)[1]), "one row for each"),
    (lambda: pumice.compile(unet())(scan(9, 0)[0], torch.ones(9)), r"features have shape \(9,\) and must be 2-D, \[rows, channels\]"),
    (lambda: pumice.compile(unet())(scan(9, 0)[0], torch.ones(9, 2, 2)), r"\(9, 2, 2\) and must be 2-D, .*flatten\(1\)"),
    (lambda: pumice.compile(unet())(pumice.SparseTensor(*scan(9, 0)), batch_size=2), "leave them out"),
    (lambda: pumice.compile(unet())(scan(9, 0)[0], scan(9, 0)[1].requires_grad_()), "gradient"),
    (lambda: pumice.compile(unet())(*scan(50, 0)), "batch index"),
]


@pytest.mark.parametrize("call, part", BAD)
def test_mistakes_are_named(call: Callable[[], Any], part: str) -> None:
    with pytest.raises(pumice.UserError, match=part):
        call()


def test_training_and_hooks_are_refused_by_name() -> None:
    net = unet()
    net.stage2.train()
    with pytest.raises(pumice.UserError, match=r"'stage2' \(Sequential\) is in training"):
        pumice.compile(net)
    net.eval()
    net.stem[0].register_forward_hook(lambda *_: None)
    with pytest.raises(pumice.UserError, match=r"'stem.0' \(SubMConv3d\) has hooks"):
        pumice.compile(net)
    net = unet()
    fast = pumice.compile(net)
    net.train()
    with pytest.raises(pumice.UserError, match=r"the model \(MinkUNet42\) is in training"):
        fast(*scan(50, 0), batch_size=2)


def test_other_outputs_are_refused() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": [x, {1, 2}]}

    with pytest.raises(pumice.UserError, match=r"the output\['x'\]\[1\] is a set"):
        pumice.compile(Odd().eval())(*scan(50, 0), batch_size=2)


# Graphs.


def passes(fast: Any, scans: list[Any], **site: Any) -> None:
    """Until graphs of all their buckets are recorded."""
    for _ in range(3):
        for given in scans:
            fast(*given, batch_size=2, **site)


@cuda
@pytest.mark.parametrize("make", [unet, encoder])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("eager", [False, True])
def test_graphs_give_what_the_layers_do_cuda(make: Any, dtype: torch.dtype, eager: bool) -> None:
    net = make().cuda().to(dtype)
    fast = pumice.compile(net, eager=eager)
    bound = 1e-4 if dtype == torch.float32 else 3e-2
    for seed, count in enumerate((4000, 3900, 3800, 4000, 3700, 3950, 1, 33, 1000, 900, 1000, 950, 0, 4000)):
        given = scan(count, seed, "cuda", dtype)
        expect_same(fast(*given, batch_size=2), of_model(net, *given), bound)
    fast.wait()


@cuda
def test_the_same_bits_every_time_cuda() -> None:
    net = unet().cuda().half()
    fast = pumice.compile(net)
    torch.use_deterministic_algorithms(True)
    try:
        scans = [scan(4000 - 10 * seed, seed, "cuda", torch.float16) for seed in range(4)]
        passes(fast, scans)
        first = [fast(*given, batch_size=2).features for given in scans]
        for _ in range(25):
            for given, was in zip(scans, first):
                assert torch.equal(fast(*given, batch_size=2).features, was)
    finally:
        torch.use_deterministic_algorithms(False)


@cuda
@pytest.mark.filterwarnings("ignore:.*prototype")
def test_nothing_waits_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    net = encoder().cuda()
    fast = pumice.compile(net)
    scans = [scan(4000 - 10 * seed, seed, "cuda") for seed in range(4)]
    passes(fast, scans)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(300_000_000)  # some 150 ms of a GPU, before which nothing below can end
        busy = torch.cuda.Event()
        busy.record()
        made = [fast(*given, batch_size=2) for given in scans for _ in range(3)]
        assert not busy.query(), "a call waited for the device"
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expect_same(made[-1], of_model(net, *scans[-1]))


@cuda
def test_memory_does_not_grow_cuda() -> None:
    net = encoder().cuda()
    fast = pumice.compile(net)
    scans = [scan(count - 10 * seed, seed, "cuda") for seed in range(4) for count in (4000, 2000)]
    passes(fast, scans)
    levels = []
    for turn in range(200):
        fast(*scans[turn % len(scans)], batch_size=2)
        if turn % 50 == 49:
            torch.cuda.synchronize()
            gc.collect()
            levels.append(torch.cuda.memory_allocated())
    assert levels[1] == levels[-1], levels


@cuda
def test_buckets_go_where_there_are_too_many_bytes_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net, max_bytes=1)
    for count in (4000, 8000, 4000):
        passes(fast, [scan(count, 1, "cuda")])
        assert len(fast._buckets) == 1
    expect_same(fast(*scan(4000, 2, "cuda"), batch_size=2), of_model(net, *scan(4000, 2, "cuda")))
    assert fast.bytes > 0 and "room for [" in repr(fast)
    fast.forget()
    assert fast.bytes == 0


@cuda
def test_changes_of_the_model_are_noticed_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net)
    given = scan(4000, 1, "cuda")
    passes(fast, [given])

    def check() -> None:
        expect_same(fast(*given, batch_size=2), of_model(net, *given))

    check()
    with torch.no_grad():
        net.stem[0].weight.mul_(1.5)
    check()
    other = settle(copy.deepcopy(net))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.1)
    net.load_state_dict(other.state_dict())
    check()
    next(module for module in net.modules() if isinstance(module, nn.BatchNorm)).running_mean.add_(0.5)
    check()
    net.classifier = nn.Sequential(nn.Linear(net.widths[-1], 7)).cuda().eval()
    check()
    nn.freeze(net)
    check()
    net.half()
    given = given[0], given[1].half()
    passes(fast, [given])
    expect_same(fast(*given, batch_size=2), of_model(net, *given), 3e-2)
    net.stage1.train()
    with pytest.raises(pumice.UserError, match="'stage1'"):
        net.stem[0].weight.data = net.stem[0].weight.data.clone()  # a change, so that modules are looked at
        fast(*given, batch_size=2)


@cuda
def test_frozen_models_and_eager_passes_between_cuda() -> None:
    """What a graph reads stays, whatever eager passes pack meanwhile."""
    for frozen in (False, True):
        net = unet().cuda()
        if frozen:
            nn.freeze(net)
        fast = pumice.compile(net)
        given = scan(4000, 1, "cuda")
        passes(fast, [given])
        expected = fast(*given, batch_size=2).features
        nn.freeze(net)
        for seed in range(4):
            of_model(net, *scan(5000, seed, "cuda"))
        for layer in net.modules():
            if hasattr(layer, "_kept"):
                layer._kept.frozen = False
        of_model(net, *scan(3000, 5, "cuda"))
        gc.collect()
        torch.cuda.empty_cache()
        filler = [torch.full((1 << 20,), float("nan"), device="cuda") for _ in range(64)]
        assert torch.isfinite(expected).all() and len(filler) == 64
        torch.testing.assert_close(fast(*given, batch_size=2).features, expected, rtol=1e-5, atol=1e-5)


@cuda
def test_autocast_and_its_types_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net)
    given = scan(4000, 1, "cuda")
    for dtype in (torch.float16, torch.bfloat16, None):
        with torch.autocast("cuda", dtype or torch.float16, enabled=dtype is not None):
            passes(fast, [given])
            made, expected = fast(*given, batch_size=2), of_model(net, *given)
        assert made.dtype == expected.dtype
        expect_same(made, expected, 1e-4 if dtype is None else 5e-2)


@cuda
def test_too_many_rows_or_sites_out_of_bounds_are_raised_cuda() -> None:
    net = encoder().cuda()
    fast = pumice.compile(net, max_voxels=4000)
    cells, features = scan(3900, 1, "cuda")
    shape = [64, 64, 64]
    passes(fast, [(cells, features)], spatial_shape=shape)
    with pytest.raises(pumice.UserError, match="max_voxels = 4000"):
        fast(*scan(4500, 1, "cuda"), batch_size=2)
    far = cells.clone()
    far[7, 2] = 64
    made = fast(far, features, batch_size=2, spatial_shape=shape)
    with pytest.raises(pumice.UserError, match=f"1 of {len(cells)} coordinates lie outside"):
        fast.wait()
    assert made["fine"].features.isnan().any()
    with pytest.raises(pumice.UserError, match="more were"):
        made["both"][0].exact()
    good = fast(cells, features, batch_size=2, spatial_shape=shape)
    expect_same(good, of_model(net, cells, features, spatial_shape=shape))
    fast.wait()


@cuda
def test_a_later_call_raises_what_went_wrong_in_an_earlier_one_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net)
    site = {"batch_size": 2, "spatial_shape": [64, 64, 64]}
    cells, features = scan(3900, 1, "cuda")
    for _ in range(3):
        fast(cells, features, **site)
    far = cells.clone()
    far[7, 2] = 64
    fast(far, features, **site)
    torch.cuda.synchronize()
    with pytest.raises(pumice.UserError, match=f"an earlier call .* 1 of {len(cells)} coordinates"):
        fast(cells, features, **site)
    with torch.no_grad():
        expect_same(fast(cells, features, **site), net(pumice.SparseTensor(cells, features, **site)))
    fast.wait()


@cuda
def test_buckets_share_memory_cuda() -> None:
    net = unet().cuda()
    large, small = scan(60_000, 1, "cuda"), scan(45_000, 2, "cuda")
    alone = []
    for given in (large, small):
        fast = pumice.compile(net)
        alone.append(fast.plan(*given, batch_size=2))
        assert alone[-1] == fast.bytes > 0
        fast.forget()
        torch.cuda.synchronize()
    fast = pumice.compile(net)
    together = fast.plan(*large, batch_size=2) + fast.plan(*small, batch_size=2)
    assert len(fast._buckets) == 2 and together == fast.bytes < 0.8 * sum(alone), (alone, together)
    for given in (large, small, large):
        expect_same(fast(*given, batch_size=2), of_model(net, *given))


@cuda
def test_threads_may_share_a_compiled_model_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net)
    scans = [scan(4000 - 10 * seed, seed, "cuda") for seed in range(4)]
    passes(fast, scans)
    expected = [of_model(net, *given).features for given in scans]
    torch.cuda.synchronize()

    def work(number: int) -> list[torch.Tensor]:
        with torch.cuda.stream(torch.cuda.Stream()):
            return [fast(*scans[number], batch_size=2).features for _ in range(20)]

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(work, range(4)))
    torch.cuda.synchronize()
    for some, one in zip(made, expected):
        for features in some:
            torch.testing.assert_close(features, one, rtol=1e-3, atol=1e-3)


def lone_and_dense(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sites on a plane of every tenth cell, and as many side by side: the same rows, other numbers of what follows."""
    at = torch.arange(count)
    grid = torch.stack([at * 0, at % 40, at // 40 % 40, at // 1600], 1).int()
    return grid * torch.tensor([1, 10, 10, 10], dtype=torch.int32), grid


@cuda
@pytest.mark.parametrize("fallback", ["raise", "eager"])
def test_a_denser_scan_than_there_is_room_for_cuda(fallback: str) -> None:
    net = unet().cuda()
    lone, dense = (cells.cuda() for cells in lone_and_dense(64_000))
    features = torch.randn(64_000, 4, device="cuda")
    fast = pumice.compile(net, fallback=fallback)
    site = {"batch_size": 1, "spatial_shape": [400, 400, 400]}
    for _ in range(3):
        fast(lone, features, **site)
    made = fast(dense, features, **site)
    with torch.no_grad():
        expected = net(pumice.SparseTensor(dense, features, **site))
    if fallback == "eager":
        expect_same(made, expected)
        expect_same(fast(dense, features, **site), expected)  # has room by now
    else:
        assert made.features.isnan().any()
        with pytest.raises(pumice.UserError, match="needed, capacity"):
            fast.wait()
    with torch.no_grad():
        expect_same(fast(lone, features, **site), net(pumice.SparseTensor(lone, features, **site)))
    fast.wait()


@cuda
def test_larger_scans_run_eagerly_where_that_is_asked_for_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net, max_voxels=2000, fallback="eager")
    for seed, count in enumerate((1900, 1950, 1800, 5000, 1990)):
        given = scan(count, seed, "cuda")
        expect_same(fast(*given, batch_size=2), of_model(net, *given))


@cuda
def test_streams_of_the_caller_cuda() -> None:
    net = unet().cuda()
    fast = pumice.compile(net)
    scans = [scan(4000 - 10 * seed, seed, "cuda") for seed in range(4)]
    passes(fast, scans)
    expected = [of_model(net, *given) for given in scans]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    made = []
    for turn in range(40):
        with torch.cuda.stream(streams[turn % 2]):
            torch.cuda._sleep(100_000)
            cells, features = scans[turn % 4]
            features = features * 1  # made on this very stream, late
            made.append(fast(cells, features, batch_size=2).features * 1)
    torch.cuda.synchronize()
    for turn, features in enumerate(made):
        torch.testing.assert_close(features, expected[turn % 4].features, rtol=1e-3, atol=1e-3)


def test_the_extension_counts_plans() -> None:
    assert _C.plans_in_use() == _C.plans_in_use()
