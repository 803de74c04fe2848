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
from pumice.models import MinkUNet42, pretrained
from pumice.weights import write_tensors

ROOT = pathlib.Path(__file__).parents[2]
WEIGHTS = ROOT / "models" / "streets.safetensors"
UNSEEN = 2_000_003  # trained on seeds below 2000, chosen by 1000000 to 1000015
CLASSES = len(data.SEMANTIC_KITTI.names)


def trained(device: torch.device) -> MinkUNet42:
    return pretrained("streets").network.to(device)


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


def test_what_comes_along_says_its_classes_and_its_voxels() -> None:
    streets = pretrained()
    assert streets.classes == data.SEMANTIC_KITTI.names
    assert streets.voxel_size == (0.1, 0.1, 0.1)
    assert not streets.network.training
    own = pretrained(WEIGHTS).network.state_dict()
    for name, value in streets.network.state_dict().items():
        assert torch.equal(value, own[name]), name


def test_what_is_no_trained_network_is_refused(tmp_path: pathlib.Path) -> None:
    for source, named in (
        ("roads", '"roads".*no installed weights have that name .*streets'),
        (tmp_path / "net.safetensors", "net.safetensors: cannot be opened: No such file"),
        ("roads.safetensors", "roads.safetensors: cannot be opened: No such file"),
        (tmp_path, "is a folder; give the name of a file in it"),
        (3, "source is an int: give the name of a file"),
    ):
        with pytest.raises(pumice.UserError, match=named):
            pretrained(source)
    _, said = pumice.read_weights(WEIGHTS)
    path = tmp_path / "net.safetensors"
    for key, value, named in (
        ("network", "second", "is a second; pretrained\\(\\) makes minkunet42"),
        ("features", "x,y,z", "features = \"x,y,z\"; networks run on x,y,z,intensity"),
        ("network", None, "does not say network"),
        ("widths", None, "does not say widths"),
        ("widths", "32,wide", '"wide" is no number'),
        ("voxel_size", "0.1,0.2", "voxel_size"),
        ("voxel_size", "nan", "voxel_size"),
        ("widths", "32,32", "widths"),
        ("classes", None, "does not say classes"),
        ("classes", "car,road", "labels = "),
    ):
        metadata = {**said, key: value} if value else {k: v for k, v in said.items() if k != key}
        # By its tensors, which say nothing of themselves; `save_weights` would refuse some of it.
        write_tensors(path, pretrained().network.state_dict(), metadata)
        with pytest.raises(pumice.UserError, match=named):
            pretrained(path)


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
