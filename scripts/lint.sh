#!/usr/bin/env bash
# Looks at the sources without running them: the format, the arrows between folders, clang-tidy. The last line is
# "N passed, N failed, N skipped", where each of the three counts as one.
#
#   scripts/lint.sh [--fix] [--changed] [--no-tests] [--no-tidy] [--no-setup]
#
#   --fix       first rewrites every source in the right format
#   --no-tidy   leave clang-tidy out, which takes most of the time
#   --no-tests  leave tests and benches out of clang-tidy, which halves it
#   --changed   clang-tidy only on sources that differ from the main branch (or have not been committed)
set -uo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }

wants_setup=yes
only_changed=no
wants_fix=no
wants_tidy=yes
wants_tests=yes
for word in "$@"; do
  case "$word" in
    --fix) wants_fix=yes ;;
    --changed) only_changed=yes ;;
    --no-tidy) wants_tidy=no ;;
    --no-tests) wants_tests=no ;;
    --no-setup) wants_setup=no ;;
    -h | --help) usage && exit 0 ;;
    *)
      echo "lint: unknown argument \"$word\"" >&2
      usage >&2
      exit 2
      ;;
  esac
done
if [[ $wants_setup == yes ]] && ! scripts/setup.sh --no-build build lint; then
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

passed=0
failed=0
stage() {
  local name=$1 start=$SECONDS
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "lint: $name is fine ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "lint: $name FAILED ($((SECONDS - start)) s)"
  fi
}

sources() { git ls-files --cached --others --exclude-standard -- '*.h' '*.hpp' '*.cc' '*.c'; }

check_format() { sources | xargs --no-run-if-empty clang-format --dry-run -Werror; }

# One process a file and a core. The compiler is g++: clang does not know all of its flags, and its own warnings are not
# asked for here.
check_tidy() {
  cmake --preset release >/dev/null || return 1
  local files
  files=$(python3 - "$only_changed" "$wants_tests" <<'PYTHON'
import json, os, subprocess, sys

root = os.getcwd()
commands = json.load(open("build/release/compile_commands.json"))
files = sorted({os.path.relpath(command["file"], root) for command in commands})
files = [file for file in files if file.endswith(".cc") and not file.startswith(("..", "build/"))]
if sys.argv[2] == "no":
    files = [file for file in files if not file.startswith("tests/") and not file.endswith("_bench.cc")]
if sys.argv[1] == "yes":
    git = lambda *words: subprocess.run(["git", *words], capture_output=True, text=True).stdout.split()
    changed = set(git("diff", "--name-only", "main...") + git("diff", "--name-only", "HEAD")
                  + git("ls-files", "--others", "--exclude-standard"))
    files = [file for file in files if file in changed]
print("\n".join(files))
PYTHON
  ) || return 1
  [[ -n $files ]] || { echo "lint: no source to look at" && return 0; }
  echo "lint: clang-tidy on $(wc -l <<<"$files") files"
  xargs --max-procs="${WEFT_JOBS:-$(nproc)}" --max-args=1 \
    clang-tidy -p build/release --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-error \
    <<<"$files" 2> >(grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated\.$|warnings treated as errors$' >&2)
}

[[ $wants_fix == no ]] || sources | xargs --no-run-if-empty clang-format -i
stage "format" check_format
stage "arrows" scripts/check_arrows.py --report
[[ $wants_tidy == no ]] || stage "tidy" check_tidy
echo "$passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
