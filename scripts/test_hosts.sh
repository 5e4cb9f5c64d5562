#!/usr/bin/env bash
# Makes test hosts on one machine and runs a command that uses them.
#
#   scripts/test_hosts.sh [--hosts N] [--rate RATE] -- COMMAND [ARGUMENT...]
#   scripts/test_hosts.sh exec HOST COMMAND [ARGUMENT...]      inside COMMAND: runs something on a host
#   scripts/test_hosts.sh cut HOST | heal HOST                 inside COMMAND: pulls and plugs the host's cable
#
# Each host has a network, a host name (wefthost0, wefthost1, ...), an IPC name space, a /dev/shm, a /sys and an
# /etc/hosts of its own; two hosts share one veth cable, more (or one) hang on a bridge. --rate shapes what every host
# sends ("100mbit", "1gbit"). COMMAND itself runs on no host. It finds the hosts in
#   WEFT_TEST_HOSTS="wefthost0=10.231.77.1=PID wefthost1=10.231.77.2=PID"      name, address, process that holds it
#
# Nothing of this has a name outside: the name spaces are anonymous, live in a process name space of their own, and end
# with it, whatever ends this script (a signal, SIGKILL, the end of COMMAND). So runs can overlap, and none leaves a trace.
# Exit code: COMMAND's; 77 with one sentence where the system forbids name spaces; 64 for wrong usage.
set -euo pipefail

readonly kSubnet=10.231.77  # Only ever inside the hosts' own networks.
self=$(readlink -f "${BASH_SOURCE[0]}")

usage() {
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$self" >&2
  exit 64
}

skip() {
  echo "test_hosts: $1" >&2
  exit 77
}

# The process that holds host $1 (a name or a number), from WEFT_TEST_HOSTS.
holder_of() {
  local entry name rest
  for entry in ${WEFT_TEST_HOSTS:-}; do
    name=${entry%%=*} rest=${entry#*=}
    if [[ $name == "$1" || $name == "wefthost$1" ]]; then
      echo "${rest#*=}"
      return
    fi
  done
  echo "test_hosts: no host \"$1\"; there are: ${WEFT_TEST_HOSTS:-none (run this below \"test_hosts.sh -- COMMAND\")}" >&2
  exit 64
}

enter_host() {
  [[ $# -ge 2 ]] || usage
  local holder
  holder=$(holder_of "$1")
  shift
  # Entering a mount name space resets the working directory.
  exec nsenter --target "$holder" --net --uts --ipc --mount -- \
    /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
}

set_cable() {
  [[ $# -eq 2 ]] || usage
  local holder
  holder=$(holder_of "$1")
  exec nsenter --target "$holder" --net -- ip link set eth0 "$2"
}

# --- Inside: process 1 of the run's own process name space -----------------------------------------------------------

# Becomes a host: called in fresh name spaces. Says "ready" on descriptor 3 once they are furnished.
be_host() {
  local name=$1 hosts_text=$2
  [[ -z $name ]] || hostname "$name"
  ip link set lo up
  # A scratch tmpfs that stays alive only through the bind mounts made from it.
  mount -t tmpfs tmpfs /dev/shm
  printf '%s\n' "$hosts_text" >/dev/shm/hosts
  mount --bind /dev/shm/hosts /etc/hosts
  mkdir /dev/shm/cgroup
  # /sys/class/net follows the mount, not the reader, so a host needs its own; what is under fs/cgroup is kept.
  mount --rbind /sys/fs/cgroup /dev/shm/cgroup 2>/dev/null || true
  if mount -t sysfs sysfs /sys 2>/dev/null && mountpoint -q /dev/shm/cgroup; then
    mount --rbind /dev/shm/cgroup /sys/fs/cgroup 2>/dev/null || true
  fi
  umount -l /dev/shm
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  echo ready >&3
  exec 3>&-
  exec sleep infinity
}

# Starts a host named $1 (empty: the switch) and sets `started` to its process.
start_host() {
  local ready said
  ready=$(mktemp -u)
  mkfifo "$ready"
  unshare --net --uts --ipc --mount -- "$self" be-host "$1" "$2" 3>"$ready" </dev/null >/dev/null &
  started=$!
  read -r said <"$ready" || said=
  rm -f "$ready"
  [[ $said == ready ]] || { echo "test_hosts: host ${1:-switch} did not come up" >&2; exit 1; }
}

in_network() {
  local holder=$1
  shift
  nsenter --target "$holder" --net -- "$@"
}

# tbf holds back more than a millisecond of traffic only if its bucket is smaller than one segment (64 KiB).
bucket_bytes() {
  local number=${1%%[!0-9]*} scale
  case ${1#"$number"} in
    kbit) scale=125 ;; mbit) scale=125000 ;; gbit) scale=125000000 ;;
    *) echo "test_hosts: --rate wants a number with kbit, mbit or gbit, not \"$1\"" >&2; exit 64 ;;
  esac
  local bytes=$((number * scale / 1000))
  echo $((bytes < 131072 ? 131072 : bytes))
}

inside() {
  local num_hosts=$1 rate=$2
  shift 2
  local hosts_text="127.0.0.1 localhost" list="" i started switch="" bucket=""
  local -a holders=()
  [[ -z $rate ]] || bucket=$(bucket_bytes "$rate")
  for ((i = 0; i < num_hosts; ++i)); do hosts_text+=$'\n'"$kSubnet.$((i + 1)) wefthost$i"; done
  for ((i = 0; i < num_hosts; ++i)); do
    start_host "wefthost$i" "$hosts_text"
    holders+=("$started")
    list+="${list:+ }wefthost$i=$kSubnet.$((i + 1))=$started"
  done

  if ((num_hosts == 2)); then
    in_network "${holders[0]}" ip link add eth0 type veth peer name eth0 netns "${holders[1]}"
  else
    start_host "" "$hosts_text"
    switch=$started
    in_network "$switch" ip link add bridge0 type bridge
    in_network "$switch" ip link set bridge0 up
    for ((i = 0; i < num_hosts; ++i)); do
      in_network "$switch" ip link add "port$i" type veth peer name eth0 netns "${holders[i]}"
      in_network "$switch" ip link set "port$i" master bridge0 up
    done
  fi
  for ((i = 0; i < num_hosts; ++i)); do
    in_network "${holders[i]}" ip address add "$kSubnet.$((i + 1))/24" dev eth0
    in_network "${holders[i]}" ip link set eth0 up
    [[ -z $rate ]] || in_network "${holders[i]}" tc qdisc add dev eth0 root tbf rate "$rate" burst "$bucket" latency 50ms
  done

  # A cable counts as plugged in only a while after its ends are up; COMMAND shall not meet that while.
  for ((i = 0; i < num_hosts; ++i)); do
    until in_network "${holders[i]}" ip -o link show eth0 | grep -q 'state UP'; do sleep 0.01; done
  done

  export WEFT_TEST_HOSTS=$list
  "$@" <&0 &
  local command=$! code=0
  # On a signal COMMAND may end in its own way; the end of this process ends whatever is left.
  trap 'kill -TERM "$command" 2>/dev/null || true' TERM INT HUP
  while kill -0 "$command" 2>/dev/null; do
    code=0
    wait "$command" || code=$?
  done
  exit "$code"
}

# --- Outside ---------------------------------------------------------------------------------------------------------

outside() {
  local num_hosts=2 rate=""
  while (($# > 0)); do
    case $1 in
      --hosts) num_hosts=${2:-} ; shift 2 || usage ;;
      --rate) rate=${2:-} ; shift 2 || usage ;;
      --) shift ; break ;;
      *) usage ;;
    esac
  done
  [[ $# -ge 1 ]] || usage
  [[ $num_hosts =~ ^[0-9]+$ && $num_hosts -ge 1 && $num_hosts -le 200 ]] ||
    { echo "test_hosts: --hosts wants a number from 1 to 200, not \"$num_hosts\"" >&2; exit 64; }
  [[ -z $rate ]] || bucket_bytes "$rate" >/dev/null

  local tool
  for tool in ip tc unshare nsenter setpriv hostname mountpoint; do
    command -v "$tool" >/dev/null || skip "cannot make test hosts: the program $tool is not installed (packages iproute2, util-linux, hostname)."
  done
  [[ -e /etc/hosts ]] || skip "cannot make test hosts: this system has no /etc/hosts, where each would find the others by name."
  local -a make=(unshare --pid --fork --kill-child=KILL --mount --mount-proc)
  ((EUID == 0)) || make=(unshare --user --map-root-user --pid --fork --kill-child=KILL --mount --mount-proc)
  local why
  why=$("${make[@]}" --net --uts --ipc -- /bin/sh -c \
    'mount -t tmpfs tmpfs /dev/shm && hostname weftprobe && ip link add eth0 type veth peer name eth1' 2>&1) ||
    skip "cannot make test hosts: this system does not allow them ($(head -n 1 <<<"$why"))."

  # If this shell dies, unshare gets SIGKILL, then process 1 of the name space, then everything in it.
  setpriv --pdeathsig KILL -- "${make[@]}" -- "$self" inside "$num_hosts" "$rate" "$@" <&0 &
  local run=$! code=0 signalled=""
  forward() {
    local first=""
    signalled=$1
    # The file ends without a newline, for which read answers 1.
    read -r first _ 2>/dev/null <"/proc/$run/task/$run/children" || true
    # Two seconds of grace; the timer must not outlive the run.
    [[ -z $first ]] || kill -TERM "$first" 2>/dev/null || true
    (for _ in {1..20}; do sleep 0.1; kill -0 "$run" 2>/dev/null || exit 0; done; kill -KILL "$run" 2>/dev/null) &
  }
  trap 'forward 143' TERM
  trap 'forward 130' INT
  trap 'forward 129' HUP
  while kill -0 "$run" 2>/dev/null; do
    code=0
    wait "$run" 2>/dev/null || code=$?
  done
  exit "${signalled:-$code}"
}

case ${1:-} in
  exec) shift ; enter_host "$@" ;;
  cut) shift ; set_cable "${1:-}" down ;;
  heal) shift ; set_cable "${1:-}" up ;;
  be-host) shift ; be_host "$@" ;;
  inside) shift ; inside "$@" ;;
  *) outside "$@" ;;
esac
