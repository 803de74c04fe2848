"""Stands in for spconv where its benchmarks are tried without it: its layers are those of pumice.compat.spconv, so both
sides of a comparison compute the same, and its kernel map is counted here."""

PUMICE_SHIM = True

import torch  # noqa: E402

import pumice.compat.spconv  # noqa: E402
from pumice.compat.spconv.pytorch import ops  # noqa: E402


def get_indice_pairs(indices, batch_size, shape, algo, ksize, stride, padding, dilation, out_padding, subm):
    """Counts alone, of a 3x3x3 submanifold map: the offsets before the centre, since the others mirror them."""
    assert subm and ksize == [3] * 3, "only what benchmarks/peers ask for"
    extents = [extent + 2 for extent in shape]

    def keys(cells):
        key = cells[:, 0].long()
        for axis, extent in enumerate(extents, 1):
            key = key * extent + cells[:, axis].long() + 1
        return key

    mine = keys(indices)
    counts = []
    for offset in list(torch.cartesian_prod(*[torch.arange(-1, 2)] * 3))[:13]:
        moved = indices.clone()
        moved[:, 1:] += offset.to(indices.dtype)
        counts.append(torch.isin(keys(moved), mine).sum())
    return indices, None, torch.stack(counts)


ops.get_indice_pairs = get_indice_pairs
pumice.compat.spconv.install()
