r"""Trains MinkUNet42 to name the class of every point, on simulated streets.

    python examples/train_segmentation.py --minutes 8 --out run
    pumice run minkunet42 scan.bin --weights run/model.safetensors --picture classes.png

Writes model.safetensors (the best weights so far, float16), checkpoint.pt (for --resume), curves.csv
and iou.txt. Ctrl-C ends the step under way and writes the checkpoint.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import training_options
from training_data import (
    LABELS,
    Batches,
    Draws,
    class_weights,
    streets,
    training_set,
    with_scales,
    without_scales,
)
from training_log import TrainingLog
from training_run import (
    WEIGHTS,
    CannotBegin,
    Stop,
    check_unchanged,
    check_unused,
    make_folder,
    stopped,
)
from training_state import State, one_cycle

import pumice
from pumice import data
from pumice.losses import lovasz_softmax
from pumice.metrics import Confusion
from pumice.models import MinkUNet42

SCRIPT = State.SCRIPT
VALIDATION_SEED, TEST_SEED = 1_000_000, 2_000_000
FIXED = ("widths", "voxel", "beams", "scans", "seed")  # for as long as a training is gone on with


@dataclasses.dataclass
class Since:
    """The last report, and the sum of the losses after it."""

    step: int
    seconds: float
    loss: torch.Tensor


class Training(State):
    """The state of a training and its streets: what is done with them."""

    log: TrainingLog  # once it begins

    def __init__(
        self, options: argparse.Namespace, model: MinkUNet42, saved: dict[str, Any] | None, stop: Stop
    ) -> None:
        super().__init__(options, model, saved)
        self.stop, self.out = stop, options.out

        def unchanged(first: int, count: int) -> data.VoxelDataset:
            scans = streets(first, count, options.beams, options.cache)
            return data.VoxelDataset(scans, LABELS, options.voxel, points=True)

        scans = streets(options.seed, options.scans, options.beams, options.cache)
        self.training = training_set(scans, options.voxel, options.mix, options.seed)
        few, device = min(4, options.workers), options.device
        self.validation = Batches(unchanged(VALIDATION_SEED, options.validation), device, few)
        self.test = Batches(unchanged(TEST_SEED, options.test), device, min(8, options.workers))

    def train(self) -> None:
        """Steps until there is no time left, with a validation now and then."""
        options = self.options
        weights = self.weigh_classes()
        draws = Draws(len(self.training), options.seed, self.drawn)
        batches = self.until_stopped(
            Batches(self.training, options.device, options.workers, draws, options.batch)
        )
        fresh = self.step == 0
        last_validation = self.seconds
        since = Since(self.step, self.seconds, torch.zeros((), device=options.device))
        self.log.progress(self.progress, "waiting for the first batch")
        while (progress := self.progress) < 1 and (batch := next(batches, None)) is not None:
            loss, rate = self.train_on(batch, weights, one_cycle(progress, options.rate))
            since.loss += loss
            if self.step == 3 and fresh:
                self.schedule_began = self.seconds  # kernels are compiled and workers run
            progress = self.progress
            if progress < 1 and (self.seconds - since.seconds > 1 or self.step == 1):
                since = self.report(since, rate, progress)
            is_due = self.seconds - last_validation > options.every
            if is_due and self.progress < 1 and not self.stop.asked:
                self.validate()
                self.save(self.out)
                last_validation = self.seconds
                since = Since(self.step, last_validation, torch.zeros_like(since.loss))
        if not self.stop.asked:
            self.report(since, one_cycle(1, options.rate), 1)

    def until_stopped(self, batches: Batches) -> Iterator[data.Batch]:
        """The batches, until a stop is asked for. A signal to the whole process group, as of `timeout` or a job
        scheduler, ends the processes of the loader too, which it then complains about."""
        try:
            for batch in batches:
                if self.stop.asked:
                    return
                yield batch
        except RuntimeError:
            if not self.stop.asked:
                raise

    def report(self, since: Since, rate: float, progress: float) -> Since:
        """A point of the curves and the bar. Waits for the device."""
        now, steps = self.seconds, self.step - since.step
        text = f"step {self.step}"
        if steps > 0:
            mean, speed = float(since.loss) / steps, steps * self.options.batch / (now - since.seconds)
            self.log.add(self.step, now, loss=mean, rate=rate, scans_per_s=speed)
            text += f", loss {mean:.3f}, {speed:.1f} scans/s"
        self.log.progress(progress, f"{text}, {now:.0f} s")
        return Since(self.step, self.seconds, torch.zeros_like(since.loss))

    def train_on(
        self, batch: data.Sample, weights: torch.Tensor, rate: float
    ) -> tuple[torch.Tensor, float]:
        """One step: its loss and its learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with self.autocast:
            scores = self.model(batch.tensor()).features
        scores = scores.float()
        loss = torch.nn.functional.cross_entropy(
            scores, batch.labels, weights, ignore_index=data.IGNORED
        ) + lovasz_softmax(scores, batch.labels)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        self.drawn += batch.items
        return loss.detach(), rate

    def weigh_classes(self) -> torch.Tensor:
        """float32 [classes], of the first scans."""
        count = min(24, len(self.training))
        labels = []
        for index in range(count):
            if self.stop.asked:
                break
            self.log.progress(0, f"counting classes, street {index + 1} of {count}")
            labels.append(self.training[index].labels)
        return class_weights(labels).to(self.options.device)

    @torch.no_grad()
    def measure(self, batches: Batches, what: str) -> Confusion | None:
        """Over points, not voxels. None where it was stopped."""
        self.log.say(f"step {self.step}: {what}")
        self.model.eval()
        confusion = Confusion(len(LABELS.names))
        for number, batch in enumerate(self.until_stopped(batches)):
            text = f"{what}, street {number + 1} of {len(batches)}"
            self.log.progress(number / len(batches), text)
            with self.autocast:
                scores = self.model(batch.tensor()).features
            confusion.add(batch.point_labels, scores.argmax(1)[batch.point_to_voxel])
        if not self.stop.asked:
            self.log.progress(1, f"{what} done, streets: {len(batches)}")
        self.model.train()
        return None if self.stop.asked else confusion

    def validate(self) -> None:
        """Writes the weights where they are the best so far."""
        started = self.seconds
        confusion = self.measure(self.validation, "validation")
        if confusion is None:
            return
        found = confusion.mean_iou()
        self.log.add(self.step, self.seconds, miou=found)
        self.log.say(f"step {self.step}: mIoU {found:.3f}")
        if found > self.best or not (self.out / WEIGHTS).exists():
            self.best = found
            self.write_model(confusion)
        each = (self.seconds - started) / len(self.validation)
        self.reserve = 15 + 1.5 * each * (len(self.test) + len(self.validation))

    def finish(self) -> None:
        """Measures the best weights on streets that nothing was chosen by."""
        self.validate()
        if self.stop.asked:
            return
        # What was written is what is measured: rounded to float16, its scales taken out again.
        last = {name: value.clone() for name, value in self.model.state_dict().items()}
        state, _ = pumice.read_weights(self.out / WEIGHTS)
        self.model.load_state_dict(without_scales(state), strict=False)
        confusion = self.measure(self.test, "test")
        self.model.load_state_dict(last)  # --resume with more steps goes on from the last weights
        if confusion is None:
            return
        table = confusion.table(LABELS.names)
        self.log.say(
            f"Points of streets never seen ({len(self.test)}), accuracy {confusion.accuracy():.4f}"
        )
        self.log.say(table)
        (self.out / "iou.txt").write_text(table + "\n")
        self.log.say(f"{self.out / WEIGHTS}: {os.path.getsize(self.out / WEIGHTS)} bytes")
        self.log.say(f"{self.step} steps in {self.seconds:.0f} s")
        self.finished = True

    def write_model(self, confusion: Confusion) -> None:
        metadata = {
            **pumice.model_card(self.model),
            "voxel_size": str(self.options.voxel),
            "features": "x,y,z,intensity",
            **LABELS.metadata(),
            "trained_on": f"simulated streets, {self.options.beams} beams",
            "mean_iou": f"{confusion.mean_iou():.4f}",
        }
        state = with_scales(self.model.state_dict())
        pumice.save_weights(state, self.out / WEIGHTS, torch.float16, metadata)


def make_model(widths: str) -> MinkUNet42:
    """Of a name, or of numbers with commas. Raises CannotBegin for anything else."""
    try:
        numbers = [int(width) for width in widths.split(",")] if "," in widths else widths
    except ValueError as error:
        raise CannotBegin(f"--widths {widths}: give a name, or nine numbers with commas") from error
    try:
        return MinkUNet42(4, len(LABELS.names), numbers)
    except pumice.UserError as error:
        raise CannotBegin(f"--widths {widths}: {error}") from error


def begin(arguments: Sequence[str] | None, stop: Stop) -> Training:
    """A new training, or with --resume the one of the folder. Raises CannotBegin."""
    options, saved = training_options.parse(arguments, __doc__.splitlines()[0], SCRIPT)
    torch.manual_seed(options.seed)
    model = make_model(options.widths)
    options.widths = ",".join(map(str, model.widths))
    if saved is None:
        check_unused(options.out)
    else:
        check_unchanged(options.out, saved["options"], {n: getattr(options, n) for n in FIXED})
    try:
        training = Training(options, model, saved, stop)
    except pumice.UserError as error:
        raise CannotBegin(str(error)) from error
    if training.finished and training.progress >= 1:
        ends = [f"--{name} {value:g}" for name in ("minutes", "steps") if (value := getattr(options, name)) is not None]
        raise CannotBegin(
            f"the training in {options.out} has ended after {training.step} steps, with {' and '.join(ends)}: give "
            "more of it, or another end by --steps or --minutes, to go on with it"
        )
    training.finished = False
    make_folder(options.out)
    training.log = TrainingLog(options.out, append=saved is not None)
    return training


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 2 it could not begin, 130 stopped by Ctrl-C."""
    with Stop() as stop:
        try:
            training = begin(arguments, stop)
        except CannotBegin as error:
            print(f"{SCRIPT}: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print(f"{SCRIPT}: stopped before the first step", file=sys.stderr)
            return 130
        log, options = training.log, training.options
        parameters = sum(p.numel() for p in training.model.parameters())
        log.say(
            f"MinkUNet42 of {parameters} parameters on {options.device}, {options.amp}; "
            f"{options.batch} scans a step, {options.workers} workers; simulated streets are kept in {options.cache}"
        )
        try:
            training.train()
            if not stop.asked:
                training.finish()
            training.save(options.out)
            if stop.asked:
                log.say(stopped(options.out, training.step))
        except KeyboardInterrupt:
            log.say(f"Stopped at once; the checkpoint in {options.out} is an earlier one, if any.")
        finally:
            log.close()
    return stop.exit_code


if __name__ == "__main__":
    sys.exit(main())
