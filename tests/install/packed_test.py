"""A test program that was carried elsewhere runs the `pumice` beside it, not the one of the build folder.

    packed_test.py PUMICE_CLI_TEST PUMICE
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

built, program = map(Path, sys.argv[1:])
with tempfile.TemporaryDirectory() as folder:
    moved = shutil.copy(built, folder)
    mark = Path(folder, "mark")
    beside = Path(folder, "pumice")
    beside.write_text(f'#!/bin/sh\necho "$1" >>{mark}\nexec {program} "$@"\n', encoding="utf-8")
    beside.chmod(0o755)
    done = subprocess.run([moved, "--gtest_filter=InfoTest.*"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{moved} fails beside another pumice:\n{done.stdout[-3000:]}{done.stderr}")
    if not mark.exists() or mark.read_text(encoding="utf-8").split().count("info") < 3:
        sys.exit(f"{moved} does not run the pumice beside it")
    knows = f"{program}\0".encode()
    if knows in built.read_bytes():
        sys.exit(f"{built} has the path {program} built in")
