#!/usr/bin/env bash
# How fast Pumice is here, and beside spconv in the same run where a Python has it.
#
#     tools/bench.sh [SCAN]                       a simulated sweep, or the scan named
#     PEER_PYTHON=venv/bin/python tools/bench.sh  also benchmarks/peers/side_by_side.py
#
# THREADS (all processors), REPEAT (5), SCALING_REPEAT (3) and OUT (out/bench) may be set, and SCALING_SCAN,
# of which the last measurement makes copies (a simulated street). Every figure is the median of REPEAT runs after
# one that warms up; the JSON and CSV records lie in OUT.
set -euo pipefail
cd "$(dirname "$0")/.."
pumice=build/release/bin/pumice
out=${OUT:-out/bench}
repeat=${REPEAT:-5}
threads=${THREADS:-$(nproc)}
mkdir -p "$out"

if [[ ! -x $pumice ]]; then
  echo "bench.sh: $pumice is not built; run 'make bench' or 'make build'" >&2
  exit 1
fi
scan=${1:-}
if [[ -z $scan ]]; then
  scan=$out/sweep.ply
  "$pumice" simulate --seed 1 --out "$scan"
elif [[ ! -r $scan ]]; then
  echo "bench.sh: $scan cannot be read; name a scan, or none for a simulated one" >&2
  exit 1
fi

echo "== machine"
"$pumice" doctor
echo "load $(cut -d' ' -f1-3 /proc/loadavg); $threads threads; median of $repeat after one warm-up; scan $(basename "$scan")"

common=(--threads "$threads" --repeat "$repeat")
echo; echo "== voxels, maps and layers"
"$pumice" bench layers --scan "$scan" "${common[@]}" --csv "$out/layers.csv"
echo; echo "== networks, float32"
"$pumice" bench networks --scan "$scan" "${common[@]}" --csv "$out/networks.csv"
echo; echo "== networks, bf16 storage"
"$pumice" bench networks --scan "$scan" "${common[@]}" --precision bf16 --csv "$out/networks_bf16.csv"
echo; echo "== time against the number of voxels"
"$pumice" bench scaling --threads "$threads" --repeat "${SCALING_REPEAT:-3}" \
  ${SCALING_SCAN:+--scan "$SCALING_SCAN"} --json > "$out/scaling.json"
tools/plot_scaling.py "$out/scaling.json" "$out/scaling.svg"

if [[ -n ${PEER_PYTHON:-} ]]; then
  echo; echo "== beside spconv"
  "$PEER_PYTHON" benchmarks/peers/side_by_side.py "$scan" --pumice "$pumice" --threads "$threads" \
    --rounds "$repeat" --record "$out/side_by_side.json"
else
  echo; echo "spconv left out: set PEER_PYTHON to a Python that has it (benchmarks/peers/README.md)"
fi
echo; echo "records in $out"
