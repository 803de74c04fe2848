#!/usr/bin/env bash
# Installs the packages of tools/packages.txt that are missing, or names them.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v dpkg-query >/dev/null; then
  echo "pumice: this is not Debian or Ubuntu; install the equivalents of: $(awk '!/^#/ { printf "%s ", $1 }' tools/packages.txt)" >&2
  exit 0   # the configure step names whatever is really missing
fi

missing=()
while read -r package _; do
  [[ -z $package || $package == \#* ]] && continue
  dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
done < tools/packages.txt
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo)
else
  echo "pumice: missing packages and no root or password-less sudo to install them: run 'sudo apt-get install ${missing[*]}', then try again." >&2
  exit 1
fi
echo "pumice: installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
