"""A library in a process of its own, which may end without taking the benchmark along.

The child runs this file with a folder: it reads job.pt from there, then a line of JSON a command on standard input, and
answers with a line of JSON on what was its standard output; whatever libraries print goes to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(root), str(root / "peers")]

from adapters import Absent, first_line
from driving_suite.cases import Case, Job, Refusal, cases_of, layer_output_of, output_of
from driving_suite.energy import Meter
from driving_suite.passes import Extras, Round


TUNED = "pumice-tuned"  # Pumice layer by layer and compiled, with plans measured on the scans of the job
SECONDS_BEYOND = 20.0  # that an answer may take when the time for it is over: whoever asks begins nothing new by then


class Ended(Exception):
    """The process of a library is gone."""


class RefusedByChild(Exception):
    """What a library said that it cannot do."""


class RemotePasses:
    """As `passes.Passes`, in the child."""

    def __init__(self, child: Child, number: int) -> None:
        self.child, self.number = child, number

    def warm_up(self, passes: int) -> None:
        self.child.ask("warm_up", self.number, passes)

    def round(self, passes: int) -> Round:
        return Round(**self.child.ask("round", self.number, passes))

    def extras(self, passes: int, meter: Meter, seconds: float) -> Extras:
        return Extras(**self.child.ask("extras", self.number, passes, seconds))


class Child:
    """A library of `adapters.ADAPTERS`, or TUNED, that works on one job. `ask` raises Ended where it is gone,
    RefusedByChild for what it could not do. `seconds`: what TUNED may take for each task; its plans are kept in a store of
    its own, since plans that are in use stay so in all of a process. One that has not answered some time after `until`, of
    time.monotonic(), is ended."""

    def __init__(self, name: str, job: Job, seconds: float = 0, until: float = math.inf) -> None:
        self.name, self.until = name, until
        self.folder = tempfile.TemporaryDirectory(prefix="driving-")
        torch.save({"library": name, "job": job, "seconds": seconds}, Path(self.folder.name) / "job.pt")
        environment = dict(os.environ)
        if name == TUNED:
            environment["PUMICE_PLANS"] = str(Path(self.folder.name) / "plans.sqlite")
        self.process = subprocess.Popen(
            [sys.executable, __file__, self.folder.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def ask(self, what: str, *arguments: Any) -> Any:
        try:
            self.process.stdin.write(json.dumps([what, *arguments]) + "\n")
            self.process.stdin.flush()
            self.wait_for_answer(what)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            raise Ended(f"{self.name}: its process ended with {how} in “{what}”")
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedByChild(answer["error"])
        return answer["value"]

    def wait_for_answer(self, what: str) -> None:
        seconds = max(SECONDS_BEYOND, self.until - time.monotonic())
        if not math.isinf(seconds) and not select.select([self.process.stdout], [], [], seconds)[0]:
            self.process.kill()
            self.process.wait()
            raise Ended(f"{self.name}: no answer to “{what}” within {seconds:.0f} s")

    def version(self) -> str:
        return self.ask("version")

    def output(self, norms: str) -> tuple[torch.Tensor, torch.Tensor | None]:
        self.ask("output", norms)
        return torch.load(Path(self.folder.name) / "output.pt", weights_only=True)

    def layer_output(self) -> tuple[torch.Tensor, None]:
        self.ask("layer_output")
        return torch.load(Path(self.folder.name) / "output.pt", weights_only=True)

    def cases(self) -> tuple[list[Case], list[Refusal]]:
        rows, refusals = self.ask("cases")
        cases = [Case(*row, passes=RemotePasses(self, number)) for number, row in enumerate(rows)]
        return cases, [Refusal(*row) for row in refusals]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


class Served:
    """What the child does."""

    def __init__(self, folder: Path) -> None:
        from adapters import open_library
        from driving_suite.ablation import tuned_libraries

        given = torch.load(folder / "job.pt", weights_only=False)  # of the parent
        self.folder, self.job = folder, given["job"]
        is_tuned = given["library"] == TUNED
        self.libraries = tuned_libraries(given["seconds"]) if is_tuned else [open_library(given["library"])]
        self.library = self.libraries[0]
        self.made: list[Case] = []
        device = self.job.single[0].features.device
        uuid = str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else None
        self.meter = Meter(uuid)

    def version(self) -> str:
        return self.library.version()

    def output(self, norms: str) -> None:
        torch.save(output_of(self.library, self.job, norms), self.folder / "output.pt")

    def layer_output(self) -> None:
        torch.save(layer_output_of(self.library, self.job), self.folder / "output.pt")

    def cases(self) -> list[Any]:
        refusals: list[Refusal] = []
        for library in self.libraries:
            cases, refused = cases_of(library, self.job)
            self.made += cases
            refusals += refused
        rows = [(case.library, case.way, case.task, case.norms) for case in self.made]
        return [rows, [dataclasses.astuple(refusal) for refusal in refusals]]

    def warm_up(self, number: int, passes: int) -> None:
        self.made[number].passes.warm_up(passes)

    def round(self, number: int, passes: int) -> dict[str, float]:
        return dataclasses.asdict(self.made[number].passes.round(passes))

    def extras(self, number: int, passes: int, seconds: float) -> dict[str, Any]:
        return dataclasses.asdict(self.made[number].passes.extras(passes, self.meter, seconds))


def serve(folder: Path) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    served = None
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        try:
            served = served or Served(folder)
            answer = {"value": getattr(served, what)(*arguments)}
        except Exception as error:
            what = "" if isinstance(error, Absent) else f"{type(error).__name__}: "
            answer = {"error": what + first_line(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
