// SPDX-License-Identifier: Apache-2.0
// Measured GEMM variants, as JSON.
#include "plan/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "bertcl/error.hpp"
#include "kernels/variants.hpp"
#include "opencl/context.hpp"
#include "support/json_reason.hpp"
#include "support/json_text.hpp"
#include "support/pending_file.hpp"
#include "support/read_bytes.hpp"

namespace bertcl::plan {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 4;  // raise when the meaning of a field, or the name of a variant, changes

TunedGemm tuned_gemm_of(const ordered_json& json) {
  TunedGemm gemm{json.at("op"), json.at("type"), json.at("n"), json.at("k"), {}};
  for (const ordered_json& row : json.at("by_rows"))
    gemm.by_rows.push_back({row.at("rows"), row.at("variant"), row.at("us"), row.at("default_us")});
  const auto ascending = [](const TunedRows& a, const TunedRows& b) { return a.rows >= b.rows; };
  if (gemm.by_rows.empty() ||
      std::ranges::adjacent_find(gemm.by_rows, ascending) != gemm.by_rows.end())
    throw Error("by_rows is empty or not in ascending order");
  for (const TunedRows& row : gemm.by_rows)
    if (row.rows <= 0 || !(row.us > 0) || !(row.default_us > 0))
      throw Error("rows, us and default_us must be positive");
  return gemm;
}

/// Throws Error if it was measured on another device or driver. An empty name fits all.
void check_device(const Tuning& tuning, const opencl::DeviceInfo& info) {
  const auto fits = [](const std::string& name, const std::string& own) {
    return name.empty() || name == own;
  };
  if (!fits(tuning.device, info.name) || !fits(tuning.driver, info.driver))
    throw Error(
        fmt::format("it was measured on '{}' (driver '{}'); this device is '{}' (driver '{}')",
                    tuning.device, tuning.driver, info.name, info.driver));
}

/// Null where the file is that of the cache.
const char* named_by_user() {
  const char* wanted = std::getenv("BERTCL_TUNING");
  return wanted && *wanted ? wanted : nullptr;
}

}  // namespace

double TunedGemm::gain() const {
  double sum = 0;
  for (const TunedRows& row : by_rows) sum += std::log(row.default_us / row.us);
  return std::exp(sum / static_cast<double>(by_rows.size()));
}

const TunedGemm* Tuning::find(std::string_view op, std::string_view type, std::int64_t n,
                              std::int64_t k) const {
  const auto found = std::ranges::find_if(gemms, [&](const TunedGemm& p) {
    return p.op == op && p.type == type && p.n == n && p.k == k;
  });
  return found == gemms.end() ? nullptr : &*found;
}

void Tuning::erase(std::string_view op, std::string_view type, std::int64_t n, std::int64_t k) {
  std::erase_if(gemms, [&](const TunedGemm& p) {
    return p.op == op && p.type == type && p.n == n && p.k == k;
  });
}

void Tuning::put(TunedGemm gemm) {
  erase(gemm.op, gemm.type, gemm.n, gemm.k);
  gemms.push_back(std::move(gemm));
}

Tuning parse_tuning(const std::string& text) {
  try {
    const ordered_json json = ordered_json::parse(text);
    if (const int format = json.at("format"); format != kFormat)
      throw Error(fmt::format("it has format {}, expected {}", format, kFormat));
    Tuning tuning{json.at("device"), json.at("driver"), json.at("date"), {}};
    for (const ordered_json& gemm : json.at("gemms")) tuning.put(tuned_gemm_of(gemm));
    return tuning;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(fmt::format("it is damaged (byte {} of {})", std::min(error.byte, text.size()),
                            text.size()));
  } catch (const nlohmann::json::exception& error) {
    throw Error(std::string(json_reason(error.what())));
  }
}

void write_tuning(const std::filesystem::path& path, const Tuning& tuning) {
  ordered_json gemms = ordered_json::array();
  for (const TunedGemm& gemm : tuning.gemms) {
    ordered_json rows = ordered_json::array();
    for (const TunedRows& row : gemm.by_rows)
      rows.push_back({{"rows", row.rows},
                      {"variant", row.variant},
                      {"us", row.us},
                      {"default_us", row.default_us}});
    gemms.push_back({{"op", gemm.op},
                     {"type", gemm.type},
                     {"n", gemm.n},
                     {"k", gemm.k},
                     {"by_rows", std::move(rows)}});
  }
  const ordered_json json = {{"format", kFormat},
                             {"device", tuning.device},
                             {"driver", tuning.driver},
                             {"date", tuning.date},
                             {"gemms", std::move(gemms)}};
  std::error_code absent;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), absent);
  write_file(path, json_text(json, 1) + "\n");
}

std::filesystem::path tuning_file(const opencl::Context& context) {
  if (const char* wanted = named_by_user()) return std::string_view(wanted) == "off" ? "" : wanted;
  return context.cache_file("tuning", kernels::gemm_programs());
}

void check_tuning_file(const std::filesystem::path& path) {
  std::error_code absent;
  // The one in the cache is bertcl's own, also where it is damaged.
  if (!named_by_user() || !std::filesystem::is_regular_file(path, absent)) return;
  std::ifstream stream(path, std::ios::binary);
  const std::string text = read_all(stream);
  if (!stream.is_open() || stream.bad())
    throw Error(fmt::format(
        "BERTCL_TUNING names {}, which cannot be read; make it readable or name another file",
        path.string()));
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (text.empty() || (json.is_object() && json.contains("format") && json.contains("gemms")))
    return;
  throw Error(fmt::format(
      "BERTCL_TUNING names {}, which is not a tuning file; remove it or name another file",
      path.string()));
}

Tuning stored_tuning(const opencl::Context& context, std::string& note) {
  const std::filesystem::path path = tuning_file(context);
  std::error_code absent;
  const auto status = std::filesystem::status(path, absent);
  if (path.empty()) return {};
  if (!std::filesystem::exists(status)) {
    if (named_by_user())
      note = fmt::format("BERTCL_TUNING names {}, which does not exist; `bertcl tune` writes it",
                         path.string());
    return {};
  }
  if (!std::filesystem::is_regular_file(status)) {  // a pipe would be waited for
    note = fmt::format("{} is not used: it is not a regular file", path.string());
    return {};
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string text = read_all(stream);
  if (!stream.is_open() || stream.bad()) {
    note = fmt::format("{} is not used: it cannot be read", path.string());
    return {};
  }
  try {
    Tuning tuning = parse_tuning(text);
    check_device(tuning, context.info());
    return tuning;
  } catch (const Error& error) {
    note = fmt::format("{} is not used: {}; remove it, and `bertcl tune` writes a new one",
                       path.string(), error.what());
    return {};
  }
}

}  // namespace bertcl::plan
