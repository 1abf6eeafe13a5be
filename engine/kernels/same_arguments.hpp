// SPDX-License-Identifier: Apache-2.0
// Arguments that two kernels have in common.
#pragma once

namespace bertcl::kernels {

/// `to` with each argument that `from` has by the same name; it replaces what `to` has there.
template <template <class> class To, template <class> class From, class A>
To<A> with_same_arguments(To<A> to, const From<A>& from) {
  for (const auto& field : To<A>::fields)
    for (const auto& same : From<A>::fields)
      if (field.name == same.name) to.*field.member = from.*same.member;
  return to;
}

}  // namespace bertcl::kernels
