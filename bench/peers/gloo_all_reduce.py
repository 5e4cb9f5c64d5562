"""All-reduce of Gloo through PyTorch, with the arguments, environment, method and output of gloo_all_reduce.cc.

PyTorch's all_reduce is in place, so this has one copy less to do than an out-of-place call. Values grow in the timed
iterations and are not checked there; the result is checked on fresh input before and after. PEER_INTERFACE names the
network interface."""

import json
import os
import sys
import time

import torch
import torch.distributed as distributed

WARM_UPS, LEAST, MOST = 5, 5, 20000
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def argument(flag, otherwise):
    return parse_size(sys.argv[sys.argv.index(flag) + 1]) if flag in sys.argv else otherwise


def input_of(count, rank):
    return ((torch.arange(count) * 7 + rank * 3) % 251).to(torch.float32)


def count_wrong(count, rank, ranks):
    values = input_of(count, rank)
    distributed.all_reduce(values)
    return int((values != sum(input_of(count, other) for other in range(ranks))).sum())


def measure(size, rank, ranks):
    count = size // 4
    wrong = count_wrong(count, rank, ranks)
    values = input_of(count, rank)
    for i in range(2 * WARM_UPS):
        if i == WARM_UPS:
            started = time.perf_counter_ns()
        distributed.all_reduce(values)
    each = max(1, (time.perf_counter_ns() - started) // WARM_UPS)
    fit = int(os.environ.get("PEER_BUDGET_MS", "250")) * 1_000_000 // each
    agreed = torch.tensor([min(MOST, max(LEAST, fit))])
    distributed.broadcast(agreed, 0)
    times = []
    distributed.barrier()
    for _ in range(int(agreed)):
        begun = time.perf_counter_ns()
        distributed.all_reduce(values)
        times.append(float(time.perf_counter_ns() - begun))
    wrong += count_wrong(count, rank, ranks)
    longest = torch.tensor(times, dtype=torch.float64)
    distributed.all_reduce(longest, op=distributed.ReduceOp.MAX)
    wrongs = torch.tensor([wrong])
    distributed.all_reduce(wrongs)
    if rank == 0:
        ordered = sorted(longest.tolist())
        half = len(ordered) // 2
        median = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
        p99 = ordered[min(len(ordered), -(-99 * len(ordered) // 100)) - 1]
        print(json.dumps({"peer": "gloo", "version": "torch " + torch.__version__, "op": "all_reduce", "ranks": ranks,
                          "transport": "tcp", "bytes": size, "iters": len(ordered), "median_us": median / 1e3,
                          "p99_us": p99 / 1e3, "min_us": ordered[0] / 1e3, "wrong": int(wrongs)}), flush=True)


def main():
    rank, ranks = int(os.environ["PEER_RANK"]), int(os.environ["PEER_RANKS"])
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ.get("PEER_INTERFACE", "lo")
    distributed.init_process_group("gloo", init_method="file://" + os.path.abspath(os.environ["PEER_STORE"]) + "/torch",
                                   rank=rank, world_size=ranks)
    size, end, factor = argument("-b", 8), argument("-e", 64 << 20), argument("-f", 4)
    while size <= end:
        measure(size, rank, ranks)
        size *= factor


if __name__ == "__main__":
    main()
