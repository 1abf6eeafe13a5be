# SPDX-License-Identifier: Apache-2.0
"""What qat.py and finetune.py share: losses, and the loop of steps."""
import argparse
import unittest

import numpy as np
from support import needs

needs("torch")

import torch

import task_data
import training

torch.set_num_threads(1)


class Losses(unittest.TestCase):
    def test_of_as_many_tokens_as_classes(self):
        """A class is not masked as a token of padding is."""
        mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
        examples = [task_data.Example([1, 1, 1], [0, 0, 0], (0,)), task_data.Example([1], [0], (2,))]
        logits = torch.zeros(2, 3)
        self.assertAlmostEqual(training.label_loss([logits], mask, examples).item(), np.log(3), places=6)
        teacher = {"logits": torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 5.0]])}
        distance = training.distillation_loss({"logits": logits}, teacher, mask, set()).item()
        self.assertGreater(distance, 0.3)
        of_tokens = training.distillation_loss({"logits": logits}, teacher, mask, {"logits"}).item()
        self.assertEqual(of_tokens, 0)

    def test_of_one_logit_and_of_vectors(self):
        mask = torch.tensor([[1, 1], [1, 0]])
        def distance(name, found, target):
            return training.distillation_loss({name: found}, {name: target}, mask, set()).item()
        self.assertEqual(distance("logits", torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [4.0]])), 2.5)
        hidden = torch.ones(2, 2, 8)
        other = 2 * hidden
        other[1, 1] = 1e9  # padding
        self.assertEqual(distance("last_hidden_state", other, hidden), 1)
        self.assertEqual(distance("sentence_embedding", hidden[0], 2 * hidden[0]), 0.25)


class Loop(unittest.TestCase):
    def test_an_interrupt_measures_once_more(self):
        module = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(module.weight, 1.0)

        def loss_of(step):
            if step == 4:
                raise KeyboardInterrupt
            return module.weight.square().sum()

        measures, taken = training.train(
            module, [dict(params=module.parameters(), lr=0.1)], iter(range(1, 101)), loss_of,
            argparse.Namespace(steps=100, learning_rate=0.1), lambda: module.weight.item())
        self.assertEqual(([step for step, _ in measures], taken), ([0, 3], 3))
        self.assertLess(module.weight.item(), 1)
        self.assertEqual(module.weight.item(), measures[-1][1])

    def test_values_that_are_not_finite(self):
        """Nor are the weights of the last step, which no loss shows."""
        def train(loss_of, steps=1, **rates):
            module = torch.nn.Linear(1, 1, bias=False)
            options = argparse.Namespace(steps=steps, learning_rate=0.1, **rates)
            training.train(module, [dict(params=module.parameters(), lr=0.1)], iter(range(1, 9)),
                           lambda step: loss_of(step, module.weight.sum(), module.weight.data), options)

        def spoil(step, x, weight):
            weight.fill_(np.inf)
            return x

        of_qat = dict(scale_rate=1.0, temperature=1.0)
        for loss_of, options, problem in (
                (spoil, {}, "weights after step 1 are not finite; lower --learning-rate$"),
                (lambda step, x, _: x * np.nan, {}, "the loss of step 1 is nan; no step .* check the model and the data$"),
                (lambda step, x, _: x * np.nan, of_qat, "step 1 is nan; .*, or raise --temperature$"),
                (lambda step, x, _: x * (np.nan if step == 2 else 1), dict(steps=2), "step 2 is nan; lower --learning-rate$"),
                (lambda step, x, _: x * (np.nan if step == 2 else 1), dict(steps=2, **of_qat), "rate or --scale-rate$")):
            with self.subTest(problem), self.assertRaisesRegex(ValueError, problem):
                train(loss_of, **options)
