# SPDX-License-Identifier: Apache-2.0
"""bench_http_load, the client of bench/serve_load: what it counts, and that waiting for the server counts as latency."""
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
        refused = server.refuses and count % 4 == 0
        answer = b"[" + b"1," * 20_000 + b"1]"  # more than one packet
        self.send_response(429 if refused else 200)
        self.send_header("Content-Length", str(len(answer)))
        if count % 5 == 0:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, delay=0.0, refuses=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.delay, self.refuses, self.bodies = threading.Lock(), delay, refuses, []

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
            report = self.load(server, "--connections", "3", "--seconds", "0.5")
            answered = sum(report["statuses"].values())
            self.assertTrue(answered <= len(server.bodies) <= answered + 3)
            self.assertEqual(set(server.bodies), {'{"a": 1}', '{"b": "\u00e9"}'})
            self.assertAlmostEqual(report["statuses"]["429"], answered / 4, delta=3)
            self.assertEqual(report["lost"], 0)
            self.assertAlmostEqual(report["rate"], report["statuses"]["200"] / 0.5, delta=0.1 * report["rate"])

    def test_requests_come_as_often_as_they_should(self):
        with Server() as server:
            report = self.load(server, "--connections", "64", "--seconds", "2", "--rate", "150")
            self.assertAlmostEqual(len(server.bodies), 300, delta=75)  # a Poisson process: sqrt(300) is 17
            self.assertEqual(report["statuses"], {"200": len(server.bodies)})
            self.assertEqual((report["lost"], report["unanswered"]), (0, 0))

    def test_waiting_for_a_slow_server_counts(self):
        with Server(delay=0.05) as server:  # 20 requests/s
            closed = self.load(server, "--connections", "1", "--seconds", "1")
            self.assertLess(closed["latency_ms"]["p50"], 150)
            for connections in ("1", "64"):  # they wait in the client, or in the server
                opened = self.load(server, "--connections", connections, "--seconds", "1", "--rate", "60")
                self.assertGreater(opened["latency_ms"]["p99"], 700, connections)

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


if __name__ == "__main__":
    unittest.main()
