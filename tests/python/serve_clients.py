# SPDX-License-Identifier: Apache-2.0
"""serve_clients.py URL VECTORS ANSWERS TEXTS CONTEXT CLASSES: public clients against a server with two models of these
names, and one with a classifier at the URL CLASSES; prints what they got as JSON. TEXTS is a list in JSON. It runs in the
environment build/venv-serve."""
import json
import sys

import numpy as np
import openai
import tritonclient.http as triton
from huggingface_hub import InferenceClient


def by_openai(url, model, texts):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0)
    usual = client.embeddings.create(model=model, input=texts)  # base64
    floats = client.embeddings.create(model=model, input=texts, encoding_format="float")
    short = client.embeddings.create(model=model, input="short", dimensions=8)
    refused = None
    try:
        client.embeddings.create(model="other", input="a")
    except openai.NotFoundError as error:
        refused = str(error)
    try:
        openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0).models.list()
        key = "taken"
    except openai.AuthenticationError:
        key = "refused"
    return {"usual": [item.embedding for item in usual.data], "tokens": usual.usage.prompt_tokens,
            "floats": [item.embedding for item in floats.data], "short": short.data[0].embedding,
            "models": [model.id for model in client.models.list()], "refused": refused, "key": key}


def by_hugging_face(url, texts, context):
    client = InferenceClient(model=url, token="secret")
    vectors = np.asarray(client.feature_extraction(texts))
    answer = client.question_answering(question="Who maintains OpenCL?", context=context)
    answer = answer[0] if isinstance(answer, list) else answer
    similar = client.sentence_similarity(texts[0], other_sentences=texts[1:])
    return {"vectors": vectors.tolist(), "similar": similar,
            "answer": [answer.answer, answer.start, answer.end]}


def classes_by_hugging_face(url, text):
    client = InferenceClient(model=url, token="secret")

    def classes(**options):
        return [[one.label, one.score] for one in client.text_classification(text, **options)]
    return {"all": classes(), "best": classes(top_k=1), "logits": classes(top_k=3, function_to_apply="none")}


def by_triton(url, model):
    client = triton.InferenceServerClient(url.removeprefix("http://"))
    headers = {"Authorization": "Bearer secret"}
    ids = np.array([[101, 2040, 102, 0], [101, 2460, 2460, 102]], dtype=np.int64)
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], dtype=np.int64)
    found = {"live": client.is_server_live(headers), "ready": client.is_server_ready(headers),
             "model": client.is_model_ready(model, headers=headers),
             "inputs": client.get_model_metadata(model, headers=headers)["inputs"]}
    for kind, binary in (("binary", True), ("json", False)):
        inputs = []
        for name, values in (("input_ids", ids), ("attention_mask", mask)):
            inputs.append(triton.InferInput(name, list(values.shape), "INT64"))
            inputs[-1].set_data_from_numpy(values, binary_data=binary)
        outputs = [triton.InferRequestedOutput(name, binary_data=binary)
                   for name in ("start_logits", "end_logits")]
        result = client.infer(model, inputs, outputs=outputs, headers=dict(headers))  # it adds to them
        found[kind] = {name: result.as_numpy(name).tolist() for name in ("start_logits", "end_logits")}
    found["ids"], found["mask"] = ids.tolist(), mask.tolist()
    return found


def main(url, vectors, answers, texts, context, classes):
    texts = json.loads(texts)
    print(json.dumps({"openai": by_openai(url, vectors, texts),
                      "hugging_face": by_hugging_face(url, texts, context),
                      "classes": classes_by_hugging_face(classes, texts[0]),
                      "triton": by_triton(url, answers)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
