"""`weft run` with real processes: exit codes, ends, signals, output. Needs WEFT_COMMAND."""

import os
import signal
import subprocess
import tempfile
import time
import unittest

WEFT = os.environ.pop("WEFT_COMMAND")  # Gone, as it is no setting of Weft.
PATIENCE_S = 30  # The machine may be busy.
# Whoever runs this in the background may have set this to be ignored, which children inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run(*arguments, **keywords):
    return subprocess.run([WEFT, "run", *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                          stdin=keywords.pop("stdin", subprocess.DEVNULL), **keywords)


def start(*arguments):
    return subprocess.Popen([WEFT, "run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft-run-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def pids(self, count):
        """The numbers that `count` processes wrote to files in the folder."""
        def read():
            found = []
            for name in os.listdir(self.folder):
                with open(os.path.join(self.folder, name), encoding="ascii") as file:
                    text = file.read()
                if text.endswith("\n"):
                    found.append(int(text))
            return found
        self.assertTrue(wait_until(lambda: len(read()) == count), "the ranks did not start")
        return read()

    def sleepers(self):
        """A command whose ranks and their children write down who they are and sleep; they shrug SIGTERM off."""
        script = (f"trap '' TERM INT; echo $$ > {self.folder}/rank$WEFT_RANK; "
                  f"sh -c 'trap \"\" TERM INT; echo $$ > {self.folder}/child$WEFT_RANK; sleep 1000 & wait; sleep 1000'")
        return ["sh", "-c", script]

    def test_a_line_of_the_log_names_its_rank_once(self):
        done = run("-n", "2", "--", WEFT, "bench", "barrier", "-n", "1", env={**os.environ, "WEFT_LOG_LEVEL": "info"})
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "weft I" in line]
        self.assertTrue(any(line.startswith("[0] weft I") for line in lines), done)
        self.assertFalse(any("[rank " in line for line in lines if line.startswith("[")), lines)
        done = run("--no-tag", "-n", "2", "--", WEFT, "bench", "barrier", "-n", "1",
                   env={**os.environ, "WEFT_LOG_LEVEL": "info"})
        self.assertIn("weft I [rank 0]", done.stdout + done.stderr)

    def test_output_is_whole_lines_with_tags(self):
        result = run("-n", "3", "--", "sh", "-c",
                     "for i in 1 2 3 4 5 6 7 8 9; do printf 'a%s' $i; printf 'b\\n'; done; printf end; echo oops >&2")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        for rank in range(3):
            own = [line for line in lines if line.startswith(f"[{rank}] ")]
            self.assertEqual(own, [f"[{rank}] a{i}b" for i in range(1, 10)] + [f"[{rank}] end"])
        self.assertEqual(len(lines), 30)
        self.assertEqual(sorted(result.stderr.splitlines()), [f"[{rank}] oops" for rank in range(3)])

    def test_without_tags(self):
        self.assertEqual(run("-n", "2", "--no-tag", "--", "echo", "x").stdout, "x\nx\n")

    def test_environment(self):
        names = "WEFT_RANK WEFT_SIZE WEFT_LOCAL_RANK WEFT_LOCAL_SIZE WEFT_HOST_ID RANK WORLD_SIZE LOCAL_RANK"
        result = run("-n", "3", "--hosts", "2", "--", "sh", "-c",
                     "echo " + " ".join(f"${name}" for name in names.split()) + " ${#WEFT_SECRET} ${WEFT_ADDRESS%:*}")
        self.assertEqual(sorted(result.stdout.splitlines()),
                         ["[0] 0 3 0 2 host0 0 3 0 64 127.0.0.1", "[1] 1 3 1 2 host0 1 3 1 64 127.0.0.1",
                          "[2] 2 3 0 1 host1 2 3 0 64 127.0.0.1"])

    def test_input_is_for_rank_0(self):
        with tempfile.TemporaryFile("w+") as text:
            text.write("hello\n")
            text.seek(0)
            result = run("-n", "2", "--", "cat", stdin=text)
        self.assertEqual(result.stdout, "[0] hello\n")

    def test_exit_code_of_the_first_that_fails(self):
        began = time.monotonic()
        result = run("-n", "3", "--", "sh", "-c", "[ $WEFT_RANK = 2 ] && exit 3; exec sleep 1000")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, r"^weft run: rank 2 \(pid \d+\) exited with code 3\n$")
        self.assertLess(time.monotonic() - began, 20)

    def test_a_rank_that_is_killed(self):
        result = run("-n", "2", "--", "sh", "-c", "[ $WEFT_RANK = 1 ] && kill -9 $$; exec sleep 1000")
        self.assertEqual(result.returncode, 128 + 9)
        self.assertRegex(result.stderr, r"^weft run: rank 1 \(pid \d+\) killed by signal 9 \(Killed\)\n$")

    def test_last_words_come_before_the_blame(self):
        result = run("-n", "2", "--", "sh", "-c", "[ $WEFT_RANK = 1 ] && { printf 'why' >&2; exit 4; }; exec sleep 1000")
        self.assertEqual(result.stderr.splitlines()[0], "[1] why")
        self.assertIn("rank 1", result.stderr.splitlines()[1])

    def test_ranks_that_do_not_want_to_end_and_their_children(self):
        job = start("-n", "2", "--", *self.sleepers())
        pids = self.pids(4)
        os.kill(pids[0], signal.SIGKILL)
        job.communicate(timeout=PATIENCE_S)
        self.assertTrue(wait_until(lambda: not any(map(is_alive, pids))), "a process was left")

    def test_ctrl_c(self):
        job = start("-n", "2", "--", "sh", "-c", f"echo $$ > {self.folder}/$WEFT_RANK; exec sleep 1000")
        pids = self.pids(2)
        job.send_signal(signal.SIGINT)
        _, errors = job.communicate(timeout=PATIENCE_S)
        self.assertEqual(job.returncode, 130, errors)
        self.assertFalse(any(map(is_alive, pids)))

    def test_second_ctrl_c_does_not_wait(self):
        job = start("-n", "2", "--", *self.sleepers())
        pids = self.pids(4)
        job.send_signal(signal.SIGINT)
        self.assertIn("Interrupt received", job.stderr.readline())
        began = time.monotonic()
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=PATIENCE_S)
        self.assertLess(time.monotonic() - began, 2.5)
        self.assertEqual(job.returncode, 130)
        self.assertTrue(wait_until(lambda: not any(map(is_alive, pids))))

    def test_sigterm(self):
        job = start("-n", "2", "--", "sh", "-c", f"echo $$ > {self.folder}/$WEFT_RANK; exec sleep 1000")
        pids = self.pids(2)
        job.terminate()
        job.communicate(timeout=PATIENCE_S)
        self.assertEqual(job.returncode, 143)
        self.assertFalse(any(map(is_alive, pids)))

    def test_no_orphans_when_the_launcher_is_killed(self):
        job = start("-n", "2", "--", *self.sleepers())
        pids = self.pids(4)
        job.kill()
        job.wait(timeout=PATIENCE_S)
        self.assertTrue(wait_until(lambda: not any(map(is_alive, pids))), "an orphan")
        job.stdout.close()
        job.stderr.close()

    def test_what_a_rank_leaves_behind_is_ended(self):
        result = run("-n", "1", "--", "sh", "-c", f"sleep 1000 & echo $! > {self.folder}/left")
        self.assertEqual(result.returncode, 0)
        (pid,) = self.pids(1)
        self.assertTrue(wait_until(lambda: not is_alive(pid)))

    def test_timeout(self):
        result = run("-n", "2", "--timeout", "300ms", "--", "sh", "-c", "[ $WEFT_RANK = 0 ] || exec sleep 1000")
        self.assertEqual(result.returncode, 124)
        self.assertIn("time is over: rank 1 still ran", result.stderr)

    def test_a_reader_that_goes_away_ends_the_job(self):
        job = start("-n", "2", "--", "sh", "-c", "while :; do echo line; done")
        job.stdout.readline()
        job.stdout.close()
        job.stderr.read()
        self.assertEqual(job.wait(timeout=PATIENCE_S), 128 + signal.SIGPIPE)
        job.stderr.close()

    def test_command_not_found(self):
        result = run("-n", "2", "--", "weft-no-such-command")
        self.assertEqual(result.returncode, 127)
        self.assertIn("weft-no-such-command", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertEqual(run("--", "/etc/passwd").returncode, 126)

    def test_usage(self):
        self.assertEqual(run("-n", "0", "--", "true").returncode, 2)
        self.assertEqual(run("-n", "2").returncode, 2)
        self.assertEqual(run("-n", "2", "--hosts", "3", "--", "true").returncode, 2)
        self.assertEqual(run("--timeout", "soon", "--", "true").returncode, 2)

    def test_options_of_the_command_are_its_own(self):
        self.assertEqual(run("-n", "1", "--", "sh", "-c", "echo of $0 $@", "-n", "--help").stdout, "[0] of -n --help\n")

    def test_binding(self):
        result = run("-n", "1", "--bind", "core", "--", "nproc")
        self.assertEqual(result.stdout, "[0] 1\n")

    def test_output_dir(self):
        folder = os.path.join(self.folder, "out")
        run("-n", "2", "--output-dir", folder, "--", "sh", "-c", "echo $WEFT_RANK; echo e >&2")
        with open(os.path.join(folder, "rank_1.out"), encoding="ascii") as file:
            self.assertEqual(file.read(), "1\n")
        with open(os.path.join(folder, "rank_0.err"), encoding="ascii") as file:
            self.assertEqual(file.read(), "e\n")

    def test_many_ranks(self):
        result = run("-n", "48", "--", "sh", "-c", "echo $WEFT_RANK")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(int(line.split("]")[1]) for line in result.stdout.splitlines()), list(range(48)))


if __name__ == "__main__":
    unittest.main()
