# SPDX-License-Identifier: Apache-2.0
"""Many machines: workers for Ray Data, and a deployment for Ray Serve. Needs the package ray.

    dataset = bertcl.ray.map_texts(ray.data.read_parquet("texts"), bertcl.ray.Embed, model="all-MiniLM-L6-v2")
    serve.run(bertcl.ray.deployment("all-MiniLM-L6-v2"))

A worker loads its model once and gives a text the same numbers in any batch on any worker of the same device and
driver. So a block that Ray computes again after it has lost a node comes out as it was.
"""
from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Sequence

import numpy as np
import ray  # the package, not this module
from ray import serve

import bertcl


class Embed:
    """Adds the column `output`, a float32 vector of each text in `column`. Options: those of SentenceTransformer."""

    def __init__(self, model: str, *, column: str = "text", output: str = "embedding", **options):
        _use_what_is_assigned()
        self.model = bertcl.SentenceTransformer(model, **options)
        self.column, self.output = column, output

    def __call__(self, batch: dict) -> dict:
        return {**batch, self.output: self.apply(_texts(batch, self.column))}

    def apply(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.encode(list(texts))


class Classify:
    """Adds the columns "label" and "score" of each text in `column`. Options: those of bertcl.Session."""

    def __init__(self, model: str, *, column: str = "text", **options):
        _use_what_is_assigned()
        self.model = bertcl.pipeline("text-classification", model, **options)
        self.column = column

    def __call__(self, batch: dict) -> dict:
        return {**batch, **_columns(self.apply(_texts(batch, self.column)), label=object, score=np.float32)}

    def apply(self, texts: Sequence[str]) -> list[dict]:
        return self.model(list(texts))


class Answer:
    """Adds the columns "answer", "score", "start" and "end" of each question about its context: a span of
    characters. Options: those of bertcl.Session."""

    def __init__(self, model: str, *, question: str = "question", context: str = "context", **options):
        _use_what_is_assigned()
        self.model = bertcl.pipeline("question-answering", model, **options)
        self.question, self.context = question, context

    def __call__(self, batch: dict) -> dict:
        pairs = zip(_texts(batch, self.question), _texts(batch, self.context))
        answers = self.apply([{"question": question, "context": context} for question, context in pairs])
        return {**batch, **_columns(answers, answer=object, score=np.float32, start=np.int64, end=np.int64)}

    def apply(self, questions: Sequence[dict]) -> list[dict]:
        return [self.model(each) for each in questions]


TASKS = {"embed": Embed, "classify": Classify, "answer": Answer}


def map_texts(dataset: ray.data.Dataset, worker: type, *, workers: int | tuple[int, int] = 1, batch_size: int = 256,
              cpus: float = 1, gpus: float = 0, **options) -> ray.data.Dataset:
    """The dataset with the columns that Embed, Classify or Answer adds.

    workers: processes, each with the model loaded, or (least, most) of them; cpus and gpus: what each takes up.
    batch_size: rows handed over at once. options: those of the worker, `model` among them.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected 1 or more")
    if "top_k" in options:
        raise ValueError("a row gets its best result alone; leave out top_k, which deployment() takes")
    least, most = (workers, workers) if isinstance(workers, int) else workers
    return dataset.map_batches(worker, batch_size=batch_size, num_cpus=cpus, num_gpus=gpus,
                               compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
                               fn_constructor_kwargs=options)


def deployment(model: str, task: str = "embed", *, replicas: int = 1, cpus: float = 1, gpus: float = 0,
               max_batch_size: int = 64, wait_seconds: float = 0.002, max_queued_requests: int = 256,
               **options) -> serve.Application:
    """An application for serve.run: POST {"inputs": [...]} gives {"outputs": [...]}, and its handle's method `infer`
    takes a list of inputs. Inputs are texts, or {"question", "context"} of the task "answer".

    replicas: processes with the model; give each its device by cpus and gpus. Requests that arrive within
    wait_seconds, max_batch_size of them at most, run as one batch without padding. More than max_queued_requests
    waiting: Ray Serve answers 503.
    """
    if task not in TASKS:
        raise ValueError(f"unknown task '{task}' (choose from {', '.join(TASKS)})")
    worker = TASKS[task]

    @serve.deployment(name=f"bertcl-{task}", num_replicas=replicas, max_ongoing_requests=2 * max_batch_size,
                      max_queued_requests=max_queued_requests, ray_actor_options={"num_cpus": cpus, "num_gpus": gpus})
    class Deployment:
        def __init__(self):
            self.worker = worker(model, **options)

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=wait_seconds)
        async def together(self, requests: list[list]) -> list:
            return await asyncio.to_thread(_outcomes, self.worker.apply, requests)

        async def infer(self, inputs: list) -> list:
            return await self.outputs_of(_checked(inputs, task))

        async def outputs_of(self, inputs: list) -> list:
            outcome = await self.together(inputs)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        async def __call__(self, request):
            from starlette.responses import JSONResponse

            try:
                inputs = _inputs(await request.json(), task)
            except (ValueError, RecursionError) as error:  # the latter of JSON that is nested deeply
                return JSONResponse({"error": str(error)}, status_code=422)
            try:
                outputs = await self.outputs_of(inputs)
            except Exception as error:  # of the model, whatever its type: not the client's fault
                logging.getLogger("ray.serve").exception("the model failed")
                return JSONResponse({"error": str(error)}, status_code=500)
            return {"outputs": outputs.tolist() if isinstance(outputs, np.ndarray) else outputs}

    return Deployment.bind()


def _use_what_is_assigned():
    """Of a worker, before it opens a device: PoCL takes a thread for each core of the node unless a variable says
    how many, and AMD's OpenCL does not read the variable that Ray sets for its GPUs."""
    if not ray.is_initialized() or ray.get_runtime_context().worker.mode != ray.WORKER_MODE:
        return
    if cpus := ray.get_runtime_context().get_assigned_resources().get("CPU"):
        os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", str(math.ceil(cpus)))  # one of half a core has a thread
    if gpus := os.environ.get("HIP_VISIBLE_DEVICES"):
        os.environ.setdefault("GPU_DEVICE_ORDINAL", gpus)


def _outcomes(apply, requests):
    """For each request its outputs, or the Exception that it raises. One request may be the reason why a batch fails:
    each runs again by itself."""
    try:
        flat = [each for inputs in requests for each in inputs]
        outputs = apply(flat) if flat else []
        ends = np.cumsum([len(inputs) for inputs in requests])
        return [outputs[end - len(inputs):end] for inputs, end in zip(requests, ends)]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics of tokenizers are no Exceptions, and would end Ray's loop of batches
        if len(requests) == 1:
            return [error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")]
    return [outcome for inputs in requests for outcome in _outcomes(apply, [inputs])]


def _inputs(body, task):
    if not isinstance(body, dict) or "inputs" not in body:
        raise ValueError("'inputs' is missing")
    return _checked(body["inputs"], task)


def _checked(inputs, task):
    if not isinstance(inputs, (list, tuple)):  # a string would be taken for a list of its characters
        raise ValueError("'inputs' must be a list")
    for i, each in enumerate(inputs):
        if task == "answer":
            good = isinstance(each, dict) and all(_is_text(each.get(key)) and each[key]
                                                  for key in ("question", "context"))
        else:
            good = _is_text(each)
        if not good:
            raise ValueError(f"inputs[{i}] has to be " + ("a dictionary with a question and a context"
                                                          if task == "answer" else "a text"))
    return inputs


def _is_text(value):
    """A string without lone surrogates, which JSON can spell and UTF-8 cannot."""
    return isinstance(value, str) and value.encode(errors="ignore").decode() == value


def _texts(batch, column):
    if column not in batch:
        raise ValueError(f"no column '{column}' (choose from {', '.join(batch)})")
    return list(batch[column])


def _columns(results, **types):
    return {name: np.array([each[name] for each in results], dtype) for name, dtype in types.items()}
