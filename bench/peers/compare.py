"""Runs one case of a comparison, round robin, and prints it. Called by scripts/compare_peers.sh, which builds first.

Every round visits each group of sizes; in it every contender runs once, the order rotating from round to round, so that
a drift of the machine hits all alike. Shown is the median over the rounds of each round's median time."""

import argparse
import json
import os
import platform
import statistics
import sys

import contenders
from contenders import Failed, Setting

KIB, MIB = 1 << 10, 1 << 20
GROUPS = [(8, 2 * KIB, 4), (4 * KIB, MIB, 4), (4 * MIB, 64 * MIB, 4)]
QUICK_GROUPS = [(8, KIB, 128), (64 * KIB, MIB, 16), (16 * MIB, 64 * MIB, 4)]
OVERSUBSCRIBED_GROUPS = [(8, 2 * KIB, 16), (64 * KIB, MIB, 16), (16 * MIB, 16 * MIB, 4)]


def renamed(run, op):
    """The same rows, compared as `op`."""
    return lambda setting, group: [dict(row, op=op) for row in run(setting, group)]


def case_contenders(case, peers_only):
    """[(name, function(setting, group) -> rows)]; names that share a first word are one contender's ways, and the
    fastest of them counts."""
    if case == "p2p":
        entries = [("openmpi", lambda s, g: contenders.openmpi(s, g, "mpi_p2p")),
                   ("mpich", lambda s, g: contenders.mpich(s, g, "mpi_p2p")),
                   ("limit", contenders.limit)]
        weft = [("weft", renamed(lambda s, g: contenders.weft(s, g, collective="send_recv"), "ping_pong"))]
    else:
        entries = [("openmpi", contenders.openmpi), ("mpich", contenders.mpich),
                   ("gloo ring", lambda s, g: contenders.gloo(s, g, "ring")),
                   ("gloo bcube", lambda s, g: contenders.gloo(s, g, "bcube")),
                   ("gloo torch", lambda s, g: contenders.gloo(s, g, "torch")),
                   # Over TCP: one message of that size, one way. No all-reduce of two ranks is done before it arrived.
                   ("limit", renamed(contenders.limit, "all_reduce"))]
        weft = [("weft", contenders.weft)]
        if case.startswith("shm"):
            weft.append(("weft-allocated", lambda s, g: contenders.weft(s, g, "allocated")))
    return entries if peers_only else weft + entries


def allowed_cpus(text):
    have = sorted(os.sched_getaffinity(0))
    if text is None:
        return have[:2]
    wanted = [int(part) for part in text.split(",")]
    if not set(wanted) <= set(have):
        raise Failed(f"--cpus {text}: this process may use {have}")
    return wanted


def collect(entries, groups, setting, rounds, failures):
    """{(contender, op, bytes): [row per round]}"""
    found = {}
    for round_index in range(rounds):
        for group in groups:
            shift = round_index % len(entries)
            for name, run in entries[shift:] + entries[:shift]:
                if name in failures:
                    continue
                print(f"\rround {round_index + 1} of {rounds}, {size_text(group[0])} to {size_text(group[1])}: "
                      f"{name:<16}", end="", file=sys.stderr, flush=True)
                try:
                    rows = run(setting, group)
                except (Failed, OSError, KeyError, ValueError) as error:
                    failures[name] = str(error) or type(error).__name__
                    continue
                for row in rows:
                    if row["wrong"]:
                        failures[name] = f"{row['wrong']} wrong values at {row['bytes']} bytes"
                    found.setdefault((name, row["op"], row["bytes"]), []).append(row)
    print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
    return {key: rows for key, rows in found.items() if key[0] not in failures}


def summarize(found):
    """One entry per contender, operation and size: the fastest of the contender's ways."""
    best = {}
    for (name, op, size), rows in found.items():
        medians = [row["median_us"] for row in rows]
        entry = {"contender": name.split()[0], "way": name, "version": rows[0].get("version", ""), "op": op,
                 "bytes": size, "median_us": statistics.median(medians), "lowest_us": min(medians),
                 "highest_us": max(medians), "p99_us": statistics.median(row["p99_us"] for row in rows),
                 "rounds": len(rows)}
        key = (entry["contender"], op, size)
        if key not in best or entry["median_us"] < best[key]["median_us"]:
            best[key] = entry
    return sorted(best.values(), key=lambda entry: (entry["op"], entry["bytes"], entry["contender"]))


def size_text(size):
    for unit, name in ((MIB, "M"), (KIB, "K")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def time_text(us):
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:.0f}"


def table(header, rows):
    widths = [max(len(row[column]) for row in [header] + rows) for column in range(len(header))]
    for row in [header] + rows:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


def print_tables(summary, has_weft):
    for op in sorted({entry["op"] for entry in summary}):
        entries = {(entry["contender"], entry["bytes"]): entry for entry in summary if entry["op"] == op}
        sizes = sorted({size for _, size in entries})
        names = [name for name in ("weft", "weft-allocated", "openmpi", "mpich", "gloo", "limit")
                 if any(key[0] == name for key in entries)]
        print(f"\n{op}: median time in us (lowest to highest round)")
        rows = []
        for size in sizes:
            row = [size_text(size)]
            for name in names:
                entry = entries.get((name, size))
                row.append("-" if entry is None else f"{time_text(entry['median_us'])} "
                           f"({time_text(entry['lowest_us'])} to {time_text(entry['highest_us'])})")
            rows.append(row)
        table(["bytes"] + names, rows)
        if not has_weft or "weft" not in names:
            continue
        for reference in [name for name in names if name.startswith("weft")]:
            print(f"\n{op}: time of each over {reference}'s (above 1: {reference} is faster); "
                  f"{reference}'s share of the limit")
            rows = []
            for size in sizes:
                mine = entries.get((reference, size))
                row = [size_text(size)]
                for name in [name for name in names if not name.startswith("weft")]:
                    other = entries.get((name, size))
                    if mine is None or other is None:
                        row.append("-")
                    elif name == "limit":
                        row.append(f"{100 * other['median_us'] / mine['median_us']:.0f}%")
                    else:
                        row.append(f"{other['median_us'] / mine['median_us']:.2f}")
                rows.append(row)
            table(["bytes"] + [name for name in names if not name.startswith("weft")], rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["shm2", "shm4", "tcp2", "p2p"], required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peers-only", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--cpus")
    options = parser.parse_args()
    if not options.peers_only and not os.access(contenders.WEFT, os.X_OK):
        raise Failed(f"{contenders.WEFT} does not exist: build it (cmake --preset release && cmake --build --preset "
                     "release), or say --peers-only")

    hosts = [tuple(entry.split("=")[:2]) for entry in os.environ.get("WEFT_TEST_HOSTS", "").split()]
    if options.case not in ("tcp2", "p2p"):
        hosts = []
    elif len(hosts) < 2:
        raise Failed(f"the case {options.case} runs below scripts/test_hosts.sh")
    ranks = 4 if options.case == "shm4" else 2
    setting = Setting(ranks, hosts, allowed_cpus(options.cpus), 60 if options.quick else 250)
    groups = OVERSUBSCRIBED_GROUPS if setting.is_oversubscribed else QUICK_GROUPS if options.quick else GROUPS
    rounds = options.rounds or (2 if options.quick else 5)
    failures = {}
    summary = summarize(collect(case_contenders(options.case, options.peers_only), groups, setting, rounds, failures))
    memcpy = [] if hosts else contenders.memcpy_rows(setting)
    iperf3 = {}
    for streams in (1, 2, 4) if hosts else ():
        try:
            iperf3[streams] = contenders.iperf3_gbits(setting, streams, 1 if options.quick else 3)
        except (Failed, OSError, KeyError, ValueError) as error:
            failures[f"iperf3 with {streams} streams"] = str(error)

    if options.json:
        print(json.dumps({"schema": "weft-peers-1", "case": options.case, "ranks": ranks,
                          "transport": setting.transport, "cpus": setting.cpus, "rounds": rounds,
                          "machine": {"kernel": platform.release(), "load": os.getloadavg()[0]},
                          "results": summary, "memcpy": memcpy,
                          "iperf3_gbits": {str(streams): rate for streams, rate in iperf3.items()},
                          "failures": failures}, indent=1))
    else:
        where = "two test hosts, TCP" if hosts else "one host"
        print(f"\n== {options.case}: {ranks} ranks, {where}, processors {','.join(map(str, setting.cpus))}, "
              f"{rounds} rounds, load {os.getloadavg()[0]:.1f}")
        versions = {entry["contender"]: entry["version"] for entry in summary if entry["contender"] != "limit"}
        print("   " + ", ".join(f"{name} {version}".strip() for name, version in versions.items()))
        print_tables(summary, not options.peers_only)
        for row in memcpy:
            print(f"memcpy, {row['version']}: {row['bytes'] / row['median_us'] / 1e3:.1f} GB/s")
        for streams, rate in iperf3.items():
            print(f"iperf3, {streams} streams: {rate:.1f} Gbit/s")
        for name, why in failures.items():
            print(f"FAILED {name}: {why}")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        print(f"compare_peers: {failed}", file=sys.stderr)
        sys.exit(2)
