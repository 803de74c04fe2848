#!/usr/bin/env bash
# Fetches NVRTC 12 from PyPI into build/nvrtc/12, for the tests that compile kernels with it beside
# whatever NVRTC is installed. Where it cannot, it says so, once, and those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

# 12.8 is the first that knows sm_100 and sm_120.
package=nvidia-cuda-nvrtc-cu12==12.9.86
folder=build/nvrtc/12
[[ -e $folder/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 || -e $folder/not_fetched ]] && exit 0

mkdir -p "$folder"
if python3 -m pip install --quiet --no-deps --no-compile --disable-pip-version-check --retries 0 \
    --timeout 20 --root-user-action ignore --target "$folder" "$package" 2>"$folder/not_fetched"; then
  rm "$folder/not_fetched"
else
  echo "pumice: $package is not fetched, so nothing is tested with NVRTC 12: $(tail -n 1 "$folder/not_fetched"); to try again, remove $folder" >&2
fi
