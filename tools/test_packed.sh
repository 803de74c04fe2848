#!/usr/bin/env bash
# Runs the tests of the device from what tools/pack_tests.sh packed, a program after the other, and counts.
#   tools/test_packed.sh FOLDER [STAGE ...]      stages as in jit coords; all of them by default
# Exit code 1 if a test fails.
set -uo pipefail

folder=$(cd "$1" && pwd)
shift
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PUMICE_CACHE=${PUMICE_CACHE:-$folder/kernel_cache}
stages=("$@")
if [[ ${#stages[@]} -eq 0 ]]; then
  for program in "$folder"/bin/pumice_*_test; do
    stage=${program##*/pumice_}
    stages+=("${stage%_test}")
  done
fi
failed=0
all_passed=0
for stage in "${stages[@]}"; do
  start=$SECONDS
  "$folder/bin/pumice_${stage}_test" --gtest_filter='*Gpu.*' >"$folder/$stage.log" 2>&1
  code=$?
  if grep -q '^\[==========\] Running 0 tests' "$folder/$stage.log"; then
    continue
  fi
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) .*/\1/p' "$folder/$stage.log")
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) .*/\1/p' "$folder/$stage.log")
  echo "$stage: ${passed:-0} passed, ${skipped:-0} skipped, exit code $code, $((SECONDS - start)) s"
  all_passed=$((all_passed + ${passed:-0}))
  if [[ $code -ne 0 ]]; then
    failed=1
    grep -E -B 15 '^\[  FAILED  \]' "$folder/$stage.log" | tail -60
  fi
done
if [[ $all_passed -eq 0 ]]; then
  echo "pumice: no test ran to its end: is there a CUDA driver?" >&2
  exit 1
fi
exit "$failed"
