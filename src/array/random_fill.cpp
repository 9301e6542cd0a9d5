// SPDX-License-Identifier: Apache-2.0
// Random numbers by counter: a hash of seed and global index, so that no rank needs to know what others have
// drawn.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "shoal/array/box.h"
#include "shoal/array/distributed_array.h"
#include "shoal/base/random_bits.h"

namespace shoal::array {
namespace {

// 64 random bits for each counter. The seed is mixed too, else seed + 1 would be the same numbers shifted by
// one.
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : key_(next_bits(seed)) {}
  std::uint64_t operator()(std::uint64_t counter) const { return mixed_bits(key_ + golden_step * counter); }

 private:
  std::uint64_t key_;
};

// In [0, 1), with as many bits as R holds exactly, so that nothing rounds up to 1.
template <class R>
R uniform(std::uint64_t bits) {
  constexpr int digits = std::numeric_limits<R>::digits;
  constexpr R unit = R(1) / static_cast<R>(std::uint64_t{1} << digits);
  return static_cast<R>(bits >> (64 - digits)) * unit;
}

// Two independent normal numbers (Box and Muller, 1958).
std::complex<double> normal_pair(std::uint64_t a, std::uint64_t b) {
  const double u = 1 - uniform<double>(a);  // in (0, 1]
  return std::polar(std::sqrt(-2 * std::log(u)), 2 * std::numbers::pi * uniform<double>(b));
}

// value(global index) for each local element; `base` is the global index of the layout's first.
template <class T, class Value>
void fill_by_index(DistributedArray<T>& x, std::uint64_t base, const Value& value) {
  const Layout& layout = x.layout();
  for (int i = 0; i < static_cast<int>(layout.members().size()); ++i) {
    fill_by_index(x.member(i), base, value);
    base += static_cast<std::uint64_t>(x.member(i).size());
  }
  if (layout.is_stack()) return;
  const Block block = layout.block(x.rank());
  const Shape origin(block.extent.size(), 0);
  for_each_patch(
      {layout.shape(), block.begin}, {block.extent, origin}, block.extent, [&](const Patch& patch) {
        for (Index r = 0; r < patch.repeats; ++r) {
          const std::uint64_t global = base + static_cast<std::uint64_t>(patch.from + r * patch.from_stride);
          T* local = x.local().data() + patch.to + r * patch.to_stride;
          for (Index k = 0; k < patch.run; ++k) local[k] = value(global + static_cast<std::uint64_t>(k));
        }
      });
}

}  // namespace

template <class T>
void fill_uniform(DistributedArray<T>& x, std::uint64_t seed) {
  fill_by_index(x, 0, [bits = Bits(seed)](std::uint64_t index) {
    using R = Real<T>;
    if constexpr (is_complex<T>)
      return T(uniform<R>(bits(2 * index)), uniform<R>(bits(2 * index + 1)));
    else
      return uniform<R>(bits(index));
  });
}

template <class T>
void fill_normal(DistributedArray<T>& x, std::uint64_t seed) {
  fill_by_index(x, 0, [bits = Bits(seed)](std::uint64_t index) {
    const std::complex<double> pair = normal_pair(bits(2 * index), bits(2 * index + 1));
    if constexpr (is_complex<T>)
      return converted<T>(pair);
    else
      return static_cast<T>(pair.real());
  });
}

#define SHOAL_ARRAY_RANDOM(T)                                      \
  template void fill_uniform(DistributedArray<T>&, std::uint64_t); \
  template void fill_normal(DistributedArray<T>&, std::uint64_t);
SHOAL_ARRAY_RANDOM(float)
SHOAL_ARRAY_RANDOM(double)
SHOAL_ARRAY_RANDOM(std::complex<float>)
SHOAL_ARRAY_RANDOM(std::complex<double>)
#undef SHOAL_ARRAY_RANDOM

}  // namespace shoal::array
