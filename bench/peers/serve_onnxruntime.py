# SPDX-License-Identifier: Apache-2.0
"""serve_onnxruntime.py MODEL THREADS REPORT: the route /embed by aiohttp over onnxruntime, the server that one writes in an
hour. Texts that gather while a batch runs are the next one, at most 32, padded to the longest. REPORT gets {"url": ..}."""
import asyncio
import concurrent.futures
import json
import pathlib
import sys

import aiohttp.web
import numpy as np
import onnxruntime
import tokenizers

BATCH = 32


class Model:
    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(path).with_name("tokenizer.json")))
        self.tokenizer.enable_truncation(512)
        self.tokenizer.enable_padding()

    def embed(self, texts):
        encodings = self.tokenizer.encode_batch(texts)
        ids = np.array([each.ids for each in encodings])
        mask = np.array([each.attention_mask for each in encodings])
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self.session.run(None, {name: given[name] for name in self.inputs})[0]
        weights = mask[..., None].astype(np.float32)
        vectors = (hidden * weights).sum(1) / weights.sum(1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


async def run_batches(model, queue):
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        while True:
            batch = [await queue.get()]
            while len(batch) < BATCH and not queue.empty():
                batch.append(queue.get_nowait())
            vectors = await loop.run_in_executor(pool, model.embed, [text for text, _ in batch])
            for (_, result), vector in zip(batch, vectors):
                if not result.cancelled():
                    result.set_result(vector)


async def main(path, threads, report):
    queue = asyncio.Queue()

    async def embed(request):
        text = (await request.json())["inputs"]
        result = asyncio.get_running_loop().create_future()
        queue.put_nowait((text, result))
        return aiohttp.web.json_response([(await result).tolist()])

    app = aiohttp.web.Application()
    app.router.add_post("/embed", embed)
    runner = aiohttp.web.AppRunner(app, access_log=None)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    pending = pathlib.Path(report + ".tmp")
    pending.write_text(json.dumps({"url": f"http://127.0.0.1:{port}"}), encoding="utf-8")
    pending.rename(report)
    await run_batches(Model(path, threads), queue)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
    except KeyboardInterrupt:
        pass
