// SPDX-License-Identifier: Apache-2.0
// Dots, and the updates that end in one. What is split is summed among ranks in their order; what is
// replicated is added afterwards.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "array/kernels.h"
#include "array/sums.h"
#include "shoal/array/distributed_array.h"
#include "shoal/base/error.h"

namespace shoal::array {
namespace {

// In which sums travel between ranks.
template <class T>
using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;

template <class R>
double local_product(const R* x, const R* y, std::size_t n, bool) {
  return x == y ? kernels::sum_squares(x, n) : kernels::dot(x, y, n);
}

template <class R>
std::complex<double> local_product(const std::complex<R>* x, const std::complex<R>* y, std::size_t n,
                                   bool conjugated) {
  const auto* a = reinterpret_cast<const R*>(x);
  const auto* b = reinterpret_cast<const R*>(y);
  if (conjugated && x == y) return kernels::sum_squares(a, 2 * n);
  const kernels::PairProducts sums = kernels::dot_pairs(a, b, 2 * n);
  if (conjugated) return {sums.even + sums.odd, sums.crossed_even - sums.crossed_odd};
  return {sums.even - sums.odd, sums.crossed_even + sums.crossed_odd};
}

template <class R>
double local_update(R a, const R* x, R* y, std::size_t n) {
  return kernels::axpy_norm2(a, x, y, n);
}
template <class R>
double local_update(std::complex<R> a, const std::complex<R>* x, std::complex<R>* y, std::size_t n) {
  return kernels::axpy_norm2_pairs(a, reinterpret_cast<const R*>(x), reinterpret_cast<R*>(y), 2 * n);
}

template <class T>
Sum<Wide<T>> local_dot(const DistributedArray<T>& x, const DistributedArray<T>& y, bool conjugated) {
  require_equal(x.layout(), y.layout(), "dot");
  return local_sum<Wide<T>>(x.layout(), x.rank(), [&](std::size_t first, std::size_t count) {
    return local_product(x.local().data() + first, y.local().data() + first, count, conjugated);
  });
}

}  // namespace

template <class T>
T dot(const DistributedArray<T>& x, const DistributedArray<T>& y) {
  return converted<T>(global_sum(local_dot(x, y, true), x.reduction_communicator()));
}

template <class T>
T dotu(const DistributedArray<T>& x, const DistributedArray<T>& y) {
  return converted<T>(global_sum(local_dot(x, y, false), x.reduction_communicator()));
}

template <class T>
Real<T> axpy_norm2(T a, const DistributedArray<T>& x, DistributedArray<T>& y) {
  require_equal(x.layout(), y.layout(), "axpy_norm2");
  const Sum<double> sum = local_sum<double>(y.layout(), y.rank(), [&](std::size_t first, std::size_t count) {
    return local_update(a, x.local().data() + first, y.local().data() + first, count);
  });
  return static_cast<Real<T>>(global_sum(sum, y.reduction_communicator()));
}

constexpr std::size_t most_pairs = 8;

std::string describe_mask(std::span<const int> mask) {
  return mask.empty() ? "no mask" : fmt::format("the mask {}", fmt::join(mask, ", "));
}

template <class T>
void require_equal_masks(const DistributedArray<T>& a, const DistributedArray<T>& b) {
  if (!std::ranges::equal(a.mask(), b.mask()))
    fail(ErrorCode::invalid_argument,
         fmt::format("dots of arrays with {} and with {} cannot be one reduction", describe_mask(a.mask()),
                     describe_mask(b.mask())));
}

template <class T>
struct PendingDots<T>::State {
  std::size_t count = 0;
  std::array<Wide<T>, most_pairs> split{}, replicated{};
  std::array<T, most_pairs> result{};
  std::optional<comm::Communicator> communicator;
  comm::Request request;  // last: its buffers are above
};

template <class T>
PendingDots<T>::PendingDots(std::span<const Pair> pairs) : state_(std::make_unique<State>()) {
  if (pairs.size() > most_pairs)
    fail(ErrorCode::invalid_argument, fmt::format("{} dots at once; at most {}", pairs.size(), most_pairs));
  State& state = *state_;
  const DistributedArray<T>* reduced = nullptr;  // the first that is summed over ranks
  for (const Pair& pair : pairs) {
    const Sum<Wide<T>> sum = local_dot(*pair.x, *pair.y, true);
    state.split[state.count] = sum.split;
    state.replicated[state.count++] = sum.replicated;
    if (!sum.any_split) continue;
    if (reduced == nullptr) reduced = pair.x;
    require_equal_masks(*reduced, *pair.x);
  }
  if (reduced == nullptr) return;
  state.communicator = reduced->reduction_communicator();
  state.request =
      state.communicator->all_reduce_async(std::span(state.split).first(state.count), comm::Reduction::sum);
}

template <class T>
PendingDots<T>::PendingDots(PendingDots&&) noexcept = default;
template <class T>
PendingDots<T>::~PendingDots() = default;

template <class T>
std::span<const T> PendingDots<T>::wait() {
  State& state = *state_;
  state.request.wait();
  for (std::size_t i = 0; i < state.count; ++i)
    state.result[i] = converted<T>(state.split[i] + state.replicated[i]);
  return {state.result.data(), state.count};
}

#define SHOAL_ARRAY_REDUCTIONS(T)                                                   \
  template T dot(const DistributedArray<T>&, const DistributedArray<T>&);           \
  template T dotu(const DistributedArray<T>&, const DistributedArray<T>&);          \
  template Real<T> axpy_norm2(T, const DistributedArray<T>&, DistributedArray<T>&); \
  template class PendingDots<T>;
SHOAL_ARRAY_REDUCTIONS(float)
SHOAL_ARRAY_REDUCTIONS(double)
SHOAL_ARRAY_REDUCTIONS(std::complex<float>)
SHOAL_ARRAY_REDUCTIONS(std::complex<double>)
#undef SHOAL_ARRAY_REDUCTIONS

}  // namespace shoal::array
