// SPDX-License-Identifier: Apache-2.0
// The table of presets. Each names the source file of the other system that it follows.
#include "quant/presets.hpp"

#include "support/did_you_mean.hpp"

namespace bertcl::quant {
namespace {

constexpr Scheme kSymmetricI8{ir::DType::i8, true};

Options our_default() {
  Options o;
  o.accuracy.smooth = o.accuracy.gptq = true;
  return o;
}

/// Exponentials in place of probabilities, and ranges that clip 0.001 % of the values, half at each
/// end: the largest are those of [CLS], whose LayerNorm divides their error by more, and they widen
/// the steps of all other tokens (docs/accuracy.md).
Options accurate() {
  Options o = our_default();
  o.softmax = Softmax::unnormalized;
  o.method = "percentile";
  o.method_options.symmetric = false;
  return o;
}

/// Without the sum of the embeddings, which the engine computes in one kernel with its LayerNorm.
Options fast() {
  Options o = our_default();
  o.placement.op_types = {"MatMul", "Add"};
  o.placement.adds = Adds::encoder;
  o.placement.add_channels = true;
  return o;
}

/// microsoft/onnxruntime-inference-examples, quantization/nlp/bert/migraphx with --ort_quant.
Options ort_migraphx() {
  Options o;
  o.placement.op_types = {"MatMul", "Conv"};
  o.method = "percentile";
  o.activations = kSymmetricI8;
  o.weights.as_float = true;
  o.weights.axes = {{"MatMul", -1}};
  o.dedicated_pairs = true;
  o.all_readers = true;
  return o;
}

/// microsoft/onnxruntime-inference-examples, quantization/nlp/bert/trt.
Options ort_tensorrt() {
  Options o = ort_migraphx();
  o.placement.op_types = {"MatMul", "Add"};
  o.placement.adds = Adds::layer_norm;
  // The example itself loses 16 F1 on the default model: a few channels are 50 times as large as
  // the others. `--smooth off --no-add-channels` gives its file as it is.
  o.placement.add_channels = true;
  o.accuracy.smooth = true;
  return o;
}

/// huggingface/transformers, models/qdqbert: 20 quantizers a layer, none outside the layers.
/// Smoothed and with channels as ort_tensorrt(): the residual stream in one scale alone costs 16
/// F1.
Options qdqbert() {
  Options o;
  o.placement.op_types = {"MatMul", "Add"};
  o.placement.adds = Adds::encoder;
  o.placement.add_channels = true;
  o.placement.head = false;
  o.accuracy.smooth = true;
  o.activations = kSymmetricI8;
  o.weights.as_float = true;
  o.weights.transposed = true;
  o.dedicated_pairs = true;
  return o;
}

/// ROCm/AMDMIGraphX, src/quantize_8bits.cpp: dot and convolution, weights like activations.
Options migraphx_native() {
  Options o;
  o.placement.op_types = {"MatMul", "Gemm", "Conv"};
  o.activations = kSymmetricI8;
  o.weights.per_channel = false;
  return o;
}

/// microsoft/onnxruntime-inference-examples, quantization/qat/transformer_qat: torch's observers at
/// the results of a layer's parts. Its observers give MinMax as a start for training; without it
/// the largest 0.01 % of a tensor must be clipped, or the rest is lost (docs/accuracy.md).
Options qordered() {
  Options o;
  o.method = "torch-percentile";
  o.placement.head = false;
  o.placement.places = {Place::linear, Place::scores, Place::probabilities, Place::context,
                        Place::gelu,   Place::sum,    Place::layer_norm};
  o.activations = {ir::DType::i8, true, Steps::full};
  o.weights.scheme = {ir::DType::i8, true, Steps::full};
  o.weights.as_float = true;
  return o;
}

}  // namespace

std::span<const Preset> presets() {
  static const Preset all[] = {
      {"default", "u8 inputs of MatMuls, float residual stream", our_default},
      {"accurate",
       "default, with unnormalized Softmax and two-sided percentile: nearest to the float model",
       accurate},
      {"fast", "default, plus the residual stream in u8 with per-channel scales", fast},
      {"ort-tensorrt",
       "ONNX Runtime's TensorRT example: i8, percentile, MatMul and residual Adds; smoothed",
       ort_tensorrt},
      {"ort-migraphx", "ONNX Runtime's MIGraphX example with --ort_quant: i8, percentile, MatMul",
       ort_migraphx},
      {"qdqbert",
       "Hugging Face's QDQBERT model: i8, layers and their residual Adds, no head; smoothed",
       qdqbert},
      {"migraphx-native", "MIGraphX's own quantize_int8: i8, per-tensor weights", migraphx_native},
      {"qordered", "ONNX Runtime's QAT example (QOrdered operators): i8 at outputs, not at inputs",
       qordered}};
  return all;
}

const Preset& preset(std::string_view name) { return named(presets(), "preset", name); }

}  // namespace bertcl::quant
