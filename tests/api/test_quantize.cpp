// SPDX-License-Identifier: Apache-2.0
// A model that is quantized and evaluated through the public interface.
#include "bertcl/quantize.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bertcl/bertcl.hpp"
#include "bertcl/evaluate.hpp"
#include "tests/api/model.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl {
namespace {

const std::filesystem::path kData = tests::source_file("data");

QuantizeOptions quick() {
  QuantizeOptions options;
  options.smooth = options.gptq = false;
  return options;
}

/// No larger file can be written, as on a disk that is almost full.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  LargestFile(const LargestFile&) = delete;
  LargestFile& operator=(const LargestFile&) = delete;
  ~LargestFile() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_{};
};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ApiQuantize : public testing::Test {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(tests::folder / "vocab.txt");
  tests::ScratchFolder folder_;
};

TEST_F(ApiQuantize, WritesAModelInInt8ThatAnswersAsTheFloatOneDoes) {
  const Sequences samples = read_squad_samples(kData / "calibration.json", tokenizer_, 8);
  EXPECT_EQ(samples.count(), 8);
  std::int64_t seen = -1;
  const QuantizeReport report =
      quantize(tests::model, folder_ / "int8.onnx", samples, quick(),
               [&](std::string_view, std::int64_t done) { return seen = done, true; });
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(report.samples, 8);
  EXPECT_EQ(report.tokens, samples.offsets.back());
  EXPECT_GE(report.quantized_nodes, 36);
  EXPECT_THAT(report.json, HasSubstr("\"quantized_nodes\""));
  const Session int8 = Session::load(folder_ / "int8.onnx", {.require_int8 = true});
  EXPECT_TRUE(int8.info().int8);
  SquadOptions options{.limit = 12};
  const SquadScores found = evaluate_squad(int8, tokenizer_, kData / "sample-v2.0.json", options);
  const SquadScores expected =
      evaluate_squad(Session::load(tests::model), tokenizer_, kData / "sample-v2.0.json", options);
  EXPECT_EQ(found.questions, 12u);
  EXPECT_EQ(found.answers.size(), 12u);
  EXPECT_GT(expected.f1, 50);
  EXPECT_NEAR(found.f1, expected.f1, 20) << "two questions of twelve";
  EXPECT_EQ(expected.metrics.at("f1"), expected.f1);
}

TEST_F(ApiQuantize, ACallbackCancelsAndNothingIsLeft) {
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  EXPECT_ERROR_CODE(ErrorCode::cancelled,
                    quantize(tests::model, folder_ / "int8.onnx", samples, quick(),
                             [](std::string_view, std::int64_t) { return false; }));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  const Session session = Session::load(tests::model);
  EXPECT_ERROR(HasSubstr("cancelled"),
               evaluate_squad(session, tokenizer_, kData / "sample-v2.0.json", {},
                              [](std::size_t, std::size_t) { return false; }));
}

TEST_F(ApiQuantize, WithoutItsTableOrCompanionsNoModelIsLeft) {
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  QuantizeOptions options = quick();
  options.copy_companions = true;
  options.write_table = folder_ / "ranges.json";
  for (const char* name : {"vocab.txt", "ranges.json"}) {
    const auto folder_in_its_place = [&](std::string_view, std::int64_t) {
      std::filesystem::create_directory(folder_ / name);
      return true;
    };
    EXPECT_ERROR(
        AllOf(HasSubstr(name), HasSubstr("cannot write")),
        quantize(tests::folder, folder_ / "q.onnx", samples, options, folder_in_its_place));
    std::filesystem::remove(folder_ / name);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << name;
  }
}

TEST_F(ApiQuantize, FilesThatWereThereStayWhereTheTableFails) {
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  QuantizeOptions options = quick();
  options.write_table = folder_ / "ranges.json";
  folder_.write("q.onnx", "an older model");
  folder_.write("q.onnx.data", "weights of another model");
  const auto folder_in_its_place = [&](std::string_view, std::int64_t) {
    std::filesystem::create_directory(folder_ / "ranges.json");
    return true;
  };
  EXPECT_ERROR(HasSubstr("cannot write"),
               quantize(tests::model, folder_ / "q.onnx", samples, options, folder_in_its_place));
  EXPECT_EQ(content_of(folder_ / "q.onnx"), "an older model");
  EXPECT_EQ(content_of(folder_ / "q.onnx.data"), "weights of another model");
}

TEST_F(ApiQuantize, WithoutItsModelTheFilesBesideItStay) {
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  QuantizeOptions options = quick();
  options.copy_companions = options.replace_companions = true;
  options.write_table = folder_ / "ranges.json";
  folder_.write("vocab.txt", "of an older model");
  folder_.write("ranges.json", "of an older model");
  const auto expect_old_files = [&] {
    for (const char* name : {"vocab.txt", "ranges.json"}) {
      const std::string content = content_of(folder_ / name);
      EXPECT_TRUE(content == "of an older model") << name << " has " << content.size() << " bytes";
    }
    std::filesystem::directory_iterator files(folder_.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 2) << "temporary files are left";
  };
  const auto folder_in_its_place = [&](std::string_view, std::int64_t) {
    std::filesystem::create_directory(folder_ / "q.onnx");
    return true;
  };
  EXPECT_ERROR(AllOf(HasSubstr("q.onnx"), HasSubstr("cannot write")),
               quantize(tests::folder, folder_ / "q.onnx", samples, options, folder_in_its_place));
  std::filesystem::remove(folder_ / "q.onnx");
  expect_old_files();

  std::optional<LargestFile> limit;
  const auto fill_disk = [&](std::string_view, std::int64_t done) {
    if (done == samples.count()) limit.emplace(500'000);  // the vocabulary is smaller
    return true;
  };
  EXPECT_ERROR(AllOf(HasSubstr("q.onnx"), HasSubstr("File too large")),
               quantize(tests::folder, folder_ / "q.onnx", samples, options, fill_disk));
  expect_old_files();
}

TEST_F(ApiQuantize, FilesThatCannotBeWrittenAreRefusedBeforeAnyWork) {
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  const auto no_work = [](std::string_view, std::int64_t) {
    ADD_FAILURE() << "samples were run";
    return true;
  };
  QuantizeOptions options = quick();
  const std::filesystem::path absent = folder_ / "absent";
  EXPECT_ERROR(HasSubstr((absent / "q.onnx").string() + ": cannot write"),
               quantize(tests::model, absent / "q.onnx", samples, options, no_work));
  const std::filesystem::path half = std::string("a\0b.onnx", 8);
  EXPECT_ERROR("the path of the output holds a zero byte",
               quantize(tests::model, folder_ / half, samples, options, no_work));
  options.write_table = absent / "ranges.json";
  EXPECT_ERROR(HasSubstr((absent / "ranges.json").string() + ": cannot write"),
               quantize(tests::model, folder_ / "q.onnx", samples, options, no_work));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ApiQuantize, SettingsAreTheOptionsOfTheCommand) {
  const Sequences samples = read_samples(kData / "calibration.json", tokenizer_, {.count = 2});
  QuantizeOptions options = quick();
  options.copy_companions = true;
  options.settings = {
      {"activations", "s8"}, {"per_tensor", ""}, {"exclude", "*query*"}, {"exclude", "*key*"}};
  std::filesystem::create_directory(folder_ / "made");
  const QuantizeReport report = quantize(tests::folder, folder_ / "made/q.onnx", samples, options);
  EXPECT_THAT(report.copied, Contains("vocab.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "made/vocab.txt"));
  const auto skips = [&](const char* part) {
    return std::ranges::any_of(report.skipped, [&](const SkippedNode& node) {
      return node.node.find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(skips("query") && skips("key"));
  EXPECT_FALSE(skips("attention/self/value"));
  const auto json = nlohmann::json::parse(report.json);
  EXPECT_EQ(json["activations"]["type"], "i8");
}

TEST(QuantizerFlags, EachHasTheOneThatUndoesIt) {
  const auto flags = quantizer_flags();
  EXPECT_THAT(flags, IsSupersetOf({Pair("head", "no_head"), Pair("no_head", "head"),
                                   Pair("per_tensor", "per_channel"), Pair("fuse_qkv", "")}));
  for (const char* other : {"smooth", "exclude", "axis", "weight_bits", "help"})
    EXPECT_FALSE(flags.contains(other)) << other;
}

TEST_F(ApiQuantize, OptionsThatCannotBeMetAreRefused) {
  QuantizeOptions options = quick();
  options.dynamic = true;
  options.smooth = true;
  EXPECT_ERROR(HasSubstr("'smooth' has no effect here: 'dynamic' takes no samples"),
               quantize(tests::model, folder_ / "a.onnx", Sequences(), options));
  options.smooth.reset();
  options.method = "entropy";
  EXPECT_ERROR(HasSubstr("'method' has no effect here: 'dynamic' takes no samples"),
               quantize(tests::model, folder_ / "a.onnx", Sequences(), options));
  options.method.reset();
  options.settings = {{"exclude", ""}, {"per-tensor", ""}};
  EXPECT_ERROR(HasSubstr("'exclude' needs a value"),
               quantize(tests::model, folder_ / "a.onnx", Sequences(), options));
  options.settings = {{"activations", "u8"}, {"activations", "s8"}};
  EXPECT_ERROR(HasSubstr("'activations' is given twice"),
               quantize(tests::model, folder_ / "a.onnx", Sequences(), options));
}

TEST_F(ApiQuantize, RangesComeFromATableOrFromEachRun) {
  QuantizeOptions options = quick();
  options.write_table = folder_ / "ranges.json";
  const Sequences samples = tests::sequences_of({9, 12}, 1);
  const QuantizeReport first = quantize(tests::model, folder_ / "a.onnx", samples, options);
  options.write_table.clear();
  options.read_table = folder_ / "ranges.json";
  const QuantizeReport second = quantize(tests::model, folder_ / "b.onnx", Sequences(), options);
  EXPECT_EQ(first.quantized_nodes, second.quantized_nodes);
  EXPECT_ERROR(HasSubstr("'samples' and 'read_table' cannot be combined"),
               quantize(tests::model, folder_ / "c.onnx", samples, options));
  options.dynamic = true;
  EXPECT_ERROR(HasSubstr("'dynamic' cannot be combined with 'samples' or tables"),
               quantize(tests::model, folder_ / "c.onnx", {}, options));
  options.read_table.clear();
  options.per_token = true;
  EXPECT_GE(quantize(tests::model, folder_ / "c.onnx", Sequences(), options).quantized_nodes, 36);
  EXPECT_ERROR(HasSubstr("would overwrite a file that is read"),
               quantize(tests::model, tests::model, Sequences(), options));
}

TEST_F(ApiQuantize, FilesThatAreReadAndOtherOutputsAreNotOverwritten) {
  const std::filesystem::path file = folder_ / "file";
  std::ofstream(file) << "{}";
  const auto error = [&](const QuantizeOptions& options, const std::filesystem::path& output) {
    return error_of([&] { quantize(tests::model, output, Sequences(), options); });
  };
  QuantizeOptions table, settings, vocabulary;
  table.read_table = file;
  settings.settings = {{"overrides", file.string()}};
  vocabulary.vocabulary = file;
  settings.dynamic = vocabulary.dynamic = vocabulary.copy_companions = true;
  for (const QuantizeOptions& options : {table, settings, vocabulary})
    EXPECT_THAT(error(options, file), HasSubstr("would overwrite"));
  const std::filesystem::path settings_beside = folder_ / "tokenizer_config.json";
  std::ofstream(settings_beside) << "{}";
  EXPECT_THAT(error(vocabulary, settings_beside), HasSubstr("would overwrite"));
  const std::filesystem::path model = folder_ / "model.onnx", words = folder_ / "vocab.txt";
  std::filesystem::copy_file(tests::model, model);
  std::ofstream(words) << "[UNK]";
  QuantizeOptions dynamic;
  dynamic.dynamic = true;
  EXPECT_ERROR(HasSubstr(words.string() + " would overwrite a file that is read"),
               quantize(model, words, Sequences(), dynamic));
  QuantizeOptions both;
  both.write_table = folder_ / "made" / ".." / "q.onnx";
  std::filesystem::create_directory(folder_ / "made");
  EXPECT_ERROR(HasSubstr("the model and its table would both be written to"),
               quantize(tests::model, folder_ / "q.onnx", tests::sequences_of({9}, 1), both));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "q.onnx"));
  both.write_table = file;
  both.settings = {{"overrides", file.string()}};
  EXPECT_ERROR(HasSubstr("would overwrite"),
               quantize(tests::model, folder_ / "q.onnx", tests::sequences_of({9}, 1), both));
}

TEST_F(ApiQuantize, SamplesAreOfAnyTask) {
  const auto lengths = [&](const char* task, const char* text, SampleOptions options = {}) {
    std::ofstream(folder_ / "data.tsv") << text;
    options.task = task;
    const Sequences samples = read_samples(folder_ / "data.tsv", tokenizer_, options);
    std::vector<std::int64_t> each;
    for (std::size_t i = 1; i < samples.offsets.size(); ++i)
      each.push_back(samples.offsets[i] - samples.offsets[i - 1]);
    return each;
  };
  EXPECT_THAT(lengths("text", "one\ntwo three\n"), ElementsAre(3, 4));
  EXPECT_THAT(lengths("classify", "one two\tA\nthree\tB\n"), ElementsAre(4, 3));
  EXPECT_THAT(lengths("similarity", "one\ttwo\t1\nthree\tfour five\t3\n"), ElementsAre(5, 6));
  EXPECT_THAT(lengths("tag", "one O\ntwo B-x\n\n"), ElementsAre(4));
  EXPECT_THAT(lengths("text", "one two three\nfour\nfive six\n", {.count = 2, .first = true}),
              ElementsAre(5, 3));
  EXPECT_THAT(lengths("text", "one two three\n", {.max_length = 4}), ElementsAre(4));
  EXPECT_ERROR(HasSubstr("did you mean classify"), lengths("clasify", "one\tA\n"));
}

TEST_F(ApiQuantize, WrongOptionsAreErrors) {
  const auto error = [&](const Sequences& samples, const QuantizeOptions& options) {
    return error_of([&] { quantize(tests::model, folder_ / "q.onnx", samples, options); });
  };
  const Sequences samples = tests::sequences_of({9}, 1);
  QuantizeOptions wrong = quick();
  wrong.preset = "best";
  EXPECT_THAT(error(samples, wrong), HasSubstr("'best'"));
  wrong = quick();
  wrong.method = "guess";
  EXPECT_THAT(error(samples, wrong), HasSubstr("'guess'"));
  wrong = quick();
  wrong.settings = {{"activation", "s8"}};
  EXPECT_THAT(error(samples, wrong),
              HasSubstr("unknown option 'activation' (did you mean 'activations'?)"));
  wrong.settings = {{"activations", "s9"}};
  EXPECT_THAT(error(samples, wrong), StartsWith("'activations': unknown value 's9'"));
  wrong.settings = {{"weight-bits", "many"}};
  EXPECT_THAT(error(samples, wrong), StartsWith("'weight_bits': 'many' is not an integer"));
  EXPECT_THAT(error({}, quick()), HasSubstr("no source of ranges"));
  SquadOptions options{.max_length = 600};
  const Session session = Session::load(tests::model);
  EXPECT_ERROR(HasSubstr("512"),
               evaluate_squad(session, tokenizer_, kData / "sample-v2.0.json", options));
  EXPECT_ERROR(HasSubstr("/nowhere.json"), evaluate_squad(session, tokenizer_, "/nowhere.json"));
}

}  // namespace
}  // namespace bertcl
