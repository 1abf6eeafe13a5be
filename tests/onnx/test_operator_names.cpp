// SPDX-License-Identifier: Apache-2.0
// Operators are compared by name: each name in a source is one that the importer or the registry
// of ops knows, so that a misspelled one fails here.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "onnx/read_model.hpp"
#include "ops/op.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::onnx_io {
namespace {

std::set<std::string> known_operators() {
  std::set<std::string> known;
  for (const std::string& name : ops::names()) known.insert(name);
  for (const std::string& name : supported_operators())  // "com.microsoft::FusedMatMul"
    known.insert(name.substr(name.rfind(':') + 1));
  return known;
}

/// Operators of files that the importer does not know as nodes: the quantizer leaves them alone, or
/// they are activations of others.
const std::set<std::string> kOfFilesOnly = {"BatchNormalization",
                                            "DynamicSlice",
                                            "Einsum",
                                            "Elu",
                                            "HardSigmoid",
                                            "Hardmax",
                                            "MaxUnpool",
                                            "Multinomial",
                                            "Resize",
                                            "Scatter",
                                            "Softsign",
                                            "TopK",
                                            "Upsample"};

/// Other words that are written like them: beginnings of names of operators, and names of others.
const std::set<std::string> kOtherWords = {"Accuracy",
                                           "CLBlast",
                                           "CalibrationMethod",
                                           "Dense",
                                           "DynamicQuantize",
                                           "Fusion",
                                           "Integers",
                                           "NaN",
                                           "Pooling",
                                           "QEmbed",
                                           "QGemm",
                                           "QInt8",
                                           "QLinear",
                                           "QOrdered",
                                           "QUInt8",
                                           "Random",
                                           "TensorData",
                                           "TensorsData",
                                           "Transformer"};

/// The literals of a source that are written like operators: "MatMul".
std::set<std::string> names_in(const std::string& source) {
  static const std::regex comment("//.*"), name(R"x("([A-Z]+[a-z][A-Za-z0-9]*)")x");
  const std::string text = std::regex_replace(source, comment, "");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it)
    names.insert((*it)[1]);
  return names;
}

/// Those that nobody knows.
std::vector<std::string> unknown(const std::set<std::string>& names) {
  static const std::set<std::string> known = known_operators();
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (!known.contains(name) && !kOfFilesOnly.contains(name) && !kOtherWords.contains(name))
      found.push_back(name);
  return found;
}

TEST(OperatorNames, AreKnownWhereverTheyAreWritten) {
  std::set<std::string> all;
  for (const char* folder : {"engine/onnx", "engine/ops", "engine/passes", "engine/plan", "quant"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(tests::source_file(folder))) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      std::ifstream file(entry.path());
      const auto names = names_in(std::string(std::istreambuf_iterator<char>(file), {}));
      EXPECT_THAT(unknown(names), IsEmpty())
          << entry.path() << ": misspelled, or to be added to the lists of this test";
      all.insert(names.begin(), names.end());
    }
  // And no exception is left over.
  const std::set<std::string> known = known_operators();
  for (const auto& exceptions : {kOfFilesOnly, kOtherWords})
    for (const std::string& word : exceptions)
      EXPECT_TRUE(all.contains(word) && !known.contains(word)) << word;
}

TEST(OperatorNames, AMisspelledOneIsFound) {
  EXPECT_THAT(unknown(names_in(R"x(if (n.op == "MatMull") return op("Mul");  // "Twist")x")),
              ElementsAre("MatMull"));
}

}  // namespace
}  // namespace bertcl::onnx_io
