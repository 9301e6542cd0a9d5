// SPDX-License-Identifier: Apache-2.0
// The serial model: what every element is before an operation, and must be after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/property.h"

namespace shoal::comm::property {

/// An element as small integers that every type holds exactly: a value, and the imaginary part or the
/// location where the type has one.
struct Element {
  std::int64_t value = 0;
  std::int64_t second = 0;
};

/// Element i that `rank` contributes to a step.
Element element(const Step& step, Rank rank, std::int64_t i);
Element combine(const Step& step, Element a, Element b);
/// What exclusive_scan gives to rank 0.
void append_identity(const Step& step, std::vector<std::byte>& bytes);
/// As the C++ type of step.dtype has it.
void append(DType dtype, Element element, std::vector<std::byte>& bytes);

/// A result without what the type leaves open: the sign of zeros of complex numbers, and padding.
void normalise(DType dtype, std::vector<std::byte>& bytes);

/// counts[r] of each rank.
std::vector<std::int64_t> counts(const Step& step, int ranks);
/// What a rank `from` sends to `to` in all_to_all.
std::int64_t all_to_all_count(const Step& step, int ranks, Rank from, Rank to);

/// What this rank passes in, and what it must have afterwards (empty where the pattern gives it nothing).
struct Buffers {
  std::vector<std::byte> in, out, expected;
};
Buffers make_buffers(const Step& step, int ranks, Rank me);

}  // namespace shoal::comm::property
