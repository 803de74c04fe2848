#!/bin/sh
# Creates build/python-venv with all that building and testing the package takes, PyTorch (gigabytes) among it.
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
# torch_geometric and scipy: graph layers are compared with PyG's, and graphs are made of SciPy's matrices.
# Build tools stay in the environment, so that building again is a matter of seconds.
exec "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  'scikit-build-core>=0.11' 'nanobind>=3.1,<4' 'nanobind-backend>=1.0,<2' 'numpy>=1.23' \
  'mypy>=1.10' 'pytest>=7' 'pytest-xdist>=3' 'safetensors>=0.4' 'torch>=2.4' 'torch_geometric>=2.5' 'scipy>=1.9'
