"""Files of weights: one reader and one writer for Python and the program, and what files may try."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import stat
import subprocess
import sys
import threading

import pytest
import torch

import pumice
from pumice import _C
from pumice.convert import command, read_checkpoint
from pumice.models import MinkUNet42, SecondEncoder, pretrained

ROOT = pathlib.Path(__file__).parents[2]
EVIL = "a\x1b[31mb\x1b]0;t\x07\n\u202ecba" + "n" * 100


def file_of(header: str, data: bytes = b"") -> bytes:
    text = header.encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(shape: str = "[1]", offsets: str = "[0,4]", dtype: str = "F32") -> str:
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}'


LIES = {
    "twice": file_of(f'{{"a":{tensor()},"a":{tensor()}}}', bytes(4)),
    "overlaps": file_of(f'{{"a":{tensor()},"b":{tensor("[2]", "[0,8]")}}}', bytes(8)),
    "a header of": (10**6).to_bytes(8, "little") + b"{}",
    "too short": b"abc",
    "nested too deeply": file_of('{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "zero byte": file_of('{"a":' + tensor() + "}\0\0\0", bytes(4)),
    "not a JSON object": file_of("\ufeff{}"),
    "belong to none": file_of('{"a":' + tensor(offsets="[4,8]") + "}", bytes(8)),
    "known are F64": file_of('{"a":' + tensor(dtype="Q9") + "}", bytes(4)),
    "a file of torch.save": b"PK\x03\x04\x00\x00\x08\x08" + bytes(100),
}


@pytest.fixture
def program() -> pathlib.Path:
    beside = pathlib.Path(pumice.__file__).parent / "bin" / "pumice"
    path = pathlib.Path(os.environ.get("PUMICE_PROGRAM", beside))
    if not path.exists():
        pytest.skip(f"no program at {path}: name one in PUMICE_PROGRAM")
    return path


@pytest.mark.parametrize("said", LIES)
def test_a_file_that_lies_is_refused_with_the_programs_sentence(
    said: str, tmp_path: pathlib.Path, program: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lie.safetensors"
    path.write_bytes(LIES[said])
    with pytest.raises(pumice.UserError, match=said) as read:
        pumice.read_weights(path)
    with pytest.raises(pumice.UserError) as loaded:
        pumice.load_weights(torch.nn.Linear(1, 1), path)
    assert str(loaded.value) == str(read.value)
    assert command.main([str(path), "--from", "spconv"]) == 1
    assert capsys.readouterr().err == f"pumice: {read.value}\n"
    conv = subprocess.run([program, "conv", path, tmp_path / "o.safetensors"], capture_output=True, text=True)
    assert conv.stderr == f"pumice: {read.value}\n"


def test_a_header_of_any_length_is_read(tmp_path: pathlib.Path) -> None:
    """One of 128 bytes begins like a pickle, one of 19,280 like a zip archive."""
    for length in (128, 128 + 256, 19280):
        (tmp_path / "w").write_bytes(length.to_bytes(8, "little") + b"{}".ljust(length))
        assert pumice.read_weights(tmp_path / "w") == ({}, {})


def test_what_python_writes_is_what_the_program_writes(
    tmp_path: pathlib.Path, program: pathlib.Path
) -> None:
    """The same bytes: `conv` reads tensors and writes them again as they were."""
    coords = torch.tensor([[0, 0], [0, 1]], dtype=torch.int32)
    pumice.save_weights(
        {"coords": coords, "features": torch.ones(2, 1), "weight": torch.ones(1, 1, 1)}, tmp_path / "i"
    )
    subprocess.run(
        [program, "conv", tmp_path / "i", tmp_path / "o.safetensors", "--kernel", "1"], check=True, capture_output=True
    )
    pumice.save_weights({"coords": coords, "features": torch.ones(2, 1)}, tmp_path / "same")
    assert (tmp_path / "o.safetensors").read_bytes() == (tmp_path / "same").read_bytes()


def test_threads_that_save_under_one_name_never_leave_half_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "w.safetensors"
    failures: list[BaseException] = []

    def save_and_read(value: float) -> None:
        try:
            for _ in range(30):
                pumice.save_weights({"a": torch.full((500,), value)}, path)
                found = pumice.read_weights(path)[0]["a"]
                assert (found == found[0]).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=save_and_read, args=(value,)) for value in (1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".safetensors", ".pth"])
def test_what_is_replaced_keeps_its_mode_and_links_their_target(
    tmp_path: pathlib.Path, ending: str
) -> None:
    from pumice.convert import write_checkpoint

    def save(path: pathlib.Path) -> None:
        write_checkpoint(path, {"a": torch.ones(3)})

    path = tmp_path / f"w{ending}"
    save(path)
    path.chmod(0o600)
    other = tmp_path / "letter"
    other.write_text("dear")
    for name in (f"{path.name}.part", f"{path.name}.{os.getpid()}.part"):   # as guessed by others
        (tmp_path / name).symlink_to(other)
    save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and not path.is_symlink()
    assert other.read_text() == "dear"
    path.chmod(0o444)
    with pytest.raises(pumice.UserError, match="may not be written"):
        save(path)
    link = tmp_path / f"link{ending}"
    link.symlink_to(tmp_path / f"not yet{ending}")
    save(link)
    assert link.is_symlink() and (tmp_path / f"not yet{ending}").is_file()


def test_a_pipe_is_refused_without_waiting(tmp_path: pathlib.Path) -> None:
    """In a process of its own, which is ended where it waits."""
    for name in ("p.safetensors", "p.pth", "p.bin", "p.ply", "p.npz", "p.label"):
        os.mkfifo(tmp_path / name)
    script = f"""
import torch, pumice
from pumice.convert import read_checkpoint
from pumice.models import pretrained
folder = {str(tmp_path)!r}
def refused(call, name):
    try:
        call(f"{{folder}}/{{name}}")
    except pumice.UserError as error:
        assert "is not a regular file" in str(error), error
    else:
        raise AssertionError(name)
import pathlib
refused(pumice.read_weights, "p.safetensors")
refused(lambda path: pumice.load_weights(torch.nn.Linear(1, 1), path), "p.safetensors")
refused(pretrained, "p.safetensors")
for name in ("p.safetensors", "p.pth"):
    refused(lambda path: read_checkpoint(pathlib.Path(path)), name)
for name in ("p.bin", "p.ply", "p.npz"):
    refused(pumice.read_points, name)
refused(pumice.read_labels, "p.label")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=environment)


def test_names_from_files_never_reach_a_terminal_as_commands(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def check(text: str) -> None:
        assert all(c.isprintable() for line in text.splitlines() for c in line), repr(text)
        assert len(text.splitlines()) <= 1 and len(text) < 5000

    evil = tmp_path / f"{EVIL}.safetensors"
    state = {f"{EVIL}{i}.kernel": torch.randn(27, 4, 8) for i in range(2)}
    state["5000" + EVIL * 50 + ".kernel"] = torch.randn(27, 4, 8)
    pumice.save_weights(state, evil)
    assert command.main([str(evil), "--from", "minkowski", "-o", f"{evil}.pth"]) == 0
    said = capsys.readouterr().out
    for line in said.splitlines():
        check(line)
        assert len(line) < 600
    raised = []
    for call in (
        lambda: pumice.load_weights(torch.nn.Linear(1, 1), evil),
        lambda: pumice.read_weights(tmp_path / f"absent{EVIL}"),
        lambda: pumice.save_weights(state, tmp_path / EVIL / "w"),
        lambda: pumice.save_weights({EVIL * 50: torch.ones(1, dtype=torch.complex64)}, evil),
        lambda: pretrained(tmp_path / f"absent{EVIL}.safetensors"),
        lambda: pretrained(EVIL.replace(".", "")),
        lambda: read_checkpoint(tmp_path / f"absent{EVIL}.pth"),
        lambda: pumice.read_points(tmp_path / f"absent{EVIL}.ply"),
        lambda: pumice.read_points(os.fsencode(tmp_path) + b"/absent\xff.ply"),
        lambda: pumice.read_points(tmp_path / f"{EVIL}.docx"),
        lambda: pumice.read_labels(tmp_path / f"absent{EVIL}.label"),
    ):
        with pytest.raises(pumice.UserError) as error:
            call()
        raised.append(str(error.value))
        check(raised[-1])
    torch.save({EVIL: 1, "b": {EVIL: 2}}, tmp_path / f"{EVIL}.pth")
    for arguments in (
        [evil, "--from", "spconv"],
        [tmp_path / f"{EVIL}.pth", "--from", "spconv"],
        [tmp_path / f"{EVIL}.pth", "--from", "spconv", "--entry", EVIL],
        [evil, "--from", "minkowski", "-o", tmp_path / EVIL],
        [evil, "--from", "minkowski", "-o", tmp_path / "w.pth", "--rename", f".*={EVIL}"],
    ):
        assert command.main([str(argument) for argument in arguments]) == 1
        check(capsys.readouterr().err)


def test_an_error_keeps_its_words_and_can_be_pickled() -> None:
    for kind in (pumice.UserError, pumice.InternalError, pumice.Error):
        error = kind("size = 0: give a number above 0, ü")
        assert str(error) == "size = 0: give a number above 0, ü"
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(pumice.UserError()) == ""
    assert str(pumice.InternalError("a\n  at b")) == "a\n  at b"
    assert str(pumice.UserError("caf\udce9\x1b")) == "caf\\xe9\\x1b"


def small() -> MinkUNet42:
    return MinkUNet42(classes=5, width_factor=0.1)


def test_a_network_says_with_its_weights_what_it_is(
    tmp_path: pathlib.Path, program: pathlib.Path
) -> None:
    """Nothing but the file is needed to run it."""
    path = tmp_path / "w.safetensors"
    network = small()
    assert pumice.model_card(network) == {
        "network": "minkunet42", "in_channels": "4", "outputs": "5", "widths": "3,3,6,13,26,26,13,10,10",
    }  # fmt: skip
    pumice.save_weights(network, path, torch.float16)
    assert pumice.load_weights(small(), path) == pumice.model_card(network)
    scan = tmp_path / "scan.ply"
    subprocess.run([program, "simulate", "--beams", "32", "--out", scan], check=True, capture_output=True)
    run = [program, "run", "minkunet42", scan, "--voxel", "0.5", "--json", "--weights"]
    done = subprocess.run([*run, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["channels_out"] == 5 and said["trained"] is True

    # Without a card the shapes say which options fit, and the number of outputs.
    pumice.save_weights(network.state_dict(), path)
    done = subprocess.run([*run, path], capture_output=True, text=True)
    assert done.returncode == 1 and "the shapes fit --width-factor 0.1, so run with that" in done.stderr
    done = subprocess.run([*run, path, "--width-factor", "0.1"], capture_output=True, text=True)
    assert json.loads(done.stdout)["channels_out"] == 5
    with pytest.raises(pumice.UserError, match="its shapes fit width_factor=0.1"):
        pumice.load_weights(MinkUNet42(classes=5), path)


def test_what_training_knows_is_checked_and_read_back(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "w.safetensors"
    network = small()
    known = {"voxel_size": "0.1,0.1,0.2", "classes": "a,b,c,d,e", "made by": "hand"}
    pumice.save_weights(network, path, metadata=known)
    read = pretrained(path)
    assert read.classes == ("a", "b", "c", "d", "e") and read.voxel_size == (0.1, 0.1, 0.2)
    assert read.metadata == {**pumice.model_card(network), **known}
    before = path.read_bytes()
    for metadata, said in (
        ({"widths": "8,8,8,8,8,8,8,8,8"}, "metadata says widths = .* leave it out"),
        ({"network": "second"}, "metadata says network = 'second'"),
        ({"classes": "a,b"}, "one name for each of its 5 outputs"),
        ({"voxel_size": "large"}, 'voxel_size = "large"'),
        ({"voxel_size": 0.1}, "give str"),
    ):
        with pytest.raises(pumice.UserError, match=said):
            pumice.save_weights(network, path, metadata=metadata)
    assert path.read_bytes() == before


@pytest.mark.parametrize("size", ["big", "0.1,0.1", "-1", "nan", ""])
def test_a_voxel_size_that_is_none_is_refused_for_any_module(tmp_path: pathlib.Path, size: str) -> None:
    layer, path = torch.nn.Linear(2, 2), tmp_path / "w.safetensors"
    for model in (layer, layer.state_dict()):
        with pytest.raises(pumice.UserError, match=f"metadata\\['voxel_size'\\] = '{size}': give one positive number of metres"):
            pumice.save_weights(model, path, metadata={"voxel_size": size})
    assert not path.exists()
    pumice.save_weights(layer, path, metadata={"voxel_size": "0.1,0.1,0.2"})


def test_the_card_is_that_of_the_network_inside(tmp_path: pathlib.Path) -> None:
    network = small()
    compiled = torch.compile(network)
    assert pumice.model_card(compiled) == pumice.model_card(network)
    pumice.save_weights(compiled, tmp_path / "w")
    assert pumice.load_weights(torch.compile(small()), tmp_path / "w")["network"] == "minkunet42"
    assert pumice.model_card(SecondEncoder(5)) == {"network": "second", "in_channels": "5"}
    assert pumice.model_card(torch.nn.Linear(1, 1)) == {}


def test_installed_weights_are_found_as_the_program_finds_them() -> None:
    found = pathlib.Path(_C.find_weights("streets"))
    assert found.name == "streets.safetensors" and found.parent.name == "models"
    assert _C.find_weights("./streets") == "./streets"
