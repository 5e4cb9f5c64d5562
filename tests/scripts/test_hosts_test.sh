#!/usr/bin/env bash
# What scripts/test_hosts.sh promises. Exits with 77 where the system forbids name spaces (ctest: skipped).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly hosts=scripts/test_hosts.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failures=0
expect() {  # what, wanted, got
  if [[ $2 == "$3" ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: wanted \"$2\", got \"$3\"" >&2
    failures=$((failures + 1))
  fi
}
code_of() {
  local code=0
  "$@" >/dev/null 2>&1 || code=$?
  echo "$code"
}
# Waits up to 10 s for a shell condition.
eventually() {
  local i
  for i in {1..1000}; do
    if eval "$1"; then echo yes; return; fi
    sleep 0.01
  done
  echo no
}

# A word over TCP from host 0 to host 1, with nothing but bash and python3.
cat >"$scratch/listen.py" <<'PY'
import socket, sys
listener = socket.create_server((sys.argv[1], 7000))
listener.settimeout(10)
open(sys.argv[2], "w").close()
print(listener.accept()[0].recv(100).decode(), end="")
PY

reason=$("$hosts" -- true 2>&1) || { code=$?; echo "$reason"; [[ $code -ne 77 ]] || exit 77; echo "FAILED: code $code"; exit 1; }

expect "the command's exit code comes back" 5 "$(code_of "$hosts" -- bash -c 'exit 5')"
expect "wrong usage is told apart" 64 "$(code_of "$hosts" --hosts none -- true)"
expect "standard input reaches the command" "word" "$(echo word | "$hosts" -- cat)"
expect "a host knows its name" "wefthost1" "$("$hosts" -- "$hosts" exec 1 hostname)"
expect "our own name is left alone" "$(hostname)" "$("$hosts" -- hostname)"
expect "names resolve on a host" "10.231.77.1" \
  "$("$hosts" -- "$hosts" exec wefthost1 python3 -c 'import socket; print(socket.gethostbyname("wefthost0"))')"
expect "shared memory is private" "0" "$("$hosts" -- bash -c \
  "$hosts exec 0 touch /dev/shm/mine && $hosts exec 1 ls /dev/shm | wc -l")"
expect "sysfs shows the host's own interfaces" "eth0 lo" "$("$hosts" -- "$hosts" exec 0 ls /sys/class/net | xargs)"
expect "the working directory stays" "$PWD" "$("$hosts" -- "$hosts" exec 0 pwd)"
expect "an unknown host is an error" 64 "$(code_of "$hosts" -- "$hosts" exec 9 true)"

for count in 2 3; do
  rm -f "$scratch/ready"
  expect "$count hosts talk TCP" "hello" "$("$hosts" --hosts "$count" -- bash -c "
    $hosts exec 1 python3 $scratch/listen.py 10.231.77.2 $scratch/ready &
    until [[ -e $scratch/ready ]]; do sleep 0.01; done
    $hosts exec $((count - 1 == 1 ? 0 : 2)) bash -c 'echo -n hello >/dev/tcp/wefthost1/7000'
    wait")"
done

expect "a cut cable has no carrier, a healed one has" "0 1" "$("$hosts" -- bash -c "
  $hosts cut 1; sleep 0.2; echo -n \"\$($hosts exec 0 cat /sys/class/net/eth0/carrier) \"
  $hosts heal 1; sleep 0.5; $hosts exec 0 cat /sys/class/net/eth0/carrier")"
expect "a rate is applied" 1 "$("$hosts" --rate 50mbit -- "$hosts" exec 0 tc qdisc show dev eth0 | grep -c 'tbf.*rate 50Mbit')"

# Two runs at once, with the same addresses, do not see each other.
"$hosts" -- bash -c "touch $scratch/one; sleep 60" &
first=$!
expect "a first run is up" yes "$(eventually "[[ -e $scratch/one ]]")"
expect "a second run beside it works" "wefthost0" "$("$hosts" -- "$hosts" exec 0 hostname)"
expect "the first is still there" yes "$(kill -0 $first && echo yes)"
kill -TERM $first
code=0
wait $first || code=$?
expect "SIGTERM ends a run" 143 "$code"

# The command may end in its own way.
rm -f "$scratch/up"
"$hosts" -- bash -c "trap 'touch $scratch/farewell; exit 3' TERM; touch $scratch/up; while :; do sleep 0.05; done" &
run=$!
expect "a run to end politely is up" yes "$(eventually "[[ -e $scratch/up ]]")"
kill -TERM $run
wait $run || true
expect "a command may clean up on SIGTERM" yes "$([[ -e $scratch/farewell ]] && echo yes)"

# Whatever ends the script, everything below it ends: the sleep has a length nobody else uses.
for signal in TERM INT KILL; do
  length=9$RANDOM$RANDOM
  rm -f "$scratch/up"
  # python3 gives the script a default SIGINT, which background commands of a shell ignore.
  python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])' \
    "$hosts" -- bash -c "$hosts exec 0 sleep $length & touch $scratch/up; trap '' TERM; sleep $length" &
  run=$!
  expect "a run to end by $signal is up" yes "$(eventually "[[ -e $scratch/up ]] && (( \$(pgrep -cfx 'sleep $length') == 2 ))")"
  kill "-$signal" "$run"
  expect "nothing is left after SIG$signal" yes "$(eventually "! pgrep -fx 'sleep $length' >/dev/null")"
  wait "$run" 2>/dev/null || true
done

# A system that forbids name spaces: a PATH on which unshare refuses.
mkdir "$scratch/bin"
printf '#!/bin/sh\necho "unshare failed: Operation not permitted" >&2\nexit 1\n' >"$scratch/bin/unshare"
chmod +x "$scratch/bin/unshare"
expect "without the right, the code is 77" 77 "$(code_of env PATH="$scratch/bin:$PATH" "$hosts" -- true)"
expect "and the reason is one line" 1 "$(PATH="$scratch/bin:$PATH" "$hosts" -- true 2>&1 | wc -l)"

((failures == 0)) || { echo "$failures expectations failed" >&2; exit 1; }
echo "all expectations met"
