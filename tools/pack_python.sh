#!/usr/bin/env bash
# Packs the Python package of this build, with pytest, for a machine that has PyTorch and a GPU and where nothing can be
# installed.
#   tools/pack_python.sh [FOLDER]        by default build/packed/python; what is there is replaced
# There, beside tests/ and benchmarks/ of this checkout: PYTHONPATH=FOLDER python3 -m pytest -n 10 --dist worksteal -k "cuda or gpu_test" tests/python
# PUMICE_PACK_PYTHON is that machine's Python, by default 3.12.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-build/packed/python}
wheels=(build/dist/pumice-*.whl)
wheel=${wheels[-1]}
if [[ ! -e $wheel ]]; then
  echo "pumice: there is no wheel in build/dist; run \`make python\` first" >&2
  exit 1
fi
rm -rf "$folder"
mkdir -p "$folder"
python3 -m zipfile -e "$wheel" "$folder"
find "$folder" -name '*.so' -exec strip {} +
chmod +x "$folder"/pumice/bin/* 2>/dev/null || true   # a zip archive keeps no modes
# nanobind-backend is part of the package's extension; the others are for tests.
python3 -m pip install --quiet --disable-pip-version-check --target "$folder" --upgrade \
  --only-binary=:all: --implementation cp --python-version "${PUMICE_PACK_PYTHON:-3.12}" \
  --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
  'nanobind-backend>=1.0,<2' 'pytest>=7' 'pytest-xdist>=3'
du -sh "$folder"
