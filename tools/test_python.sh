#!/bin/sh
# Creates build/python-venv, installs the package into it with PyTorch, and runs the Python tests.
#   tools/test_python.sh [arguments of pytest]
# Tests run in as many processes as there are processors, of one thread each and at most 8, since each takes a gigabyte.
# PUMICE_PYTHON names another interpreter than python3, of 3.10 or later.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
tools/python_environment.sh
rm -rf build/dist
# The compiler by the name that CMake finds by itself: under another one ccache finds nothing of build/release.
export CXX="${CXX:-c++}"
PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check \
  --no-build-isolation --no-deps --wheel-dir build/dist .
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
  --force-reinstall build/dist/pumice-*.whl
PUMICE_WHEEL=$(ls "$PWD"/build/dist/pumice-*.whl)
export PUMICE_WHEEL
processes=$(nproc)
if [ "$processes" -gt 8 ]; then
  processes=8
fi
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "$venv/bin/python" -m pytest -q -n "$processes" "$@"
