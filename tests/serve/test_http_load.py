# SPDX-License-Identifier: Apache-2.0
"""bench_http_load, the client of bench/serve_load: what it counts, and that waiting for the server counts as
latency."""
import http.server
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR") or pathlib.Path(__file__).resolve().parents[2] / "build")
PROGRAM = BUILD / "bench" / "bench_http_load"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        with server.lock:  # one at a time
            time.sleep(server.delay)
            server.bodies.append(body.decode())
            count = len(server.bodies)
        if server.cuts and count % 3 == 0:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            self.close_connection = True
            return
        refused = server.refuses and count % 4 == 0
        answer = b"[" + b"1," * 20_000 + b"1]"  # more than one packet
        self.send_response(429 if refused else 200)
        self.send_header("Content-Length", str(len(answer)))
        if count % 5 == 0:
            self.send_header("Connection", "close")
            self.close_connection = True
        if server.closes and count % 3 == 0:
            self.close_connection = True  # without the header
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, delay=0.0, refuses=False, closes=False, cuts=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.delay, self.bodies = threading.Lock(), delay, []
        self.refuses, self.closes, self.cuts = refuses, closes, cuts

    def handle_error(self, request, client_address):
        pass  # a client that leaves at the end of its time

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


@unittest.skipUnless(PROGRAM.exists(), "bench_http_load is not built")
class HttpLoad(unittest.TestCase):
    def load(self, server, *options, bodies=('{"a": 1}', '{"b": "\u00e9"}')):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write("\n".join(bodies) + "\n")
            file.flush()
            done = subprocess.run([PROGRAM, f"http://127.0.0.1:{server.server_port}/embed", file.name, *options],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_statuses_and_bodies(self):
        with Server(refuses=True) as server:
            report = self.load(server, "--connections", "3", "--seconds", "2")
            answered = sum(report["statuses"].values())
            self.assertTrue(answered <= len(server.bodies) <= answered + 3)
            self.assertEqual(set(server.bodies), {'{"a": 1}', '{"b": "\u00e9"}'})
            self.assertAlmostEqual(report["statuses"].get("429", 0), answered / 4, delta=3)
            self.assertEqual(report["lost"], 0)

    def test_requests_come_as_often_as_they_should(self):
        with Server() as server:
            report = self.load(server, "--connections", "64", "--seconds", "2", "--rate", "150")
            self.assertAlmostEqual(len(server.bodies), 300, delta=75)  # a Poisson process: sqrt(300) is 17
            self.assertEqual(report["statuses"], {"200": len(server.bodies)})
            self.assertEqual((report["lost"], report["unanswered"]), (0, 0))

    def test_waiting_for_a_slow_server_counts(self):
        with Server(delay=0.05) as server:  # 20 requests/s
            closed = self.load(server, "--connections", "1", "--seconds", "1")
            self.assertLess(closed["latency_ms"]["p50"], 400)
            self.assertTrue(0 < closed["rate"] <= 20, closed["rate"])
            for connections in ("1", "64"):  # they wait in the client, or in the server
                opened = self.load(server, "--connections", connections, "--seconds", "1", "--rate", "60")
                self.assertGreater(opened["latency_ms"]["p99"], 700, connections)

    def test_a_request_is_sent_again_if_the_connection_was_closed_while_idle(self):
        for options in (["--connections", "3"], ["--connections", "3", "--rate", "100"]):
            with self.subTest(options=options), Server(closes=True) as server:
                report = self.load(server, "--seconds", "2", *options)
                answered = report["statuses"]["200"]
                self.assertGreater(answered, 6)
                self.assertTrue(answered <= len(server.bodies) <= answered + 3)
                self.assertEqual((report["lost"], report["unanswered"]), (0, 0))

    def test_a_request_whose_answer_is_cut_is_lost(self):
        for options in (["--connections", "1"], ["--connections", "3", "--rate", "100"]):
            with self.subTest(options=options), Server(cuts=True) as server:
                report = self.load(server, "--seconds", "2", *options)
                self.assertAlmostEqual(report["lost"], len(server.bodies) // 3, delta=1)
                self.assertAlmostEqual(report["lost"] + report["statuses"]["200"], len(server.bodies), delta=1)
                self.assertEqual(report["unanswered"], 0)

    def test_a_server_that_does_not_answer(self):
        with Server(delay=60) as server:
            report = self.load(server, "--connections", "2", "--seconds", "1", "--rate", "20")
        self.assertEqual((report["statuses"], report["latency_ms"]), ({}, {}))
        self.assertEqual((report["rate"], report["lost"]), (0, 0))
        self.assertAlmostEqual(report["unanswered"], 20, delta=15)  # two were sent, the others wait in the client
        self.assertGreater(report["unanswered"], 2)

    def test_bad_options(self):
        url = "http://127.0.0.1:80/"
        faults = [([url, "--seconds", "0"], "--seconds"), ([url, "--rate", "-1"], "--rate")]
        faults += [([f"http://127.0.0.1:{port}/"], "the port of the URL must be 1 to 65535")
                   for port in ("", "0", "65536", "80x", "99999999999")]
        for arguments, message in faults:
            done = subprocess.run([PROGRAM, *arguments, __file__], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertIn(message, done.stderr)

    def test_a_server_that_is_not_there(self):
        with Server() as server:
            port = server.server_port
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("{}\n")
            file.flush()
            done = subprocess.run([PROGRAM, f"http://127.0.0.1:{port}/", file.name], capture_output=True, text=True,
                                  timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("refused", done.stderr)
