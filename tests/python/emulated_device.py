"""A CUDA device where there is none: the fake driver and the emulating compiler of the C++ tests, and
tensors that say they are on it. Run by emulated_device_test.py in a process of its own, since which
driver there is is decided once."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

import torch
from conftest import random_sites

import pumice
from pumice import _C, nn
from pumice.window import Window

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
fake_driver = ctypes.CDLL(os.environ["PUMICE_CUDA_DRIVER"])
fake_driver.pumice_fake_driver_enqueued.restype = ctypes.c_ulong
in_use: set[int] = set()


full = False  # as a device is whose last memory lies in kept blocks
pauses: dict[str, Callable[[], object]] = {}  # of a thread by name, in its next allocation


def raw_allocate(size: int, stream: int) -> int:
    pauses.pop(threading.current_thread().name, lambda: None)()  # PyTorch's gives the GIL away here
    if full and _C.kept_device_bytes() > 0:
        raise MemoryError(f"{size} bytes are not there")
    address = libc.aligned_alloc(256, (size + 255) // 256 * 256)
    in_use.add(address)
    return address


def raw_free(address: int) -> None:
    in_use.remove(address)
    libc.free(address)


class OnDevice(torch.Tensor):
    """Memory of the host, which is that of the emulated device."""

    @staticmethod
    def of(tensor: torch.Tensor) -> OnDevice:
        return tensor.detach().clone().as_subclass(OnDevice)

    def get_device(self) -> int:
        return 0

    def host(self) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)


def same(left: OnDevice, right: torch.Tensor, what: str) -> None:
    assert type(left) is OnDevice, f"{what} is a {type(left)}"
    torch.testing.assert_close(left.host(), right.detach(), rtol=1e-5, atol=1e-5, msg=what)
    print(f"{what} agrees", flush=True)


def all_same(left: tuple, right: tuple, what: str) -> None:
    for index, (here, there) in enumerate(zip(left, right, strict=True)):
        if there is not None:
            same(here, there, f"{what}, result {index}")


def plans(features: torch.Tensor, layer: torch.nn.Module, here: object, there: object) -> None:
    """One plan of each kind that needs no cuBLAS, with weights that were packed for another one."""
    weight = layer.weight.detach()
    expected = _C.convolution(features, weight, here, None, 1, False, False, None, None, None, 0)
    on_device = OnDevice.of(features), OnDevice.of(weight)
    kinds = {}
    for plan, _ in _C.candidates(*on_device, there, "forward", 1, False, False):
        kinds.setdefault((plan.dataflow, plan.sort_by_mask, plan.splits > 1), plan)
    assert len(kinds) > 3, kinds
    kept = _C.PackedWeights()
    _C.record_plans(True)
    for (dataflow, *_), plan in kinds.items():
        if dataflow == "gather_gemm_scatter":
            continue
        given = _C.Plans(plan, None, None)
        made = _C.convolution(*on_device, there, None, 1, False, False, None, given, kept, 3)
        same(made, expected, f"convolution by {plan.name}")
        assert _C.recorded_plans_of_all() == [("forward", plan)]
    _C.record_plans(False)
    refused = False
    try:
        _C.convolution(features, weight, here, None, 1, False, False, None, given, None, 0)
    except ValueError as error:
        refused = "is one of a device, and features are on the CPU" in str(error)
    assert refused, "a plan of a device ran on the CPU"


def gradients(features: torch.Tensor, layer: torch.nn.Module, here: object, there: object) -> None:
    """All of a convolution in one call, of a weight in float32 beside features in half precision
    too, which only a device takes."""
    weight = layer.weight.detach()
    gradient = torch.randn(len(features), weight.shape[2])
    call = (1, False, False, None, None, True, True, True)
    all_same(
        _C.convolution_gradients(
            OnDevice.of(features), OnDevice.of(weight), OnDevice.of(gradient), there, *call
        ),
        _C.convolution_gradients(features, weight, gradient, here, *call),
        "gradients of a convolution",
    )
    half = [OnDevice.of(t.half()) for t in (features, weight, gradient)]
    rounded = _C.convolution_gradients(*half, there, *call)
    wide = _C.convolution_gradients(half[0], OnDevice.of(half[1].float()), half[2], there, *call)
    assert torch.equal(rounded[0].host(), wide[0].host()), "a weight is not rounded as it is packed"
    assert wide[1].host().dtype == torch.float32 and rounded[1].host().dtype == torch.float16
    assert torch.equal(wide[1].host().half(), rounded[1].host()), "a gradient stays in float32"
    print("gradients in half precision agree", flush=True)


def norms(features: torch.Tensor, other: torch.Tensor) -> None:
    channels = features.shape[1]
    residual, gradient = other[:, :channels].contiguous(), torch.randn_like(features)
    for relu in (False, True):
        made = []
        for place in (torch.Tensor.clone, OnDevice.of):
            x, r, g = place(features), place(residual), place(gradient)
            weight, bias = place(torch.linspace(0.5, 2, channels)), place(torch.ones(channels) * 0.1)
            running = place(torch.zeros(channels)), place(torch.ones(channels))
            running = *running, place(torch.tensor(6))
            forward = _C.batch_norm_training(x, weight, bias, *running, 1e-5, 0.1, r, relu, None)
            output = forward[0] if relu else None
            backward = _C.batch_norm_training_gradient(
                x, g, weight, *forward[1:], output, True, None
            )
            made.append((*forward, *backward, *running))
        all_same(made[1], made[0], f"batch norm, relu={relu}")


def sites_of(cells: torch.Tensor) -> object:
    return _C.create_sites(OnDevice.of(cells), None, None, 2, [0] * 3, [7] * 3)


def enqueued() -> int:
    """How many kernels, copies and fills the device was given so far."""
    return fake_driver.pumice_fake_driver_enqueued()


def chains(cells: torch.Tensor) -> None:
    """A residual block with a shortcut of its own, and what is given as a second value added at the
    end; then in half precision beside weights and norms in float32, as under autocast, which only a
    device takes, beside norms alone in float32, and with everything in half precision. There without
    a ReLU, since inputs that change sides change gradients by more than rounding does. Twice, with
    maps of their own. What is converted as a whole takes no more launches than autocast, but for one
    that rounds the gradients of weights. Then with weights in spconv's layout, [out, offsets, in],
    which takes one launch more a call."""
    x = pumice.SparseTensor(cells, torch.randn(len(cells), 8), batch_size=2)
    wide, narrow = (nn.SubMConv3d(8, 8, size).window for size in (3, 1))
    windows = [wide, narrow, wide, wide]
    shapes = [(27, 8, 16), (1, 8, 16), (27, 16, 16), (27, 16, 8)]
    other = torch.randn(len(cells), 8)
    parameters, running = [], []
    for offsets, cin, cout in shapes:
        parameters += [torch.randn(offsets, cin, cout), torch.rand(cout) + 0.5, torch.randn(cout)]
        running += [torch.randn(cout), torch.rand(cout) + 0.5, torch.tensor(4)]
    gradient = torch.randn_like(other)

    def chain_of(relu: bool) -> _C.Chain:
        return _C.Chain([(0, -1, -1, relu, 1e-5, 0.1), (0, -1, -1, False, 1e-3, 0.2),
                         (2, -1, 3, relu, 1e-5, 0.1), (4, -1, 1, relu, 1e-5, 0.1)])  # fmt: skip

    turned = tuple(_C.WeightLayout([cout, *kernel], [1, 2, 0]) for *kernel, cout in shapes)
    as_they_are = (None,) * len(shapes)

    def run(
        place: object, maps: tuple, chain: _C.Chain, kinds: tuple, layouts: tuple, *given: torch.Tensor
    ) -> tuple:
        """(results, launches of each call); `kinds`: of weights, of norms."""
        features, second, g = map(place, given)
        lie = [t.permute(2, 0, 1).contiguous() if t.dim() == 3 and layouts is turned else t for t in parameters]
        learned = tuple(
            place(t.to(kinds[0] if index % 3 == 0 else kinds[1])) for index, t in enumerate(lie)
        )
        moving = tuple(place(t.to(kinds[1]) if t.is_floating_point() else t) for t in running)
        counts = [enqueued()]
        weights = _C.ChainWeights(chain, features, learned, layouts, moving)
        result = [_C.chain_inference(features, second, chain, maps, weights, False, False)]
        counts.append(enqueued())
        call = (features, second, chain, maps, learned, layouts)
        output, record = _C.chain_training(*call, moving, False, False, True, True)
        counts.append(enqueued())
        back = _C.chain_gradients(g, output, *call, record, False, False, True, True)
        counts.append(enqueued())
        taken = [after - before for before, after in zip(counts, counts[1:])]
        return (*result, output, *back, *moving), taken

    here = tuple(pumice.ops.submanifold_map(x.coords, window) for window in windows)
    given = (x.features, other, gradient)
    f32, f16 = torch.float32, torch.float16
    taken = {}
    for dtype, kinds, relu, bound, layouts in (
        (f32, (f32, f32), True, 2e-5, as_they_are), (f16, (f32, f32), False, 1e-2, as_they_are),
        (f16, (f16, f32), False, 1e-2, as_they_are), (f16, (f16, f16), False, 1e-2, as_they_are),
        (f32, (f32, f32), True, 2e-5, turned), (f16, (f32, f32), False, 1e-2, turned),
        (f16, (f16, f16), False, 1e-2, turned),
    ):  # fmt: skip
        expected, _ = run(torch.Tensor.clone, here, chain_of(relu), (f32, f32), as_they_are, *given)
        chain = chain_of(relu)
        for turn in ("first", "second"):
            sites = sites_of(cells)
            there = tuple(_C.submanifold_map(sites, window.c) for window in windows)
            made, taken[dtype, kinds, layouts is turned] = run(
                OnDevice.of, there, chain, kinds, layouts, *(t.to(dtype) for t in given)
            )
            for index, (mine, exact) in enumerate(zip(made, expected, strict=True)):
                found = mine.host().float()
                if layouts is turned and found.dim() == 3:  # the gradient of a weight
                    found = found.permute(1, 2, 0)
                error = (found - exact.float()).norm() / exact.float().norm()
                assert error < bound, f"result {index} of a chain in {dtype} is off by {error}"
                kind = dtype  # of values, then of what is learned and of what is kept
                if index >= 4:
                    kind = kinds[0] if index < 16 and index % 3 == 1 else kinds[1]
                if exact.dtype == torch.int64:
                    kind = exact.dtype
                assert type(mine) is OnDevice and mine.host().dtype == kind, index
            print(f"chain in {dtype} beside {kinds} agrees the {turn} time", flush=True)
    autocast, mixed = taken[f16, (f32, f32), False], taken[f16, (f16, f32), False]
    for key in [key for key in taken if key[2]]:
        for mine, theirs in zip(taken[key], taken[(*key[:2], False)]):
            assert mine <= theirs + 1, f"{taken[key]} launches with other layouts of weights"
    for kinds, allowed in ((mixed, (0, 0, 2)), (taken[f16, (f16, f16), False], (0, 0, 1))):
        for mine, theirs, more in zip(kinds, autocast, allowed):
            assert mine <= theirs + more, f"{kinds} launches, {autocast} under autocast"
    print(f"launches of a chain: {taken}", flush=True)


def joined_chains(cells: torch.Tensor) -> None:
    """A residual block of two tensors, whose shortcut is a link: in inference kernels read both and the shortcut too,
    which leaves a launch for each convolution. Training gives what a concatenation gives, whose gradient is cut into
    two."""
    x = pumice.SparseTensor(cells, torch.randn(len(cells), 16), batch_size=2)
    second = torch.randn(len(cells), 8)
    wide, narrow = (nn.SubMConv3d(8, 8, size).window for size in (3, 1))
    windows, shapes = [narrow, wide, wide], [(1, 24, 16), (27, 24, 16), (27, 16, 16)]
    parameters, running = [], []
    for shape in shapes:
        parameters += [torch.randn(*shape), torch.rand(16) + 0.5, torch.randn(16)]
        running += [torch.randn(16), torch.rand(16) + 0.5, torch.tensor(4)]
    gradient = torch.randn(len(cells), 16)
    apart = _C.Chain([(0, 1, -1, False, 1e-3, 0.2), (0, 1, -1, False, 1e-5, 0.1), (3, -1, 2, False, 1e-5, 0.1)])
    joined = _C.Chain([(0, -1, -1, False, 1e-3, 0.2), (0, -1, -1, False, 1e-5, 0.1), (3, -1, 2, False, 1e-5, 0.1)])
    here = tuple(pumice.ops.submanifold_map(x.coords, window) for window in windows)

    def run(place: object, maps: tuple, chain: _C.Chain, features: torch.Tensor, other: object, dtype: object) -> tuple:
        """(results, launches of an inference whose weights are packed and whose maps are cut)"""
        values = [None if t is None else place(t.to(dtype)) for t in (features, other)]
        learned, moving = tuple(map(place, parameters)), tuple(map(place, running))
        layouts = (None,) * len(shapes)
        weights = _C.ChainWeights(chain, values[0], learned, layouts, moving)
        for _ in range(2):
            before = enqueued()
            inferred = _C.chain_inference(*values, chain, maps, weights, False, False)
            launches = enqueued() - before
        wants = (True, other is not None)
        call = (*values, chain, maps, learned, layouts)
        output, record = _C.chain_training(*call, moving, False, False, *wants)
        back = _C.chain_gradients(place(gradient.to(dtype)), output, *call, record, False, False, *wants)
        return (inferred, output, *back), launches

    whole, _ = run(
        torch.Tensor.clone, here, joined, torch.cat([x.features, second], 1), None, torch.float32
    )
    expected = [*whole[:2], whole[2][:, :16], whole[2][:, 16:], *whole[4:]]
    for dtype, bound in ((torch.float32, 2e-5), (torch.float16, 1e-2)):
        sites = sites_of(cells)
        there = tuple(_C.submanifold_map(sites, window.c) for window in windows)
        made, launches = run(OnDevice.of, there, apart, x.features, second, dtype)
        for index, (mine, exact) in enumerate(zip(made, expected, strict=True)):
            error = (mine.host().float() - exact).norm() / exact.norm()
            assert error < bound, f"result {index} of a chain of two tensors in {dtype} is off by {error}"
        if dtype == torch.float16:
            together = torch.cat([x.features, second], 1)
            _, more = run(OnDevice.of, there, joined, together, None, dtype)
            assert (launches, more) == (2, 2), f"{launches} and {more} launches for two convolutions"
        print(f"a chain of two tensors in {dtype} agrees, {launches} launches", flush=True)


def threads(cells: torch.Tensor) -> None:
    """Two threads ask for the same of one map, one of them while the other waits for memory to make it
    in. Neither waits for the other, and both have the right answer."""
    layer = nn.SubMConv3d(8, 16, 3)
    features, gradient = torch.randn(len(cells), 8), torch.randn(len(cells), 16)
    x = pumice.SparseTensor(cells, features, batch_size=2)
    here = pumice.ops.submanifold_map(x.coords, layer.window)
    call = (1, False, False, None)
    expected = _C.convolution_weight_gradient(features, gradient, here, *call)
    for of_tiles in (False, True):
        there = _C.submanifold_map(sites_of(cells), layer.window.c)
        on_device = [OnDevice.of(t) for t in (features, gradient, layer.weight)]
        if of_tiles:  # then the pairs are made of what the tiles were
            _C.convolution(on_device[0], on_device[2], there, None, *call, None, None, 0)
        is_inside, is_done = threading.Event(), threading.Event()
        results: dict[str, OnDevice] = {}

        def run(there=there, on_device=on_device, results=results) -> None:
            name = threading.current_thread().name
            results[name] = _C.convolution_weight_gradient(*on_device[:2], there, *call)

        def wait(is_inside=is_inside, is_done=is_done) -> None:
            is_inside.set()
            assert is_done.wait(30), "the second thread waits for the first"

        _C.release_device_memory()  # so that what is missing is asked of PyTorch
        pauses["first"] = wait
        first, second = (threading.Thread(target=run, name=name) for name in ("first", "second"))
        first.start()
        assert is_inside.wait(30), "nothing was allocated"
        second.start()
        second.join(30)
        is_done.set()
        first.join(30)
        assert not first.is_alive() and not second.is_alive()
        for name in ("first", "second"):
            same(results[name], expected, f"weight gradient of the {name} of two threads")


def points() -> None:
    """Voxels of points, rows merged and taken, and interpolation."""
    where = torch.randn(200, 5) * 2
    batch = torch.randint(0, 2, (200,), dtype=torch.int32)
    box = [-2.0, -2.0, -1.0, 2.0, 3.0, 1.5]
    bounds = torch.stack(torch.aminmax(where[:, :3], dim=0)).flatten().tolist()
    for range, shape in ((None, None), (box, None), (box, [4, 5, 3])):
        call = ([0.5, 0.8, 0.6], range, shape, 2)
        here, rows = _C.voxel_sites(where, batch, *call, None)
        there, rows_there = _C.voxel_sites(
            OnDevice.of(where), OnDevice.of(batch), *call, None if range else bounds
        )
        assert there.rows == here.rows and there.device == "cuda:0"
        same(rows_there, rows, "rows of points")
    for reduction in ("mean", "sum", "max", "first"):
        merged, source = _C.reduce_rows(where, rows, here.rows, reduction)
        merged_there, source_there = _C.reduce_rows(
            OnDevice.of(where), rows_there, here.rows, reduction
        )
        gradient = torch.randn_like(merged)
        back = _C.reduce_rows_gradient(gradient, rows, source, reduction)
        back_there = _C.reduce_rows_gradient(
            OnDevice.of(gradient), rows_there, source_there, reduction
        )
        all_same(
            (merged_there, source_there, back_there), (merged, source, back), f"rows by {reduction}"
        )
    same(_C.take_rows(merged_there, rows_there), _C.take_rows(merged, rows), "rows taken")
    same(
        _C.scatter_rows(OnDevice.of(where), rows_there, here.rows),
        _C.scatter_rows(where, rows, here.rows),
        "rows scattered",
    )
    at = torch.cat([batch[:, None].float(), where[:, :3]], 1)
    found = _C.interpolation_map(here, at, False, True)
    found_there = _C.interpolation_map(there, OnDevice.of(at), False, True)
    all_same(found_there, found, "rows around points")
    same(
        _C.interpolate(merged_there, *found_there, here.rows),
        _C.interpolate(merged, *found, here.rows),
        "features at points",
    )
    same(
        _C.interpolate_gradient(OnDevice.of(where), *found_there, here.rows),
        _C.interpolate_gradient(where, *found, here.rows),
        "gradient of features at points",
    )
    grid = (None, [4, 5, 3], False)
    bev = _C.to_bev(merged, here, 2, *grid)
    same(_C.to_bev(merged_there, there, 2, *grid), bev, "view from above")
    same(
        _C.to_bev_gradient(OnDevice.of(bev), there, 2, *grid),
        _C.to_bev_gradient(bev, here, 2, *grid),
        "gradient of the view from above",
    )


def parts() -> None:
    """A graph is cut on the device as on the host, in every format; products over it are the host's."""
    rows, columns, entries = 40, 33, 300
    row, column = torch.randint(0, rows, (entries,)) // 3 * 3, torch.randint(0, columns, (entries,))
    kinds, part = torch.arange(entries) % 5, torch.arange(entries) % 2
    here = _C.create_graph(row, column, rows, columns)
    there = _C.create_graph(OnDevice.of(row), OnDevice.of(column), rows, columns)
    x, left, values = torch.randn(columns, 8), torch.randn(rows, 8), torch.randn(entries, 2)
    calls = [("identity", []), ("dcsr", []), ("padded_csr", [4]), ("ell", [0]), ("ell", [3]),
             ("hyb", [1]), ("hyb", [2, 1, 2, 4]), ("bsr", [4, 4]), ("csf", [])]  # fmt: skip
    cuts = []
    for name, numbers in calls:
        types = kinds if name == "csf" or numbers == [1] else None
        on_device = None if types is None else OnDevice.of(types)
        count = 0 if types is None else 5
        cuts.append((name, *(_C.cut(graph, name, numbers, of, count)
                             for graph, of in ((here, types), (there, on_device)))))  # fmt: skip
    own = [1, 1, 2, 1, 0, 1, 1, 0, 1, 0]
    cuts.append(("own", _C.cut_by(here, own, part, None, 0), _C.cut_by(there, own, OnDevice.of(part), None, 0)))
    for name, mine, other in cuts:
        assert other.device == "cuda:0"
        other.validate()
        for one, two in zip(mine.parts(), other.copy_to("cpu").parts(), strict=True):
            for a, b in zip(one, two, strict=True):
                assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, name
        moved = mine.copy_to("cuda:0")
        assert torch.equal(moved.graph().copy_to("cpu").lists()[1], here.lists()[1])
        if name == "bsr":
            continue
        for reduce in ("sum", "mean", "max", "min"):
            expected = _C.part_spmm(mine, values, x, reduce)
            for of in (other, moved):
                all_same(
                    _C.part_spmm(of, OnDevice.of(values), OnDevice.of(x), reduce), expected, f"{reduce} over {name}"
                )
        same(
            _C.part_sddmm(other, OnDevice.of(left), OnDevice.of(x), 2), _C.part_sddmm(mine, left, x, 2), f"sddmm, {name}"
        )


def main() -> None:
    torch.manual_seed(0)
    cells = random_sites(3, 8, 120)
    features = torch.randn(len(cells), 8)
    x = pumice.SparseTensor(cells, features, batch_size=2)
    _C.use_framework_device(raw_allocate, raw_free, lambda index: 0, lambda: 0, lambda index: None)

    sites = sites_of(cells)
    assert sites.device == "cuda:0" and sites.rows == len(cells)
    assert len(in_use) > 0, "sites are not in memory of the framework"
    moved = x.coords.sites.copy_to("cuda:0").copy_to("cpu")
    same_cells = torch.equal(torch.as_tensor(moved.coordinates()), cells)
    assert moved.device == "cpu" and moved.batch_size == 2 and same_cells, "sites do not come back"
    layer = nn.SubMConv3d(8, 16, 3)
    here = pumice.ops.submanifold_map(x.coords, layer.window)
    there = _C.submanifold_map(sites, layer.window.c)
    weight, bias = layer.weight.detach(), layer.bias.detach()
    kept = _C.PackedWeights()
    plain = (1, False, False, None, None)
    expected = _C.convolution(features, weight, here, bias, *plain, None, 0)
    arguments = (OnDevice.of(features), OnDevice.of(weight), there, OnDevice.of(bias), *plain)
    _C.record_plans(True)
    same(_C.convolution(*arguments, None, 0), expected, "convolution")
    [(plan, reason)] = _C.recorded_plans()
    assert plan.startswith("implicit_gemm/") and reason, plan
    _C.record_plans(False)
    same(_C.convolution(*arguments, kept, 3), expected, "convolution that packs its weights")
    same(_C.convolution(*arguments, kept, 3), expected, "convolution of packed weights")
    plans(features, layer, here, there)
    gradients(features, layer, here, there)
    gradient = torch.randn_like(expected)
    same(
        _C.convolution_input_gradient(OnDevice.of(gradient), OnDevice.of(weight), there, *plain),
        _C.convolution_input_gradient(gradient, weight, here, *plain),
        "gradient of the features",
    )
    same(
        _C.convolution_weight_gradient(
            OnDevice.of(features), OnDevice.of(gradient), there, 1, True, False, None
        ),
        _C.convolution_weight_gradient(features, gradient, here, 1, False, False, None),
        "gradient of the weight",
    )
    norms(features, gradient)
    chains(cells)
    joined_chains(cells)
    threads(cells)
    points()
    parts()
    window = Window([2] * 3, [2] * 3, [0] * 3, [1] * 3)
    down, coords = pumice.ops.strided_map(x.coords, window, False)
    down_there = _C.strided_map(sites, window.c, False)
    assert down_there.out_rows == len(coords)
    output, argmax = _C.max_pool(OnDevice.of(features), down_there)
    pooled, argmax_here = _C.max_pool(features, down)
    same(output, pooled, "maxima")
    same(argmax, argmax_here, "rows of the maxima")
    back = _C.inverse_map(down_there.out_sites, window.c, None)
    assert back.out_sites.is_same(sites)

    refused = False
    try:
        _C.convolution(OnDevice.of(features), weight, there, None, *plain, None, 0)
    except ValueError as error:
        refused = "weight is on cpu" in str(error)
    assert refused, "a weight on the CPU was taken"
    del sites, there, down_there, back, arguments, kept
    kept_bytes = _C.kept_device_bytes()
    assert 0 < kept_bytes <= 64 << 20, kept_bytes
    global full
    full = True
    more = _C.create_sites(OnDevice.of(random_sites(3, 20, 3000)), None, None, 2, [0] * 3, [19] * 3)
    assert _C.kept_device_bytes() < kept_bytes, "kept blocks stay where memory is short"
    full = False
    del more
    _C.release_device_memory()
    assert _C.kept_device_bytes() == 0
    assert not in_use, f"{len(in_use)} blocks were not given back"
    print("all is given back")


if __name__ == "__main__":
    main()
