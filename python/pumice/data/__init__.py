"""Provides datasets, augmentations and batches for the segmentation of point clouds, and graphs of classified nodes."""

from .. import _needs_torch  # noqa: F401  (first, since it says what is missing)
from .augment import Compose, Drop, Flip, Jitter, Mix, Rotate, Scale, Shift, Sometimes
from .folders import (
    SEMANTIC_KITTI_TRAIN,
    SEMANTIC_KITTI_VALIDATION,
    NuScenes,
    SemanticKitti,
    Waymo,
)
from .labels import IGNORED, NUSCENES, SEMANTIC_KITTI, WAYMO, LabelMap
from .planetoid import NodeClasses, planetoid
from .segmentation import Sample, VoxelDataset, collate, majority_labels, one_thread
from .simulated import SimulatedScans

__all__ = [
    "IGNORED",
    "NUSCENES",
    "SEMANTIC_KITTI",
    "SEMANTIC_KITTI_TRAIN",
    "SEMANTIC_KITTI_VALIDATION",
    "WAYMO",
    "Compose",
    "Drop",
    "Flip",
    "Jitter",
    "LabelMap",
    "NodeClasses",
    "Mix",
    "NuScenes",
    "Rotate",
    "Sample",
    "Scale",
    "SemanticKitti",
    "Shift",
    "SimulatedScans",
    "Sometimes",
    "VoxelDataset",
    "Waymo",
    "collate",
    "majority_labels",
    "one_thread",
    "planetoid",
]
