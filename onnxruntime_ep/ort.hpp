// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's C interface: its tables, and their failures from and to exceptions.
#pragma once
#ifdef BERTCL_ORT_HEADERS
#include <onnxruntime_c_api.h>
#else
#include "onnxruntime_ep/declarations.hpp"
#endif

#include <exception>
#include <new>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl::onnxruntime_ep {

/// The version of the tables: the first in which a plug-in can compile. Newer libraries have it,
/// too.
inline constexpr uint32_t kOrtVersion = 23;
inline constexpr const char* kProvider = "BertclExecutionProvider";

/// The tables of the library that loaded the plug-in.
struct Ort {
  const OrtApi& api;
  const OrtEpApi& ep;
  /// Whether the table has what came with 1.24.
  bool is_24 = false;

  /// Throws Error with the message of a failure.
  void check(OrtStatus* status) const {
    if (!status) return;
    std::string message = api.GetErrorMessage(status);
    api.ReleaseStatus(status);
    throw Error("ONNX Runtime: " + message, ErrorCode::internal);
  }
  OrtStatus* status(ErrorCode code, const std::string& message) const noexcept {
    const OrtErrorCode as = code == ErrorCode::invalid_argument ? ORT_INVALID_ARGUMENT
                            : code == ErrorCode::unsupported    ? ORT_NOT_IMPLEMENTED
                                                                : ORT_FAIL;
    return api.CreateStatus(as, message.c_str());
  }
  /// Runs `work`; what it throws becomes a status, since exceptions must not cross the boundary.
  template <class Work>
  OrtStatus* guard(const Work& work) const noexcept {
    try {
      work();
      return nullptr;
    } catch (const Error& error) {
      return status(error.code(), error.what());
    } catch (const std::bad_alloc&) {
      return api.CreateStatus(ORT_FAIL, "out of memory");
    } catch (const std::exception& error) {
      return api.CreateStatus(ORT_FAIL, error.what());
    } catch (...) {
      return api.CreateStatus(ORT_FAIL, "unknown exception");
    }
  }

  void log(const OrtLogger* logger, OrtLoggingLevel level, const std::string& message) const {
    if (logger)
      check(api.Logger_LogMessage(logger, level, message.c_str(), "bertcl", 0, kProvider));
  }
};

}  // namespace bertcl::onnxruntime_ep
