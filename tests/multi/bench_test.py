"""`weft bench` with real ranks: exact results everywhere, and what it says. Needs WEFT_COMMAND."""

import json
import os
import subprocess
import tempfile
import unittest

WEFT = os.environ.pop("WEFT_COMMAND")  # Gone, as it is no setting of Weft.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUICK = ["-w", "1", "-n", "3"]


def weft(*arguments, environment=None, timeout=60):
    return subprocess.run([WEFT, *arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, WEFT_TIMEOUT="30s", **(environment or {})))


class Bench(unittest.TestCase):
    def bench(self, *arguments, code=0, **keywords):
        result = weft("bench", *arguments, **keywords)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout

    def results(self, *arguments):
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
            path = os.path.join(folder, "results.json")
            self.bench(*arguments, "--json", path)
            with open(path, encoding="utf-8") as file:
                return json.load(file)

    def test_all_collectives_are_right(self):
        for ranks, hosts in ((1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (4, 2)):
            with self.subTest(ranks=ranks, hosts=hosts):
                text = self.bench("all", "-N", str(ranks), "--hosts", str(hosts), "-b", "4", "-e", "64K", "-f", "128", *QUICK)
                self.assertIn("# wrong values: 0, OK", text)
                self.assertIn(f"# ranks {ranks} on {hosts} host", text)
                self.assertEqual("n/a" in text.split("# broadcast")[1].split("\n# all_gather")[0], ranks == 1)

    def test_types_ops_and_roots(self):
        for data_type in ("int8", "half", "bfloat16", "double", "uint64"):
            with self.subTest(type=data_type):
                self.bench("reduce_scatter", "-N", "3", "-o", "all", "-d", data_type, "-b", "8", "-e", "8K", "-f", "64", *QUICK)
        self.bench("gather", "-N", "3", "-r", "2", "-b", "8", "-e", "8K", "-f", "32", *QUICK)

    def test_allocated_memory(self):
        self.bench("all_reduce", "-N", "2", "--memory", "allocated", "-e", "1M", "-f", "32", *QUICK)

    def test_results_that_cannot_be_written_are_refused_before_anything_is_measured(self):
        for option, path in (("--json", "/nonexistent/results.json"), ("--report", "/proc/report"), ("--report", "/dev/null")):
            with self.subTest(option=option, path=path):
                text = self.bench("all_reduce", "-N", "2", "-e", "8", *QUICK, option, path, code=3)
                self.assertNotIn("# all_reduce", text)
                self.assertNotIn(" sum ", text)

    def test_a_plan_file_that_is_none_is_an_error(self):
        for path in ("/", "/dev/zero"):
            with self.subTest(path=path):
                result = weft("plan", "verify", path)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(path, result.stderr)

    def test_tcp_can_be_asked_for(self):
        text = self.bench("all_reduce", "-N", "2", "--transport", "tcp", "-e", "64K", "-f", "128", *QUICK)
        self.assertIn("# transport tcp: 0-1", text)

    def test_bandwidths_follow_from_times(self):
        for collective, factor in (("all_reduce", 4 / 3), ("all_gather", 2 / 3), ("broadcast", 1)):
            document = self.results(collective, "-N", "3", "-b", "1K", "-e", "64K", "-f", "8", *QUICK)
            for row in document["results"]:
                self.assertAlmostEqual(row["algbw_gbs"], row["bytes"] / row["median_us"] / 1e3, delta=row["algbw_gbs"] * 1e-3)
                self.assertAlmostEqual(row["busbw_gbs"], row["algbw_gbs"] * factor, delta=row["busbw_gbs"] * 1e-3)
                self.assertLessEqual(row["min_us"], row["median_us"])
                self.assertLessEqual(row["median_us"], row["p99_us"])

    def test_the_output_alone_says_what_was_measured(self):
        text = self.bench("all_reduce", "-N", "4", "--hosts", "2", "-b", "8", "-e", "8", "-n", "7", "-w", "2")
        for part in ("ranks 4 on 2 hosts", "rank 3 pid", "# transport tcp:", "2-3", "algorithm all_reduce, 8 to 8 bytes:",
                     "7 iterations after 2 warm-ups", "checked exactly", "commit", "WEFT_HOST_ID"):
            self.assertIn(part, text)

    def test_point_to_point(self):
        document = self.results("p2p", "-N", "2", "-b", "8", "-e", "64K", "-f", "128", *QUICK)
        names = {row["collective"] for row in document["results"]}
        self.assertEqual(names, {"send_recv", "send_recv_one_way", "send_recv_both_ways"})
        self.assertTrue(all(row["wrong"] == 0 for row in document["results"]))
        text = self.bench("p2p", "-N", "3", "--pairs", "-b", "8", "-e", "64K", *QUICK)
        self.assertIn("half of a round trip of 8 bytes", text)

    def test_workload(self):
        document = self.results("workload", os.path.join(ROOT, "workloads", "resnet50.json"), "-N", "2", "--scale", "0.01",
                                "--steps", "2", "-w", "1")
        (workload,) = document["workloads"]
        self.assertEqual(len(workload["steps"]), 5)
        self.assertGreater(workload["step_median_us"], 0)
        self.assertIn("scaled by 0.01", " ".join(document["notes"]))

    def test_report(self):
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
            self.bench("all_reduce", "-N", "2", "-e", "1K", "--report", folder, *QUICK)
            with open(os.path.join(folder, "index.html"), encoding="utf-8") as file:
                self.assertIn("<svg", file.read())
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                document = json.load(file)
        self.assertEqual(document["schema"], "weft-results-1")
        self.assertEqual(document["ranks"], 2)
        self.assertIn("memcpy", [limit["name"] for limit in document["limits"]])

    def test_rank_0_alone_may_be_given_the_outputs(self):
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
            results = os.path.join(folder, "results.json")
            script = f"""[ "$WEFT_RANK" = 0 ] && outputs="--json {results}"
                         exec "{WEFT}" bench all_reduce -b 8 -e 64 -n 5 $outputs"""
            done = subprocess.run([WEFT, "run", "-n", "2", "--", "sh", "-c", script], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(results, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["ranks"], 2)

    def test_nonsense_is_refused_before_anything_starts(self):
        for arguments in (["-b", "1M", "-e", "8"], ["-f", "1"], ["-d", "complex"], ["-o", "xor"], ["-r", "2"],
                          ["-b", "lots"], ["-c", "2"], ["--memory", "none"], ["-i", "0"], ["--hosts", "3"]):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.bench("all_reduce", "-N", "2", *arguments, code=2), "")
        self.bench("all_reduze", code=2)
        self.bench(code=2)
        result = weft("run", "-n", "2", "--", WEFT, "bench", "all_reduce", "-r", "5")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(sum("-r 5" in line for line in result.stderr.splitlines()), 1, result.stderr)

    def test_threshold(self):
        text = self.bench("all_reduce", "-N", "2", "-e", "1K", "--threshold-busbw", "100000", *QUICK, code=1)
        self.assertIn("FAILED: the threshold", text)

    def test_a_foreign_launcher_is_not_mistaken_for_one_rank(self):
        environment = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
        result = weft("bench", "all_reduce", "-e", "8", *QUICK, environment=environment)
        if result.returncode == 0:
            self.assertIn("world size 1 although launched as", result.stdout)
        else:
            self.assertIn("WEFT_ADDRESS", result.stderr)

    def test_other_commands(self):
        self.assertIn("WEFT_TIMEOUT", weft("settings").stdout)
        self.assertEqual(json.loads(weft("info", "--json").stdout)["schema"], "weft-info-1")
        self.assertIn("ring", weft("plan", "list").stdout)
        plan = weft("plan", "show", "all_reduce", "--algorithm", "ring", "-n", "3").stdout
        with tempfile.TemporaryDirectory(prefix="weft-plan-") as folder:
            path = os.path.join(folder, "plan.txt")
            with open(path, "w", encoding="ascii") as file:
                file.write(plan)
            self.assertIn("RIGHT", weft("plan", "verify", path).stdout)
            with open(path, "w", encoding="ascii") as file:
                file.write(plan.replace(" op from", " from").replace("receive_reduce", "receive").replace("] = input", "]#"))
            self.assertNotEqual(weft("plan", "verify", path).returncode, 0)
            picture = os.path.join(folder, "plan.svg")
            self.assertEqual(weft("plan", "draw", path.replace("plan.txt", "none"), "-o", picture).returncode, 2)
            self.assertEqual(weft("plan", "draw", "all_reduce", "--algorithm", "ring", "-o", picture).returncode, 0)
        self.assertRegex(weft("--version").stdout, r"^weft \d+\.\d+\.\d+ \(")
        self.assertEqual(weft("bench", "--help").returncode, 0)
        self.assertEqual(weft().returncode, 2)

    def test_bootstrap_serve(self):
        with subprocess.Popen([WEFT, "bootstrap", "serve", "--size", "2"], stdout=subprocess.PIPE, text=True) as server:
            lines = [server.stdout.readline().removeprefix("export ").strip() for _ in range(3)]
            environment = dict(os.environ, **dict(line.split("=", 1) for line in lines))
            ranks = [subprocess.Popen([WEFT, "bench", "all_reduce", "-e", "1K", *QUICK], stdout=subprocess.PIPE, text=True,
                                      env=dict(environment, WEFT_RANK=str(rank))) for rank in range(2)]
            texts = [rank.communicate(timeout=60)[0] for rank in ranks]
            self.assertIn("OK", texts[0])
            self.assertEqual(texts[1], "", "only rank 0 speaks")
            self.assertEqual(server.wait(timeout=30), 0)


if __name__ == "__main__":
    unittest.main()
