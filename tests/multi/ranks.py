"""Starts the ranks of a job as processes and collects what they say."""
import os
import re
import secrets
import signal
import socket
import subprocess
import time

PROGRAMS = os.environ.get("WEFT_TEST_PROGRAMS", "build/release/tests")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Job:
    """Ranks of one program. Whatever happens, none is left behind. `within`: what starts a rank's command elsewhere."""

    def __init__(self, size, program, *arguments, environment=None, per_rank=None, within=None, address="127.0.0.1"):
        address = f"{address}:{free_port()}"
        secret = secrets.token_hex(32)
        self.processes = []
        for rank in range(size):
            variables = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
            variables.update(WEFT_RANK=str(rank), WEFT_SIZE=str(size), WEFT_ADDRESS=address, WEFT_SECRET=secret)
            variables.update(environment or {})
            variables.update((per_rank or (lambda _: {}))(rank))
            self.processes.append(
                subprocess.Popen([*(within or (lambda _: []))(rank), os.path.join(PROGRAMS, program), *arguments],
                                 env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def signal(self, rank, number):
        self.processes[rank].send_signal(number)

    def wait_for_line(self, rank, text):
        for line in self.processes[rank].stdout:
            if text in line:
                return
        raise AssertionError(f"rank {rank} never said {text}: {self.processes[rank].stderr.read()}")

    def finish(self, ranks=None, timeout=60):
        """The results ("status text" lines) of each rank, which must all end well by themselves within the time."""
        deadline = time.monotonic() + timeout
        results = {}
        for rank, process in enumerate(self.processes):
            if ranks is not None and rank not in ranks:
                continue
            try:
                out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"rank {rank} hangs") from None
            if process.returncode != 0:
                raise AssertionError(f"rank {rank} ended with {process.returncode}:\n{out}\n{err}")
            results[rank] = re.findall(r"^RESULT (.*)$", out, re.MULTILINE)
        return results


def leftovers():
    """Shared memory with a name, and sockets in the file system, that jobs may have left."""
    return {entry for entry in os.listdir("/dev/shm") if "weft" in entry}


CUT = signal.SIGKILL
PAUSE = signal.SIGSTOP
