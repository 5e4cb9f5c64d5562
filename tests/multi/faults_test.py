"""Jobs in which something goes wrong: everybody else ends with an error that names the cause, and nothing is left behind."""
import functools
import os
import time
import unittest

from ranks import CUT, PAUSE, Job, leftovers

RESULT_TIMEOUT = 20


def over_every_transport(test):
    @functools.wraps(test)
    def run(self):
        for transports in ("shm", "tcp"):
            with self.subTest(transports=transports):
                test(self, {"WEFT_TRANSPORTS": transports})

    return run


class Faults(unittest.TestCase):
    def setUp(self):
        self.before = leftovers()

    def tearDown(self):
        self.assertEqual(leftovers() - self.before, set())

    @over_every_transport
    def test_a_killed_rank_is_named_by_all_others(self, environment):
        for count in ("2", "300000"):
            with Job(4, "faults_program", "reduce", count, environment={**environment, "WEFT_TIMEOUT": "10s"}) as job:
                for rank in range(4):
                    job.wait_for_line(rank, "READY")
                time.sleep(0.2)
                job.signal(2, CUT)
                for rank, (first, later) in job.finish(ranks=(0, 1, 3), timeout=RESULT_TIMEOUT).items():
                    self.assertTrue(first.startswith("peer failed"), f"rank {rank}: {first}")
                    self.assertIn("rank 2", first)
                    self.assertIn("rank 2", later)

    @over_every_transport
    def test_a_stopped_rank_is_named_when_the_time_is_up(self, environment):
        with Job(3, "faults_program", "reduce", "300000", environment={**environment, "WEFT_TIMEOUT": "2s"}) as job:
            for rank in range(3):
                job.wait_for_line(rank, "READY")
            time.sleep(0.2)
            job.signal(1, PAUSE)
            start = time.monotonic()
            results = job.finish(ranks=(0, 2), timeout=RESULT_TIMEOUT)
            self.assertLess(time.monotonic() - start, 15)
            self.assertTrue(any("rank 1" in lines[0] for lines in results.values()), results)
            for lines in results.values():
                self.assertFalse(lines[0].startswith("success"), results)

    @over_every_transport
    def test_what_was_sent_arrives_though_the_sender_has_ended(self, environment):
        for part, size in (("send_then_exit", "100"), ("send_then_destroy", "100"), ("send_then_destroy", "500000")):
            with Job(3, "faults_program", part, size, environment=environment) as job:
                for rank, lines in job.finish().items():
                    if rank != 0:
                        self.assertEqual(lines[0].split()[0], "success", f"{part} {size} rank {rank}: {lines}")

    @over_every_transport
    def test_memory_that_a_failed_rank_uses_again_is_not_taken_for_what_it_sent(self, environment):
        for kind in ("plain", "allocated"):
            with Job(2, "faults_program", "use_again", kind, environment=environment) as job:
                first = job.finish()[1][0]
                self.assertTrue(first.startswith("closed"), first)
                self.assertIn("the test says so", first)

    @over_every_transport
    def test_all_ranks_are_created_though_the_first_is_gone_at_once(self, environment):
        for _ in range(3):
            with Job(8, "faults_program", "create_then_exit", environment=environment) as job:
                for rank, lines in job.finish().items():
                    if rank != 0:
                        self.assertEqual(lines[0].split()[0], "success", f"rank {rank}: {lines}")

    @over_every_transport
    def test_a_forked_child_does_no_harm(self, environment):
        with Job(2, "faults_program", "fork", environment=environment) as job:
            for lines in job.finish().values():
                self.assertEqual(lines[0].split()[0], "success")

    @over_every_transport
    def test_communicators_that_come_and_go_leave_no_descriptors(self, environment):
        with Job(2, "faults_program", "churn", "100", environment=environment) as job:
            job.finish()

    @over_every_transport
    def test_what_names_a_destroyed_communicator_is_told_so(self, environment):
        with Job(2, "faults_program", "use_late", environment=environment) as job:
            for lines in job.finish().values():
                self.assertEqual(lines[0].split()[0], "success")

    @over_every_transport
    def test_different_counts_are_named_by_both_sides(self, environment):
        with Job(2, "faults_program", "disagree", "count", environment=environment) as job:
            for lines in job.finish().values():
                self.assertTrue(lines[0].startswith("mismatch"), lines)
                self.assertIn("count 999", lines[0])
                self.assertIn("count 1000", lines[0])

    @over_every_transport
    def test_a_rank_that_makes_one_call_fewer_is_named(self, environment):
        with Job(3, "faults_program", "disagree", "fewer", environment=environment) as job:
            for rank, lines in job.finish().items():
                if rank != 0:
                    self.assertTrue(lines[0].startswith("peer failed"), lines)
                    self.assertIn("rank 0", lines[0])

    @over_every_transport
    def test_an_abort_reaches_everybody(self, environment):
        with Job(3, "faults_program", "disagree", "abort", environment=environment) as job:
            for rank, lines in job.finish().items():
                if rank != 0:
                    self.assertTrue(lines[0].startswith("closed"), lines)
                    self.assertIn("the test says so", lines[0])

    @over_every_transport
    def test_threads_hand_communicators_over(self, environment):
        with Job(2, "faults_program", "hand_over", "5", environment=environment) as job:
            job.finish()

    @over_every_transport
    def test_an_abort_by_another_thread_is_heard_as_such(self, environment):
        for _ in range(5):
            with Job(2, "faults_program", "abort", environment=environment) as job:
                for lines in job.finish().values():
                    self.assertTrue(lines[0].startswith("closed"), lines)
                    self.assertIn("enough", lines[0])

    @over_every_transport
    def test_ranks_may_exit_without_destroying(self, environment):
        with Job(3, "faults_program", "exit", environment=environment) as job:
            for lines in job.finish().values():
                self.assertEqual(lines[0].split()[0], "success")


if __name__ == "__main__":
    os.chdir(os.environ.get("WEFT_TEST_SOURCES", "."))
    unittest.main(verbosity=2)
