#!/usr/bin/env bash
# Sets up, builds, and runs every test that this machine can run. The last line is "N passed, N failed, N skipped".
#
#   scripts/test.sh [--preset release|debug|asan|tsan] [--label NAME]... [--no-setup]
#
#   --preset    the build to test (release)
#   --label     only tests with this label (may be given more than once): unit, contract, plan, sim, fuzz, multi, ...
#   --no-setup  do not look for missing packages
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

preset=release
labels=()
wants_setup=yes
while (($# > 0)); do
  case "$1" in
    --preset) preset=${2:?--preset wants a name} && shift 2 ;;
    --label) labels+=("${2:?--label wants a name}") && shift 2 ;;
    --no-setup) wants_setup=no && shift ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "test: unknown argument \"$1\"" >&2
      usage >&2
      exit 2
      ;;
  esac
done

fail() {
  echo "test: $1" >&2
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

jobs=${WEFT_JOBS:-$(nproc)}
if [[ $wants_setup == yes ]]; then
  scripts/setup.sh --no-build build || fail "setup failed"
fi
[[ -f build/$preset/build.ninja ]] || cmake --preset "$preset" || fail "the $preset build does not configure"
cmake --build --preset "$preset" --parallel "$jobs" || fail "the $preset build fails"

# A sanitizer's report is a failed test, whatever the test itself thinks.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

selection=()
if ((${#labels[@]} > 0)); then
  pattern=$(IFS='|' && echo "${labels[*]}")
  selection=(--label-regex "^($pattern)\$")
fi
report=build/$preset/test_report.xml
rm -f "$report"
# Two at a time: many tests have several ranks that poll, and more of them than cores measure nothing but the scheduler.
ctest --test-dir "build/$preset" --parallel 2 --output-on-failure --no-tests=error \
  --test-output-size-passed 65536 --output-junit "$PWD/$report" "${selection[@]}" |
  sed --unbuffered -E '/^ *[0-9]+\/[0-9]+ Test .* +Passed +/d; /^ *Start +[0-9]+:/d' || true
[[ -f $report ]] || fail "ctest ran no test"
python3 scripts/test_summary.py "$report"
