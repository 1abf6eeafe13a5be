// SPDX-License-Identifier: Apache-2.0
// Variants of products as measured on a device, as JSON.
#include "plan/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "bertcl/pending_file.hpp"
#include "kernels/variants.hpp"
#include "opencl/context.hpp"

namespace bertcl::plan {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 2;  // raise when the meaning of a field changes

TunedGemm tuned_gemm_of(const ordered_json& json) {
  TunedGemm product{json.at("op"), json.at("type"), json.at("n"), json.at("k"), {}};
  for (const ordered_json& row : json.at("by_rows"))
    product.by_rows.push_back(
        {row.at("rows"), row.at("variant"), row.at("us"), row.at("default_us")});
  const auto ascending = [](const TunedRows& a, const TunedRows& b) { return a.rows >= b.rows; };
  if (product.by_rows.empty() || std::adjacent_find(product.by_rows.begin(), product.by_rows.end(),
                                                    ascending) != product.by_rows.end())
    throw Error("by_rows is empty or not in ascending order");
  for (const TunedRows& row : product.by_rows)
    if (row.rows <= 0 || !(row.us > 0) || !(row.default_us > 0))
      throw Error("rows, us and default_us are numbers above 0");
  return product;
}

}  // namespace

double TunedGemm::gain() const {
  double sum = 0;
  for (const TunedRows& row : by_rows) sum += std::log(row.default_us / row.us);
  return std::exp(sum / static_cast<double>(by_rows.size()));
}

const TunedGemm* Tuning::find(std::string_view op, std::string_view type, std::int64_t n,
                              std::int64_t k) const {
  const auto found = std::find_if(products.begin(), products.end(), [&](const TunedGemm& p) {
    return p.op == op && p.type == type && p.n == n && p.k == k;
  });
  return found == products.end() ? nullptr : &*found;
}

void Tuning::put(TunedGemm product) {
  std::erase_if(products, [&](const TunedGemm& p) {
    return p.op == product.op && p.type == product.type && p.n == product.n && p.k == product.k;
  });
  products.push_back(std::move(product));
}

Tuning parse_tuning(const std::string& text) {
  try {
    const ordered_json json = ordered_json::parse(text);
    if (const int format = json.at("format"); format != kFormat)
      throw Error(fmt::format("it is of format {}, not {}", format, kFormat));
    Tuning tuning{json.at("device"), json.at("driver"), json.at("date"), {}};
    for (const ordered_json& product : json.at("products")) tuning.put(tuned_gemm_of(product));
    return tuning;
  } catch (const nlohmann::json::exception& error) {
    throw Error(error.what());
  }
}

void write_tuning(const std::filesystem::path& path, const Tuning& tuning) {
  ordered_json products = ordered_json::array();
  for (const TunedGemm& product : tuning.products) {
    ordered_json rows = ordered_json::array();
    for (const TunedRows& row : product.by_rows)
      rows.push_back({{"rows", row.rows},
                      {"variant", row.variant},
                      {"us", row.us},
                      {"default_us", row.default_us}});
    products.push_back({{"op", product.op},
                        {"type", product.type},
                        {"n", product.n},
                        {"k", product.k},
                        {"by_rows", std::move(rows)}});
  }
  const ordered_json json = {{"format", kFormat},
                             {"device", tuning.device},
                             {"driver", tuning.driver},
                             {"date", tuning.date},
                             {"products", std::move(products)}};
  std::error_code absent;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), absent);
  write_file(path, json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::filesystem::path tuning_file(const opencl::Context& context) {
  const char* wanted = std::getenv("BERTCL_TUNING");
  if (wanted && *wanted) return std::string_view(wanted) == "off" ? "" : wanted;
  return context.cache_file("tuning", kernels::gemm_programs());
}

Tuning stored_tuning(const opencl::Context& context, std::string& note) {
  const std::filesystem::path path = tuning_file(context);
  std::error_code absent;
  const auto status = std::filesystem::status(path, absent);
  if (path.empty() || !std::filesystem::exists(status)) return {};
  if (!std::filesystem::is_regular_file(status)) {  // a pipe would be waited for
    note = fmt::format("{} is not used: it is not a regular file", path.string());
    return {};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return {};
  try {
    return parse_tuning(std::string(std::istreambuf_iterator<char>(stream), {}));
  } catch (const Error& error) {
    note = fmt::format("{} is not used: {}; `bertcl tune` writes a new one", path.string(),
                       error.what());
    return {};
  }
}

}  // namespace bertcl::plan
