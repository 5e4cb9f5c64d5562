#!/usr/bin/env bash
# Makes a Debian 12 machine ready for Weft: installs the packages that are missing and builds build/release.
# It may be run again at any time; where everything is there it takes a second.
#
#   scripts/setup.sh [--no-build] [build|lint|peers|all]...
#
#   build   what the library, tools, tests and benches need (default)
#   lint    what scripts/lint.sh needs
#   peers   what Weft is measured against
#   all     the three
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }

build_packages=(g++ cmake ninja-build make ccache pkg-config git ca-certificates
  libboost1.81-dev libhwy-dev libsodium-dev libcli11-dev libspdlog-dev libfmt-dev libexpected-dev
  libgtest-dev libgmock-dev libbenchmark-dev iproute2 procps util-linux hostname python3)
lint_packages=(clang-format clang-tidy python3)
peer_packages=(openmpi-bin libopenmpi-dev mpich libmpich-dev python3-torch libgloo-dev iperf3)

wants_build=yes
packages=()
groups=()
for word in "$@"; do
  case "$word" in
    --no-build) wants_build=no ;;
    build | lint | peers | all) groups+=("$word") ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "setup: unknown argument \"$word\"" >&2
      usage >&2
      exit 2
      ;;
  esac
done
for group in "${groups[@]:-build}"; do
  case "$group" in
    build) packages+=("${build_packages[@]}") ;;
    lint) packages+=("${lint_packages[@]}") ;;
    peers) packages+=("${peer_packages[@]}") ;;
    all) packages+=("${build_packages[@]}" "${lint_packages[@]}" "${peer_packages[@]}") ;;
  esac
done

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "setup: installing packages needs root or sudo; missing: ${missing[*]}" >&2
    exit 1
  fi
}

# A package that is installed shows "ii"; a question to dpkg is quick where one to apt is not.
missing=()
installed=$(dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
for package in "${packages[@]}"; do
  grep -qxF "ii  $package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  echo "setup: installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [[ $wants_build == yes ]]; then
  [[ -f build/release/build.ninja ]] || cmake --preset release
  cmake --build --preset release --parallel "${WEFT_JOBS:-$(nproc)}"
fi
