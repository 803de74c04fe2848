"""Cuts graphs into parts of regular shape: ELL, hyb, BSR and their like, and formats of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _C
from ._checks import kind_of, whole_number
from ._tensors import check_tensor, numbered_device
from .graph import Graph, check_graph

__all__ = ["Decomposition", "Part", "Shape", "block_mask", "blocks_of", "decompose"]

_MOST = 2**31 - 1
# The parameters of each format, and what stands for those that are not given.
_PARAMETERS: dict[str, dict[str, Any]] = {
    "identity": {},
    "dcsr": {},
    "padded_csr": {"multiple": 8},
    "ell": {"width": 0},
    "hyb": {"column_parts": 1, "widths": ()},
    "bsr": {"block": (16, 16)},
    "dbsr": {"block": (16, 16)},
    "sr_bcrs": {"rows": 8, "group": 16},
    "csf": {},
}
_TYPED = ("hyb", "csf")


@dataclass(frozen=True)
class Shape:
    """How the entries of a part are laid out: a format as numbers.

    Args:
        block: rows and columns of a slot.
        width: slots of every line; what is longer takes several lines. 0: each line has as many as it needs.
        multiple: without a width, slots of a line are padded to a multiple of it.
        all_rows: whether rows without entries have a line too.
    Example:
        >>> pumice.formats.Shape(width=4).block
        (1, 1)
    """

    block: tuple[int, int] = (1, 1)
    width: int = 0
    multiple: int = 1
    all_rows: bool = False

    def _numbers(self) -> list[int]:
        high, wide = _block("block", self.block)
        width, multiple = (whole_number(n, getattr(self, n), 0, _MOST) for n in ("width", "multiple"))
        return [high, wide, width, multiple, int(self.all_rows)]


@dataclass(frozen=True, eq=False)
class Part:
    """Lines of slots, each a block of positions; -1 is padding among columns and a hole among entries.

    Args:
        shape: how they are laid out.
        row: int32 [lines], the row of blocks that each line is of; ascends.
        column: int32 [slots], the column of blocks of each slot.
        entry: int64 [slots, *block], the number of the entry in each position; None: its place.
        slot_begin: int64 [lines + 1], where the slots of each line begin, without a width.
        type_begin: int64 [types + 1], where the lines of each type begin, or None.
    Example:
        >>> part = pumice.formats.decompose(pumice.Graph(torch.tensor([[2, 0], [1, 1]])), "ell").parts[0]
        >>> part.row, part.column, part.entry.flatten()
        (tensor([1], dtype=torch.int32), tensor([2, 0], dtype=torch.int32), tensor([0, 1]))
    """

    shape: Shape
    row: Tensor
    column: Tensor
    entry: Tensor | None = None
    slot_begin: Tensor | None = None
    type_begin: Tensor | None = None

    def _lists(self) -> tuple[Tensor | None, ...]:
        return (
            _list("row", self.row, torch.int32),
            _list("slot_begin", self.slot_begin, torch.int64),
            _list("column", self.column, torch.int32),
            _list("entry", self.entry, torch.int64),
            _list("type_begin", self.type_begin, torch.int64),
        )


class Decomposition:
    """A graph cut into parts, which `decompose` makes; `ops.spmm` and `ops.sddmm` take it in place of the graph. On a
    GPU they take parts of single entries, in one launch, and one more where rows are in several lines; parts of blocks
    are converted and checked there. Entries have the numbers that they have in the graph, so values and gradients are
    the same tensors for both, and gradients go over the graph.

    Raises:
        UserError: where it is called itself.
    Waits:
        Never.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]))
        >>> cut = pumice.formats.decompose(graph, "hyb", widths=[1, 2])
        >>> [part.row.tolist() for part in cut.parts]
        [[0, 1], [2]]
        >>> ops.spmm(cut, torch.tensor([[1.0], [10.0], [100.0]]))
        tensor([[100.],
                [  1.],
                [ 11.]])
    """

    __slots__ = ("_graph", "_parts", "columns", "entries", "rows")

    rows: int
    columns: int
    entries: int
    _graph: Graph | None
    _parts: _C.Decomposed

    def __init__(self) -> None:
        raise _C.UserError("a Decomposition is made of a graph: call pumice.formats.decompose(graph, ...)")

    @classmethod
    def _of(cls, parts: _C.Decomposed, graph: Graph | None = None) -> Decomposition:
        self = cls.__new__(cls)
        self._parts, self._graph = parts, graph
        self.rows, self.columns, self.entries = parts.rows, parts.columns, parts.entries
        return self

    @property
    def graph(self) -> Graph:
        """The graph that it was cut from; of blocks that another library made, a graph of all of their elements."""
        if self._graph is None:
            self._graph = Graph._of(self._parts.graph())
        return self._graph

    @property
    def parts(self) -> list[Part]:
        """Its parts, whose tensors are its memory: read them only."""
        made = []
        for high, wide, width, multiple, all_rows, row, begin, column, entry, types in self._parts.parts():
            shape = Shape((high, wide), width, multiple, all_rows)
            entry = None if entry is None else entry.view(-1, high, wide)
            made.append(Part(shape, row, column, entry, begin, types))
        return made

    @property
    def device(self) -> torch.device:
        """Where its parts lie, and features and values have to."""
        return torch.device(self._parts.device)

    def to(self, device: torch.device | str) -> Decomposition:
        """The same parts of the same graph on another device; itself where it is there already. Waits for a GPU, where
        it goes to one or comes from one."""
        device = numbered_device(device)
        if device == self.device:
            return self
        return Decomposition._of(self._parts.copy_to(str(device)), None if self._graph is None else self._graph.to(device))

    def validate(self) -> None:
        """Raises UserError, naming part, place and value, unless every entry is in just one position, in range, padding
        holds none and comes last in a line, and lines ascend by row. Of parts on a GPU a copy is looked at, which
        waits."""
        self._parts.validate()

    def to_graph(self) -> Graph:
        """A graph made of the parts alone: its entries have the same numbers and the same order within a row. Waits for
        a GPU where the parts are on one."""
        return Graph._of(self._parts.graph())

    def to_torch_bsr(self, values: Tensor | None = None) -> Tensor:
        """Values [entries], by default ones, as a sparse BSR tensor of PyTorch; of one part without padding, as
        "bsr" and "dbsr" make, in which no entry repeats. Where every position is an entry values are shared."""
        begin, column, blocks = self._as_bsr(values)
        return torch.sparse_bsr_tensor(begin, column, blocks, self._padded_size(), check_invariants=True)

    def to_scipy_bsr(self, values: Tensor | None = None) -> Any:
        """The same as a BSR array of SciPy."""
        from scipy.sparse import bsr_array

        begin, column, blocks = (of.cpu().numpy() for of in self._as_bsr(values))
        return bsr_array((blocks, column, begin), shape=self._padded_size())

    def _padded_size(self) -> tuple[int, int]:
        """Whole blocks, as other libraries have them."""
        high, wide = self.parts[0].shape.block
        return -(-self.rows // high) * high, -(-self.columns // wide) * wide

    def _as_bsr(self, values: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """(crow_indices, col_indices, values of blocks)"""
        parts = self.parts
        if len(parts) != 1 or parts[0].slot_begin is None or parts[0].type_begin is not None or parts[0].shape.multiple > 1:
            raise _C.UserError(
                f"{len(parts)} parts, of which BSR is none: give one of blocks, without width, multiple or types, as "
                'decompose(graph, "bsr") makes'
            )
        part = parts[0]
        high, wide = part.shape.block
        counts = part.column.new_zeros(-(-self.rows // high), dtype=torch.int64)
        counts[part.row.long()] = part.slot_begin.diff()
        begin = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        rows = torch.arange(len(counts), device=self.device)
        if (torch.repeat_interleave(rows, counts).diff() == 0).logical_and(
            part.column.diff() == 0
        ).any():
            raise _C.UserError("an entry repeats, which has two blocks of one place here: BSR has one for each place")
        if values is None:
            values = torch.ones(self.entries, device=self.device)
        check_tensor("values", values)
        if values.shape != (self.entries,):
            raise _C.UserError(f"values have shape {tuple(values.shape)}: give [{self.entries}], one for each entry")
        if part.entry is None:
            return begin, part.column.long(), values.view(-1, high, wide)
        blocks = torch.where(part.entry < 0, values.new_zeros(()), values[part.entry.clamp_min(0)] if self.entries else 0)
        return begin, part.column.long(), blocks.to(values.dtype)

    def __copy__(self) -> Decomposition:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Decomposition:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _take, (self.graph, self.parts)  # which are checked again

    def __repr__(self) -> str:
        return f"Decomposition({self.rows} rows, {self.columns} columns, {self.entries} entries in {len(self.parts)} parts)"


def decompose(
    graph: Graph,
    format: str | Callable[[Tensor, Tensor, Tensor], Tensor] | Sequence[Part],
    *,
    shapes: Sequence[Shape] | None = None,
    types: Tensor | None = None,
    num_types: int | None = None,
    **parameters: Any,
) -> Decomposition:
    """Cuts a graph into parts; every entry is in just one position of one of them.

    Args:
        graph: on the CPU or on a GPU, where it is cut then.
        format: the name of a format, with its `parameters`: "identity"; "dcsr", only rows that have entries;
            "padded_csr" (multiple=8); "ell" (width=0: that of the longest row); "hyb" (column_parts=1, widths=():
            powers of two up to the mean row); "bsr" and "dbsr" (block=(16, 16)); "sr_bcrs" (rows=8, group=16); "csf".
            Or a function of the rows, columns and numbers of all entries, int64 [entries] each in the order of the
            rows, that returns the part of each, where they are. Or parts, which are checked, on the CPU.
        shapes: with a function, that of each part.
        types: int32 or int64 [entries], of each edge, in the order of `edge_index`: with "hyb", "csf" and a function.
            Lines are then of one type each.
        num_types: default: the largest of `types`, and one.
        parameters: of the format.
    Returns:
        A `Decomposition`. To keep it with the graph: graph.derived("hyb", lambda g: formats.decompose(g, "hyb")).
    Raises:
        UserError: for another format, a number out of range, parts that do not hold each entry once, and a format that
            would be nearly all padding.
    Waits:
        For a GPU, where the graph is on one, for the sizes of parts.
    Example:
        >>> graph = pumice.Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]]))
        >>> near = lambda row, column, number: ((row - column).abs() > 1).long()
        >>> pumice.formats.decompose(graph, near, shapes=[pumice.formats.Shape(), pumice.formats.Shape(width=2)])
        Decomposition(3 rows, 3 columns, 4 entries in 2 parts)
    """
    check_graph(graph)
    if torch.compiler.is_compiling():
        raise _C.UserError("a graph is not cut inside a compiled function: call pumice.formats.decompose outside of it")
    types, count = _types(graph, types, num_types)
    if isinstance(format, str):
        numbers = _parameters(format, parameters)
        if shapes is not None:
            raise _C.UserError(f"shapes are given, and a format by its name, {format!r}: give a function with shapes")
        if types is not None and format not in _TYPED:
            raise _C.UserError(f"types are given, which {format!r} has no place for: choose {', '.join(_TYPED)}")
        if types is None and format == "csf":
            raise _C.UserError("types = None: 'csf' needs the type of each edge")
        return Decomposition._of(_C.cut(graph.graph, format, numbers, types, count), graph)
    if parameters:
        raise _C.UserError(f"{next(iter(parameters))} is no argument of decompose with {kind_of(format)}: leave it out")
    if callable(format):
        return _decompose_by(graph, format, shapes, types, count)
    return _take(graph, format)


def _decompose_by(
    graph: Graph,
    part_of: Callable[[Tensor, Tensor, Tensor], Tensor],
    shapes: Sequence[Shape] | None,
    types: Tensor | None,
    count: int,
) -> Decomposition:
    if not isinstance(shapes, (list, tuple)) or not all(isinstance(shape, Shape) for shape in shapes):
        raise _C.UserError(f"shapes are {kind_of(shapes)}: give a list with a pumice.formats.Shape for each part")
    row_begin, column, number = graph.graph.lists()
    row = torch.repeat_interleave(
        torch.arange(graph.rows, device=graph.device), row_begin.diff(), output_size=graph.entries
    )
    part = part_of(row, column.long(), torch.arange(graph.entries, device=graph.device) if number is None else number)
    check_tensor("what the function returned", part)
    if part.shape != (graph.entries,) or part.dtype not in (torch.int32, torch.int64):
        raise _C.UserError(
            f"the function returned {part.dtype} {tuple(part.shape)}: give int64 [{graph.entries}], the part of each entry"
        )
    if part.device != graph.device:
        raise _C.UserError(
            f"the function returned a tensor on {part.device}, and the graph is on {graph.device}: give one there"
        )
    numbers = [number for shape in shapes for number in shape._numbers()]
    return Decomposition._of(_C.cut_by(graph.graph, numbers, part.long().contiguous(), types, count), graph)


def _take(graph: Graph, parts: Any) -> Decomposition:
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Part) for part in parts):
        raise _C.UserError(f"format is {kind_of(parts)}: give a name, a function, or a list of pumice.formats.Part")
    numbers = [number for part in parts for number in part.shape._numbers()]
    lists = [part._lists() for part in parts]
    if graph.device.type == "cpu":
        return Decomposition._of(_C.take_parts(graph.graph, numbers, lists), graph)
    here = [tuple(None if of is None else of.cpu() for of in part) for part in lists]
    taken = _C.take_parts(graph.graph.copy_to("cpu"), numbers, here)  # which checks them
    return Decomposition._of(taken.copy_to(str(graph.device)), graph)


def blocks_of(matrix: Any) -> tuple[Decomposition, Tensor]:
    """Takes the blocks of a BSR matrix as they are: every element is an entry, numbered as it lies.

    Args:
        matrix: a sparse BSR tensor of PyTorch, or a BSR matrix or array of SciPy.
    Returns:
        (decomposition, values [entries]), where the matrix is; the values are shared with it.
    Raises:
        UserError: for anything else.
    Waits:
        For a GPU, where the matrix is on one: which blocks it has is read on the CPU.
    Example:
        >>> dense = torch.tensor([[1.0, 2.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0]])
        >>> cut, values = pumice.formats.blocks_of(dense.to_sparse_bsr((2, 2)))
        >>> ops.spmm(cut, torch.ones(4, 1), values).T
        tensor([[3., 3.]])
    """
    if isinstance(matrix, Tensor) and matrix.layout is torch.sparse_bsr and matrix.dim() == 2 and matrix.dense_dim() == 0:
        begin, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    elif getattr(matrix, "format", None) == "bsr":
        begin, column, values = (
            torch.from_numpy(np.ascontiguousarray(of)) for of in (matrix.indptr, matrix.indices, matrix.data)
        )
    else:
        raise _C.UserError(
            f"matrix is {kind_of(matrix)}, which is no BSR of two axes: give matrix.to_sparse_bsr((16, 16)), or a BSR "
            "array of SciPy; others become graphs by pumice.Graph.of(matrix)"
        )
    parts = Decomposition._of(_C.take_blocks(*matrix.shape, *values.shape[1:], begin.cpu(), column.cpu()))
    return parts.to(values.device), values.reshape(-1)


def block_mask(mask: Tensor, block: tuple[int, int] | int) -> Decomposition:
    """Whole blocks where a mask is set, as attention over blocks has them: every position is an entry, whose number is
    its place in [blocks, *block].

    Args:
        mask: bool [block rows, block columns].
        block: rows and columns of a block, or one number for both.
    Returns:
        A `Decomposition` without a graph, where the mask is; its `graph` is made when it is asked for.
    Raises:
        UserError: for other shapes and types.
    Waits:
        For a GPU, where the mask is on one: it is read on the CPU.
    Example:
        >>> pumice.formats.block_mask(torch.eye(3, dtype=torch.bool), 4)
        Decomposition(12 rows, 12 columns, 48 entries in 1 parts)
    """
    if not isinstance(mask, Tensor):
        raise _C.UserError(f"mask is {kind_of(mask)}: give a tensor of bool [block rows, block columns]")
    check_tensor("mask", mask)
    if mask.dtype != torch.bool or mask.dim() != 2:
        raise _C.UserError(f"mask is {mask.dtype} {tuple(mask.shape)}: give bool [block rows, block columns]")
    parts = Decomposition._of(_C.take_mask(mask.cpu().to(torch.uint8), *_block("block", block)))
    return parts.to(mask.device)


def _block(name: str, block: Any) -> tuple[int, int]:
    if isinstance(block, (tuple, list)) and len(block) == 2:
        high, wide = block
    else:
        high = wide = block
    return whole_number(name, high, 1, _MOST), whole_number(name, wide, 1, _MOST)


def _list(name: str, values: Any, dtype: torch.dtype) -> Tensor | None:
    if values is None:
        return None
    if not isinstance(values, Tensor) or values.dtype not in (torch.int32, torch.int64):
        raise _C.UserError(f"{name} is {kind_of(values)}: give a tensor of int32 or int64")
    check_tensor(name, values)
    if dtype == torch.int32 and values.dtype == torch.int64 and values.numel() and int(values.abs().max()) > _MOST:
        raise _C.UserError(f"{name} has {int(values.abs().max())}: give numbers below 2^31")
    return values.to(dtype).reshape(-1).contiguous()


def _types(graph: Graph, types: Any, num_types: Any) -> tuple[Tensor | None, int]:
    if types is None:
        if num_types is not None:
            raise _C.UserError(f"num_types = {num_types!r} without types: give types, or neither")
        return None, 0
    checked = _list("types", types, torch.int64)
    if checked.device != graph.device:
        raise _C.UserError(f"types is on {checked.device} and the graph on {graph.device}: give types.to('{graph.device}')")
    largest = int(checked.max()) + 1 if checked.numel() else 0
    return checked, max(largest, 0) if num_types is None else whole_number("num_types", num_types, 0, _MOST)


def _parameters(format: str, given: dict[str, Any]) -> list[int]:
    known = _PARAMETERS.get(format)
    if known is None:
        raise _C.UserError(f"format = {format!r}: choose {', '.join(_PARAMETERS)}, or give a function or parts")
    for name in given:
        if name not in known:
            remedy = f"it has {', '.join(known)}" if known else "it has none"
            raise _C.UserError(f"{name} is no parameter of {format!r}: {remedy}")
    numbers: list[int] = []
    for name, value in {**known, **given}.items():
        if name == "block":
            numbers += _block(name, value)
        elif name == "widths":
            if not isinstance(value, (tuple, list)):
                raise _C.UserError(f"widths is {kind_of(value)}: give a list, as [1, 2, 4]")
            numbers += [whole_number(name, width, 1, _MOST) for width in value]
        else:
            numbers.append(whole_number(name, value, 0 if name == "width" else 1, _MOST))
    return numbers


# torch.load reads what torch.save wrote of them without `weights_only=False`.
torch.serialization.add_safe_globals([_take, Decomposition, Part, Shape])
