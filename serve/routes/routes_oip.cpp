// SPDX-License-Identifier: Apache-2.0
// The Open Inference Protocol, version 2, with its binary extension: tensors in, tensors out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "serve/json_text.hpp"
#include "serve/routes/routes.hpp"
#include "serve/routes/tensors.hpp"
#include "support/did_you_mean.hpp"
#include "support/parse_number.hpp"

namespace bertcl::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHeaderLength = "Inference-Header-Content-Length";
constexpr const char* kVersion = "1";

HttpResponse server_route(Context&) {
  const Json server = {
      {"name", "bertcl"}, {"version", BERTCL_VERSION}, {"extensions", {"binary_tensor_data"}}};
  return {200, dump(server)};
}

HttpResponse state_response(const char* what, bool holds, Json state = Json::object()) {
  state[what] = holds;
  HttpResponse response{holds ? 200 : 503, dump(state)};
  if (!holds) response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse live_route(Context& context) {
  return state_response("live", context.service.is_live());
}

HttpResponse ready_route(Context& context) {
  return state_response("ready", context.service.unavailable().empty());
}

Model& named_model(Context& context) {
  Model& model = context.service.model(context.arguments[0]);
  context.record.model = model.setup().name;
  if (context.arguments.size() > 1 && context.arguments[1] != kVersion)
    throw HttpError(404, "Validation",
                    "unknown version '" + context.arguments[1] + "' (choose from 1)");
  return model;
}

Json ports_json(const std::vector<ir::Port>& ports) {
  Json list = Json::array();
  for (const ir::Port& port : ports) {
    Json shape = Json::array();
    for (const ir::Dim& extent : port.type.shape)
      shape.push_back(extent.is_constant() ? extent.constant() : -1);
    list.push_back(
        {{"name", port.name}, {"datatype", datatype_of(port.type.dtype)}, {"shape", shape}});
  }
  return list;
}

HttpResponse model_route(Context& context) {
  const ModelSetup& setup = named_model(context).setup();
  const Json model = {{"name", setup.name},
                      {"versions", {kVersion}},
                      {"platform", "bertcl"},
                      {"inputs", ports_json(setup.session->inputs())},
                      {"outputs", ports_json(setup.session->outputs())}};
  return {200, dump(model)};
}

HttpResponse model_ready_route(Context& context) {
  Model& model = named_model(context);
  return state_response("ready", !model.failing(context.service.options().timeout),
                        {{"name", model.setup().name}});
}

struct Inference {
  std::string id;
  runtime::Tensors inputs;
  runtime::OutputNames wanted;
  std::vector<bool> binary;  // [wanted]
};

void check_known(const text::JsonNode& node, const char* what, const std::string& name,
                 const std::vector<ir::Port>& ports) {
  std::vector<std::string> names;
  for (const ir::Port& port : ports) names.push_back(port.name);
  if (std::ranges::find(names, name) == names.end())
    node.fail("names the unknown {} '{}'{}", what, name, suggestion(name, names));
}

bool binary_flag(const std::optional<text::JsonNode>& parameters, const char* name,
                 bool default_value) {
  return parameters ? parameters->flag(name, default_value) : default_value;
}

Inference read_inference(const runtime::Session& session, const text::JsonNode& body,
                         std::string_view binary) {
  Inference inference;
  if (const auto id = body.find("id")) inference.id = id->string();
  body.at("inputs").each([&](const text::JsonNode& input) {
    const std::string& name = input.at("name").string();
    check_known(input, "input", name, session.inputs());
    if (!inference.inputs.emplace(name, read_tensor(input, binary)).second)
      input.fail("names the duplicate input '" + name + "'");
  });
  if (!binary.empty())
    throw Error("the body has " + std::to_string(binary.size()) + " bytes after the tensors");
  const bool all_binary = binary_flag(body.find("parameters"), "binary_data_output", false);
  const auto want = [&](const std::string& name, bool as_bytes) {
    if (std::ranges::find(inference.wanted, name) != inference.wanted.end())
      throw Error("duplicate output '" + name + "'");
    inference.wanted.push_back(name);
    inference.binary.push_back(as_bytes);
  };
  if (const auto outputs = body.find("outputs"); outputs && !outputs->value().empty()) {
    outputs->each([&](const text::JsonNode& output) {
      const std::string& name = output.at("name").string();
      check_known(output, "output", name, session.outputs());
      const auto parameters = output.find("parameters");
      check_parameters(parameters);
      want(name, binary_flag(parameters, "binary_data", all_binary));
    });
  } else {
    for (const ir::Port& port : session.outputs()) want(port.name, all_binary);
  }
  return inference;
}

HttpResponse results(const ModelSetup& setup, const Inference& inference,
                     const runtime::Tensors& tensors) {
  std::string head = R"({"model_name":)" + dump(setup.name) + R"(,"model_version":"1",)";
  if (!inference.id.empty()) head += R"("id":)" + dump(inference.id) + ',';
  head += R"("outputs":[)";
  std::string bytes;
  for (std::size_t i = 0; i < inference.wanted.size(); ++i) {
    const ir::Tensor& tensor = tensors.at(inference.wanted[i]);
    Json output = {{"name", inference.wanted[i]},
                   {"datatype", datatype_of(tensor.dtype())},
                   {"shape", tensor.shape()}};
    if (i > 0) head += ',';
    if (inference.binary[i]) {
      const auto data = tensor.bytes();
      output["parameters"] = {{"binary_data_size", data.size()}};
      bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
      head += dump(output);
    } else {
      head += dump(output);
      head.back() = ',';  // the brace goes after the data
      head += R"("data":)" + data_json(tensor) + '}';
    }
  }
  head += "]}";
  if (bytes.empty()) return {200, head};
  return {200,
          head + bytes,
          "application/octet-stream",
          {{kHeaderLength, std::to_string(head.size())}}};
}

/// The JSON at the beginning of a body with bytes after it.
std::size_t header_length(const HttpRequest& call) {
  const std::string text = call.header(kHeaderLength);
  if (text.empty()) return call.body.size();
  const auto length = parse_number<std::size_t>(text);
  if (!length || *length > call.body.size())
    throw Error(std::string(kHeaderLength) + " is '" + text + "', the body has " +
                std::to_string(call.body.size()) + " bytes");
  return *length;
}

Inference read_call(Context& context, const runtime::Session& session) {
  try {
    const std::size_t length = header_length(context.call);
    const std::string_view whole = context.call.body;
    context.document = parse_body(whole.substr(0, length), 400);
    return read_inference(session, text::JsonNode(context.document), whole.substr(length));
  } catch (const Error& error) {
    throw HttpError(400, "Validation", error.what());
  }
}

/// Elements of the largest tensor, or its rows where they are empty: these take memory, too.
std::size_t elements_of(const runtime::Tensors& inputs) {
  std::int64_t max = 0;
  for (const auto& [name, tensor] : inputs) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape()) elements *= std::max<std::int64_t>(extent, 1);
    max = std::max(max, elements);
  }
  return static_cast<std::size_t>(max);
}

/// Sequences and their tokens; those of padding are known by a mask [batch, seq] of integers alone.
WorkSize size_of(const runtime::Tensors& inputs) {
  WorkSize size{1, elements_of(inputs)};
  for (const auto& [name, tensor] : inputs) {
    if (!tensor.shape().empty()) size.sequences = static_cast<std::size_t>(tensor.shape().front());
    if (name.find("mask") == name.npos || tensor.shape().size() != 2 ||
        ir::is_float(tensor.dtype()))
      continue;
    const std::vector<double> mask = tensor.to_doubles();
    size.tokens = mask.size() - static_cast<std::size_t>(std::ranges::count(mask, 0.0));
  }
  return size;
}

HttpResponse infer_route(Context& context) {
  Model& model = named_model(context);
  runtime::Session& session = *model.setup().session;
  const Inference inference = read_call(context, session);
  const std::size_t elements = elements_of(inference.inputs);
  if (elements > model.batcher().options().max_queue_tokens)
    throw HttpError(
        413, "Validation",
        "a tensor has " + std::to_string(elements) + " elements or empty rows, the limit is " +
            std::to_string(model.batcher().options().max_queue_tokens) + " (--max-queue-tokens)");
  const WorkSize size = size_of(inference.inputs);
  context.record.texts = size.sequences;
  context.record.tokens = size.tokens;
  // The request may be given up while it runs.
  const auto inputs = std::make_shared<const runtime::Tensors>(inference.inputs);
  const auto outputs = std::make_shared<runtime::Tensors>();
  Batcher::Ticket ticket = model.batcher().submit(
      [&session, inputs, outputs, wanted = inference.wanted] {
        *outputs = session.run(*inputs, wanted);
      },
      elements, size);
  context.wait(ticket);
  try {
    ticket.get();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument)
      throw HttpError(400, "Validation", error.what());
    throw backend_error(error);
  } catch (const std::exception& error) {
    throw backend_error(error);
  }
  return results(model.setup(), inference, *outputs);
}

}  // namespace

std::vector<Route> oip_routes() {
  return {{"GET", "/v2", server_route},
          {"GET", "/v2/health/live", live_route, true, true},
          {"GET", "/v2/health/ready", ready_route, true, true},
          // The longest pattern first: names may have slashes.
          {"GET", "/v2/models/{}/versions/{}/ready", model_ready_route},
          {"POST", "/v2/models/{}/versions/{}/infer", infer_route},
          {"GET", "/v2/models/{}/versions/{}", model_route},
          {"GET", "/v2/models/{}/ready", model_ready_route},
          {"POST", "/v2/models/{}/infer", infer_route},
          {"GET", "/v2/models/{}", model_route}};
}

}  // namespace bertcl::serve
