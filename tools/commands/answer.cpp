// SPDX-License-Identifier: Apache-2.0
// bertcl answer: ask a question about a text, see the answer in it.
#include "squad/answer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bertcl/error.hpp"
#include "opencl/context_future.hpp"
#include "support/stopwatch.hpp"
#include "text/file.hpp"
#include "text/unicode.hpp"
#include "tools/models/default_model.hpp"
#include "tools/models/qa_model.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/option_checks.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/report/excerpt.hpp"
#include "tools/report/json_report.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr std::string_view kBuiltInText =
    "OpenCL is an open standard for programs that run on processors of many kinds: CPUs, GPUs and "
    "other accelerators. It was first proposed by Apple and is maintained by the Khronos Group, "
    "which published version 1.0 in December 2008. PoCL is a free implementation of OpenCL that "
    "compiles kernels with LLVM and runs them on an ordinary CPU.";

struct AnswerCommandOptions : ModelOptions {
  std::string model, context, question;
  bool may_be_absent = false;
  VocabularyOptions vocabulary;
  squad::AnswerOptions answer;
};

struct Reply {
  squad::FoundAnswer answer;
  double seconds = 0.0;
};

/// A text in another encoding would lose letters, and a binary file would be read for hours.
std::string read_text(const std::string& path) {
  std::string text = text::read_file(path);
  if (const auto bad = text::first_ill_formed(text))
    throw Error(fmt::format("{}: invalid UTF-8 at byte {} of {}; give a UTF-8 text", path, *bad,
                            text.size()));
  return text;
}

/// What stays the same from question to question.
class Oracle {
 public:
  /// Reads all that it needs while `device` is being opened.
  Oracle(const AnswerCommandOptions& options, const std::filesystem::path& model_path,
         const opencl::ContextFuture& device)
      : tokenizer_(
            device.meanwhile([&] { return load_tokenizer(options.vocabulary, {model_path}); })),
        text_(device.meanwhile([&] {
          return options.context.empty() ? std::string(kBuiltInText) : read_text(options.context);
        })),
        session_(load_model(model_path, options, device)),
        model_(session_),
        options_(options.answer) {
    options_.predictions.version_2 = options.may_be_absent;
    options_.predictions.allow_nonfinite = options.allow_nonfinite;
    model_.check_vocabulary(tokenizer_.vocabulary_size());
    model_.bound(options_.features, options_.batches);
    model_.warm_up();
  }

  Reply ask(const std::string& question) {
    const Stopwatch clock;
    Reply reply{squad::answer_question(question, text_, tokenizer_, options_, std::ref(model_)), 0};
    reply.seconds = clock.seconds();
    return reply;
  }
  const std::string& text() const { return text_; }
  const runtime::Session& session() const { return session_; }

 private:
  text::WordPieceTokenizer tokenizer_;
  std::string text_;
  runtime::Session session_;
  QaModel model_;
  squad::AnswerOptions options_;
};

void print_reply(const Reply& reply, const std::string& text) {
  const squad::FoundAnswer& answer = reply.answer;
  if (!answer.bytes) {
    print_text("No answer in the text (null odds {:.2f}, {})\n", answer.null_odds.value_or(0.0),
               duration_text(reply.seconds));
    return;
  }
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const Marks marks = terminal ? Marks{"\033[1m", "\033[0m"} : Marks{"[", "]"};
  const std::string found = printable(answer.text);
  // Marks may be escape sequences of our own.
  write_output((terminal ? marks.before + found + marks.after : found) + '\n');
  print_text("score {:.2f}, probability {:.2f}, {}\n\n", answer.score, answer.probability,
             duration_text(reply.seconds));
  write_output(excerpt(text, *answer.bytes, marks) + '\n');
}

nlohmann::ordered_json to_json(const Oracle& oracle, const std::string& question,
                               const Reply& reply) {
  const squad::FoundAnswer& answer = reply.answer;
  nlohmann::ordered_json nbest = nlohmann::ordered_json::array();
  for (const squad::NBestEntry& entry : answer.nbest) {
    nbest.push_back({{"text", entry.text},
                     {"probability", entry.probability},
                     {"start_logit", entry.start_logit},
                     {"end_logit", entry.end_logit}});
  }
  nlohmann::ordered_json json = {{"path", oracle.session().path().string()},
                                 {"question", question},
                                 {"answer", answer.text},
                                 {"answer_start", nullptr},
                                 {"score", answer.score},
                                 {"probability", answer.probability},
                                 {"seconds", reply.seconds},
                                 {"features", answer.features},
                                 {"nbest", std::move(nbest)}};
  if (answer.characters) json["answer_start"] = answer.characters->begin;
  if (answer.null_odds) json["null_odds"] = *answer.null_odds;
  return json;
}

/// Questions from standard input, one a line; with a prompt where somebody types them.
int answer_lines(Oracle& oracle) {
  const bool prompt = isatty(STDIN_FILENO) == 1;
  if (prompt) print_text("{}\n\nAsk about this text; an empty line quits.\n", oracle.text());
  for (std::string line;;) {
    if (prompt) {
      print_text("\n? ");
      std::fflush(stdout);
    }
    if (!std::getline(std::cin, line) || (prompt && line.empty())) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      if (!prompt) print_text("? {}\n", line);
      print_reply(oracle.ask(line), oracle.text());
      if (!prompt) print_text("\n");
    } catch (const Error& error) {
      if (!prompt) throw;
      print_text("{}\n", error.what());
    }
  }
  return kOk;
}

int run_answer(const AnswerCommandOptions& options) {
  if (options.question.empty() && !options.json.empty()) {
    throw Error("--json needs a question: -q TEXT");
  }
  const std::filesystem::path model =
      options.model.empty() ? find_default_model() : std::filesystem::path(options.model);
  Oracle oracle(options, model, opencl::ContextFuture::open(options.device));
  if (!meets_requirement(oracle.session(), options)) return kCheckFailed;
  if (options.question.empty()) return answer_lines(oracle);
  const Reply reply = oracle.ask(options.question);
  if (options.prints_text()) print_reply(reply, oracle.text());
  write_report(options, oracle.session().plan().context->info(),
               to_json(oracle, options.question, reply));
  return kOk;
}

}  // namespace

void add_answer(CLI::App& program, Action& action) {
  const auto options = std::make_shared<AnswerCommandOptions>();
  CLI::App* command = add_model_command(
      program, "answer",
      "Ask a question about a text and see the answer in it\n\nWithout -q, questions are read from "
      "standard input, one per line. The text may have any\nlength and format; without --context a "
      "short one about OpenCL is used. The score is the sum\nof the start and end logits; the "
      "probability is relative to the n-best answers.",
      "bertcl answer --context notes.txt -q \"Who maintains OpenCL?\"", *options);
  input_file(command->add_option("MODEL", options->model,
                                 "ONNX model with a question-answering head; by default "
                                 "BERTCL_MODEL,\nelse the bundled one (models/minilm-l6-squad)"))
      ->type_name("");
  input_file(command->add_option("--context", options->context, "Text file, UTF-8"))
      ->type_name("FILE");
  command->add_option("-q,--question", options->question, "The question")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            return text.find_first_not_of(" \t\r\n") == std::string::npos
                       ? "the question is empty; without -q questions are read from standard input"
                       : "";
          },
          ""))
      ->type_name("TEXT");
  command->add_flag("--may-be-absent", options->may_be_absent,
                    "The text may contain no answer (models trained on SQuAD v2.0)");
  any_number(*command, "--null-threshold", options->answer.predictions.null_score_diff_threshold,
             "With --may-be-absent: no answer if the null odds exceed this", "X");
  add_vocabulary_options(*command, options->vocabulary);
  command->callback([options, &action] { action = [options] { return run_answer(*options); }; });
}

}  // namespace bertcl::tools
