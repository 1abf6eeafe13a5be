// SPDX-License-Identifier: Apache-2.0
// Each kernel of a model compared with what the machine could do: where time is lost, and how much.
//
//   build/bench/bench_roofline model.onnx 1x128 8x384        batch x sequence; 1x128 by itself
//   build/bench/bench_roofline model.onnx --precision bf16   float GEMMs in bf16, or fp16
//
// The peaks (int8, bf16 where the device multiplies it, fp32, loads from memory and from cache) are
// measured first, on the same threads.
// The least time of a step is the larger of its operations at their peak and its bytes at theirs:
// weights come from memory where all of them together are larger than 16 MiB, activations where one
// step's are; the rest comes from cache. BERTCL_DEVICE names the device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/parse_number.hpp"
#include "tools/measure/kernel_profile.hpp"
#include "tools/measure/peaks.hpp"
#include "tools/measure/roofline.hpp"
#include "tools/options/model_options.hpp"
#include "tools/terminal/output.hpp"

namespace {

using namespace bertcl;

void print_shape(runtime::Session& session, const tools::Peaks& peaks, const std::string& shape) {
  const auto x = std::min(shape.find('x'), shape.size() - 1);
  const auto batch = parse_number<int>(shape.substr(0, x)),
             seq = parse_number<int>(shape.substr(x + 1));
  if (!batch || !seq) throw std::runtime_error(shape + ": a shape is written 8x128");
  const tools::BatchSize size = tools::batch_size(session, *batch, *seq);
  const runtime::Tensors inputs = tools::random_inputs(session, size, 20000);
  for (int i = 0; i < 3; ++i) session.run(inputs);
  const std::vector<tools::StepTime> steps =
      tools::profile_steps(session, inputs, size.batch, size.seq, 5);

  double weight_bytes = 0.0;
  for (const tools::StepTime& time : steps) weight_bytes += time.constant_bytes;
  std::vector<tools::RooflineRow> rows = tools::roofline(steps, peaks);
  tools::RooflineRow all = tools::sum_of(rows);
  all.time.name = "all";
  rows.push_back(all);

  fmt::print("\n{}: {:.0f} operations a byte of weights\n", shape,
             all.time.operations / std::max(1.0, weight_bytes));
  tools::Table table({"kernel", "op", "type", ">calls", ">ms", ">share", ">least ms", ">lost ms",
                      ">of the roofline", ">GOP/s", ">GB/s"});
  for (const tools::RooflineRow& row : rows) {
    const tools::KernelTime& t = row.time;
    table.add(
        {t.name, t.op, t.type.str(), fmt::format("{:g}", t.calls), fmt::format("{:.2f}", t.ms),
         fmt::format("{:.1f} %", 100 * t.ms / all.time.ms), fmt::format("{:.2f}", row.min_ms),
         fmt::format("{:.2f}", row.lost_ms()), fmt::format("{:.0f} %", 100 * row.min_ms / t.ms),
         t.operations > 0 ? fmt::format("{:.0f}", t.gops()) : "", fmt::format("{:.1f}", t.gbps())});
  }
  fmt::print("{}", table.str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  std::vector<std::string> shapes{"1x128"};
  tools::ModelOptions options;
  CLI::App program("Each kernel of a model compared with what the machine could do");
  program.add_option("MODEL", model, "ONNX file")->required();
  program.add_option("SHAPE", shapes, "BATCHxSEQ ...")->capture_default_str();
  tools::add_precision_option(program, options.precision,
                              "Float GEMMs, as `bertcl bench` has them");
  CLI11_PARSE(program, argc, argv);
  try {
    options.disabled_kernels = "persistent";  // each kernel is looked at alone
    runtime::Session session = tools::load_model(model, options);
    const tools::Peaks peaks = tools::measure_peaks(session.context());
    const std::string bf16 =
        peaks.bf16_gops > 0 ? fmt::format("bf16 {:.0f} GFLOP/s, ", peaks.bf16_gops) : "";
    fmt::print(
        "{} on {}: int8 {:.0f} GOP/s ({}), {}fp32 {:.0f} GFLOP/s, loads {:.1f} GB/s from memory, "
        "{:.0f} GB/s from cache\n",
        model, session.context().info().name, peaks.int8_gops, peaks.int8_kernel, bf16,
        peaks.f32_gops, peaks.memory_gbps, peaks.cache_gbps);
    for (const std::string& shape : shapes) print_shape(session, peaks, shape);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_roofline: {}\n", error.what());
    return 1;
  }
}
