"""Batches of sampled neighbours are parts of their graph, the same however they are made; processes share the seeds."""

from __future__ import annotations

import gc
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import types

import numpy as np
import programs
import pytest
import torch
import torch.distributed as dist

import pumice
from pumice.data import NeighbourBatch, NeighbourLoader, grid_edges, power_law_edges, rmat_edges
from pumice.nn.graph import GATConv, GCNConv, RGCNConv, SAGEConv

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "train_minibatch.py"
NODES = 500
EDGES = power_law_edges(NODES, 6000, 3)


def same(a: NeighbourBatch, b: NeighbourBatch) -> bool:
    return (
        torch.equal(a.n_id, b.n_id)
        and torch.equal(a.e_id, b.e_id)
        and torch.equal(a.edge_index, b.edge_index)
        and [block.entries for block in a.blocks] == [block.entries for block in b.blocks]
    )


def check(batch: NeighbourBatch, edge_index: torch.Tensor, fan_outs: list[int]) -> None:
    """Every edge is one of the graph, none stands twice, and each node has as many as it should."""
    torch.testing.assert_close(batch.n_id[batch.edge_index], edge_index[:, batch.e_id])
    assert len(batch.e_id.unique()) == len(batch.e_id) and len(batch.n_id.unique()) == len(batch.n_id)
    degree = edge_index[1].bincount(minlength=int(edge_index.max()) + 1)
    assert batch.blocks[-1].rows == batch.batch_size and batch.blocks[0].columns == len(batch.n_id)
    begin = 0
    for fan_out, block in zip(fan_outs, reversed(batch.blocks), strict=True):
        assert torch.equal(block.edge_index, batch.edge_index[:, : block.entries])
        wanted = degree[batch.n_id[begin : block.rows]]
        found = batch.edge_index[1].bincount(minlength=len(batch.n_id))[begin : block.rows]
        assert torch.equal(found, wanted if fan_out < 0 else wanted.clamp(max=fan_out))
        begin = block.rows
    for inner, outer in zip(batch.blocks[1:], batch.blocks, strict=False):
        assert inner.columns == outer.rows


@pytest.mark.parametrize("fan_outs", [[3], [4, 2], [-1, 0, 3], [2, -1]])
def test_batches_are_parts_of_the_graph(fan_outs: list[int]) -> None:
    loader = NeighbourLoader(EDGES, fan_outs, batch_size=33, num_nodes=NODES)
    seeds = []
    for batch in loader:
        check(batch, EDGES, fan_outs)
        seeds.append(batch.seeds)
    assert len(seeds) == len(loader) == 16
    assert torch.equal(torch.cat(seeds), torch.arange(NODES))


def test_with_replacement_every_node_with_edges_has_all_draws() -> None:
    batch = NeighbourLoader(EDGES, [7], batch_size=NODES, num_nodes=NODES, replace=True).sample(torch.arange(NODES))
    has_any = EDGES[1].bincount(minlength=NODES) > 0
    assert torch.equal(batch.edge_index[1].bincount(minlength=NODES), 7 * has_any)
    torch.testing.assert_close(batch.n_id[batch.edge_index], EDGES[:, batch.e_id])


def test_batches_do_not_depend_on_threads_and_workers() -> None:
    def epochs(**options: int) -> list[NeighbourBatch]:
        loader = NeighbourLoader(EDGES, [5, 3], batch_size=40, num_nodes=NODES, shuffle=True, seed=4, **options)
        return [batch for _ in range(2) for batch in loader]

    expected = epochs()
    before = pumice._C.threads()
    try:
        for threads in (1, 3):
            pumice._C.set_threads(threads)
            for workers, prefetch in ((1, 1), (2, 2), (5, 3)):
                assert all(map(same, epochs(workers=workers, prefetch=prefetch), expected))
    finally:
        pumice._C.set_threads(before)
    first, second = expected[:13], expected[13:]
    assert not any(map(same, first, second))
    assert torch.equal(torch.cat([batch.seeds for batch in second]).sort().values, torch.arange(NODES))


def test_an_epoch_can_be_named() -> None:
    loader = NeighbourLoader(EDGES, [5], batch_size=100, num_nodes=NODES, shuffle=True)
    first, second = list(loader), list(loader)
    loader.set_epoch(1)
    assert all(map(same, loader, second))
    loader.set_epoch(0)
    assert all(map(same, loader, first)) and not torch.equal(first[0].seeds, second[0].seeds)


def test_seeds_may_be_numbers_or_a_mask() -> None:
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[[3, 77, 401]] = True
    for given in (mask, torch.tensor([3, 77, 401]), torch.tensor([3, 77, 401], dtype=torch.int32), [3, 77, 401]):
        (batch,) = NeighbourLoader(EDGES, [2], given, batch_size=8, num_nodes=NODES)
        assert batch.seeds.tolist() == [3, 77, 401] and batch.batch_size == batch.counted == 3
    assert list(NeighbourLoader(EDGES, [2], [], num_nodes=NODES)) == []
    isolated = NeighbourLoader(torch.zeros(2, 0, dtype=torch.int64), [2, 2], num_nodes=5, batch_size=5)
    (batch,) = isolated
    assert batch.n_id.tolist() == [0, 1, 2, 3, 4] and batch.edge_index.shape == (2, 0)


def whole(layers: list[torch.nn.Module], x: torch.Tensor, edges: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        x = layer(x, edges, *others)
    return x


@pytest.mark.parametrize("layer", [SAGEConv, GATConv])
def test_with_all_neighbours_blocks_give_what_the_whole_graph_gives(layer: type[torch.nn.Module]) -> None:
    """And so does the merged graph. Pairs of GAT have loops from sources to targets of the same place, as blocks do."""
    torch.manual_seed(0)
    layers = [layer(6, 5).double(), layer(5, 3).double()]
    x = torch.randn(NODES, 6, dtype=torch.float64)
    expected = whole(layers, x, EDGES)
    for batch in NeighbourLoader(EDGES, [-1, -1], batch_size=60, num_nodes=NODES):
        of_batch = x[batch.n_id]
        for each, block in zip(layers, batch.blocks, strict=True):
            of_batch = each((of_batch, of_batch[: block.rows]), block)
        torch.testing.assert_close(of_batch, expected[batch.seeds])
        merged = whole(layers, x[batch.n_id], batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(merged, expected[batch.seeds])


def test_the_merged_graph_is_for_layers_without_targets_too() -> None:
    torch.manual_seed(0)
    layers = [GCNConv(6, 5, normalize=False).double(), GCNConv(5, 3, normalize=False).double()]
    x = torch.randn(NODES, 6, dtype=torch.float64)
    expected = whole(layers, x, EDGES)
    for batch in NeighbourLoader(EDGES, [-1, -1], batch_size=60, num_nodes=NODES):
        merged = whole(layers, x[batch.n_id], batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(merged, expected[batch.seeds])


def test_types_of_edges_come_with_them() -> None:
    torch.manual_seed(0)
    types = torch.randint(0, 4, (EDGES.shape[1],))
    layers = [RGCNConv(6, 5, 4).double(), RGCNConv(5, 3, 4).double()]
    x = torch.randn(NODES, 6, dtype=torch.float64)
    expected = whole(layers, x, EDGES, types)
    for batch in NeighbourLoader(EDGES, [-1, -1], batch_size=60, num_nodes=NODES, edge_type=types, workers=1):
        assert torch.equal(batch.edge_type, types[batch.e_id])
        assert batch.blocks[0].relations == 4
        for moved in (batch, batch.to("cpu")):
            of_batch = x[moved.n_id]
            for each, block in zip(layers, moved.blocks, strict=True):
                of_batch = each((of_batch, of_batch[: block.rows]), block)
            torch.testing.assert_close(of_batch, expected[batch.seeds])


def test_entries_have_the_numbers_of_a_graph_in_any_order() -> None:
    order = torch.randperm(EDGES.shape[1], generator=torch.Generator().manual_seed(1))
    graph = pumice.Graph(EDGES[:, order], NODES)
    for batch in NeighbourLoader(graph, [5, 5], batch_size=100):
        torch.testing.assert_close(batch.n_id[batch.edge_index], EDGES[:, order][:, batch.e_id])


@pytest.mark.parametrize("count", [0, 1, 2, 5, 31, 32, 33, 100])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_processes_have_equally_many_batches_and_each_seed_once(count: int, world_size: int, drop_last: bool) -> None:
    def loader(rank: int) -> NeighbourLoader:
        return NeighbourLoader(
            EDGES, [1], torch.arange(count) * 3, batch_size=4, num_nodes=NODES, shuffle=True, drop_last=drop_last,
            rank=rank, world_size=world_size,
        )  # fmt: skip

    epochs = [list(loader(rank)) for rank in range(world_size)]
    assert {len(batches) for batches in epochs} == {len(loader(0))}
    assert len({tuple(batch.batch_size for batch in batches) for batches in epochs}) == 1
    counted = [node for batches in epochs for batch in batches for node in batch.seeds[: batch.counted].tolist()]
    assert len(set(counted)) == len(counted)
    if drop_last:
        assert all(batch.batch_size == batch.counted == 4 for batches in epochs for batch in batches)
        assert len(counted) == count // world_size // 4 * 4 * world_size
    else:
        assert sorted(counted) == [3 * i for i in range(count)]
        repeated = sum(batch.batch_size - batch.counted for batches in epochs for batch in batches)
        assert repeated == -count % world_size


def test_batches_of_processes_are_drawn_apart() -> None:
    """The same seeds, so that only the numbers of the batches differ."""
    draws = []
    for rank in range(2):
        loader = NeighbourLoader(grid_edges([9, 9]), [2], [40], rank=rank, world_size=2, seed=1)
        draws.append(torch.cat([batch.e_id for _ in range(20) for batch in loader]))
    assert not torch.equal(*draws)


def test_what_a_worker_raises_comes_in_the_place_of_its_batch() -> None:
    class Broken(Exception):
        pass

    def fail(batch: NeighbourBatch) -> NeighbourBatch:
        if 200 in batch.seeds:
            raise Broken("at 200")
        return batch

    for workers in (0, 1, 3):
        seen = []
        with pytest.raises(Broken, match="at 200"):
            for batch in NeighbourLoader(EDGES, [2], batch_size=50, num_nodes=NODES, workers=workers, transform=fail):
                seen.append(int(batch.seeds[0]))
        assert seen == [0, 50, 100, 150]
        loader = NeighbourLoader(EDGES, [2], num_nodes=NODES, workers=workers, transform=lambda batch: None)
        with pytest.raises(pumice.UserError, match="transform returned None: return the batch"):
            next(iter(loader))
    assert not ahead()


def ahead() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("pumice-ahead")]


def test_a_dropped_iterator_leaves_no_thread_and_makes_no_more() -> None:
    made = []

    def count(batch: NeighbourBatch) -> NeighbourBatch:
        made.append(batch.batch_size)
        time.sleep(0.001)
        return batch

    loader = NeighbourLoader(EDGES, [2], num_nodes=NODES, workers=2, prefetch=2, transform=count)
    batches = iter(loader)
    assert not ahead()
    next(batches)
    assert 1 <= len(ahead()) <= 2
    del batches
    gc.collect()
    assert not ahead() and len(made) <= 6
    for _ in loader:
        break
    gc.collect()
    assert not ahead()


def test_another_thread_of_python_runs_beside_it() -> None:
    """Sampling gives the GIL away: a thread of Python goes on while one batch of everything is sampled."""
    edges = power_law_edges(100_000, 2_000_000)
    graph = pumice.Graph(edges, 100_000)
    turns, stop = [0], threading.Event()

    def turn() -> None:
        while not stop.wait(0.0005):
            turns[0] += 1

    beside = threading.Thread(target=turn)
    beside.start()
    most = 0
    for _ in range(100):  # on a busy machine the other thread may get no core for the time of one batch
        before = turns[0]
        batch = pumice._C.sample_neighbours(graph.graph, torch.arange(100_000), [-1, -1], False, 0, 0, None)
        most = max(most, turns[0] - before)
        if most >= 3:  # were the GIL kept, there would be one turn before a batch and one after it
            break
    stop.set()
    beside.join()
    assert len(batch[1]) == 2_000_000
    assert most >= 3


REFUSED = {
    "graph is a str": lambda: NeighbourLoader("edges", [2]),
    "or edge_index, int64 [2, E], as data.edge_index": lambda: NeighbourLoader(
        types.SimpleNamespace(edge_index=EDGES), [2]
    ),
    "num_neighbors is an int: give a number for each layer": lambda: NeighbourLoader(EDGES, 5),
    "num_neighbors is empty": lambda: NeighbourLoader(EDGES, []),
    "num_neighbors = -2": lambda: NeighbourLoader(EDGES, [3, -2]),
    "input_nodes[1] = 500 where there are 500": lambda: NeighbourLoader(EDGES, [3], torch.tensor([0, 500]), num_nodes=500),
    "input_nodes[2] = 4 stands there before": lambda: NeighbourLoader(EDGES, [3], [4, 2, 4]),
    "input_nodes is torch.float32": lambda: NeighbourLoader(EDGES, [3], torch.ones(3)),
    "input_nodes is torch.bool, (3,)": lambda: NeighbourLoader(EDGES, [3], torch.ones(3, dtype=torch.bool)),
    "input_nodes is a float": lambda: NeighbourLoader(EDGES, [3], 1.5),
    "batch_size = 0": lambda: NeighbourLoader(EDGES, [3], batch_size=0),
    "shuffle = 'yes'": lambda: NeighbourLoader(EDGES, [3], shuffle="yes"),
    "seed = -1": lambda: NeighbourLoader(EDGES, [3], seed=-1),
    "workers = -1": lambda: NeighbourLoader(EDGES, [3], workers=-1),
    "prefetch = 0": lambda: NeighbourLoader(EDGES, [3], prefetch=0),
    "transform is an int": lambda: NeighbourLoader(EDGES, [3], transform=3),
    "rank = 2: give a whole number from 0 to 1": lambda: NeighbourLoader(EDGES, [3], rank=2, world_size=2),
    "rank = 2 and world_size = None: give both, or neither": lambda: NeighbourLoader(EDGES, [3], rank=2),
    "edge_type is torch.float32": lambda: NeighbourLoader(EDGES, [3], edge_type=torch.ones(6000)),
    "edge_type[5999] = 1 where there are 1": lambda: NeighbourLoader(
        EDGES, [3], edge_type=torch.arange(6000) // 5999, num_relations=1
    ),
    "num_nodes = 7: give it with edge_index": lambda: NeighbourLoader(pumice.Graph(EDGES), [3], num_nodes=7),
    "graph has 9 sources and 3 targets": lambda: NeighbourLoader(pumice.Graph(torch.zeros(2, 1).long(), (9, 3)), [3]),
    "epoch = -1": lambda: NeighbourLoader(EDGES, [3]).set_epoch(-1),
    "input_nodes[1] = 3 stands there": lambda: NeighbourLoader(EDGES, [3]).sample(torch.tensor([3, 3])),
    "nodes = -1": lambda: power_law_edges(-1, 3),
    "nodes = 0 for 3 edges": lambda: power_law_edges(0, 3),
    "target_exponent = 0": lambda: power_law_edges(5, 3, target_exponent=0),
    "scale = 31": lambda: rmat_edges(31, 3),
    "shares has 2 numbers": lambda: rmat_edges(3, 3, shares=(0.5, 0.5)),
    "shares 0.9, 0.9 and 0.1": lambda: rmat_edges(3, 3, shares=(0.9, 0.9, 0.1)),
    "extents = 5: give nodes along each axis": lambda: grid_edges(5),
    "0 extents: give 1 to 8": lambda: grid_edges([]),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_sampled_is_said(said: str) -> None:
    with pytest.raises(pumice.UserError) as error:
        REFUSED[said]()
    assert said in str(error.value)


def test_generated_power_laws_are_those_that_are_measured() -> None:
    """The NumPy of the tables draws other numbers. The node of a certain place has as many edges, but for what sums of
    Pareto numbers of exponent 1.5 differ by, whose variance is infinite: in both, from seed to seed, up to a fifth."""
    nodes, edges = 169_343, 1_166_243
    random = np.random.default_rng(0)
    degree = np.minimum(random.pareto(1.5, nodes) + 1, nodes / 50)
    row = np.repeat(np.arange(nodes), random.poisson(degree * edges / degree.sum()))
    column = np.minimum((random.pareto(1.2, row.size) * nodes / 50).astype(np.int64), nodes - 1)
    source, target = power_law_edges(nodes, edges).numpy()
    for measured, ours in ((row, target), (column, source)):
        expected, found = (np.sort(np.bincount(list_, minlength=nodes))[::-1] for list_ in (measured, ours))
        for place in (100, 1000, 10_000):
            assert found[place] == pytest.approx(expected[place], rel=0.25)
    distinct = len(np.unique(target * nodes + source))
    assert distinct == pytest.approx(1_156_280, rel=0.01)


def example():  # noqa: ANN201
    spec = importlib.util.spec_from_file_location("train_minibatch", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_minibatch"] = module
    spec.loader.exec_module(module)
    return module


needs_example = pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here")
needs_two_gpus = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="fewer than two CUDA devices are here, and NCCL takes one for each process"
)
TINY = ["--nodes", "300", "--edges", "3000", "--classes", "4", "--batch", "20", "--fan-outs", "-1", "-1", "--device", "cpu"]


def trained(rank: int, world_size: int, batch: int, device: str) -> tuple[list[torch.Tensor], list[torch.Tensor], list[int]]:
    """(gradients after each of three steps, weights, counted seeds of an epoch): float64 on the CPU, which devices do not have."""
    dtype = torch.float64 if device == "cpu" else torch.float32
    module = example()
    options = module.parse([*TINY, "--batch", str(batch)])
    nodes = module.generate(options)
    torch.manual_seed(0)
    network = module.Network(options.channels, 8, 4, 2).to(device, dtype)
    nodes.features = nodes.features.to(dtype)
    model: torch.nn.Module = network
    if world_size > 1:
        model = torch.nn.parallel.DistributedDataParallel(network, device_ids=None if device == "cpu" else [device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = module.loader_of(nodes, nodes.train, options, shuffle=True)
    assert (loader._shares.rank, loader._shares.world_size) == (rank, world_size)
    gradients = []
    for step, batch_ in enumerate(loader):
        if step == 3:
            break
        optimizer.zero_grad()
        moved = batch_.to(device)
        torch.nn.functional.cross_entropy(model(moved.x, moved.blocks), moved.y).backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in network.parameters()]).cpu())
        optimizer.step()
    loader.set_epoch(1)
    seeds = [node for batch_ in loader for node in batch_.seeds[: batch_.counted].tolist()]
    return gradients, [p.detach().cpu() for p in network.parameters()], seeds


def one_of_two(rank: int, port: int, out: str, device: str) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if device == "cuda":
        device = f"cuda:{rank}"
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if device == "cpu" else "nccl", rank=rank, world_size=2)
    torch.save(trained(rank, 2, 20, device), f"{out}/{rank}.pt")
    programs.leave_group()


@needs_example
@pytest.mark.skipif(not dist.is_available(), reason="this PyTorch has no torch.distributed")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_two_gpus)])
def test_two_processes_make_the_steps_of_one_with_the_joint_batches(tmp_path: pathlib.Path, device: str) -> None:
    """With all neighbours, so that both sample the same edges; gloo on the CPU, NCCL on two GPUs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(one_of_two, (port, str(tmp_path), device), nprocs=2)
    (g0, w0, s0), (g1, w1, s1) = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    for a, b in zip([*g0, *w0], [*g1, *w1], strict=True):
        assert torch.equal(a, b)
    gradients, weights, seeds = trained(0, 1, 40, device)
    assert sorted(s0 + s1) == sorted(seeds) and len(set(seeds)) == len(seeds) == 240
    near = {} if device == "cpu" else {"rtol": 1e-4, "atol": 1e-6}  # sums of 40 rows in another order, in float32
    for a, b in zip([*g0, *w0], [*gradients, *weights], strict=True):
        torch.testing.assert_close(a, b, **near)


@needs_example
@pytest.mark.parametrize("processes", [1, 2])
def test_the_example_learns_from_neighbours(tmp_path: pathlib.Path, processes: int) -> None:
    """Features alone find 0.44 of 16 classes: the same network on edges that say nothing."""
    if processes > 1 and not dist.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    curves = tmp_path / "curves.csv"
    done = subprocess.run(
        [sys.executable, *(launcher if processes > 1 else []), EXAMPLE, "--nodes", "8000", "--edges", "120000", "--batch",
         str(256 // processes), "--epochs", "3", "--device", "cpu", "--curves", curves],
        capture_output=True, text=True, env={**programs.surroundings(), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 2:") == 1
    rows = curves.read_text().splitlines()
    assert rows[0] == "epoch,loss,accuracy,seconds,waited,edges" and len(rows) == 4
    assert float(rows[3].split(",")[2]) > 0.75, done.stdout
