"""Memory of chains on the emulated device (see emulated_device.py): passes without gradients take the large blocks of the
passes before, which go back to PyTorch before a pass with gradients and where memory is short. Run by emulated_device_test.py
in a process of its own."""

from __future__ import annotations

import emulated_device
import torch
from conftest import random_sites
from emulated_device import OnDevice, in_use, raw_allocate, raw_free

import pumice
from pumice import _C, nn

LARGE = 2 << 20  # bytes; smaller blocks are always kept
MOST = (1 << 30) // 64  # bytes of large blocks that are kept: a 64th of the emulated device
ROWS = 40_000
LINKS = 4
large: dict[int, int] = {}  # bytes of large blocks by address
asked = 0  # for how many


def allocate(size: int, stream: int) -> int:
    global asked
    if emulated_device.full and _C.kept_device_bytes() > 0:
        raise short_of_memory(size)
    address = raw_allocate(size, stream)
    if size > LARGE:
        asked += 1
        large[address] = size
    return address


def free(address: int) -> None:
    large.pop(address, None)
    raw_free(address)


refused: list[object] = []  # for which there was no memory


def short_of_memory(size: object) -> Exception:
    """PyTorch's own and Python's, by turns."""
    kinds = (torch.cuda.OutOfMemoryError, MemoryError)
    refused.append(size)
    return kinds[len(refused) % 2](f"{size} is not there")


def new_empty(like: OnDevice, *extents: int, **kind: object) -> torch.Tensor:
    if emulated_device.full and _C.kept_device_bytes() > 0:
        raise short_of_memory(extents)
    return torch.Tensor.new_empty(like, *extents, **kind)


def asked_for(work: object) -> int:
    """Large blocks that PyTorch is asked for."""
    before = asked
    work()
    return asked - before


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    _C.use_framework_device(allocate, free, lambda index: 0, lambda: 0, lambda index: None)
    window = nn.SubMConv3d(16, 16, 1).window
    cells = random_sites(3, 48, ROWS)
    features = torch.randn(len(cells), 16)
    weights = [torch.randn(1, 16, 16) / 4 for _ in range(LINKS)]
    chain = _C.Chain([(0 if i == 0 else 1 + i, -1, -1, True, 1e-5, 0.1) for i in range(LINKS)])

    def given(place: object) -> tuple:
        learned = [t for weight in weights for t in (weight, torch.ones(16), torch.zeros(16))]
        moving = [torch.zeros(16), torch.ones(16), torch.tensor(4)] * LINKS
        return tuple(map(place, learned)), (None,) * LINKS, tuple(map(place, moving))

    def call(place: object, of_sites: object) -> tuple:
        return (place(features), None, chain, (of_sites,) * LINKS)

    here = pumice.ops.submanifold_map(pumice.SparseTensor(cells, features, batch_size=2).coords, window)
    made_of = given(torch.Tensor.clone)  # which live as long as what is folded of them
    folded = _C.ChainWeights(chain, features, *made_of)
    expected = _C.chain_inference(*call(torch.Tensor.clone, here), folded, False, False)

    def sites() -> object:
        return _C.create_sites(OnDevice.of(cells), None, None, 2, [0] * 3, [47] * 3)

    there = _C.submanifold_map(sites(), window.c)
    made_of = learned, layouts, moving = given(OnDevice.of)
    folded = _C.ChainWeights(chain, OnDevice.of(features), *made_of)

    def infer() -> None:
        made = _C.chain_inference(*call(OnDevice.of, there), folded, False, False).host()
        error = (made - expected).norm() / expected.norm()
        assert error < 1e-5, f"inference is off by {error}"

    first, second = asked_for(infer), asked_for(infer)
    assert first > 0, "a pass takes no large block"
    assert second == 0, f"{second} large blocks of a second pass, {first} of the first"
    assert 0 < sum(large.values()) <= MOST, large
    print(f"{first} large blocks of a first pass, none of a second", flush=True)

    before = set(large)
    _, record = _C.chain_training(*call(OnDevice.of, there), learned, layouts, moving, False, False, True, False)
    assert not before & set(large), "what passes without gradients left stays beside a pass with them"
    del record
    assert not large, "large blocks of a pass with gradients are kept"
    infer()
    assert large
    with torch.enable_grad():
        _C.submanifold_map(sites(), window.c)  # the first of a pass
        assert not large, "large blocks stay when a pass with gradients begins"
        infer()  # of layers that are frozen
    assert not large, "a chain without gradients keeps large blocks in a pass with them"
    print("a pass with gradients has the memory for itself", flush=True)

    infer()
    assert large
    emulated_device.full = True  # PyTorch has no memory until what is kept has gone
    _C.create_sites(OnDevice.of(cells[: len(cells) // 3]), None, None, 2, [0] * 3, [47] * 3)  # of other sizes
    assert not large, "large blocks stay where memory is short"
    emulated_device.full = False
    infer()
    emulated_device.full = True
    OnDevice.new_empty = new_empty
    infer()
    del OnDevice.new_empty
    emulated_device.full = False
    assert len(refused) == 2, f"{refused} were refused until what was kept had gone"

    def interrupted(like: OnDevice, *extents: int, **kind: object) -> torch.Tensor:
        raise KeyboardInterrupt

    infer()
    OnDevice.new_empty = interrupted
    kept = _C.kept_device_bytes()
    try:
        infer()
    except KeyboardInterrupt:
        assert _C.kept_device_bytes() == kept
    else:
        raise AssertionError("another error is taken for a lack of memory")
    del OnDevice.new_empty
    print("where memory is short nothing is kept", flush=True)

    infer()
    kept = _C.kept_device_bytes()
    assert pumice.release_memory() == kept > sum(large.values()) == 0
    assert _C.kept_device_bytes() == 0
    del there, folded, made_of, learned, moving
    _C.release_device_memory()
    assert not in_use, f"{len(in_use)} blocks were not given back"
    print("all is given back", flush=True)


if __name__ == "__main__":
    main()
