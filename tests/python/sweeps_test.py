"""Scans of several sweeps from the folders of datasets, on folders made up here."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pumice
from pumice import data


def turned(points: np.ndarray, yaw: float, shift: tuple[float, float, float]) -> np.ndarray:
    """By trigonometry, not by quaternions."""
    c, s = math.cos(yaw), math.sin(yaw)
    x, y, z = points.T.astype(np.float64)
    return np.stack([c * x - s * y + shift[0], s * x + c * y + shift[1], z + shift[2]], 1)


def refused(call: Callable[[], Any], *named: str) -> None:
    with pytest.raises(pumice.UserError) as error:
        call()
    for part in named:
        assert part in str(error.value)


def nuscenes(root: pathlib.Path, world: np.ndarray, sweeps: int = 4) -> list[dict[str, Any]]:
    """A scene of `sweeps` turns, the last of them a key frame. All see the same points of the world, from a car that
    drives 2 m along x and turns by 0.6 in each, with a sensor 1.8 m above it. Returns the records of sample_data."""
    (root / "samples/LIDAR_TOP").mkdir(parents=True)
    (root / "sweeps/LIDAR_TOP").mkdir(parents=True)
    (root / "v1.0-mini").mkdir()
    poses, records = [], []
    for i in range(sweeps):
        yaw, place = 0.6 * i, (2.0 * i, 0.5, 0.0)
        c, s = math.cos(-yaw), math.sin(-yaw)
        seen = world - np.array([*place]) - np.array([0, 0, 1.8])
        local = np.stack([c * seen[:, 0] - s * seen[:, 1], s * seen[:, 0] + c * seen[:, 1], seen[:, 2]], 1)
        folder = "samples" if i == sweeps - 1 else "sweeps"
        name = f"{folder}/LIDAR_TOP/{i}.pcd.bin"
        columns = np.column_stack([local, np.full(len(local), 51.0 * i), np.arange(len(local)) % 32])
        columns.astype(np.float32).tofile(root / name)
        poses.append({"token": f"e{i}", "translation": place, "rotation": (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))})
        records.append({
            "token": f"d{i}", "filename": name, "prev": f"d{i - 1}" if i else "", "timestamp": 1_500_000_000_000_000 + 50_000 * i,
            "ego_pose_token": f"e{i}", "calibrated_sensor_token": "c",
        })  # fmt: skip
    camera = {**records[0], "token": "x", "filename": "samples/CAM_FRONT/x.jpg"}
    calibrated = [{"token": "c", "translation": (0, 0, 1.8), "rotation": (1, 0, 0, 0)}]
    write_tables(root, sample_data=[camera, *records], ego_pose=poses, calibrated_sensor=calibrated)
    return records


def write_tables(root: pathlib.Path, **tables: list[dict[str, Any]]) -> None:
    for name, table in tables.items():
        (root / "v1.0-mini" / f"{name}.json").write_text(json.dumps(table))


def points(count: int = 40) -> np.ndarray:
    return np.random.default_rng(1).uniform(-20, 20, (count, 3))


def test_sweeps_of_nuscenes_meet_in_the_frame_of_the_key_frame(tmp_path: pathlib.Path) -> None:
    world = points()
    nuscenes(tmp_path, world)
    one = data.NuScenes(tmp_path, "v1.0-mini")[0]
    assert one.time is None
    three = data.NuScenes(tmp_path, "v1.0-mini", sweeps=3)[0]
    assert len(three) == 3 * len(one) and three.labels is None
    np.testing.assert_array_equal(three.positions[-len(one) :], one.positions)  # the same bits
    for part in np.split(three.positions, 3):  # of one world, which stands still
        np.testing.assert_allclose(part, one.positions, atol=1e-4)
    np.testing.assert_allclose(np.unique(three.time), [0, 0.05, 0.1], atol=1e-6)
    assert (np.diff(three.time) <= 0).all() and three.time.dtype == np.float32
    np.testing.assert_allclose(np.unique(three.intensity), [0.2, 0.4, 0.6], atol=1e-6)
    np.testing.assert_array_equal(three.ring, np.tile(one.ring, 3))
    assert len(data.NuScenes(tmp_path, "v1.0-mini", sweeps=10)[0]) == 4 * len(one)  # where the scene begins


def test_labels_are_those_of_the_key_frame(tmp_path: pathlib.Path) -> None:
    records = nuscenes(tmp_path, points())
    (tmp_path / "lidarseg").mkdir()
    np.full(40, 17, np.uint8).tofile(tmp_path / "lidarseg/a.bin")
    write_tables(tmp_path, lidarseg=[{"sample_data_token": records[-1]["token"], "filename": "lidarseg/a.bin"}])
    cloud = data.NuScenes(tmp_path, "v1.0-mini", sweeps=2)[0]
    np.testing.assert_array_equal(cloud.labels, [0] * 40 + [17] * 40)
    assert (data.NUSCENES(cloud.labels)[:40] == data.IGNORED).all()


def test_tables_of_nuscenes_that_say_nothing_of_sweeps(tmp_path: pathlib.Path) -> None:
    records = nuscenes(tmp_path, points())

    def scans() -> data.NuScenes:
        return data.NuScenes(tmp_path, "v1.0-mini", sweeps=2)

    refused(lambda: data.NuScenes(tmp_path, "v1.0-mini", sweeps=0), "sweeps = 0")
    refused(lambda: data.NuScenes(tmp_path, "v1.0-mini", sweeps=101), "sweeps = 101")
    refused(lambda: data.NuScenes(tmp_path, sweeps=2), "there is no", "v1.0-trainval", "sample_data.json")
    write_tables(tmp_path, sample_data=records[:-1])
    refused(scans, "lacks 3.pcd.bin")
    write_tables(tmp_path, sample_data=[*records[:-1], {**records[-1], "ego_pose_token": "gone"}])
    refused(scans, "ego_pose 'gone'", "ego_pose.json lacks")
    write_tables(tmp_path, sample_data=[*records[:-1], {**records[-1], "timestamp": "late"}])
    refused(scans, "timestamp 'late'")
    write_tables(tmp_path, sample_data=records)
    for bad in ([0, 0, 0, 0], [1, 0, 0], "turned", [1, 0, 0, float("nan")]):
        write_tables(tmp_path, calibrated_sensor=[{"token": "c", "translation": (0, 0, 1.8), "rotation": bad}])
        refused(scans, "calibrated_sensor.json, token 'c'", "no pose")
    write_tables(tmp_path, calibrated_sensor=[{"token": "c"}])
    refused(scans, "calibrated_sensor.json is no table", "translation")
    write_tables(tmp_path, calibrated_sensor=[{"token": "c", "translation": (0, 0, 1.8), "rotation": (1, 0, 0, 0)}])
    (tmp_path / records[-2]["filename"]).unlink()
    refused(lambda: scans()[0], "2.pcd.bin")


def waymo(root: pathlib.Path, frames: int, world: np.ndarray, **more: Any) -> None:
    """Frames of one drive, as `nuscenes` above, in the vehicle's frame."""
    root.mkdir(parents=True, exist_ok=True)
    for i in range(frames):
        yaw, place = 0.6 * i, (2.0 * i, 0.5, 0.0)
        pose = np.eye(4)
        pose[:3, :3] = [[math.cos(yaw), -math.sin(yaw), 0], [math.sin(yaw), math.cos(yaw), 0], [0, 0, 1]]
        pose[:3, 3] = place
        local = turned(world - np.array(place), -yaw, (0, 0, 0))
        columns = np.column_stack([local, np.full(len(local), 0.1 * i)]).astype(np.float32)
        np.savez(root / f"{i:03}.npz", points=columns, labels=np.full(len(world), i), pose=pose, **more)


def test_frames_of_waymo_meet_in_the_last(tmp_path: pathlib.Path) -> None:
    world = points(31)
    waymo(tmp_path / "one", 3, world)
    waymo(tmp_path / "two", 2, world)
    scans = data.Waymo(tmp_path, frames=3)
    assert [len(scans[i]) for i in range(5)] == [31, 62, 93, 31, 62]  # no frame of another drive
    last = data.Waymo(tmp_path)[2]
    cloud = scans[2]
    np.testing.assert_array_equal(cloud.positions[-31:], last.positions)
    for part in np.split(cloud.positions, 3):
        np.testing.assert_allclose(part, last.positions, atol=1e-4)
    np.testing.assert_allclose(np.unique(cloud.time), [0, 0.1, 0.2], atol=1e-6)
    np.testing.assert_array_equal(cloud.labels, np.repeat([0, 1, 2], 31))
    np.testing.assert_array_equal(scans[-1].positions, scans[4].positions)
    for i in range(2):
        arrays = dict(np.load(tmp_path / "two" / f"{i:03}.npz"))
        np.savez(tmp_path / "two" / f"{i:03}.npz", **arrays, timestamp=np.int64(1_000_000 + 300_000 * i))
    assert np.unique(data.Waymo(tmp_path, frames=2)[4].time).tolist() == pytest.approx([0, 0.3])


def test_frames_of_waymo_without_poses(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "a.npz", points=np.ones((3, 4)))
    refused(lambda: data.Waymo(tmp_path, frames=2)[0], "a.npz has no pose of shape [4, 4]")
    np.savez(tmp_path / "a.npz", points=np.ones((3, 4)), pose=np.full((4, 4), np.nan))
    refused(lambda: data.Waymo(tmp_path, frames=2)[0], "a.npz has no pose")
    (tmp_path / "other").mkdir()
    np.ones((3, 4), np.float32).tofile(tmp_path / "other" / "b.bin")
    refused(lambda: data.Waymo(tmp_path, frames=2)[1], "b.bin has no pose", ".npz")
    refused(lambda: data.Waymo(tmp_path, frames=0), "frames = 0")
    assert len(data.Waymo(tmp_path)[1]) == 3


@pytest.mark.parametrize("count", [0, 1, 31, 33])
def test_sweeps_of_any_size(tmp_path: pathlib.Path, count: int) -> None:
    waymo(tmp_path, 2, points(count))
    if count == 0:  # the second frame sees something
        np.savez(tmp_path / "001.npz", points=np.ones((2, 4), np.float32), pose=np.eye(4))
    cloud = data.Waymo(tmp_path, frames=2)[1]
    assert len(cloud) == (2 * count or 2) and len(cloud.time) == len(cloud)
