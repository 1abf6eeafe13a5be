# SPDX-License-Identifier: Apache-2.0
"""Small transformers of Hugging Face with random weights, every head, as ONNX files."""
import contextlib
import functools
import io
import logging
import warnings

import torch
import transformers

VOCABULARY, LONGEST, CHOICES, LABELS = 120, 64, 3, 5
SIZES = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=64, max_position_embeddings=LONGEST + 2)
# Heads: class after the name of the model, output fields of one row for each token, of one for each text
HEADS = {
    "question answering": ("ForQuestionAnswering", ["start_logits", "end_logits"], []),
    "sequence classification": ("ForSequenceClassification", [], ["logits"]),
    "next sentence": ("ForNextSentencePrediction", [], ["logits"]),
    "multiple choice": ("ForMultipleChoice", [], ["logits"]),
    "token classification": ("ForTokenClassification", ["logits"], []),
    "masked language model": ("ForMaskedLM", ["logits"], []),
    "causal language model": ("LMHeadModel", ["logits"], []),
    "plain": ("Model", ["last_hidden_state"], ["pooler_output"]),
}
# Families: prefix of the classes, configuration, whether token types are an input
FAMILIES = {
    "bert": ("Bert", transformers.BertConfig, {}, True),
    "minilm": ("Bert", transformers.BertConfig,
               dict(hidden_size=384, num_attention_heads=12, intermediate_size=1536), True),
    "roberta": ("Roberta", transformers.RobertaConfig, dict(type_vocab_size=1, pad_token_id=1), False),
    "camembert": ("Camembert", transformers.CamembertConfig, dict(type_vocab_size=1, pad_token_id=1),
                  False),
    "distilbert": ("DistilBert", transformers.DistilBertConfig, {}, False),
    "electra": ("Electra", transformers.ElectraConfig, dict(embedding_size=16), True),
    "albert": ("Albert", transformers.AlbertConfig, dict(embedding_size=16), True),
}
DISTILBERT_SIZES = dict(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
                        max_position_embeddings=LONGEST)


@torch.no_grad()
def spread_parameters(model, factor):
    """So that biases, LayerNorm and logits are not all alike: matrices but the embeddings times `factor`."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter += 0.1 * torch.randn_like(parameter)
        elif "embeddings" not in name:
            parameter *= factor


class Outputs(torch.nn.Module):
    """The model with a plain tuple of the named fields as its result."""

    def __init__(self, model, inputs, outputs):
        super().__init__()
        self.model, self.inputs, self.outputs = model, inputs, outputs

    def forward(self, *arguments):
        result = self.model(**dict(zip(self.inputs, arguments)))
        return tuple(getattr(result, name) for name in self.outputs)


def padded_batch(texts, longest, seed):
    """Ids, mask, token types and positions of padded texts."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(longest // 3, longest + 1, (texts,), generator=random)
    lengths[0] = longest
    column = torch.arange(longest)[None]
    mask = column < lengths[:, None]
    ids = torch.randint(3, VOCABULARY, (texts, longest), generator=random)
    ids = torch.where(mask, ids, 1)  # what RoBERTa takes for padding
    return dict(input_ids=ids, attention_mask=mask.long(),
                token_type_ids=((column > lengths[:, None] // 2) & mask).long(),
                position_ids=(mask.long().cumsum(1) - 1).clamp(min=0) + 3 * torch.arange(texts)[:, None])


@functools.cache
def keep_registry():
    """The exporter that captures programs builds its registry of operators for each model (0.25 s): once is enough."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry
    ONNXRegistry.from_torchlib = staticmethod(functools.cache(ONNXRegistry.from_torchlib))


def export_module(module, example, path, opset, captured, inputs, by_token, by_text=(), last=1):
    """By the exporter that captures the program, or the classic one. `last`: the axis of the tokens in the inputs."""
    names = dict(input_names=inputs, output_names=[*by_token, *by_text])
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if not captured:
            axes = {name: {0: "batch", last: "sequence"} for name in inputs}
            axes.update({name: {0: "batch", 1: "sequence"} for name in by_token})
            axes.update({name: {0: "batch"} for name in by_text})
            torch.onnx.export(module, example, str(path), dynamo=False, opset_version=opset, dynamic_axes=axes,
                              **names)
        else:
            keep_registry()
            sizes = torch.export.Dim("batch"), torch.export.Dim("sequence", min=2, max=LONGEST)
            shapes = ({0: sizes[0], last: sizes[1]},) * len(inputs)
            torch.onnx.export(module, example, str(path), dynamo=True, opset_version=opset, verbose=False,
                              dynamic_shapes=(shapes,), external_data=False, **names)


def export_images(module, example, path, captured, outputs):
    """Of one input, pixel_values, by the exporter that captures the program (opset 18) or the classic one (17)."""
    names = dict(input_names=["pixel_values"], output_names=outputs)
    example = (torch.from_numpy(example),)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if not captured:
            axes = {name: {0: "batch"} for name in ["pixel_values", *outputs]}
            torch.onnx.export(module, example, str(path), dynamo=False, opset_version=17, dynamic_axes=axes, **names)
        else:
            keep_registry()
            shapes = (({0: torch.export.Dim("batch")},),)
            torch.onnx.export(module, example, str(path), dynamo=True, opset_version=18, verbose=False,
                              dynamic_shapes=shapes, external_data=False, **names)


def export_outputs(model, path, by_token=(), by_text=()):
    """`model` with these fields of its results as outputs, by the classic exporter."""
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    example = (torch.ones(2, 6, dtype=torch.int64),) * len(inputs)
    module = Outputs(model, inputs, [*by_token, *by_text]).eval()
    export_module(module, example, path, 17, False, inputs, by_token, by_text)


class Model:
    """A head of a family: `module`, names of inputs, of outputs by token and by text. `types`: whether token
    types are an input, where not as usual in the family. `attention`: its implementation."""

    def __init__(self, head="question answering", family="bert", types=None, attention="eager"):
        torch.manual_seed(0)
        suffix, self.by_token, self.by_text = HEADS[head]
        prefix, configuration, settings, usual_types = FAMILIES[family]
        types = usual_types if types is None else types
        sizes = DISTILBERT_SIZES if family == "distilbert" else SIZES
        config = configuration(**{**sizes, **settings}, num_labels=2 if self.by_token[:1] == ["start_logits"]
                               else LABELS, is_decoder=head.startswith("causal"), use_cache=False)
        config._attn_implementation = attention
        self.inputs = ["input_ids", "attention_mask"] + (["token_type_ids"] if types else [])
        self.choices = CHOICES if head == "multiple choice" else None
        model = getattr(transformers, prefix + suffix)(config).eval()
        width = SIZES["hidden_size"]  # in wider sums, rounding would decide everything
        spread_parameters(model, 6 * width / settings.get("hidden_size", width))
        self.module = Outputs(model, self.inputs, self.by_token + self.by_text).eval()

    def batch(self, count, longest=24, seed=0):
        """Inputs of `count` padded texts as int64 arrays."""
        arrays = padded_batch(count * (self.choices or 1), longest, seed)
        shape = (count, longest) if self.choices is None else (count, self.choices, longest)
        return {name: arrays[name].reshape(shape).numpy() for name in self.inputs}

    def export(self, path, opset, captured=None):
        """By torch's exporter that captures the program, or by the classic one, which ends at opset 20; the other
        begins at 18."""
        captured = opset > 20 if captured is None else captured
        example = tuple(torch.from_numpy(x) for x in self.batch(2, 12).values())
        export_module(self.module, example, path, opset, captured, self.inputs, self.by_token, self.by_text,
                      1 if self.choices is None else 2)
