"""A network of relational graph convolutions: Python, the program and a dense reference in float64 give the same scores;
folders of edges, and the example that trains on one."""

import gzip
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch

import pumice
from pumice import nn
from sparse_products_test import edges

DATA = os.environ.get("PUMICE_DATA")
AIFB = pathlib.Path(DATA or "/nowhere") / "graphs/aifb"
needs_aifb = pytest.mark.skipif(not AIFB.exists(), reason="PUMICE_DATA is not set, or has no graphs/aifb")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/train_relations.py"


def dense(network, x, edge_index, edge_type, nodes):
    """In float64, layer by layer: a normalised matrix for each relation."""
    for place, layer in enumerate(network.convs):
        matrices = layer.matrices().detach().double()
        features = torch.eye(nodes, dtype=torch.float64) if x is None else x
        out = torch.zeros(nodes, layer.out_channels, dtype=torch.float64)
        for relation in range(layer.num_relations):
            adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
            for (source, target), kind in zip(edge_index.T.tolist(), edge_type.tolist()):
                adjacency[target, source] += kind == relation
            if layer.aggr == "mean":
                adjacency /= adjacency.sum(1, keepdim=True).clamp(min=1)
            out += adjacency @ features @ matrices[relation]
        if layer.root is not None:
            out += features @ layer.root.detach().double()
        if layer.bias is not None:
            out += layer.bias.detach().double()
        x = out.relu() if place + 1 < len(network.convs) else out
    return x


KINDS = {
    "plain": (6, {}),
    "bases": (6, {"num_bases": 3}),
    "blocks": (6, {"num_blocks": 2}),
    "sum": (6, {"aggr": "add", "root_weight": False}),
    "without features": (19, {"bias": False}),
    "bases without features": (19, {"num_bases": 3}),
}


@pytest.mark.parametrize("name", KINDS)
def test_python_the_program_and_a_dense_reference_agree(name, tmp_path):
    torch.manual_seed(0)
    channels, more = KINDS[name]
    nodes, relations = 19, 5
    edge_index = edges(nodes, nodes, 80)
    edge_type = torch.randint(relations - 1, (80,))  # the last has none
    network = nn.graph.RGCN(channels, (8, 4), relations, **more).eval()
    for parameter in network.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    x = None if channels == nodes else torch.randn(nodes, channels)
    expected = dense(network, None if x is None else x.double(), edge_index, edge_type, nodes)
    scores = network(x, edge_index, edge_type)
    assert torch.allclose(scores.double(), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(network(x, pumice.TypedGraph(edge_index, edge_type, nodes, relations)), scores)

    weights, graph, out = (str(tmp_path / f"{part}.safetensors") for part in ("weights", "graph", "out"))
    pumice.save_weights(network, weights)
    tensors = {"edge_index": edge_index, "edge_type": edge_type} | ({} if x is None else {"features": x})
    pumice.save_weights(tensors, graph)
    subprocess.run([sys.executable, "-m", "pumice", "rgcn", weights, graph, out], check=True, capture_output=True)
    found = pumice.read_weights(out)[0]["scores"]
    assert torch.allclose(found, scores, rtol=1e-5, atol=1e-5)

    again = nn.graph.RGCN(channels, (8, 4), relations, **more)
    assert pumice.load_weights(again, weights) == pumice.model_card(network)
    assert torch.equal(again.eval()(x, edge_index, edge_type), scores)


def test_networks_have_gradients_and_dropout():
    torch.manual_seed(0)
    network = nn.graph.RGCN(6, [8, 5, 4], 3, num_bases=2, dropout=0.5)
    x, edge_index, edge_type = torch.randn(9, 6), edges(9, 9, 30), torch.randint(3, (30,))
    assert not torch.equal(network(x, edge_index, edge_type), network(x, edge_index, edge_type))
    network(x, edge_index, edge_type).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    network.eval()
    before = network(x, edge_index, edge_type)
    assert torch.equal(before, network(x, edge_index, edge_type))
    network.reset_parameters()
    assert not torch.equal(before, network(x, edge_index, edge_type))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: nn.graph.RGCN(6, 4, 2), "widths is .*: give a number for each layer"),
        (lambda: nn.graph.RGCN(6, (), 2), "give a number for each layer"),
        (lambda: nn.graph.RGCN(6, (4, 0), 2), "widths"),
        (lambda: nn.graph.RGCN(6, (4,), 2, num_bases=2, num_blocks=2), "give one of them"),
        (lambda: nn.graph.RGCN(6, (4,), 2, dropout=2), "dropout"),
    ],
)
def test_wrong_arguments_are_sentences(make, said):
    with pytest.raises(pumice.UserError, match=said):
        make()


TRIPLES = "<a> <likes> <b> .\n<b> <likes> \"it \\\"is\\\"\"@en .\n_:n <is> <a> .\n"


def test_folders_of_edges_are_read(tmp_path):
    (tmp_path / "edges.nt.gz").write_bytes(gzip.compress(TRIPLES.encode()))
    read = pumice.data.typed_edges(tmp_path)
    assert read.edge_index.tolist() == [[0, 1, 3], [1, 2, 0]]
    assert read.edge_type.tolist() == [0, 0, 1]
    assert (read.nodes, read.relations) == (4, 2)
    assert read.node_names == ["<a>", "<b>", '"it \\"is\\""@en', "_:n"]
    assert read.relation_names == ["<likes>", "<is>"]
    both = pumice.data.typed_edges(str(tmp_path), inverses=True)
    assert both.edge_index.tolist() == [[0, 1, 3, 1, 2, 0], [1, 2, 0, 0, 1, 3]]
    assert both.edge_type.tolist() == [0, 0, 2, 1, 1, 3]
    assert (both.graph().relations, both.graph().rows) == (4, 4)


def write_entities(folder):
    (folder / "edges.nt").write_text(TRIPLES)
    (folder / "trainingSet.tsv").write_text("id\tperson\tlabel_of\n1\ta\tgood\n")
    (folder / "testSet.tsv").write_text("person\tid\tlabel_of\nb\t1.0\tbad\na\t2.0\tgood\n")


def test_entities_have_classes(tmp_path):
    write_entities(tmp_path)
    read = pumice.data.entities(tmp_path)
    assert read.names == ["bad", "good"]
    assert (read.train.tolist(), read.train_classes.tolist()) == ([0], [1])
    assert (read.test.tolist(), read.test_classes.tolist()) == ([1, 0], [0, 1])
    assert read.edges.relations == 4


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("testSet.tsv", "person\tid\tlabel_of\nc\t1\tbad\n", "testSet.tsv, line 2: c is no node"),
        ("testSet.tsv", "person\tid\nb\t1\n", "testSet.tsv: has columns person, id"),
        ("testSet.tsv", "", "testSet.tsv: has columns"),
        ("testSet.tsv", "person\tid\tlabel_of\nb\n", "testSet.tsv, line 2"),
        ("edges.nt", "<a> <b>\n", "edges.nt, line 1"),
        ("other.csv", "0,1,2\n", "holds 2 files"),
    ],
)
def test_what_does_not_fit_is_a_sentence(name, text, said, tmp_path):
    write_entities(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(pumice.UserError, match=said):
        pumice.data.entities(tmp_path)


@needs_aifb
def test_aifb_has_its_known_numbers():
    read = pumice.data.entities(AIFB)
    assert (read.edges.nodes, read.edges.relations, read.edges.edge_type.shape[0]) == (8285, 90, 58086)
    assert (len(read.train), len(read.test), len(read.names)) == (140, 36, 4)
    assert np.intersect1d(read.train, read.test).size == 0


@needs_aifb
def test_the_example_trains_a_network_that_the_program_runs(tmp_path):
    """One seed of the ten, whose mean the documentation has."""
    weights, out = str(tmp_path / "network.safetensors"), str(tmp_path / "scores.safetensors")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(AIFB), "--layers=pumice", "--seeds=1", "--device=cpu", f"--weights={weights}"],
        capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("pumice: mean test accuracy")]
    assert len(said) == 1 and float(said[0].split()[4]) >= 0.85, done.stdout
    subprocess.run([sys.executable, "-m", "pumice", "rgcn", weights, str(AIFB), out], check=True, capture_output=True)
    read = pumice.data.entities(AIFB)
    network = nn.graph.RGCN(8285, (16, 4), 90, num_bases=30)
    pumice.load_weights(network, weights)
    with torch.no_grad():
        expected = network(None, read.edges.edge_index, read.edges.edge_type)
    found = pumice.read_weights(out)[0]["scores"]
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)
