// SPDX-License-Identifier: Apache-2.0
#include "comm/property_model.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>

#include "shoal/base/random_bits.h"

namespace shoal::comm::property {
namespace {

bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }
bool is_located(DType dtype) { return dtype >= DType::located_int32; }

template <class T>
void append_bytes(const T& value, std::vector<std::byte>& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

template <class T>
void append_located(Element e, std::vector<std::byte>& bytes) {
  append_bytes(Located<T>{static_cast<T>(e.value), e.second}, bytes);
}

template <class T>
void unsign_zeros(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    value += T(0);  // -0 + 0 = 0
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

template <class T>
void append_limit(bool highest, std::vector<std::byte>& bytes) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity)
    append_bytes(highest ? Limits::infinity() : -Limits::infinity(), bytes);
  else
    append_bytes(highest ? Limits::max() : Limits::lowest(), bytes);
}

template <class T>
void append_located_limit(bool highest, std::vector<std::byte>& bytes) {
  append_bytes(highest ? no_least<T>() : no_greatest<T>(), bytes);
}

void append_extreme(DType dtype, bool highest, std::vector<std::byte>& bytes) {
  const float infinity =
      highest ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
  switch (dtype) {
    case DType::int8: return append_limit<std::int8_t>(highest, bytes);
    case DType::uint8: return append_limit<std::uint8_t>(highest, bytes);
    case DType::int16: return append_limit<std::int16_t>(highest, bytes);
    case DType::uint16: return append_limit<std::uint16_t>(highest, bytes);
    case DType::int32: return append_limit<std::int32_t>(highest, bytes);
    case DType::uint32: return append_limit<std::uint32_t>(highest, bytes);
    case DType::int64: return append_limit<std::int64_t>(highest, bytes);
    case DType::uint64: return append_limit<std::uint64_t>(highest, bytes);
    case DType::float16: return append_bytes(float16(infinity), bytes);
    case DType::bfloat16: return append_bytes(bfloat16(infinity), bytes);
    case DType::float32: return append_limit<float>(highest, bytes);
    case DType::float64: return append_limit<double>(highest, bytes);
    case DType::boolean: return append_limit<bool>(highest, bytes);
    case DType::located_int32: return append_located_limit<std::int32_t>(highest, bytes);
    case DType::located_int64: return append_located_limit<std::int64_t>(highest, bytes);
    case DType::located_float32: return append_located_limit<float>(highest, bytes);
    case DType::located_float64: return append_located_limit<double>(highest, bytes);
    case DType::complex64:
    case DType::complex128: return;  // have no order
  }
}

std::int64_t sum_before(const std::vector<std::int64_t>& counts, Rank rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
}

// Fills the buffers of one step on one rank.
class Maker {
 public:
  Maker(const Step& step, int ranks, Rank me)
      : step_(step), ranks_(ranks), me_(me), root_(step.root % ranks), counts_(counts(step, ranks)) {}

  Buffers make() {
    const std::int64_t n = step_.counts.empty() ? 0 : step_.counts[0];
    const std::int64_t mine = counts_[static_cast<std::size_t>(me_)], all = sum_before(counts_, ranks_);
    const bool root = me_ == root_;
    switch (step_.pattern) {
      case Pattern::barrier: break;
      case Pattern::broadcast:
        contribute(root_, 0, n, expected());
        if (root) buffers_.out = buffers_.expected;
        break;
      case Pattern::reduce:
        contribute(me_, 0, n, buffers_.in);
        if (root) reduce(0, n, ranks_);
        break;
      case Pattern::all_reduce:
        contribute(me_, 0, n, buffers_.in);
        reduce(0, n, ranks_);
        break;
      case Pattern::reduce_scatter:
        contribute(me_, 0, all, buffers_.in);
        reduce(sum_before(counts_, me_), mine, ranks_);
        break;
      case Pattern::scan:
        contribute(me_, 0, n, buffers_.in);
        reduce(0, n, me_ + 1);
        break;
      case Pattern::exclusive_scan:
        contribute(me_, 0, n, buffers_.in);
        reduce(0, n, me_);
        break;
      case Pattern::gather:
      case Pattern::all_gather:
        contribute(me_, 0, mine, buffers_.in);
        for (Rank r = 0; r < ranks_ && (root || step_.pattern == Pattern::all_gather); ++r)
          contribute(r, 0, counts_[static_cast<std::size_t>(r)], expected());
        break;
      case Pattern::scatter:
        if (root) contribute(root_, 0, all, buffers_.in);
        contribute(root_, sum_before(counts_, me_), mine, expected());
        break;
      case Pattern::all_to_all:
        for (Rank r = 0; r < ranks_; ++r) {
          contribute(me_, r * 1000, all_to_all_count(step_, ranks_, me_, r), buffers_.in);
          contribute(r, me_ * 1000, all_to_all_count(step_, ranks_, r, me_), expected());
        }
        break;
      // Around the ring.
      case Pattern::exchange:
      case Pattern::send:
      case Pattern::recv: {
        const Rank previous = (me_ + ranks_ - 1) % ranks_;
        contribute(me_, 0, mine, buffers_.in);
        contribute(previous, 0, counts_[static_cast<std::size_t>(previous)], expected());
        break;
      }
    }
    buffers_.out.resize(buffers_.expected.size(), std::byte{0x5a});
    normalise(step_.dtype, buffers_.expected);
    return std::move(buffers_);
  }

 private:
  std::vector<std::byte>& expected() { return buffers_.expected; }
  void contribute(Rank rank, std::int64_t begin, std::int64_t count, std::vector<std::byte>& to) {
    for (std::int64_t i = begin; i < begin + count; ++i) append(step_.dtype, element(step_, rank, i), to);
  }
  void reduce(std::int64_t begin, std::int64_t count, int upto) {
    for (std::int64_t i = begin; i < begin + count; ++i) {
      if (upto == 0) {
        append_identity(step_, expected());
        continue;
      }
      Element result = element(step_, 0, i);
      for (Rank r = 1; r < upto; ++r) result = combine(step_, result, element(step_, r, i));
      append(step_.dtype, result, expected());
    }
  }

  const Step& step_;
  int ranks_;
  Rank me_, root_;
  std::vector<std::int64_t> counts_;
  Buffers buffers_;
};

}  // namespace

// Values 0 to 3, and 1 or 2 for products: eight ranks stay exact in float16.
Element element(const Step& step, Rank rank, std::int64_t i) {
  const std::uint64_t bits =
      next_bits(next_bits(step.id * 64 + static_cast<std::uint64_t>(rank)) + static_cast<std::uint64_t>(i));
  if (is_located(step.dtype))
    return {static_cast<std::int64_t>(bits % 4), static_cast<std::int64_t>(bits % 97)};
  if (step.dtype == DType::boolean) return {static_cast<std::int64_t>(bits % 2), 0};
  if (step.reduction == Reduction::product && !is_complex(step.dtype))
    return {static_cast<std::int64_t>(1 + bits % 2), 0};
  // Of complex numbers 1, i, 1 + i: products of eight stay below 17.
  if (is_complex(step.dtype))
    return bits % 3 == 0 ? Element{1, 0} : bits % 3 == 1 ? Element{0, 1} : Element{1, 1};
  return {static_cast<std::int64_t>(bits % 4), 0};
}

Element combine(const Step& step, Element a, Element b) {
  const bool boolean = step.dtype == DType::boolean;
  switch (step.reduction) {
    case Reduction::sum: return {boolean ? (a.value | b.value) : a.value + b.value, a.second + b.second};
    case Reduction::product:
      if (is_complex(step.dtype))
        return {a.value * b.value - a.second * b.second, a.value * b.second + a.second * b.value};
      return {a.value * b.value, 0};
    case Reduction::min:
      if (a.value == b.value) return {a.value, std::min(a.second, b.second)};
      return a.value < b.value ? a : b;
    case Reduction::max:
      if (a.value == b.value) return {a.value, std::min(a.second, b.second)};
      return a.value > b.value ? a : b;
    case Reduction::logical_and: return {a.value != 0 && b.value != 0, 0};
    case Reduction::logical_or: return {a.value != 0 || b.value != 0, 0};
  }
  return {};
}

void append_identity(const Step& step, std::vector<std::byte>& bytes) {
  switch (step.reduction) {
    case Reduction::sum:
    case Reduction::logical_or: return append(step.dtype, {0, 0}, bytes);
    case Reduction::product:
    case Reduction::logical_and: return append(step.dtype, {1, 0}, bytes);
    case Reduction::min: return append_extreme(step.dtype, true, bytes);
    case Reduction::max: return append_extreme(step.dtype, false, bytes);
  }
}

void append(DType dtype, Element e, std::vector<std::byte>& bytes) {
  const auto real = static_cast<double>(e.value), imaginary = static_cast<double>(e.second);
  switch (dtype) {
    case DType::int8: return append_bytes(static_cast<std::int8_t>(e.value), bytes);
    case DType::uint8: return append_bytes(static_cast<std::uint8_t>(e.value), bytes);
    case DType::int16: return append_bytes(static_cast<std::int16_t>(e.value), bytes);
    case DType::uint16: return append_bytes(static_cast<std::uint16_t>(e.value), bytes);
    case DType::int32: return append_bytes(static_cast<std::int32_t>(e.value), bytes);
    case DType::uint32: return append_bytes(static_cast<std::uint32_t>(e.value), bytes);
    case DType::int64: return append_bytes(e.value, bytes);
    case DType::uint64: return append_bytes(static_cast<std::uint64_t>(e.value), bytes);
    case DType::float16: return append_bytes(float16(static_cast<float>(e.value)), bytes);
    case DType::bfloat16: return append_bytes(bfloat16(static_cast<float>(e.value)), bytes);
    case DType::float32: return append_bytes(static_cast<float>(e.value), bytes);
    case DType::float64: return append_bytes(real, bytes);
    case DType::complex64:
      return append_bytes(std::complex<float>(static_cast<float>(real), static_cast<float>(imaginary)),
                          bytes);
    case DType::complex128: return append_bytes(std::complex<double>(real, imaginary), bytes);
    case DType::boolean: return append_bytes(e.value != 0, bytes);
    case DType::located_int32: return append_located<std::int32_t>(e, bytes);
    case DType::located_int64: return append_located<std::int64_t>(e, bytes);
    case DType::located_float32: return append_located<float>(e, bytes);
    case DType::located_float64: return append_located<double>(e, bytes);
  }
}

void normalise(DType dtype, std::vector<std::byte>& bytes) {
  if (dtype == DType::complex64) unsign_zeros<float>(bytes);
  if (dtype == DType::complex128) unsign_zeros<double>(bytes);
  if (dtype == DType::located_int32 || dtype == DType::located_float32)
    for (std::size_t at = 4; at < bytes.size(); at += 16)
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4, std::byte{0});
}

std::vector<std::int64_t> counts(const Step& step, int ranks) {
  std::vector<std::int64_t> all;
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
    all.push_back(step.counts.empty() ? 0 : step.counts[r % step.counts.size()]);
  return all;
}

std::int64_t all_to_all_count(const Step& step, int ranks, Rank from, Rank to) {
  return counts(step, ranks)[static_cast<std::size_t>((from + 2 * to) % ranks)];
}

Buffers make_buffers(const Step& step, int ranks, Rank me) { return Maker(step, ranks, me).make(); }

}  // namespace shoal::comm::property
