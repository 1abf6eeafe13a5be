// SPDX-License-Identifier: Apache-2.0
// The float model to quantize, read once, and the device for its samples, opened once.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "opencl/context_future.hpp"
#include "quant/graph/expand_fused.hpp"
#include "quant/graph/model.hpp"
#include "runtime/session.hpp"
#include "support/stopwatch.hpp"

namespace bertcl::quant {

/// What becomes of operators that hold MatMuls.
enum class FusedOperators : std::uint8_t { expanded, whole };

struct SourceInfo {
  std::int64_t opset = 0;
  std::int64_t file_bytes = 0;  ///< with the files of its weights
  std::int64_t weight_bytes = 0, weight_bytes_as_f32 = 0;
};

class Workspace {
 public:
  /// Reads the model, sorts its nodes and expands fused operators unless they stay whole. Without a
  /// device there are no sessions. Throws Error as Model::load() and expand_fused().
  explicit Workspace(const std::filesystem::path& model,
                     FusedOperators fused = FusedOperators::expanded);
  Workspace(const std::filesystem::path& model, opencl::ContextFuture device);

  const Model& model() const { return model_; }
  /// What the file held, whatever replace() has made of it since.
  const Expanded& expanded() const { return expanded_; }
  const SourceInfo& source() const { return source_; }
  /// Those beside the file that hold its weights.
  const std::vector<std::filesystem::path>& weight_files() const { return weight_files_; }
  const opencl::ContextFuture& device() const { return device_; }
  double seconds_since_read() const { return clock_.seconds(); }
  /// Takes another model in place of it.
  void replace(Model model);

  /// The model as it was imported, once. Valid until replace(). Throws Error as Model::import().
  const ir::Graph& graph() const;
  /// The type of a tensor there; null for a name that it does not have.
  const ir::Type* type_of(const std::string& tensor) const;

  /// A session of the graph on the device of the workspace.
  runtime::Session session(runtime::SessionOptions options) const;
  /// One that shows `tensors` to a tap. `building` is called while kernels are built.
  runtime::Session session(const std::set<std::string>& tensors,
                           const std::function<void()>& building = {}) const;

 private:
  Stopwatch clock_;
  Model model_;
  std::vector<std::filesystem::path> weight_files_;
  Expanded expanded_;
  SourceInfo source_;
  opencl::ContextFuture device_;
  mutable std::optional<ir::Graph> graph_;  // imported at first use
};

}  // namespace bertcl::quant
