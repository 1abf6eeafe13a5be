// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl bench --html`, and the roofline that it draws.
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "page_checks.hpp"
#include "program_runner.hpp"
#include "runtime/session.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tools/measure/roofline.hpp"
#include "tools/report/roofline_figure.hpp"

namespace bertcl::tools {
namespace {

using plan::Arithmetic;
using tests::count;

const Peaks kPeaks{.int8_kernel = "peak_vpdpbusd",
                   .int8_gops = 1000,
                   .f32_gops = 200,
                   .memory_gbps = 20,
                   .cache_gbps = 400,
                   .bf16_gops = 0};

StepTime step(const std::string& name, Arithmetic type, double ms, double operations, double bytes,
              double constant_bytes) {
  StepTime time;
  time.name = name;
  time.op = "op";
  time.type = type;
  time.calls = 1;
  time.ms = ms;
  time.operations = operations;
  time.bytes = bytes;
  time.constant_bytes = constant_bytes;
  return time;
}

TEST(Roofline, TheLeastTimeIsThatOfArithmeticOrOfBytes) {
  const std::vector<RooflineRow> rows =
      roofline({step("arithmetic", Arithmetic::int8, 3, 2e9, 1e6, 0),  // 2 ms at 1000 GOP/s
                step("floats", Arithmetic::bf16, 20, 2e9, 1e6, 0),     // no bf16: 10 ms at 200
                step("weights", Arithmetic::int8, 9, 1e3, 1e8, 1e8),   // 5 ms from memory
                step("activations", Arithmetic::copy, 1, 0, 1e7, 0)},  // 0.025 ms from cache
               kPeaks);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].time.name, "floats") << "it loses most";
  const std::map<std::string, double> least = {
      {"arithmetic", 2}, {"floats", 10}, {"weights", 5}, {"activations", 0.025}};
  for (const RooflineRow& row : rows)
    EXPECT_NEAR(row.min_ms, least.at(row.time.name), 1e-9) << row.time.name;
  EXPECT_NEAR(sum_of(rows).time.ms, 33, 1e-9);
  EXPECT_NEAR(sum_of(rows).min_ms, 17.025, 1e-9);
}

// And other kernels of a linear not by numbers of another meaning.
TEST(Roofline, GemmsAreNamedByTheirSizes) {
  const runtime::Session session = runtime::Session::compile(ir::parse(R"(graph g(%x: u8[m, 16]) {
    const %w: i8[16, 48] = splat 1  const %s: f32[] = splat 0.5  const %z: i8[48] = splat 1
    %y: f32[m, 48] = linear_q(%x, %w, _, %s, _, %s, _, _, %z)
    return %y
  })"));
  std::vector<StepTime> times;
  for (const plan::Step& of : session.plan().steps) {
    times.push_back(step(of.kernel.name(), Arithmetic::int8, 1, 1, 1, 0));
    times.back().step = &of;
  }
  std::set<std::string> names;
  for (const RooflineRow& row : roofline(times, kPeaks)) names.insert(row.time.name);
  EXPECT_THAT(names, ElementsAre("gemm_s8 48x16", "row_sums"));
}

TEST(LogAxis, HoldsItsValuesInWholeDecades) {
  const LogAxis axis(0.3, 42, 100, 400);
  EXPECT_EQ(axis.first_exponent(), -1);
  EXPECT_EQ(axis.last_exponent(), 2);
  EXPECT_DOUBLE_EQ(axis.at(0.1), 100);
  EXPECT_DOUBLE_EQ(axis.at(10), 300);
  const LogAxis one(10, 10, 0, 1);
  EXPECT_LT(one.first_exponent(), one.last_exponent()) << "an axis of one value has a length";
}

TEST(RooflineFigure, HasAPointForEachKernelThatCountsOperations) {
  const std::string svg = roofline_svg(roofline({step("a", Arithmetic::int8, 3, 2e9, 1e6, 0),
                                                 step("b", Arithmetic::fp32, 3, 2e8, 1e6, 0),
                                                 step("c", Arithmetic::copy, 1, 0, 1e7, 0)},
                                                kPeaks),
                                       kPeaks);
  EXPECT_EQ(count(svg, "<circle"), 2u);
  for (const char* roof : {"int8 1000 GOP/s", "fp32 200 GOP/s", "memory 20 GB/s", "cache 400 GB/s"})
    EXPECT_THAT(svg, HasSubstr(roof));
  EXPECT_THAT(svg, Not(HasSubstr("bf16")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(roofline_svg(roofline({step("c", Arithmetic::copy, 1, 0, 1e7, 0)}, kPeaks), kPeaks),
            "");
}

/// Where the text that holds `words` begins, by "translate(x y)" or by x and y.
std::pair<double, double> place_of(const std::string& svg, const std::string& words) {
  const auto begin = svg.rfind("<text", svg.find(words));
  const std::string tag = svg.substr(begin, svg.find('>', begin) - begin);
  const auto number = [&](const char* before) {
    const auto at = tag.find(before);
    return std::stod(tag.substr(at + std::string_view(before).size()));
  };
  if (const auto at = tag.find("translate("); at != std::string::npos)
    return {number("translate("), std::stod(tag.substr(tag.find(' ', at)))};
  return {number("x=\""), number("y=\"")};
}

TEST(RooflineFigure, NamesStandApartWhereSlopesAreCloseAndPointsUnderTheRoof) {
  Peaks near = kPeaks;
  near.cache_gbps = 1.3 * near.memory_gbps;
  const std::string svg = roofline_svg(roofline({step("a", Arithmetic::int8, 2.4, 2e9, 2e7, 0),
                                                 step("b", Arithmetic::int8, 30, 2e9, 4e8, 0)},
                                                near),
                                       near);
  const auto memory = place_of(svg, "memory 20 GB/s"), cache = place_of(svg, "cache 26 GB/s");
  EXPECT_GT(memory.second, cache.second + 15);
  const auto circle = svg.find("cy=\"");
  EXPECT_LT(place_of(svg, "int8 1000 GOP/s").second, std::stod(svg.substr(circle + 4)) - 5);
}

TEST(RooflineFigure, HasSlopesWhereAllKernelsAreToTheRightOfThem) {
  const std::string svg =
      roofline_svg(roofline({step("a", Arithmetic::int8, 2.4, 2e9, 2e7, 0)}, kPeaks), kPeaks);
  for (const char* slope : {"memory 20 GB/s", "cache 400 GB/s"}) {
    EXPECT_GT(place_of(svg, slope).first, 0) << slope;
    EXPECT_GT(place_of(svg, slope).second, 0) << slope;
    EXPECT_LT(place_of(svg, slope).second, 300) << slope;
  }
}

using BenchPageTest = tests::FolderTest;

TEST_F(BenchPageTest, FiguresAreThoseOfTheJson) {
  succeeded(tests::run_bertcl({"bench", tests::kModel, "--seq", "16", "--runs", "3", "--profiled",
                               "1", "--html", path("b.html"), "--json", path("b.json")}));
  const std::string page = read(path("b.html"));
  tests::expect_page(page);
  const nlohmann::json report = read_json(path("b.json"));
  const auto& rows = report.at("roofline");
  EXPECT_EQ(count(page, "<th role=\"rowheader\" scope=\"row\" data-label=\"kernel\">"),
            rows.size());
  std::size_t counted = 0;
  double ms = 0, kernels_ms = 0;
  for (const auto& row : rows) {
    EXPECT_THAT(page, HasSubstr(row.at("name").get<std::string>()));
    counted += row.at("operations").get<double>() > 0;
    ms += row.at("ms").get<double>();
    EXPECT_GT(row.at("least_ms").get<double>(), 0.0);
  }
  for (const auto& kernel : report.at("rows").at(0).at("kernels"))
    kernels_ms += kernel.at("ms").get<double>();
  EXPECT_NEAR(ms, kernels_ms, 1e-6) << "the same runs, summed up otherwise";
  EXPECT_EQ(count(page, "<circle"), counted);
  EXPECT_GT(report.at("peaks").at("f32_gops").get<double>(), 0.0);
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.2f ms",
                report.at("rows").at(0).at("latency_ms").at("p50").get<double>());
  EXPECT_THAT(page, HasSubstr(shown));
}

}  // namespace
}  // namespace bertcl::tools
