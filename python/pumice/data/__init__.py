"""Provides datasets, augmentations and batches for the segmentation of point clouds, graphs of classified nodes and of typed
edges, generated graphs, and batches of sampled neighbours."""

from .. import _needs_torch  # noqa: F401  (first, since it says what is missing)
from .augment import Compose, Drop, Flip, Jitter, Mix, Rotate, Scale, Shift, Sometimes
from .entities import EntityClasses, TypedEdges, entities, typed_edges
from .folders import (
    SEMANTIC_KITTI_TRAIN,
    SEMANTIC_KITTI_VALIDATION,
    NuScenes,
    SemanticKitti,
    Waymo,
)
from .generated import grid_edges, power_law_edges, rmat_edges
from .labels import IGNORED, NUSCENES, SEMANTIC_KITTI, WAYMO, LabelMap
from .neighbours import NeighbourBatch, NeighbourLoader
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
    "EntityClasses",
    "Flip",
    "Jitter",
    "LabelMap",
    "Mix",
    "NeighbourBatch",
    "NeighbourLoader",
    "NodeClasses",
    "NuScenes",
    "Rotate",
    "Sample",
    "Scale",
    "SemanticKitti",
    "Shift",
    "SimulatedScans",
    "Sometimes",
    "TypedEdges",
    "VoxelDataset",
    "Waymo",
    "collate",
    "entities",
    "grid_edges",
    "majority_labels",
    "one_thread",
    "planetoid",
    "power_law_edges",
    "rmat_edges",
    "typed_edges",
]
