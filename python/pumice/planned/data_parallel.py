"""What the processes of a DistributedDataParallel tell each other in a compiled step: gradients, and whether one of them
could not make the step. All enqueue the same collectives in every step, whatever each runs: an eager pass or a graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C
from .state import check_hooks, named

_ALIGNMENT = 16  # elements, so that kernels for many tensors load 16 bytes at once from each
AHEAD = 8  # steps that a process enqueues before it knows what became of the first of them


class Piece(NamedTuple):
    """Gradients of parameters, or buffers, of one type, one behind the other."""

    flat: Tensor
    parameters: list[Tensor]  # or buffers
    views: list[Tensor]


def _stamp(buffer: Tensor) -> tuple[Any, ...]:
    return id(buffer), buffer.shape, buffer.dtype, buffer.device


class Processes:
    """The gradients of `ddp.module` as flat tensors that are summed up over its processes, and a number of each process
    beside them, 1 where it exceeded its room.

    Parameters without a gradient send zeros, and get the sum: an optimiser treats them alike in all processes."""

    def __init__(self, ddp: torch.nn.parallel.DistributedDataParallel) -> None:
        check_ddp(ddp)
        self._ddp = ddp
        self.module: torch.nn.Module = ddp.module
        self._group: Any = ddp.process_group
        self.size = torch.distributed.get_world_size(self._group)
        self.rank = torch.distributed.get_rank(self._group)
        self._first = torch.distributed.get_global_rank(self._group, 0)
        self._pieces: list[Piece] = []
        self._buffers: list[Piece] = []
        self._stamps_of_buffers: list[Any] = []
        self.exceeded: Tensor | None = None  # float32 [processes], not 0 where one exceeded its room in the last step

    def check(self) -> None:
        """Raises UserError inside `no_sync()` and `join()`."""
        ddp: Any = self._ddp
        if not ddp.require_backward_grad_sync:
            raise _C.UserError(
                "a compiled step is called inside no_sync() of DistributedDataParallel, and gradients are not added up over "
                "steps: call it outside"
            )
        if ddp._join_config.enable:
            raise _C.UserError(
                "a compiled step is called inside join() of DistributedDataParallel, which ends when processes have other "
                "numbers of steps: give all the same number, an empty scan where one has no more"
            )

    def check_reduced(self, trained: Iterable[Tensor]) -> None:
        """Raises UserError where `trained` has a parameter that is not kept equal in all processes."""
        ignored = self._ddp.parameters_to_ignore
        own = {id(parameter) for name, parameter in self.module.named_parameters() if name not in ignored}
        for parameter in trained:
            if parameter.requires_grad and id(parameter) not in own:
                raise _C.UserError(
                    f"a parameter of shape {tuple(parameter.shape)} is trained that the DistributedDataParallel does not reduce, "
                    "of the loss, of the optimiser alone, or one that it ignores: make it a parameter of the module inside"
                )

    def take_over(self) -> None:
        """From here on the wrapper's own passes, which reduce no gradients any more, are refused in training: a recording lets
        go of the places where it adds them up."""
        if _refuse not in self._ddp._forward_pre_hooks.values():
            self._ddp.register_forward_pre_hook(_refuse)

    def share_buffers(self) -> None:
        """The buffers of the first process become those of all, as in DistributedDataParallel's own passes. Does not
        wait for a GPU."""
        if not self._ddp.broadcast_buffers:
            return
        ignored = self._ddp.parameters_to_ignore
        buffers = [buffer for name, buffer in self.module.named_buffers() if name not in ignored and buffer.numel() > 0]
        if [_stamp(buffer) for buffer in buffers] != self._stamps_of_buffers:
            self._take_buffers(buffers)
        with torch.no_grad():
            for piece in self._buffers:
                torch._foreach_copy_(piece.views, piece.parameters)
                torch.distributed.broadcast(piece.flat, self._first, group=self._group)
                if self.rank != 0:
                    torch._foreach_copy_(piece.parameters, piece.views)

    def _take_buffers(self, buffers: list[Tensor]) -> None:
        self._stamps_of_buffers = [_stamp(buffer) for buffer in buffers]
        self._buffers = []  # which hold on to these tensors, so that no others get their numbers
        for dtype in sorted({buffer.dtype for buffer in buffers}, key=str):
            some = [buffer for buffer in buffers if buffer.dtype == dtype]
            sizes = [buffer.numel() for buffer in some]
            flat = torch.empty(sum(sizes), dtype=dtype, device=some[0].device)
            self._buffers.append(Piece(flat, some, [part.view(one.shape) for part, one in zip(flat.split(sizes), some)]))

    def fill(self, trouble: Tensor | None) -> None:
        """Takes the gradients from the parameters, divided by the number of processes, and a float, not 0 where this
        process exceeded its room. Does not wait."""
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        held = [parameter for piece in self._pieces for parameter in piece.parameters]
        if self.exceeded is None or {id(one) for one in trained} != {id(one) for one in held} or len(held) != len(trained):
            self._make(trained)
        for piece in self._pieces:
            pairs = [(view, one.grad) for view, one in zip(piece.views, piece.parameters) if one.grad is not None]
            if any(grad.layout != torch.strided for _, grad in pairs):
                raise _C.UserError(
                    "a gradient is sparse, and compiled steps of DistributedDataParallel add up dense ones: make the "
                    "embedding with sparse=False"
                )
            missing = [view for view, one in zip(piece.views, piece.parameters) if one.grad is None]
            if pairs:
                torch._foreach_copy_([view for view, _ in pairs], [grad for _, grad in pairs])
            if missing:
                torch._foreach_zero_(missing)
            piece.flat.mul_(1 / self.size)  # before the sum, as DistributedDataParallel does, so that fp16 holds it
        assert self.exceeded is not None
        self.exceeded.zero_()
        if trouble is not None:
            self.exceeded[self.rank].copy_(trouble)
        for parameter in trained:
            parameter.grad = None

    def reduce(self) -> None:
        """Sums up what all processes have filled in. Does not wait for a GPU."""
        flats = [piece.flat for piece in self._pieces if piece.parameters]
        for flat in flats:
            torch.distributed.all_reduce(flat, group=self._group)
        assert self.exceeded is not None
        torch.distributed.all_reduce(self.exceeded, group=self._group)

    def hand_out(self) -> None:
        """Gives the parameters what was summed up."""
        for piece in self._pieces:
            for parameter, view in zip(piece.parameters, piece.views):
                parameter.grad = view

    def trouble(self) -> Tensor:
        """A float, 1 where some process exceeded its room. Does not wait."""
        assert self.exceeded is not None
        return (self.exceeded.sum() != 0).float()

    def _make(self, trained: Sequence[Tensor]) -> None:
        self._pieces = []
        device = trained[0].device
        self.exceeded = torch.zeros(self.size, device=device)
        for dtype in sorted({parameter.dtype for parameter in trained}, key=str):
            some = [parameter for parameter in trained if parameter.dtype == dtype]
            rooms = [-(-one.numel() // _ALIGNMENT) * _ALIGNMENT for one in some]
            flat = torch.zeros(sum(rooms), dtype=dtype, device=device)
            views, begin = [], 0
            for one, room in zip(some, rooms):
                strides = torch.empty_like(one, device="meta").stride()  # kernels of optimisers want those of the parameter
                views.append(flat.as_strided(one.shape, strides, begin))
                begin += room
            self._pieces.append(Piece(flat, some, views))


class Echoes:
    """A copy for the host of what steps left on the device, which it reads `AHEAD` steps later. All processes read those
    of the same step in the same call, so that they agree on what comes of it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._room: list[Any] = []
        self._sent: deque[tuple[Tensor, Any]] = deque()
        self._turn = 0

    def send(self, exceeded: Tensor) -> None:
        """Does not wait."""
        if self._device.type != "cuda":
            self._sent.append((exceeded.clone(), None))
            return
        if len(self._room) <= AHEAD:
            self._room.append((torch.empty(exceeded.shape, pin_memory=True), torch.cuda.Event()))
        room, event = self._room[self._turn % (AHEAD + 1)]
        self._turn += 1
        room.copy_(exceeded, non_blocking=True)
        event.record(torch.cuda.current_stream(self._device))
        self._sent.append((room, event))

    def due(self) -> list[int]:
        """Which processes exceeded their room `AHEAD` steps ago. Waits for that step."""
        return self._read() if len(self._sent) >= AHEAD else []

    def drain(self) -> list[int]:
        """Which did in any step that was not read. Waits for all."""
        found: set[int] = set()
        while self._sent:
            found.update(self._read())
        return sorted(found)

    def _read(self) -> list[int]:
        numbers, event = self._sent.popleft()
        if event is not None and not event.query():
            event.synchronize()
        return [rank for rank, number in enumerate(numbers.tolist()) if number != 0]


def check_ddp(ddp: Any) -> None:
    """Raises UserError for what a DistributedDataParallel does that compiled steps do not."""
    refused = {
        "a communication hook": bool(ddp._comm_hooks),
        "a hook for buffers": hasattr(ddp, "buffer_hook"),
        "static_graph=True": bool(ddp.static_graph),
        "mixed_precision=…": ddp.mixed_precision is not None,
        "delay_all_reduce_named_params=…": bool(ddp._delay_all_reduce_params),
    }
    for what, there in refused.items():
        if there:
            raise _C.UserError(
                f"the model (DistributedDataParallel) has {what}, and compiled steps reduce gradients themselves: make it "
                "without"
            )
    if _refuse not in ddp._forward_pre_hooks.values():
        check_hooks(ddp)
    for name, module in ddp.module.named_modules():
        if any(kind.__name__ == "SyncBatchNorm" for kind in type(module).__mro__):
            raise _C.UserError(
                f"{named(name, module)} adds up over processes inside a pass, which a graph of one process cannot do: take "
                "BatchNorm in its place, or train by hand"
            )


def _refuse(ddp: torch.nn.Module, _: Any) -> None:
    if ddp.training and torch.is_grad_enabled():
        raise _C.UserError(
            "this DistributedDataParallel is trained by a compiled step, and reduces no gradients itself any more: wrap its "
            "module anew to train by hand"
        )
