"""How sparse tensors hold features."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .tensors import Deferred, Observed, observed, plain
from .uses import OTHER, STORE, Use


def store(features: Any) -> tuple[Any, Use | None]:
    """What a sparse tensor holds of features that it is given, and where to note what becomes of them."""
    kind = type(features)
    if kind is Observed:
        after = features.use.note(STORE)
        if after is not None:
            features.use = after
        return features, after
    if kind is Deferred:
        after = features.use.note(STORE)
        if after is not None and not features.link.is_done:
            features.use = after
            return features, None
        return plain(features), after
    return features, None


def take(features: Any, use: Use | None) -> Tensor:
    """The same for layers, which read them without a trace: an ordinary tensor."""
    if type(features) is Deferred or type(features) is Observed:
        use = features.use
    if use is not None and use.kind == "convolution":
        use.note(OTHER)
    return plain(features)


def read(features: Any, use: Use | None) -> Tensor:
    """What a user of a sparse tensor is given of the features that it holds, which it holds from then on."""
    if type(features) is Observed:
        return features
    if type(features) is Deferred:
        use = features.use
        if use.known is not None and use.known is not OTHER and not features.link.is_done:
            return features
        features = plain(features)
    return observed(features, use) if use is not None and use.known is None else features
