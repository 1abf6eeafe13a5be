# SPDX-License-Identifier: Apache-2.0
"""What training scripts share: batches by tokens, losses, the loop with its progress bar."""
import copy
import os
import random

import torch
import torch.nn.functional as F
from tqdm import tqdm

IGNORED = -1e30  # in place of logits of padding


def add_options(parser, steps, learning_rate, tokens):
    parser.add_argument("--steps", type=int, default=steps, help="steps of the optimizer")
    parser.add_argument("--learning-rate", type=float, default=learning_rate,
                        help="of AdamW, after warm-up over a tenth of the steps; falls to 0 linearly")
    parser.add_argument("--tokens", type=int, default=tokens, help="tokens of a batch, padding included")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="of torch: cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, default=0, help="on the CPU; 0: as torch chooses")


def prepare(options):
    """Seeds and threads; returns the device."""
    if options.steps < 0 or options.tokens < 1 or options.learning_rate <= 0:
        raise ValueError("--steps must be 0 or more, --tokens and --learning-rate above 0")
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: torch found no CUDA device")
    return device


def check_output(path):
    """Raises before the work is done where the result could not be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ValueError(f"{path}: cannot write to folder {folder}")


# --- batches ------------------------------------------------------------------------------------
def batches_of(examples, tokens):
    """Lists of examples of similar length, each at most `tokens` with padding (at least one example)."""
    batch, result = [], []
    for example in sorted(examples, key=lambda e: len(e.ids)):
        if batch and (len(batch) + 1) * len(example.ids) > tokens:
            result.append(batch)
            batch = []
        batch.append(example)
    return result + [batch] if batch else result


def endless_batches(examples, tokens, generator):
    """Batches of shuffled examples without end. Only examples that stand near each other after
    shuffling are sorted by length, so that no batch is made of the same examples twice."""
    if not examples:
        raise ValueError("no training data")
    while True:
        order = generator.sample(examples, len(examples))
        for first in range(0, len(order), 512):
            group = batches_of(order[first:first + 512], tokens)
            generator.shuffle(group)
            yield from group


def collate(examples, device):
    """ids, mask and types [batch, longest], int64."""
    longest = max(len(e.ids) for e in examples)
    def padded(rows):
        return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
    return (padded([e.ids for e in examples]), padded([[1] * len(e.ids) for e in examples]),
            padded([e.types for e in examples]))


# --- losses -------------------------------------------------------------------------------------
def distillation_loss(student, teacher, mask, temperature=1.0):
    """Kullback-Leibler divergence from the teacher's outputs to the student's, in nats, the mean over
    outputs and rows, times temperature squared (Hinton et al. 2015, arXiv:1503.02531). Outputs
    [batch, seq] are distributions over the tokens, others over their last axis."""
    losses = []
    for name, target in teacher.items():
        found = student[name]
        if target.shape == mask.shape:
            target, found = (x.masked_fill(mask == 0, IGNORED) for x in (target, found))
        p = torch.log_softmax(target / temperature, -1)
        q = torch.log_softmax(found / temperature, -1)
        divergence = F.kl_div(q, p, reduction="none", log_target=True).sum(-1)
        losses.append(divergence.mean() * temperature**2)
    return torch.stack(losses).mean()


def label_loss(outputs, mask, examples):
    """Cross entropy with the labels: a pair of positions for outputs [batch, seq], else a class."""
    columns = list(zip(*[e.labels for e in examples]))
    losses = []
    for logits, labels in zip(outputs, columns, strict=True):
        if logits.shape == mask.shape:
            logits = logits.masked_fill(mask == 0, IGNORED)
        losses.append(F.cross_entropy(logits, torch.tensor(labels, device=logits.device)))
    return torch.stack(losses).mean()


# --- the loop -----------------------------------------------------------------------------------
def train(module, groups, batches, loss_of, options, measure=None):
    """AdamW over `groups` (of torch.optim, each with its "lr"). `loss_of(batch)` is a loss tensor,
    `measure()` a number to be small: it is taken at the start and five times on the way, and the
    weights of the smallest stay. Returns the measures, [(step, value)].
    """
    optimizer = torch.optim.AdamW(groups)
    warmup = max(1, options.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(
        (step + 1) / warmup, (options.steps - step) / max(1, options.steps - warmup)))
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    trained = [n for n, p in module.named_parameters() if p.requires_grad]
    def state():
        own = module.state_dict()
        return {name: copy.deepcopy(own[name]) for name in trained}
    measures = [(0, measure())] if measure else []
    best = state() if measure else None
    wanted = {options.steps * k // 5 for k in range(1, 6)} - {0}
    average = None
    bar = tqdm(total=options.steps, unit="step", disable=None)
    if measures:
        bar.write(f"start: held out {measures[0][1]:.4f}")
    for step in range(1, options.steps + 1):
        loss = loss_of(next(batches))
        if not torch.isfinite(loss):
            raise ValueError(f"the loss of step {step} is {loss.item()}; lower --learning-rate")
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        bar.set_postfix(loss=f"{average:.4f}", refresh=False)
        bar.update()
        if measure and step in wanted:
            measures.append((step, measure()))
            bar.write(f"step {step}: loss {average:.4f}, held out {measures[-1][1]:.4f}")
            if measures[-1][1] <= min(value for _, value in measures):
                best = state()
    bar.close()
    if best is not None:
        module.load_state_dict(best, strict=False)
    return measures
