# SPDX-License-Identifier: Apache-2.0
"""What training scripts share: batches by tokens, losses, the loop with its progress bar."""
import copy
import math
import random
import sys

import onnx
import torch
import torch.nn.functional as F
from tqdm import tqdm

from task_data import Example, positive

IGNORED = -1e30  # in place of logits of padding


def add_options(parser, steps, learning_rate, tokens):
    parser.add_argument("--steps", type=int, default=steps, help="steps of the optimizer")
    parser.add_argument("--learning-rate", type=float, default=learning_rate,
                        help="peak learning rate of AdamW: warm-up over a tenth of the steps, then linear decay to 0")
    parser.add_argument("--tokens", type=positive, default=tokens, help="maximum tokens per batch, padding included")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="torch device: cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--force", action="store_true", help="overwrite the output")


def device_of(options):
    """The device and threads of torch."""
    if options.threads < 0:
        raise ValueError("--threads must be 0 or more")
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    try:
        device = torch.device(options.device)
    except RuntimeError as error:
        raise ValueError(f"--device {options.device}: unknown torch device (expected cpu, cuda, cuda:1 or the "
                         "like)") from error
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"--device {options.device}: torch cannot use it: {first_line(error)}") from error
    return device


def prepare(options):
    """Seeds and threads; returns the device."""
    if options.steps < 0 or not 0 < options.learning_rate < math.inf:
        raise ValueError("--steps must be 0 or more, --learning-rate a number above 0")
    if not 0 <= options.seed < 2**63:
        raise ValueError("--seed must be 0 to 2^63 - 1")
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    return device_of(options)


@torch.no_grad()
def check_runs(run, examples, tokenizer, collated, source, files):
    """Raises where the examples of `files` hold no tokens, or where the model cannot run a short example, the types or ids
    of tokens that the tokenizer gives, or the longest example, as one longer than its table of positions."""
    empty = sum(not example.ids for example in examples)
    if empty == len(examples):
        raise ValueError(f"{', '.join(files)}: no examples with tokens")
    if empty > 0:
        raise ValueError(f"{', '.join(files)}: {empty} of {len(examples)} examples have no tokens; remove them")
    longest = max(examples, key=lambda e: len(e.ids))
    first, largest_type = longest.ids[0], max(max(e.types) for e in examples)
    vocabulary = tokenizer.get_vocab(with_added_tokens=False).values()
    largest_id = max(*vocabulary, *(max(e.ids) for e in examples))
    belongs = "; use the vocabulary that belongs to this model (--vocab FILE)"
    for what, ids, types, remedy in (
            ("a text", [first] * 4, [0] * 4, ""),
            (f"tokens of type {largest_type}", [first] * 4, [0, 0, 0, largest_type], belongs),
            (f"token {largest_id} of a vocabulary of {len(vocabulary):,}", [first, largest_id, first], [0] * 3, belongs),
            (f"a sequence of {len(longest.ids)} tokens", longest.ids, longest.types, "; lower --max-length")):
        try:
            run(*collated([Example(ids, types, ())]))
        except (RuntimeError, IndexError, ValueError) as error:
            raise ValueError(f"{source} cannot run {what} ({first_line(error)}){remedy}") from error


def first_line(error):
    """What an error says, without what follows in torch's messages; its type, if it says nothing."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _is_of_memory(error):
    """True if there is too little of it. On a CPU torch has no type for that."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "DefaultCPUAllocator" in str(error)


def main(name, run, options):
    """The exit code of a script: errors of data, models and options, and too little memory, are one line each. Others are
    of the script and keep their traceback."""
    try:
        run(options)
    except (ValueError, OSError, onnx.checker.ValidationError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, MemoryError) as error:
        if not _is_of_memory(error):
            raise
        print(f"{name}: {first_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return 130
    return 0


# --- batches ------------------------------------------------------------------------------------
def batches_of(examples, tokens, padded=True):
    """Lists of examples of similar length, each at most `tokens` with padding (at least one example). Without `padded` of
    one length: a model that takes no mask reads padding as text."""
    batch, result = [], []
    for example in sorted(examples, key=lambda e: len(e.ids)):
        differs = not padded and batch and len(batch[0].ids) != len(example.ids)
        if batch and (differs or (len(batch) + 1) * len(example.ids) > tokens):
            result.append(batch)
            batch = []
        batch.append(example)
    return result + [batch] if batch else result


def endless_batches(examples, tokens, generator, padded=True):
    """Batches of shuffled examples without end. Only examples that stand near each other after
    shuffling are sorted by length, so that no batch is made of the same examples twice."""
    if not examples:
        raise ValueError("no training data")
    while True:
        order = generator.sample(examples, len(examples))
        for first in range(0, len(order), 512):
            group = batches_of(order[first:first + 512], tokens, padded)
            generator.shuffle(group)
            yield from group


def collate(examples, device, padding):
    """ids, mask and types [batch, longest], int64. `padding`: the id of its token."""
    longest = max(len(e.ids) for e in examples)
    def padded(rows, filler=0):
        return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows], device=device)
    return (padded([e.ids for e in examples], padding), padded([[1] * len(e.ids) for e in examples]),
            padded([e.types for e in examples]))


# --- losses -------------------------------------------------------------------------------------
def distillation_loss(student, teacher, mask, over_tokens, temperature=1.0):
    """How far the student's outputs are from the teacher's, the mean over outputs and rows. Logits: Kullback-Leibler
    divergence in nats, times temperature squared (Hinton et al. 2015, arXiv:1503.02531), of distributions over the
    tokens for the outputs [batch, seq] that `over_tokens` names, else over the classes of the last axis. A single
    logit, and vectors: squared error, of vectors relative to the teacher's mean square."""
    return torch.stack([_distance(student[name], target, mask, name, name in over_tokens, temperature)
                        for name, target in teacher.items()]).mean()


def kind_of(name, width, over_tokens):
    """What an output is: logits "over the tokens" or of "classes", "a number" (a single logit) or "a vector"."""
    if over_tokens:
        return "over the tokens"
    if width == 1:
        return "a number"
    return "a vector" if any(part in name for part in ("hidden", "embed", "pooler")) else "classes"


def _distance(found, target, mask, name, over_tokens, temperature):
    kind = kind_of(name, target.shape[-1], over_tokens)
    if kind == "over the tokens":
        target, found = (x.masked_fill(mask == 0, IGNORED) for x in (target, found))
    elif target.dim() == 3:  # rows of padding count for nothing
        target, found = target[mask != 0], found[mask != 0]
    if kind == "a number":
        return F.mse_loss(found, target)
    if kind == "a vector":
        return F.mse_loss(found, target) / target.square().mean().clamp(min=1e-12)
    p = torch.log_softmax(target / temperature, -1)
    q = torch.log_softmax(found / temperature, -1)
    return F.kl_div(q, p, reduction="none", log_target=True).sum(-1).mean() * temperature**2


def label_loss(outputs, mask, examples):
    """Cross entropy with the labels: those of a pair are tokens, for two outputs [batch, seq]; else a class."""
    columns = list(zip(*[e.labels for e in examples]))
    losses = []
    for logits, labels in zip(outputs, columns, strict=True):
        if len(columns) == 2:
            logits = logits.masked_fill(mask == 0, IGNORED)
        losses.append(F.cross_entropy(logits, torch.tensor(labels, device=logits.device)))
    return torch.stack(losses).mean()


# --- the loop -----------------------------------------------------------------------------------
def _advice(step, options):
    """What to do about values of a step that are not finite."""
    of_qat = "temperature" in options
    if step > 1:
        return "lower --learning-rate" + " or --scale-rate" * of_qat
    return "no step was taken before: check the model and the data" + ", or raise --temperature" * of_qat


def train(module, groups, batches, loss_of, options, measure=None):
    """AdamW over `groups` (of torch.optim, each with its "lr"). `loss_of(batch)` is a loss tensor,
    `measure()` a number to be small: it is taken at the start and five times on the way, and the
    weights of the smallest stay. An interrupt (Ctrl-C) ends the training early. Returns the measures, [(step, value)],
    and the number of steps taken.
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
    average, taken = None, 0
    bar = tqdm(total=options.steps, unit="step", disable=None)
    if measures:
        bar.write(f"start: held out {measures[0][1]:.3g}")
    try:
        for step in range(1, options.steps + 1):
            loss = loss_of(next(batches))
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            for what, value in ("loss", loss.item()), ("gradient", norm.item()):
                if not math.isfinite(value):
                    raise ValueError(f"the {what} of step {step} is {value}; {_advice(step, options)}")
            optimizer.step()
            schedule.step()
            taken = step
            average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
            bar.set_postfix(loss=f"{average:.4f}", refresh=False)
            bar.update()
            if measure and step in wanted:
                measures.append((step, measure()))
                bar.write(f"step {step}: loss {average:.4f}, held out {measures[-1][1]:.3g}")
                if measures[-1][1] <= min(value for _, value in measures):
                    best = state()
    except KeyboardInterrupt:
        bar.write(f"interrupted after {taken} steps")
        if measure and taken > measures[-1][0]:
            measures.append((taken, measure()))
            if measures[-1][1] <= min(value for _, value in measures):
                best = state()
    bar.close()
    if best is not None:
        module.load_state_dict(best, strict=False)
    if not all(torch.isfinite(parameter).all() for parameter in parameters):
        raise ValueError(f"weights after step {taken} are not finite; {_advice(taken + 1, options)}")
    return measures, taken
