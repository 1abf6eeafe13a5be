// SPDX-License-Identifier: Apache-2.0
// Launches of kernels that take elements one by one, `chunk` of them for each work-item.
#pragma once
#include <string>
#include <utility>

#include "plan/builder.hpp"
#include "plan/strided.hpp"

namespace bertcl::plan {

/// Launches `kernel` for `count` elements, and sets the arguments count and chunk.
template <template <class> class Contract>
Step& launch_elements(Builder& b, const ir::Node& node, Arithmetic type, std::string variant,
                      opencl::Kernel kernel, Contract<Argument> arguments, const ir::Dim& count,
                      std::int32_t chunk) {
  arguments.count = SizeExpr{count};
  arguments.chunk = chunk;
  return b.launch(node, type, std::move(variant), std::move(kernel), arguments,
                  {SizeExpr{count, chunk}, SizeExpr{}, SizeExpr{}});
}

/// The same for the elements of `view`; sets the arguments shape and rank too.
template <template <class> class Contract>
Step& launch_strided(Builder& b, const ir::Node& node, Arithmetic type, std::string variant,
                     opencl::Kernel kernel, Contract<Argument> arguments, const View& view) {
  arguments.shape = table_of(view);
  arguments.rank = static_cast<std::int32_t>(view.extents.size());
  return launch_elements(b, node, type, std::move(variant), std::move(kernel), std::move(arguments),
                         element_count(view.extents), b.chunk());
}

}  // namespace bertcl::plan
