// SPDX-License-Identifier: Apache-2.0
// bertcl._bertcl.quantize: an int8 model, with the interpreter's lock released.
#include "quantization.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bertcl/bertcl.hpp"
#include "callback.hpp"
#include "lock.hpp"
#include "path.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

bertcl::Sequences read_samples(const Path& data, const bertcl::Tokenizer& tokenizer,
                               const std::string& task, std::size_t samples, bool first_samples,
                               int max_seq_length, int max_query_length) {
  bertcl::SampleOptions options;
  options.task = task;
  options.count = samples;
  options.first = first_samples;
  options.max_length = max_seq_length;
  options.max_query_length = max_query_length;
  LockReleased others_run;
  return bertcl::read_samples(data, tokenizer, options);
}

std::string quantize(const Path& model, const Path& output, const bertcl::Sequences& samples,
                     const std::vector<std::pair<std::string, std::string>>& settings,
                     nb::object progress, const std::string& preset, const std::string& device,
                     bool dynamic, bool per_token, const Path& read_table, const Path& write_table,
                     const std::string& table_format, bool model_only, const Path& vocab,
                     bool force) {
  bertcl::QuantizeOptions options;
  options.preset = preset;
  options.device = device;
  options.settings = settings;
  options.dynamic = dynamic;
  options.per_token = per_token;
  options.read_table = read_table;
  options.write_table = write_table;
  options.table_format = table_format;
  options.copy_companions = !model_only;
  options.vocabulary = vocab;
  options.replace_companions = force;
  Callback tell(std::move(progress));
  return tell.around(
      [&] { return bertcl::quantize(model, output, samples, options, std::ref(tell)).json; });
}

}  // namespace

void bind_quantization(nb::module_& m) {
  nb::class_<bertcl::Sequences>(m, "Samples")
      .def(nb::init<>())
      .def("__len__", &bertcl::Sequences::count);
  m.def("quantizer_flags", &bertcl::quantizer_flags);
  m.def("read_samples", &read_samples, "data"_a, "tokenizer"_a, "task"_a, "samples"_a = 128,
        "first_samples"_a = false, "max_seq_length"_a = 384, "max_query_length"_a = 64);
  m.def("quantize", &quantize, "model"_a, "output"_a, "samples"_a, "settings"_a,
        "progress"_a.none() = nb::none(), "preset"_a = "default", "device"_a = "",
        "dynamic"_a = false, "per_token"_a = false, "read_table"_a = Path(),
        "write_table"_a = Path(), "table_format"_a = "", "model_only"_a = false, "vocab"_a = Path(),
        "force"_a = false);
}
