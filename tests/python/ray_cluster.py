# SPDX-License-Identifier: Apache-2.0
"""ray_cluster.py ENCODER RESULTS: a cluster of three nodes on this machine, of which one is killed while a data set
is mapped; then Ray Serve. What was seen is written as JSON and judged by test_ray.py."""
import json
import os
import pathlib
import sys
import time
import unittest.mock
import urllib.error
import urllib.request

import numpy as np
import ray
import ray.data
import ray.serve._private.controller  # compiled before Ray waits for processes that each would do so
import ray.serve._private.proxy
from ray import serve
from ray.cluster_utils import Cluster

import bertcl
import bertcl.ray

ROOT = pathlib.Path(__file__).resolve().parents[2]
QA_MODEL = str(ROOT / "models" / "minilm-l6-squad")
URL = "http://127.0.0.1:8000/"


class Panic(BaseException):
    """As those of tokenizers: no Exception."""


class Picky:
    """Refuses some of its texts, and with them the batch."""

    def __init__(self, model):
        pass

    def apply(self, texts):
        if "bad" in texts:
            raise ValueError("a bad text")
        if "panic" in texts:
            raise Panic("a panic")
        return [text.upper() for text in texts]


class SlowAnswer(bertcl.ray.Answer):
    """Waits, so that the loss of a node meets batches that run, are done and are to come."""

    def __call__(self, batch):
        time.sleep(0.5)
        threads = os.environ.get("POCL_MAX_PTHREAD_COUNT", "")
        return {**super().__call__(batch), "threads": np.array([threads] * len(batch["id"]), object)}


def question_rows():
    articles = json.loads((ROOT / "data" / "calibration.json").read_text(encoding="utf-8"))["data"]
    pairs = [(q["question"], p["context"]) for a in articles for p in a["paragraphs"] for q in p["qas"]]
    return [{"id": i, "question": question, "context": context} for i, (question, context) in enumerate(pairs)]


def as_batch(rows):
    return {key: np.array([row[key] for row in rows], object) for key in rows[0]}


def alive():
    return sum(node["Alive"] for node in ray.nodes())


def alive_after_loss(before):
    """Ray notices the loss by missed health checks, on a busy machine later than the last answer comes."""
    end = time.monotonic() + 60
    while alive() == before and time.monotonic() < end:
        time.sleep(0.5)
    return alive()


def answered(batch):
    return list(zip(*(batch[key].tolist() for key in ("id", "answer", "start", "end", "score"))))


def lose_a_node(cluster, victim, rows):
    dataset = bertcl.ray.map_texts(ray.data.from_items(rows, override_num_blocks=20), SlowAnswer, workers=3,
                                   batch_size=5, model=QA_MODEL)
    made, nodes, threads = [], [], set()
    for batch in dataset.iter_batches(batch_size=5, prefetch_batches=0):
        made += answered(batch)
        threads.update(batch["threads"].tolist())
        if not nodes:
            nodes.append(alive())
            cluster.remove_node(victim, allow_graceful=False)
    nodes.append(alive_after_loss(nodes[0]))
    return {"nodes": nodes, "threads": sorted(threads), "made": sorted(made),
            "expected": answered(bertcl.ray.Answer(QA_MODEL)(as_batch(rows)))}


def embed(model, rows):
    texts = [{"id": row["id"], "sentence": row["context"]} for row in rows]
    dataset = bertcl.ray.map_texts(ray.data.from_items(texts), bertcl.ray.Embed, workers=2, batch_size=7, model=model,
                                   column="sentence", pooling="mean")
    made = {row["id"]: row["embedding"] for row in dataset.take_all()}
    expected = bertcl.SentenceTransformer(model, pooling="mean").encode([row["sentence"] for row in texts])
    return {"rows": len(made), "different_bits": sum(not np.array_equal(made[i], vector)
                                                     for i, vector in enumerate(expected))}


def post(body, route=""):
    request = urllib.request.Request(URL + route, body.encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error).get("error")


def serve_answers(rows):
    questions = [{key: row[key] for key in ("question", "context")} for row in rows[:6]]
    questions.append({"question": "who " * 378, "context": "The engine was made by Ada Lovelace in London."})
    expected = bertcl.ray.Answer(QA_MODEL).apply(questions)
    handle = serve.run(bertcl.ray.deployment(QA_MODEL, "answer", replicas=2))
    served = {"expected": expected, "by_handle": handle.infer.remote(questions).result(),
              "by_http": post(json.dumps({"inputs": questions})),
              "together": [each.result() for each in [handle.infer.remote([q]) for q in questions]]}
    bad = ["", "[1]", "{}", '{"inputs": "a"}', '{"inputs": ["a"]}', '{"inputs": [{"question": "Who?", "context": ""}]}',
           r'{"inputs": [{"question": "Who?", "context": "half of a pair: \ud83d"}]}',
           '{"inputs": ' + 100_000 * "[" + 100_000 * "]" + "}"]
    refused = {body: post(body) for body in bad}
    served["refused_by_handle"] = [error_of(handle.infer.remote(inputs).result)
                                   for inputs in ("A cat", {"question": "Who?", "context": "I."}, ["a"], 5)]
    return served, refused


def serve_picky_worker():
    """What each of some requests gets that run as one batch, and then one by HTTP."""
    texts = ["a", "bad", "b", "panic", "c"]
    with unittest.mock.patch.dict(bertcl.ray.TASKS, picky=Picky):
        handle = serve.run(bertcl.ray.deployment("", "picky", max_batch_size=len(texts), wait_seconds=1),
                           name="picky", route_prefix="/picky")
    made = [handle.infer.remote([text]) for text in texts]
    return {"together": [error_of(each.result) or each.result() for each in made],
            "by_http": post(json.dumps({"inputs": ["bad"]}), "picky"), "afterwards": handle.infer.remote(["d"]).result()}


@ray.remote
def threads_of_worker():
    os.environ.pop("POCL_MAX_PTHREAD_COUNT", None)
    bertcl.ray._use_what_is_assigned()
    return os.environ.get("POCL_MAX_PTHREAD_COUNT")


def error_of(action):
    try:
        action()
    except Exception as error:  # whatever Ray wraps it in
        return str(error)
    return None


def main(encoder, results):
    # Without Ray's processes that only show or scale something.
    cluster = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 2, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True})
    cluster.add_node(num_cpus=1)
    victim = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    rows = question_rows()
    found = {"answers": lose_a_node(cluster, victim, rows), "vectors": embed(encoder, rows)}
    serve.start(proxy_location="HeadOnly")
    found["served"], found["refused"] = serve_answers(rows)
    found["picky"] = serve_picky_worker()
    serve.shutdown()
    found["threads"] = [ray.get(threads_of_worker.options(num_cpus=cpus).remote()) for cpus in (0.5, 1.5, 0)]
    found["errors"] = {
        "task": error_of(lambda: bertcl.ray.deployment(QA_MODEL, "classfy")),
        "batch_size": error_of(lambda: bertcl.ray.map_texts(None, bertcl.ray.Embed, batch_size=0)),
        "top_k": error_of(lambda: bertcl.ray.map_texts(ray.data.from_items([{"text": "a"}]), bertcl.ray.Classify,
                                                       model=encoder, top_k=2)),
        "surrogate": error_of(lambda: bertcl.ray._checked(["a \U0001f600", "\ud83d"], "embed")),
        "column": error_of(lambda: bertcl.ray.Embed(encoder, pooling="mean")({"sentence": ["a"]})),
        "null": error_of(lambda: bertcl.ray.Embed(encoder, pooling="mean")({"text": np.array(["a", None])}))}
    ray.shutdown()
    cluster.shutdown()
    pathlib.Path(results).write_text(json.dumps(found))


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Serve kills a proxy that is not ready after three times 5 seconds, less than its imports take on a busy machine.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    os.environ.setdefault("RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "60")
    main(*sys.argv[1:])
