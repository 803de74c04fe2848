"""Standing in for spconv: in one process, and in those that are spawned."""

from __future__ import annotations

import pathlib
import re

import pytest
from programs import ROOT, check_refusal, run, shim

USE = """
import spconv
assert float(spconv.__version__[2:]) >= 2.2
spconv.constants.SPCONV_USE_DIRECT_TABLE = False
import spconv.pytorch as sp
from spconv.pytorch import SparseConvTensor, SubMConv3d, ops, functional
from spconv.pytorch.modules import is_spconv_module
from spconv.pytorch.conv import SparseConvolution
from spconv.pytorch.utils import PointToVoxel
from spconv.core import ConvAlgo
from spconv.utils import Point2VoxelCPU3d
import cumm.tensorview as tv
assert issubclass(sp.SubMConv3d, sp.conv.SparseConvolution) and sp.ConvAlgo is ConvAlgo
try:
    from spconv.pytorch import quantization
except ImportError as error:
    assert "pumice" in str(error)
else:
    raise AssertionError
"""


def test_install_gives_the_old_names() -> None:
    done = run("import pumice.compat.spconv as c\nc.install()\nc.install()\n" + USE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["import spconv.pytorch", "import cumm.tensorview", "import spconv"])
def test_the_shim_needs_no_call(first: str) -> None:
    done = run(f"{first}\n{USE}", shim("spconv"))
    assert done.returncode == 0, done.stderr


def test_a_real_spconv_is_not_replaced_silently(tmp_path: pathlib.Path) -> None:
    (tmp_path / "spconv.py").write_text("")
    done = run("import spconv, pumice.compat.spconv as c\nc.install()", tmp_path)
    assert done.returncode != 0
    assert f"spconv is imported already, from {tmp_path / 'spconv.py'}" in done.stderr
    check_refusal("spconv")


def test_a_real_cumm_is_not_replaced_either(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cumm.py").write_text("")
    done = run("import cumm, pumice.compat.spconv as c\nc.install()", tmp_path)
    assert done.returncode != 0 and "cumm is imported already" in done.stderr


WORKERS = """
import spconv.pytorch as spconv
import torch


class Scenes(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, at):
        from spconv.utils import Point2VoxelCPU3d
        import cumm.tensorview as tv
        generator = Point2VoxelCPU3d([1, 1, 1], [0, 0, 0, 9, 9, 9], 3, 99, 2)
        points = torch.rand(50, 3, generator=torch.Generator().manual_seed(at)) * 9
        voxels, cells, _ = (x.numpy() for x in generator.point_to_voxel(tv.from_numpy(points.numpy())))
        cells = torch.nn.functional.pad(torch.from_numpy(cells), (1, 0))
        x = spconv.SparseConvTensor(torch.from_numpy(voxels[:, 0]), cells, [9, 9, 9], 1)
        return spconv.SubMConv3d(3, 4, 3, indice_key="a").requires_grad_(False)(x)


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Scenes(), batch_size=None, num_workers=2, multiprocessing_context="spawn"
    )
    for x in loader:
        assert isinstance(x, spconv.SparseConvTensor) and x.features.shape[1] == 4
        assert x.dense().shape == (1, 4, 9, 9, 9)
"""


def test_workers_that_are_spawned(tmp_path: pathlib.Path) -> None:
    (tmp_path / "scenes.py").write_text(WORKERS)
    done = run(tmp_path / "scenes.py", shim("spconv"))
    assert done.returncode == 0, done.stderr


def test_the_page_runs() -> None:
    page = ROOT / "docs/how_to/come_from_spconv.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    done = run("\n".join(blocks) + "\nassert scores.shape == (3, 5)")
    assert done.returncode == 0, done.stderr
