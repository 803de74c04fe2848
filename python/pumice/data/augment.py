"""Defines augmentations: callables that take a scan and a random generator and return a changed scan.

They change positions, never the arrays they are given, and are put together with `Compose`.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import _C
from .._checks import ascending, at_least_one, kind_of, number_from, takes, whole_number
from ..points import PointCloud, check_columns

Augmentation = Callable[[PointCloud, np.random.Generator], PointCloud]


class Scans(Protocol):
    """Scans by number: a dataset of this package, or a list."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> PointCloud: ...


def check_augmentation(name: str, step: Any) -> None:
    """Raises UserError where `step` cannot be called with a scan."""
    if isinstance(step, type):
        raise _C.UserError(f"{name} is the class {step.__name__}: make one of it, {step.__name__}()")
    if isinstance(step, (list, tuple)):
        raise _C.UserError(f"{name} is {kind_of(step)}: give Compose(*{name})")
    if not callable(step):
        raise _C.UserError(
            f"{name} is {kind_of(step)}: give an augmentation, as Rotate() or a function of a "
            "scan and a generator"
        )
    if not takes(step, 2):
        raise _C.UserError(
            f"{name} cannot be called with two arguments: give a function of a scan and a numpy.random.Generator, as "
            "lambda scan, random: scan"
        )


def check_scans(scans: Any) -> None:
    """Raises UserError where `scans` is no sequence of scans, or an empty one."""
    if isinstance(scans, PointCloud):
        raise _C.UserError("scans is one PointCloud: give a list of them, as [scan]")
    if isinstance(scans, (str, os.PathLike)):
        raise _C.UserError(
            f"scans is a path, {os.fspath(scans)}: give a dataset of it, as pumice.data.SemanticKitti(path), "
            "or a list of scans"
        )
    if not (hasattr(scans, "__len__") and hasattr(scans, "__getitem__")):
        raise _C.UserError(
            f"scans is {kind_of(scans)}, which has no length or no items by number: give a dataset "
            "of pumice.data, or a list of scans"
        )
    at_least_one("scans", scans, "scan")


def check_scan(name: str, cloud: Any) -> PointCloud:
    """`cloud`. Raises UserError where it is no scan of NumPy arrays that fit each other."""
    if not isinstance(cloud, PointCloud):
        raise _C.UserError(
            f"{name} is {kind_of(cloud)}: give a PointCloud, as pumice.read_points(path) does"
        )
    check_columns(name, cloud)
    return cloud


class _Step:
    """What all augmentations of this module do: look at what they are called with."""

    def __call__(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        if not isinstance(random, np.random.Generator):
            raise _C.UserError(
                f"random is {kind_of(random)}: give a generator, as np.random.default_rng(0) is"
            )
        return self._changed(check_scan("cloud", cloud), random)

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        raise NotImplementedError


class Compose(_Step):
    """One augmentation after another. An augmentation is a callable of a scan and a generator.

    Args:
        steps: augmentations, in their order.
    Raises:
        UserError: for what cannot be called with a scan.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Compose(data.Rotate(), data.Flip())(scan, random)) == len(scan)
        True
    """

    def __init__(self, *steps: Augmentation) -> None:
        for number, step in enumerate(steps):
            check_augmentation(f"steps[{number}]", step)
        self.steps = steps

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        for step in self.steps:
            cloud = step(cloud, random)
        return cloud


class Sometimes(_Step):
    """A step with a probability.

    Args:
        probability: from 0 to 1.
        step: an augmentation.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Sometimes(0.5, data.Flip())(scan, random)) == len(scan)
        True
    """

    def __init__(self, probability: float, step: Augmentation) -> None:
        self.probability = number_from("probability", probability, 0, 1)
        check_augmentation("step", step)
        self.step = step

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        return self.step(cloud, random) if random.random() < self.probability else cloud


class Rotate(_Step):
    """About z, by an angle between the two given.

    Args:
        low: radians.
        high: radians, at least `low`.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Rotate(-0.1, 0.1)(scan, random)) == len(scan)
        True
    """

    def __init__(self, low: float = -math.pi, high: float = math.pi) -> None:
        self.range = ascending("low, high", low, high)

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        angle = random.uniform(*self.range)
        cos, sin = math.cos(angle), math.sin(angle)
        turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]], np.float32)
        return _moved(cloud, cloud.positions @ turn)


class Flip(_Step):
    """Each of the given axes with probability one half.

    Args:
        axes: numbers from 0 to 2.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Flip([0])(scan, random)) == len(scan)
        True
    """

    def __init__(self, axes: Sequence[int] = (0, 1)) -> None:
        if not isinstance(axes, Iterable) or isinstance(axes, str):
            raise _C.UserError(
                f"axes = {axes!r}: give the axes, as in Flip([0, 1]), each of which is flipped with probability one half"
            )
        self.axes = tuple(whole_number("axes", axis, 0, 2) for axis in axes)

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        signs = np.ones(3, np.float32)
        for axis in self.axes:
            signs[axis] = -1 if random.random() < 0.5 else 1
        return _moved(cloud, cloud.positions * signs)


class Scale(_Step):
    """All axes by one factor.

    Args:
        low: the least factor, at least 0.
        high: the largest, at least `low`.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Scale(0.9, 1.1)(scan, random)) == len(scan)
        True
    """

    def __init__(self, low: float = 0.95, high: float = 1.05) -> None:
        self.range = ascending("low, high", low, high, least=0)

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        return _moved(cloud, cloud.positions * np.float32(random.uniform(*self.range)))


class Shift(_Step):
    """The whole scan, by a normal distance.

    Args:
        deviation: of it, metres along x, y and z.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Shift()(scan, random)) == len(scan)
        True
    """

    def __init__(self, deviation: Sequence[float] = (0.2, 0.2, 0.05)) -> None:
        self.deviation = np.asarray(deviation, np.float32)
        if self.deviation.shape != (3,) or not (self.deviation >= 0).all():
            raise _C.UserError(f"deviation = {deviation!r}: give 0 or more for each of x, y and z")

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        shift = random.standard_normal(3, dtype=np.float32) * self.deviation
        return _moved(cloud, cloud.positions + shift)


class Jitter(_Step):
    """Every point by itself, by a normal distance, at most three deviations an axis.

    Args:
        deviation: of it, metres.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Jitter(0.02)(scan, random)) == len(scan)
        True
    """

    def __init__(self, deviation: float = 0.01) -> None:
        self.deviation = number_from("deviation", deviation, 0, float("inf"))

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        noise = random.standard_normal(cloud.positions.shape, dtype=np.float32)
        return _moved(cloud, cloud.positions + self.deviation * np.clip(noise, -3, 3))


class Drop(_Step):
    """Leaves out points, each with a probability that is drawn up to `most`.

    Args:
        most: from 0 to 1.
    Raises:
        UserError: for numbers out of range.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> len(data.Drop(0.5)(scan, random)) < len(scan)
        True
    """

    def __init__(self, most: float = 0.1) -> None:
        self.most = number_from("most", most, 0, 1)

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        kept = random.random(len(cloud), dtype=np.float32) >= random.uniform(0, self.most)
        return select(cloud, kept)


class Mix(_Step):
    """Replaces a sector around the sensor by that of another scan (as PolarMix).

    The result has the columns of the scan that is changed; what only the drawn one has is left out.

    Args:
        scans: a dataset, or a list of scans, to draw from.
        narrowest: of the sector, radians.
        widest: of the sector, radians.
    Raises:
        UserError: for numbers out of range; where it is called, for a drawn scan that lacks a column of the one that
            is changed.
    Example:
        >>> scan, random = pumice.simulate(seed=1, beams=32), np.random.default_rng(0)
        >>> mixed = data.Mix([pumice.simulate(seed=2, beams=32)])(scan, random)
        >>> mixed.labels.shape == (len(mixed),)
        True
    """

    def __init__(self, scans: Scans, narrowest: float = 0.5, widest: float = math.pi) -> None:
        check_scans(scans)
        self.scans = scans
        self.widths = ascending("narrowest, widest", narrowest, widest, least=0)

    def _changed(self, cloud: PointCloud, random: np.random.Generator) -> PointCloud:
        index = int(random.integers(len(self.scans)))
        other = check_scan(f"scans[{index}]", self.scans[index])
        for name in _columns(cloud):
            if getattr(other, name) is None:
                raise _C.UserError(
                    f"scans[{index}] of Mix has no {name}, and the scan that is changed has: give scans with {name}, "
                    f"or change one without, dataclasses.replace(scan, {name}=None)"
                )
        begin, width = random.uniform(0, 2 * math.pi), random.uniform(*self.widths)
        return join(
            select(cloud, ~_in_sector(cloud, begin, width)),
            select(other, _in_sector(other, begin, width)),
        )


def select(cloud: PointCloud, rows: np.ndarray) -> PointCloud:
    """Some points: a mask [P], or numbers of rows."""
    return PointCloud(**{name: getattr(cloud, name)[rows] for name in _columns(cloud)})


def join(first: PointCloud, second: PointCloud) -> PointCloud:
    """All points of both, in the columns of the first, none of which the second may lack."""
    return PointCloud(
        **{name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in _columns(first)}
    )


def _columns(cloud: PointCloud) -> list[str]:
    """Names of the columns that it has."""
    return [field.name for field in dataclasses.fields(cloud) if getattr(cloud, field.name) is not None]


def _moved(cloud: PointCloud, positions: np.ndarray) -> PointCloud:
    return dataclasses.replace(cloud, positions=positions)


def _in_sector(cloud: PointCloud, begin: float, width: float) -> np.ndarray:
    angle = np.arctan2(cloud.positions[:, 1], cloud.positions[:, 0])
    return np.mod(angle - begin, 2 * math.pi) < width
