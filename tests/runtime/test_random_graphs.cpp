// SPDX-License-Identifier: Apache-2.0
// On random small graphs the device computes what the operators' plain definitions do, with all
// passes and without any one of them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>

#include "bertcl/error.hpp"
#include "ir/text.hpp"
#include "passes/pass.hpp"
#include "runtime/session.hpp"
#include "tests/random_graphs/random_graph.hpp"
#include "tests/random_graphs/reference.hpp"

namespace bertcl::runtime {
namespace {

using tests::random_graph, tests::random_inputs, tests::Reference;

/// BERTCL_RANDOM_GRAPHS=FIRST,COUNT asks for other seeds, or for more.
struct Seeds {
  unsigned first = 1, count = 120;
  Seeds() {
    if (const char* text = std::getenv("BERTCL_RANDOM_GRAPHS"))
      std::sscanf(text, "%u,%u", &first, &count);
  }
};

std::vector<std::string> names_of_passes() {
  std::set<std::string> names;
  for (const passes::Pass& pass : passes::pipeline({})) names.insert(pass.name);
  // What these rewrite has no kernel.
  for (const char* needed :
       {"resolve_shapes", "split_qlinear_matmul", "gather_one_hot", "widen_halves", "softmax_last",
        "expand_layer_norm", "expand_one_hot", "expand_trilu"})
    names.erase(needed);
  return {names.begin(), names.end()};
}

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
        const Tensors inputs = random_inputs(graph, 3 * seed + i);
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
    ir::Graph graph = random_graph(seed);
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
      if (node->op == "Shape") continue;  // has no kernel; alone it is not folded
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
