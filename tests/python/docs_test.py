"""Every code block and every command of the documentation runs, as a reader would run it, on small input."""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import pumice

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
if not (TOOLS / "run_docs.py").exists():
    pytest.skip("the documentation is not here", allow_module_level=True)
sys.path.insert(0, str(TOOLS))
import run_docs  # noqa: E402

PROGRAM = pathlib.Path(pumice.__file__).parent / "bin/pumice"
FIRST = {"README.md": "import torch; torch.manual_seed(20)"}
# What the script of a page ends with: its results are what the page says.
THEN = {
    "README.md": """
assert scores.shape == (len(scan), 19)
assert loss.item() < 2.5  # of ln 19 = 2.9 to begin with
assert fast(voxels.tensor).features.shape == (len(voxels.tensor), 19)
""",
    "docs/how_to/use_from_python.md": """
assert scores.shape == (len(x), 19)
cut = pumice.SparseTensor(x.indices[100:], x.features[100:])
torch.testing.assert_close(again, net.eval()(cut).features)
""",
    "docs/how_to/come_from_spconv.md": """
assert scores.shape == (3, 5)
""",
    "docs/how_to/use_with_other_tools.md": """
x = pumice.SparseTensor(torch.from_numpy(voxels.coordinates), torch.from_numpy(voxels.features))
ones = pumice.SparseTensor(x.coords, torch.ones(len(x), 1))
layer = pumice.nn.SubMConv3d(1, 1, 3, bias=False)
torch.nn.init.ones_(layer.weight)
neighbours = torch.bincount(edge_index[1], minlength=len(x))
torch.testing.assert_close(layer(ones).features[:, 0], neighbours.float())
assert bool((cells[edge_index[0]] - cells[edge_index[1]]).abs().max() == 1)
""",
}


@pytest.fixture(scope="module")
def errors(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[list[str]]]]:
    """What is wrong with each page that was chosen; two run beside each other, since most of their time is one
    thread's that imports PyTorch."""
    files = run_docs.Files(tmp_path_factory.mktemp("given"), PROGRAM, TOOLS.parent)
    parameters = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    pages = [found.params["page"] for found in parameters if found and "page" in found.params]
    with ThreadPoolExecutor(2) as pool:
        yield {
            page: pool.submit(
                run_docs.check_page, page, files, PROGRAM, before=FIRST.get(page, ""), after=THEN.get(page, "")
            )
            for page in pages
        }


@pytest.mark.parametrize("page", run_docs.pages())
def test_the_page_runs(page: str, errors: dict[str, Future[list[str]]]) -> None:
    wrong = errors[page].result()
    assert not wrong, "\n".join(wrong)


def test_the_options_of_convert_exist(capsys: pytest.CaptureFixture[str]) -> None:
    from pumice.convert import command

    with pytest.raises(SystemExit):
        command.main(["--help"])
    offered = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    page = TOOLS.parent / "docs/how_to/convert_checkpoints.md"
    named = set(re.findall(r"`(--[a-z0-9-]+)", page.read_text()))
    assert len(named) > 8 and named <= offered, named - offered


def test_every_layer_of_graphs_is_named_where_they_are_listed() -> None:
    pytest.importorskip("torch")
    from pumice.nn import graph

    pages = {"README.md": r"^\| graphs \|.*$", "docs/how_to/come_from_pyg.md": r"^\| `\w+` \|.*$"}
    for page, rows in pages.items():
        text = (TOOLS.parent / page).read_text(encoding="utf-8")
        listed = set(re.findall(r"`(\w+)`", "\n".join(re.findall(rows, text, re.MULTILINE))))
        # RGCN is a network of them, which PyG does not have.
        assert set(graph.__all__) - ({"RGCN"} if page != "README.md" else set()) <= listed, page
    absent = re.findall(r"^\| \*\*not yet\*\* \|.*$", (TOOLS.parent / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert absent and not any(name.removesuffix("Conv") in absent[0] for name in graph.__all__)


def test_each_program_of_the_readme_prints_what_came_of_it() -> None:
    programs = re.findall(r"```python\n(.*?)```", (TOOLS.parent / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 2 and all(re.search(r"print\(.*loss", program) for program in programs)
