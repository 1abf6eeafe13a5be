# SPDX-License-Identifier: Apache-2.0
"""A tiny cross-encoder of random weights that are the same with any release of torch, and what it is given."""
import numpy as np
import torch
import transformers

QUERIES = ["Who made the engine?", "Where is OpenCL maintained, and by whom?"]
DOCUMENTS = ["Ada Lovelace.", "The Khronos Group maintains OpenCL, an open standard for programs of many devices.",
             "London", "Zürich is a city of Switzerland.", "", "It was made of brass, gears and patience by Babbage.",
             "the engine " * 40, "Who made the engine? Who made the engine?", "東京 3.14 (sic)"]
# Whether it has one label or several, and what its config.json says of the activation.
CASES = {"one label": dict(labels=1), "three labels": dict(labels=3),
         "logits": dict(labels=1, sentence_transformers={"activation_fn": "torch.nn.modules.linear.Identity"})}


def make_model(labels, longest=48, **config):
    settings = transformers.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                                       max_position_embeddings=longest, num_labels=labels, **config)
    settings._attn_implementation = "eager"
    model = transformers.BertForSequenceClassification(settings).eval()
    random = np.random.RandomState(labels)  # its numbers never change
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            values = torch.from_numpy(random.standard_normal(tuple(parameter.shape)).astype(np.float32))
            if parameter.dim() == 1:
                parameter.copy_(0.1 * values + (1 if "LayerNorm.weight" in name else 0))
            else:
                parameter.copy_(values / (parameter.shape[1] ** 0.5 if "embeddings" not in name else 1))
    return model


def pairs():
    return [[query, document] for query in QUERIES for document in DOCUMENTS]
