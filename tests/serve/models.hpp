// SPDX-License-Identifier: Apache-2.0
// Tiny models with one head each, and a server with them.
#pragma once
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serve/metrics.hpp"
#include "serve/server.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/files.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/tokenizer_json.hpp"
#include "tools/models/served_model.hpp"

namespace bertcl::serve::tests {

inline const std::string kVocabulary =
    bertcl::tests::source_file("models/minilm-l6-squad/vocab.txt");
inline const std::string kDefaultModel =
    bertcl::tests::source_file("models/minilm-l6-squad/model.onnx");

enum class HeadOf { vectors, dynamic_vectors, two_classes, score, nan };

/// TinyBert that reads 30,522 tokens, with the hidden states [batch, seq, 16], logits [batch, 2] or
/// one logit [batch, 1] as its only output; hidden states rounded to 8 bits by a scale of the whole
/// batch; or start and end logits that are NaN.
inline std::string tiny_model(HeadOf head) {
  quant::tests::TinyBert bert({.vocabulary = 30522});
  quant::tests::GraphBuilder& g = bert.builder();
  if (head == HeadOf::nan) {
    for (int i = 0; i < 2; ++i) {
      const std::string name = g.graph().output(i).name();
      g.graph().mutable_node(g.graph().node_size() - 2 + i)->set_output(0, name + "_real");
    }
    for (int i = 0; i < 2; ++i) {
      const std::string name = g.graph().output(i).name();
      g.node("Abs", {name + "_real"}, name + "_abs");
      g.node("Neg", {name + "_abs"}, name + "_negative");
      g.node("Log", {name + "_negative"}, name);
    }
    return g.model().SerializeAsString();
  }
  g.graph().clear_output();
  const auto output = [&](const std::string& name, std::vector<std::string> symbols, int last) {
    g.output(name);
    auto* shape =
        g.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const std::string& symbol : symbols) shape->add_dim()->set_dim_param(symbol);
    shape->add_dim()->set_dim_value(last);
  };
  if (head == HeadOf::vectors || head == HeadOf::dynamic_vectors) {
    const std::string hidden = "/bert/encoder/layer.0/output/LayerNorm/LayerNormalization_output_0";
    if (head == HeadOf::vectors) {
      g.node("Identity", {hidden}, "last_hidden_state");
    } else {
      g.node("DynamicQuantizeLinear", {hidden}, "bytes");
      for (const char* name : {"scale", "zero_point"})
        g.graph().mutable_node(g.graph().node_size() - 1)->add_output(name);
      g.node("DequantizeLinear", {"bytes", "scale", "zero_point"}, "last_hidden_state");
    }
    output("last_hidden_state", {"batch", "seq"}, quant::tests::kTinyHidden);
    return g.model().SerializeAsString();
  }
  const bool score = head == HeadOf::score;
  g.node("Gather", {"/qa_outputs/Add_output_0", g.ints("first", {0})}, "first_token",
         {{"axis", 1}});
  g.node("Squeeze", {"first_token", g.ints("axis_1", {1})}, score ? "both" : "logits");
  if (score) {
    g.node("Gather", {"both", "first"}, "logits", {{"axis", 1}});
  }
  output("logits", {"batch"}, score ? 1 : 2);
  return g.model().SerializeAsString();
}

/// Models in folders of their own: "vectors", "dynamic", "classes" and "score" by tiny_model(),
/// "cased" as the first with a tokenizer that keeps capitals, "lowered" with a file that asks for
/// lower case before it, "raw" as "score" with a file that names no sigmoid, "nan", and "qa", the
/// default model.
class ModelFolders {
 public:
  ModelFolders() {
    for (const auto& [name, head] :
         {std::pair{"vectors", HeadOf::vectors}, std::pair{"cased", HeadOf::vectors},
          std::pair{"lowered", HeadOf::vectors}, std::pair{"dynamic", HeadOf::dynamic_vectors},
          std::pair{"classes", HeadOf::two_classes}, std::pair{"score", HeadOf::score},
          std::pair{"raw", HeadOf::score}, std::pair{"nan", HeadOf::nan},
          std::pair{"spans", HeadOf::vectors}}) {
      std::filesystem::create_directory(folder_ / name);
      folder_.write(std::string(name) + "/model.onnx", tiny_model(head));
      std::filesystem::copy_file(kVocabulary, folder_ / name / "vocab.txt");
    }
    std::filesystem::remove(folder_ / "spans" / "vocab.txt");
    // The places of its tokens are known.
    const auto tokenizer = bertcl::tests::bert_tokenizer_json({{"a", 4}, {"東", 5}, {"!", 6}});
    folder_.write("spans/tokenizer.json", tokenizer.dump());
    for (const char* name : {"cased", "lowered"})
      folder_.write(std::string(name) + "/tokenizer_config.json", R"({"do_lower_case": false})");
    folder_.write(
        "lowered/modules.json",
        R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}])");
    folder_.write("lowered/sentence_bert_config.json", R"({"do_lower_case": true})");
    folder_.write("raw/config.json",
                  R"({"sentence_transformers": {"activation_fn": "torch.nn.Identity"}})");
    folder_.write("classes/config.json", R"({"id2label": {"0": "bad", "1": "good"}})");
  }
  std::string path(const std::string& name) const {
    return name == "qa" ? kDefaultModel : (folder_ / name / "model.onnx").string();
  }

 private:
  bertcl::tests::ScratchFolder folder_;
};

/// Shared by all tests of the program: models are compiled once.
inline const ModelFolders& folders() {
  static const ModelFolders made;
  return made;
}

/// A folder's name, with an organization and a slash before it or not.
inline std::vector<std::unique_ptr<Model>> load_models(const std::vector<std::string>& names,
                                                       const BatcherOptions& batcher,
                                                       bool normalize = true) {
  tools::ServedModelOptions options;
  options.pooled.pooling = "mean";
  options.pooled.normalize = normalize;
  options.beside_others = true;
  static const opencl::ContextFuture device = opencl::ContextFuture::open("");
  std::vector<std::unique_ptr<Model>> models;
  for (const std::string& name : names) {
    models.push_back(std::make_unique<Model>(
        tools::load_served_model({name, folders().path(name.substr(name.rfind('/') + 1))}, options,
                                 device),
        batcher));
  }
  return models;
}

struct TestOptions {
  std::vector<std::string> models = {"vectors"};
  ServiceOptions service = {};
  ServerOptions server = {};
  BatcherOptions batcher = {};
  bool normalize = true;
};

/// A Service that is called without HTTP.
class TestService {
 public:
  explicit TestService(const TestOptions& options = {}) : service_(options.service, metrics_) {
    service_.start(load_models(options.models, options.batcher, options.normalize));
  }
  HttpResponse call(const std::string& method, const std::string& path,
                    const std::string& body = "", std::map<std::string, std::string> headers = {}) {
    HttpRequest call{method, path, body};
    call.header = [headers = std::move(headers)](const std::string& name) {
      const auto found = headers.find(name);
      return found == headers.end() ? std::string() : found->second;
    };
    record = {};
    return service_.handle(call, record);
  }
  /// The JSON of an answer whose status is 200.
  nlohmann::json post(const std::string& path, const nlohmann::json& body) {
    const HttpResponse reply = call("POST", path, body.dump());
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
    return nlohmann::json::parse(reply.body, nullptr, false);
  }
  int status(const std::string& path, const nlohmann::json& body) {
    return call("POST", path, body.dump()).status;
  }
  Service& service() { return service_; }

  RequestRecord record;  ///< of the last call

 private:
  Metrics metrics_;
  Service service_;
};

/// A server on a port of its own.
class TestServer {
 public:
  explicit TestServer(TestOptions options = {}, bool start = true)
      : options_(std::move(options)), service_(options_.service, metrics_) {
    options_.server.port = 0;
    server_ =
        std::make_unique<Server>(service_, options_.server, [this](const AccessLogEntry& answered) {
          const std::lock_guard lock(mutex_);
          answered_.push_back(answered);
        });
    port_ = server_->bind();
    listener_ = std::thread([this] { server_->listen(); });
    if (start) this->start();
  }
  ~TestServer() {
    service_.drain();
    server_->stop();
    listener_.join();
  }
  void start() {
    service_.start(load_models(options_.models, options_.batcher, options_.normalize));
  }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port_);
    client.set_read_timeout(60);
    return client;
  }
  int port() const { return port_; }
  Service& service() { return service_; }
  Server& server() { return *server_; }
  std::vector<AccessLogEntry> answered() const {
    const std::lock_guard lock(mutex_);
    return answered_;
  }

 private:
  TestOptions options_;
  Metrics metrics_;
  Service service_;
  mutable std::mutex mutex_;
  std::vector<AccessLogEntry> answered_;
  std::unique_ptr<Server> server_;
  int port_ = 0;
  std::thread listener_;
};

}  // namespace bertcl::serve::tests
