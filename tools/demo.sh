#!/usr/bin/env bash
# A trained network names the class of every point of a LiDAR sweep: of a simulated street, or of
# the scan named by SCAN= (and LABELS=, its SemanticKITTI .label file).
set -euo pipefail
cd "$(dirname "$0")/.."
pumice=build/release/bin/pumice
out=out/demo
mkdir -p "$out"

scan=${SCAN:-}
if [[ -z $scan ]]; then
  scan=$out/sweep.ply
  echo "Simulating a street scanned by a 64-beam sensor ..."
  # The network learnt on streets 0 to 1999 and was chosen by 1000000 to 1000015.
  "$pumice" simulate --seed 2000001 --out "$scan"
fi
echo
"$pumice" run minkunet42 "$scan" --weights streets ${LABELS:+--labels "$LABELS"} --repeat 3 \
  --out "$out/result.safetensors" --picture "$out/result.png" --html "$out/result.html"
if [[ -n ${SCAN:-} ]]; then
  echo
  echo "The network has seen simulated streets alone: on recorded ones it often errs."
fi
