# SPDX-License-Identifier: Apache-2.0
"""Training in torch: the module made of an ONNX graph, fake quantizers, and qat.py as a whole."""
import contextlib
import io
import json
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from support import (CALIBRATION, MODEL, SAMPLE, VOCABULARY, Batches, Reference, bertcl, bertcl_run, inspect, model_of, needs,
                     scratch, worst)

import make_bert

needs("torch")

import torch

import evaluate
import fake_quantize
import onnx_module
import qat
import squad_data
import training
from model_inputs import ModelInputs
from test_spellings import LENGTHS, SPELLINGS, batch

torch.set_num_threads(1)


def run_torch(path, inputs):
    with torch.no_grad():
        outputs = onnx_module.OnnxModule(path)({n: torch.from_numpy(x) for n, x in inputs.items()})
    return {name: x.numpy() for name, x in outputs.items()}


def pair_on(x, constants, **attributes):
    """y: x after QuantizeLinear and DequantizeLinear with scale s and zero point z."""
    return model_of([helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes),
                     helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **attributes)],
                    {"x": x}, ["y"], constants)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)

    def write(self, name="model.onnx", **spelling):
        spec = make_bert.Spec.of_size("tiny", **spelling)
        make_bert.save(make_bert.build(spec), self.folder / name)
        return self.folder / name, spec

    def quantize(self, path, *options):
        made = self.folder / "quantized.onnx"
        bertcl("quantize", path, "-o", made, "--force", "--data", CALIBRATION, "--vocab", VOCABULARY,
               "--samples", 16, *options)
        return made


class FakeQuantizers(unittest.TestCase):
    def quantizer(self, scale, zero_point, dtype, **options):
        return fake_quantize.FakeQuantizer(torch.tensor(scale), torch.tensor(zero_point, dtype=dtype),
                                           **options)

    def test_is_what_onnxruntime_computes(self):
        random = np.random.default_rng(0)
        steps = np.concatenate([random.uniform(-300, 300, 999), np.arange(-300, 300) + 0.5])
        for scale, zero_point, kind in ((0.25, 3, "uint8"), (0.1, 0, "int8"), (0.37, 255, "uint8")):
            with self.subTest(scale=scale, zero_point=zero_point, kind=kind):
                x = (steps * scale).astype(np.float32)
                model = pair_on(x, dict(s=np.float32(scale), z=np.array(zero_point, kind)))
                expected = Reference(model.SerializeToString()).run({"x": x})["y"]
                module = onnx_module.OnnxModule(model)
                with torch.no_grad():
                    found = module({"x": torch.from_numpy(x)})["y"].numpy()
                np.testing.assert_array_equal(found, expected)

    def test_gradients(self):
        """Straight through inside the range, nothing outside; of the scale as LSQ has it."""
        quantizer = self.quantizer(0.5, 0, torch.int8)
        x = torch.tensor([0.6, -63.9, 70.0, -80.0], requires_grad=True)
        weights = torch.tensor([1.0, 10.0, 100.0, 1000.0])
        (quantizer(x) * weights).sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 10, 0, 0])
        # log_ratio: times the scale; 1.2 and -127.8 steps are rounded, 127 and -128 are the bounds
        expected = 0.5 * ((1 - 1.2) * 1 + (-128 + 127.8) * 10 + 127 * 100 - 128 * 1000)
        self.assertAlmostEqual(quantizer.log_ratio.grad.item() / expected, 1, places=5)

    def test_gradients_of_channels(self):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
        scales = torch.tensor([0.1, 0.01, 0.02, 0.3])
        whole = fake_quantize.FakeQuantizer(scales, torch.zeros(4, dtype=torch.int8), axis=1, rank=2)
        whole(x).square().sum().backward()
        for column in range(4):
            one = self.quantizer(scales[column].item(), 0, torch.int8)
            one(x[:, column]).square().sum().backward()
            self.assertAlmostEqual(whole.log_ratio.grad[0, column].item(), one.log_ratio.grad.item(),
                                   places=3)


class Modules(Folder):
    def test_spellings(self):
        """Each spelling of the graph computes what ONNX Runtime does, and is written back unchanged."""
        for spelling in SPELLINGS:
            with self.subTest(**spelling):
                path, spec = self.write(**spelling)
                inputs = batch(spec, LENGTHS)
                expected, mask = Reference(path).run(inputs), inputs[spec.mask_name]
                difference, extent = worst(expected, run_torch(path, inputs), mask)
                self.assertLess(difference, 1e-5 * extent)
                module = onnx_module.OnnxModule(path)
                again = self.folder / "again.onnx"
                onnx_module.save(module.updated_model(), again)
                self.assertEqual(worst(expected, Reference(again).run(inputs), mask)[0], 0)
                with torch.no_grad():  # and the parameters are those that count
                    for parameter in module.parameters():
                        parameter *= 0.5
                onnx_module.save(module.updated_model(), again)
                difference, _ = worst(run_torch(again, inputs), Reference(again).run(inputs), mask)
                self.assertLess(difference, 1e-5 * extent)
                self.assertGreater(worst(expected, Reference(again).run(inputs), mask)[0], 0.1 * extent)

    def test_quantized_files_start_from_the_float_weights(self):
        for options in ((), ("--weights-qdq",), ("--activations", "s8", "--residual")):
            with self.subTest(options=options):
                path, spec = self.write(vocabulary=30522)
                quantized = self.quantize(path, "--smooth", "off", "--weight-rounding", "nearest", *options)
                module = onnx_module.OnnxModule(quantized)
                self.assertEqual(module.start_from(onnx_module.OnnxModule(path)), (13, 13))
                again = self.folder / "again.onnx"
                onnx_module.save(module.updated_model(), again)
                before, after = (  # the same integers and scales
                    {i.name: i for i in onnx.load(p).graph.initializer} for p in (quantized, again))
                self.assertEqual(before.keys(), after.keys())
                for name, tensor in before.items():
                    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor),
                                                  onnx.numpy_helper.to_array(after[name]), name)
                other, _ = self.write("other.onnx", vocabulary=30522, seed=1)
                if "--weights-qdq" not in options:  # weights of another model are not taken
                    module = onnx_module.OnnxModule(quantized)
                    self.assertEqual(module.start_from(onnx_module.OnnxModule(other))[0], 0)

    def test_activations_with_a_scale_for_each_channel(self):
        random = np.random.default_rng(1)
        x = random.standard_normal((2, 5, 3), dtype=np.float32)
        model = pair_on(x, dict(s=np.array([0.5, 0.1, 0.01], np.float32), z=np.array([0, 9, 128], "uint8")), axis=2)
        module = onnx_module.OnnxModule(model)
        with torch.no_grad():
            found = module({"x": torch.from_numpy(x)})["y"].numpy()
        np.testing.assert_array_equal(found, Reference(model.SerializeToString()).run({"x": x})["y"])
        for attribute in (a for n in model.graph.node for a in n.attribute):
            attribute.i = 1
        with self.assertRaisesRegex(ValueError, "only the last axis"):
            onnx_module.OnnxModule(model)({"x": torch.zeros(2, 3, 5)})

    def test_weights_keep_to_the_bits_of_the_file(self):
        scale, weight = torch.tensor([0.1, 0.2]), torch.tensor([[6.4, 0.2], [0.1, -12.8]])
        quantizer = fake_quantize.FakeQuantizer(scale, torch.zeros(2, dtype=torch.int8), axis=1, rank=2)
        quantizer.keep_range_of(weight)
        integers = quantizer.to_integers(2 * weight)
        self.assertEqual(integers.tolist(), [[64, 2], [2, -64]])
        cases = ((torch.uint8, [128, 128], [[192, 130], [130, 64]]),  # symmetric, too
                 (torch.uint8, [120, 120], [[184, 122], [122, 56]]), (torch.int8, [3, 3], [[67, 5], [5, -61]]))
        for dtype, zero, expected in cases:
            quantizer = fake_quantize.FakeQuantizer(scale, torch.tensor(zero, dtype=dtype), axis=1, rank=2)
            quantizer.keep_range_of(weight)
            self.assertEqual(quantizer.to_integers(2 * weight).tolist(), expected)

    def test_integer_biases_keep_to_the_scales_of_their_gemm(self):
        """ONNX Runtime's optimizer takes the product of the other two for the scale of a bias, whatever the file says."""
        random = np.random.default_rng(0)
        x = random.standard_normal((8, 16), dtype=np.float32)
        constants = {name: random.standard_normal(shape, dtype=np.float32)
                     for name, shape in dict(w=(16, 12), b=(12,), w2=(5, 12), b2=(5,)).items()}
        model = model_of([helper.make_node("Gemm", ["x", "w", "b"], ["h"], "a"), helper.make_node("Tanh", ["h"], ["t"]),
                          helper.make_node("Gemm", ["t", "w2", "b2"], ["y"], "b", transB=1)], {"x": x}, ["y"], constants)
        source, quantized = self.folder / "gemm.onnx", self.folder / "quantized.onnx"
        onnx.save(model, source)
        for per_channel in (False, True):
            quantize_static(source, quantized, Batches([{"x": x}]), quant_format=QuantFormat.QDQ, per_channel=per_channel,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=True)
            module = onnx_module.OnnxModule(quantized)
            for moved in (False, True):
                with self.subTest(per_channel=per_channel, moved=moved), torch.no_grad():
                    for quantizer in module.quantizers.values() if moved else ():
                        if quantizer.log_ratio.requires_grad:
                            quantizer.log_ratio += torch.randn(quantizer.log_ratio.shape, generator=torch.manual_seed(1))
                    trained = module.updated_model().SerializeToString()
                    expected = Reference(trained).run({"x": x})["y"]
                    found = Reference(trained, optimized=True).run({"x": x})["y"]
                    for other in found, module({"x": torch.from_numpy(x)})["y"].numpy():  # but for values next to ties
                        self.assertLess(np.mean(np.abs(other - expected) > 1e-5 * np.abs(expected).max()), 0.05)
                    stored = {i.name: numpy_helper.to_array(i) for i in onnx.load_from_string(trained).graph.initializer}
                    before = {i.name: numpy_helper.to_array(i) for i in onnx.load(quantized).graph.initializer}
                    biases = [name for name, values in stored.items() if values.dtype == np.int32 and "zero" not in name]
                    self.assertEqual(len(biases), 2)
                    for name in biases if not moved else ():
                        np.testing.assert_array_equal(stored[name], before[name])

    def test_infinite_values_leave_finite_gradients(self):
        """A mask of -3.4e38 divided by a small scale is infinite."""
        for scale, axis in ((torch.tensor(0.01), None), (torch.tensor([0.01, 0.02]), 1)):
            zero = torch.full(scale.shape, 7, dtype=torch.uint8)
            quantizer = fake_quantize.FakeQuantizer(scale, zero, axis, 2)
            x = torch.tensor([[0.3, -3.4e38], [3.4e38, -0.02]], requires_grad=True)
            quantizer(x).square().sum().backward()
            for gradient in x.grad, quantizer.log_ratio.grad:
                self.assertTrue(torch.isfinite(gradient).all())

    def test_initializers_that_were_inputs_are_none_without_a_value(self):
        """Older exporters list them as inputs, with the initializer as default."""
        x, weight = np.float32([[1, 2]]), np.float32([[1, -3], [2, 4], [0, 5]])
        model = model_of([helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["p"]),
                          helper.make_node("Add", ["p", "b"], ["y"])],
                         {"x": x}, ["y"], {"w": weight, "b": np.ones(3, np.float32)})
        model.graph.input.extend([helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 2]),
                                  helper.make_tensor_value_info("b", TensorProto.FLOAT, [3])])
        written = onnx_module.OnnxModule(model).updated_model()
        self.assertEqual([i.name for i in written.graph.input], ["x", "b"])
        np.testing.assert_array_equal(Reference(written.SerializeToString()).run({"x": x})["y"], x @ weight.T + 1)

    def test_operands_that_are_left_out(self):
        """As of a Clip without a largest value, which exporters write for clamp(min=..)."""
        x = np.array([[-2.0, 0.5, 3.0]], np.float32)
        model = model_of([helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Clip", ["n", "low", ""], ["y"])],
                         {"x": x}, ["y"], dict(low=np.float32(0)))
        module = onnx_module.OnnxModule(model)
        np.testing.assert_array_equal(module({"x": torch.from_numpy(x)})["y"].numpy(), [[2, 0, 0]])

    def test_weights_of_other_types(self):
        """Those that a Cast makes float32 are trained; others run, but are not."""
        x, values = np.array([[1.0, 2.0]], np.float32), [1.5, -0.25, 3.0, 0.125]
        for kind in "FLOAT16", "BFLOAT16", "DOUBLE":
            with self.subTest(kind):
                weight = helper.make_tensor("w", getattr(TensorProto, kind), [2, 2], values)
                model = model_of([helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT),
                                  helper.make_node("MatMul", ["x", "f"], ["y"])], {"x": x}, ["y"])
                model.graph.initializer.append(weight)
                module = onnx_module.OnnxModule(model)
                module.check_types()
                self.assertEqual(list(module.weights), ["f"])
                np.testing.assert_array_equal(module({"x": torch.from_numpy(x)})["y"].detach().numpy(), [[7.5, 0]])
                model.graph.node[0].CopyFrom(helper.make_node("Cast", ["x"], ["t"], to=getattr(TensorProto, kind)))
                model.graph.node[1].CopyFrom(helper.make_node("MatMul", ["t", "w"], ["y"]))
                module = onnx_module.OnnxModule(model)
                self.assertEqual(module({"x": torch.from_numpy(x)})["y"].tolist(), [[7.5, 0]])
                with self.assertRaisesRegex(ValueError, f"weight w is {kind.lower().replace('double', 'float64')}; training"):
                    module.check_types()
        model.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [2, 2], values))
        with self.assertRaisesRegex(ValueError, "constant w: type FLOAT8E4M3FN is not supported"):
            onnx_module.OnnxModule(model)
        model = pair_on(x.astype(np.float16), dict(s=np.float16(0.5), z=np.uint8(3)))
        with self.assertRaisesRegex(ValueError, "its scale is torch.float16; .* take float32 only"):
            onnx_module.OnnxModule(model)

    def test_other_files_are_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "sample-v2.0.json: not an ONNX file"):
            onnx_module.OnnxModule(SAMPLE)

    def test_refusals_name_the_node(self):
        path, _ = self.write()
        model = onnx.load(path)
        node = next(n for n in model.graph.node if n.op_type == "Softmax")
        node.op_type = "Hardmax"
        with self.assertRaisesRegex(ValueError, f"{node.name}.*Hardmax"):
            onnx_module.OnnxModule(model)


class Training(Folder):
    STEPS = 30

    def test_qat_comes_closer_to_the_float_model(self):
        """From a poor start; what is written is run alike by torch, ONNX Runtime and bertcl."""
        path, spec = self.write(vocabulary=30522)
        quantized = self.quantize(path, "--activations", "s8", "--residual")
        module = onnx_module.OnnxModule(quantized)  # ranges four times too wide
        with torch.no_grad():
            for quantizer in module.quantizers.values():
                if quantizer.log_ratio.dim() == 0:
                    quantizer.log_ratio.fill_(1.4)
        onnx_module.save(module.updated_model(), quantized)
        made = self.folder / "qat.onnx"
        code = qat.main(["--model", str(path), "--quantized", str(quantized), "-o", str(made),
                         "--data", str(CALIBRATION), "--vocab", str(VOCABULARY), "--max-length", "96",
                         "--steps", str(self.STEPS), "--tokens", "512", "--held-out", "14",
                         "--learning-rate", "1e-4", "--scale-rate", "3e-2", "--threads", "1"])
        self.assertEqual(code, 0)
        before, after = (self.divergence(path, p) for p in (quantized, made))
        self.assertLess(after, 0.6 * before)

        report = inspect(made, "--require", "int8")
        self.assertEqual({op["op"] for op in report["ops"]},
                         {op["op"] for op in inspect(quantized)["ops"]})
        inputs = batch(spec, LENGTHS)
        mask, found = inputs[spec.mask_name], run_torch(made, inputs)
        for name, expected in (("ONNX Runtime", Reference(made).run(inputs)),
                               ("bertcl", bertcl_run(made, inputs))):
            difference, extent = worst(expected, found, mask)
            self.assertLess(difference, 0.05 * extent, name)
        properties = {p.key: p.value for p in onnx.load(made).metadata_props}
        self.assertEqual(properties["bertcl.qat.steps"], str(self.STEPS))
        self.assertEqual(properties["bertcl.quantizer.method"], "minmax")

    def divergence(self, teacher, student):
        teacher, student = onnx_module.OnnxModule(teacher), onnx_module.OnnxModule(student)
        questions = squad_data.load_questions(SAMPLE, 20)
        windows = squad_data.make_windows(questions, squad_data.load_tokenizer(VOCABULARY), 96, 64)
        ids, mask, types = training.collate(windows, "cpu", 0)
        inputs = ModelInputs(teacher, "teacher")(ids, mask, types)
        with torch.no_grad():
            outputs = teacher(inputs)
            return training.distillation_loss(student(inputs), outputs, mask, set(outputs)).item()

    def test_bad_use(self):
        path, _ = self.write()
        common = ["--data", str(SAMPLE), "--vocab", str(VOCABULARY), "-o", str(self.folder / "o.onnx")]
        for model, quantized in ((path, path), (self.folder / "absent.onnx", path)):
            self.assertEqual(qat.main(["--model", str(model), "--quantized", str(quantized), *common]), 2)
        for option, value in (("--temperature", "nan"), ("--scale-rate", "nan"), ("--scale-rate", "inf"),
                              ("--temperature", "inf"), ("--labels", "nan")):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as told:
                qat.main(["--model", str(path), "--quantized", str(path), *common, option, value])
            self.assertIn("all of them finite", told.getvalue())
        for option, value, problem in (("--learning-rate", "nan", "a number above 0"), ("--seed", 10**22, "2^63 - 1"),
                                       ("--learning-rate", "inf", "a number above 0"), ("--seed", -1, "2^63 - 1")):
            with contextlib.redirect_stderr(io.StringIO()) as told:
                self.assertEqual(qat.main(["--model", str(path), "--quantized", str(path), *common, option, str(value)]), 2)
            self.assertIn(problem, told.getvalue())
        self.assertFalse((self.folder / "o.onnx").exists())


class Evaluation(Folder):
    def test_f1_equals_that_of_the_engine(self):
        """Float, where no rounding differs: the whole way from text to score, in two programs. 40
        questions; docs/qat.md has the same for quantized models over 2,000."""
        found = json.loads(bertcl("eval", MODEL, "--data", SAMPLE, "--limit", 40,
                                  "--json", "-").stdout)["models"][0]
        options = evaluate.argparse.Namespace(data=SAMPLE, limit=40, vocab=None, cased=False,
                                              max_length=384, stride=128, tokens=2048)
        model = onnx.load(MODEL)
        model.graph.output.reverse()  # the end logits first
        expected, _ = evaluate.evaluate(onnx_module.OnnxModule(model), MODEL, options, "cpu")
        self.assertEqual(expected["total"], found["total"])
        self.assertAlmostEqual(expected["f1"], found["f1"], delta=0.1)
