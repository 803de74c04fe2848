"""How well classes that `pumice run` found agree with the labels of a SemanticKITTI scan.

    pumice run minkunet42 000000.bin --weights streets --out result.safetensors
    python examples/confusion_with_labels.py result.safetensors 000000.label
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from pumice import data
from pumice.metrics import Confusion
from pumice.weights import read_weights

LABELS = data.SEMANTIC_KITTI
NOT_SIMULATED = ("motorcycle", "bicyclist", "motorcyclist", "other-ground")


def main(result: str, labels: str) -> None:
    tensors, _ = read_weights(result)
    predicted = tensors["features"].argmax(1)[tensors["point_to_voxel"].long()]
    raw = np.fromfile(labels, np.uint32) & 0xFFFF
    truth = torch.as_tensor(LABELS(raw.astype(np.int64)))
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
    main(*sys.argv[1:])
