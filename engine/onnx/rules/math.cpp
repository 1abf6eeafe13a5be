// SPDX-License-Identifier: Apache-2.0
// Elementwise operators, MatMul, Gemm, Softmax and normalization. A new operator that the IR has
// under the same name costs one line of the table.
#include <cmath>

#include "onnx/importer.hpp"
#include "ops/type_constraints.hpp"

namespace bertcl::onnx_io {
namespace {

/// Dropout at inference is the identity, and in training that of nothing is.
void import_dropout(NodeImport& node) {
  const ir::Value* ratio = node.optional_input(1);
  const bool drops =
      !ratio || !ratio->is_constant() || ratio->constant->to_doubles() != std::vector<double>{0.0};
  if (drops && node.optional_input(2) &&
      node.constant_ints(2).value() != std::vector<std::int64_t>{0})
    node.fail("training_mode is not supported");
  if (node.output_count() > 1) node.fail("the mask output is not supported");
  node.emit_outputs("Identity", {node.input(0, kFloatTypes)});
}

void import_cast(NodeImport& node) {
  const auto type =
      element_type(static_cast<std::int32_t>(node.int_attribute("to", 0)), "attribute 'to'");
  node.emit_outputs("Cast", {node.input(0)}, {{"to", std::string(ir::name_of(type))}});
}
void import_cast_like(NodeImport& node) {
  node.emit_outputs("Cast", {node.input(0)},
                    {{"to", std::string(ir::name_of(node.input(1)->type.dtype))}});
}

/// Max and Min, of 8-bit numbers in i32. Bounds are operands; before opset 11 they were attributes.
void import_clip(NodeImport& node) {
  const ir::DType dtype = node.input(0)->type.dtype;
  const ir::DType inner = ir::is_int8(dtype) ? ir::DType::i32 : dtype;
  const auto bound = [&](const char* name, std::size_t i) -> ir::Value* {
    if (node.attribute(name)) return node.scalar(node.float_attribute(name, 0), inner);
    ir::Value* value = node.optional_input(i);
    if (!value) return value;
    if (value->type.dtype != dtype || ir::element_count(value->type.shape) != ir::Dim(1))
      node.fail("the bound '{}' is {}, expected a single {}", value->name, ir::str(value->type),
                ir::name_of(dtype));
    return node.cast(value->type.shape.empty() ? value : node.reshape(value, {}), inner);
  };
  ir::Value* y = node.cast(node.input(0), inner);
  if (ir::Value* low = bound("min", 1)) y = node.emit("Max", {y, low});
  if (ir::Value* high = bound("max", 2)) y = node.emit("Min", {y, high});
  node.set_output(0, node.cast(y, dtype));
}

/// Sum, Mean, Max and Min of any number of operands, which broadcast, two at a time.
void import_fold(NodeImport& node) {
  const std::string& op = node.proto().op_type();
  const bool adds = op == "Sum" || op == "Mean";
  ir::Value* y = node.input(0);
  const ir::DType dtype = y->type.dtype;
  if (adds && !ops::types::floats.contains(dtype))
    node.fail("operand '{}' is {}; {} expects {}", y->name, ir::name_of(dtype), op,
              ops::types::floats.str());
  const std::size_t count = node.input_count();
  if (count == 1) return node.emit_outputs("Identity", {y});
  const std::string step = adds ? "Add" : op;
  for (std::size_t i = 1; i + 1 < count; ++i) y = node.emit(step, {y, node.input(i)});
  if (op != "Mean") return node.emit_outputs(step, {y, node.input(count - 1)});
  y = node.add(y, node.input(count - 1));
  node.emit_outputs("Div", {y, node.scalar(static_cast<double>(count), dtype)});
}

/// alpha * A' x B' + beta * C as Transpose, MatMul, Mul and Add.
ir::Value* gemm(NodeImport& node) {
  ir::Value* a = node.input(0);
  ir::Value* b = node.input(1);
  if (a->type.shape.size() != 2 || b->type.shape.size() != 2)
    node.fail("operands must be matrices");
  if (node.int_attribute("transA", 0)) a = node.transpose_last_two(a);
  if (node.int_attribute("transB", 0)) b = node.transpose_last_two(b);
  const double alpha = node.float_attribute("alpha", 1), beta = node.float_attribute("beta", 1);
  ir::Value* c = beta != 0 ? node.optional_input(2) : nullptr;
  if (!ir::is_float(a->type.dtype) && (alpha != std::floor(alpha) || beta != std::floor(beta)))
    node.fail("alpha {} and beta {} must be integers for matrices of {}", alpha, beta,
              ir::name_of(a->type.dtype));
  ir::Value* y = node.emit("MatMul", {a, b});
  if (alpha != 1) y = node.mul(y, node.scalar(alpha, y->type.dtype));
  if (!c) return y;
  if (beta != 1) c = node.mul(c, node.scalar(beta, c->type.dtype));
  return node.add(y, c);
}
void import_gemm(NodeImport& node) { node.set_output(0, gemm(node)); }

/// The attribute `activation` of FusedGemm: those that the fusion of ONNX Runtime 1.31 writes
/// (gemm_activation_fusion.cc) and ONNX defines, with ONNX's defaults.
ir::Value* activation(NodeImport& node, ir::Value* x) {
  const std::string name = node.string_attribute("activation", "");
  const auto number = [&](double value) { return node.scalar(value, x->type.dtype); };
  const auto alpha = [&](double default_value) {
    return number(node.float_attribute("activation_alpha", default_value));
  };
  const auto negative = [&] { return node.emit("Min", {x, number(0)}); };
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid") return node.emit(name, {x});
  if (name == "LeakyRelu")
    return node.add(node.emit("Relu", {x}), node.mul(negative(), alpha(0.01)));
  if (name == "Elu") {
    ir::Value* below = node.emit("Sub", {node.emit("Exp", {negative()}), number(1)});
    return node.add(node.emit("Relu", {x}), node.mul(below, alpha(1)));
  }
  if (name == "HardSigmoid") {
    ir::Value* line =
        node.add(node.mul(x, alpha(0.2)), number(node.float_attribute("activation_beta", 0.5)));
    return node.emit("Min", {node.emit("Relu", {line}), number(1)});
  }
  if (name == "Softsign") return node.emit("Div", {x, node.add(node.emit("Abs", {x}), number(1))});
  node.fail(
      "activation '{}' is not supported (supported: Elu, HardSigmoid, LeakyRelu, Relu, "
      "Sigmoid, Softsign, Tanh)",
      name);
}
/// com.microsoft::FusedGemm: Gemm and an activation
void import_fused_gemm(NodeImport& node) { node.set_output(0, activation(node, gemm(node))); }

/// com.microsoft::FusedMatMul: alpha * A' x B'
void import_fused_matmul(NodeImport& node) {
  ir::Value* a = node.input(0);
  ir::Value* b = node.input(1);
  if (node.int_attribute("transBatchA", 0) || node.int_attribute("transBatchB", 0))
    node.fail("transposed batches are not supported");
  if (node.int_attribute("transA", 0)) a = node.transpose_last_two(a);
  if (node.int_attribute("transB", 0)) b = node.transpose_last_two(b);
  const double alpha = node.float_attribute("alpha", 1);
  if (alpha == 1) return node.emit_outputs("MatMul", {a, b});
  ir::Value* matmul = node.emit("MatMul", {a, b});
  node.emit_outputs("Mul", {matmul, node.scalar(alpha, matmul->type.dtype)});
}

/// The power in the type of the base. The exponent may be of another type: 16-bit floats are raised
/// in f32, integers in i64, where an exponent of floats or u64 must be a constant integer.
void import_pow(NodeImport& node) {
  ir::Value *base = node.input(0), *exponent = node.input(1);
  const ir::DType type = base->type.dtype, other = exponent->type.dtype;
  const bool real = ir::is_float(type);
  if (type == other || (!real && type != ir::DType::i32 && type != ir::DType::i64))
    return node.emit_outputs("Pow", {base, exponent});
  if (other == ir::DType::boolean)
    node.fail("the exponent '{}' is {}; Pow expects a number", exponent->name,
              ir::str(exponent->type));
  if (!real && (ir::is_float(other) || other == ir::DType::u64)) {
    if (!exponent->is_constant())
      node.fail(
          "integers '{}' {} to the power of '{}' {}: an exponent of that type must be "
          "constant; otherwise cast it to i64",
          base->name, ir::str(base->type), exponent->name, ir::str(exponent->type));
    for (const double e : exponent->constant->to_doubles())
      if (std::abs(e) > 0x1p31 || e != std::floor(e) || e < 0)
        node.fail(
            "integers '{}' {} to the power of {}: integers need a non-negative integer exponent",
            base->name, ir::str(base->type), e);
  }
  const ir::DType inner = !real ? ir::DType::i64 : type == ir::DType::f64 ? type : ir::DType::f32;
  ir::Value* power = node.emit("Pow", {node.cast(base, inner), node.cast(exponent, inner)});
  node.set_output(0, node.cast(power, type));
}

/// Before opset 13 Softmax flattened everything from its axis on into one row.
void import_softmax(NodeImport& node) {
  ir::Value* x = node.input(0);
  const auto rank = std::ssize(x->type.shape);
  const bool flattens = node.opset() < 13;
  const std::int64_t axis = node.axis(flattens ? 1 : -1);
  if (!flattens || axis == rank - 1)
    return node.emit_outputs(node.proto().op_type(), {x}, {{"axis", axis}});
  ir::Value* flat = node.emit("Flatten", {x}, {{"axis", axis}});
  ir::Value* y = node.emit(node.proto().op_type(), {flat}, {{"axis", 1}});
  node.set_output(0, node.reshape(y, x->type.shape));
}

void import_layer_norm(NodeImport& node) {
  if (node.output_count() > 1) node.fail("the outputs Mean and InvStdDev are not supported");
  if (!node.optional_input(1)) node.fail("the operand Scale is missing");
  ir::Attributes attributes{{"axis", node.int_attribute("axis", -1)},
                            {"epsilon", node.float_attribute("epsilon", 1e-5)}};
  node.emit_outputs("LayerNormalization", node.inputs(), std::move(attributes));
}

/// RMSNormalization(X, scale), and SimplifiedLayerNormalization, as ONNX Runtime calls it.
void import_rms_norm(NodeImport& node) {
  if (node.output_count() > 1) node.fail("the output InvStdDev is not supported");
  node.emit_outputs("RMSNormalization", {node.input(0), node.input(1)},
                    {{"axis", node.int_attribute("axis", -1)},
                     {"epsilon", node.float_attribute("epsilon", 1e-5)}});
}

void import_is_inf(NodeImport& node) {
  if (!node.int_attribute("detect_negative", 1) || !node.int_attribute("detect_positive", 1))
    node.fail("detecting one sign only is not supported");
  node.emit_outputs("IsInf", {node.input(0)});
}

}  // namespace

Rules math_rules() {
  Rules rules;
  for (const char* op : {"Identity", "IsNaN", "MatMul", "Not", "Where"})
    rules[op] = {import_same, {}};
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) rules[op] = {import_fold, {}};
  rules["Pow"] = {import_pow, {}};
  rules["IsInf"] = {import_is_inf, {"detect_negative", "detect_positive"}};
  rules["Dropout"] = {import_dropout, {"ratio", "seed"}};
  rules["Cast"] = {import_cast, {"to", "saturate"}};
  rules["CastLike"] = {import_cast_like, {"saturate"}};
  rules["Clip"] = {import_clip, {"min", "max"}};
  rules["Gemm"] = {import_gemm, {"alpha", "beta", "transA", "transB"}};
  rules["com.microsoft::FusedGemm"] = {import_fused_gemm,
                                       {"alpha", "beta", "transA", "transB", "activation",
                                        "activation_alpha", "activation_beta", "activation_gamma"}};
  rules["Softmax"] = {import_softmax, {"axis"}};
  rules["LogSoftmax"] = {import_softmax, {"axis"}};
  rules["LayerNormalization"] = {
      import_layer_norm,
      // ONNX Runtime ignores what it does not know; files of its own tests misspell epsilon.
      {"axis", "epsilon", "stash_type", "epsion"}};
  for (const char* op : {"RMSNormalization", "SimplifiedLayerNormalization"})
    rules[op] = {import_rms_norm, {"axis", "epsilon", "stash_type"}};
  rules["com.microsoft::FusedMatMul"] = {
      import_fused_matmul, {"alpha", "transA", "transB", "transBatchA", "transBatchB"}};
  return rules;
}

}  // namespace bertcl::onnx_io
