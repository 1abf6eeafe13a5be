# SPDX-License-Identifier: Apache-2.0
"""An ONNX graph as a torch module that can be trained and written back into the same graph.

What depends on constants alone is computed once. Float constants that MatMuls, sums and norms read
are parameters; tables that Gather reads (embeddings) stay as they are. A QuantizeLinear with the
DequantizeLinear after it is a fake quantizer, a DequantizeLinear of integer weights a float weight
after one. Files: onnx_operators.py has the operators, fake_quantize.py the quantizers.
"""
import collections
import pathlib

import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import numpy_helper

import output_files
from fake_quantize import RANGES, FakeQuantizer
from onnx_operators import OPERATORS, Node, from_tensor

# Their integer operands are read on the CPU.
TAKES_SHAPES = ("Reshape", "Expand", "Slice", "Squeeze", "Unsqueeze", "Split", "Tile", "ReduceMean",
                "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "Pad")


def load(path, weights=True):
    """The onnx.ModelProto of a file. `weights`: with external ones. Raises OSError or ValueError that names it."""
    try:
        return onnx.load(path, format="protobuf", load_external_data=weights)  # whatever its name ends with
    except DecodeError as error:
        raise ValueError(f"{path}: not an ONNX file, or a truncated one") from error


def files_of(path):
    """The file of a model, and those that hold its external weights."""
    path = pathlib.Path(path)
    if not path.is_file():
        return [path]
    entries = (entry for tensor in load(path, weights=False).graph.initializer for entry in tensor.external_data)
    return [path, *{path.parent / entry.value for entry in entries if entry.key == "location"}]


class OnnxModule(torch.nn.Module):
    """forward(inputs by name) gives the outputs by name.

    `parameters()` are weights (`weights`, by value name) and the log ratios of `quantizers` (by name
    of the scale). Raises ValueError for what cannot be run or trained, with the node's name.
    """

    def __init__(self, model, device="cpu"):
        """`model`: a path or an onnx.ModelProto, which is changed by `updated_model` only as a copy."""
        super().__init__()
        self.path = "the model"
        if not isinstance(model, onnx.ModelProto):
            self.path, model = str(model), load(model)
        self.model, self.device = model, torch.device(device)
        opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
        nodes = [Node(proto, opset) for proto in model.graph.node]
        self.constants = {i.name: from_tensor(i) for i in model.graph.initializer}
        self.inputs = {i.name: i.type.tensor_type.elem_type for i in model.graph.input
                       if i.name not in self.constants}
        self.outputs = [o.name for o in model.graph.output]
        self.quantizers = torch.nn.ModuleDict()
        self._quantizer_of = {}  # node output -> key of its quantizer
        self._integers = {}  # value with integers -> (float value, key of the quantizer)
        self._scales = collections.defaultdict(set)  # key -> names of its scale in the file
        self._readers = collections.defaultdict(set)  # value -> kinds of nodes that read it
        for node in nodes:
            for name in node.inputs:
                self._readers[name].add(node.kind)
        self._steps = [node for node in nodes if not self._fold(node)]
        self._tie_biases()
        self._parameter_list = torch.nn.ParameterList()
        self.weights = {}
        self._of_other_types = []  # names and types of weights that are not trained
        self._make_parameters()
        self.constants = {name: x.to(self.device) if x.is_floating_point() else x
                          for name, x in self.constants.items()}
        self._last_use = self._find_last_uses()
        self.to(self.device)

    # --- reading ------------------------------------------------------------------------------
    def _fold(self, node):
        """Whether the node needs not be run again: its result is constant, or it has become a weight."""
        if node.kind in ("QuantizeLinear", "DequantizeLinear"):
            return self._read_quantizer(node)
        taken = next((name for name in node.inputs if name in self._integers), None)
        if taken:
            raise node.error(f"reads the integers {taken}; only DequantizeLinear may")
        if node.kind not in OPERATORS:
            raise node.error("the operator is not supported (supported: " + ", ".join(sorted(OPERATORS)) + ")")
        if any(name and name not in self.constants for name in node.inputs):
            return False
        with torch.no_grad():
            for name, value in zip(node.outputs, self._results(node, self.constants)):
                self.constants[name] = value
        return True

    def _read_quantizer(self, node):
        value, scale_name, zero_name = (node.inputs + [""])[:3]
        if scale_name not in self.constants or (zero_name and zero_name not in self.constants):
            raise node.error("scale and zero point must be constants")
        if self.constants[scale_name].dtype != torch.float32:
            raise node.error(f"its scale is {self.constants[scale_name].dtype}; training and evaluation in PyTorch take "
                             "float32 only")
        if node.get("block_size", 0):
            raise node.error("blockwise quantization (block_size) is not supported")
        scale = self.constants[scale_name]
        if node.kind == "DequantizeLinear" and value in self._integers:
            source, key = self._integers[value]
            if value in self.constants:  # a weight that is read once more
                node.inputs[0] = source
                self._quantizer_of[node.outputs[0]] = key
                return False
            if not torch.equal(self._scale_in_file(key), scale.float().reshape(-1)):
                raise node.error(f"its scale differs from that of the QuantizeLinear of {source}")
            self._scales[key].add(scale_name)
            self._quantizer_of[node.outputs[0]] = None  # the pair is one fake quantizer, already applied
            return False
        if node.kind == "DequantizeLinear" and value not in self.constants:
            raise node.error(f"reads {value}, which is not the output of a QuantizeLinear; integer operators "
                             "are not supported, quantize with QuantizeLinear and DequantizeLinear")
        constant = self.constants.get(value)
        if zero_name:
            zero = self.constants[zero_name]
        else:
            integers = constant is not None and not constant.is_floating_point()
            zero = torch.zeros((), dtype=constant.dtype if integers else torch.uint8)
        if zero.dtype not in RANGES:
            raise node.error(f"type {zero.dtype} is not supported")
        axis, rank = node.get("axis", 1), constant.dim() if constant is not None else None
        key = self._key(scale_name, zero_name, rank, axis) if scale.numel() > 1 else self._key(
            scale_name, zero_name)
        if key not in self.quantizers:
            self.quantizers[key] = FakeQuantizer(scale, zero, axis, rank)
            self.quantizers[key].log_ratio.requires_grad = zero.dtype != torch.int32  # biases
        if node.kind == "DequantizeLinear" and self._readers[node.outputs[0]] <= {"Gather", "GatherND"}:
            self.constants[node.outputs[0]] = self.quantizers.pop(key).to_floats(constant)
            return True  # a table of embeddings stays as it is
        self._scales[key].add(scale_name)
        if node.kind == "QuantizeLinear":
            self._integers[node.outputs[0]] = value, key
        else:
            self._integers[value] = f"{value} (as floats)", key
            self.constants[self._integers[value][0]] = self.quantizers[key].to_floats(constant)
            node.inputs[0] = self._integers[value][0]
        self._quantizer_of[node.outputs[0]] = key
        return False

    def _tie_biases(self):
        """Integer biases of Gemms get the product of the scales of the other two operands, if they have it in the file.
        ONNX Runtime's QGemm takes that product, whatever the file says."""
        makers = {name: node for node in self._steps for name in node.outputs}
        for node in self._steps:
            found = [makers.get(name) for name in node.inputs] if node.kind == "Gemm" and len(node.inputs) == 3 else [None]
            if not all(maker and maker.kind == "DequantizeLinear" for maker in found):
                continue
            keys = [self._quantizer_of[m.outputs[0]] or self._integers[m.inputs[0]][1] for m in found]
            *factors, bias = (self.quantizers[key] for key in keys)
            product = factors[0].start * factors[1].start
            if bias.dtype == torch.int32 and product.numel() == bias.start.numel() and torch.allclose(
                    product.reshape(bias.start.shape), bias.start, rtol=1e-5, atol=0):
                if bias.factors and bias.factors != tuple(factors):
                    raise node.error("its bias has the scale of another bias; give it one of its own")
                bias.factors = tuple(factors)

    @staticmethod
    def _key(*parts):
        return "|".join(map(str, parts)).replace(".", "\u2024")  # torch allows no "." in names of modules

    def _scale_in_file(self, key):
        return self.quantizers[key].start.reshape(-1)

    def _makers_of_angles(self):
        """Nodes on the way to a Cos or Sin: of rotary positions, whose frequencies are not trained."""
        wanted, makers = set(), []
        for node in reversed(self._steps):
            if node.kind in ("Cos", "Sin") or wanted & set(node.outputs):
                wanted |= set(node.inputs)
                makers.append(node)
        return makers

    def _make_parameters(self):
        of_angles = self._makers_of_angles()
        for node in self._steps:
            if node in of_angles:
                continue
            for place, name in enumerate(node.inputs):
                value = self.constants.get(name)
                if value is None or name in self.weights or not value.is_floating_point():
                    continue
                table = node.kind in ("Gather", "GatherND", "GatherElements") and place == 0
                if node.kind in ("QuantizeLinear", "DequantizeLinear"):
                    trained = place == 0
                else:
                    trained = value.numel() > 1 and value.dtype == torch.float32 and not table
                    if value.numel() > 1 and value.dtype != torch.float32 and not table:
                        self._of_other_types.append((name, value.dtype))
                if trained:
                    self.weights[name] = len(self._parameter_list)
                    self._parameter_list.append(torch.nn.Parameter(value))
        for name in self.weights:
            del self.constants[name]
        for name, quantizer in self._stored_weights():
            quantizer.keep_range_of(self.weight(name).detach())

    def _stored_weights(self):
        """Names of the weights that are quantized, with their quantizers."""
        for node in self._steps:
            if self._quantizer_of.get(node.outputs[0]) and node.inputs[0] in self.weights:
                yield node.inputs[0], self.quantizers[self._quantizer_of[node.outputs[0]]]

    def _find_last_uses(self):
        last = {}
        for index, node in enumerate(self._steps):
            for name in node.inputs:
                last[name] = index
        result = collections.defaultdict(list)
        for name, index in last.items():
            if name and name not in self.constants and name not in self.weights and name not in self.outputs:
                result[index].append(name)
        return result

    # --- running ------------------------------------------------------------------------------
    def _results(self, node, values):
        inputs = [values[name] if name else None for name in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        tensors = [x for x in inputs if x is not None]
        if node.kind not in ("Shape", "Size") and len({x.device for x in tensors}) > 1:
            target = next(x.device for x in tensors if x.device.type != "cpu")
            inputs = inputs if node.kind in TAKES_SHAPES else [x if x is None else x.to(target) for x in inputs]
        try:
            results = OPERATORS[node.kind](node, *inputs)
        except (RuntimeError, TypeError, KeyError, IndexError) as error:
            shapes = ", ".join(f"{x.dtype} {list(x.shape)}" for x in tensors)
            raise node.error(f"{error} (inputs: {shapes})") from error
        return results if isinstance(results, (tuple, list)) else (results,)

    def forward(self, inputs, keep=()):
        """Outputs by name, and the values named in `keep`."""
        values = dict(self.constants)
        values.update((name, self._parameter_list[i]) for name, i in self.weights.items())
        values.update(inputs)
        for index, node in enumerate(self._steps):
            if node.outputs[0] in self._quantizer_of:
                key, x = self._quantizer_of[node.outputs[0]], values[node.inputs[0]]
                values[node.outputs[0]] = self.quantizers[key](x) if key else x
            else:
                for name, value in zip(node.outputs, self._results(node, values)):
                    values[name] = value
            for name in self._last_use[index]:
                if name not in keep:
                    del values[name]
        return {name: values[name] for name in (*self.outputs, *keep)}

    # --- weights ------------------------------------------------------------------------------
    def check_types(self):
        """Raises where weights have another type than the one that can be trained."""
        for name, dtype in self._of_other_types:
            raise ValueError(f"{self.path}: weight {name} is {str(dtype).removeprefix('torch.')}; training takes models "
                             "in float32")

    def weight(self, name):
        return self._parameter_list[self.weights[name]]

    def start_from(self, other):
        """Takes the float weights of `other`, the model that this one was quantized from: for each
        quantized weight the constant that quantizes to its integers (at least 99.9 % of them).
        Returns the numbers of weights taken and of all. The others start from what their integers say.
        """
        found, stored = 0, list(self._stored_weights())
        with torch.no_grad():
            for name, quantizer in stored:
                mine = self.weight(name)
                integers = quantizer.to_integers(mine)
                for theirs in map(other.weight, other.weights):
                    if theirs.shape == mine.shape:
                        equal = quantizer.to_integers(theirs.to(mine.device)) == integers
                        if equal.float().mean() >= 0.999:
                            mine.copy_(theirs)
                            found += 1
                            break
        return found, len(stored)

    # --- writing ------------------------------------------------------------------------------
    def updated_model(self):
        """The graph with the present weights and scales, as onnx.ModelProto."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        changed = {}
        for name in self.weights:
            if not name.endswith(" (as floats)"):
                changed[name] = self.weight(name)
        for integers, (source, key) in self._integers.items():
            if source in self.weights and source.endswith(" (as floats)"):
                changed[integers] = self.quantizers[key].to_integers(self.weight(source))
        for key, names in self._scales.items():
            quantizer = self.quantizers[key]
            for name in names:
                changed[name] = quantizer.scale.reshape(quantizer.file_shape)
        set_constants(model.graph, {name: numpy_helper.from_array(x.detach().cpu().numpy(), name)
                                     for name, x in changed.items()})
        return model


def set_constants(graph, tensors):
    """Initializers in place of whatever made these values; what nothing reads any more goes."""
    kept = [node for node in graph.node if not set(node.output) & tensors.keys()]
    initializers = [tensors.get(i.name, i) for i in graph.initializer]
    present = {i.name for i in initializers}
    initializers += [tensor for name, tensor in tensors.items() if name not in present]
    read = {o.name for o in graph.output}
    nodes = []
    for node in reversed(kept):
        if read & set(node.output):
            nodes.append(node)
            read |= set(node.input)
    nodes.reverse()
    initializers = [i for i in initializers if i.name in read]
    # An input that was an initializer would have no value any more.
    gone = {i.name for i in graph.initializer} - {i.name for i in initializers}
    inputs = [i for i in graph.input if i.name not in gone]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    graph.initializer.extend(initializers)
    graph.input.extend(inputs)
    stale = [v for v in graph.value_info if v.name not in {o for n in nodes for o in n.output}]
    for value in stale:
        graph.value_info.remove(value)


def save(model, path, metadata=()):
    """Writes an onnx.ModelProto under a temporary name first. `metadata`: keys and values to set, None to remove."""
    for key, value in dict(metadata).items():
        if value is None:
            kept = [p for p in model.metadata_props if p.key != key]
            del model.metadata_props[:]
            model.metadata_props.extend(kept)
            continue
        entry = next((p for p in model.metadata_props if p.key == key), None) or model.metadata_props.add()
        entry.key, entry.value = key, str(value)
    with output_files.pending(path) as temporary:
        onnx.save(model, temporary)
