"""Maps the class numbers of a dataset's label files to the classes 0, 1, … that a network learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from .. import _C
from .._checks import at_least_one, kind_of, whole_number

IGNORED = -1  # the class of points that no loss and no figure counts


@dataclasses.dataclass(frozen=True)
class LabelMap:
    """From the numbers of a label file to classes 0, 1, ….

    Args:
        names: of the classes.
        ids: class of each number of a label file; numbers that are not there are `IGNORED`.
    Raises:
        UserError: for classes without a name, and for negative numbers.
    Example:
        >>> roads = pumice.data.LabelMap(("road", "car"), {40: 0, 10: 1})
        >>> roads(np.array([10, 40, 99]))
        array([ 1,  0, -1])
    """

    names: tuple[str, ...]
    ids: Mapping[int, int]

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise _C.UserError(f"names = {self.names!r}: give a name for each class, as ({self.names!r},)")
        for name in self.names:
            if not isinstance(name, str) or "," in name:  # metadata has commas between them
                raise _C.UserError(f"names has {name!r}: give texts without commas")
        if not isinstance(self.ids, Mapping):
            raise _C.UserError(
                f"ids is {kind_of(self.ids)}: give the class of each number of a label file, as "
                "{10: 0, 252: 0, 11: 1}"
            )
        at_least_one("ids", self.ids, "number of a label file")
        for number, index in self.ids.items():
            whole_number("a number of ids", number, 0)
            whole_number(f"ids[{number}]", index, IGNORED, len(self.names) - 1)
        table = np.full(max(self.ids) + 2, IGNORED, np.int64)
        for number, index in self.ids.items():
            table[number] = index
        object.__setattr__(self, "_table", table)

    def __call__(self, labels: np.ndarray | None) -> np.ndarray:
        """int [P] to int64 [P]. Raises UserError for None, which is what a scan without labels has, and
        for what is no array of whole numbers."""
        if labels is None:
            raise _C.UserError(
                "labels are NoneType, as of a scan without labels: read them with pumice.read_labels, or take a scan "
                "that has some"
            )
        if getattr(labels, "dtype", None) is None or np.asarray(labels).dtype.kind not in "iu":
            given = getattr(labels, "dtype", type(labels).__name__)
            raise _C.UserError(f"labels are {given}: give an array of whole numbers, as read_labels does")
        labels = np.asarray(labels)
        table: np.ndarray = self._table  # type: ignore[attr-defined]
        inside = (labels >= 0) & (labels < len(table))
        return table[np.where(inside, labels, len(table) - 1)]

    def metadata(self) -> dict[str, str]:
        """What a file of weights says of its classes, for `save_weights`; `pumice run` reads it."""
        groups = [
            " ".join(str(number) for number, index in self.ids.items() if index == own)
            for own in range(len(self.names))
        ]
        return {"classes": ",".join(self.names), "labels": ",".join(groups)}


def _grouped(groups: Mapping[str, tuple[int, ...]]) -> LabelMap:
    ids = {number: index for index, group in enumerate(groups.values()) for number in group}
    return LabelMap(tuple(groups), ids)


# The 19 classes of SemanticKITTI's single-scan benchmark, which the simulator's labels follow.
SEMANTIC_KITTI = _grouped(
    {
        "car": (10, 252),
        "bicycle": (11,),
        "motorcycle": (15,),
        "truck": (18, 258),
        "other-vehicle": (13, 16, 20, 256, 257, 259),
        "person": (30, 254),
        "bicyclist": (31, 253),
        "motorcyclist": (32, 255),
        "road": (40, 60),
        "parking": (44,),
        "sidewalk": (48,),
        "other-ground": (49,),
        "building": (50,),
        "fence": (51,),
        "vegetation": (70,),
        "trunk": (71,),
        "terrain": (72,),
        "pole": (80,),
        "traffic-sign": (81,),
    }
)

# The 16 classes of nuScenes-lidarseg's challenge.
NUSCENES = _grouped(
    {
        "barrier": (9,),
        "bicycle": (14,),
        "bus": (15, 16),
        "car": (17,),
        "construction-vehicle": (18,),
        "motorcycle": (21,),
        "pedestrian": (2, 3, 4, 6),
        "traffic-cone": (12,),
        "trailer": (22,),
        "truck": (23,),
        "driveable-surface": (24,),
        "other-flat": (25,),
        "sidewalk": (26,),
        "terrain": (27,),
        "manmade": (28,),
        "vegetation": (30,),
    }
)

# The 22 classes of Waymo's challenge; 0 is undefined.
_WAYMO_NAMES = (
    "car", "truck", "bus", "other-vehicle", "motorcyclist", "bicyclist", "pedestrian", "sign",
    "traffic-light", "pole", "construction-cone", "bicycle", "motorcycle", "building",
    "vegetation", "tree-trunk", "curb", "road", "lane-marker", "other-ground", "walkable",
    "sidewalk",
)  # fmt: skip
WAYMO = LabelMap(_WAYMO_NAMES, {index + 1: index for index in range(len(_WAYMO_NAMES))})
