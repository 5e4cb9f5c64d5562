"""How each contender of a comparison is started. Every function here runs one program over one group of sizes and
returns rows: {"op", "bytes", "median_us", "p99_us", "min_us", "wrong", "version"}."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = os.path.join(ROOT, "build", "peers")
WEFT = os.environ.get("WEFT_COMMAND", os.path.join(ROOT, "build", "release", "bin", "weft"))
TEST_HOSTS = os.path.join(ROOT, "scripts", "test_hosts.sh")
AGENT = os.path.join(ROOT, "bench", "peers", "enter_host.sh")
TIMEOUT_S = 300


class Failed(Exception):
    """A contender did not run; the text says which and why."""


class Setting:
    """What all contenders of one case have in common."""

    def __init__(self, ranks, hosts, cpus, budget_ms):
        self.ranks = ranks
        self.hosts = hosts  # [(name, address)], empty on one host.
        self.cpus = cpus  # Those that every contender may use.
        self.budget_ms = budget_ms

    @property
    def transport(self):
        return "tcp" if self.hosts else "shm"

    @property
    def is_oversubscribed(self):
        return self.ranks > len(self.cpus)


def sizes_arguments(group):
    begin, end, factor = group
    return ["-b", str(begin), "-e", str(end), "-f", str(factor)]


def on_host(setting, index, command):
    return [TEST_HOSTS, "exec", setting.hosts[index][0]] + command if setting.hosts else command


def run_all(setting, commands, extra_environment=None):
    """Starts the commands (one per rank, or one launcher) together; returns the first one's output."""
    processes = []
    cpus = ",".join(str(cpu) for cpu in setting.cpus)
    for index, command in enumerate(commands):
        environment = dict(os.environ, PEER_BUDGET_MS=str(setting.budget_ms), PEER_TRANSPORT=setting.transport)
        environment.update(extra_environment(index) if extra_environment else {})
        processes.append(subprocess.Popen(["taskset", "-c", cpus] + command, env=environment, cwd=ROOT, text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    outputs = []
    try:
        for process in processes:
            outputs.append(process.communicate(timeout=TIMEOUT_S))
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(commands[0][:4])}... did not end within {TIMEOUT_S} s") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    for process, (_, errors), command in zip(processes, outputs, commands):
        if process.returncode != 0:
            last = errors.strip().splitlines()[-1:] or ["no message"]
            raise Failed(f"{' '.join(command[:6])}... ended with {process.returncode}: {last[0]}")
    return outputs[0][0]


def rows_of(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def openmpi(setting, group, program="mpi_all_reduce"):
    command = ["mpirun.openmpi", "-n", str(setting.ranks), "-x", "PEER_BUDGET_MS", "-x", "PEER_TRANSPORT"]
    if setting.hosts:
        command += ["--mca", "plm_rsh_agent", AGENT, "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
                    "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
                    "--bind-to", "none", "--host", ",".join(name for name, _ in setting.hosts)]
    elif setting.is_oversubscribed:
        command += ["--oversubscribe", "--bind-to", "none"]
    else:
        command += ["--bind-to", "core"]
    command += [os.path.join(PEERS, program + "_openmpi")] + sizes_arguments(group)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return rows_of(run_all(setting, [on_host(setting, 0, command)], lambda _: root))


def mpich(setting, group, program="mpi_all_reduce"):
    command = ["mpiexec.mpich", "-n", str(setting.ranks)]
    if setting.hosts:
        # Its default device is libfabric; the tcp provider is what two hosts without RDMA have.
        command += ["-launcher", "rsh", "-launcher-exec", AGENT, "-hosts", ",".join(name for name, _ in setting.hosts),
                    "-ppn", "1", "-genv", "FI_PROVIDER", "tcp", "-genv", "FI_TCP_IFACE", "eth0"]
    elif not setting.is_oversubscribed:
        command += ["-bind-to", "core"]
    command += [os.path.join(PEERS, program + "_mpich")] + sizes_arguments(group)
    return rows_of(run_all(setting, [on_host(setting, 0, command)]))


def gloo_version():
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libgloo-dev"], capture_output=True, text=True)
    return asked.stdout.strip() or "unknown"


def gloo(setting, group, way):
    """`way`: ring or bcube of its C++ library, or torch."""
    store = tempfile.mkdtemp(prefix="weft-gloo-")
    version = gloo_version()

    def environment(index):
        address = setting.hosts[index][1] if setting.hosts else "127.0.0.1"
        return {"PEER_RANK": str(index), "PEER_RANKS": str(setting.ranks), "PEER_STORE": store,
                "PEER_ADDRESS": address, "PEER_GLOO_ALGORITHM": way, "PEER_VERSION": version,
                "PEER_INTERFACE": "eth0" if setting.hosts else "lo"}

    try:
        # python3-torch belongs to Debian's own Python, which need not be the first in PATH.
        program = (["/usr/bin/python3", os.path.join(ROOT, "bench", "peers", "gloo_all_reduce.py")] if way == "torch"
                   else [os.path.join(PEERS, "gloo_all_reduce")])
        command = program + sizes_arguments(group)
        commands = [on_host(setting, index, command) for index in range(setting.ranks)]
        return rows_of(run_all(setting, commands, environment))
    finally:
        shutil.rmtree(store, ignore_errors=True)


def limit(setting, group):
    """Shared memory: the best variant for each size. TCP: half a round trip of blocking sockets."""
    if setting.hosts:
        address = setting.hosts[0][1]
        port = str(20000 + secrets.randbelow(20000))
        program = os.path.join(PEERS, "limit_moves")
        commands = [on_host(setting, index, [program, "tcp", flag, address, port] + sizes_arguments(group))
                    for index, flag in ((1, "--connect"), (0, "--listen"))]
        return rows_of(run_all(setting, commands))
    command = [os.path.join(PEERS, "limit_all_reduce"), "--ranks", str(setting.ranks)] + sizes_arguments(group)
    best = {}
    for row in rows_of(run_all(setting, [command])):
        if row["bytes"] not in best or row["median_us"] < best[row["bytes"]]["median_us"]:
            best[row["bytes"]] = row
    return list(best.values())


def weft(setting, group, memory="plain", collective="all_reduce"):
    """The only place that knows Weft's command line and its results file (docs/results_schema.md)."""
    directory = tempfile.mkdtemp(prefix="weft-compare-")
    results = os.path.join(directory, "results.json")
    bench = [WEFT, "bench", collective] + sizes_arguments(group) + ["-d", "float", "--memory", memory]
    try:
        if setting.hosts:
            # `weft run` is for one machine; between hosts the ranks are started as a cluster's launcher would.
            job = {"WEFT_SIZE": str(setting.ranks), "WEFT_SECRET": secrets.token_hex(32),
                   "WEFT_ADDRESS": f"{setting.hosts[0][1]}:{20000 + secrets.randbelow(20000)}"}
            commands = [on_host(setting, index, bench + (["--json", results] if index == 0 else []))
                        for index in range(setting.ranks)]
            run_all(setting, commands, lambda index: dict(job, WEFT_RANK=str(index), WEFT_LOCAL_RANK="0",
                                                          WEFT_LOCAL_SIZE="1"))
        else:
            # As mpirun does by default: a core for each rank where there are enough.
            binding = [] if setting.is_oversubscribed else ["--bind", "core"]
            run_all(setting, [[WEFT, "run", "-n", str(setting.ranks)] + binding + ["--"] + bench + ["--json", results]])
        with open(results, encoding="utf-8") as file:
            return parse_results(json.load(file), collective)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def parse_results(document, collective):
    """Rows from the text of results.json: out-of-place results of one collective."""
    rows = []
    for result in document["results"]:
        in_place = result.get("in_place", result.get("placement") == "in_place")
        if result["collective"] == collective and not in_place:
            rows.append({"op": collective, "bytes": result["bytes"], "median_us": result["median_us"],
                         "p99_us": result["p99_us"], "min_us": result.get("min_us", result["median_us"]),
                         "wrong": result.get("wrong", 0), "version": document.get("commit", "")})
    return rows


def memcpy_rows(setting):
    return rows_of(run_all(setting, [[os.path.join(PEERS, "limit_moves"), "memcpy"]]))


def iperf3_gbits(setting, streams, seconds):
    """Gbit/s from host 1 to host 0."""
    server = subprocess.Popen(on_host(setting, 0, ["iperf3", "--server", "--one-off", "--forceflush"]),
                              stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if "listening" in line:
                break
        client = on_host(setting, 1, ["iperf3", "--client", setting.hosts[0][1], "--parallel", str(streams),
                                      "--time", str(seconds), "--json"])
        report = json.loads(run_all(setting, [client]))
        return report["end"]["sum_received"]["bits_per_second"] / 1e9
    finally:
        server.kill()
        server.wait()
