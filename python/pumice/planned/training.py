"""What a compiled step trains: the passes of a model there and back, and the update of its parameters as a loop written
by hand does it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .. import _C
from .._checks import kind_of
from ..nn import deferred
from ..ops.counted_functions import run_backward
from .data_parallel import Processes
from .loss import Loss
from .outputs import SitesOfRun


class Passed(NamedTuple):
    """What a pass there and back gives; gradients are with the parameters."""

    output: Any
    loss: Tensor


class Tallies:
    """Numbers on the device that steps keep."""

    def __init__(self, device: torch.device) -> None:
        self.overflows = torch.zeros((), dtype=torch.int64, device=device)
        self.exceeded = torch.zeros((), dtype=torch.int64, device=device)
        self.norm: Tensor | None = None

    def tensors(self) -> list[Tensor]:
        """All."""
        return [self.overflows, self.exceeded, *([] if self.norm is None else [self.norm])]

    def keep_norm(self, norm: Tensor | None) -> None:
        """The last norm of the gradients, in memory that stays."""
        if norm is None:
            return
        if self.norm is None or self.norm.dtype != norm.dtype:
            self.norm = torch.empty_like(norm)
        self.norm.copy_(norm)


class Training:
    """A model, its loss, and how its parameters change."""

    def __init__(self, model: torch.nn.Module, loss: Any, optimizer: Any, scaler: Any, clip_norm: Any) -> None:
        self.model = model
        self.loss = Loss(loss)
        self.optimizer: torch.optim.Optimizer = checked_optimizer(optimizer)
        if scaler is not None and not isinstance(scaler, torch.amp.GradScaler):
            raise _C.UserError(f"scaler is {kind_of(scaler)}: give a torch.amp.GradScaler")
        self._scaler = scaler
        if clip_norm is not None and (
            isinstance(clip_norm, bool) or not isinstance(clip_norm, (int, float)) or not clip_norm > 0
        ):
            raise _C.UserError(f"clip_norm = {clip_norm!r}: give the largest norm of all gradients, above 0")
        self.clip_norm: float | None = clip_norm
        self.tallies: Tallies | None = None
        self.processes: Processes | None = None  # that train together

    @property
    def scaler(self) -> torch.amp.GradScaler | None:
        """None where losses are not scaled."""
        return self._scaler if self._scaler is not None and self._scaler.is_enabled() else None

    @property
    def modules(self) -> list[torch.nn.Module]:
        """Whose parameters and buffers the passes read."""
        return [self.model, self.loss.function] if isinstance(self.loss.function, torch.nn.Module) else [self.model]

    def parameters(self) -> list[Tensor]:
        """Those of the model first, in its order, then others that the optimiser or the loss has."""
        grouped = (parameter for group in self.optimizer.param_groups for parameter in group["params"])
        own = (parameter for module in self.modules for parameter in module.parameters())
        return list({id(parameter): parameter for some in (own, grouped) for parameter in some}.values())

    def buffers(self) -> list[Tensor]:
        """Running statistics among them."""
        return [buffer for module in self.modules for buffer in module.buffers()]

    def drop_gradients(self) -> None:
        """Sets all to None."""
        for parameter in self.parameters():
            parameter.grad = None

    def passed(
        self,
        run: Callable[[], Any],
        labels: Any,
        sites: SitesOfRun | None,
        around: Callable[[], AbstractContextManager[None]],
    ) -> Passed:
        """The pass that `run` begins, its loss and its gradients, which nothing is added to; `sites` as `Loss` takes
        them. `around` is what `run` calls the model in: torch.utils.checkpoint calls parts of it again in the pass back."""
        self.drop_gradients()
        # Autocast keeps converted weights to the end of its outermost region, which may hold several passes with updates.
        torch.clear_autocast_cache()
        with torch.enable_grad():
            output = run()
            loss = self.loss(output, labels, sites)
        scaler = self.scaler
        # Gradients have the types of the pass there; on this thread waits are refused and errors seen.
        with torch.autocast(loss.device.type, enabled=False), torch.autograd.set_multithreading_enabled(False):
            scaled = loss if scaler is None else scaler.scale(loss)
            with around():
                run_backward([deferred.plain(scaled)])
        if self.tallies is None or self.tallies.overflows.device != loss.device:
            self.tallies = Tallies(loss.device)
        return Passed(output, loss.detach())

    def clip(self) -> Tensor | None:
        """Makes the gradients shorter where their norm is above `clip_norm`, and returns what it was. Does not wait."""
        if self.clip_norm is None:
            return None
        return torch.nn.utils.clip_grad_norm_(self.parameters(), self.clip_norm)

    def update(self) -> bool:
        """Changes the parameters by their gradients, which are dropped, unless those of a scaled loss are not finite:
        whether it did. May wait, to know."""
        scaler = self.scaler
        if scaler is not None and self.clip_norm is not None:
            scaler.unscale_(self.optimizer)
        norm = self.clip()
        assert self.tallies is not None
        changed = True
        if scaler is None:
            self.optimizer.step()
        else:
            scaler.step(self.optimizer)
            found = overflow_of(scaler, self.optimizer)
            scaler.update()
            changed = not bool(found)
            self.tallies.overflows.add_(not changed)
        self.tallies.keep_norm(norm)
        self.drop_gradients()
        return changed

    @contextmanager
    def dry(self, device: torch.device) -> Iterator[None]:
        """In it passes leave nothing behind: buffers, tallies and random numbers are what they were afterwards, and
        gradients are dropped. Dropout does nothing, so that passes agree."""
        kept = [*self.buffers(), *([] if self.tallies is None else self.tallies.tensors())]
        copies = [tensor.detach().clone() for tensor in kept]
        dropouts = [
            module for module in self.model.modules() if isinstance(module, torch.nn.modules.dropout._DropoutNd) and module.training
        ]
        for module in dropouts:
            module.training = False
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []), _WithoutDropout():
                yield
        finally:
            for module in dropouts:
                module.training = True
            with torch.no_grad():
                for tensor, copy in zip(kept, copies):
                    tensor.copy_(copy)
            self.drop_gradients()


class _WithoutDropout(TorchFunctionMode):
    """In it PyTorch's functions of dropout, which layers and models call themselves, do nothing."""

    _FUNCTIONS = (
        functional.dropout, functional.dropout1d, functional.dropout2d, functional.dropout3d, functional.alpha_dropout,
        functional.feature_alpha_dropout,
    )  # fmt: skip

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in self._FUNCTIONS:
            return args[0] if args else kwargs["input"]
        return function(*args, **kwargs)


def overflow_of(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer) -> Tensor:
    """A float of the device that is not 0 where gradients of a scaled loss were not finite, between `unscale_` or
    `step` and `update`."""
    found = list(scaler._found_inf_per_device(optimizer).values())
    return found[0] if len(found) == 1 else torch.stack([one.to(found[0].device) for one in found]).sum()


def checked_optimizer(optimizer: Any) -> Any:
    """Raises UserError for what is none, and for what a graph would not do again."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise _C.UserError(f"optimizer is {kind_of(optimizer)}: give one of torch.optim")
    name = type(optimizer).__name__
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is closure.empty:
        raise _C.UserError(f"optimizer {name} calls the loss itself (closure): take one that is given gradients, as AdamW")
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise _C.UserError(f"optimizer {name} has hooks, which a graph does not call: remove them")
    return optimizer


def is_fused(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its kernels take a flag that keeps them from writing."""
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False)) and all(
        group.get("fused") for group in optimizer.param_groups
    )


def check_recordable(optimizer: torch.optim.Optimizer) -> None:
    """Raises UserError for an optimiser whose steps cannot be part of a graph."""
    for at, group in enumerate(optimizer.param_groups):
        if not (group.get("fused") or group.get("capturable")):
            raise _C.UserError(
                f"optimizer {type(optimizer).__name__} keeps numbers of group {at} on the host, which a graph cannot read: "
                "make it with fused=True, or with capturable=True"
            )
