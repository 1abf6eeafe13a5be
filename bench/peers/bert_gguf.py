# SPDX-License-Identifier: Apache-2.0
"""Writes a BERT encoder of transformers as a GGUF file in q8_0, as llama.cpp's convert_hf_to_gguf.py names its parts.

    bert_gguf.py FOLDER OUT.gguf
"""
import json
import pathlib
import sys

import gguf
import numpy as np
import torch
import transformers

LAYER = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
         "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
         "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
EMBEDDINGS = {"word_embeddings": "token_embd", "token_type_embeddings": "token_types",
              "position_embeddings": "position_embd", "LayerNorm": "token_embd_norm"}
FLOAT = ("token_types", "position_embd")  # llama.cpp adds these rows as they are


def gguf_name(name):
    """Of a tensor of BertModel; None where llama.cpp does not use it (the pooler)."""
    part, suffix = name.rsplit(".", 1)
    if part.startswith("embeddings."):
        return f"{EMBEDDINGS[part.removeprefix('embeddings.')]}.{suffix}"
    if part.startswith("encoder.layer."):
        number, part = part.removeprefix("encoder.layer.").split(".", 1)
        return f"blk.{number}.{LAYER[part]}.{suffix}"
    return None


def add_tokenizer(writer, folder):
    """Words begin with a phantom space there, and what continues them loses its ##."""
    tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    ids = {token: i for i, token in enumerate(tokens)}
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in tokens])
    writer.add_token_types([gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in tokens])
    writer.add_token_type_count(2)
    writer.add_bos_token_id(ids["[CLS]"])
    writer.add_eos_token_id(ids["[SEP]"])
    writer.add_unk_token_id(ids["[UNK]"])
    writer.add_sep_token_id(ids["[SEP]"])
    writer.add_pad_token_id(ids["[PAD]"])
    writer.add_mask_token_id(ids["[MASK]"])


def main():
    folder, out = map(pathlib.Path, sys.argv[1:])
    config = json.loads((folder / "config.json").read_text())
    model = transformers.BertModel.from_pretrained(folder)
    writer = gguf.GGUFWriter(out, "bert")
    writer.add_name(folder.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    add_tokenizer(writer, folder)
    q8 = gguf.GGMLQuantizationType.Q8_0
    with torch.no_grad():
        for source, tensor in model.state_dict().items():
            name, array = gguf_name(source), tensor.float().numpy()
            if name is None or name.endswith("position_ids"):
                continue
            if array.ndim == 2 and name.split(".")[0] not in FLOAT:
                writer.add_tensor(name, gguf.quantize(np.ascontiguousarray(array), q8), raw_dtype=q8)
            else:
                writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
