"""Says how sparse tensors of other libraries' interfaces store, hand out and take the features that they hold."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .tensors import Deferred, Observed, leaves_gradients, observed, plain
from .uses import OTHER, STORE, Use


def store(features: Any) -> tuple[Any, Use | None]:
    """(the features that a sparse tensor holds when it is given these, the `Use` that records what is done to them)."""
    kind = type(features)
    if kind is Deferred:
        after = features.use.note(_kept(features))
        if after is not None and not features.link.is_done:
            features.ticket.use = after
            return features, None
        return plain(features), after
    if kind is Observed:
        after = features.use.note(_kept(features))
        if after is not None:
            features.use = after
        return features, after
    return features, None


def _kept(features: Any) -> str:
    return OTHER if leaves_gradients(features) else STORE


def take(features: Any, use: Use | None) -> Tensor:
    """The features as an ordinary tensor, for a layer; the reading is not recorded as a use by the user."""
    if type(features) is Deferred or type(features) is Observed:
        use = features.use
    if use is not None and use.kind == "convolution":
        use.note(OTHER)
    return plain(features)


def read(features: Any, use: Use | None) -> Tensor:
    """The features that a user of a sparse tensor is given; it holds the returned tensor from then on."""
    if type(features) is Deferred:
        use = features.use
        if use.known is not None and use.known is not OTHER and not features.link.is_done:
            return features
        features = plain(features)
    elif type(features) is Observed:
        return features
    return observed(features, use) if use is not None and use.known is None else features
