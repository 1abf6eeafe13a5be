// SPDX-License-Identifier: Apache-2.0
// What a served model is for, and how its texts are encoded.
#include "tools/models/served_model.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "ir/port.hpp"
#include "onnx/model_path.hpp"
#include "plan/report.hpp"
#include "runtime/task.hpp"
#include "squad/logit_outputs.hpp"
#include "support/fail.hpp"
#include "tasks/head_output.hpp"
#include "tasks/model_files/embedding_files.hpp"
#include "tasks/model_files/model_config.hpp"
#include "tasks/rank.hpp"
#include "text/base/companion_files.hpp"
#include "tools/models/activation.hpp"
#include "tools/models/text_model.hpp"
#include "tools/options/task_options.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

namespace fs = std::filesystem;

bool has_vector(const runtime::Session& session) {
  return std::ranges::any_of(session.outputs(), [](const ir::Port& port) {
    return port.type.shape.size() == 2 && ir::is_float(port.type.dtype);
  });
}

std::shared_ptr<runtime::Session> load(const fs::path& path, const ServedModelOptions& options,
                                       std::optional<runtime::Pooling> pooling,
                                       const opencl::ContextFuture& device) {
  ServedModelOptions own = options;
  own.pooling = std::move(pooling);
  own.requests = std::max(runtime::SessionOptions{}.requests, options.executors);
  return std::make_shared<runtime::Session>(load_model(path, own, device));
}

/// Of texts and pairs, from the files of sentence-transformers.
void set_embedding(serve::ModelSetup& setup, const runtime::Pooling& pooling,
                   const tasks::EmbeddingFiles& files, const ServedModelOptions& options) {
  setup.kind = serve::Kind::embedding;
  setup.head = {{runtime::kPooledOutput}, false};
  setup.pooling = pooling.kind;
  setup.normalized = pooling.normalize;
  setup.prompts = files.prompts;
  setup.pools_prompt = files.pools_prompt;
  setup.default_prompt = options.prompt.value_or(files.default_prompt);
  if (!setup.default_prompt.empty() && !setup.pools_prompt)
    fail("{}: 1_Pooling/config.json {}; --prompt \"\" serves without one", setup.path,
         tasks::kExcludesPrompt);
}

/// The head of a session whose outputs are those of the file.
void set_head(serve::ModelSetup& setup) {
  const runtime::Session& session = *setup.session;
  const auto output = [&](const tasks::Head& head) -> std::string {
    try {
      return tasks::find_output(session.outputs(), head);
    } catch (const Error&) {
      return "";
    }
  };
  switch (runtime::task_of(session.plan())) {
    case runtime::Task::question_answering: {
      setup.kind = serve::Kind::question_answering;
      setup.head = {squad::find_logits(session.outputs()), true};
      auto& features = setup.answer.features;
      features.max_seq_length =
          std::min(features.max_seq_length, static_cast<int>(setup.max_length));
      break;
    }
    case runtime::Task::text_classification:
      if (std::string score = output(tasks::rank_head()); !score.empty()) {
        setup.kind = serve::Kind::reranker;
        setup.head = {{std::move(score)}, false};
        setup.sigmoid = applies_sigmoid(setup.path);
      } else if (std::string classes = output({false, 2, true, "2 classes or more"});
                 !classes.empty()) {
        setup.kind = serve::Kind::classifier;
        setup.head = {{std::move(classes)}, false};
      }
      setup.labels = find_labels({}, {setup.path});
      setup.is_regression =
          tasks::read_model_config(text::companion_file(setup.path, "config.json")).is_regression;
      setup.multi_label = find_multi_label({setup.path}).value_or(false);
      break;
    default:
      break;
  }
}

/// Throws Error if every text would be refused.
void check_room(const serve::ModelSetup& setup) {
  const text::SpecialTokens& special = setup.tokenizer->special();
  const bool pairs =
      setup.kind == serve::Kind::reranker || setup.kind == serve::Kind::question_answering;
  tasks::room(static_cast<int>(setup.max_length), pairs ? special.pair_count() : special.count());
}

std::string dtype_of(const runtime::Session& session) {
  using Kind = plan::Arithmetic::Kind;
  const plan::Arithmetic precision = plan::precision_of(session.plan());
  return precision.kind() == Kind::fp32   ? "float32"
         : precision.kind() == Kind::fp16 ? "float16"
         : precision.kind() == Kind::bf16 ? "bfloat16"
                                          : precision.str();
}

/// That of a file, or the one above it if that is `onnx`.
fs::path folder_of(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return folder.filename() == "onnx" ? folder.parent_path() : folder;
}

/// ORG/NAME of a file in the cache of the Hugging Face hub,
/// models--ORG--NAME/snapshots/REVISION/.., which is a link to one that is named by its hash; else
/// empty.
std::string hub_name(const fs::path& file) {
  const fs::path snapshots = folder_of(file).parent_path();
  const std::string repository = snapshots.parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (snapshots.filename() != "snapshots" || !repository.starts_with(kPrefix)) return {};
  std::string name = repository.substr(kPrefix.size());
  if (const std::size_t dashes = name.find("--"); dashes != std::string::npos)
    name.replace(dashes, 2, "/");
  return name;
}

}  // namespace

NamedModel parse_named_model(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::error_code ignored;
  if (equals != std::string::npos && !fs::exists(text, ignored)) {
    const std::string name = text.substr(0, equals), path = text.substr(equals + 1);
    const bool has_slash = name.find('/') != std::string::npos;  // or it is a path with a '='
    if (name.empty() || path.empty() || (has_slash && !fs::exists(path, ignored)))
      fail("'{}': {}; a model is given as NAME=PATH or PATH", text,
           name.empty()   ? "the name is empty"
           : path.empty() ? "the path is empty"
                          : "neither it nor '" + path + "' exists");
    return {name, onnx_io::find_model(path)};
  }
  const fs::path file = onnx_io::find_model(text);
  check_readable(file);
  if (std::string name = hub_name(fs::absolute(file).lexically_normal()); !name.empty()) {
    if (file == text && file.filename() != "model.onnx") name += '/' + file.stem().string();
    return {name, file};
  }
  const fs::path path = fs::weakly_canonical(file);
  const fs::path folder = folder_of(path);
  const bool usual = path.filename() == "model.onnx" && folder.has_filename();
  return {usual ? folder.filename().string() : path.stem().string(), file};
}

serve::ModelSetup load_served_model(const NamedModel& model, const ServedModelOptions& options,
                                    const opencl::ContextFuture& device) {
  check_readable(model.path);
  serve::ModelSetup setup;
  setup.name = model.name;
  setup.path = model.path.string();
  const tasks::EmbeddingFiles files = tasks::read_embedding_files(model.path);
  setup.tokenizer =
      std::make_shared<const text::Tokenizer>(load_tokenizer(options.vocabulary, {model.path}));
  setup.lower_case = files.lower_case && !options.vocabulary.lower_case;
  runtime::Pooling pooling = pooling_of(options.pooled, files);
  const bool asked = !options.pooled.pooling.empty();
  bool pools = !files.pooling.empty() || (asked && !options.beside_others);
  if (!pools) {
    setup.session = load(model.path, options, {}, device);
    const runtime::Task task = runtime::task_of(setup.session->plan());
    const bool modules = !files.folder.empty() && !files.scores_pairs;
    const bool headless =
        task == runtime::Task::feature_extraction || (modules && task == runtime::Task::unknown);
    pools = headless && (asked || modules || has_vector(*setup.session));
  }
  if (pools) {
    setup.session = load(model.path, options, pooling, device);
    setup.load_hidden_states = [path = model.path, options, device] {
      return load(path, options, {}, device);
    };
  }
  TextModel reader(*setup.session);
  reader.check_vocabulary(*setup.tokenizer);
  setup.max_length = static_cast<std::size_t>(reader.max_length(options.max_length, files));
  setup.fixed_batch = reader.fixed_batch();
  // Pooling hides the table of some models.
  const std::int64_t rows = setup.session->plan().word_rows;
  setup.vocabulary =
      rows > 0 ? rows : static_cast<std::int64_t>(setup.tokenizer->vocabulary_size());
  setup.dtype = dtype_of(*setup.session);
  setup.answer.predictions.allow_nonfinite = options.allow_nonfinite;
  if (files.scores_pairs) {
    setup.prompts = files.prompts;
    setup.default_prompt = files.default_prompt;
  }
  if (pools)
    set_embedding(setup, pooling, files, options);
  else
    set_head(setup);
  if (setup.kind != serve::Kind::other || options.max_length) check_room(setup);
  return setup;
}

}  // namespace bertcl::tools
