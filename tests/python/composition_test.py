"""Networks of random composition beside their layers one by one. A failure names its case:

    PUMICE_CASE=123:compiled pytest tests/python/composition_test.py
"""

from __future__ import annotations

import os

import pytest
import torch
from composition_cases import one_case, run_case

pytestmark = pytest.mark.filterwarnings("ignore")
RELEASE = tuple(int(number) for number in torch.__version__.split(".")[:2])
needs_graphs = pytest.mark.skipif(
    RELEASE < (2, 11), reason="older compilers refuse extents without values"
)
if "PUMICE_CASE" in os.environ:

    def test_one_case_by_its_seed() -> None:
        one_case(os.environ["PUMICE_CASE"])

else:

    @pytest.mark.parametrize("first", range(0, 240, 40))
    def test_networks_are_their_layers_one_by_one(first: int) -> None:
        outcomes = [run_case(seed) for seed in range(first, first + 40)]
        assert outcomes.count("agrees") > 30, outcomes

    @needs_graphs
    @pytest.mark.parametrize("way", ["compiled", "exported"])
    def test_in_a_graph_too(way: str) -> None:
        for seed in range(2):
            run_case(seed, way)
