// SPDX-License-Identifier: Apache-2.0
// Keys and header of the program cache.
#include "opencl/program/program_cache.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>

#include "bertcl/error.hpp"
#include "opencl/device/cpu_features.hpp"
#include "opencl/program/ptx.hpp"
#include "support/pending_file.hpp"

namespace bertcl::opencl {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kFormat = 2;  // raise when the header or the meaning of a payload changes
constexpr std::array<char, 8> kMagic = {'B', 'E', 'R', 'T', 'C', 'L', 'P', 'C'};
using Digest = std::array<unsigned char, 32>;

struct Header {
  std::array<char, 8> magic;
  uint32_t format;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  Digest digest;
};
static_assert(sizeof(Header) == 56, "the header has no padding");

Digest sha256(const void* data, size_t bytes) {
  Digest digest{};
  unsigned length = 0;
  if (EVP_Digest(data, bytes, digest.data(), &length, EVP_sha256(), nullptr) != 1)
    throw Error("OpenSSL cannot compute SHA-256");
  return digest;
}

/// Of the key, too: a file of another program under this name is as good as damaged.
Digest digest_of(const std::string& key, std::span<const std::byte> payload) {
  const Digest of_payload = sha256(payload.data(), payload.size());
  const std::string text = key + std::string(of_payload.begin(), of_payload.end());
  return sha256(text.data(), text.size());
}

/// Whether this is the name that PendingFile gives an entry until it is whole: KEY.PID.N.tmp.
bool is_temporary(std::string_view name) {
  constexpr size_t key = 2 * sizeof(Digest);
  return name.find_first_not_of("0123456789abcdef") == key && name[key] == '.' &&
         name.ends_with(".tmp");
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

fs::path choose_folder() {
  const std::string wanted = variable("BERTCL_CACHE");
  if (wanted == "off") return {};
  if (!wanted.empty()) return wanted;
  // By the XDG Base Directory Specification relative paths are ignored.
  if (const fs::path base = variable("XDG_CACHE_HOME"); base.is_absolute()) return base / "bertcl";
  if (const std::string home = variable("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "bertcl";
  return {};
}

// Fields with their lengths: two different lists never give the same text.
void add_field(std::string& text, std::string_view field) {
  text += fmt::format("{}:", field.size());
  text += field;
}

}  // namespace

ProgramCache::ProgramCache(const DeviceInfo& device)
    : folder_(choose_folder()), debug_(!variable("BERTCL_CACHE_DEBUG").empty()) {
  for (const std::string* field : {&device.platform, &device.platform_version, &device.name,
                                   &device.vendor, &device.version, &device.driver})
    add_field(device_identity_, *field);
  std::string instructions;
  if (device.is_cpu())
    for (const auto& [name, present] : cpu_features().list())
      if (present) instructions += (instructions.empty() ? "" : ",") + name;
  add_field(device_identity_, instructions);
  if (device.has_nvidia_driver()) add_field(device_identity_, fmt::format("PTX {}", kPtxFormat));
}

std::string ProgramCache::key(std::string_view source, std::string_view options) const {
  std::string text = fmt::format("bertcl program cache {};", kFormat);
  add_field(text, source);
  add_field(text, options);
  text += device_identity_;
  std::string hex;
  for (unsigned char byte : sha256(text.data(), text.size())) hex += fmt::format("{:02x}", byte);
  return hex;
}

void ProgramCache::report(std::string_view name, std::string_view what) const {
  if (debug_) std::fputs(fmt::format("program cache: {}: {}\n", name, what).c_str(), stderr);
}

std::optional<std::vector<std::byte>> ProgramCache::load(const std::string& key,
                                                         std::string_view name) const {
  if (!enabled()) return std::nullopt;
  const auto absent = [&](std::string_view why) {
    report(name, why);
    return std::nullopt;
  };
  std::ifstream stream(file(key), std::ios::binary);
  if (!stream) return absent("miss, no file");
  Header header{};
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof(header)))
    return absent("miss, the file is shorter than its header");
  if (header.magic != kMagic || header.format != kFormat || header.header_bytes != sizeof(Header))
    return absent("miss, the header has another format");
  // By the open file, not by its name: another process may rename a new file into place now.
  stream.seekg(0, std::ios::end);
  const auto bytes = static_cast<uint64_t>(stream.tellg());
  stream.seekg(sizeof(Header));
  if (!stream || bytes != sizeof(Header) + header.payload_bytes)
    return absent("miss, the file's length differs from its header");
  std::vector<std::byte> payload(header.payload_bytes);
  if (!stream.read(reinterpret_cast<char*>(payload.data()),
                   static_cast<std::streamsize>(payload.size())))
    return absent("miss, the file cannot be read");
  if (digest_of(key, payload) != header.digest) return absent("miss, the checksum is wrong");
  report(name, "hit");
  return payload;
}

void ProgramCache::store(const std::string& key, std::string_view name,
                         std::span<const std::byte> payload) const {
  if (!enabled()) return;
  try {
    fs::create_directories(folder_);
    remove_abandoned(folder_, is_temporary);
    PendingFile entry(file(key));
    const Header header{kMagic, kFormat, sizeof(Header), payload.size(), digest_of(key, payload)};
    entry.stream().write(reinterpret_cast<const char*>(&header), sizeof(header));
    entry.stream().write(reinterpret_cast<const char*>(payload.data()),
                         static_cast<std::streamsize>(payload.size()));
    entry.close();
    entry.commit();
    report(name, fmt::format("stored, {} bytes", payload.size()));
  } catch (const std::exception& error) {
    report(name, fmt::format("not stored, {}", error.what()));
  }
}

}  // namespace bertcl::opencl
