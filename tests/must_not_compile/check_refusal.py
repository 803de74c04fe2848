"""A source compiles, and with PUMICE_MISUSE is refused with the words of its line "// fails with: …".

    check_refusal.py SOURCE COMPILER OPTION…
"""

from __future__ import annotations

import os
import re
import subprocess
import sys


def compiled(command: list[str]) -> tuple[bool, str]:
    """(whether it was, what the compiler said), in English and in ASCII."""
    done = subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True)
    return done.returncode == 0, done.stderr


def main() -> int:
    source, *command = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        expected = re.search(r"^// fails with: (.+)$", file.read(), re.MULTILINE)
    if expected is None:
        print(f"{source} has no line \"// fails with: …\"")
        return 1
    done, said = compiled([*command, source])
    if not done:
        print(f"{source} does not compile without PUMICE_MISUSE:\n{said}")
        return 1
    done, said = compiled([*command, "-DPUMICE_MISUSE", source])
    if done:
        print(f"{source} compiles with PUMICE_MISUSE")
        return 1
    errors = "\n".join(line for line in said.splitlines() if "error:" in line)
    if re.search(expected[1], errors) is None:
        print(f"{source} is refused with other words than {expected[1]!r}:\n{said}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
