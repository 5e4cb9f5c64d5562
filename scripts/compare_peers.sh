#!/usr/bin/env bash
# Measures Weft beside Open MPI, MPICH and Gloo on this machine, interleaved on the same processors, and prints medians
# and ratios. Installs the peers with apt where they are missing, and builds the small programs in bench/peers.
#
#   scripts/compare_peers.sh [--case shm2|shm4|tcp2|p2p]... [--quick] [--json] [--peers-only] [--rounds N] [--cpus LIST]
#
#   shm2  all-reduce, 2 ranks, one host       tcp2  all-reduce, one rank on each of two test hosts, over TCP
#   shm4  all-reduce, 4 ranks, one host       p2p   send and receive between two test hosts, over TCP
#
# Without --case: all four. --json prints one JSON document per case instead of tables. --quick: fewer sizes and rounds.
# How it is measured: bench/peers/peer.h and docs/peers.md.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' scripts/compare_peers.sh; }

cases=()
pass=()
while (($# > 0)); do
  case $1 in
    --case)
      [[ ${2:-} =~ ^(shm2|shm4|tcp2|p2p)$ ]] || { echo "compare_peers: --case wants shm2, shm4, tcp2 or p2p" >&2; exit 64; }
      cases+=("$2")
      shift 2
      ;;
    --rounds | --cpus) pass+=("$1" "${2:?compare_peers: $1 wants a value}"); shift 2 ;;
    --quick | --json | --peers-only) pass+=("$1"); shift ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "compare_peers: unknown argument \"$1\"" >&2
      usage >&2
      exit 64
      ;;
  esac
done
((${#cases[@]} > 0)) || cases=(shm2 shm4 tcp2 p2p)

missing=()
for package in openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev python3-torch python3-numpy iperf3 iproute2 util-linux g++; do
  [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *"ok installed" ]] || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
  echo "compare_peers: installing ${missing[*]}" >&2
  as_root=()
  ((EUID == 0)) || as_root=(sudo)
  "${as_root[@]}" apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
fi

readonly out=build/peers
mkdir -p "$out"
build() {  # output, compiler..., source last
  local output=$out/$1 source=${*: -1}
  shift
  [[ $output -nt $source && $output -nt bench/peers/peer.h ]] && return
  echo "compare_peers: building $output" >&2
  "${@:1:$#-1}" -O3 -o "$output" "$source" $libraries
}
libraries=""
for mpi in openmpi mpich; do
  for program in all_reduce p2p; do build "mpi_${program}_$mpi" "mpicc.$mpi" "bench/peers/mpi_$program.c"; done
done
for program in limit_all_reduce limit_moves; do build $program g++ -std=c++20 bench/peers/$program.cc; done
libraries="-lgloo -lpthread"
build gloo_all_reduce g++ -std=c++20 bench/peers/gloo_all_reduce.cc

for name in "${cases[@]}"; do
  hosts=()
  [[ $name != tcp2 && $name != p2p ]] || hosts=(scripts/test_hosts.sh --hosts 2 --)
  code=0
  "${hosts[@]}" python3 bench/peers/compare.py --case "$name" "${pass[@]}" || code=$?
  if ((code == 77)); then
    echo "compare_peers: $name left out, see the line above" >&2
  elif ((code != 0)); then
    exit "$code"
  fi
done
