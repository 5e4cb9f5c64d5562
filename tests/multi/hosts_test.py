"""Jobs over two test hosts with a cable between them. Exits with 77 and a reason where the system forbids name spaces."""
import os
import subprocess
import sys
import time
import unittest

from ranks import CUT, Job

SOURCES = os.environ.get("WEFT_TEST_SOURCES", os.getcwd())
TEST_HOSTS = os.path.join(SOURCES, "scripts", "test_hosts.sh")
RANKS = 4  # Two on each host.


def host_of(rank):
    return rank // 2


def between_hosts(*arguments, environment=None):
    hosts = os.environ["WEFT_TEST_HOSTS"]
    return Job(RANKS, *arguments, within=lambda rank: [TEST_HOSTS, "exec", str(host_of(rank))],
               address=hosts.split()[0].split("=")[1], environment={"WEFT_TEST_HOSTS": hosts, **(environment or {})})


class Hosts(unittest.TestCase):
    def test_everything_with_shared_memory_inside_and_tcp_between(self):
        with between_hosts("collectives_program", "sweep", "communicators", "sends", "windows") as job:
            job.finish()

    def test_a_killed_rank_is_named_on_both_hosts(self):
        for victim in (1, 3):
            with between_hosts("faults_program", "reduce", "300000", environment={"WEFT_TIMEOUT": "10s"}) as job:
                for rank in range(RANKS):
                    job.wait_for_line(rank, "READY")
                time.sleep(0.2)
                job.signal(victim, CUT)
                others = [rank for rank in range(RANKS) if rank != victim]
                for rank, lines in job.finish(ranks=others, timeout=20).items():
                    self.assertIn(f"rank {victim}", lines[0], f"rank {rank}")

    def test_a_cable_that_is_pulled_ends_every_rank_in_time(self):
        with between_hosts("faults_program", "reduce", "300000", environment={"WEFT_TIMEOUT": "3s"}) as job:
            for rank in range(RANKS):
                job.wait_for_line(rank, "READY")
            time.sleep(0.2)
            subprocess.run([TEST_HOSTS, "cut", "1"], check=True)
            start = time.monotonic()
            results = job.finish(timeout=30)
            self.assertLess(time.monotonic() - start, 20)
            for rank, lines in results.items():
                self.assertFalse(lines[0].startswith("success"), f"rank {rank}: {lines}")
            # On each side of the cable somebody names the other side.
            for host in (0, 1):
                said = " ".join(results[rank][0] for rank in results if host_of(rank) == host)
                far = [f"rank {rank}" for rank in range(RANKS) if host_of(rank) != host]
                self.assertTrue(any(name in said for name in far), results)
            subprocess.run([TEST_HOSTS, "heal", "1"], check=True)


if __name__ == "__main__":
    script = os.path.abspath(sys.argv[0])
    os.chdir(SOURCES)
    if "WEFT_TEST_HOSTS" not in os.environ:
        sys.exit(subprocess.run([TEST_HOSTS, "--hosts", "2", "--", sys.executable, script, *sys.argv[1:]], check=False).returncode)
    unittest.main(verbosity=2)
