// SPDX-License-Identifier: Apache-2.0
// Tables of sizes in device memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace bertcl::runtime {

/// The tables that steps of a plan read (plan::SizeTable), in the order of the steps' arguments.
/// They stay where they are; their numbers are those of the last write().
class SizeTables {
 public:
  explicit SizeTables(const plan::Plan& plan);
  /// Queues the transfer of their numbers for these sizes. Earlier ones are there: they are read
  /// from here until then.
  void write(const ir::Bindings& sizes);
  const opencl::Buffer& buffer(std::size_t table) const { return buffers_[table]; }
  /// Its address in kernels, of a plan with a persistent kernel.
  std::uint64_t address(std::size_t table) const { return address_ + offsets_[table]; }

 private:
  const plan::Plan& plan_;
  std::vector<std::int32_t> numbers_;  // of all tables
  std::vector<std::size_t> offsets_;   // of each, in bytes
  opencl::Buffer shared_;              // holds all of them where views may overlap
  std::uint64_t address_ = 0;
  std::vector<opencl::Buffer> buffers_;
};

}  // namespace bertcl::runtime
