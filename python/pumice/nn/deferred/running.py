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
from . import region
from .as_called import as_called
from .links import CONVOLVED, NORMED, RECTIFIED, SUMMED, Again, Link, versions_of
from .tensors import plain

_MOST_CODES = 4  # chains that begin with one layer; they differ in what tensors stand for, and may keep weights
_FEATURES = "features that a convolution or a sum was given were"
_lock = threading.RLock()  # each result is computed once, in any thread

Value = Union[Link, Tensor]


class ComputedLink(Link):
    """A link that computes itself when its result is read."""

    def result(self, stage: int | None = None) -> Tensor:
        """Its result, or that of an earlier stage; computed if it is not there yet."""
        if not self.is_done:
            compute(self)
        if self.error is not None:
            raise self.error
        if stage is None or stage == self.stage:
            value = self.value
        else:
            if stage not in self.early and self.again is not None:
                convolve_again(self)
            value = self.early[stage]
        assert value is not None, "no tensor stands for the result of a link inside of a chain"
        return value


def compute(link: Link) -> None:
    """Computes a link, and the links that it needs."""
    with _lock:
        if link.is_done:
            return
        links: list[Link] = []
        _collect(link, links, set())
        start = 0
        for end in [len(links)] if _is_one_chain(links) else _ends(links):
            part = links[start:end]
            start = end
            if not part[-1].is_done:
                _run(part)


def _collect(link: Link, links: list[Link], known: set[Link]) -> None:
    """Appends to `links` the links that `link` needs, then itself."""
    known.add(link)
    for value in link.needs():
        if isinstance(value, Link) and not value.is_done and value not in known:
            _collect(value, links, known)
    links.append(link)


def _is_one_chain(links: list[Link]) -> bool:
    """Whether the links are one chain, as most are: in one look at each what `_ends` finds in several."""
    first, last = links[0], links[-1]
    mode, map, home = first.mode, first.map, first.map.home
    given = [id(first.source)]
    takers = {id(link): 0 for link in links}
    for link in links:
        if link.norm is None or link.early or link.mode != mode:
            return False
        if link.map is not map:
            map = link.map
            if map.home != home:
                return False
        source = id(link.source)
        if source in takers:
            takers[source] += 1
        elif source != given[0]:
            return False
        residual = id(link.residual)
        if residual in takers:
            takers[residual] += 1
        elif link.residual is not None and residual not in given:
            if len(given) > 1:
                return False
            given.append(residual)
    for link in links:
        held = link.held()
        if (held & (1 << last.stage) - 1 if link is last else held) or len(link.users) != takers[id(link)]:
            return False
        link.early_held = 0
    return True


def _ends(links: list[Link]) -> list[int]:
    """Where the links are cut into chains: after each link whose result is read from outside of its chain. Returns the
    index after the last link of each chain."""
    index = {link: at for at, link in enumerate(links)}
    last_taker = [-1] * len(links)
    takers = [0] * len(links)
    for at, link in enumerate(links):
        for value in link.needs():
            made_at = index.get(value) if isinstance(value, Link) else None
            if made_at is not None:
                last_taker[made_at] = at
                takers[made_at] += 1
    last = len(links) - 1
    ends = {last}
    for at, link in enumerate(links):
        held = link.held()
        link.early_held = held & (1 << link.stage) - 1
        if held >> link.stage or len(link.users) != takers[at]:
            ends.add(at)
        if _is_alone(link):
            ends.update((at, at - 1))
        elif link.early_held:  # it begins a chain, so that its input is kept
            ends.update((at - 1, index.get(link.source, -1)))
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
    return link.norm is None or bool(link.early) or (link.early_held != 0 and not link.computes_again())


def _given(links: list[Link]) -> list[Value] | None:
    """The inputs of a chain of these: that of its first convolution, and one that is added. None where there are
    more, which no chain takes."""
    made = set(links)
    given: list[Any] = [links[0].source]
    for link in links:
        source, residual = link.source, link.residual
        if source is not given[0] and not (isinstance(source, Link) and source in made):
            return None
        if residual is None or residual is given[0] or (isinstance(residual, Link) and residual in made):
            continue
        if len(given) == 1:
            given.append(residual)
        elif residual is not given[1]:
            return None
    return given


def _last_in_reach(links: list[Link], start: int) -> int:
    """The last link of the longest chain from `start` that has no more than two inputs."""
    end = start
    while _given(links[start : end + 2]) is not None:
        end += 1
    return end


def _run(links: list[Link]) -> None:
    """Computes a chain and keeps the result of its last link."""
    out = links[-1]
    try:
        with as_called(out.mode, out):
            value = None if _is_alone(out) else _chain(links)
            value = out.value = _one_by_one(links) if value is None else value
            out.value_version = modes.version_of(value)
            if links[0].early_held and not links[0].early:
                _keep_source(links[0])
    except BaseException as error:
        for link in links:
            link.error = error
        raise
    finally:
        for link in links:
            link.is_done = True
            region.is_computed(link)
            link.source = link.residual = None  # so that they are freed


def _keep_source(link: Link) -> None:
    """Keeps the input of the convolution for as long as a tensor stands for its result."""
    again = Again(_tensor(link.source))
    link.again = weakref.ref(again)
    region.may_be_asked_for(link)
    for reference in link.seen:
        tensor = reference()
        if tensor is not None and tensor.stage == CONVOLVED:
            tensor.again = again


def convolve_again(link: Link) -> None:
    """Computes the result of the convolution again, which a tensor stands for and the chain did not keep."""
    with _lock:
        again = None if link.again is None else link.again()
        if again is None or CONVOLVED in link.early:
            return
        _check_weight(link)
        if again.version != modes.version_of(again.source):
            raise _changed(_FEATURES)
        with as_called(link.mode, link):
            weight, packed = link.operands()
            link.early[CONVOLVED] = ops.convolution(
                again.source, weight, link.map, None, 1, packed, None, link.plans
            )
        link.again = None
        for reference in link.seen:
            tensor = reference()
            if tensor is not None:
                tensor.again = None  # the input is not needed any more


def _chain(links: list[Link]) -> Tensor | None:
    """None where the layers have to run one by one."""
    # Values are numbered as `Code` numbers them; what is added and was not made here is the second input.
    first_given, second_given = links[0].source, None
    number: dict[int, int] = {id(first_given): 0}
    training = links[0].norm[4]
    rows = []
    parameters: list[Tensor] = []
    running: list[Tensor | None] = []
    maps: list[_C.Map] = []
    names: list[int] = []
    plans: list[_C.Plans | None] = []
    for at, link in enumerate(links):
        mean, variance, weight, bias, trains, momentum, eps, batches = link.norm
        if trains is not training:
            return None
        _check_unchanged(link)
        added = -1
        if link.residual is not None:
            added = number.setdefault(id(link.residual), 1)
            if added == 1:
                second_given = link.residual
        rows.append((number[id(link.source)], added, link.relu, eps, momentum))
        number[id(link)] = 2 + at
        parameters += (link.parameter, weight, bias)
        running += (mean, variance, batches)
        maps.append(link.map)
        names.append(id(link.layout.habit))
        plans.append(link.plans)
    codes = links[0].layout.habit.codes
    name = (*rows, *names, *plans)
    code = codes.get(name)
    if code is None:
        while len(codes) >= _MOST_CODES:
            del codes[next(iter(codes))]
        code = codes[name] = Code(rows, tuple(plans))
    first = _tensor(first_given)
    second = None if second_given is None else _tensor(second_given)
    statistics = tuple(running)
    start = code.begin(first, second, tuple(parameters), statistics, training)
    if start is None:
        return None
    kept: list[Any] = []
    layouts: list[_C.WeightLayout | None] = []
    for at, link in enumerate(links):
        layer, packed = link.layout, None
        if link.may_change():
            layout = layer.as_lies(link.parameter)
            if layout is None:
                parameters[3 * at] = layer.turn(link.parameter).contiguous()
        else:
            layout = None
            parameters[3 * at], packed = link.operands()
        layouts.append(layout)
        kept.append(packed)
    return code.run(start, tuple(maps), tuple(parameters), statistics, kept, tuple(layouts))


def _check_unchanged(link: Link) -> None:
    _check_weight(link)
    for value, version in ((link.source, link.source_version), (link.residual, link.residual_version)):
        if type(value) is Tensor and version != modes.version_of(value):
            raise _changed(_FEATURES)
    if link.norm is not None and link.versions != versions_of(link.norm):
        raise _changed("parameters of a batch norm were")


def _check_weight(link: Link) -> None:
    if link.version != modes.version_of(link.parameter):
        raise _changed("the weight of a convolution was")


def _changed(what: str) -> _C.UserError:
    return _C.UserError(
        f"{what} changed between its call and the first use of its output: read its features before the "
        "change, or call pumice.compat.defer_layers(False)"
    )


def _one_by_one(links: list[Link]) -> Tensor:
    made: dict[Link, Tensor] = {}
    for link in links:
        _check_unchanged(link)
        weight, packed = link.operands()
        x = ops.convolution(
            _tensor(link.source, made), weight, link.map, None, 1, packed, None, link.plans
        )
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


def _tensor(value: Any, made: Any = {}) -> Tensor:  # noqa: B006  (never written to)
    if not isinstance(value, Link):
        return value
    if value in made:
        return made[value]
    result = plain(value.result())
    if modes.version_of(result) != value.value_version:
        raise _changed(_FEATURES)
    return result
