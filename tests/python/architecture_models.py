# SPDX-License-Identifier: Apache-2.0
"""Small encoders of other architectures than BERT with random weights, as ONNX files of both exporters of torch."""
import math

import numpy as np
import torch
import transformers

from transformer_models import LONGEST, VOCABULARY, Outputs, export_module, padded_batch, spread_parameters

SIZES = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=64, max_position_embeddings=LONGEST + 2)
# Of some architectures, whose settings below name a size by its key here or above.
OTHER_SIZES = dict(embedding_size=16, local_attention=8, position_buckets=8, head_size=8)
PLAIN = dict(type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2)
DEBERTA = dict(relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets="position_buckets",
               max_relative_positions=-1, norm_rel_ebd="layer_norm", share_att_key=True, type_vocab_size=0,
               position_biased_input=False)


class JinaV2(torch.nn.Module):
    """As jina-embeddings-v2: BERT without positions, ALiBi on the scores, and a gated feed-forward part. It is not a
    part of transformers."""

    class Layer(torch.nn.Module):
        def __init__(self, width, inner, heads):
            super().__init__()
            self.heads = heads
            self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))
            self.gated = torch.nn.Linear(width, 2 * inner, bias=False)
            self.down = torch.nn.Linear(inner, width)
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
            self.inner = inner

        def forward(self, x, bias):
            batch, length, width = x.shape
            split = lambda y: y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            q, k, v = (split(f(x)) for f in (self.query, self.key, self.value))
            scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads) + bias
            context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
            x = self.norms[0](x + self.out(context))
            gated = self.gated(x)
            inner = torch.nn.functional.gelu(gated[..., :self.inner]) * gated[..., self.inner:]
            return self.norms[1](x + self.down(inner))

    def __init__(self):
        super().__init__()
        width, heads = SIZES["hidden_size"], SIZES["num_attention_heads"]
        self.embeddings = torch.nn.Embedding(SIZES["vocab_size"], width)
        self.norm = torch.nn.LayerNorm(width)
        self.layers = torch.nn.ModuleList(
            self.Layer(width, SIZES["intermediate_size"], heads) for _ in range(SIZES["num_hidden_layers"]))
        self.register_buffer("slopes", torch.tensor([2.0 ** (-8 * (i + 1) / heads) for i in range(heads)]))

    def forward(self, input_ids, attention_mask, added=0):
        """`added`: to the embeddings."""
        at = torch.arange(input_ids.shape[1])
        alibi = -(at[None] - at[:, None]).abs()[None] * self.slopes[:, None, None]
        mask = (1.0 - attention_mask[:, None, None].float()) * torch.finfo(torch.float32).min
        x = self.norm(self.embeddings(input_ids) + added)
        for layer in self.layers:
            x = layer(x, alibi[None] + mask)
        return transformers.modeling_outputs.BaseModelOutput(last_hidden_state=x)


def made(name, attention="eager", **settings):
    """A function that makes transformers' model `name`. `attention`: the implementation."""
    def make():
        sizes = {**SIZES, **OTHER_SIZES}
        named = {key: sizes.get(value, value) if isinstance(value, str) else value for key, value in settings.items()}
        config = getattr(transformers, name.removesuffix("Encoder") + "Config")(**{**SIZES, **named})
        config._attn_implementation = attention
        return getattr(transformers, name + "Model")(config)
    return make


# Architectures: what makes the model, and how many MatMuls with weights it has
ARCHITECTURES = {
    "distilbert": (made("DistilBert", dim="hidden_size", n_layers="num_hidden_layers", n_heads="num_attention_heads",
                                     hidden_dim="intermediate_size"), 12),
    "electra": (made("Electra", embedding_size="embedding_size"), 13),
    "albert": (made("Albert", embedding_size="embedding_size"), 13),
    "roberta": (made("Roberta", **PLAIN), 12),
    "xlm-roberta": (made("XLMRoberta", **PLAIN), 12),
    "mpnet": (made("MPNet", relative_attention_num_buckets=32, **PLAIN), 12),
    "modernbert": (made("ModernBert", num_hidden_layers=3, local_attention="local_attention", global_attn_every_n_layers=3,
                        pad_token_id=1, bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2), 12),
    "nomic-bert": (made("NomicBert", pad_token_id=1), 14),
    "gte": (made("Gte", pad_token_id=1), 12),
    "eurobert": (made("EuroBert", num_key_value_heads="num_attention_heads", **PLAIN), 14),
    "jina-v2": (JinaV2, 12),
    "deberta-v2": (made("DebertaV2", **DEBERTA), 12),
    "deberta": (made("Deberta", **{**DEBERTA, "position_buckets": -1, "max_relative_positions": LONGEST}), 12),
}

# Head sizes and key heads of their own.
HEADS = dict(head_dim="head_size", pad_token_id=1)
CLASSIC, CAPTURED, BOTH = (False,), (True,), (False, True)  # exporters
T5 = dict(d_model="hidden_size", d_ff="intermediate_size", d_kv=8, num_layers="num_hidden_layers",
          num_heads="num_attention_heads")
CLIP_OUTPUTS = ["last_hidden_state", "pooler_output"]
# Further encoders: what makes the model, what it returns, how many attentions are fused, by which exporters, and with
# which inputs
FURTHER = {
    "mobilebert": (made("MobileBert", embedding_size="embedding_size", intra_bottleneck_size="embedding_size"),
                   ["last_hidden_state", "pooler_output"], 2),
    "squeezebert": (made("SqueezeBert", embedding_size="hidden_size"), ["last_hidden_state", "pooler_output"], 0),
    "deberta-v2 with a convolution": (made("DebertaV2", **DEBERTA, conv_kernel_size=3, conv_act="gelu"),
                                      ["last_hidden_state"], 2),
    "text of clip": (made("CLIPText", eos_token_id=VOCABULARY - 1), CLIP_OUTPUTS, 2, BOTH),
    "text of clip, sdpa": (made("CLIPText", "sdpa", eos_token_id=VOCABULARY - 1), CLIP_OUTPUTS, 2, BOTH),
    "text of clip without a mask": (made("CLIPText", eos_token_id=VOCABULARY - 1), CLIP_OUTPUTS, 2, BOTH, ["input_ids"]),
    "text of clip without a mask, sdpa": (made("CLIPText", "sdpa", eos_token_id=VOCABULARY - 1), CLIP_OUTPUTS, 2, BOTH,
                                          ["input_ids"]),
    "shared key heads": (made("EuroBert", num_key_value_heads=2, **PLAIN), ["last_hidden_state"], 2, BOTH),
    "shared key heads, sdpa": (made("EuroBert", "sdpa", num_key_value_heads=2, **PLAIN), ["last_hidden_state"], 2, BOTH),
    "qwen3": (made("Qwen3", num_key_value_heads=2, **HEADS), ["last_hidden_state"], 2, BOTH),
    "qwen3, sdpa": (made("Qwen3", "sdpa", num_key_value_heads=2, **HEADS), ["last_hidden_state"], 2, BOTH),
    "gemma3": (
        made("Gemma3Text", num_key_value_heads=1, use_bidirectional_attention=True, sliding_window=6,
             layer_types=["sliding_attention", "full_attention"], **HEADS), ["last_hidden_state"], 2, CAPTURED),
    "mistral": (made("Mistral", num_key_value_heads=2, sliding_window=4, **HEADS), ["last_hidden_state"], 2, BOTH),
    "mistral without a mask": (made("Mistral", num_key_value_heads=2, sliding_window=4, **HEADS),
                               ["last_hidden_state"], 2, BOTH, ["input_ids"]),
    "encoder of t5": (made("T5Encoder", **T5), ["last_hidden_state"], 2),
    "eurobert, sdpa": (made("EuroBert", "sdpa", num_key_value_heads="num_attention_heads", **PLAIN),
                       ["last_hidden_state"], 2),
    "encoder of t5, sdpa": (made("T5Encoder", "sdpa", feed_forward_proj="gated-gelu", **T5), ["last_hidden_state"], 2),
}

# Of those, the ones that read positions as optimum exports them
DECODERS = {"qwen3": 14}  # MatMuls with weights


def calibration(folder, texts, words):
    """Options of `bertcl quantize` for calibration on `texts` texts of `words` random words, which lie in `folder`."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    known = [f"w{i}" for i in range(SIZES["vocab_size"] - len(special))]
    vocabulary, lines = folder / "vocab.txt", folder / "texts.txt"
    vocabulary.write_text("\n".join(special + known) + "\n")
    random = np.random.default_rng(1)
    lines.write_text("".join(" ".join(random.choice(known, words)) + "\n" for _ in range(texts)))
    return "--task", "text", "--calibration", lines, "--vocab", vocabulary


class Architecture:
    """A model of random weights: `module`, the names of its inputs and of its outputs."""

    inputs, outputs = ["input_ids", "attention_mask"], ["last_hidden_state"]

    def __init__(self, name):
        torch.manual_seed(0)
        self.name = name
        if name in FURTHER:
            make, self.outputs, self.attentions, *rest = FURTHER[name]
            self.exporters, self.inputs = *rest, *(CLASSIC, self.inputs)[len(rest):]
        else:
            make, self.linears = ARCHITECTURES[name]
        model = make().eval()
        spread_parameters(model, 6)
        self.module = Outputs(model, self.inputs, self.outputs).eval()

    def batch(self, count, longest=24, seed=0):
        arrays = padded_batch(count, longest, seed)
        return {name: arrays[name].numpy() for name in self.inputs}

    def export(self, path, captured, opset=None):
        """By torch's exporter that captures the program, or by the classic one."""
        example = tuple(torch.from_numpy(x) for x in self.batch(2, 12).values())
        export_module(self.module, example, path, opset or (18 if captured else 17), captured, self.inputs,
                      self.outputs[:1], self.outputs[1:])
