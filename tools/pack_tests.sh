#!/usr/bin/env bash
# Packs what a machine with a GPU needs to test and measure this build, and to compile nothing but
# kernels: test programs, benchmarks, the command line and the wheel, with the libraries they load.
#   tools/pack_tests.sh [ARCHIVE]        by default build/packed/pumice-tests.tar.xz
# There: tar -xf ARCHIVE, then tools/test_packed.sh FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=${1:-build/packed/pumice-tests.tar.xz}
built=build/release
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$(dirname "$archive")"

programs=("$built"/bin/pumice "$built"/bin/pumice_*_test "$built"/bin/pumice_*_benchmark)
for program in "${programs[@]}"; do
  strip -o "$folder/bin/$(basename "$program")" "$program"
done
# The C and C++ runtimes are the other machine's own.
ldd "${programs[@]}" | awk '/=> \// { print $3 }' | sort -u |
  grep -Ev '/(ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so' |
  xargs -I{} cp -L {} "$folder/lib"
for wheel in build/dist/pumice-*.whl; do
  if [[ -e $wheel ]]; then
    cp "$wheel" "$folder"
  fi
done
# The library is in every program: a window as wide as the archive finds it again.
tar -C "$folder" -c . | xz --threads=1 --lzma2=preset=6,dict=512MiB >"$archive"
ls -l "$archive"
