// SPDX-License-Identifier: Apache-2.0
// bertcl answer: ask a question about a text, see the answer in it.
#include "squad/answer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "opencl/context_future.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/option_checks.hpp"
#include "support/stopwatch.hpp"
#include "text/base/data_file.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"
#include "text/base/unicode.hpp"
#include "tools/models/default_model.hpp"
#include "tools/models/task_model.hpp"
#include "tools/options/file_options.hpp"
#include "tools/options/json_report.hpp"
#include "tools/options/model_options.hpp"
#include "tools/options/text_option.hpp"
#include "tools/options/vocabulary_options.hpp"
#include "tools/report/excerpt.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr std::string_view kBuiltInText =
    "OpenCL is an open standard for programs that run on processors of many kinds: CPUs, GPUs and "
    "other accelerators. It was first proposed by Apple and is maintained by the Khronos Group, "
    "which published version 1.0 in December 2008. PoCL is a free implementation of OpenCL that "
    "compiles kernels with LLVM and runs them on an ordinary CPU.";

constexpr std::string_view kBuiltInName = "built-in text about OpenCL";

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

std::string read_context(const std::string& path) {
  text::DataFile file = text::read_utf8(path);
  if (text::is_blank(file.content)) fail("{}: the context has no tokens", file.name);
  return std::move(file.content);
}

/// What stays the same from question to question.
class Oracle {
 public:
  /// Reads all that it needs while `device` is being opened.
  Oracle(const AnswerCommandOptions& options, const std::filesystem::path& model_path,
         const opencl::ContextFuture& device)
      : tokenizer_(device.meanwhile(
            [&] { return load_squad_tokenizer(options.vocabulary, {model_path}); })),
        text_(device.meanwhile([&] {
          return options.context.empty() ? std::string(kBuiltInText)
                                         : read_context(options.context);
        })),
        session_(load_model(model_path, options, device)),
        model_(session_, squad::logits_head()),
        options_(options.answer) {
    options_.predictions.version_2 = options.may_be_absent;
    options_.predictions.allow_nonfinite = options.allow_nonfinite;
    model_.check_vocabulary(tokenizer_);
    int& length = options_.features.max_seq_length;
    length = std::min(length, model_.max_length(std::nullopt));
    model_.check_length(length);
    model_.bound(options_.batches);
    model_.warm_up();
  }

  Reply ask(const std::string& question, const std::string& text) {
    const Stopwatch clock;
    Reply reply{squad::answer_question(question, text, tokenizer_, options_, std::ref(model_)), 0};
    reply.seconds = clock.seconds();
    return reply;
  }
  const std::string& text() const { return text_; }
  int max_question() const { return options_.features.max_query_length; }
  const runtime::Session& session() const { return session_; }

 private:
  text::Tokenizer tokenizer_;
  std::string text_;
  runtime::Session session_;
  TaskModel model_;
  squad::AnswerOptions options_;
};

void warn_if_truncated(const Reply& reply, const Oracle& oracle, std::string_view place) {
  if (reply.answer.question_truncated == 0) return;
  const auto kept = static_cast<std::size_t>(oracle.max_question());
  warn("{}truncated the question from {} to {} tokens", place,
       kept + reply.answer.question_truncated, kept);
}

/// `built_in`: of the text that stands in for a --context.
void print_reply(const Reply& reply, const std::string& text, bool built_in) {
  const squad::FoundAnswer& answer = reply.answer;
  if (!answer.bytes) {
    print_text("No answer in the {} (null odds {:.2f}, {})\n", built_in ? kBuiltInName : "text",
               answer.null_odds.value_or(0.0), duration_text(reply.seconds));
    return;
  }
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const Marks marks = terminal ? Marks{"\033[1m", "\033[0m"} : Marks{"[", "]"};
  const std::string found = printable(answer.text);
  // Marks may be escape sequences of our own.
  write_output((terminal ? marks.before + found + marks.after : found) + '\n');
  print_text("score {:.2f}, probability {:.2f}, {}{}\n\n", answer.score, answer.probability,
             duration_text(reply.seconds),
             built_in ? fmt::format(", in the {}", kBuiltInName) : "");
  write_output(excerpt(text, *answer.bytes, marks) + '\n');
}

nlohmann::ordered_json to_json(const std::string& question, const Reply& reply) {
  const squad::FoundAnswer& answer = reply.answer;
  nlohmann::ordered_json nbest = nlohmann::ordered_json::array();
  for (const squad::NBestEntry& entry : answer.nbest) {
    nbest.push_back({{"text", entry.text},
                     {"probability", entry.probability},
                     {"start_logit", entry.start_logit},
                     {"end_logit", entry.end_logit}});
  }
  nlohmann::ordered_json json = {{"question", question},
                                 {"answer", answer.text},
                                 {"answer_start", nullptr},
                                 {"score", answer.score},
                                 {"probability", answer.probability},
                                 {"seconds", reply.seconds},
                                 {"features", answer.features},
                                 {"question_truncated", answer.question_truncated > 0},
                                 {"nbest", std::move(nbest)}};
  if (answer.characters) json["answer_start"] = answer.characters->begin;
  if (answer.null_odds) json["null_odds"] = *answer.null_odds;
  return json;
}

const std::vector<std::string> kMembers = {"question", "context"};
// Of the lines that eval reads.
const std::vector<std::string> kPassedOver = {"id", "title", "answers", "is_impossible",
                                              "plausible_answers"};

struct Asked {
  std::string question, text;
  bool own_text = false;
};

/// A line of standard input: a question about `text`, or an object that may bring its own.
Asked parse_line(const std::string& line, std::size_t number, const std::string& text) {
  if (number == 1 && (text::trimmed(line) == "[" || text::form_of("", line) == text::Form::array))
    throw Error("is a JSON array; write one question a line (jq -c '.[]' FILE)");
  if (!text::begins_as_object(line)) return {line, text};
  const std::string place = fmt::format("standard input:{}", number);
  const nlohmann::json document = text::parse_json(line, place);
  const std::string hint = R"(a line is a question, or {"question": "..", "context": ".."})";
  const text::JsonNode object(document, place, hint);
  for (const auto& [key, value] : document.items())
    if (std::ranges::find(kMembers, key) == kMembers.end() &&
        std::ranges::find(kPassedOver, key) == kPassedOver.end())
      fail("{}: unknown member '{}'{}; {}", place, key, did_you_mean(key, kMembers), hint);
  const auto context = object.find("context");
  return {object.at("question").string(), context ? context->string() : text, context.has_value()};
}

/// Questions from standard input, one a line; with a prompt where somebody types them. Gives what
/// was answered, as JSON.
nlohmann::ordered_json answer_lines(Oracle& oracle, bool prints_text, bool built_in) {
  nlohmann::ordered_json answers = nlohmann::ordered_json::array();
  const bool prompt = isatty(STDIN_FILENO) == 1 && prints_text;
  if (prompt) print_text("{}\n\nAsk about this text; an empty line ends.\n", oracle.text());
  std::string line;
  for (std::size_t number = 1;; ++number) {
    if (prompt) {
      print_text("\n? ");
      std::fflush(stdout);
    }
    if (!text::read_line(std::cin, line, number)) {
      text::check_standard_input();
      break;
    }
    if (prompt && line.empty()) break;
    if (text::is_blank(line)) continue;
    try {
      if (text::first_ill_formed(line)) throw Error("invalid UTF-8");
      const auto [question, text, own_text] = parse_line(line, number, oracle.text());
      const Reply reply = oracle.ask(question, text);
      warn_if_truncated(reply, oracle, prompt ? "" : fmt::format("standard input:{}: ", number));
      answers.push_back(to_json(question, reply));
      if (!prints_text) continue;
      if (!prompt) print_text("? {}\n", question);
      print_reply(reply, text, built_in && !own_text && !prompt);
      if (!prompt) print_text("\n");
    } catch (const Error& error) {
      const std::string message = error.what(), place = fmt::format("standard input:{}", number);
      if (!prompt) throw Error(message.starts_with(place) ? message : place + ": " + message);
      print_text("{}\n", message);
    }
  }
  if (answers.empty() && !prompt)
    throw Error("standard input: contains no question; each line is one");
  return answers;
}

int run_answer(const AnswerCommandOptions& options) {
  const bool built_in = options.context.empty();
  if (options.context == "-" && options.question.empty())
    throw Error("--context - needs -q: questions are read from standard input, too");
  const std::filesystem::path model =
      options.model.empty() ? find_default_model() : std::filesystem::path(options.model);
  Oracle oracle(options, model, opencl::ContextFuture::open(options.device));
  if (!meets_requirement(oracle.session(), options)) return kCheckFailed;
  nlohmann::ordered_json result = {{"path", oracle.session().path().string()}};
  if (options.question.empty()) {
    result["answers"] = answer_lines(oracle, options.prints_text(), built_in);
  } else {
    const Reply reply = oracle.ask(options.question, oracle.text());
    warn_if_truncated(reply, oracle, "");
    if (options.prints_text()) print_reply(reply, oracle.text(), built_in);
    result.update(to_json(options.question, reply));
  }
  write_report(options, oracle.session().context().info(), result);
  return kOk;
}

}  // namespace

void add_answer(CLI::App& program, Action& action) {
  const auto options = std::make_shared<AnswerCommandOptions>();
  CLI::App* command = add_model_command(
      program, "answer",
      "Ask a question about a text and see the answer in it\n\n"
      "Without -q, questions are read from standard input, one per line; a line may also be JSON, "
      "{\"question\": \"..\", \"context\": \"..\"}, with a text of its own. The text may have any "
      "length and form; without --context it is a short one about OpenCL. The score is the sum of "
      "the start and end logits; the probability is relative to the other n-best answers.",
      "bertcl answer --context notes.txt -q \"Who maintains OpenCL?\"", *options);
  model_file(command->add_option("MODEL", options->model,
                                 "ONNX model with a question-answering head; by default "
                                 "BERTCL_MODEL, else the bundled one (models/minilm-l6-squad)"));
  input_file(command->add_option("--context", options->context,
                                 "The text, a UTF-8 file; with -q, - is standard input"));
  text_option(command->add_option("-q,--question", options->question, "The question"),
              "the question is empty; without -q questions are read from standard input");
  command->add_flag("--may-be-absent", options->may_be_absent,
                    "The text may contain no answer (models trained on SQuAD v2.0)");
  any_number(
      *command, "--null-threshold", options->answer.predictions.null_score_diff_threshold,
      "With --may-be-absent: no answer if the null odds (null score - the best answer's) exceed X",
      "X");
  add_vocabulary_options(*command, options->vocabulary);
  command->callback([options, &action] { action = [options] { return run_answer(*options); }; });
}

}  // namespace bertcl::tools
