"""Reports what an installation can do: versions, devices, compilers and kernels."""

from __future__ import annotations

import importlib.util
import json
import platform
import subprocess
from typing import Any

from . import _C
from ._program import PROGRAM, program_environment
from ._version import __version__


def _program_facts() -> dict[str, Any]:
    """What the C++ program finds; nothing where the package was installed without it."""
    if not PROGRAM.exists():
        return {}
    ran = subprocess.run(
        [PROGRAM, "doctor", "--json"], capture_output=True, text=True, check=False, env=program_environment()
    )
    return json.loads(ran.stdout) if ran.returncode == 0 else {"problem": ran.stderr.strip()}


def _processor_lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"CPU       {_C.threads()} threads"]
    if "problem" in facts:
        return [*lines, f"          {facts['problem']}"]
    if "instructions" in facts:
        lines[0] += f", kernels run with {facts['instructions']}"
        lines.append(f"          bf16: {facts['bf16']}")
    return lines


def _torch_lines() -> tuple[list[str], bool]:
    if importlib.util.find_spec("torch") is None:
        return ["PyTorch   not installed: voxels and points work, layers need `pip install torch`"], True
    import torch

    lines = []
    built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    lines.append(f"PyTorch   {torch.__version__}, built {built}")
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if release < (2, 4):
        lines.append("          too old: Pumice needs 2.4 or later")
        return lines, False
    if torch.version.cuda and not torch.cuda.is_available():
        lines.append("          sees no GPU, so layers run on the CPU")
    from . import _framework  # noqa: F401  (loads PyTorch's compiler before one is looked for)

    return lines, True


def _cuda_lines(facts: dict[str, Any]) -> tuple[list[str], bool]:
    cuda = _C.cuda_support()
    if not cuda["available"]:
        lines = [f"GPU       none: {cuda['reason']}", "          the CPU back end does all the work"]
        if "kernel_compiler" in facts:
            lines.append(f"compiler  {facts['kernel_compiler']}")
        return lines, True
    lines = [f"GPU       driver {cuda['version']}"]
    for index, device in enumerate(cuda["devices"]):
        major, minor = device["capability"]
        lines.append(
            f"          {index}: {device['name']}, compute capability {major}.{minor}, "
            f"{device['memory_bytes'] / 2**30:.0f} GiB"
        )
    compiler = _C.kernel_compiler()
    bundles = [bundle for bundle in _C.kernel_bundles() if not bundle["problem"]]
    if compiler["available"]:
        lines.append(f"compiler  NVRTC {compiler['version']}, {compiler['path']}")
    else:
        lines.append(f"compiler  {compiler['reason']}")
    if "cublas" in facts:
        lines.append(f"cuBLAS    {facts['cublas']}")
    if not compiler["available"] and not bundles:
        lines.append("          neither compiler nor compiled kernels: GPU layers will not work")
        return lines, False
    return lines, True


def _bundle_lines() -> tuple[list[str], bool]:
    """And whether none is ignored."""
    lines, used = [], True
    for bundle in _C.kernel_bundles():
        state = f"{bundle['kernels']} kernels for {', '.join(bundle['architectures'])}"
        if bundle["problem"]:
            state, used = f"ignored, {bundle['problem']}", False
        lines.append(f"kernels   {bundle['path']}: {state}")
    return lines, used


def _cache_lines() -> tuple[list[str], bool]:
    try:
        cache = _C.kernel_cache()
    except _C.UserError as error:  # of an environment variable
        return [f"cache     {error}"], False
    if not cache["folder"]:
        return [], True
    return [f"cache     {cache['folder']}: {cache['kernels']} kernels, {cache['bytes'] / 2**20:.1f} MiB"], True


def main() -> int:
    """Prints what works and what is missing; 0 where layers work, 1 where they do not."""
    print(f"pumice    {__version__}, Python {platform.python_version()}, {platform.platform()}")
    facts = _program_facts()
    torch_lines, torch_works = _torch_lines()
    cuda_lines, cuda_works = _cuda_lines(facts)
    bundle_lines, bundles_used = _bundle_lines()
    lines = _processor_lines(facts) + torch_lines + cuda_lines + bundle_lines
    cache_lines, cache_works = _cache_lines()
    lines += cache_lines
    for line in lines:
        print(_C.printable(line, 400))
    works = torch_works and cuda_works and cache_works and "problem" not in facts
    well = "All is well." if bundles_used else "Layers work, but a bundle of kernels is ignored: see above."
    print(well if works else "Something is wrong: see above.")
    return 0 if works else 1
