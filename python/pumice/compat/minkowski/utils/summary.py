"""A table of a network's layers."""

from __future__ import annotations

from typing import Any

import torch

_RULE = 64
_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList)


def summary(model: torch.nn.Module, summary_input: Any) -> tuple[int, int]:
    """Runs the model once and prints what every module gives, how many parameters it has, and how large both
    are in float32; (all parameters, those that are trained). A parameter that modules share counts once."""
    text, counts = minkowski_summary_string(model, summary_input)
    print(text)
    return counts


def minkowski_summary_string(model: torch.nn.Module, summary_input: Any) -> tuple[str, tuple[int, int]]:
    """(the table that `summary` prints, what it returns)"""
    rows: list[tuple[str, str, int]] = []
    values = 0

    def look(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        nonlocal values
        several = isinstance(output, (list, tuple))
        shapes = [list(o.shape) for o in (output if several else [output])]
        values += sum(torch.Size(shape).numel() for shape in shapes)
        count = sum(p.numel() for p in module.parameters(recurse=False))
        name = f"{type(module).__name__}-{len(rows) + 1}"
        rows.append((name, str(shapes if several else shapes[0]), count))

    modules = [m for m in model.modules() if not isinstance(m, _CONTAINERS)]
    hooks = [module.register_forward_hook(look) for module in modules]
    try:
        model(summary_input)
    finally:
        for hook in hooks:
            hook.remove()
    total = sum(p.numel() for p in model.parameters())
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    taken = summary_input.F.numel() + summary_input.C.numel()
    sizes = {
        "Input size": taken, "Forward/backward pass size": 2 * values, "Params size": total,
        "Estimated Total Size": taken + 2 * values + total,
    }  # fmt: skip
    lines = ["-" * _RULE, f"{'Layer (type)':>20}  {'Output Shape':>25} {'Param #':>15}", "=" * _RULE]
    lines += [f"{name:>20}  {shape:>25} {count:>15,}" for name, shape, count in rows]
    lines += ["=" * _RULE, f"Total params: {total:,}", f"Trainable params: {trained:,}"]
    lines += [f"Non-trainable params: {total - trained:,}", "-" * _RULE]
    lines += [f"{name} (MB): {4 * numbers / 2**20:.2f}" for name, numbers in sizes.items()]
    return "\n".join([*lines, "-" * _RULE]) + "\n", (total, trained)
