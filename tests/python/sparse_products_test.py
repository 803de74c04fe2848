"""Products of sparse matrices are what loops over their entries in float64 say, and so are their gradients."""

import copy
import io
import pickle

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import pumice
from pumice import ops

REDUCTIONS = ("sum", "mean", "max", "min")
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def edges(rows, columns, entries, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if entries == 0:
        return torch.zeros(2, 0, dtype=torch.int64)
    sources = torch.randint(columns, (entries,), generator=generator)
    targets = torch.randint(rows, (entries,), generator=generator)
    return torch.stack([sources, targets])


def reference(edge_index, rows, features, values, reduce):
    """[rows, C] in float64, by a loop over the rows; values [entries, heads] or None."""
    wide = features.double()
    messages = wide[edge_index[0]]
    if values is not None:
        heads = values.shape[1]
        weights = values.double().repeat_interleave(features.shape[1] // heads, 1)
        messages = messages * weights
    output = []
    for row in range(rows):
        mine = messages[edge_index[1] == row]
        if len(mine) == 0:
            output.append(wide.new_zeros(features.shape[1]))
        elif reduce in ("sum", "mean"):
            output.append(mine.sum(0) / (len(mine) if reduce == "mean" else 1))
        else:
            best = mine.argmax(0) if reduce == "max" else mine.argmin(0)
            # argmax may take any of equal ones; the first is what is promised
            equal = mine == mine.gather(0, best[None])
            output.append(mine.gather(0, equal.int().argmax(0)[None])[0])
    return torch.stack(output) + 0 * messages.sum() if output else messages[:0]


CASES = [(0, 0, 0), (5, 3, 0), (1, 1, 1), (31, 33, 200), (33, 31, 40), (3, 500, 900)]


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows, columns, entries", CASES)
def test_products_and_gradients_are_those_of_a_loop(rows, columns, entries, dtype, reduce, device):
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("a device has no float64 products")
    edge_index = edges(rows, columns, entries)
    graph = pumice.Graph(edge_index.to(device), (columns, rows))
    for heads in (None, 1, 2):
        torch.manual_seed(1)
        x = torch.randn(columns, 6).to(dtype).requires_grad_()
        values = None if heads is None else torch.randn(entries, heads).to(dtype).requires_grad_()
        grad = torch.randn(rows, 6).to(dtype)
        expected = reference(edge_index, rows, x, values, reduce)
        expected.backward(grad.double())
        there = [None if t is None else t.detach().to(device).requires_grad_() for t in (x, values)]
        got = ops.spmm(graph, *there, reduce=reduce)
        got.backward(grad.to(device))
        scale = max(1.0, float(expected.detach().abs().max()) if expected.numel() else 1.0)
        tolerance = TOLERANCES[dtype]
        assert got.dtype == dtype
        torch.testing.assert_close(got.cpu().double(), expected, rtol=tolerance, atol=tolerance * scale)
        for name, ours, theirs in (("features", there[0], x), ("values", there[1], values)):
            if theirs is None:
                continue
            wanted = torch.zeros_like(theirs) if theirs.grad is None else theirs.grad
            near = 4 * tolerance * max(1.0, float(wanted.abs().max()) if wanted.numel() else 1.0)
            torch.testing.assert_close(
                ours.grad.cpu().double(), wanted.double(), rtol=4 * tolerance, atol=near, msg=lambda m, n=name: f"{n}: {m}"
            )


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_first_and_second_derivatives(reduce):
    graph = pumice.Graph(edges(7, 5, 20), (5, 7))
    torch.manual_seed(0)
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    values = torch.randn(20, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, v: ops.spmm(graph, x, v, reduce), (x, values))
    assert gradgradcheck(lambda x, v: ops.spmm(graph, x, v, reduce), (x, values))
    flat = values[:, 0].detach().requires_grad_()
    assert gradgradcheck(lambda x, v: ops.spmm(graph, x, v, reduce), (x, flat))
    assert gradgradcheck(lambda x: ops.spmm(graph, x, reduce=reduce), (x,))


def test_entry_products_and_their_derivatives():
    edge_index = edges(7, 5, 20)
    graph = pumice.Graph(edge_index, (5, 7))
    torch.manual_seed(0)
    left = torch.randn(7, 2, 3, dtype=torch.float64, requires_grad=True)
    right = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    expected = (left[edge_index[1]] * right[edge_index[0]]).sum(-1)
    torch.testing.assert_close(ops.sddmm(graph, left, right), expected)
    torch.testing.assert_close(ops.sddmm(graph, left[:, 0], right[:, 0]), expected[:, 0])
    assert gradcheck(lambda a, b: ops.sddmm(graph, a, b), (left, right))
    assert gradgradcheck(lambda a, b: ops.sddmm(graph, a, b), (left, right))


def test_maxima_have_no_second_derivative_and_say_so():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7))
    x = torch.randn(5, 4, requires_grad=True)
    (first,) = torch.autograd.grad(ops.spmm(graph, x, reduce="max").square().sum(), x, create_graph=True)
    with pytest.raises(pumice.UserError, match="no second derivative"):
        first.sum().backward()


def test_heads_of_three_axes_are_those_of_two():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7))
    x, values = torch.randn(5, 2, 3), torch.randn(20, 2)
    assert torch.equal(ops.spmm(graph, x, values).flatten(1), ops.spmm(graph, x.flatten(1), values))
    assert ops.spmm(graph, x).shape == (7, 2, 3)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_operators_hold_what_torch_library_asks(reduce):
    graph = pumice.Graph(edges(7, 5, 20), (5, 7))
    x = torch.randn(5, 4, requires_grad=True)
    values = torch.randn(20, 2, requires_grad=True)
    call = (graph.token, values, x, 7, 20, reduce)
    torch.library.opcheck(torch.ops.pumice.spmm.default, call)
    torch.library.opcheck(torch.ops.pumice.create_graph.default, (edges(7, 5, 20), 7, 5), test_utils=["test_schema"])


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_compiled_products_are_the_same(reduce):
    edge_index = edges(7, 5, 20)
    graph = pumice.Graph(edge_index, (5, 7)).traceable()
    torch.manual_seed(0)

    def with_a_graph(graph, x, values):
        return ops.spmm(graph, x.relu(), values, reduce) * 2

    def with_edges(edge_index, x, values):
        return with_a_graph(pumice.Graph(edge_index, (5, 7)), x, values)

    for function, structure in ((with_a_graph, graph), (with_edges, edge_index)):
        results = []
        for run in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
            torch.manual_seed(0)
            x = torch.randn(5, 4, requires_grad=True)
            values = torch.randn(20, 2, requires_grad=True)
            output = run(structure, x, values)
            output.square().sum().backward()
            results.append((output.detach(), x.grad, values.grad))
        for eager, compiled in zip(*results, strict=True):
            assert torch.equal(eager, compiled)


def test_a_compiled_entry_product_is_the_same():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7)).traceable()
    left, right = torch.randn(7, 2, 3), torch.randn(5, 2, 3)
    compiled = torch.compile(lambda a, b: ops.sddmm(graph, a, b) + 1, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(left, right), ops.sddmm(graph, left, right) + 1)


def test_autocast_rounds_features_and_values():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7))
    x, values = torch.randn(5, 4, requires_grad=True), torch.randn(20, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        output = ops.spmm(graph, x, values)
        products = ops.sddmm(graph, torch.randn(7, 4), x)
    assert output.dtype == products.dtype == torch.bfloat16
    output.sum().backward()
    assert x.grad.dtype == values.grad.dtype == torch.float32


def test_a_graph_gives_its_edges_back_in_their_order(device):
    for rows, columns, entries in CASES:
        edge_index = edges(rows, columns, entries).to(device)
        for given in (edge_index, edge_index.int()):
            graph = pumice.Graph(given, (columns, rows))
            assert torch.equal(graph.edge_index, edge_index)
            assert torch.equal(graph.transposed().edge_index, edge_index.flip(0))
            assert torch.equal(graph.transposed().transposed().edge_index, edge_index)
            assert torch.equal(graph.to("cpu").edge_index, edge_index.cpu())


def test_graphs_are_copied_kept_and_loaded():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7))
    assert copy.deepcopy(graph) is graph
    again = pickle.loads(pickle.dumps(graph))
    file = io.BytesIO()
    torch.save(graph, file)
    file.seek(0)
    loaded = torch.load(file)
    for other in (again, loaded):
        assert (other.rows, other.columns) == (7, 5)
        assert torch.equal(other.edge_index, graph.edge_index)
    assert repr(graph) == "Graph(5 sources, 7 targets, 20 entries, device=cpu)"


def test_nodes_are_counted_where_nobody_says():
    graph = pumice.Graph(torch.tensor([[0, 4], [2, 1]]))
    assert (graph.rows, graph.columns, graph.entries) == (5, 5, 2)
    empty = pumice.Graph(torch.zeros(2, 0, dtype=torch.int64))
    assert (empty.rows, empty.columns) == (0, 0)


def attention_reference(edge_index, rows, scores, target, source, slope):
    """[entries, heads] in float64, by a loop over the rows."""
    total = 0
    for tensor, of in ((scores, None), (target, edge_index[1]), (source, edge_index[0])):
        if tensor is not None:
            total = total + (tensor.double() if of is None else tensor.double()[of])
    total = torch.nn.functional.leaky_relu(total, slope)
    shares = 0 * total
    for row in range(rows):
        mine = edge_index[1] == row
        shares = torch.where(mine[:, None], torch.softmax(total.masked_fill(~mine[:, None], float("-inf")), 0), shares) if mine.any() else shares
    return shares


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("has", ["s", "tu", "stu", "u"])
def test_attention_is_what_a_loop_says(has, dtype, device):
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("a device has no float64 attention")
    for rows, columns, entries in CASES[1:]:
        edge_index = edges(rows, columns, entries)
        graph = pumice.Graph(edge_index.to(device), (columns, rows))
        sizes = {"s": entries, "t": rows, "u": columns}
        given = {k: torch.randn(n, 3).to(dtype).requires_grad_() if k in has else None for k, n in sizes.items()}
        expected = attention_reference(edge_index, rows, given["s"], given["t"], given["u"], 0.2)
        grad = torch.randn(entries, 3).to(dtype)
        expected.backward(grad.double())
        there = {k: None if t is None else t.detach().to(device).requires_grad_() for k, t in given.items()}
        got = ops.edge_softmax(graph, there["s"], target=there["t"], source=there["u"], negative_slope=0.2)
        got.backward(grad.to(device))
        tolerance = TOLERANCES[dtype]
        torch.testing.assert_close(got.cpu().double(), expected, rtol=tolerance, atol=tolerance)
        for key, theirs in given.items():
            if theirs is not None:
                torch.testing.assert_close(
                    there[key].grad.cpu().double(), theirs.grad.double(), rtol=16 * tolerance, atol=16 * tolerance
                )


def test_attention_of_one_axis_compiled_and_its_derivatives():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7)).traceable()
    scores = torch.randn(20, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: ops.edge_softmax(graph, s), (scores,))
    (first,) = torch.autograd.grad(ops.edge_softmax(graph, scores).square().sum(), scores, create_graph=True)
    with pytest.raises(pumice.UserError, match="edge_softmax has no second derivative"):
        first.sum().backward()

    def attend(target, source):
        return ops.edge_softmax(graph, target=target, source=source, negative_slope=0.2).square().sum()

    gradients = []
    for run in (attend, torch.compile(attend, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(0)
        target, source = torch.randn(7, 2, requires_grad=True), torch.randn(5, 2, requires_grad=True)
        run(target, source).backward()
        gradients.append((target.grad, source.grad))
    for eager, compiled in zip(*gradients, strict=True):
        assert torch.equal(eager, compiled)
    torch.library.opcheck(
        torch.ops.pumice.edge_softmax.default, (graph.token, target, source, torch.randn(20, 2, requires_grad=True), 20, 0.2)
    )


def scores_reference(edge_index, target, source, attention, entry, slope):
    """[entries, heads] in float64, by way of [entries, heads, channels]."""
    total = target.double()[edge_index[1]] + source.double()[edge_index[0]]
    if entry is not None:
        total = total + entry.double()
    return (torch.nn.functional.leaky_relu(total, slope) * attention.double()).sum(-1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("channels, slope, of_entries", [(1, 0.2, False), (8, 0.0, True), (33, 0.2, True)])
def test_scores_of_additive_attention_are_what_pytorch_says(channels, slope, of_entries, dtype, device):
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("a device has no float64 attention")
    for rows, columns, entries in CASES:
        edge_index = edges(rows, columns, entries)
        graph = pumice.Graph(edge_index.to(device), (columns, rows))
        shapes = [(rows, 3, channels), (columns, 3, channels), (3, channels)] + [(entries, 3, channels)] * of_entries
        given = [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]
        expected = scores_reference(edge_index, *given, *[None] * (not of_entries), slope)
        grad = torch.randn(entries, 3).to(dtype)
        expected.backward(grad.double())
        there = [t.detach().to(device).requires_grad_() for t in given]
        got = ops.edge_scores(graph, *there, negative_slope=slope)
        got.backward(grad.to(device))
        tolerance = 8 * TOLERANCES[dtype]
        torch.testing.assert_close(got.cpu().double(), expected, rtol=tolerance, atol=tolerance)
        for ours, theirs in zip(there, given, strict=True):
            torch.testing.assert_close(ours.grad.cpu().double(), theirs.grad.double(), rtol=tolerance, atol=tolerance)


def test_scores_of_one_axis_compiled_in_half_precision_and_their_derivatives():
    graph = pumice.Graph(edges(7, 5, 20), (5, 7)).traceable()

    def inputs(dtype=torch.float32):
        torch.manual_seed(0)
        return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((7, 2, 3), (5, 2, 3), (2, 3), (20, 2, 3))]

    flat = [tensor[..., 0, :].detach().requires_grad_() for tensor in inputs(torch.float64)]
    assert gradcheck(lambda *given: ops.edge_scores(graph, *given), flat)
    (first,) = torch.autograd.grad(ops.edge_scores(graph, *flat).square().sum(), flat[0], create_graph=True)
    with pytest.raises(pumice.UserError, match="edge_scores has no second derivative"):
        first.sum().backward()

    def score(*given):
        return ops.edge_scores(graph, *given).square().sum()

    for count in (3, 4):
        gradients = []
        for run in (score, torch.compile(score, fullgraph=True, backend="aot_eager")):
            given = inputs()[:count]
            run(*given).backward()
            gradients.append([tensor.grad for tensor in given])
        for eager, compiled in zip(*gradients, strict=True):
            assert torch.equal(eager, compiled)
    call = (graph.token, *(t.detach().flatten(1).requires_grad_() for t in inputs()[:2]), inputs()[2], None, 20, 0.2)
    torch.library.opcheck(torch.ops.pumice.edge_scores.default, call)
    given = inputs()
    expected = ops.edge_scores(graph, *given).detach()
    with torch.autocast("cpu", torch.bfloat16):
        scores = ops.edge_scores(graph, *given)
    assert scores.dtype == torch.bfloat16
    torch.testing.assert_close(scores.float(), expected, rtol=0.05, atol=0.05)
    scores.sum().backward()
    assert all(tensor.grad.dtype == torch.float32 for tensor in given)


WRONG_SCORES = {
    "other heads": (((7, 2, 3), (5, 2, 3), (3, 3)), r"attention \(3, 3\): give"),
    "one axis of two": (((7, 6), (5, 2, 3), (2, 3)), r"target has shape \(7, 6\)"),
    "other rows": (((6, 2, 3), (5, 2, 3), (2, 3)), "target has 6 rows and the pattern 7"),
    "other channels of entries": (((7, 2, 3), (5, 2, 3), (2, 3), (20, 6)), r"entry has shape \(20, 6\)"),
}


@pytest.mark.parametrize("name", WRONG_SCORES)
def test_scores_of_what_does_not_fit_get_a_sentence(name):
    shapes, said = WRONG_SCORES[name]
    with pytest.raises(pumice.UserError, match=said):
        ops.edge_scores(pumice.Graph(edges(7, 5, 20), (5, 7)), *(torch.zeros(shape) for shape in shapes))


DENSE = torch.tensor([[0.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 4.0, 0.0], [0.0, 0.0, 0.0, 5.0]])


def scipy_matrix():
    return pytest.importorskip("scipy.sparse", reason="scipy is not installed").csr_matrix(DENSE.numpy())


def networkx_graph():
    graph = pytest.importorskip("networkx", reason="networkx is not installed").DiGraph()
    graph.add_nodes_from(range(4))
    graph.add_weighted_edges_from((int(c), int(r), float(DENSE[r, c])) for r, c in DENSE.nonzero())
    return graph


class SparseTensorLike:
    """The methods of torch_sparse.SparseTensor that are asked."""

    def coo(self):
        row, column = DENSE.nonzero().t()
        return row, column, DENSE[row, column]

    def sparse_sizes(self):
        return (4, 4)


class DglLike:
    """Of DGL's graphs, which have no values."""

    def adj_tensors(self, format):
        assert format == "coo"
        row, column = DENSE.nonzero().t()
        return column, row

    def num_dst_nodes(self):
        return 4

    num_src_nodes = num_dst_nodes


@pytest.mark.parametrize(
    "make",
    [
        lambda: DENSE.to_sparse(),
        lambda: DENSE.to_sparse_csr(),
        lambda: DENSE.to_sparse_csc(),
        lambda: DENSE.to_sparse_bsr((2, 2)),
        lambda: DENSE.to_sparse_bsc((2, 1)),
        scipy_matrix,
        networkx_graph,
        SparseTensorLike,
        DglLike,
    ],
    ids=["coo", "csr", "csc", "bsr", "bsc", "scipy", "networkx", "SparseTensor", "dgl"],
)
def test_matrices_of_other_libraries_become_graphs(make):
    graph, values = pumice.Graph.of(make())
    expected = DENSE if values is not None else (DENSE != 0).float()
    torch.testing.assert_close(graph.to_torch(values).to_dense(), expected)
    x = torch.randn(4, 3)
    torch.testing.assert_close(ops.spmm(graph, x, values), expected @ x)


def test_what_is_no_sparse_matrix_is_refused():
    for given, said in ((DENSE, "matrix is dense"), ([1], "matrix is .*list"), (torch.eye(2).to_sparse(1), "two axes")):
        with pytest.raises(pumice.UserError, match=said):
            pumice.Graph.of(given)


TWO = torch.tensor([[0, 1], [1, 0]])
MISTAKES = {
    "a list": (lambda: pumice.Graph([[0, 1], [1, 0]]), r"edge_index is .*list.*torch\.as_tensor"),
    "edges in rows": (lambda: pumice.Graph(torch.zeros(5, 2, dtype=torch.int64)), r"\(5, 2\).*edge_index\.t\(\)"),
    "floats": (lambda: pumice.Graph(TWO.float()), r"edge_index is torch\.float32.*long\(\)"),
    "too few nodes": (lambda: pumice.Graph(TWO, 1), r"Graph: edge_index\[[01]\]\[\d\] = 1 where there are 1"),
    "a negative node": (lambda: pumice.Graph(-TWO, 2), r"= -1 where there are 2"),
    "three numbers": (lambda: pumice.Graph(TWO, (1, 2, 3)), "num_nodes has 3 numbers"),
    "nodes as text": (lambda: pumice.Graph(TWO, "2"), "num_nodes"),
    "a tensor for a graph": (lambda: ops.spmm(TWO, torch.randn(2, 3)), r"graph is .*pumice\.Graph\(edge_index\)"),
    "too few rows": (lambda: ops.spmm(pumice.Graph(TWO), torch.randn(3, 3)), "features has 3 rows and the pattern 2 columns"),
    "too few values": (
        lambda: ops.spmm(pumice.Graph(TWO), torch.randn(2, 3), torch.randn(3)),
        r"values have shape \[3\]: give \[2\]",
    ),
    "another type": (
        lambda: ops.spmm(pumice.Graph(TWO), torch.randn(2, 3), torch.randn(2).double()),
        "values",
    ),
    "another reduction": (lambda: ops.spmm(pumice.Graph(TWO), torch.randn(2, 3), reduce="prod"), "reduce = 'prod': choose sum"),
    "heads that do not divide": (
        lambda: ops.spmm(pumice.Graph(TWO), torch.randn(2, 3), torch.randn(2, 2)),
        "2 heads of 3 channels",
    ),
    "heads that differ": (
        lambda: ops.spmm(pumice.Graph(TWO), torch.randn(2, 2, 3), torch.randn(2, 3)),
        r"values have shape \(2, 3\) where features have 2 heads",
    ),
    "whole features": (lambda: ops.spmm(pumice.Graph(TWO), torch.ones(2, 3).int()), "features are torch.int32"),
    "channels that differ": (
        lambda: ops.sddmm(pumice.Graph(TWO), torch.randn(2, 3), torch.randn(2, 4)),
        "left has 3 channels and right 4",
    ),
    "axes that differ": (
        lambda: ops.sddmm(pumice.Graph(TWO), torch.randn(2, 2, 3), torch.randn(2, 6)),
        r"left has shape \(2, 2, 3\) and right \(2, 6\)",
    ),
    "no scores": (lambda: ops.edge_softmax(pumice.Graph(TWO)), "scores, target and source are None"),
    "scores of other heads": (
        lambda: ops.edge_softmax(pumice.Graph(TWO), torch.randn(2, 3), target=torch.randn(2, 2)),
        "target has 2 heads where others have 3",
    ),
    "a slope below 0": (lambda: ops.edge_softmax(pumice.Graph(TWO), torch.randn(2), negative_slope=-1), "negative_slope = -1"),
    "no features": (lambda: ops.spmm(pumice.Graph(TWO), None), "features is None|features is a NoneType|features"),
    "one axis": (lambda: ops.spmm(pumice.Graph(TWO), torch.randn(2)), "features"),
    "a token of something else": (lambda: torch.ops.pumice.spmm(torch.zeros(1, dtype=torch.int64), None, torch.randn(2, 3), 2, 2, "sum"), "no coordinates, map or graph"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(name):
    call, said = MISTAKES[name]
    with pytest.raises(pumice.UserError, match=said):
        call()


def test_a_hypergraph_convolution_is_two_means():
    pyg = pytest.importorskip("torch_geometric.nn")
    nodes, hyperedges = 33, 9
    hyperedge_index = torch.unique(edges(hyperedges, nodes, 80, seed=4), dim=1)  # nodes, hyperedges
    theirs = pyg.HypergraphConv(6, 5).double()
    x = torch.randn(nodes, 6, dtype=torch.float64)
    expected = theirs(x, hyperedge_index, num_edges=hyperedges)
    to_hyperedges = pumice.Graph(hyperedge_index, (nodes, hyperedges))
    of_hyperedges = ops.spmm(to_hyperedges, theirs.lin(x), reduce="mean")
    back = ops.spmm(to_hyperedges.transposed(), of_hyperedges, reduce="mean")
    torch.testing.assert_close(back + theirs.bias, expected)


def test_products_of_batches_of_different_lengths():
    lengths = torch.tensor([3, 0, 1, 7])
    begin = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    rows = torch.randn(11, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, 6, 5, dtype=torch.float64, requires_grad=True)
    parts = rows.split(lengths.tolist())
    out = ops.typed_linear(rows, weight, pumice.TypedRows(begin))
    torch.testing.assert_close(out, torch.cat([part @ matrix for part, matrix in zip(parts, weight, strict=True)]))
    # The gradient of the matrices is the product over the ragged axis.
    grad = torch.randn_like(out)
    (made,) = torch.autograd.grad(out, weight, grad)
    each = zip(parts, grad.split(lengths.tolist()), strict=True)
    torch.testing.assert_close(made, torch.stack([part.T @ of for part, of in each]))
    # Rows of a batch with each other, and what is made of them.
    batch = torch.repeat_interleave(torch.arange(4), lengths)
    inside = pumice.Graph((batch[:, None] == batch).nonzero().t(), 11)
    products = ops.sddmm(inside, rows, rows)
    torch.testing.assert_close(
        ops.spmm(inside, out, products), torch.cat([part @ part.T @ of for part, of in zip(parts, out.split(lengths.tolist()), strict=True)])
    )
