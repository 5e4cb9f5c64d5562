#!/usr/bin/env bash
# Measures Weft on this machine with one command: sets up, builds, and runs 2 hosts x 2 ranks, results checked:
# all-reduces of 8 B to 64 MiB, and the communication of training steps of ResNet-50 and GPT-2.
#
#   scripts/bench.sh [--quick] [--no-setup] [--output DIR]
#
#   --quick     fewer iterations and steps: under a minute once built
#   --no-setup  neither look for packages nor build
#   --output    where the reports go (weft-report)
#
# The hosts are network name spaces (scripts/test_hosts.sh) where the system allows them, else ranks of this host that are
# kept apart and talk over loopback; the output says which. Exit code: 0 if every result was right.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

usage() { sed -n '2,13s/^# \{0,1\}//p' "$0"; }

quick=no
wants_setup=yes
output=weft-report
while (($# > 0)); do
  case "$1" in
    --quick) quick=yes && shift ;;
    --no-setup) wants_setup=no && shift ;;
    --output) output=${2:?--output wants a folder} && shift 2 ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "bench: unknown argument \"$1\"" >&2
      usage >&2
      exit 2
      ;;
  esac
done

if [[ $wants_setup == yes ]]; then
  scripts/setup.sh --no-build build
  [[ -f build/release/build.ninja ]] || cmake --preset release
  cmake --build --preset release --parallel "${WEFT_JOBS:-$(nproc)}" --target weft_command
fi
readonly weft=build/release/bin/weft

hosts=(scripts/test_hosts.sh --hosts 2 --)
code=0
why=$("${hosts[@]}" true 2>&1) || code=$?
if ((code != 0)); then
  echo "bench: $why"
  echo "bench: two emulated hosts on loopback instead"
  hosts=()
else
  echo "bench: two hosts, each a network name space of its own, joined by a cable"
fi

sweep=(-b 8 -e 64M -f 2)
steps=(--steps 10)
if [[ $quick == yes ]]; then
  sweep+=(--budget 20ms -w 2)
  steps=(--steps 2)
fi

code=0
"${hosts[@]}" "$weft" bench all_reduce -d float "${sweep[@]}" --workload workloads/resnet50.json \
  --workload workloads/gpt2_small.json "${steps[@]}" -N 4 --hosts 2 --report "$output" || code=$?

echo
case $code in
  0) echo "bench: all results right; look at $output/index.html (numbers: $output/results.json)" ;;
  1) echo "bench: FAILED: wrong results (see above and $output/index.html)" ;;
  *) echo "bench: FAILED: the job ended with exit code $code (see above)" ;;
esac
exit $code
