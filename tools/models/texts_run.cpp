// SPDX-License-Identifier: Apache-2.0
// Texts in, one visit for the output of each.
#include "tools/models/texts_run.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <span>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/stopwatch.hpp"
#include "tasks/head_output.hpp"
#include "tools/models/task_model.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/terminal/progress.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

TextsRun::TextsRun(const TextsOptions& options)
    : options_(options),
      device_(opencl::ContextFuture::open(options.device)),
      inputs_(device_.meanwhile([&] {
        return std::pair(load_tokenizer(options.vocabulary, {options.model}),
                         read_input_texts(options.texts));
      })),
      session_(load_model(options.model, options, device_)) {}

void TextsRun::run(const tasks::Head& head, const EncodeFn& encode,
                   const text::OutputVisitor& visit) {
  TaskModel model(session_, head);
  model.check_vocabulary(tokenizer());
  const int max_length = model.max_length(options_.max_length, tokenizer().longest());
  text::BatchOptions batches = tasks::usual_batches(head);
  model.bound(batches);
  std::vector<tasks::Sequence> sequences;
  for (const InputText& text : texts()) {
    sequences.push_back(naming_text(text, [&] { return encode(text, max_length); }));
    tokens_ += sequences.back().length();
    truncated_ += sequences.back().cut > 0 ? 1 : 0;
  }
  model.warm_up();

  const Stopwatch clock;
  Progress progress("running", "texts");
  const auto take = [&](std::size_t index, std::span<const float> output) {
    if (!options_.allow_nonfinite && !text::all_finite(output))
      fail("the model returned NaN or infinity for {}; --allow-nonfinite continues",
           texts()[index].place);
    visit(index, output);
  };
  model_seconds_ = naming_model(options_.model, [&] {
    return text::run_rows(
               tasks::rows_of(sequences), head, batches, std::ref(model), take,
               [&](const text::Done& done) { progress.update(done.rows, texts().size()); })
        .seconds;
  });
  seconds_ = clock.seconds();
  warn_of_truncation(truncated_, texts().size(), "texts", max_length);
}

void TextsRun::report(nlohmann::ordered_json more, nlohmann::ordered_json results) const {
  nlohmann::ordered_json report = {{"path", options_.model}};
  report.update(more);
  report.update({{"texts", texts().size()},
                 {"tokens", tokens_},
                 {"truncated", truncated_},
                 {"seconds", seconds_},
                 {"model_seconds", model_seconds_},
                 {"results", std::move(results)}});
  write_report(options_, session_.context().info(), report);
}

CLI::App* add_texts_command(CLI::App& program, const std::string& name,
                            const std::string& description, const std::string& example,
                            const std::string& model_help, TextsOptions& options) {
  CLI::App* command = add_model_command(program, name, description, example, options);
  model_file(command->add_option("MODEL", options.model, model_help))->required();
  input_file(command->add_option("TEXTS", options.texts,
                                 "Texts, one per line; - is standard input, the default"))
      ->type_name("");
  add_max_length_option(*command, options.max_length);
  add_vocabulary_options(*command, options.vocabulary);
  return command;
}

void check_one_reads_input(const TextsOptions& options, const std::string& labels) {
  if (options.texts == "-" && labels == "-")
    throw Error("TEXTS and --labels both read standard input; name a file for one of them");
}

nlohmann::ordered_json json_of(const InputText& text) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!text.id.empty()) json["id"] = text.id;
  json["text"] = text.text;
  if (text.second) json["text_pair"] = *text.second;
  return json;
}

}  // namespace bertcl::tools
