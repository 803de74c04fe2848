"""Datasets, augmentation and batches."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import NO_GPU

import pumice
from pumice import data

RECORDED = pathlib.Path(
    os.environ.get("PUMICE_DATA", pathlib.Path(__file__).parents[3] / "shared" / "data")
) / "lidar"


def recorded(pattern: str) -> list[pathlib.Path]:
    """Files of recorded scans, by name; skips where there are none."""
    found = sorted(RECORDED.glob(pattern))
    if not found:
        pytest.skip(f"{RECORDED / pattern} is not here: name a folder of recorded scans in PUMICE_DATA")
    return found


def street(seed: int = 0) -> pumice.PointCloud:
    return pumice.simulate(seed, beams=32)


STEPS = [
    data.Rotate(), data.Flip(), data.Scale(), data.Shift(), data.Jitter(), data.Drop(0.5),
    data.Mix([street(5)]), data.Sometimes(1.0, data.Rotate()),
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda s: type(s).__name__)
def test_an_augmentation_changes_a_copy_the_same_way_each_time(step: data.Compose) -> None:
    cloud = street()
    before = cloud.positions.copy()
    first, again, *others = (step(cloud, np.random.default_rng(s)) for s in (1, *range(1, 9)))
    np.testing.assert_array_equal(cloud.positions, before)
    np.testing.assert_array_equal(first.positions, again.positions)
    assert not all(np.array_equal(first.positions, other.positions) for other in others)
    for column in (first.intensity, first.labels, first.ring):
        assert len(column) == len(first)
    assert first.positions.dtype == np.float32 and first.positions.flags.c_contiguous


def test_augmentations_keep_what_they_should() -> None:
    cloud, random = street(), np.random.default_rng(3)
    turned = data.Rotate()(cloud, random).positions
    radius = np.linalg.norm(cloud.positions[:, :2], axis=1)
    np.testing.assert_allclose(np.linalg.norm(turned[:, :2], axis=1), radius, rtol=1e-4)
    np.testing.assert_array_equal(turned[:, 2], cloud.positions[:, 2])
    flipped = data.Flip((0,))
    first = cloud.positions[0, 0]
    signs = {float(flipped(cloud, random).positions[0, 0] / first) for _ in range(20)}
    assert signs == {1.0, -1.0}
    scaled = data.Scale(0.9, 0.9)(cloud, random).positions
    np.testing.assert_allclose(scaled, 0.9 * cloud.positions, rtol=1e-6)
    assert np.abs(data.Jitter(0.01)(cloud, random).positions - cloud.positions).max() <= 0.0301
    assert data.Sometimes(0.0, data.Flip())(cloud, random) is cloud
    assert data.Compose()(cloud, random) is cloud


def test_mix_takes_a_sector_of_the_other() -> None:
    first, second = street(0), street(1)
    mixed = data.Mix([second])(first, np.random.default_rng(0))
    sources = {tuple(p): 0 for p in first.positions} | {tuple(p): 1 for p in second.positions}
    source = np.array([sources[tuple(p)] for p in mixed.positions])
    angle = np.sort(np.arctan2(*mixed.positions[source == 1, 1::-1].T))
    gaps = np.diff(np.concatenate([angle, angle[:1] + 2 * np.pi]))
    assert 0.4 < 2 * np.pi - gaps.max() <= np.pi + 1e-3  # one sector, not wider than allowed
    assert 0.3 < (source == 0).mean() < 0.95


@pytest.mark.parametrize("column", ["intensity", "labels", "time", "ring"])
def test_mix_keeps_the_columns_of_the_scan_that_it_changes(column: str) -> None:
    whole = street()
    whole = dataclasses.replace(whole, time=np.zeros(len(whole), np.float32))
    bare = dataclasses.replace(whole, **{column: None})
    refused(
        lambda: data.Mix([bare])(whole, np.random.default_rng(0)),
        f"scans[0] of Mix has no {column}", f"give scans with {column}", f"{column}=None",
    )  # fmt: skip
    mixed = data.Mix([whole])(bare, np.random.default_rng(0))
    assert [f.name for f in dataclasses.fields(mixed) if getattr(mixed, f.name) is None] == [column]


@pytest.mark.parametrize("empty", [0, 1])
def test_empty_and_tiny_scans(empty: int) -> None:
    cloud = data.augment.select(street(), np.arange(empty))
    for step in STEPS:
        if not isinstance(step, data.Mix):
            assert len(step(cloud, np.random.default_rng(0))) <= empty
    sample = data.VoxelDataset([cloud], data.SEMANTIC_KITTI, points=True)[0]
    batch = data.collate([sample, sample])
    assert batch.items == 2 and len(batch.coordinates) == 2 * empty
    assert len(batch.tensor()) == 2 * empty


def test_label_maps() -> None:
    kitti = data.SEMANTIC_KITTI
    numbers = np.array([0, 10, 252, 60, 259, -5, 99, 100_000])
    assert kitti(numbers).tolist() == [-1, 0, 0, 8, 4, -1, -1, -1]
    assert [len(m.names) for m in (kitti, data.NUSCENES, data.WAYMO)] == [19, 16, 22]
    assert data.NUSCENES.names[data.NUSCENES(np.array([24]))[0]] == "driveable-surface"
    assert data.WAYMO.names[data.WAYMO(np.array([22]))[0]] == "sidewalk"
    for labels in (kitti, data.NUSCENES, data.WAYMO):
        assert set(labels.ids.values()) == set(range(len(labels.names)))


def test_majority_labels() -> None:
    truth = np.array([2, 2, 0, -1, -1, 1, 0])
    rows = np.array([0, 0, 0, 1, 2, 2, -1])
    assert data.majority_labels(truth, rows, 4, 3).tolist() == [2, -1, 1, -1]


def test_simulated_scans_are_kept(tmp_path: pathlib.Path) -> None:
    scans = data.SimulatedScans(range(7, 9), beams=32, cache=tmp_path / "kept")
    made, kept, plain = scans[1], scans[1], street(8)
    for cloud in (made, kept):
        np.testing.assert_array_equal(cloud.positions, plain.positions)
        np.testing.assert_array_equal(cloud.intensity, plain.intensity)
        np.testing.assert_array_equal(cloud.labels, plain.labels)
        np.testing.assert_array_equal(cloud.ring, plain.ring)
        assert cloud.ring.dtype == plain.ring.dtype and cloud.time is plain.time is None
    file = tmp_path / "kept" / "street_32_8.npy"
    assert list(file.parent.iterdir()) == [file]
    np.save(file, np.load(file)[:, :5])  # as they were kept before there were rings
    np.testing.assert_array_equal(scans[1].ring, plain.ring)
    assert np.load(file).shape == (len(plain), 6)


@pytest.mark.parametrize("workers", [0, 1])
def test_samples_do_not_depend_on_who_makes_them(workers: int, tmp_path: pathlib.Path) -> None:
    scans = data.SimulatedScans(range(2), beams=32, cache=tmp_path)
    dataset = data.VoxelDataset(
        scans, data.SEMANTIC_KITTI, 0.4, data.Compose(data.Rotate(), data.Mix(scans)), points=True
    )
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=2,
        sampler=[0, 3],
        num_workers=workers,
        collate_fn=data.collate,
        multiprocessing_context="spawn" if workers else None,
        worker_init_fn=data.one_thread if workers else None,
    )
    (batch,) = list(loader)
    expected = [dataset[0], dataset[3]]
    assert not torch.equal(expected[1].coordinates, dataset[1].coordinates)  # another draw
    rows = 0
    for item, sample in enumerate(expected):
        mine = batch.coordinates[:, 0] == item
        assert torch.equal(batch.coordinates[mine][:, 1:], sample.coordinates[:, 1:])
        assert torch.equal(batch.labels[mine], sample.labels)
        rows += len(sample.point_to_voxel)
    assert torch.equal(
        batch.features[batch.point_to_voxel],
        torch.cat([s.features[s.point_to_voxel] for s in expected]),
    )
    assert len(batch.point_labels) == rows and batch.tensor().batch_size == 2


def test_a_batch_moves(device: torch.device) -> None:
    sample = data.VoxelDataset([street()], data.SEMANTIC_KITTI, 0.5)[0]
    if device.type == "cuda":
        sample = sample.pin_memory()
    moved = data.collate([sample]).to(device)
    assert moved.point_labels is None and moved.tensor().device.type == device.type


def test_a_scan_without_labels_is_refused() -> None:
    cloud = street()
    cloud.labels = None
    with pytest.raises(pumice.UserError, match="no labels"):
        data.VoxelDataset([cloud], data.SEMANTIC_KITTI)[0]


def test_semantic_kitti(tmp_path: pathlib.Path) -> None:
    recorded("semantickitti/seq00_000001.bin")
    source = recorded("semantickitti/seq00_000000.label")[0].parent
    folder = tmp_path / "sequences" / "00"
    (folder / "velodyne").mkdir(parents=True)
    (folder / "labels").mkdir()
    for frame in ("000000", "000001"):
        shutil.copy(source / f"seq00_{frame}.bin", folder / "velodyne" / f"{frame}.bin")
    shutil.copy(source / "seq00_000000.label", folder / "labels" / "000000.label")
    scans = data.SemanticKitti(tmp_path)
    assert len(scans) == 2 and scans[1].labels is None
    cloud = scans[0]
    raw = np.fromfile(source / "seq00_000000.label", np.uint32) & 0xFFFF
    np.testing.assert_array_equal(cloud.labels, raw)
    sample = data.VoxelDataset(scans, data.SEMANTIC_KITTI, 0.1)[0]
    counts = torch.bincount(sample.labels[sample.labels >= 0], minlength=19)
    assert counts[8] > 1000 and counts[12] > 1000  # road and building
    with pytest.raises(pumice.UserError, match="velodyne"):
        data.SemanticKitti(tmp_path, sequences=[3])


def test_nuscenes(tmp_path: pathlib.Path) -> None:
    source, *_ = recorded("nuscenes/*.pcd.bin")
    sweeps = tmp_path / "samples" / "LIDAR_TOP"
    sweeps.mkdir(parents=True)
    shutil.copy(source, sweeps / source.name)
    plain = data.NuScenes(tmp_path)
    assert len(plain) == 1 and plain[0].labels is None
    assert 0 < plain[0].intensity.max() <= 1
    points = len(plain[0])
    (tmp_path / "v1.0-mini").mkdir()
    (tmp_path / "lidarseg").mkdir()
    labels = np.random.default_rng(0).integers(0, 32, points).astype(np.uint8)
    labels.tofile(tmp_path / "lidarseg" / "a_lidarseg.bin")
    tables = {
        "lidarseg": [{"sample_data_token": "a", "filename": "lidarseg/a_lidarseg.bin"}],
        "sample_data": [{"token": "b", "filename": "samples/CAM/x.jpg"},
                        {"token": "a", "filename": f"samples/LIDAR_TOP/{source.name}"}],
    }
    for name, table in tables.items():
        (tmp_path / "v1.0-mini" / f"{name}.json").write_text(json.dumps(table))
    labelled = data.NuScenes(tmp_path, "v1.0-mini")
    np.testing.assert_array_equal(labelled[0].labels, labels)
    labels[:-1].tofile(tmp_path / "lidarseg" / "a_lidarseg.bin")
    with pytest.raises(pumice.UserError, match=f"{points - 1} labels for a scan of {points}"):
        labelled[0]


def test_waymo(tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(0)
    points = random.normal(size=(50, 4)).astype(np.float32)
    classes = random.integers(0, 23, (50, 2)).astype(np.int32)
    (tmp_path / "one").mkdir()
    np.savez(tmp_path / "one" / "a.npz", points=points, labels=classes)
    np.savez(tmp_path / "one" / "b.npz", coord=points[:, :3], strength=points[:, 3:],
             segment=classes[:, 1])
    points.tofile(tmp_path / "one" / "c.bin")
    np.save(tmp_path / "one" / "c.npy", classes)
    scans = data.Waymo(tmp_path)
    assert len(scans) == 3
    for cloud in (scans[0], scans[1], scans[2]):
        np.testing.assert_array_equal(cloud.positions, points[:, :3])
        np.testing.assert_array_equal(cloud.intensity, np.tanh(points[:, 3]))
        np.testing.assert_array_equal(cloud.labels, classes[:, 1])
    np.savez(tmp_path / "one" / "a.npz", something=points)
    with pytest.raises(pumice.UserError, match="positions"):
        scans[0]


def write_scan(path: pathlib.Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.ones((4, 4), np.float32).tofile(path)


def test_labels_that_are_missing_are_named(tmp_path: pathlib.Path) -> None:
    kitti, nuscenes, waymo = tmp_path / "kitti", tmp_path / "nuscenes", tmp_path / "waymo"
    write_scan(kitti / "sequences" / "00" / "velodyne" / "000007.bin")
    scans = data.VoxelDataset(data.SemanticKitti(kitti), data.SEMANTIC_KITTI)
    refused(lambda: scans[0], "scans[0] has no labels", str(kitti / "sequences/00/labels/000007.label"))

    sweep = nuscenes / "samples" / "LIDAR_TOP" / "a.pcd.bin"
    sweep.parent.mkdir(parents=True)
    np.ones((4, 5), np.float32).tofile(sweep)
    scans = data.VoxelDataset(data.NuScenes(nuscenes), data.NUSCENES)
    refused(lambda: scans[0], "scans[0] has no labels", str(nuscenes / "v1.0-trainval" / "lidarseg.json"))
    (nuscenes / "v1.0-trainval").mkdir()
    tables = {"lidarseg": [{"sample_data_token": "a", "filename": "lidarseg/gone.bin"}],
              "sample_data": [{"token": "a", "filename": "samples/LIDAR_TOP/a.pcd.bin"}]}
    for name, table in tables.items():
        (nuscenes / "v1.0-trainval" / f"{name}.json").write_text(json.dumps(table))
    refused(lambda: data.NuScenes(nuscenes)[0], str(nuscenes / "lidarseg" / "gone.bin"), "no such file")

    write_scan(waymo / "a.bin")
    np.savez(waymo / "b.npz", points=np.ones((4, 4)))
    scans = data.VoxelDataset(data.Waymo(waymo), data.WAYMO)
    refused(lambda: scans[0], "scans[0] has no labels", str(waymo / "a.label"), str(waymo / "a.npy"))
    refused(lambda: scans[1], "scans[1] has no labels", str(waymo / "b.npz"), "labels or segment")


def test_folders_of_another_dataset(tmp_path: pathlib.Path) -> None:
    kitti, nuscenes, published = tmp_path / "kitti", tmp_path / "nuscenes", tmp_path / "published"
    write_scan(kitti / "sequences" / "00" / "velodyne" / "000000.bin")
    write_scan(nuscenes / "samples" / "LIDAR_TOP" / "a.pcd.bin")
    write_scan(published / "training" / "segment.tfrecord")
    for root in (kitti, kitti / "sequences" / "00"):
        refused(lambda root=root: data.Waymo(root), "000000.bin is no frame of Waymo", "data.SemanticKitti")
    refused(lambda: data.Waymo(nuscenes), "a.pcd.bin is no frame of Waymo", "data.NuScenes")
    refused(lambda: data.Waymo(published), "no .npz or .bin file", ".tfrecord", "converted to .npz")
    refused(lambda: data.Waymo(tmp_path / "gone"), str(tmp_path / "gone"), "is no folder")
    refused(lambda: data.SemanticKitti(nuscenes), "velodyne", "samples/LIDAR_TOP", "data.NuScenes")
    refused(lambda: data.NuScenes(kitti), "LIDAR_TOP", "sequences", "data.SemanticKitti")


@pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)
def test_workers_beside_cuda() -> None:
    """Workers are started after CUDA was, as in training."""
    torch.zeros(1, device="cuda")
    dataset = data.VoxelDataset([street()], data.SEMANTIC_KITTI, 0.5)
    loader = torch.utils.data.DataLoader(
        dataset, num_workers=1, collate_fn=data.collate, pin_memory=True,
        multiprocessing_context="forkserver", worker_init_fn=data.one_thread,
    )
    (batch,) = [b.to("cuda", non_blocking=True) for b in loader]
    assert batch.tensor().features.is_cuda


def refused(call: Callable[[], object], *words: str) -> None:
    """One sentence that says what was given and what to do."""
    with pytest.raises(pumice.UserError) as caught:
        call()
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert "\n" not in said


def test_what_is_no_dataset_is_refused_where_it_is_given(tmp_path: pathlib.Path) -> None:
    scan, kitti = street(), data.SEMANTIC_KITTI
    refused(lambda: data.VoxelDataset(scan, kitti), "scans is one PointCloud", "[scan]")
    refused(lambda: data.VoxelDataset("/kitti", kitti), "scans is a path, /kitti", "SemanticKitti")
    refused(lambda: data.VoxelDataset(iter([scan]), kitti), "list_iterator", "no length")
    refused(lambda: data.VoxelDataset(5, kitti), "scans is an int")
    refused(lambda: data.VoxelDataset([scan], {10: 0}), "labels is a dict", "LabelMap(names, ids)")
    refused(lambda: data.VoxelDataset([scan], kitti, voxel=0), "size")
    refused(lambda: data.VoxelDataset([scan], kitti, voxel=[0.1, 0.1]), "voxel has 2 numbers")
    refused(lambda: data.VoxelDataset([scan], kitti, voxel="0.1"), "voxel = '0.1'", "give metres")
    refused(lambda: data.VoxelDataset([scan], kitti, voxel=None), "voxel = None", "one number or one each")
    refused(lambda: data.VoxelDataset([scan], kitti, range=[0, 1]), "range has 2 numbers")
    refused(lambda: data.VoxelDataset([scan], kitti, range="0 0 0 1 1 1"), "range = '0 0 0", "x0, y0, z0")
    refused(lambda: data.VoxelDataset([scan], kitti, augment=data.Rotate), "class Rotate", "Rotate()")
    refused(lambda: data.VoxelDataset([scan], kitti, augment=[data.Rotate()]), "Compose(*augment)")
    refused(lambda: data.VoxelDataset(["a.bin"], kitti)[0], "scans[0] is a str", "read_points")
    returned = data.VoxelDataset([scan], kitti, augment=lambda scan, random: None)
    refused(lambda: returned[0], "what augment returned is None")

    def changed(**columns: Any) -> pumice.PointCloud:
        """A scan whose arrays somebody set later."""
        cloud = copy.copy(scan)
        for name, values in columns.items():
            setattr(cloud, name, values)
        return cloud

    fewer = changed(labels=scan.labels[:-1])
    refused(lambda: data.VoxelDataset([fewer], kitti)[0], f"scans[0].labels has shape ({len(scan) - 1},)")
    columns = changed(intensity=scan.intensity[:, None])
    refused(lambda: data.VoxelDataset([columns], kitti)[0], "scans[0].intensity", f"[P], here [{len(scan)}]")
    tensors = changed(positions=torch.from_numpy(scan.positions))
    refused(lambda: data.VoxelDataset([tensors], kitti)[0], "scans[0].positions is a Tensor", "NumPy")
    flat = changed(positions=scan.positions[:, :2])
    refused(lambda: data.VoxelDataset([flat], kitti).sample(flat), "cloud.positions", "[P, 3]")
    refused(lambda: data.SimulatedScans(100), "seeds = 100", "range(100)")
    refused(lambda: data.SimulatedScans([1], beams=48), "beams = 48")
    refused(lambda: data.SemanticKitti(tmp_path, 8), "sequences = 8", "[8]")
    refused(lambda: data.SemanticKitti(tmp_path, "08"), "sequences = '08'")


def test_augmentations_that_are_none_are_refused() -> None:
    refused(lambda: data.Compose([data.Flip()]), "steps[0] is a list", "Compose(*steps[0])")
    refused(lambda: data.Compose(data.Flip(), data.Rotate), "steps[1] is the class Rotate")
    refused(lambda: data.Compose(0.5), "steps[0] is a float")
    refused(lambda: data.Sometimes(data.Flip(), 0.5), "probability = ")
    refused(lambda: data.Sometimes(0.5, data.Flip), "step is the class Flip")
    refused(lambda: data.Rotate("left", "right"), "low, high = 'left', 'right'")
    refused(lambda: data.Scale((0.9, 1.1)), "low, high = (0.9, 1.1), 1.05")
    refused(lambda: data.Mix(street()), "scans is one PointCloud")
    refused(lambda: data.Rotate()(street(), 0), "random is an int", "np.random.default_rng(0)")
    generator = np.random.default_rng(0)
    refused(lambda: data.Flip()(street().positions, generator), "cloud is an ndarray", "PointCloud")
    mixed = data.Mix(["a.bin"])
    refused(lambda: mixed(street(), np.random.default_rng(0)), "scans[0] is a str")


def test_labels_that_are_no_whole_numbers_are_refused() -> None:
    kitti = data.SEMANTIC_KITTI
    refused(lambda: kitti(None), "labels are NoneType", "read_labels")
    refused(lambda: kitti(np.array([10.0])), "labels are float64")
    refused(lambda: data.LabelMap(("car",), [10]), "ids is a list")
    refused(lambda: data.LabelMap("car", {10: 0}), "names = 'car'", "('car',)")
    refused(lambda: data.LabelMap(("car,van",), {10: 0}), "names has 'car,van'", "without commas")
    assert kitti(torch.tensor([10, 7])).tolist() == [0, -1]
    assert kitti(np.array([10], np.uint32)).dtype == np.int64


def test_votes_for_classes_that_there_are_not_are_refused() -> None:
    rows = np.array([0, 1, 1])
    vote = data.majority_labels
    refused(lambda: vote(np.array([0, 40, 2]), rows, 2, 3), "truth holds 40", "0 to 2", "label map")
    refused(lambda: vote(np.array([0, -2, 2]), rows, 2, 3), "truth holds -2")
    refused(lambda: vote(np.array([0, 1, 2]), rows, 1, 3), "point_to_voxel holds 1", "1 voxels")
    refused(lambda: vote(np.array([0, 1]), rows, 2, 3), "truth has shape (2,)", "point_to_voxel (3,)")


def test_batches_of_other_things_are_refused() -> None:
    sample = data.VoxelDataset([street()], data.SEMANTIC_KITTI, 1.0)[0]
    refused(lambda: data.collate(sample), "samples is one Sample", "[sample]")
    refused(lambda: data.collate([sample, sample.tensor()]), "samples[1] is a SparseTensor", "pumice.collate")
    refused(lambda: data.collate([sample, (1, 2)]), "samples[1] is a tuple", "VoxelDataset")
    refused(lambda: data.collate([data.collate([sample, sample])]), "samples[0] is a batch of 2 items")
    narrow = dataclasses.replace(sample, features=sample.features[:, :3])
    refused(lambda: data.collate([sample, narrow]), "samples[1] has 3 features", "samples[0] 4")


def test_a_loader_without_collate_fn_makes_batches() -> None:
    dataset = data.VoxelDataset([street(), street(1)], data.SEMANTIC_KITTI, 1.0, points=True)
    (batch,) = torch.utils.data.DataLoader(dataset, batch_size=2)
    expected = data.collate(list(dataset))
    assert batch.items == 2
    for field in dataclasses.fields(expected):
        mine, theirs = getattr(batch, field.name), getattr(expected, field.name)
        assert torch.equal(torch.as_tensor(mine), torch.as_tensor(theirs)), field.name


def test_a_sample_keeps_its_types_and_is_loaded_again(tmp_path: pathlib.Path) -> None:
    sample = data.VoxelDataset([street()], data.SEMANTIC_KITTI, 1.0)[0]
    refused(lambda: sample.to(torch.float16), "device = torch.float16", "autocast")
    torch.save([sample], tmp_path / "kept.pt")
    (again,) = torch.load(tmp_path / "kept.pt")
    assert torch.equal(again.labels, sample.labels) and again.items == 1


def test_damaged_files_are_named(tmp_path: pathlib.Path) -> None:
    scans = data.SimulatedScans([3], beams=32, cache=tmp_path)
    kept = tmp_path / "street_32_3.npy"
    kept.write_bytes(b"\x93NUMPY")
    refused(lambda: scans[0], "street_32_3.npy is damaged", "delete it")
    np.save(kept, np.zeros((4, 3)))
    refused(lambda: scans[0], "street_32_3.npy holds no street")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.npz").write_bytes(b"PK\x03\x04 and no more")
    refused(lambda: data.Waymo(tmp_path / "w")[0], "a.npz is no .npz file of arrays")
    (tmp_path / "w" / "a.npz").unlink()
    np.zeros((2, 4), np.float32).tofile(tmp_path / "w" / "b.bin")
    (tmp_path / "w" / "b.npy").write_bytes(b"labels")
    refused(lambda: data.Waymo(tmp_path / "w")[0], "b.npy is no .npy file of labels")
    tables = tmp_path / "v1.0-mini"
    tables.mkdir()
    (tables / "lidarseg.json").write_text("[{}]")
    refused(lambda: data.NuScenes(tmp_path, "v1.0-mini"), "lidarseg.json is no table", "sample_data_token")
    (tables / "lidarseg.json").write_text("[")
    refused(lambda: data.NuScenes(tmp_path, "v1.0-mini"), "lidarseg.json is no JSON")
    (tables / "lidarseg.json").write_text("[]")
    refused(lambda: data.NuScenes(tmp_path, "v1.0-mini"), "there is no", "sample_data.json")
