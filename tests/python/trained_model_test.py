"""The trained weights in models/: as good as they are said to be, and the same in the program."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
import torch

import pumice
from pumice import data
from pumice.metrics import Confusion
from pumice.models import MinkUNet42

ROOT = pathlib.Path(__file__).parents[2]
WEIGHTS = ROOT / "models" / "streets.safetensors"
UNSEEN = 2_000_003  # trained on seeds below 2000, chosen by 1000000 to 1000015
CLASSES = len(data.SEMANTIC_KITTI.names)


def trained(device: torch.device) -> MinkUNet42:
    _, metadata = pumice.read_weights(WEIGHTS)
    widths = [int(width) for width in metadata["widths"].split(",")]
    model = MinkUNet42(4, len(metadata["classes"].split(",")), widths)
    pumice.load_weights(model, WEIGHTS)
    return model.to(device).eval()


def street(device: torch.device) -> data.Sample:
    _, metadata = pumice.read_weights(WEIGHTS)
    scans = data.SimulatedScans([UNSEEN])
    voxel = float(metadata["voxel_size"])
    dataset = data.VoxelDataset(scans, data.SEMANTIC_KITTI, voxel, points=True)
    return data.collate([dataset[0]]).to(device)


@pytest.fixture
def program() -> pathlib.Path:
    path = pathlib.Path(os.environ.get("PUMICE_PROGRAM", ROOT / "build/release/bin/pumice"))
    if not path.exists():
        pytest.skip(f"no program at {path}: `make build` builds it, or name one in PUMICE_PROGRAM")
    return path


def test_finds_the_classes_of_a_street_it_has_not_seen(device: torch.device) -> None:
    batch = street(device)
    with torch.no_grad():
        scores = trained(device)(batch.tensor()).features
    confusion = Confusion(CLASSES)
    confusion.add(batch.point_labels, scores.argmax(1)[batch.point_to_voxel])
    assert confusion.accuracy() > 0.98
    assert confusion.mean_iou() > 0.95


def test_the_file_says_what_running_it_takes() -> None:
    _, metadata = pumice.read_weights(WEIGHTS)
    assert metadata["network"] == "minkunet42"
    assert metadata["features"] == "x,y,z,intensity"
    assert metadata.items() >= data.SEMANTIC_KITTI.metadata().items()


def test_a_label_map_as_metadata_leads_back_to_itself() -> None:
    for labels in (data.SEMANTIC_KITTI, data.NUSCENES, data.WAYMO):
        metadata = labels.metadata()
        assert tuple(metadata["classes"].split(",")) == labels.names
        ids = {
            int(number): index
            for index, group in enumerate(metadata["labels"].split(","))
            for number in group.split()
        }
        assert ids == dict(labels.ids)


def test_the_program_gives_the_same_scores(
    device: torch.device, program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    scan, out = tmp_path / "street.ply", tmp_path / "scores.safetensors"
    subprocess.run([program, "simulate", "--seed", str(UNSEEN), "--out", scan], check=True)
    run = [program, "run", "minkunet42", scan, "--weights", WEIGHTS, "--out", out]
    subprocess.run([*run, "--device", device.type], check=True)
    result, _ = pumice.read_weights(out)

    batch = street(device)
    with torch.no_grad():
        scores = trained(device)(batch.tensor()).features.cpu()
    assert torch.equal(result["coords"], batch.coordinates.cpu())
    assert torch.equal(result["point_to_voxel"].long(), batch.point_to_voxel.cpu())
    # 42 layers of float32, there with folded norms: 2e-7 of the largest score on a CPU.
    scale = scores.abs().max().item()
    torch.testing.assert_close(result["features"], scores, rtol=0, atol=1e-5 * scale)
    assert (result["features"].argmax(1) == scores.argmax(1)).double().mean() > 0.9999
