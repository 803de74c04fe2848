#!/bin/sh
# Creates build/python-venv, installs the package into it with PyTorch, and runs the Python tests.
#   tools/test_python.sh [arguments of pytest]
# Tests run in as many processes as there are processors, of one thread each and at most 8, since each takes a gigabyte.
# PUMICE_PYTHON names another interpreter than python3, of 3.10 or later.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
python=${PUMICE_PYTHON:-python3}
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv" || {
    echo "pumice: cannot create a virtual environment; install the package python3-venv" >&2
    exit 1
  }
fi
# Build tools stay in the environment, so that building again is a matter of seconds.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  'scikit-build-core>=0.11' 'nanobind>=3.1,<4' 'nanobind-backend>=1.0,<2' 'numpy>=1.23' \
  'mypy>=1.10' 'pytest>=7' 'pytest-xdist>=3' 'safetensors>=0.4' 'torch>=2.4'
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
