#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of BERT in PyTorch on a GPU, the encoder only: fp16 compiled and fp32, attention by SDPA.

    python3 bench/device/torch_bert.py OUT.json --shapes 1x128 8x384 --sizes base large

Random weights; ids on the device, outputs stay there, one wait a run. OUT.json is written after each measurement.
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

#        layers, hidden, heads, intermediate
SIZES = {"mini": (4, 256, 4, 1024), "base": (12, 768, 12, 3072), "large": (24, 1024, 16, 4096)}


class Layer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, intermediate), nn.Linear(intermediate, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden, 1e-12), nn.LayerNorm(hidden, 1e-12)

    def forward(self, x):
        batch, seq, hidden = x.shape
        qkv = self.qkv(x).view(batch, seq, 3, self.heads, hidden // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        context = functional.scaled_dot_product_attention(q, k, v)
        context = context.transpose(1, 2).reshape(batch, seq, hidden)
        x = self.norm1(x + self.out(context))
        return self.norm2(x + self.narrow(functional.gelu(self.wide(x))))


class Bert(nn.Module):
    def __init__(self, size):
        super().__init__()
        layers, hidden, heads, intermediate = SIZES[size]
        self.words, self.places = nn.Embedding(30522, hidden), nn.Embedding(512, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, 1e-12)
        self.layers = nn.ModuleList(Layer(hidden, heads, intermediate) for _ in range(layers))
        self.head = nn.Linear(hidden, 2)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(places) + self.types(torch.zeros_like(ids)))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def measure(model, ids, device, seconds):
    """Milliseconds of a run: the median."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(5):
        model(ids)
    wait()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 100):
        start = time.perf_counter()
        model(ids)
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


@torch.inference_mode()
def run(options):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    result = {"torch": torch.__version__, "measurements": [],
              "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    for size in options.sizes:
        for mode in ("fp16 compiled", "fp32"):
            if device == "cpu" and mode != "fp32":
                continue
            model = Bert(size).to(device).eval()
            if mode != "fp32":
                torch._dynamo.reset()  # its limit of recompilations counts those of the other size, too
                model = torch.compile(model.half(), mode="reduce-overhead", dynamic=False)
            for shape in options.shapes:
                batch, seq = map(int, shape.split("x"))
                ids = torch.randint(0, 20000, (batch, seq), device=device)
                ms = measure(model, ids, device, options.seconds)
                row = {"model": size, "mode": mode, "batch": batch, "seq": seq, "ms": ms}
                result["measurements"].append(row)
                print(size, mode, shape, f"{ms:.3f}", sep="\t", flush=True)
                with open(options.out, "w") as file:
                    json.dump(result, file, indent=2)
    return 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out")
    parser.add_argument("--shapes", nargs="+", default=["1x128", "8x128", "8x384", "32x384"])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["base", "large"])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    return run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
