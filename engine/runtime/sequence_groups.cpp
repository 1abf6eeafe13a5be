// SPDX-License-Identifier: Apache-2.0
// Any sequences in as many runs as the model needs for them.
#include "runtime/sequence_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "runtime/sequences.hpp"

namespace bertcl::runtime {
namespace {

using Group = std::vector<std::size_t>;  // of sequences

std::size_t tokens_of(const Sequences& all, std::size_t i) {
  return static_cast<std::size_t>(all.offsets[i + 1] - all.offsets[i]);
}

std::vector<Group> groups_of(const plan::Plan& plan, const Sequences& all, bool pads) {
  const bool by_length = pads && !ignores_padding(plan);
  std::map<std::size_t, Group> of_length;
  for (std::size_t i = 0; i + 1 < all.offsets.size(); ++i)
    of_length[by_length ? tokens_of(all, i) : 0].push_back(i);
  const ir::Dim& batch = ids_of(plan).type.shape[0];
  std::vector<Group> groups;
  for (const auto& [length, members] : of_length) {
    const std::size_t most =
        batch.is_constant() ? static_cast<std::size_t>(std::max<std::int64_t>(1, batch.constant()))
                            : members.size();
    for (std::size_t begin = 0; begin < members.size(); begin += most) {
      const std::size_t end = std::min(begin + most, members.size());
      groups.emplace_back(members.begin() + static_cast<std::ptrdiff_t>(begin),
                          members.begin() + static_cast<std::ptrdiff_t>(end));
      if (batch.is_constant()) groups.back().resize(most, members[end - 1]);
    }
  }
  return groups;
}

/// Runs those of the group alone.
Tensors run_group(const Sequences& all, const Group& group, const RunSequences& run) {
  std::vector<std::int64_t> ids, types, offsets{0};
  for (const std::size_t i : group) {
    const auto begin = static_cast<std::size_t>(all.offsets[i]);
    const auto own_ids = all.ids.subspan(begin, tokens_of(all, i));
    ids.insert(ids.end(), own_ids.begin(), own_ids.end());
    if (!all.token_type_ids.empty()) {
      const auto own_types = all.token_type_ids.subspan(begin, tokens_of(all, i));
      types.insert(types.end(), own_types.begin(), own_types.end());
    }
    offsets.push_back(std::ssize(ids));
  }
  return run({ids, types, offsets});
}

/// The rows of an output of a group at their places among those of all.
class Gatherer {
 public:
  Gatherer(const plan::Plan& plan, const Sequences& all, std::size_t runs)
      : plan_(plan), all_(all), runs_(runs) {}

  void add(const Group& group, const Tensors& made) {
    for (std::size_t o = 0; o < plan_.outputs.size(); ++o)
      if (const auto found = made.find(plan_.outputs[o].name); found != made.end())
        add(group, o, found->second);
  }
  Tensors take() { return std::move(gathered_); }

 private:
  void add(const Group& group, std::size_t output, const ir::Tensor& made) {
    const std::string& name = plan_.outputs[output].name;
    const ir::Shape& shape = plan_.model_outputs[output].type.shape;
    const auto known = gathered_.find(name);
    const bool has_rows = !shape.empty() && shape[0] == ids_of(plan_).type.shape[0];
    if (plan_.outputs[output].slot < 0 || (!has_rows && runs_ == 1))
      return void(gathered_.emplace(name, made));
    if (!has_rows)
      throw Error(fmt::format("output '{}' {} has no batch axis, so the several runs that these "
                              "sequences need cannot be combined; request other outputs by name",
                              name, ir::str(shape)),
                  ErrorCode::unsupported);
    const bool of_tokens = has_padding(plan_, output);
    ir::Sizes sizes = made.shape();
    sizes[0] = of_tokens ? all_.offsets.back() : std::ssize(all_.offsets) - 1;
    if (known != gathered_.end() && known->second.shape() != sizes)
      throw Error(fmt::format("output '{}' has shape [{}] for some of the sequences and [{}] for "
                              "others; run those of one length together",
                              name, fmt::join(known->second.shape(), ", "), fmt::join(sizes, ", ")),
                  ErrorCode::unsupported);
    ir::Tensor& to =
        known != gathered_.end()
            ? known->second
            : gathered_.emplace(name, ir::Tensor::zeros(made.dtype(), sizes)).first->second;
    const std::span<std::byte> rows = to.mutable_bytes();
    const std::size_t row =
        made.bytes().size() / static_cast<std::size_t>(std::max<std::int64_t>(1, made.shape()[0]));
    std::span<const std::byte> from = made.bytes();
    for (const std::size_t i : group) {
      const std::size_t first = of_tokens ? static_cast<std::size_t>(all_.offsets[i]) : i;
      const std::size_t bytes = row * (of_tokens ? tokens_of(all_, i) : 1);
      std::ranges::copy(from.first(bytes), rows.subspan(first * row, bytes).begin());
      from = from.subspan(bytes);
    }
  }

  const plan::Plan& plan_;
  const Sequences& all_;
  const std::size_t runs_;
  Tensors gathered_;
};

}  // namespace

Tensors run_in_groups(const plan::Plan& plan, const Sequences& sequences, bool pads,
                      const RunSequences& run) {
  check(sequences);
  const std::vector<Group> groups = groups_of(plan, sequences, pads);
  if (groups.size() == 1 && groups[0].size() + 1 == sequences.offsets.size()) return run(sequences);
  Gatherer gatherer(plan, sequences, groups.size());
  for (const Group& group : groups) gatherer.add(group, run_group(sequences, group, run));
  return gatherer.take();
}

}  // namespace bertcl::runtime
