"""Computes links, and the links that they need, in chains that are as long as possible."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Union

import torch
from torch import Tensor

from ... import _C, ops
from ...ops import modes
from ..chain import Code
from .as_called import as_called
from .links import CONVOLVED, JOINED, NORMED, RECTIFIED, SUMMED, Again, Link
from .tensors import plain

_MOST_CODES = 4  # chains that begin with one layer; they differ in what tensors stand for, and may keep weights
_lock = threading.RLock()  # each result is computed once, in any thread

Value = Union[Link, Tensor]


def compute(link: Link) -> None:
    """Computes a link, and the links that it needs."""
    with _lock:
        if link.is_done:
            return
        if link.stage == JOINED:
            _join(link)
            return
        links, is_one_chain = _C.needed_links(link)
        start = 0
        for end in [len(links)] if is_one_chain else _ends(links):
            part = links[start:end]
            start = end
            if not part[-1].is_done:
                _run(part)


def _needs(link: Link) -> list[Value]:
    """The links and tensors that it takes, before it is computed."""
    return [value for value in (link.source, link.second, link.residual) if value is not None]


def _computes_again(link: Link) -> bool:
    """Whether the convolution's result is the only earlier one that a tensor stands for. Hardly any code reads
    it, and without gradients it can be computed again later."""
    return (
        link.early_held == 1 << CONVOLVED
        and link.norm is not None
        and not link.norm[4]
        and not link.requires_grad
    )


def _ends(links: list[Link]) -> list[int]:
    """Where the links are cut into chains: after each link whose result is read from outside of its chain. Returns the
    index after the last link of each chain."""
    index = {link: at for at, link in enumerate(links)}
    last_taker = [-1] * len(links)
    takers = [0] * len(links)
    for at, link in enumerate(links):
        for value in _needs(link):
            made_at = index.get(value) if isinstance(value, Link) else None
            if made_at is not None:
                last_taker[made_at] = at
                takers[made_at] += 1
    last = len(links) - 1
    ends = {last}
    for at, link in enumerate(links):
        held = link.held()
        link.early_held = held & (1 << link.stage) - 1
        if held >> link.stage or link.takers != takers[at]:
            ends.add(at)
        if _is_alone(link):
            ends.update((at, at - 1))
        elif link.early_held:  # it begins a chain, so that what it takes is kept
            ends.update((at - 1, *(index.get(value, -1) for value in _convolved(link))))
        elif at > 0 and (
            links[at - 1].mode != link.mode or links[at - 1].map.home != link.map.home
        ):
            ends.add(at - 1)
    ends.discard(-1)
    while True:
        # A result that another chain takes has to be the last one of its own chain.
        more = {
            at
            for at in range(last)
            if at not in ends and any(at < end < last_taker[at] for end in ends)
        }
        start = 0
        for end in sorted(ends):
            if _given(links[start : end + 1]) is None:
                more.add(_last_in_reach(links, start))
            start = end + 1
        if more <= ends:
            return [end + 1 for end in sorted(ends)]
        ends |= more


def _is_alone(link: Link) -> bool:
    """Whether it cannot be a link of a chain and runs by itself."""
    return link.norm is None or bool(link.early) or (link.early_held != 0 and not _computes_again(link))


def _given(links: list[Link]) -> list[Value] | None:
    """The inputs of a chain of these: that of its first convolution, and another one. None where there are more, which
    no chain takes."""
    made = set(links)
    given: list[Any] = [links[0].source]
    for link in links:
        for value in _needs(link):
            if value is given[0] or (isinstance(value, Link) and value in made):
                continue
            if len(given) == 1:
                given.append(value)
            elif value is not given[1]:
                return None
    return given


def _convolved(link: Link) -> list[Value]:
    """What its convolution takes, before it is computed."""
    return [link.source] if link.second is None else [link.source, link.second]


def _last_in_reach(links: list[Link], start: int) -> int:
    """The last link of the longest chain from `start` that has no more than two inputs."""
    end = start
    while _given(links[start : end + 2]) is not None:
        end += 1
    return end


def _run(links: list[Link]) -> None:
    """Computes a chain and keeps the result of its last link."""
    out = links[-1]
    error: BaseException | None = None
    try:
        if _C.is_as_called(out):
            if not _C.infer_chain(links):
                _compute_all(links)
        else:
            with as_called(out.mode, out):
                _compute_all(links)
    except BaseException as raised:
        error = raised
        raise
    finally:
        _C.finish_links(links, error)


def _compute_all(links: list[Link]) -> None:
    for link in links:
        if link.norm is not None and link.norm[4]:
            link.layout.norm_trains()
    out = links[-1]
    value = None if _is_alone(out) else _chain(links)
    value = out.value = _one_by_one(links) if value is None else value
    out.value_version = modes.version_of(value)
    if links[0].early_held and not links[0].early:
        _keep_source(links[0])


def _join(link: Link) -> None:
    """Brings the parts of a join together, for somebody who reads it."""
    error: BaseException | None = None
    try:
        what = link.changed()
        if what is not None:
            refuse_change(what)
        parts = [_tensor(value) for value in _convolved(link)]
        with as_called(link.mode, link):
            link.value = torch.cat(parts, 1)
        link.value_version = modes.version_of(link.value)
    except BaseException as raised:
        error = raised
        raise
    finally:
        _C.finish_links([link], error)


def _keep_source(link: Link) -> None:
    """Keeps the input of the convolution for as long as a tensor stands for its result."""
    again = Again([_tensor(value) for value in _convolved(link)])
    link.again = weakref.ref(again)
    _C.may_be_asked_again(link)
    for ticket in link.tickets():
        if ticket.stage == CONVOLVED:
            ticket.again = again


def convolve_again(link: Link) -> None:
    """Computes the result of the convolution again, which a tensor stands for and the chain did not keep."""
    with _lock:
        again = None if link.again is None else link.again()
        if again is None or CONVOLVED in link.early:
            return
        if link.changed() == "weight":
            refuse_change("weight")
        if again.has_changed():
            refuse_change("features")
        with as_called(link.mode, link):
            weight, packed = link.layout.operands(link.parameter, link.training)
            link.early[CONVOLVED] = ops.convolution(
                _side_by_side(again.parts), weight, link.map, None, 1, packed, None, link.plans
            )
        link.again = None
        for ticket in link.tickets():
            ticket.again = None  # the input is not needed any more


def _chain(links: list[Link]) -> Tensor | None:
    """None where the layers have to run one by one."""
    made = _C.chain_of(links)
    if made is None:
        return None
    name, rows, plans, first, second, training, learned, running, maps, layouts, is_frozen = made
    codes = links[0].layout.habit.codes
    code = codes.get(name)
    if code is None:
        while len(codes) >= _MOST_CODES:
            del codes[next(iter(codes))]
        code = codes[name] = Code(list(rows), plans)
    start = code.begin(first, second, learned, running, training)
    if start is None:
        return None
    kept: list[Any] = [None] * len(links)
    if is_frozen:
        layouts = (None,) * len(links)
    parameters = list(learned)
    for at, link in enumerate(links):
        if layouts[at] is None:  # a frozen layer keeps its weight turned; of others more than axes may differ
            parameters[3 * at], kept[at] = link.layout.operands(link.parameter, link.training)
    return code.run(start, maps, tuple(parameters), running, kept, layouts, learned)


_CHANGED = {
    "weight": "the weight of a convolution was",
    "norm": "parameters of a batch norm were",
    "features": "features that a convolution or a sum was given were",
}


def refuse_change(what: str) -> None:
    """Raises the error for what `Link.changed` says."""
    raise _C.UserError(
        f"{_CHANGED[what]} changed between its call and the first use of its output: read its features before the "
        "change, or call pumice.compat.defer_layers(False)"
    )


def _one_by_one(links: list[Link]) -> Tensor:
    made: dict[Link, Tensor] = {}
    for link in links:
        what = link.changed()
        if what is not None:
            refuse_change(what)
        weight, packed = link.layout.operands(link.parameter, link.training)
        taken = _side_by_side([_tensor(value, made) for value in _convolved(link)])
        x = ops.convolution(taken, weight, link.map, None, 1, packed, None, link.plans)
        if _is_alone(link):
            made[link] = _stage_by_stage(link, x)
            continue
        mean, variance, scale, shift, training, momentum, eps, batches = link.norm
        residual = None if link.residual is None else _tensor(link.residual, made)
        made[link] = ops.batch_norm(
            x, scale, shift, mean, variance, training, momentum, eps, residual, link.relu, batches, link.map
        )
    return made[links[-1]]


def _stage_by_stage(link: Link, x: Tensor) -> Tensor:
    """The link's other operations on the convolution's result, with the result of each stage."""
    link.early[CONVOLVED] = x
    if link.stage >= NORMED:
        if link.norm[7] is not None:
            link.norm[7].add_(1)
        x = link.early[NORMED] = torch.nn.functional.batch_norm(x, *link.norm[:7])
    if link.residual is not None:
        x = link.early[SUMMED] = x + _tensor(link.residual)
    if link.stage == RECTIFIED:
        x = torch.relu(x)
    return x


def _side_by_side(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _tensor(value: Any, made: Any = {}) -> Tensor:  # noqa: B006  (never written to)
    if not isinstance(value, Link):
        return value
    if value in made:
        return made[value]
    result = plain(value.result())
    if modes.version_of(result) != value.value_version:
        refuse_change("features")
    return result
