// SPDX-License-Identifier: Apache-2.0
// MinMax: the range is from the smallest to the largest value seen.
#include "quant/device_range.hpp"
#include "quant/observer.hpp"

namespace bertcl::quant {
namespace {

class MinMaxObserver final : public Observer {
 public:
  MinMaxObserver(opencl::Context& context, const std::string& tensor) : range_(context, tensor) {}
  void observe(const opencl::Buffer& values, std::size_t count) override {
    range_.join(values, count);
  }
  Range range() override {
    const Extent e = range_.read();
    return {e.low, e.high};
  }

 private:
  DeviceRange range_;
};

}  // namespace

const Method minmax{"minmax", "smallest to largest value seen",
                    [](opencl::Context& context, const MethodOptions&,
                       const std::string& tensor) -> std::unique_ptr<Observer> {
                      return std::make_unique<MinMaxObserver>(context, tensor);
                    }};

}  // namespace bertcl::quant
