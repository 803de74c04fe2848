"""How well classes that `pumice run` found agree with the labels of a SemanticKITTI scan.

    pumice run minkunet42 000000.bin --weights streets --out result.safetensors
    python examples/confusion_with_labels.py result.safetensors 000000.label
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import pumice
from pumice import data
from pumice.metrics import Confusion
from pumice.weights import read_weights

LABELS = data.SEMANTIC_KITTI
NOT_SIMULATED = ("motorcycle", "bicyclist", "motorcyclist", "other-ground")


def main(result: str, labels: str) -> None:
    """Prints the table. Raises pumice.UserError for files that are no result and no labels of its scan."""
    tensors, _ = read_weights(result)
    if not {"features", "point_to_voxel"} <= tensors.keys():
        raise pumice.UserError(f"{result} has no features and point_to_voxel: give what `pumice run --out` wrote")
    predicted = tensors["features"].argmax(1)[tensors["point_to_voxel"].long()]
    truth = torch.as_tensor(LABELS(pumice.read_labels(labels).astype(np.int64)))
    if len(truth) != len(predicted):
        raise pumice.UserError(f"{labels} has {len(truth)} labels for {len(predicted)} points: give those of the same scan")
    for name in NOT_SIMULATED:
        truth[truth == LABELS.names.index(name)] = -1
    confusion = Confusion(len(LABELS.names))
    confusion.add(truth, predicted)
    print(confusion.table(LABELS.names))
    print(f"accuracy {confusion.accuracy():.3f}; most often taken for:")
    for index in torch.nonzero(confusion.present).flatten().tolist():
        row = confusion.matrix[index]
        found = ", ".join(
            f"{LABELS.names[other]} {100 * int(row[other]) / int(row.sum()):.0f} %"
            for other in row.argsort(descending=True)[:3].tolist()
        )
        print(f"  {LABELS.names[index]:<16}{found}")


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit()
    if len(sys.argv) != 3:
        sys.exit("confusion_with_labels.py: give a result of `pumice run --out`, then the .label file of its scan")
    try:
        main(*sys.argv[1:])
    except pumice.UserError as error:
        sys.exit(f"confusion_with_labels.py: {error}")
