"""The example that finds missing edges: its ranks beside loops over all answers, its training, and the parts of a folder that it reads."""

from __future__ import annotations

import csv
import importlib.util
import os
import pathlib
import sys

import pytest
import torch

import pumice

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/train_link_prediction.py"
FB15K237 = pathlib.Path(os.environ.get("PUMICE_DATA") or "/nowhere") / "graphs/openke_FB15K237"
needs_example = pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here")
needs_data = pytest.mark.skipif(not FB15K237.exists(), reason="PUMICE_DATA is not set, or has no graphs/openke_FB15K237")
GROUPS, EACH = 8, 6
TINY = ["--device=cpu", "--channels=16", "--scored=60", "--negatives=20", "--every=20"]


def example():  # noqa: ANN201
    spec = importlib.util.spec_from_file_location("train_link_prediction", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_link_prediction"] = module
    spec.loader.exec_module(module)
    return module


def write(path: pathlib.Path, edges: list[tuple[int, int, int]]) -> None:
    """(source, target, relation) of each."""
    path.write_text(f"{len(edges)}\n" + "".join(f"{a} {b} {kind}\n" for a, b, kind in edges))


def folder(path: pathlib.Path) -> pathlib.Path:
    """Relation 0 joins nodes of a group, relation 1 those of two groups, both ways; a tenth of the edges is to be found."""
    nodes = range(GROUPS * EACH)
    edges = [(a, b, 0) for a in nodes for b in nodes if a != b and a // EACH == b // EACH]
    edges += [(a, b, 1) for a in nodes for b in nodes if b // EACH == a // EACH ^ 1]
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(0)).tolist()
    held = len(edges) // 10
    for name, part in (("test", order[:held]), ("valid", order[held : 2 * held]), ("train", order[2 * held :])):
        write(path / f"{name}2id.txt", [edges[place] for place in part])
    return path


@needs_example
def test_ranks_are_those_of_loops_over_all_answers(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filtered, and of equal scores the mean of the best and the worst place; however many scores are made at once."""
    module = example()
    edges = module.read(folder(tmp_path), "cpu")
    options = module.parse([str(tmp_path), *TINY])
    torch.manual_seed(1)
    network = module.Network(module.RGCNConv, edges, options)
    network.relations = torch.nn.Parameter(torch.randint(-1, 2, network.relations.shape).float(), requires_grad=False)
    x = torch.randint(-1, 2, (edges.nodes, options.channels)).float()  # whole numbers, of which many scores are equal
    known = {tuple(edge) for part in (edges.train, edges.valid, edges.test) for edge in part.tolist()}
    expected = []
    for way in range(2):
        for a, kind, b in edges.test.tolist():
            scores: list[tuple[float, bool]] = []
            for node in range(edges.nodes):
                edge = (a, kind, node) if way == 0 else (node, kind, b)
                if edge == (a, kind, b) or edge not in known:
                    scores.append((float((x[edge[0]] * network.relations[kind] * x[edge[2]]).sum()), edge == (a, kind, b)))
            right = next(score for score, is_right in scores if is_right)
            greater, equal = sum(score > right for score, _ in scores), sum(score == right for score, _ in scores)
            expected.append((greater + 1 + greater + equal) / 2)
    assert any(rank % 1 for rank in expected)
    for at_once in (2**25, 200, 1):
        monkeypatch.setattr(module, "SCORES", at_once)
        assert module.ranks(network, x, edges.test, module.Known(edges)).tolist() == expected
    figures = module.figures(torch.tensor([1.0, 2.0, 4.0, 20.0], dtype=torch.float64))
    assert figures == pytest.approx([(1 + 0.5 + 0.25 + 0.05) / 4, 0.25, 0.5, 0.75])


@needs_example
def test_an_edge_that_is_scored_passes_no_message(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = example()
    edges = module.read(folder(tmp_path), "cpu")
    passed, scored = [], []
    messages, loss_of = module.messages, module.loss_of
    monkeypatch.setattr(module, "messages", lambda *a: (passed.append(a[2]), messages(*a))[1])
    monkeypatch.setattr(module, "loss_of", lambda *a: (scored.append(a[2]), loss_of(*a))[1])
    options = module.parse([str(tmp_path), *TINY, "--steps=3"])
    module.train(module.RGCNConv, edges, module.Known(edges), options, 0, "", [])
    assert len(scored) == 3
    every = sorted(edges.train.tolist())
    assert sorted(passed[0].tolist()) == every  # what it is measured with
    for left, right in zip(passed[1:], scored, strict=True):
        assert len(right) == 60
        assert sorted(left.tolist() + right.tolist()) == every


@needs_example
def test_it_finds_edges_that_were_left_out(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    module = example()
    curves = tmp_path / "curves.csv"
    module.main([str(folder(tmp_path)), *TINY, "--layers=pumice", "--steps=80", "--seeds=2", f"--curves={curves}"])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("48 nodes, 2 relations, ")
    mean = next(line for line in said if line.startswith("pumice: test MRR"))
    assert float(mean.split()[3].rstrip(",")) > 0.7, said  # a random order has 0.1
    with open(curves, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["20", "40", "60", "80"] * 2
    assert float(rows[3]["loss"]) < float(rows[0]["loss"])


@needs_example
@pytest.mark.parametrize("option", ["--steps", "--every", "--seeds", "--validated"])
def test_nothing_to_do_is_a_sentence(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        example().main(["folder", option, "0"])
    assert capsys.readouterr().err.endswith(f"error: {option} 0: give 1 or more\n")


@needs_example
def test_a_rate_that_is_too_high_has_figures_too(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ranks by numbers that are none are the last ones."""
    example().main([str(folder(tmp_path)), *TINY, "--layers=pumice", "--steps=3", "--every=1", "--rate=inf"])
    assert "pumice: test MRR 0.0" in capsys.readouterr().out


@needs_example
@pytest.mark.parametrize("more", [[], ["--bases=3"], ["--blocks=4"]])
def test_both_libraries_learn_the_same(tmp_path: pathlib.Path, more: list[str]) -> None:
    module = example()
    if module.pyg is None:
        pytest.skip("PyG is not installed")
    edges = module.read(folder(tmp_path), "cpu")
    options = module.parse([str(tmp_path), *TINY, "--steps=4", *more])
    known, curves = module.Known(edges), []
    found = [module.train(layer, edges, known, options, 0, kind, curves) for kind, layer in module.LAYERS.items()]
    assert [row[0] for row in curves] == ["pumice", "pyg", "pyg-fast"]
    for other in (1, 2):
        assert found[other] == pytest.approx(found[0], abs=0.02)  # near ties may stand in another order
        assert curves[other][2] == pytest.approx(curves[0][2], rel=1e-4)


def test_parts_of_a_folder_are_read(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "train2id.txt", [(0, 1, 0), (1, 2, 1)])
    write(tmp_path / "test2id.txt", [(3, 0, 2)])
    read = pumice.data.typed_edges(tmp_path, inverses=True, part="test")
    assert (read.nodes, read.relations) == (4, 6)
    assert (read.edge_index.tolist(), read.edge_type.tolist()) == ([[3, 0], [0, 3]], [4, 5])
    assert pumice.data.typed_edges(tmp_path).edge_index.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(pumice.UserError, match="valid2id.txt"):
        pumice.data.typed_edges(tmp_path, part="valid")
    for wrong in ("tests", None, 3):
        with pytest.raises(pumice.UserError, match="part .*: give train, valid or test"):
            pumice.data.typed_edges(tmp_path, part=wrong)
    (tmp_path / "train2id.txt").unlink()
    (tmp_path / "test2id.txt").rename(tmp_path / "edges.csv")
    with pytest.raises(pumice.UserError, match="has no train2id.txt, beside which test2id.txt"):
        pumice.data.typed_edges(tmp_path, part="test")


@needs_data
@needs_example
def test_fb15k237_has_its_known_parts() -> None:
    edges = example().read(str(FB15K237), "cpu")
    assert (edges.nodes, edges.relations) == (14_541, 237)
    assert [len(part) for part in (edges.train, edges.valid, edges.test)] == [272_115, 17_535, 20_466]
