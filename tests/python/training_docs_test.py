"""The page on training and its examples: they run as they stand, stop, go on, and refuse in a sentence."""

from __future__ import annotations

import importlib
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable

import numpy as np
import programs
import pytest
import torch

import pumice
from pumice import data

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how_to" / "train_a_network.md"
EXAMPLES = ROOT / "examples"
SMALL = [
    "--device", "cpu", "--beams", "32", "--voxel", "0.8", "--widths", "4,4,4,4,4,4,4,4,4",
    "--scans", "3", "--validation", "1", "--test", "1", "--batch", "1",
]  # fmt: skip


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], types.ModuleType]:
    """An example as a module, its neighbours found."""
    if not EXAMPLES.exists():
        pytest.skip("the examples are not here")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.fixture
def run(
    example: Callable[[str], types.ModuleType],
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
) -> Callable[..., tuple[int, str, str]]:
    """train_segmentation.py in this process: its exit code, what it prints and what it refuses."""
    main = example("train_segmentation").main

    def called(out: pathlib.Path, *words: str) -> tuple[int, str, str]:
        code = main(["--out", str(out), "--workers", "0", "--cache", str(tmp_path / "streets"), *words])
        return code, *capsys.readouterr()

    return called


def semantic_kitti(root: pathlib.Path) -> None:
    """A folder as SemanticKITTI's, of two simulated streets to train on and one to measure on."""
    for name, seed in (("00/000000", 1), ("00/000001", 2), ("08/000000", 3)):
        scan = pumice.simulate(seed, beams=32)
        sequence, frame = name.split("/")
        points, labels = (root / "sequences" / sequence / kind for kind in ("velodyne", "labels"))
        points.mkdir(parents=True, exist_ok=True)
        labels.mkdir(exist_ok=True)
        scan.features().tofile(points / f"{frame}.bin")
        scan.labels.astype(np.uint32).tofile(labels / f"{frame}.label")


def test_the_script_of_the_page_runs_as_it_is(tmp_path: pathlib.Path) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "mine.py").write_text(script)
    nowhere = subprocess.run(
        [sys.executable, "mine.py", "nowhere"], cwd=tmp_path, capture_output=True, text=True,
        env=programs.surroundings(),
    )  # fmt: skip
    assert nowhere.returncode == 1 and "nowhere is no folder" in nowhere.stderr and nowhere.stderr.count("\n") == 1
    semantic_kitti(tmp_path / "kitti")
    command = [
        sys.executable, "mine.py", "kitti", "--epochs", "1", "--batch", "2", "--workers", "1",
        "--voxel", "0.8", "--width-factor", "0.05", "--device", "cpu",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=programs.surroundings()
    )
    assert done.returncode == 0, done.stderr
    assert "step 1 of 1, loss" in done.stdout and "validation 1 of 1, mIoU" in done.stdout
    weights = tmp_path / "model.safetensors"
    trained = pumice.models.pretrained(weights)
    assert trained.voxel_size == (0.8, 0.8, 0.8) and trained.classes == data.SEMANTIC_KITTI.names
    scan = tmp_path / "kitti" / "sequences" / "08" / "velodyne" / "000000.bin"
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "run", "minkunet42", scan, "--weights", weights],
        capture_output=True, text=True, env=programs.surroundings(),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "words, refusal",
    [
        (["--out", "nowhere/m.safetensors"], "there is no folder {here}/nowhere: make it first"),
        (["--out", "m.pth"], "m.pth: weights are written as safetensors"),
        (["--voxel", "0"], "voxel size along x = 0"),
        (["--voxel", "nan"], "voxel size along x = nan"),
        (["--width-factor", "0"], "width_factor = 0.0: give a number above 0, as 0.5"),
        (["--width-factor", "inf"], "width_factor = inf"),
        (["--epochs", "0"], "--epochs: '0' is no whole number of at least 1"),
        (["--batch", "0"], "--batch: '0' is no whole number of at least 1"),
        (["--workers", "-1"], "--workers: '-1' is no whole number of at least 0"),
        (["--device", "cuda:99"], "--device: 'cuda:99': PyTorch finds "),
        (["--device", "gpu"], "--device: 'gpu' is not cpu, cuda"),
        (["--device", "mps"], "--device: 'mps' is not cpu, cuda"),
    ],
)
def test_what_the_script_of_the_page_cannot_do_is_a_sentence_before_the_first_step(
    example: Callable[[str], types.ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    refusal: str,
) -> None:
    script = example("train_network")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train_network.py", "--width-factor", "0.05", *words])
    with pytest.raises(SystemExit) as ended:
        script.main()
    said, refused = capsys.readouterr()
    refused += str(ended.value.code)
    assert refusal.format(here=tmp_path) in refused and said == "", (refused, said)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_result_end_the_comparison_with_labels_in_a_sentence(tmp_path: pathlib.Path) -> None:
    if not EXAMPLES.exists():
        pytest.skip("the examples are not here")
    result, labels, weights = (tmp_path / name for name in ("result.safetensors", "scan.label", "w.safetensors"))
    rows = {"features": torch.ones(1, 19), "point_to_voxel": torch.zeros(2).long()}
    pumice.save_weights(rows, result)
    pumice.save_weights({"a": torch.ones(1)}, weights)
    np.zeros(3, np.uint32).tofile(labels)
    for words, said in (
        ([], "give a result of `pumice run --out`, then the .label file"),
        ([tmp_path / "absent", labels], "absent: cannot be opened: No such file"),
        ([tmp_path, labels], "is a folder; give the name of a file in it"),
        ([result, tmp_path], "is a folder; give the name of a file in it"),
        ([weights, labels], "has no features and point_to_voxel"),
        ([result, labels], "has 3 labels for 2 points"),
    ):
        done = subprocess.run(
            [sys.executable, EXAMPLES / "confusion_with_labels.py", *words], capture_output=True, text=True,
            env=programs.surroundings(),
        )  # fmt: skip
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert done.stderr.startswith("confusion_with_labels.py: ") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_scan_without_labels_ends_the_script_of_the_page_in_a_sentence(tmp_path: pathlib.Path, workers: str) -> None:
    if not EXAMPLES.exists():
        pytest.skip("the examples are not here")
    semantic_kitti(tmp_path)
    (tmp_path / "sequences" / "00" / "labels" / "000001.label").unlink()
    done = subprocess.run(
        [sys.executable, EXAMPLES / "train_network.py", tmp_path, "--voxel", "0.8", "--width-factor", "0.05",
         "--device", "cpu", "--workers", workers],
        cwd=tmp_path, capture_output=True, text=True, env=programs.surroundings(),
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("train_network.py: scans[1] has no labels, since there is no "), done.stderr
    assert not (tmp_path / "model.safetensors").exists()


def test_it_trains_goes_on_and_overwrites_nothing(
    run: Callable[..., tuple[int, str, str]], tmp_path: pathlib.Path
) -> None:
    out = tmp_path / "run"
    code, said, _ = run(out, *SMALL, "--mix", "0.5", "--steps", "2")
    assert code == 0
    assert f"; simulated streets are kept in {tmp_path / 'streets'}\n" in said
    assert "100 % step 2, loss" in said and "step 2: validation\n" in said
    assert "100 % validation done" in said and "step 2: test\n" in said
    tensors, metadata = pumice.read_weights(out / "model.safetensors")
    assert metadata["widths"] == "4,4,4,4,4,4,4,4,4"
    assert tensors["stem.0.weight"].dtype == torch.float16
    assert pumice.models.pretrained(out / "model.safetensors").voxel_size == (0.8, 0.8, 0.8)

    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    for words, refusal in (
        (["--steps", "2"], f"--out {out} holds checkpoint.pt, model.safetensors, curves.csv, iou.txt"),
        (["--resume"], "has ended after 2 steps, with --steps 2: give more of it, or another end by --steps or --minutes"),
        (["--resume", "--widths", "spvnas"], "was trained with --widths 4,4,4,4,4,4,4,4,4, not 32,32,64"),
        (["--resume", "--voxel", "0.1"], "was trained with --voxel 0.8, not 0.1"),
    ):
        code, _, refused = run(out, *words)
        assert code == 2 and refusal in refused and refused.count("\n") == 1, refused
        after = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
        assert after == before, words

    code, said, _ = run(out, "--resume", "--steps", "3")  # the rest is as it was
    assert code == 0
    assert "3 steps" in said and "vegetation" in said and "18031 parameters" in said
    rows = (out / "curves.csv").read_text().splitlines()
    assert rows[0].startswith("step,") and [row.split(",")[0] for row in rows[1:]] == ["1", "2", "2", "3", "3"]


def test_a_training_that_minutes_ended_goes_on_by_steps(
    run: Callable[..., tuple[int, str, str]], tmp_path: pathlib.Path
) -> None:
    out = tmp_path / "run"
    code, _, _ = run(out, *SMALL, "--minutes", "0.02")
    assert code == 0
    code, _, refused = run(out, "--resume")
    found = re.search(r"has ended after (\d+) steps, with --minutes 0.02: give more of it", refused)
    assert code == 2 and found, refused
    steps = int(found[1]) + 1
    code, said, _ = run(out, "--resume", "--steps", str(steps))
    assert code == 0 and f"{steps} steps in" in said, said
    code, _, refused = run(out, "--resume")
    assert code == 2 and f"has ended after {steps} steps, with --steps {steps}: give" in refused, refused


def test_what_it_cannot_begin_with_is_a_sentence(
    run: Callable[..., tuple[int, str, str]], tmp_path: pathlib.Path
) -> None:
    new, file, old = tmp_path / "new", tmp_path / "file", tmp_path / "old"
    file.write_text("")
    old.mkdir()
    (old / "checkpoint.pt").write_bytes(b"PK\x03\x04 cut")
    torch.save({"script": "another.py"}, tmp_path / "checkpoint.pt")
    for out, words, refusal in (
        (new, ["--resume"], f"there is no {new}/checkpoint.pt to go on from: leave --resume out"),
        (new, ["--widths", "wide"], "--widths wide: widths = 'wide'"),
        (new, ["--widths", "4,wide"], "--widths 4,wide: give a name, or nine numbers"),
        (new, ["--widths", "4,4"], "--widths 4,4: widths = [4, 4]: give nine numbers"),
        (new, ["--device", "gpu"], "--device gpu: give cpu, cuda"),
        (new, ["--device", "mps"], "--device mps: give cpu, cuda"),
        (new, ["--device", "cuda:99"], "--device cuda:99: PyTorch finds"),
        (new, ["--mix", "2"], "probability = 2.0: give a number from 0 to 1"),
        (new, ["--cache", str(file)], f"cache = '{file}': the folder cannot be made: File exists"),
        (file, [], f"--out {file} cannot be made"),
        (old, ["--resume"], f"{old}/checkpoint.pt cannot be read"),
        (tmp_path, ["--resume"], "checkpoint.pt was not written by train_segmentation.py"),
    ):
        code, said, refused = run(out, *words)
        assert code == 2 and refusal in refused and refused.count("\n") == 1, (words, refused)
        assert said == "" and not new.exists()
    for words in (["--steps", "0"], ["--workers", "-1"], ["--voxel", "nan"], ["--seed", "-1"]):
        with pytest.raises(SystemExit):
            run(new, *words)
    assert not new.exists()


def test_ctrl_c_writes_a_checkpoint_to_go_on_from(
    run: Callable[..., tuple[int, str, str]], tmp_path: pathlib.Path
) -> None:
    out, cache = tmp_path / "run", tmp_path / "streets"
    training = subprocess.Popen(
        [sys.executable, EXAMPLES / "train_segmentation.py", "--out", out, "--cache", cache, *SMALL,
         "--workers", "1", "--steps", "100000"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env=programs.surroundings(),
    )  # fmt: skip
    try:
        for _ in range(600):
            if (out / "curves.csv").exists() and len((out / "curves.csv").read_text().splitlines()) > 1:
                break
            time.sleep(0.1)
        os.killpg(training.pid, signal.SIGINT)  # a terminal sends it to the workers too
        said, _ = training.communicate(timeout=60)
    finally:
        training.kill()
    assert training.returncode == 130, said
    assert "Traceback" not in said
    assert f"train_segmentation.py --out {out} --resume" in said
    step = int(re.findall(r"Stopped after step (\d+)", said)[0])
    saved = torch.load(out / "checkpoint.pt", weights_only=True)
    assert saved["step"] == step == saved["drawn"]
    assert not (out / "model.safetensors").exists()
    code, said, _ = run(out, "--resume", "--steps", str(step + 1))
    assert code == 0 and f"{step + 1} steps in" in said
    assert (out / "model.safetensors").exists()


def test_a_loader_whose_processes_a_signal_has_ended_does_not_end_a_training_that_stops(
    example: Callable[[str], types.ModuleType],
) -> None:
    """`timeout` and job schedulers send theirs to the whole group of processes."""
    until_stopped = example("train_segmentation").Training.until_stopped

    def batches(stop: types.SimpleNamespace, at_the_end: bool):  # noqa: ANN202
        yield 0
        stop.asked = signal.SIGTERM if at_the_end else 0
        raise RuntimeError("DataLoader worker (pid(s) 1) exited unexpectedly")

    stop = types.SimpleNamespace(asked=0)
    training = types.SimpleNamespace(stop=stop)
    assert list(until_stopped(training, batches(stop, at_the_end=True))) == [0]
    stop.asked = 0
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(until_stopped(training, batches(stop, at_the_end=False)))


def test_a_second_ctrl_c_ends_at_once(example: Callable[[str], types.ModuleType]) -> None:
    stop_class = example("training_run").Stop
    with stop_class(quiet=True) as stop:
        assert stop.exit_code == 0
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # a launcher passes on what the terminal has sent already
        assert stop.asked == signal.SIGINT and stop.exit_code == 130
        stop._since -= 2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is not stop._ask


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_moves_and_gets_full(
    example: Callable[[str], types.ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
) -> None:
    log_of = example("training_log")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    now = iter(np.arange(100.0, 200.0, 0.25))
    monkeypatch.setattr(log_of.time, "monotonic", lambda: float(next(now)))
    log = log_of.TrainingLog(tmp_path)
    for step in range(8):
        log.progress(step / 8, f"step {step} " + "x" * 60)
    monkeypatch.setattr(log_of.time, "monotonic", lambda: 100.0)  # no time has passed: still shown
    log.progress(1, "done")
    log.say("and a line")
    log.close()
    bars = terminal.getvalue().split("\r")[1:]
    assert [int(bar.split("]")[1].split("%")[0]) for bar in bars] == [0, 12, 25, 37, 50, 62, 75, 87, 100]
    assert bars[-1].startswith("[" + 24 * "#" + "] 100 % done") and bars[-1].endswith("\nand a line\n")
    assert all(len(bar.splitlines()[0]) == 59 for bar in bars)


def test_two_processes_print_once_and_write_what_runs(
    example: Callable[[str], types.ModuleType], tmp_path: pathlib.Path
) -> None:
    if not torch.distributed.is_available():
        pytest.skip("PyTorch was built without torch.distributed")
    out = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         EXAMPLES / "train_distributed.py", "--out", out, "--steps", "2", "--cpu", "--batch", "1",
         "--beams", "32", "--voxel", "1.6", "--width-factor", "0.05", "--scans", "2", "--workers", "0",
         "--cache", tmp_path / "streets"],
        capture_output=True, text=True, env=programs.surroundings(OMP_NUM_THREADS="1"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    weights = out / "model.safetensors"
    assert done.stdout.count("100 % step 2 of 2, loss") == 1
    assert done.stdout.count(f"the weights are in {weights}") == 1
    assert pumice.models.pretrained(weights).voxel_size == (1.6, 1.6, 1.6)
    assert torch.load(out / "checkpoint.pt", weights_only=True)["drawn"] == 4


def test_what_several_processes_cannot_begin_with(
    example: Callable[[str], types.ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
) -> None:
    main = example("train_distributed").main
    monkeypatch.delenv("RANK", raising=False)
    new = tmp_path / "new"
    assert main(["--out", str(new)]) == 2
    assert "torchrun --standalone --nproc-per-node 2" in capsys.readouterr().err
    (tmp_path / "model.safetensors").write_bytes(b"")
    for rank, lines in (("0", 1), ("1", 0)):
        monkeypatch.setenv("RANK", rank)
        for out, words, refusal in (
            (new, ["--resume"], "to go on from: leave --resume out"),
            (tmp_path, [], "holds model.safetensors of another training: name another folder"),
        ):
            assert main(["--out", str(out), "--cpu", *words]) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == lines and (refusal in said or rank == "1"), said
    assert not new.exists() and (tmp_path / "model.safetensors").read_bytes() == b""


def test_several_processes_draw_every_scan_once(example: Callable[[str], types.ModuleType]) -> None:
    draws = example("training_data").Draws

    def first(count: int, *arguments: int) -> list[int]:
        return [index for index, _ in zip(draws(*arguments), range(count), strict=False)]

    alone = first(20, 5, 7)
    assert sorted(index % 5 for index in alone[:5]) == list(range(5))
    assert alone[:5] != [index % 5 for index in alone[5:10]]
    assert first(12, 5, 7, 8) == alone[8:]
    assert first(10, 5, 7, 0, 0, 2) == alone[::2] and first(10, 5, 7, 0, 1, 2) == alone[1::2]
    assert first(6, 5, 7, 8, 1, 2) == alone[9::2]
