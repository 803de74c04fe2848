#!/usr/bin/env bash
# A real network on a LiDAR sweep: simulated, or the one named by SCAN=.
set -euo pipefail
cd "$(dirname "$0")/.."
pumice=build/release/bin/pumice
out=out/demo
mkdir -p "$out"

scan=${SCAN:-}
if [[ -z $scan ]]; then
  scan=$out/sweep.ply
  echo "Simulating a street scanned by a 64-beam sensor ..."
  "$pumice" simulate --seed 1 --out "$scan"
fi
echo
"$pumice" run minkunet42 "$scan" --repeat 3 --out "$out/result.safetensors" --picture "$out/result.png"
echo
echo "The weights are seeded, not trained: the classes in the picture mean nothing yet."
