// SPDX-License-Identifier: Apache-2.0
// similar MODEL_FOLDER QUERY TEXT...: prints the texts with the cosine similarity of their vectors
// to that of the query, the most similar first.
#include <algorithm>
#include <bertcl/bertcl.hpp>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

/// By the names that encode_query() and encode_document() of sentence-transformers look for.
std::string prompt_of(const bertcl::EmbeddingSettings& settings,
                      std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = settings.prompts.find(name); found != settings.prompts.end())
      return found->second;
  return settings.default_prompt;
}

void print_similar(const std::filesystem::path& folder, const std::string& query,
                   const std::vector<std::string>& texts) {
  const bertcl::EmbeddingSettings settings = bertcl::read_embedding_settings(folder);
  const std::string of_queries = prompt_of(settings, {"query"});
  const std::string of_documents = prompt_of(settings, {"document", "passage", "corpus"});
  if (!settings.pools_prompt && !(of_queries.empty() && of_documents.empty()))
    throw bertcl::Error("the model excludes prompt tokens from pooling, which is not supported");
  bertcl::Pooling pooling = settings.pooling;
  if (pooling.kind.empty()) {  // no file says how: the mean, else the model's own vector
    pooling.kind = "mean";
    pooling.or_own = true;
  }
  pooling.normalize = true;  // the dot product is the cosine then
  const auto tokenizer = bertcl::Tokenizer::load_beside(folder);
  const auto session = bertcl::Session::load(folder, {.pooling = pooling});

  bertcl::EmbedOptions options{.max_length = settings.max_length,
                               .lower_case = settings.lower_case};
  options.prompt = of_queries;
  const bertcl::Tensor of_query = bertcl::embed(session, tokenizer, {query}, options);
  options.prompt = of_documents;
  const bertcl::Tensor of_texts = bertcl::embed(session, tokenizer, texts, options);

  const std::span<const float> q = of_query.values<float>(), all = of_texts.values<float>();
  std::vector<std::pair<float, std::string>> ranked;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto vector = all.subspan(i * q.size(), q.size());
    ranked.emplace_back(std::inner_product(q.begin(), q.end(), vector.begin(), 0.0f), texts[i]);
  }
  std::ranges::sort(ranked, std::greater<>());
  for (const auto& [similarity, text] : ranked) std::cout << similarity << "  " << text << "\n";
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: similar MODEL_FOLDER QUERY TEXT...\n";
    return 2;
  }
  try {
    print_similar(arguments[1], arguments[2], {arguments + 3, arguments + count});
  } catch (const std::exception& error) {  // bertcl::Error, or of the C++ library
    std::cerr << error.what() << "\n";
    return 1;
  }
}
