// SPDX-License-Identifier: Apache-2.0
// On random small graphs the device computes what the operators' plain definitions do, with all
// passes and without any one of them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "ops/interpret.hpp"
#include "passes/passes.hpp"
#include "random_graph.hpp"
#include "runtime/session.hpp"

namespace bertcl::runtime {
namespace {

/// BERTCL_RANDOM_GRAPHS=FIRST,COUNT asks for other seeds, or for more.
struct Seeds {
  unsigned first = 1, count = 120;
  Seeds() {
    if (const char* text = std::getenv("BERTCL_RANDOM_GRAPHS"))
      std::sscanf(text, "%u,%u", &first, &count);
  }
};

/// A graph of 5 to 25 operators.
ir::Graph graph_of(unsigned seed) { return random_graph(seed, 5 + static_cast<int>(seed % 21)); }

std::vector<std::string> names_of_passes() {
  std::set<std::string> names;
  for (const passes::Pass& pass : passes::pipeline({})) names.insert(pass.name);
  names.erase("resolve_shapes");  // cannot be left out
  return {names.begin(), names.end()};
}

/// Inputs of one shape. The mask is ones and then zeros, or any that has a one in each row.
Tensors inputs_for(const ir::Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const int batch = from(1, 3), seq = from(1, 5), prefix = from(0, 2);
  Tensors inputs;
  for (const ir::Value* input : graph.inputs()) {
    const ir::Sizes sizes = ir::evaluate(input->type.shape, {{"batch", batch}, {"seq", seq}});
    std::vector<double> values;
    for (std::int64_t i = 0, real = 0; i < ir::element_count(sizes); ++i) {
      if (i % seq == 0) real = from(1, seq);
      const bool key = prefix > 0 ? i % seq < real : i % seq == real - 1 || from(0, 1) == 1;
      values.push_back(ir::is_float(input->type.dtype)   ? from(-1000, 1000) / 500.0
                       : input->name == "attention_mask" ? key
                                                         : from(0, 10));
    }
    inputs[input->name] = ir::Tensor::of(sizes, std::move(values)).converted(input->type.dtype);
  }
  return inputs;
}

/// What the graph means for these inputs, and by how much each output changes when the inputs do in
/// the last digits: where sums cancel or a norm divides by little, rounding errors grow as much.
struct Reference {
  std::vector<ir::Tensor> outputs;
  std::vector<double> allowed;

  Reference(const ir::Graph& graph, const Tensors& inputs) {
    outputs = ops::interpret(graph, {inputs.begin(), inputs.end()});
    for (const ir::Tensor& output : outputs) {
      double largest = 0;
      for (const double v : output.to_doubles()) largest = std::max(largest, std::abs(v));
      allowed.push_back(ir::is_float(output.dtype())  ? 2e-5 * std::max(1.0, largest)
                        : ir::is_int8(output.dtype()) ? 1
                                                      : 0);
    }
    for (const double change : {2e-6, -3e-6}) {
      std::map<std::string, ir::Tensor> moved(inputs.begin(), inputs.end());
      for (auto& [name, tensor] : moved) {
        if (!ir::is_float(tensor.dtype())) continue;
        std::vector<double> values = tensor.to_doubles();
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] += change * (static_cast<double>(i % 3) - 1.0);
        tensor = ir::Tensor::of(tensor.shape(), std::move(values)).converted(tensor.dtype());
      }
      const auto others = ops::interpret(graph, moved);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto a = outputs[i].to_doubles(), b = others[i].to_doubles();
        for (std::size_t j = 0; j < a.size(); ++j)
          allowed[i] = std::max(allowed[i], 40 * std::abs(a[j] - b[j]));
      }
    }
  }

  /// The first output that differs by more; "" if none does. Given a mask, outputs [batch, seq, ..]
  /// count where it is not 0, and others that have rows of tokens do not.
  std::string difference(const ir::Graph& graph, const Tensors& found,
                         const ir::Tensor* mask = nullptr) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = graph.outputs()[i].name;
      const ir::Tensor& got = found.at(name);
      if (got.shape() != outputs[i].shape() || got.dtype() != outputs[i].dtype())
        return fmt::format("{}: {}[{}] instead of {}[{}]", name, ir::name_of(got.dtype()),
                           fmt::join(got.shape(), ", "), ir::name_of(outputs[i].dtype()),
                           fmt::join(outputs[i].shape(), ", "));
      const auto a = got.to_doubles(), b = outputs[i].to_doubles();
      const ir::Shape& shape = graph.outputs()[i].value->type.shape;
      const ir::Shape& tokens = graph.find_value("attention_mask")->type.shape;
      const bool by_token =
          shape.size() >= 2 && std::equal(tokens.begin(), tokens.end(), shape.begin());
      const bool has_tokens = ir::Dim::divide(element_count(shape), tokens[1]).has_value();
      if (mask && has_tokens && !by_token) continue;
      for (std::size_t j = 0; j < a.size(); ++j)
        if (!(std::abs(a[j] - b[j]) <= allowed[i]) &&
            !(mask && by_token && mask->to_ints()[j * mask->to_ints().size() / a.size()] == 0))
          return fmt::format("{}[{}], element {} of {}: {} instead of {} +- {:.2g}", name,
                             fmt::join(got.shape(), ", "), j, a.size(), a[j], b[j], allowed[i]);
    }
    return "";
  }
};

class RandomGraphs : public testing::Test {
 protected:
  /// The difference that three inputs out of three show, "" if there is none: next to a rounding
  /// tie, or where two numbers compared are almost equal, one run may take the other way.
  std::string difference(const std::function<ir::Graph()>& make, unsigned seed,
                         const std::vector<std::string>& disabled, bool packed) {
    SessionOptions options;
    options.context = context_;
    options.disabled_passes = disabled;
    // Building a persistent kernel for each graph would take most of the time.
    if (seed % 30 != 0) options.disabled_kernels = "persistent";
    options.drop_padding = packed;
    std::string found;
    try {
      const ir::Graph graph = make();
      Session session = Session::compile(make(), options);
      for (unsigned i = 0; i < 3; ++i) {
        const Tensors inputs = inputs_for(graph, 3 * seed + i);
        found = Reference(graph, inputs)
                    .difference(graph, session.run(inputs),
                                packed ? &inputs.at("attention_mask") : nullptr);
        if (found.empty()) break;
      }
    } catch (const Error& error) {
      found = error.what();
    }
    return found;
  }

  /// The graph of the seed, or the part of it that one of its values needs.
  static ir::Graph part_of(unsigned seed, const std::string& value) {
    ir::Graph graph = graph_of(seed);
    if (!value.empty()) {
      ir::Value* output = graph.find_value(value);
      graph.outputs().clear();
      graph.add_output("y", output);
    }
    graph.remove_dead();
    return graph;
  }

  /// Nothing, or a failure with the smallest part of the graph that shows it.
  void check(unsigned seed, const std::vector<std::string>& disabled, bool packed = false) {
    const auto part = [&](const std::string& value) {
      return [seed, value] { return part_of(seed, value); };
    };
    std::string found = difference(part(""), seed, disabled, packed), last;
    if (found.empty()) return;
    const ir::Graph whole = part_of(seed, "");
    for (const auto& node : whole.nodes()) {
      const std::string& value = node->output()->name;
      const std::string smaller = difference(part(value), seed, disabled, packed);
      if (smaller.empty()) continue;
      found = smaller;
      last = value;
      break;
    }
    ADD_FAILURE() << "seed " << seed
                  << fmt::format(", {}, without [{}]: {}\n", packed ? "packed" : "padded",
                                 fmt::join(disabled, ", "), found)
                  << ir::print(part_of(seed, last), {.max_elements = 16});
  }

  std::shared_ptr<opencl::Context> context_ = opencl::Context::create("");
};

TEST_F(RandomGraphs, RunAsDefined) {
  const Seeds seeds;
  for (unsigned seed = seeds.first; seed < seeds.first + seeds.count; ++seed) check(seed, {});
}

TEST_F(RandomGraphs, DroppedPaddingChangesNothingElse) {
  const Seeds seeds;
  for (unsigned seed = seeds.first; seed < seeds.first + seeds.count; ++seed) check(seed, {}, true);
}

TEST_F(RandomGraphs, RunAsDefinedWithoutAnyOnePass) {
  const Seeds seeds;
  const std::vector<std::string> names = names_of_passes();
  for (unsigned seed = seeds.first; seed < seeds.first + seeds.count; ++seed)
    check(seed, {names[seed % names.size()]});
}

}  // namespace
}  // namespace bertcl::runtime
