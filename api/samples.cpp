// SPDX-License-Identifier: Apache-2.0
// Calibration samples of the public interface, from the data of any task.
#include <cstddef>

#include "api/boundary.hpp"
#include "api/tokenizer_impl.hpp"
#include "bertcl/quantize.hpp"
#include "quant/calibration/samples.hpp"
#include "tasks/load.hpp"

namespace bertcl {

Sequences read_samples(const std::filesystem::path& data, const Tokenizer& tokenizer,
                       const SampleOptions& options) {
  return translate_exceptions([&] {
    squad::FeatureOptions features;
    features.max_seq_length = options.max_length;
    features.max_query_length = options.max_query_length;
    const tasks::FirstSequences all = tasks::read_first_sequences(
        options.task, data,
        options.task == tasks::kQuestionAnswering ? TokenizerAccess::of_squad(tokenizer)
                                                  : TokenizerAccess::of(tokenizer),
        features);
    Sequences samples;
    for (const std::size_t item : quant::spread(all.items, options.count, options.first)) {
      const auto sequence = all.sequence(item);
      if (!sequence) continue;
      samples.ids.insert(samples.ids.end(), sequence->ids.begin(), sequence->ids.end());
      for (std::size_t i = 0; i < sequence->length(); ++i)
        samples.token_type_ids.push_back(i >= sequence->second ? 1 : 0);
      samples.offsets.push_back(std::ssize(samples.ids));
    }
    return samples;
  });
}

Sequences read_squad_samples(const std::filesystem::path& data, const Tokenizer& tokenizer,
                             std::size_t count, int max_length) {
  SampleOptions options;
  options.count = count;
  options.max_length = max_length;
  return read_samples(data, tokenizer, options);
}

}  // namespace bertcl
