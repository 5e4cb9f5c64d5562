"""Everything in weft.h, by real processes over every transport that this build has."""
import os
import unittest

from ranks import Job, leftovers

SHM = {"WEFT_TRANSPORTS": "shm"}
TCP = {"WEFT_TRANSPORTS": "tcp"}


def two_hosts(rank):
    return {"WEFT_HOST_ID": f"host{rank % 2}"}


class Collectives(unittest.TestCase):
    def run_parts(self, size, *parts, environment=None, per_rank=None):
        before = leftovers()
        with Job(size, "collectives_program", *parts, environment=environment, per_rank=per_rank) as job:
            job.finish()
        self.assertEqual(leftovers() - before, set())

    def test_everything_over_shared_memory(self):
        for size in (1, 2, 3, 5):
            with self.subTest(size=size):
                self.run_parts(size, "sweep", "communicators", "sends", "windows", "refusals", environment=SHM)

    def test_everything_over_tcp(self):
        for size in (2, 3):
            with self.subTest(size=size):
                self.run_parts(size, "sweep", "communicators", "sends", "windows", "refusals", environment=TCP)

    def test_everything_between_emulated_hosts(self):
        self.run_parts(4, "sweep", "communicators", "sends", "windows", per_rank=two_hosts)

    def test_more_ranks_than_cores(self):
        self.run_parts(6, "communicators", "sends", "windows")

    def test_small_limits(self):
        self.run_parts(3, "sweep", environment={"WEFT_SLICE_SIZE": "4096", "WEFT_EAGER_LIMIT": "64"})

    def test_one_rank_without_a_job(self):
        self.run_parts(1, "sweep", "communicators", "sends", "windows", "refusals",
                       per_rank=lambda _: {"WEFT_SIZE": "1"})


if __name__ == "__main__":
    os.chdir(os.environ.get("WEFT_TEST_SOURCES", "."))
    unittest.main(verbosity=2)
