"""Checkpoints of other libraries: the layouts, their traps, and the command."""

from __future__ import annotations

import itertools
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import pumice
from pumice.convert import (
    LAYOUTS,
    Choices,
    convert_state,
    from_common,
    read_checkpoint,
    read_safetensors,
    to_common,
    write_checkpoint,
    write_safetensors,
)
from pumice.convert import command
from pumice.convert.layouts import parameter_shape
from pumice.convert.parity import error_of

SIZES = [(1, 1, 1), (3, 3, 3), (2, 2, 2), (1, 3, 3), (3, 1, 3), (2, 3, 3), (5, 3, 1), (4, 2, 2)]
GOLDEN = pathlib.Path(__file__).parent.parent / "nn/golden/minkunet42_spvnas.txt"


def weight_of(layout: str, size: tuple[int, ...], inputs: int = 4, outputs: int = 6) -> torch.Tensor:
    return torch.randn(parameter_shape(LAYOUTS[layout], size, inputs, outputs))


def run(*arguments: object) -> int:
    return command.main([str(argument) for argument in arguments])


@pytest.mark.parametrize("size", SIZES)
def test_layouts_are_the_written_ones(size: tuple[int, ...]) -> None:
    """Against the permutations to spconv's [out, k0, k1, k2, in], written out once for each library."""
    k0, k1, k2 = size
    inputs, outputs = 4, 6
    odd, point = (k0 * k1 * k2) % 2 == 1, k0 * k1 * k2 == 1

    def first_fastest(w: torch.Tensor) -> torch.Tensor:
        return w.reshape(k2, k1, k0, inputs, outputs).permute(4, 2, 1, 0, 3)

    def last_fastest(w: torch.Tensor) -> torch.Tensor:
        return w.reshape(k0, k1, k2, inputs, outputs).permute(4, 0, 1, 2, 3)

    written = {
        "pumice": last_fastest,
        "spconv1": lambda w: w.permute(4, 0, 1, 2, 3),
        "spconv": lambda w: w.reshape(inputs, outputs).T.reshape(outputs, 1, 1, 1, inputs) if point else w,
        "torchsparse": first_fastest if odd else last_fastest,
        "minkowski": first_fastest,
        "warpconvnet": last_fastest,
    }
    assert written.keys() == LAYOUTS.keys()
    for name, to_krsc in written.items():
        weight = weight_of(name, size)
        assert weight.dim() == (2 if point and name in ("torchsparse", "minkowski") else weight.dim())
        common = to_common(LAYOUTS[name], weight, size)
        assert torch.equal(common.permute(4, 0, 1, 2, 3), to_krsc(weight)), name


@pytest.mark.parametrize("source, target", list(itertools.permutations(LAYOUTS, 2)))
def test_there_and_back(source: str, target: str) -> None:
    for size in SIZES:
        weight = weight_of(source, size)
        names = {f"a.{LAYOUTS[source].parameter}": weight}
        sizes = Choices(kernel_size={"a": size})
        there = convert_state(names, source, target, sizes)
        back = convert_state(there.tensors, target, source, sizes)
        assert torch.equal(back.tensors[f"a.{LAYOUTS[source].parameter}"], weight)
        assert there.kernels[0].error is not None and there.kernels[0].error < 1e-12


@pytest.mark.parametrize("dimension", [1, 2, 4])
@pytest.mark.parametrize("source", ["minkowski", "spconv", "warpconvnet"])
def test_other_dimensions(source: str, dimension: int) -> None:
    size = (3, 2, 1, 3)[:dimension]
    name = f"a.{LAYOUTS[source].parameter}"
    choices = Choices(dimension=dimension, kernel_size={"a": size})
    result = convert_state({name: weight_of(source, size)}, source, "pumice", choices)
    assert result.kernels[0].size == size


def test_the_reference_is_dense_convolution_of_pytorch() -> None:
    """So that the check is not a mistake that agrees with itself."""
    from pumice.convert.parity import dense_reference

    grid = torch.randn(5, 6, 7, 4, dtype=torch.float64)
    weight = torch.randn(6, 3, 1, 5, 4, dtype=torch.float64)  # spconv's own
    found = dense_reference(LAYOUTS["spconv"], weight, (3, 1, 5), grid, False, (1, 0, 2))
    expected = F.conv3d(grid.permute(3, 0, 1, 2)[None], weight.permute(0, 4, 1, 2, 3), padding=(1, 0, 2))
    torch.testing.assert_close(found, expected[0].permute(1, 2, 3, 0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("library, size", [("spconv", (1, 1, 1)), ("torchsparse", (3, 3, 3)),
                                           ("minkowski", (2, 2, 2)), ("spconv1", (1, 3, 3))])
def test_the_check_sees_the_usual_mistakes(library: str, size: tuple[int, ...]) -> None:
    layout, weight = LAYOUTS[library], weight_of(library, size, 4, 4)
    right = to_common(layout, weight, size)
    assert error_of(layout, weight, size, right, 1, False, False) < 1e-12
    wrong = {
        "spconv": lambda: weight.permute(1, 2, 3, 4, 0),  # its shape taken at its word
        "torchsparse": lambda: weight.reshape(*size, 4, 4),  # the other order
        "minkowski": lambda: weight.reshape(*size, 4, 4),
        "spconv1": lambda: weight.transpose(3, 4),
    }[library]()
    assert error_of(layout, weight, size, wrong, 1, False, False) > 0.1


def test_a_strided_pointwise_layer_of_spconv_is_as_its_shape_says() -> None:
    weight = torch.randn(6, 1, 1, 1, 4)
    plain = convert_state({"a.weight": weight}, "spconv", "pumice").tensors["a.weight"]
    assert torch.equal(plain, weight.reshape(1, 4, 6))
    strided = Choices(strided=["a"])
    true = convert_state({"a.weight": weight}, "spconv", "pumice", strided).tensors["a.weight"]
    assert torch.equal(true[0], weight.reshape(6, 4).T)
    kernel = convert_state({"a.weight": weight}, "spconv", "minkowski", strided).tensors["a.kernel"]
    assert kernel.shape == (1, 4, 6)  # which says that it is strided, so the way back needs no word
    assert torch.equal(convert_state({"a.kernel": kernel}, "minkowski", "spconv").tensors["a.weight"], weight)


def test_the_axes_turn_round() -> None:
    weight = torch.randn(5, 3, 1, 2, 4)
    result = convert_state({"a.weight": weight}, "spconv", "pumice", Choices(reverse_axes=True))
    assert torch.equal(
        result.tensors["a.weight"], weight.permute(3, 2, 1, 4, 0).reshape(6, 4, 5)
    )


def test_groups() -> None:
    weight = torch.randn(27, 2, 3, 4)
    result = convert_state({"a.weight": weight}, "warpconvnet", "pumice")
    assert result.tensors["a.weight"].shape == (27, 3, 8)
    assert torch.equal(result.tensors["a.weight"][5, :, 4:], weight[5, 1])
    with pytest.raises(pumice.UserError, match="no layers of 2 groups"):
        convert_state({"a.weight": weight}, "warpconvnet", "spconv")


def test_names_and_biases() -> None:
    state = {
        "conv.kernel": torch.randn(27, 4, 8),
        "conv.bias": torch.randn(1, 8),
        "norm.bn.weight": torch.randn(8),
        "norm.bn.bias": torch.randn(8),
        "norm.bn.running_mean": torch.randn(8),
        "norm.bn.running_var": torch.rand(8),
        "norm.bn.num_batches_tracked": torch.tensor(7),
        "head.linear.weight": torch.randn(3, 8),
        "head.linear.bias": torch.randn(3),
    }
    there = convert_state(state, "minkowski", "spconv").tensors
    assert {name: tuple(tensor.shape) for name, tensor in there.items()} == {
        "conv.weight": (8, 3, 3, 3, 4), "conv.bias": (8,), "norm.weight": (8,), "norm.bias": (8,),
        "norm.running_mean": (8,), "norm.running_var": (8,), "norm.num_batches_tracked": (),
        "head.weight": (3, 8), "head.bias": (3,),
    }
    back = convert_state(there, "spconv", "minkowski").tensors
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)
    assert "norm.num_batches_tracked" not in convert_state(state, "minkowski", "pumice").tensors
    renamed = convert_state(state, "minkowski", "pumice", Choices(rename=[(r"^conv\.", "stem.0.")]))
    assert "stem.0.weight" in renamed.tensors
    with pytest.raises(pumice.UserError, match="two entries would be called x"):
        convert_state(state, "minkowski", "pumice", Choices(rename=[(".*", "x")]))


@pytest.mark.parametrize(
    "source, name, shape, option, argument",
    [
        ("torchsparse", "a.kernel", (9, 4, 8), "--kernel-size a.kernel=1,3,3", "kernel_size={'a.kernel': [1, 3, 3]}"),
        ("minkowski", "a.kernel", (7, 4, 8), "--kernel-size a.kernel=1,1,7", "kernel_size={'a.kernel': [1, 1, 7]}"),
        ("minkowski", "a.kernel", (27, 8), "--kernel-size a.kernel=1 for", "kernel_size={'a.kernel': [1]}) for"),
        ("minkowski", "a.kernel", (27, 8), "--drop a.kernel leaves it out", "Choices(drop=['a.kernel']) leaves it out"),
        ("spconv", "a.weight", (3, 3, 3, 16, 32), "--from spconv1;", "source='spconv1';"),
        ("spconv1", "a.weight", (32, 3, 3, 3, 16), "--from spconv;", "source='spconv';"),
        ("spconv", "a.weight", (3, 3, 3, 3, 3), "--kernel-size a.weight=3", "Choices(kernel_size={'a.weight': [3]})"),
        ("spconv", "a.anchors", (3, 3), "--keep a.anchors", "Choices(keep=['a.anchors'])"),
        ("torchsparse", "a.table", (3, 3, 3), "--drop a.table", "Choices(drop=['a.table'])"),
    ],
)
def test_what_a_shape_does_not_settle_is_asked_for_as_it_is_given(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], source: str, name: str, shape: tuple[int, ...],
    option: str, argument: str,
) -> None:  # fmt: skip
    """To the command as an option, in Python as an argument."""
    state = {name: torch.randn(shape)}
    torch.save(state, tmp_path / "net.pth")
    assert run(tmp_path / "net.pth", "--from", source) == 1
    said = capsys.readouterr().err
    assert option in said and "Choices" not in said
    with pytest.raises(pumice.UserError) as error:
        convert_state(state, source, "pumice")
    assert argument in str(error.value) and "--" not in str(error.value)


def test_wrong_choices_are_named() -> None:
    state = {"a.kernel": torch.randn(27, 4, 8), "b2.bias": torch.randn(8)}
    for choices, says in (
        (Choices(kernel_size={"b": [3]}), "Choices(kernel_size={'b': [3]}): there is no such entry; there are a."),
        (Choices(kernel_size={"a": [5]}), "125 offsets"),
        (Choices(kernel_size={"a": [3, 3]}), "one for each of 3 axes"),
        (Choices(keep=["c*"]), "Choices(keep=['c*']): there is no such entry"),
        (Choices(strided=["c*"]), "Choices(strided=['c*']): there is no such entry"),
        (Choices(rename=[("[", "b")]), "Choices(rename=[('[', 'b')]): this is not a regular expression"),
        (Choices(rename=[("^.*", "x")]), "two entries would be called x: change Choices.rename"),
    ):
        with pytest.raises(pumice.UserError) as error:
            convert_state(state, "torchsparse", "pumice", choices)
        assert says in str(error.value)
    with pytest.raises(pumice.UserError, match="no library known"):
        convert_state(state, "caffe", "pumice")


def torchsparse_of_golden() -> dict[str, torch.Tensor]:
    """MinkUNet42 as TorchSparse would have saved it."""
    state = {}
    for line in GOLDEN.read_text().splitlines():
        name, _, shape = line.partition(" ")
        numbers = [int(part) for part in shape.strip("[]").split(",")]
        if len(numbers) == 3:
            layer = name.removesuffix(".weight")
            state[f"{layer}.kernel"] = torch.randn(numbers[1:] if numbers[0] == 1 else numbers) * 0.05
        else:
            state[name] = torch.rand(numbers) + 0.5
            if name.endswith("running_var"):
                state[name.replace("running_var", "num_batches_tracked")] = torch.tensor(3)
    return state


def test_minkunet_of_torchsparse_gets_the_names_of_the_command(tmp_path: pathlib.Path) -> None:
    if not GOLDEN.exists():
        pytest.skip("the lists of names are not here")
    torch.save({"epoch": 3, "state_dict": torchsparse_of_golden()}, tmp_path / "net.pth")
    weights = tmp_path / "weights.safetensors"
    # Without its check, which takes a while for a network of this size.
    assert run(tmp_path / "net.pth", "--from", "torchsparse", "-o", weights, "--no-check") == 0
    found = {name: f"[{', '.join(map(str, t.shape))}]" for name, t in read_safetensors(weights).items()}
    assert found == dict(line.split(" ", 1) for line in GOLDEN.read_text().splitlines())
    program = os.environ.get("PUMICE_PROGRAM")
    if program is None:
        pytest.skip("PUMICE_PROGRAM names no `pumice` to read the result with")
    scan = str(tmp_path / "scan.ply")
    subprocess.run([program, "simulate", "--beams", "32", "--out", scan], check=True)
    subprocess.run([program, "run", "minkunet42", scan, "--weights", str(weights)], check=True)


def test_the_command(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = {"module.a.kernel": torch.randn(27, 4, 8), "module.b.kernel": torch.randn(8, 8)}
    torch.save(state, tmp_path / "net.pth")
    assert run(tmp_path / "net.pth", "--from", "minkowski", "--dtype", "float16") == 0
    said = capsys.readouterr().out
    assert "3x3x3" in said and "2 convolutions, each gives the same numbers" in said
    made = read_checkpoint(tmp_path / "net.pumice.safetensors")
    assert made["a.weight"].dtype == torch.float16 and made["b.weight"].shape == (1, 8, 8)
    again = tmp_path / "again.pth"
    program = [sys.executable, "-m", "pumice", "convert", tmp_path / "net.pumice.safetensors"]
    options = ["--from", "pumice", "--to", "spconv", "-o", again]
    subprocess.run([*map(str, program), *map(str, options)], check=True)
    assert read_checkpoint(again)["a.weight"].shape == (8, 3, 3, 3, 4)


@pytest.mark.parametrize("name", ["net.pth", "net.safetensors"])
def test_the_command_never_writes_over_its_input(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file, link = tmp_path / name, tmp_path / f"link-{name}"
    write_checkpoint(file, {"a.weight": torch.randn(8, 3, 3, 3, 4)})
    link.symlink_to(file)
    before = file.read_bytes()
    for source, output in ((file, file), (file, link), (link, file), (file, tmp_path / "." / name)):
        assert run(source, "--from", "spconv", "-o", output) == 1
        assert capsys.readouterr().err == (
            f"pumice: {output} would be read and written over; give the result another name\n"
        )
        assert file.read_bytes() == before


@pytest.mark.parametrize(
    "options, code, says",
    [
        (["--rename", "[=b"], 1, "--rename [=b: this is not a regular expression"),
        (["--rename", r"a=\9"], 1, "invalid group reference"),
        (["--keep", "b*"], 1, "--keep b*: there is no such entry; there are a.weight, ..."),
        (["--strided-pointwise", "b"], 1, "--strided-pointwise b: there is no such entry"),
        (["--kernel-size", "b=1x3x3"], 1, "--kernel-size b=1,3,3: there is no such entry"),
        (["--rename", "a"], 1, "give PATTERN=REPLACEMENT"),
        (["--kernel-size", "3"], 1, "--kernel-size 3: there is no = in it; give the layer too, as NAME=3"),
        (["--kernel-size", "a=b"], 1, "sizes are whole numbers"),
        (["-o", "a.bin"], 1, "ends in .safetensors"),
        (["--to", "caffe"], 2, "'caffe'"),
        (["--nothing"], 2, "`pumice convert --help` says what it takes"),
    ],
)
def test_mistakes_in_options_are_one_sentence(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, says: str
) -> None:
    torch.save({"a.weight": torch.randn(8, 3, 3, 3, 4)}, tmp_path / "net.pth")
    try:
        ended = run(tmp_path / "net.pth", "--from", "spconv", *options)
    except SystemExit as exit:
        ended = exit.code  # type: ignore[assignment]
    said = capsys.readouterr()
    assert ended == code and said.out == ""
    assert said.err.startswith("pumice: ") and said.err.count("\n") == 1 and says in said.err


def test_endings_are_read_in_upper_case_too(tmp_path: pathlib.Path) -> None:
    write_checkpoint(tmp_path / "A.SAFETENSORS", {"a": torch.ones(2)})
    assert read_checkpoint(tmp_path / "A.SAFETENSORS")["a"].tolist() == [1, 1]


class _Anything:
    pass


def test_files_that_are_refused(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = {"a.kernel": torch.randn(8, 4, 4)}
    torch.save({"state_dict": kernel, "object": _Anything()}, tmp_path / "object.pth")
    torch.save({"ema": kernel}, tmp_path / "ema.pth")
    torch.save({"model": kernel, "net": kernel}, tmp_path / "two.pth")
    (tmp_path / "text.pth").write_text("no checkpoint")
    (tmp_path / "hi.pth").write_text("hi\n")
    (tmp_path / "cut.pth").write_bytes((tmp_path / "two.pth").read_bytes()[:700])
    (tmp_path / "cut.safetensors").write_bytes(b"\xff" * 20)
    for file, says in (
        ("object.pth", "save model.state_dict() alone"),
        ("ema.pth", "name one, as --entry ema"),
        ("two.pth", "several state dicts"),
        ("text.pth", "is no checkpoint"),
        ("hi.pth", "hi.pth is not read"),
        ("cut.pth", "cut.pth is not read"),
        ("cut.safetensors", "is not a safetensors file"),
        ("absent.pth", "no such file"),
    ):
        assert run(tmp_path / file, "--from", "torchsparse") == 1
        said = capsys.readouterr().err
        assert says in said and "\x1b" not in said, file
    assert run(tmp_path / "ema.pth", "--from", "torchsparse", "--entry", "ema") == 0
    with pytest.raises(pumice.UserError, match="entries 'ema': name one, as entry='ema'$"):
        read_checkpoint(tmp_path / "ema.pth")
    absent = str(tmp_path / "absent" / "a.safetensors")
    assert run(tmp_path / "ema.pth", "--from", "torchsparse", "--entry", "ema", "-o", absent) == 1
    assert "there is no folder" in capsys.readouterr().err
    assert run(tmp_path / "ema.pth", "--from", "spconv", "--entry", "ema") == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_safetensors_keep_every_element(tmp_path: pathlib.Path, dtype: torch.dtype) -> None:
    tensors = {
        "matrix": (torch.randn(3, 5) * 4).to(dtype).T,
        "none": torch.zeros(0, 4, dtype=dtype),
        "number": torch.ones((), dtype=dtype),
    }
    write_safetensors(tmp_path / "a.safetensors", tensors)
    found = read_safetensors(tmp_path / "a.safetensors")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor) and found[name].dtype == dtype


def test_a_recorded_map_is_centred_and_mirrored() -> None:
    """The map of a 3x3x3 kernel over a real scan, recorded from another engine: as in every layout here,
    offsets k and 26 - k are mirror images, and offset 13 is the identity."""
    file = pathlib.Path(os.environ.get("PUMICE_DATA", "")) / "maps/minkunet_semantickitti_level0_map.pth"
    if not file.is_file():
        pytest.skip("PUMICE_DATA names no folder with recorded maps")
    held = torch.load(file, map_location="cpu", weights_only=True)
    first = held["kpos"].tolist()
    pairs = [
        set(zip(held["imap"][a:b].tolist(), held["omap"][a:b].tolist())) for a, b in zip(first, first[1:])
    ]
    counts = held["knnz"].tolist()
    assert [len(found) for found in pairs] == counts
    for k in range(13):
        assert {(o, i) for i, o in pairs[k]} == pairs[26 - k]
    assert pairs[13] == {(row, row) for row in range(held["in_nnz"])}


def test_arrays_are_taken_for_tensors() -> None:
    tensors = {"a.weight": torch.randn(8, 3, 3, 3, 4), "a.bias": torch.randn(8)}
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    arrays["a.bias"].flags.writeable = False  # as of a file that is mapped into memory
    expected, found = (convert_state(state, "spconv", "pumice").tensors for state in (tensors, arrays))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_what_is_no_tensor_is_named() -> None:
    weight = torch.ones(8, 3, 3, 3, 4)
    for state, words in (
        ({"a.weight": weight, "epoch": 3}, "epoch is no tensor, but of type int: .*Choices\\(drop=\\['epoch'\\]\\)"),
        ({"a.weight": [1.0]}, "a.weight is no tensor, but of type list"),
        ({"a.names": np.array(["a"])}, "a.names is an array of <U1: give numbers"),
        (torch.nn.Linear(2, 2), "state is a Linear: give tensors by name"),
    ):
        with pytest.raises(pumice.UserError, match=words):
            convert_state(state, "spconv", "pumice")  # type: ignore[arg-type]
    assert convert_state({"a.weight": weight, "epoch": 3}, "spconv", "pumice", Choices(drop=["epoch"])).dropped == ["epoch"]


@pytest.mark.parametrize("state", [{}, {"a.weight": torch.ones(8, 3, 3, 3, 4)}, {"head.weight": torch.ones(8, 4)}])
def test_a_state_without_convolutions_is_refused_as_the_command_does(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], state: dict[str, torch.Tensor]
) -> None:
    said = "has no convolution as minkowski writes them in 3 dimensions: change"
    with pytest.raises(pumice.UserError, match=f"^state {said} source or Choices.dimension$"):
        convert_state(state, "minkowski", "pumice")
    if state:
        torch.save(state, tmp_path / "net.pth")
        assert run(tmp_path / "net.pth", "--from", "minkowski") == 1
        assert f"net.pth {said} --from or --dimension\n" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.safetensors"))


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        (Choices(kernel_size={"a": 3}), "Choices.kernel_size['a'] = 3: give a list, as [3]"),  # type: ignore[dict-item]
        (Choices(kernel_size={"a": "3"}), "Choices.kernel_size['a'] = '3': give a list"),  # type: ignore[dict-item]
        (Choices(kernel_size={"a": [1.5]}), "Choices.kernel_size['a'] = 1.5: give a whole number"),  # type: ignore[list-item]
        (Choices(kernel_size=[1, 3, 3]), "Choices.kernel_size is a list: give sizes by name"),  # type: ignore[arg-type]
        ({"kernel_size": {"a": [3]}}, "choices is a dict: give pumice.convert.Choices("),
        ({}, "choices is a dict: give pumice.convert.Choices("),
    ],
)
def test_choices_of_another_kind_are_named(choices: Any, says: str) -> None:
    with pytest.raises(pumice.UserError) as error:
        convert_state({"a.kernel": torch.randn(27, 4, 8)}, "minkowski", "pumice", choices)
    assert says in str(error.value)
