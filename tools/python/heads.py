# SPDX-License-Identifier: Apache-2.0
"""Encoders with a head for a task, to be trained and written as ONNX: from a Hugging Face folder or from
an ONNX graph. Both give logits(ids, mask, types), a list: start and end [batch, seq], or one of classes
[batch, classes], and `padded`, whether batches may hold padding."""
import contextlib
import inspect
import io
import logging
import pathlib
import warnings

import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import onnx_module
from model_inputs import ModelInputs, logits_of
from onnx_operators import Node
from training import first_line

OUTPUTS = {"qa": ["start_logits", "end_logits"], "classification": ["logits"]}
OPSET = 17


class HuggingFaceModel(torch.nn.Module):
    """A folder with config.json and weights; the head is new unless the folder has that of the task."""

    def __init__(self, folder, task, classes, device):
        super().__init__()
        import transformers  # needed for this source only
        kind = dict(qa=transformers.AutoModelForQuestionAnswering,
                    classification=transformers.AutoModelForSequenceClassification)[task]
        settings = {} if task == "qa" else dict(num_labels=classes, ignore_mismatched_sizes=True)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        try:
            self.model = kind.from_pretrained(folder, local_files_only=True, attn_implementation="eager",
                                              dtype=torch.float32, **settings).to(device)
        except Exception as error:  # of many packages, as one for each format of weights
            raise ValueError(f"{folder}: transformers cannot load it: {first_line(error)}") from error
        self.task = task
        known = inspect.signature(self.model.forward).parameters
        self.inputs = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in known]
        self.padded = "attention_mask" in self.inputs

    def forward(self, *inputs):
        out = self.model(**dict(zip(self.inputs, inputs)))
        return (out.start_logits, out.end_logits) if self.task == "qa" else (out.logits,)

    def logits(self, ids, mask, types):
        return list(self(ids, mask, types))

    def groups(self, learning_rate):
        matrices = [p for p in self.parameters() if p.dim() > 1]
        others = [p for p in self.parameters() if p.dim() == 1]
        return [dict(params=matrices, lr=learning_rate, weight_decay=0.01),
                dict(params=others, lr=learning_rate, weight_decay=0.0)]

    def to_onnx(self):
        """By torch's classic exporter."""
        device = next(self.parameters()).device
        ids = torch.ones(2, 8, dtype=torch.int64, device=device)
        axes = {name: {0: "batch_size", 1: "sequence_length"} for name in self.inputs}
        outputs = OUTPUTS[self.task]
        sequence = {1: "sequence_length"} if self.task == "qa" else {}
        axes.update({name: {0: "batch_size", **sequence} for name in outputs})
        file, training = io.BytesIO(), self.training
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                torch.onnx.export(self.eval(), (ids, ids, torch.zeros_like(ids))[:len(self.inputs)], file, dynamo=False,
                                  opset_version=OPSET, dynamic_axes=axes, input_names=self.inputs,
                                  output_names=outputs)
            except RuntimeError as error:
                raise ValueError(f"torch cannot export the model: {first_line(error)}") from error
        self.train(training)
        return onnx.load_from_string(file.getvalue())


class OnnxEncoder(torch.nn.Module):
    """An ONNX graph in float. If its outputs are those of the task it is trained as it is; otherwise its
    last hidden state [batch, seq, hidden] gets a new head: a MatMul with a bias, for classes at [CLS].
    Embedding tables are not trained, and there is no dropout."""

    def __init__(self, path, task, classes, device):
        super().__init__()
        self.encoder = onnx_module.OnnxModule(path, device)
        if self.encoder.quantizers:
            raise ValueError(f"{path} is quantized; finetune.py takes a float model, qat.py trains this one")
        self.encoder.check_types()
        self.inputs_of = ModelInputs(self.encoder, path)
        self.padded = self.inputs_of.takes_mask
        self.task, self.head, self.hidden = task, None, None
        if not self._has_head(classes):
            opset = self._opset()
            if task == "qa" and opset < 13:
                raise ValueError(f"{path}: the graph has opset {opset}; a new head needs 13 or later")
            self.hidden, width = self._hidden_state(path)
            self.head = torch.nn.Linear(width, 2 if task == "qa" else classes, device=device)
            torch.nn.init.normal_(self.head.weight, std=0.02)
            torch.nn.init.zeros_(self.head.bias)

    def _opset(self):
        return next(o.version for o in self.encoder.model.opset_import if o.domain in ("", "ai.onnx"))

    def _example(self):
        ids = torch.ones(1, 3, dtype=torch.int64, device=self.encoder.device)
        return self.inputs_of(ids, torch.ones_like(ids), torch.zeros_like(ids))

    @torch.no_grad()
    def _has_head(self, classes):
        found = self.encoder(self._example()).values()
        wanted = [(1, 3)] * 2 if self.task == "qa" else [(1, classes)]
        return [tuple(x.shape) for x in found] == wanted

    @torch.no_grad()
    def _hidden_state(self, path):
        """Name and width of what the last LayerNorm makes: the last value [batch, seq, hidden] that an
        operator with a parameter of one dimension and that width has made."""
        nodes = [Node(proto, OPSET) for proto in self.encoder.model.graph.node]
        names = [output for node in nodes for output in node.outputs
                 if node.kind == "LayerNormalization" or (node.kind == "Add" and any(
                     name in self.encoder.weights and self.encoder.weight(name).dim() == 1
                     for name in node.inputs))]
        names = [n for n in names if n not in self.encoder.constants and n not in self.encoder.weights]
        norms = [n for node in nodes if node.kind == "LayerNormalization" for n in node.outputs[:1]]
        values = self.encoder(self._example(), keep=tuple(names))
        width = next((values[n].shape[-1] for n in norms or names if values[n].dim() == 3), None)
        fitting = [n for n in norms or names if values[n].dim() == 3 and values[n].shape[-1] == width]
        if width is None or not fitting:
            raise ValueError(f"{path}: cannot place a new head: no LayerNormalization gives hidden states "
                             "[batch, seq, hidden]")
        return fitting[-1], width

    def logits(self, ids, mask, types):
        inputs = self.inputs_of(ids, mask, types)
        if self.head is None:
            return logits_of(self.encoder(inputs))
        hidden = self.encoder(inputs, keep=(self.hidden,))[self.hidden]
        if self.task == "qa":
            return [x.squeeze(-1) for x in self.head(hidden).split(1, -1)]
        return [self.head(hidden[:, 0])]

    def groups(self, learning_rate):
        groups = [dict(params=list(self.encoder.parameters()), lr=learning_rate, weight_decay=0.0)]
        if self.head is not None:  # starts from nothing, so it moves faster
            groups.append(dict(params=list(self.head.parameters()), lr=10 * learning_rate,
                               weight_decay=0.0))
        return groups

    def to_onnx(self):
        model = self.encoder.updated_model()
        return model if self.head is None else self._with_head(model)

    def _with_head(self, model):
        graph, outputs = model.graph, OUTPUTS[self.task]
        del graph.output[:]
        graph.output.append(helper.make_empty_tensor_value_info(self.hidden))
        onnx_module.set_constants(graph, {})  # the former head goes
        del graph.output[:]
        values = {"head.weight": self.head.weight.T.contiguous(), "head.bias": self.head.bias,
                  "head.first": torch.tensor(0), "head.last_axis": torch.tensor([-1])}
        node = helper.make_node
        if self.task == "qa":
            opset = self._opset()
            graph.node.extend([
                node("MatMul", [self.hidden, "head.weight"], ["head.matmul"], "head/MatMul"),
                node("Add", ["head.matmul", "head.bias"], ["head.logits"], "head/Add"),
                node("Split", ["head.logits"], ["head.start", "head.end"], "head/Split", axis=-1,
                     **({"num_outputs": 2} if opset >= 18 else {})),
                node("Squeeze", ["head.start", "head.last_axis"], outputs[:1], "head/Squeeze"),
                node("Squeeze", ["head.end", "head.last_axis"], outputs[1:], "head/Squeeze_1")])
            shape = ["batch_size", "sequence_length"]
        else:
            graph.node.extend([
                node("Gather", [self.hidden, "head.first"], ["head.cls"], "head/Gather", axis=1),
                node("MatMul", ["head.cls", "head.weight"], ["head.matmul"], "head/MatMul"),
                node("Add", ["head.matmul", "head.bias"], outputs, "head/Add")])
            shape = ["batch_size", self.head.out_features]
        graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in outputs)
        onnx_module.set_constants(graph, {
            name: numpy_helper.from_array(x.detach().cpu().numpy(), name) for name, x in values.items()})
        onnx.checker.check_model(model)
        return model


def load(source, task, classes, device):
    """The model in a Hugging Face folder or an .onnx file."""
    path = pathlib.Path(source)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ValueError(f"{source}: no config.json; expected a Hugging Face folder or an .onnx file")
        return HuggingFaceModel(source, task, classes, device)
    return OnnxEncoder(source, task, classes, device)
