// SPDX-License-Identifier: Apache-2.0
// What the plug-in exports, and the factory that ONNX Runtime gets by it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnxruntime_ep/options.hpp"
#include "onnxruntime_ep/ort.hpp"
#include "onnxruntime_ep/provider.hpp"
#include "onnxruntime_ep/slots.hpp"
#include "opencl/device/device.hpp"
#include "support/lower_case.hpp"

namespace bertcl::onnxruntime_ep {
namespace {

constexpr const char* kDeviceKey = "opencl_device";  // in the metadata of a device: its index

/// The OpenCL device that stands for each device of the machine; null: there is none. GPUs
/// are paired in their order. Where nothing is paired, the first OpenCL device stands for each.
std::vector<const opencl::DeviceInfo*> match(const std::vector<OrtHardwareDeviceType>& machine,
                                             const std::vector<opencl::DeviceInfo>& devices) {
  std::map<std::string, std::vector<const opencl::DeviceInfo*>> by_type;
  for (const opencl::DeviceInfo& device : devices) by_type[device.type].push_back(&device);
  std::vector<const opencl::DeviceInfo*> result;
  std::size_t gpus = 0;
  for (const OrtHardwareDeviceType type : machine) {
    const opencl::DeviceInfo*& found = result.emplace_back(nullptr);
    if (type == OrtHardwareDeviceType_GPU && gpus < by_type["gpu"].size())
      found = by_type["gpu"][gpus++];
    if (type == OrtHardwareDeviceType_CPU && !by_type["cpu"].empty())
      found = by_type["cpu"].front();
  }
  if (std::ranges::all_of(result, [](const auto* device) { return !device; }) && !devices.empty())
    for (std::size_t i = 0; i < machine.size(); ++i)
      if (machine[i] == OrtHardwareDeviceType_CPU) result[i] = &devices.front();
  return result;
}

using Pairs = std::unique_ptr<OrtKeyValuePairs, decltype(OrtApi::ReleaseKeyValuePairs)>;

struct Factory : OrtEpFactory {
  Factory(const Ort& o, const OrtLogger* l);

  void list(const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** ep_devices,
            size_t max, size_t* made_count);
  OrtEp* create(const OrtKeyValuePairs* const* metadata, size_t count,
                const OrtSessionOptions* session, const OrtLogger* session_logger) const;

  Ort ort;
  const OrtLogger* logger;
};

void Factory::list(const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** ep_devices,
                   size_t max, size_t* made_count) {
  *made_count = 0;
  std::vector<opencl::DeviceInfo> opencl_devices;
  try {
    opencl_devices = opencl::list_devices();
  } catch (const Error& error) {
    ort.log(logger, ORT_LOGGING_LEVEL_WARNING, error.what());
    return;
  }
  std::vector<OrtHardwareDeviceType> types;
  for (size_t i = 0; i < count; ++i) types.push_back(ort.api.HardwareDevice_Type(devices[i]));
  const auto matched = match(types, opencl_devices);
  for (size_t i = 0; i < count && *made_count < max; ++i) {
    if (!matched[i]) continue;
    OrtKeyValuePairs* pairs = nullptr;
    ort.api.CreateKeyValuePairs(&pairs);
    const Pairs metadata(pairs, ort.api.ReleaseKeyValuePairs);
    ort.api.AddKeyValuePair(pairs, kDeviceKey, std::to_string(matched[i]->index).c_str());
    ort.api.AddKeyValuePair(pairs, "opencl_name", matched[i]->name.c_str());
    ort.api.AddKeyValuePair(pairs, "opencl_platform", matched[i]->platform.c_str());
    ort.check(ort.ep.CreateEpDevice(this, devices[i], pairs, nullptr, &ep_devices[*made_count]));
    ++*made_count;
  }
}

OrtEp* Factory::create(const OrtKeyValuePairs* const* metadata, size_t count,
                       const OrtSessionOptions* session, const OrtLogger* session_logger) const {
  if (count != 1)
    throw Error(fmt::format(
        "bertcl runs on one device per session, got {}; create a session for each", count));
  OrtKeyValuePairs* entries = nullptr;
  ort.check(ort.api.GetSessionOptionsConfigEntries(session, &entries));
  const Pairs owned(entries, ort.api.ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t entry_count = 0;
  ort.api.GetKeyValuePairs(entries, &keys, &values, &entry_count);
  const std::string prefix = "ep." + lower_case(kProvider) + ".";
  std::map<std::string, std::string> given;
  for (size_t i = 0; i < entry_count; ++i) {
    const std::string key = keys[i];
    if (key == "ep.context_enable" && std::string_view(values[i]) == "1")
      throw Error(
          "EPContext models are not supported: do not use ModelCompiler or the session option "
          "ep.context_enable",
          ErrorCode::unsupported);
    if (key.starts_with(prefix)) given.emplace(key.substr(prefix.size()), values[i]);
  }
  runtime::SessionOptions options = read_options(given);
  if (options.device.empty())
    if (const char* index = ort.api.GetKeyValue(metadata[0], kDeviceKey)) options.device = index;
  opencl::select_device(options.device);  // refused here, with the list of devices
  return make_provider(ort, session_logger, std::move(options));
}

Factory::Factory(const Ort& o, const OrtLogger* l) : OrtEpFactory{}, ort(o), logger(l) {
  ort_version_supported = kOrtVersion;
  GetName = [](const OrtEpFactory*) noexcept { return kProvider; };
  GetVendor = [](const OrtEpFactory*) noexcept { return "bertcl"; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return uint32_t{0}; };
  GetVersion = [](const OrtEpFactory*) noexcept { return BERTCL_VERSION; };
  GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                           size_t count, OrtEpDevice** ep_devices, size_t max,
                           size_t* made_count) noexcept {
    Factory& factory = *static_cast<Factory*>(self);
    return factory.ort.guard([&] { factory.list(devices, count, ep_devices, max, made_count); });
  };
  CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*,
                const OrtKeyValuePairs* const* metadata, size_t count,
                const OrtSessionOptions* session, const OrtLogger* session_logger,
                OrtEp** provider) noexcept {
    Factory& factory = *static_cast<Factory*>(self);
    *provider = nullptr;
    return factory.ort.guard(
        [&] { *provider = factory.create(metadata, count, session, session_logger); });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* provider) noexcept { release_provider(provider); };
  ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory*, const OrtHardwareDevice* const*,
                                              size_t, const char*,
                                              OrtCompiledModelCompatibility* found) noexcept {
    *found = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    return static_cast<OrtStatus*>(nullptr);
  };
  // Inputs and outputs are in host memory.
  CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                       OrtAllocator** allocator) noexcept {
    *allocator = nullptr;
    return static_cast<OrtStatus*>(nullptr);
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept {
    *transfer = nullptr;
    return static_cast<OrtStatus*>(nullptr);
  };
  IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
  CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                 OrtSyncStreamImpl** stream) noexcept {
    *stream = nullptr;
    return static_cast<OrtStatus*>(nullptr);
  };
}

}  // namespace
}  // namespace bertcl::onnxruntime_ep

extern "C" {

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(
    const char*, const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories,
    size_t max, size_t* count) noexcept {
  using namespace bertcl::onnxruntime_ep;
  *count = 0;
  const OrtApi* api = base->GetApi(kOrtVersion);
  if (!api) {
    // CreateStatus is the first member of every version.
    const OrtApi* oldest = base->GetApi(1);
    return oldest ? oldest->CreateStatus(ORT_FAIL, "bertcl needs ONNX Runtime 1.23 or newer")
                  : nullptr;
  }
  const OrtEpApi* ep = api->GetEpApi();
  if (max < 1 || !ep)
    return api->CreateStatus(ORT_INVALID_ARGUMENT,
                             "bertcl: max_factories is 0, or ONNX Runtime has no EP API");
  int minor = 0;
  const bool is_24 = std::sscanf(base->GetVersionString(), "1.%d", &minor) == 1 && minor >= 24;
  const Ort ort{*api, *ep, is_24};
  return ort.guard([&] {
    factories[0] = std::make_unique<Factory>(ort, logger).release();
    *count = 1;
  });
}

// Not deleted: sessions may outlive the registration of the library, and use it.
__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory*) noexcept {
  return nullptr;
}

}  // extern "C"
