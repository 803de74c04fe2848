#!/usr/bin/env bash
# Runs the tests of the device from what tools/pack_tests.sh packed, each stage in several processes, and counts.
#   tools/test_packed.sh FOLDER [STAGE ...]      stages as in jit coords; all of them by default
# JOBS is how many processes there are at a time, by default one a processor; LIMIT_S after how many seconds one of them is
# stopped, by default 600. Logs lie in FOLDER/logs.
# Exit code 1 if a test fails, or a process is stopped, ends early or does not begin.
set -uo pipefail

folder=$(CDPATH='' cd -- "${1:?the folder of the unpacked archive}" && pwd) || exit 1
shift
if [[ ! -d $folder/bin ]]; then
  echo "pumice: $folder has no bin: give the folder in which the archive was unpacked" >&2
  exit 1
fi
export folder
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PUMICE_CACHE=${PUMICE_CACHE:-$folder/kernel_cache}
export LIMIT_S=${LIMIT_S:-600}
jobs=${JOBS:-$(nproc)}
parts=$((jobs < 8 ? jobs : 8))
logs=$folder/logs
rm -rf "${folder:?}/logs"
mkdir -p "$logs"

stages=("$@")
if [[ ${#stages[@]} -eq 0 ]]; then
  for program in "$folder"/bin/pumice_*_test; do
    stage=${program##*/pumice_}
    stages+=("${stage%_test}")
  done
fi

run_part() {   # stage, part, how many parts
  GTEST_SHARD_INDEX=$2 GTEST_TOTAL_SHARDS=$3 timeout --foreground -k 10 "$LIMIT_S" \
    "$folder/bin/pumice_$1_test" --gtest_filter='*Gpu.*' >"$folder/logs/$1.$2" 2>&1
  printf '\npumice: exit code %s\n' $? >>"$folder/logs/$1.$2"
}
export -f run_part

start=$SECONDS
failed=0
# The first parts of all stages, then the second ones: those that compile the same kernels begin apart.
for ((part = 0; part < parts; ++part)); do
  for stage in "${stages[@]}"; do
    echo "$stage $part $parts"
  done
done | xargs -P "$jobs" -L 1 bash -c 'run_part "$@"' run_part || failed=1

sum_of() {   # a log, words: what GoogleTest says of them, 0 where it did not come to that
  sed -n "s/^\[  $2 *\] \([0-9]*\) tests\{0,1\}[.,].*/\1/p" "$1" | head -1 | grep . || echo 0
}
all_passed=0
for stage in "${stages[@]}"; do
  passed=0
  skipped=0
  bad=()
  for ((part = 0; part < parts; ++part)); do
    log=$logs/$stage.$part
    [[ -e $log ]] || echo "pumice: did not begin" >"$log"
    passed=$((passed + $(sum_of "$log" PASSED)))
    skipped=$((skipped + $(sum_of "$log" SKIPPED)))
    [[ $(tail -1 "$log") == 'pumice: exit code 0' ]] || bad+=("$log")
  done
  [[ $passed -eq 0 && $skipped -eq 0 && ${#bad[@]} -eq 0 ]] && continue   # has no tests of the device
  echo "$stage: $passed passed, $skipped skipped"
  all_passed=$((all_passed + passed))
  for log in "${bad[@]}"; do
    failed=1
    echo "$stage, part ${log##*.}: $(tail -1 "$log")"
    grep -E -B 15 '^\[  FAILED  \]' "$log" | tail -60 || tail -20 "$log"
  done
done
echo "$all_passed passed in $((SECONDS - start)) s"
if [[ $all_passed -eq 0 ]]; then
  echo "pumice: no test ran to its end: is there a CUDA driver?" >&2
  exit 1
fi
exit "$failed"
