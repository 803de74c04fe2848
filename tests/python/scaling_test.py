"""How networks grow with voxels (benchmarks/python/scaling.py), on a few voxels of a CPU: what is recorded, drawn and left out."""

from __future__ import annotations

import json
import pathlib
import sys
import xml.etree.ElementTree as xml

import pytest
import torch

import pumice

ROOT = pathlib.Path(__file__).parents[2]
if not (ROOT / "benchmarks/python/scaling.py").exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)
sys.path[:0] = [str(ROOT / "benchmarks/python"), str(ROOT / "tools")]

import plot_scaling  # noqa: E402
import scaling  # noqa: E402
import scaling_series  # noqa: E402

CPU = torch.device("cpu")
KEPT = sorted((ROOT / "benchmarks/records").glob("*/scaling.json"))


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["scaling.py", "--device=cpu", "--size=tiny", "--seconds=0.001", *words])
    return scaling.main()


def test_every_series_is_measured_at_every_size_and_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    assert run(monkeypatch, "--copies", "2", "1", "--out", str(tmp_path)) == 0
    record = json.loads((tmp_path / "scaling.json").read_text())
    assert [(row["name"], row["copies"], row["rows"]) for row in record["measurements"]] == [
        (name, copies, 300 * copies) for copies in (1, 2) for name in scaling_series.SERIES
    ]
    for row in record["measurements"]:
        assert 0 < row["min_ms"] <= row["median_ms"] <= row["max_ms"] and row["passes"] >= 3 and row["peak_mib"] is None
    assert [one["what"] for one in record["agreement"]] == ["forward", "training step"] and record["ended"] == []
    assert all(one["difference"] == 0 for one in record["agreement"])  # on a CPU both are the same layers
    assert set(record["exponents"]) == set(scaling_series.SERIES)
    picture = (tmp_path / "scaling.svg").read_text()
    xml.fromstring(picture)
    assert "Time of MinkUNet42 against voxels" in picture and "training step, layer by layer" in picture
    assert not (tmp_path / "memory.svg").exists()  # nobody measures a CPU's
    assert run(monkeypatch, "--copies", "3", "--series", "forward", "--add", "--out", str(tmp_path)) == 0
    again = json.loads((tmp_path / "scaling.json").read_text())
    assert len(again["measurements"]) == 2 * len(scaling_series.SERIES) + 1 and len(again["header"]["earlier_runs"]) == 1


def test_a_series_ends_by_name_where_memory_does_not_suffice(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def refused(error: Exception) -> object:
        def make(scene: scaling_series.Scene) -> object:
            if scene.copies > 1:
                raise error
            return lambda: None

        return make

    monkeypatch.setitem(scaling_series.SERIES, "forward, layer by layer", refused(torch.OutOfMemoryError("CUDA out of memory. Tried to")))
    words = ["--copies", "1", "2", "3", "--series", "maps, layer by layer", "forward, layer by layer", "--out", str(tmp_path)]
    assert run(monkeypatch, *words) == 0
    record = json.loads((tmp_path / "scaling.json").read_text())
    sizes = {name: [row["copies"] for row in record["measurements"] if row["name"] == name] for name in ("maps, layer by layer", "forward, layer by layer")}
    assert list(sizes.values()) == [[1, 2, 3], [1]]
    (ended,) = record["ended"]
    assert (ended["name"], ended["rows"]) == ("forward, layer by layer", 600) and "out of memory" in ended["reason"]
    monkeypatch.setitem(scaling_series.SERIES, "forward, layer by layer", refused(ValueError("something else")))
    assert run(monkeypatch, *words) == 1
    assert json.loads((tmp_path / "scaling.json").read_text())["ended"][0]["reason"] == "ValueError: something else"
    assert run(monkeypatch, *words, "--budget-s", "1e-9") == 0
    ended = json.loads((tmp_path / "scaling.json").read_text())["ended"]
    assert len(ended) == 2 and all("--budget-s" in one["reason"] for one in ended)


def test_nothing_is_measured_where_both_ways_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    by_layers = scaling_series.forward_by_layers

    def other(scene: scaling_series.Scene) -> object:
        made = by_layers(scene)
        return lambda: made().replace(features=made().features * 1.1)

    monkeypatch.setattr(scaling_series, "forward_by_layers", other)
    with pytest.raises(SystemExit, match=r"forward: compiled and layer by layer differ by 9\..e-02"):
        run(monkeypatch, "--copies", "1", "--series", "forward")


def test_copies_have_the_same_work_each() -> None:
    """At every level, since none sees another; 17 copies begin a second row."""
    one, many = (scaling_series.scene_of(None, copies, CPU, True) for copies in (1, 17))
    assert len(many.cells) == 17 * 300 and len(torch.unique(many.cells, dim=0)) == 17 * 300
    assert bool((many.cells[:, 1:] < torch.tensor(many.shape)).all()) and all(extent % 16 == 0 for extent in many.shape)
    net = one.network().eval()
    pairs = [[(call.rows, call.pairs) for call in pumice.explain(net, scene.sparse(scene.features))] for scene in (one, many)]
    assert pairs[1] == [(17 * rows, 17 * joined) for rows, joined in pairs[0]]


def test_maps_are_those_of_a_pass() -> None:
    """`maps, layer by layer` asks for every map that the network asks for, in one pass and in the next."""
    scene = scaling_series.scene_of(None, 2, CPU, True)
    asked: list[int] = []
    run = scaling_series.maps_by_layers(scene)
    kinds = {type(layer) for layer in scene.network().modules() if isinstance(layer, pumice.nn.Convolution)}
    with pytest.MonkeyPatch.context() as patch:
        for kind in kinds:
            def counted(self, x, like, find=kind.find):  # noqa: ANN001, ANN202
                map, coords = find(self, x, like)
                asked.append(map.pairs)
                return map, coords

            patch.setattr(kind, "find", counted)
        run()
        first = list(asked)
        asked.clear()
        run()
    net = scene.network().eval()
    expected = [call.pairs for call in pumice.explain(net, scene.sparse(scene.features)) if call.pairs]
    assert first == asked == expected


def test_exponents_are_slopes() -> None:
    rows = [10_000, 1_000_000, 4_000_000]
    record = {
        "title": "Time of it",
        "measurements": [
            {"name": name, "rows": row, "median_ms": row**power, "peak_mib": row / 7 if row > 10_000 else None}
            for name, power in (("a", 1.0), ("b", 1.5)) for row in rows
        ],
    }  # fmt: skip
    found = scaling.exponents_of(record)
    assert found["a"] == pytest.approx({"all": 1.0, "from a million voxels": 1.0}) and found["b"]["all"] == pytest.approx(1.5)
    assert plot_scaling.series_of(record, "peak_mib")["a"] == [(1_000_000, 1_000_000 / 7), (4_000_000, 4_000_000 / 7)]
    drawn = plot_scaling.draw(record, "peak_mib")
    assert "Memory of it" in drawn and "MiB" in drawn and "N to the 1.00" in drawn
    record["measurements"] = [{**record["measurements"][0], "name": str(number)} for number in range(7)]
    with pytest.raises(ValueError, match="7 series: there are marks for 6"):
        plot_scaling.draw(record)


@pytest.mark.parametrize("path", KEPT, ids=[path.parent.name for path in KEPT])
def test_kept_records_are_drawn_as_they_were(path: pathlib.Path) -> None:
    record = json.loads(path.read_text())
    assert "+" not in record["header"]["commit"] and record["exponents"] == pytest.approx(scaling.exponents_of(record))
    for what, name in (("median_ms", "scaling.svg"), ("peak_mib", "memory.svg")):
        assert (path.parent / name).read_text() == plot_scaling.draw(record, what)
