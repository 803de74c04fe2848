#!/usr/bin/env bash
# Runs networks under the tools of NVIDIA's compute-sanitizer, layer by layer and as graphs, and counts what they find.
#   tools/sanitize_device.sh FOLDER small|real|kernels [TOOL ...]
# FOLDER is build/release, or what an archive of tools/pack_tests.sh was unpacked to. TOOL is memcheck, racecheck, initcheck
# or synccheck; by default all four for `small`, memcheck and initcheck for `real`. One process a tool and case.
#   small     a street in some 1,400 voxels, with the kernels that a whole scan would run (PUMICE_KERNEL_ROWS)
#   real      a whole scan
#   kernels   which kernels each runs, and that `small` misses none of `real`; without a tool
# SCAN=FILE takes another scan than a simulated one; NETWORKS, PRECISIONS and MODES ("eager graph") choose from the cases;
# LIMIT=SECONDS ends a case that takes longer, 540 by default. Logs go to FOLDER/sanitizer, the summary to the terminal.
# Exit code 1 if a tool found something or a case did not end, 2 where nothing can be run.
set -uo pipefail

usage() {
  sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
[[ $# -ge 2 ]] || usage
folder=$(cd "$1" && pwd) || exit 2
size=$2
shift 2
case $size in
  small) tools=(memcheck initcheck synccheck racecheck) ;;
  real) tools=(memcheck initcheck) ;;
  kernels) tools=() ;;
  *) usage ;;
esac
[[ $# -gt 0 ]] && tools=("$@")

sanitizer=${SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
if [[ $size != kernels ]] && ! "$sanitizer" --version >/dev/null 2>&1; then
  echo "compute-sanitizer is not at $sanitizer: install the CUDA toolkit's, or name it by SANITIZER" >&2
  exit 2
fi
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PUMICE_CACHE=${PUMICE_CACHE:-$folder/kernel_cache}
logs=$folder/sanitizer
mkdir -p "$logs"
pumice=$folder/bin/pumice
scan=${SCAN:-$logs/street.ply}
if [[ -z ${SCAN:-} && ! -e $scan ]]; then
  "$pumice" simulate --seed 1 --out "$scan" >/dev/null || exit 1
fi
read -ra networks <<<"${NETWORKS:-minkunet42 centerpoint second}"
read -ra precisions <<<"${PRECISIONS:-f32 f16}"
read -ra modes <<<"${MODES:-eager graph}"
limit=${LIMIT:-540}

# What a small scan has to be told, so that each of its levels gets the tiles of a whole one's: the
# factors cover what `kernels` finds.
declare -A small_voxel=([minkunet42]=2 [centerpoint]=1.6 [second]=1.6)
declare -A small_factors=([minkunet42]="32 96" [centerpoint]="32 96" [second]="64 256")
factors_of() {   # NETWORK SIZE
  if [[ $2 == real ]]; then
    echo 1
  else
    echo "${FACTORS:-${small_factors[$1]}}"
  fi
}

# command NETWORK PRECISION MODE SIZE: the words of a run.
command_of() {
  words=("$pumice" run "$1" "$scan" --device cuda --precision "$2")
  [[ $3 == graph ]] && words+=(--graph --repeat 2)
  [[ $4 == small ]] && words+=(--voxel "${small_voxel[$1]}")
}

# kernels_of FACTOR: the names of what a run loads, one a line. Where it fails, its last words and exit code 2.
kernels_of() {
  if ! PUMICE_LOG=kernel PUMICE_KERNEL_ROWS=$1 "${words[@]}" >/dev/null 2>"$logs/said.txt"; then
    echo "${words[*]} failed: $(tail -1 "$logs/said.txt")" >&2
    exit 2
  fi
  sed -n 's/^\[pumice [^]]*\] kernel: \(.*\) for sm_[0-9a-z]*: .*/\1/p' "$logs/said.txt" | sort -u
}

failed=0
if [[ $size == kernels ]]; then
  for network in "${networks[@]}"; do
    for precision in "${precisions[@]}"; do
      for mode in "${modes[@]}"; do
        command_of "$network" "$precision" "$mode" real
        kernels_of 1 >"$logs/real.txt"
        command_of "$network" "$precision" "$mode" small
        : >"$logs/small.txt"
        for factor in $(factors_of "$network" small); do
          kernels_of "$factor" >>"$logs/small.txt"
        done
        missing=$(sort -u "$logs/small.txt" | comm -23 "$logs/real.txt" -)
        echo "$network $precision $mode: $(wc -l <"$logs/real.txt") kernels, $(grep -c . <<<"$missing") of them not in small"
        if [[ ! -s $logs/real.txt || -n $missing ]]; then
          failed=1
          echo "$missing"
        fi
      done
    done
  done
  exit "$failed"
fi

# sanitize TOOL NAME: runs `words` under a tool and says what came of it.
sanitize() {
  local tool=$1 name=$2 log=$logs/$1-$2.log start=$SECONDS
  timeout "$limit" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 "${words[@]}" >"$log" 2>&1
  local code=$? summary
  summary=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -1 | sed 's/^=* *//')
  if [[ $code -eq 124 ]]; then
    summary="not done after $limit s"
  fi
  echo "$tool $name: ${summary:-exit code $code, no summary}, $((SECONDS - start)) s"
  if [[ $code -ne 0 ]]; then
    failed=1
    grep -E '^=========' "$log" | head -12
  fi
}

for tool in "${tools[@]}"; do
  for network in "${networks[@]}"; do
    for precision in "${precisions[@]}"; do
      for mode in "${modes[@]}"; do
        command_of "$network" "$precision" "$mode" "$size"
        for factor in $(factors_of "$network" "$size"); do
          export PUMICE_KERNEL_ROWS=$factor
          sanitize "$tool" "$network-$precision-$mode-$size-$factor"
        done
      done
    done
  done
done
exit "$failed"
