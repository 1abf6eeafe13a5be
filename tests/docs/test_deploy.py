# SPDX-License-Identifier: Apache-2.0
"""deploy/ and the Dockerfile: their options, ports, variables and paths are those of `bertcl serve`."""
import copy
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import unittest

if importlib.util.find_spec("yaml") is None:
    raise unittest.SkipTest("PyYAML is not installed")

import yaml
from pages import ROOT, text_of
from test_commands import complaint

COMPOSE = ROOT / "deploy" / "compose.yaml"
KUBERNETES = ROOT / "deploy" / "kubernetes.yaml"
PROXY_SECONDS = 60  # that load balancers of AWS and nginx keep an idle connection


def routes():
    """Paths that GET asks for without a key."""
    source = "".join(text_of(file) for file in sorted((ROOT / "serve/routes").glob("routes_*.cpp")))
    return set(re.findall(r'\{"GET", "([^"]+)", \w+, true', source))


def number(arguments, option):
    return int(arguments[arguments.index(option) + 1])


def port_of(arguments):
    return number(arguments, "--port")


def about_program(arguments, variables):
    """What is wrong with a command line and environment."""
    if what := complaint(["bertcl", *arguments]):
        yield what
    if number(arguments, "--keep-alive") <= PROXY_SECONDS:
        yield "a proxy may use a connection that is being closed"
    listed = re.findall(r"`([A-Z][A-Z_]+)`", text_of(ROOT / "docs" / "environment.md"))
    yield from (f"unknown variable {name}" for name in variables
                if name not in listed and name != "NVIDIA_DRIVER_CAPABILITIES")


def about_compose(document):
    for name, service in document["services"].items():
        yield from about_program(service["command"], service["environment"])
        if service["ports"] != [f"127.0.0.1:8080:{port_of(service['command'])}"]:
            yield f"{name}: ports"
        if not any(volume.endswith(":/models:ro") for volume in service["volumes"]) or \
                service["environment"].get("BERTCL_MODEL") != "${BERTCL_MODEL:-}":
            yield f"{name}: no model of the user's"
        if service["profiles"] != [name] or not service["read_only"] or service["cap_drop"] != ["ALL"]:
            yield f"{name}: profile or rights"
        # NVIDIA's driver is of the host, and loads libraries that the image without a package manager does not have.
        if name == "nvidia" and (service["build"].get("target"), service["image"]) != ("debian", "bertcl-debian"):
            yield f"{name}: image"


def about_kubernetes(documents):
    deployment, service = documents
    pod = deployment["spec"]["template"]
    container, = pod["spec"]["containers"]
    yield from about_program(container["args"], [variable["name"] for variable in container["env"]])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    if port_of(container["args"]) not in ports.values():
        yield "the port of the program is not that of the container"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        if get["path"] not in routes():
            yield f"{probe}: no route {get['path']}"
        if get["port"] not in ports:
            yield f"{probe}: no port {get['port']}"
    if pod["spec"]["terminationGracePeriodSeconds"] <= number(container["args"], "--timeout"):
        yield "the grace period is shorter than a request may take"
    # docs/serving.md: bodies in flight, parsed ones, and the rest of the process.
    threads, payload = number(container["args"], "--threads"), number(container["args"], "--payload-limit")
    memory = re.fullmatch(r"(\d+)Gi", container["resources"]["limits"]["memory"])
    if threads * payload + 50 * max(8_000_000, 4 * payload) + 400_000_000 > int(memory[1]) << 30:
        yield "requests may take more memory than the container has"
    if threads <= 512:
        yield "with fewer threads than --max-queue, probes wait for requests"
    if not pod["spec"]["securityContext"]["runAsNonRoot"] or not container["securityContext"]["readOnlyRootFilesystem"]:
        yield "rights"
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    if mounts != {volume["name"] for volume in pod["spec"]["volumes"]}:
        yield "volumes"
    labels = pod["metadata"]["labels"]
    for selector in (service["spec"]["selector"], deployment["spec"]["selector"]["matchLabels"]):
        if selector.items() - labels.items():
            yield "labels"
    if service["spec"]["ports"][0]["targetPort"] not in ports:
        yield "the port of the service"


def set_number(arguments, option, value):
    arguments[arguments.index(option) + 1] = str(value)


class Deploy(unittest.TestCase):
    def setUp(self):
        self.compose = yaml.safe_load(text_of(COMPOSE))
        self.kubernetes = list(yaml.safe_load_all(text_of(KUBERNETES)))

    def test_files_fit_the_program(self):
        self.assertEqual(list(about_compose(self.compose)), [])
        self.assertEqual(list(about_kubernetes(self.kubernetes)), [])
        self.assertEqual(set(self.compose["services"]), {"cpu", "amd", "intel", "nvidia"})
        for service in self.compose["services"].values():  # files of the host beside the compose file
            for volume in service["volumes"]:
                if volume.startswith("."):
                    self.assertTrue((COMPOSE.parent / volume.split(":")[0]).is_file(), volume)

    def test_what_does_not_fit_is_found(self):
        def container(documents):
            return documents[0]["spec"]["template"]["spec"]["containers"][0]
        faults = (lambda d: container(d)["args"].append("--nonsense"),
                  lambda d: container(d)["env"].append({"name": "BERTCL_NONSENSE"}),
                  lambda d: container(d)["startupProbe"]["httpGet"].update(path="/healthz"),
                  lambda d: container(d)["livenessProbe"]["httpGet"].update(path="/info"),
                  lambda d: container(d)["ports"][0].update(containerPort=81),
                  lambda d: set_number(container(d)["args"], "--keep-alive", 60),
                  lambda d: set_number(container(d)["args"], "--threads", 512),
                  lambda d: set_number(container(d)["args"], "--payload-limit", 3_000_000),
                  lambda d: d[0]["spec"]["template"]["spec"].update(terminationGracePeriodSeconds=30),
                  lambda d: d[1]["spec"]["selector"].update(app="other"))
        for fault in faults:
            damaged = copy.deepcopy(self.kubernetes)
            fault(damaged)
            self.assertEqual(len(list(about_kubernetes(damaged))), 1)
        usual = ["serve", "--port", "8080", "--keep-alive", "75"]
        model = {"BERTCL_MODEL": "${BERTCL_MODEL:-}"}
        for key, value in (("command", [*usual, "--nonsense"]), ("command", [*usual[:-1], "5"]), ("ports", ["8080:81"]),
                           ("read_only", False), ("environment", {**model, "BERTCL_NONSENSE": "1"}),
                           ("environment", {}), ("volumes", ["cache:/cache"])):
            damaged = copy.deepcopy(self.compose)
            damaged["services"]["cpu"][key] = value
            self.assertEqual(len(list(about_compose(damaged))), 1, key)
        damaged = copy.deepcopy(self.compose)
        del damaged["services"]["nvidia"]["build"]["target"]  # the last stage
        self.assertEqual(list(about_compose(damaged)), ["nvidia: image"])

    def test_images_run_without_roots_rights(self):
        text = text_of(ROOT / "Dockerfile").replace("\\\n", "")
        last = {stage.split("\n")[0]: stage for stage in re.split(r"^FROM ", text, flags=re.MULTILINE)}
        for stage in (last["debian:12-slim AS debian"], last["scratch"]):
            # A number: kubelet does not look names up.
            self.assertRegex(stage, r"\nUSER 1000:1000\n(.|\n)*\nEXPOSE 8080\n(.|\n)*\nENTRYPOINT \[\"bertcl\"\]")
        self.assertEqual(list(last)[-1], "scratch")

    def test_health_check_of_the_images(self):
        text = text_of(ROOT / "Dockerfile").replace("\\\n", "")
        command, other = map(json.loads, re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", text, re.MULTILINE))
        self.assertEqual(command, other)
        host, port, path = re.fullmatch(r"http://([\d.]+):(\d+)(/.*)", command[-1]).groups()
        self.assertIn(path, routes())
        self.assertIn(f"\nEXPOSE {port}\n", text)
        self.assertEqual(command[:4], ["busybox", "wget", "-Y", "off"])
        tools = (["busybox", "wget", "-Y", "off"], ["wget", "--tries=1", "--no-proxy"])
        program = [tool for tool in tools if shutil.which(tool[0])]
        if not program:
            self.skipTest("busybox or wget is missing")
        proxied = {name: value for name, value in os.environ.items() if name.lower() not in ("no_proxy", "http_proxy")}
        proxied["http_proxy"] = "http://127.0.0.1:1"  # no proxy is there: one that is asked is noticed

        def status(port):
            url = f"http://{host}:{port}{path}"
            return subprocess.run([*program[0], *command[4:-1], url], capture_output=True, env=proxied).returncode
        for first, healthy in (("HTTP/1.1 200 OK", True), ("HTTP/1.1 503 Service Unavailable", False)):
            with FakeServer(first) as server:
                self.assertEqual(status(server.port) == 0, healthy, first)
                self.assertRegex(server.asked, rb"^GET /health HTTP/1.[01]\r\n")
        self.assertNotEqual(status(1), 0)


class FakeServer:
    """Answers one connection with a first line."""

    def __init__(self, line):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.asked = b""
        self._thread = threading.Thread(target=self._serve, args=(line,), daemon=True)  # it may never be asked

    def _serve(self, line):
        connection, _ = self._socket.accept()
        with connection:
            while not self.asked.endswith(b"\r\n\r\n") and (part := connection.recv(1000)):
                self.asked += part
            connection.sendall(line.encode() + b"\r\n\r\n")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(timeout=2)
        self._socket.close()
