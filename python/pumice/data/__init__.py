"""Datasets, augmentation and batches."""

from .augment import Compose, Drop, Flip, Jitter, Mix, Rotate, Scale, Shift, Sometimes
from .labels import IGNORED, NUSCENES, SEMANTIC_KITTI, WAYMO, LabelMap
from .segmentation import Sample, VoxelDataset, collate, majority_labels, one_thread
from .simulated import SimulatedScans

__all__ = [
    "IGNORED",
    "NUSCENES",
    "SEMANTIC_KITTI",
    "WAYMO",
    "Compose",
    "Drop",
    "Flip",
    "Jitter",
    "LabelMap",
    "Mix",
    "Rotate",
    "Sample",
    "Scale",
    "Shift",
    "SimulatedScans",
    "Sometimes",
    "VoxelDataset",
    "collate",
    "majority_labels",
    "one_thread",
]
