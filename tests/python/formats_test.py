"""Graphs cut into parts: products and gradients are those of the graph, parts are readable, and what is wrong is said."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

import pumice
from pumice import formats, ops
from pumice.formats import Part, Shape

ROWS, COLUMNS, EDGES = 40, 33, 260


def _edges(seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(0, COLUMNS, (EDGES,), generator=generator)
    targets = torch.randint(0, ROWS, (EDGES,), generator=generator) // 3 * 3  # most rows have none
    return torch.stack([sources, targets])


def _graph() -> pumice.Graph:
    return pumice.Graph(_edges(), (COLUMNS, ROWS))


TYPES = torch.arange(EDGES) % 5
CUTS: dict[str, Any] = {
    "identity": lambda g: formats.decompose(g, "identity"),
    "dcsr": lambda g: formats.decompose(g, "dcsr"),
    "padded_csr": lambda g: formats.decompose(g, "padded_csr", multiple=4),
    "ell": lambda g: formats.decompose(g, "ell"),
    "ell of a width": lambda g: formats.decompose(g, "ell", width=3),
    "hyb": lambda g: formats.decompose(g, "hyb"),
    "hyb(2, 2)": lambda g: formats.decompose(g, "hyb", column_parts=2, widths=[1, 2, 4]),
    "bsr": lambda g: formats.decompose(g, "bsr", block=4),
    "dbsr": lambda g: formats.decompose(g, "dbsr", block=(2, 8)),
    "sr_bcrs": lambda g: formats.decompose(g, "sr_bcrs", rows=4, group=8),
    "csf": lambda g: formats.decompose(g, "csf", types=TYPES),
    "3-D hyb": lambda g: formats.decompose(g, "hyb", types=TYPES.int(), num_types=7, widths=[1, 2]),
    "a function": lambda g: formats.decompose(
        g, lambda row, column, number: (row + column) % 2, shapes=[Shape(width=2), Shape((2, 2))], types=TYPES
    ),
}


@pytest.fixture(params=CUTS)
def cut(request: pytest.FixtureRequest) -> formats.Decomposition:
    return CUTS[request.param](_graph())


def _dense(values: Tensor) -> Tensor:
    """[heads, ROWS, COLUMNS] of values [EDGES, heads] in float64."""
    sources, targets = _edges()
    made = torch.zeros(values.shape[1], ROWS, COLUMNS, dtype=torch.float64)
    for head, of in enumerate(values.double().T):
        made[head].index_put_((targets, sources), of, accumulate=True)
    return made


def test_products_are_those_of_a_dense_matrix(cut: formats.Decomposition) -> None:
    torch.manual_seed(1)
    x, values = torch.randn(COLUMNS, 6, dtype=torch.float64), torch.randn(EDGES, 2, dtype=torch.float64)
    expected = torch.cat([of @ x[:, 3 * h : 3 * h + 3] for h, of in enumerate(_dense(values))], 1)
    torch.testing.assert_close(ops.spmm(cut, x, values), expected)
    left = torch.randn(ROWS, 6, dtype=torch.float64)
    sources, targets = _edges()
    torch.testing.assert_close(ops.sddmm(cut, left, x), (left[targets] * x[sources]).sum(1))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_products_and_gradients_are_those_of_the_graph(cut: formats.Decomposition, reduce: str) -> None:
    torch.manual_seed(2)
    x = torch.randn(COLUMNS, 4, dtype=torch.float64, requires_grad=True)
    values = torch.randn(EDGES, 2, dtype=torch.float64, requires_grad=True)
    outputs = [ops.spmm(of, x, values, reduce) for of in (cut, cut.graph)]
    torch.testing.assert_close(*outputs)
    weight = torch.randn_like(outputs[0])
    for ours, theirs in zip(*(torch.autograd.grad(out, (x, values), weight) for out in outputs)):
        torch.testing.assert_close(ours, theirs)


def test_gradients_have_gradients(cut: formats.Decomposition) -> None:
    torch.manual_seed(3)
    x = torch.randn(COLUMNS, 2, dtype=torch.float64, requires_grad=True)
    left = torch.randn(ROWS, 2, dtype=torch.float64, requires_grad=True)
    values = torch.randn(EDGES, dtype=torch.float64, requires_grad=True)
    for second in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert second(lambda v, f: ops.spmm(cut, f, v, "mean"), (values, x), fast_mode=True)
        assert second(lambda a, b: ops.sddmm(cut, a, b), (left, x), fast_mode=True)


def test_every_entry_is_in_one_position(cut: formats.Decomposition) -> None:
    numbers = torch.cat([part.entry.flatten() for part in cut.parts])
    assert torch.equal(numbers[numbers >= 0].sort().values, torch.arange(EDGES))
    assert torch.equal(cut.to_graph().edge_index, _edges())
    assert cut.graph.entries == cut.entries == EDGES


def test_parts_are_taken_back_and_are_no_copies(cut: formats.Decomposition) -> None:
    again = formats.decompose(cut.graph, cut.parts)
    for one, other in zip(cut.parts, again.parts):
        assert one.shape == other.shape
        for name in ("row", "column", "entry", "slot_begin", "type_begin"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert mine.data_ptr() == theirs.data_ptr()
                assert torch.equal(mine, theirs)
    x = torch.randn(COLUMNS, 3)
    assert torch.equal(ops.spmm(cut, x), ops.spmm(again, x))


def test_parts_are_checked(cut: formats.Decomposition) -> None:
    cut.validate()
    assert cut.device == torch.device("cpu") and cut.to("cpu") is cut
    spoiled = next(part for part in cut.parts if part.entry is not None and part.entry.numel())
    before = int(spoiled.entry.view(-1)[0])
    spoiled.entry.view(-1)[0] = EDGES
    with pytest.raises(pumice.UserError, match="validate: part"):
        cut.validate()
    spoiled.entry.view(-1)[0] = before


def test_parts_outlive_what_they_are_of() -> None:
    part = formats.decompose(_graph(), "ell", width=2).parts[0]
    torch.randn(1000)
    assert int(part.entry.max()) == EDGES - 1


def test_parts_of_int64_are_taken() -> None:
    graph = pumice.Graph(torch.tensor([[1, 3, 0], [0, 0, 2]]), (4, 3))
    part = Part(Shape(width=2), torch.tensor([0, 2]), torch.tensor([1, 3, 0, -1]), torch.tensor([0, 1, 2, -1]))
    assert torch.equal(ops.spmm(formats.decompose(graph, [part]), torch.eye(4)), ops.spmm(graph, torch.eye(4)))


def test_a_decomposition_is_kept_with_its_graph() -> None:
    graph = _graph()
    first, second = (graph.derived("hyb", lambda g: formats.decompose(g, "hyb")) for _ in range(2))
    assert first is second and copy.deepcopy(first) is first


def test_blocks_of_other_libraries_share_their_values() -> None:
    dense = torch.zeros(6, 8)
    dense[:2, 4:] = torch.arange(8.0).view(2, 4) + 1
    dense[5, 0] = 3
    matrix = dense.to_sparse_bsr((2, 4))
    cut, values = formats.blocks_of(matrix)
    assert values.data_ptr() == matrix.values().data_ptr()
    assert cut.parts[0].entry is None
    x = torch.randn(8, 3)
    torch.testing.assert_close(ops.spmm(cut, x, values), dense @ x)
    back = cut.to_torch_bsr(values)
    assert torch.equal(back.to_dense(), dense) and back.values().data_ptr() == values.data_ptr()
    graph, of_graph = pumice.Graph.of(matrix)
    assert torch.equal(cut.graph.edge_index, graph.edge_index) and torch.equal(values, of_graph)


@pytest.mark.parametrize("name", ["bsr", "dbsr"])
def test_blocks_go_to_scipy_and_back(name: str) -> None:
    pytest.importorskip("scipy.sparse", reason="scipy is not installed")
    graph = pumice.Graph(torch.unique(_edges(), dim=1), (COLUMNS, ROWS))
    values, x = torch.randn(graph.entries), torch.randn(40, 3)
    array = formats.decompose(graph, name, block=(4, 8)).to_scipy_bsr(values)
    assert array.blocksize == (4, 8) and array.shape == (40, 40)
    torch.testing.assert_close(torch.from_numpy(array @ x.numpy()), ops.spmm(graph, x[:COLUMNS], values))
    cut, elements = formats.blocks_of(array)
    assert elements.data_ptr() == array.data.ctypes.data
    torch.testing.assert_close(ops.spmm(cut, x, elements), torch.from_numpy(array @ x.numpy()))


@pytest.mark.parametrize("name", ["bsr", "dbsr"])
def test_a_graph_becomes_bsr(name: str) -> None:
    edges = _edges()
    unique = torch.unique(edges, dim=1)
    graph = pumice.Graph(unique, (COLUMNS, ROWS))
    values = torch.randn(graph.entries)
    cut = formats.decompose(graph, name, block=(4, 8))
    expected = torch.zeros(40, 40)
    expected[unique[1], unique[0]] = values
    assert torch.equal(cut.to_torch_bsr(values).to_dense(), expected)
    with pytest.raises(pumice.UserError, match="an entry repeats"):
        formats.decompose(_graph(), name, block=4).to_torch_bsr()
    with pytest.raises(pumice.UserError, match="2 parts, of which BSR is none"):
        formats.decompose(graph, "hyb", widths=[1, 2]).to_torch_bsr()


def test_a_block_mask_is_whole_blocks() -> None:
    mask = torch.tensor([[True, False, True], [False, True, False]])
    cut = formats.block_mask(mask, (2, 4))
    left, right = torch.randn(4, 5), torch.randn(12, 5)
    scores = cut.to_torch_bsr(ops.sddmm(cut, left, right))
    torch.testing.assert_close(
        scores.to_dense(), (left @ right.T) * mask.repeat_interleave(2, 0).repeat_interleave(4, 1)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_heads(cut: formats.Decomposition, dtype: torch.dtype) -> None:
    x = torch.randn(COLUMNS, 2, 3).to(dtype)
    values = torch.randn(EDGES, 2).to(dtype)
    torch.testing.assert_close(ops.spmm(cut, x, values), ops.spmm(cut.graph, x, values))
    left = torch.randn(ROWS, 2, 3).to(dtype)
    torch.testing.assert_close(ops.sddmm(cut, left, x), ops.sddmm(cut.graph, left, x))


@pytest.mark.parametrize("edges", [torch.empty(2, 0, dtype=torch.long), torch.tensor([[0], [0]])])
def test_small_graphs_are_cut(edges: Tensor) -> None:
    graph = pumice.Graph(edges, (1, 1))
    for name in ("identity", "dcsr", "padded_csr", "ell", "hyb", "bsr", "dbsr", "sr_bcrs"):
        out = ops.spmm(formats.decompose(graph, name), torch.full((1, 2), 3.0))
        assert torch.equal(out, torch.full((1, 2), 3.0 * edges.shape[1])), name


def _refused(*arguments: Any, **named: Any) -> str:
    with pytest.raises(pumice.UserError) as said:
        formats.decompose(*arguments, **named)
    return str(said.value)


def test_what_does_not_fit_is_said() -> None:
    graph = _graph()
    assert _refused(graph, "csc").startswith("format = 'csc': choose identity, dcsr,")
    assert _refused(graph, "ell", block=3) == "block is no parameter of 'ell': it has width"
    assert _refused(graph, "dcsr", width=3) == "width is no parameter of 'dcsr': it has none"
    assert _refused(graph, "csf") == "types = None: 'csf' needs the type of each edge"
    assert "has no place for: choose hyb, csf" in _refused(graph, "ell", types=TYPES)
    assert _refused(graph, "csf", types=TYPES, num_types=3) == (
        "csf: types[3] = 3 where there are 3: give numbers from 0 on"
    )
    assert _refused(graph, "hyb", widths=[2, 2]).startswith("hyb: widths[1] = 2: give widths")
    assert _refused(graph, "hyb", widths=4).startswith("widths is an int: give a list")
    assert _refused(graph, "bsr", block=0).startswith("block = 0")
    assert _refused(_edges(), "ell").startswith("graph is a Tensor: pumice.Graph(edge_index) makes one")
    assert _refused(graph, 3).startswith("format is an int: give a name, a function, or a list")
    assert _refused(graph, lambda row, column, number: row).startswith("shapes are None: give a list")
    assert _refused(graph, lambda row, column, number: row > 1, shapes=[Shape()]).startswith(
        "the function returned torch.bool (260,): give int64 [260]"
    )
    assert "is given to part" in _refused(graph, lambda row, column, number: row, shapes=[Shape()])
    assert _refused(graph, []) == "decompose: entry 0 of 260 is in no part: give each entry one position"
    with pytest.raises(pumice.UserError, match="which is no BSR of two axes"):
        formats.blocks_of(torch.eye(4))
    with pytest.raises(pumice.UserError, match="mask is torch.float32"):
        formats.block_mask(torch.eye(4), 2)
    with pytest.raises(pumice.UserError, match="is made of a graph"):
        formats.Decomposition()
    with pytest.raises(pumice.UserError, match="give a pumice.Graph"):
        ops.spmm(3, torch.ones(1, 1))


def test_compiled_functions_take_the_graph() -> None:
    cut = formats.decompose(_graph(), "ell")
    with pytest.raises(Exception, match="do not go through compiled functions: give the graph"):
        torch.compile(lambda x: ops.spmm(cut, x), backend="eager", fullgraph=True)(torch.ones(COLUMNS, 1))


_DEVICE = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@_DEVICE
@pytest.mark.parametrize("name", CUTS)
def test_a_cuda_device_cuts_as_the_cpu_does(name: str) -> None:
    here = CUTS[name](_graph())
    there = here.to("cuda")
    there.validate()
    for one, other in zip(here.parts, there.to("cpu").parts):
        for list_of in ("row", "column", "entry", "slot_begin", "type_begin"):
            mine, theirs = getattr(one, list_of), getattr(other, list_of)
            assert (mine is None) == (theirs is None) and (mine is None or torch.equal(mine, theirs))
    assert torch.equal(there.to_graph().edge_index.cpu(), _edges())


@_DEVICE
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("name", ["identity", "dcsr", "padded_csr", "ell", "ell of a width", "hyb", "hyb(2, 2)"])
def test_products_over_parts_on_a_cuda_device(name: str, reduce: str) -> None:
    graph = _graph().to("cuda")
    cut = CUTS[name](graph)
    assert cut.device == graph.device and cut.graph is graph
    x = torch.randn(COLUMNS, 4, device="cuda", requires_grad=True)
    values = torch.randn(EDGES, 2, device="cuda", requires_grad=True)
    outputs = [ops.spmm(of, x, values, reduce) for of in (cut, graph)]
    torch.testing.assert_close(*outputs)
    weight = torch.randn_like(outputs[0])
    for ours, theirs in zip(*(torch.autograd.grad(out, (x, values), weight) for out in outputs)):
        torch.testing.assert_close(ours, theirs)
    left = torch.randn(ROWS, 4, device="cuda")
    torch.testing.assert_close(ops.sddmm(cut, left, x), ops.sddmm(graph, left, x))


@_DEVICE
def test_types_and_functions_on_a_cuda_device() -> None:
    graph = _graph().to("cuda")
    x = torch.randn(COLUMNS, 4, device="cuda")
    types = TYPES.to("cuda")
    near = lambda row, column, number: (row + column) % 2  # noqa: E731
    for cut in (
        formats.decompose(graph, "csf", types=types),
        formats.decompose(graph, "hyb", types=types, widths=[1, 2]),
        formats.decompose(graph, near, shapes=[Shape(width=2), Shape()], types=types),
    ):
        cut.validate()
        torch.testing.assert_close(ops.spmm(cut, x), ops.spmm(graph, x))
    again = formats.decompose(graph, formats.decompose(graph, "hyb").parts)
    torch.testing.assert_close(ops.spmm(again, x), ops.spmm(graph, x))


def test_cuts_are_pickled_and_saved(cut: formats.Decomposition) -> None:
    x, values = torch.randn(COLUMNS, 4), torch.randn(EDGES)
    buffer = io.BytesIO()
    torch.save(cut, buffer)
    buffer.seek(0)
    for again in (pickle.loads(pickle.dumps(cut)), torch.load(buffer)):
        assert [part.shape for part in again.parts] == [part.shape for part in cut.parts]
        for mine, theirs in zip(again.parts, cut.parts, strict=True):
            assert torch.equal(mine.row, theirs.row) and torch.equal(mine.column, theirs.column)
        assert torch.equal(ops.spmm(again, x, values, "max"), ops.spmm(cut, x, values, "max"))
        assert torch.equal(again.graph.edge_index, cut.graph.edge_index)


def test_whole_blocks_and_the_parts_of_a_transpose_are_pickled() -> None:
    blocks, values = formats.blocks_of(torch.eye(8).to_sparse_bsr((4, 4)))
    again = pickle.loads(pickle.dumps(blocks))
    assert torch.equal(again.to_torch_bsr(values).to_dense(), torch.eye(8))
    back = _graph().transposed()
    cut = formats.decompose(back, "hyb")
    x = torch.ones(ROWS, 3)  # all are equal: the first in the order of the pattern is picked
    taken = [ops.spmm(of, x.requires_grad_(), torch.ones(EDGES, requires_grad=True), "max") for of in (back, cut)]
    assert torch.equal(taken[0], ops.spmm(pickle.loads(pickle.dumps(cut)), x, torch.ones(EDGES), "max"))


@_DEVICE
def test_what_does_not_fit_on_a_cuda_device_is_said() -> None:
    graph = _graph().to("cuda")
    assert "types is on cpu and the graph on cuda:0" in _refused(graph, "csf", types=TYPES)
    x = torch.ones(COLUMNS, 1, device="cuda")
    with pytest.raises(pumice.UserError, match="and the pattern on cpu"):
        ops.spmm(formats.decompose(_graph(), "ell"), x)
    with pytest.raises(pumice.UserError, match="has blocks of 16 x 16, over which products run on the CPU"):
        ops.spmm(formats.decompose(graph, "bsr"), x)


@_DEVICE
def test_blocks_on_a_cuda_device_are_converted() -> None:
    graph = pumice.Graph(torch.unique(_edges(), dim=1), (COLUMNS, ROWS))
    values = torch.randn(graph.entries)
    cut = formats.decompose(graph.to("cuda"), "bsr", block=(4, 8))
    matrix = cut.to_torch_bsr(values.cuda())
    assert torch.equal(matrix.to_dense().cpu(), formats.decompose(graph, "bsr", block=(4, 8)).to_torch_bsr(values).to_dense())
    blocks, elements = formats.blocks_of(matrix)
    blocks.validate()
    assert blocks.device == elements.device == matrix.device
    mask = formats.block_mask(torch.eye(3, dtype=torch.bool, device="cuda"), 4)
    assert mask.device.type == "cuda" and mask.entries == 48
