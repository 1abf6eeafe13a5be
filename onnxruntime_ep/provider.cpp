// SPDX-License-Identifier: Apache-2.0
// The provider of one ONNX Runtime session: it takes a part of the graph, loads it and runs it.
#include "onnxruntime_ep/provider.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ir/node_error.hpp"
#include "ir/port.hpp"
#include "onnx/tensors.hpp"
#include "onnxruntime_ep/graph.hpp"
#include "onnxruntime_ep/partition.hpp"

namespace bertcl::onnxruntime_ep {
namespace {

constexpr std::size_t kMaxReasons = 5;  // that a message lists
constexpr int kMaxLoads = 16;           // each without the nodes that the planner refused before

/// A name of the model and its place among the operands of the node.
using Places = std::vector<std::pair<std::string, std::size_t>>;

/// The node that stands for the part, with its session.
struct Computation : OrtNodeComputeInfo {
  const Ort& ort;
  runtime::Session session;
  Places inputs, outputs;

  Computation(const Ort& o, runtime::Session s)
      : OrtNodeComputeInfo{}, ort(o), session(std::move(s)) {
    ort_version_supported = kOrtVersion;
    CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) noexcept {
      *state = nullptr;
      return static_cast<OrtStatus*>(nullptr);
    };
    Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) noexcept {
      Computation& computation = *static_cast<Computation*>(self);
      return computation.ort.guard([&] { computation.run(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
  }

  void run(OrtKernelContext* context);

 private:
  ir::Tensor input(OrtKernelContext* context, const std::string& name, std::size_t place) const;
  void output(OrtKernelContext* context, ir::Tensor tensor, std::size_t place) const;
  std::pair<int, std::vector<std::int64_t>> type(const OrtValue* value) const;
};

std::pair<int, std::vector<std::int64_t>> Computation::type(const OrtValue* value) const {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  ort.check(ort.api.GetTensorTypeAndShape(value, &info));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, decltype(ort.api.ReleaseTensorTypeAndShapeInfo)>
      owned(info, ort.api.ReleaseTensorTypeAndShapeInfo);
  return type_of(ort, info);
}

/// A view of the caller's memory, which is there until the run ends.
ir::Tensor Computation::input(OrtKernelContext* context, const std::string& name,
                              std::size_t place) const {
  const OrtValue* value = nullptr;
  ort.check(ort.api.KernelContext_GetInput(context, place, &value));
  if (!value) throw Error(fmt::format("no value is given for input '{}'", name));
  auto [element, shape] = type(value);
  return ir::Tensor::view(onnx_io::element_type(element, name), std::move(shape), nullptr,
                          bytes_of(ort, value), ir::Memory::anonymous);
}

void Computation::output(OrtKernelContext* context, ir::Tensor tensor, std::size_t place) const {
  OrtValue* value = nullptr;
  ort.check(ort.api.KernelContext_GetOutput(context, place, tensor.shape().data(),
                                            tensor.shape().size(), &value));
  if (!value) return;
  const ir::DType dtype = onnx_io::element_type(type(value).first, "output");
  if (tensor.dtype() != dtype) tensor = tensor.converted(dtype);
  void* target = nullptr;
  ort.check(ort.api.GetTensorMutableData(value, &target));
  const auto bytes = tensor.bytes();
  if (!bytes.empty()) std::memcpy(target, bytes.data(), bytes.size());
}

void Computation::run(OrtKernelContext* context) {
  runtime::Tensors given;
  for (const auto& [name, place] : inputs) given.emplace(name, input(context, name, place));
  runtime::Tensors results = session.run(given);
  for (const auto& [name, place] : outputs) output(context, std::move(results.at(name)), place);
}

struct Provider : OrtEp {
  Provider(const Ort& o, const OrtLogger* l, runtime::SessionOptions s);

  /// Takes nodes, and loads them at once: what the planner refuses stays with ONNX Runtime.
  void take(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  std::unique_ptr<Computation> compile(const OrtNode* fused);

 private:
  runtime::Session load(const Graph& graph, const NodeSet& part) const;
  std::optional<runtime::Session> load_what_fits(Graph& graph, NodeSet& part);
  std::vector<std::string> names(const OrtNode* node, bool outputs) const;

  const Ort& ort_;
  const OrtLogger* logger_;
  runtime::SessionOptions options_;
  std::optional<Error> error_;  // of load_what_fits(), for compile()
  std::map<std::vector<std::string>, runtime::Session> loaded_;  // by the outputs of the part
};

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

/// The first few: "A 'a': why; B 'b': why; ..."
std::string describe(const std::vector<std::string>& reasons) {
  const std::vector<std::string> shown(
      reasons.begin(),
      reasons.begin() + static_cast<std::ptrdiff_t>(std::min(reasons.size(), kMaxReasons)));
  return fmt::format("{}{}", fmt::join(shown, "; "), reasons.size() > kMaxReasons ? "; ..." : "");
}

runtime::Session Provider::load(const Graph& graph, const NodeSet& part) const {
  runtime::SessionOptions options = options_;
  options.self_check = true;  // which compile() leaves to its caller
  // The nodes that follow may read rows of padding.
  if (part.size() < graph.nodes().size()) options.drop_padding = false;
  options.context = opencl::ContextFuture::open(options.device);
  onnx_io::ReadOptions reading;
  reading.limits.memory = options.max_memory;
  return runtime::Session::compile(graph.import(part, true, reading), options,
                                   "graph of ONNX Runtime");
}

/// Loads the part that the importer takes, or what is left of it without the nodes that the planner
/// refuses. Nothing: `part` is empty, or error_ tells why.
std::optional<runtime::Session> Provider::load_what_fits(Graph& graph, NodeSet& part) {
  for (int loads = 1;; ++loads) {
    part = choose(graph);
    if (part.empty()) return std::nullopt;
    try {
      return load(graph, part);
    } catch (const Error& error) {
      const bool refused =
          error.code() == ErrorCode::unsupported || error.code() == ErrorCode::invalid_file;
      // Damaged weights are not a matter of one node.
      const auto* node = dynamic_cast<const ir::NodeError*>(&error);
      if (node && error.code() == ErrorCode::unsupported && loads < kMaxLoads &&
          graph.refuse(part, node->sources, error.what()))
        continue;
      if (!refused || options_.require_int8) {
        // ONNX Runtime goes on without the provider where this call fails: compile() tells.
        error_ = error;
        return std::nullopt;
      }
      ort_.log(logger_, ORT_LOGGING_LEVEL_WARNING,
               fmt::format("bertcl claims no nodes: {}", error.what()));
      return std::nullopt;
    }
  }
}

void Provider::take(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  const OrtNode* parent = nullptr;
  ort_.check(ort_.api.Graph_GetParentNode(graph, &parent));
  if (parent) return;  // a branch may use values of the graph around it
  Graph read(ort_, graph);
  if (read.is_branch()) return;  // ONNX Runtime 1.23 gives no parent
  NodeSet part;
  auto session = load_what_fits(read, part);
  const std::vector<std::string> why = reasons(read);
  if (part.empty()) {
    if (!read.nodes().empty())
      ort_.log(logger_, ORT_LOGGING_LEVEL_WARNING,
               why.empty() ? "bertcl claims no nodes: the graph has no matrix multiplication"
                           : fmt::format("bertcl claims no nodes: {}", describe(why)));
    return;
  }
  if (!session && !error_) return;
  if (!why.empty())
    ort_.log(logger_, ORT_LOGGING_LEVEL_WARNING,
             fmt::format("bertcl claims {} of {} nodes; not claimed: {}", part.size(),
                         read.nodes().size(), describe(why)));
  std::vector<const OrtNode*> nodes;
  for (const std::size_t i : part) nodes.push_back(read.nodes()[i].node);
  OrtNodeFusionOptions fusion{};
  fusion.ort_version_supported = kOrtVersion;
  fusion.drop_constant_initializers = true;
  ort_.check(
      ort_.ep.EpGraphSupportInfo_AddNodesToFuse(support, nodes.data(), nodes.size(), &fusion));
  if (session) loaded_.insert_or_assign(sorted(read.outputs_of(part)), std::move(*session));
}

std::vector<std::string> Provider::names(const OrtNode* node, bool outputs) const {
  const OrtApi& api = ort_.api;
  size_t count = 0;
  ort_.check((outputs ? api.Node_GetNumOutputs : api.Node_GetNumInputs)(node, &count));
  std::vector<const OrtValueInfo*> values(count);
  if (count > 0)
    ort_.check((outputs ? api.Node_GetOutputs : api.Node_GetInputs)(node, values.data(), count));
  std::vector<std::string> result;
  for (const OrtValueInfo* value : values) {
    const char* name = "";
    if (value) ort_.check(api.GetValueInfoName(value, &name));
    result.emplace_back(name);
  }
  return result;
}

std::unique_ptr<Computation> Provider::compile(const OrtNode* fused) {
  if (error_) throw Error(*error_);
  const auto node_outputs = names(fused, true), node_inputs = names(fused, false);
  auto found = loaded_.find(sorted(node_outputs));
  if (found == loaded_.end())
    throw Error("ONNX Runtime asked to compile a node that bertcl did not claim",
                ErrorCode::internal);
  auto result = std::make_unique<Computation>(ort_, std::move(found->second));
  loaded_.erase(found);
  const auto place = [](const std::vector<std::string>& of, const std::string& name) {
    const auto at = std::ranges::find(of, name);
    if (at == of.end())
      throw Error(fmt::format("the fused node has no input or output '{}'", name),
                  ErrorCode::internal);
    return static_cast<std::size_t>(at - of.begin());
  };
  for (const ir::Port& port : result->session.inputs())
    result->inputs.emplace_back(port.name, place(node_inputs, port.name));
  for (const ir::Port& port : result->session.outputs())
    result->outputs.emplace_back(port.name, place(node_outputs, port.name));
  return result;
}

Provider::Provider(const Ort& o, const OrtLogger* l, runtime::SessionOptions s)
    : OrtEp{}, ort_(o), logger_(l), options_(std::move(s)) {
  ort_version_supported = kOrtVersion;
  GetName = [](const OrtEp*) noexcept { return kProvider; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
    Provider& provider = *static_cast<Provider*>(self);
    return provider.ort_.guard([&] { provider.take(graph, support); });
  };
  Compile = [](OrtEp* self, const OrtGraph**, const OrtNode** fused, size_t count,
               OrtNodeComputeInfo** computations, OrtNode**) noexcept {
    Provider& provider = *static_cast<Provider*>(self);
    return provider.ort_.guard([&] {
      std::vector<std::unique_ptr<Computation>> made;
      for (size_t i = 0; i < count; ++i) made.push_back(provider.compile(fused[i]));
      for (size_t i = 0; i < count; ++i) computations[i] = made[i].release();
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** computations, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) delete static_cast<Computation*>(computations[i]);
  };
}

}  // namespace

OrtEp* make_provider(const Ort& ort, const OrtLogger* logger, runtime::SessionOptions options) {
  return std::make_unique<Provider>(ort, logger, std::move(options)).release();
}

void release_provider(OrtEp* provider) noexcept { delete static_cast<Provider*>(provider); }

}  // namespace bertcl::onnxruntime_ep
