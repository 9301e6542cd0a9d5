// SPDX-License-Identifier: Apache-2.0
// The vector space of arrays of one layout, as iterations see it: fused updates of this rank's elements, sums
// over them, and the reduction that adds up several ranks' sums. Nothing here checks layouts or allocates: a
// solver makes its arrays itself, once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "shoal/array/distributed_array.h"
#include "shoal/comm/communicator.h"
#include "shoal/solver/local_sum.h"
#include "solver/kernels.h"

namespace shoal::solver {

using array::DistributedArray;
using array::is_complex;
using array::Layout;
using array::Rank;
using array::Real;

/// Two of them, from one pass.
struct LocalSums {
  LocalSum first, second;
};

/// Adds up local sums over the ranks. Several travel by one all_reduce, in the order of ranks; where nothing
/// is split there is none.
class Reducer {
 public:
  static constexpr std::size_t most = 4;

  /// `any_split`: whether one of the layouts that sums are over is split.
  explicit Reducer(bool any_split) : any_split_(any_split) {}
  /// Where sums run from now on.
  void use(const comm::Communicator& communicator) { communicator_ = communicator; }

  template <class... Sums>
  std::array<double, sizeof...(Sums)> operator()(const Sums&... sums) {
    take({sums...});
    if (any_split_) communicator_->all_reduce(std::span(split_).first(sizeof...(Sums)), comm::Reduction::sum);
    return totals<sizeof...(Sums)>();
  }
  /// The same begun, to be ended by wait() of as many.
  template <class... Sums>
  void start(const Sums&... sums) {
    take({sums...});
    if (any_split_)
      request_ =
          communicator_->all_reduce_async(std::span(split_).first(sizeof...(Sums)), comm::Reduction::sum);
  }
  template <std::size_t count>
  std::array<double, count> wait() {
    request_.wait();
    return totals<count>();
  }

 private:
  void take(std::initializer_list<LocalSum> sums);
  template <std::size_t count>
  std::array<double, count> totals() const {
    static_assert(count <= most);
    std::array<double, count> result;
    for (std::size_t i = 0; i < count; ++i) result[i] = split_[i] + replicated_[i];
    return result;
  }

  bool any_split_;
  std::optional<comm::Communicator> communicator_;
  std::array<double, most> split_{}, replicated_{};
  comm::Request request_;  // last: its buffer is above
};

/// Real numbers in an element.
template <class T>
constexpr std::size_t reals_each = is_complex<T> ? 2 : 1;

/// This rank's elements as real numbers.
template <class T>
Real<T>* reals(T* x) {
  return reinterpret_cast<Real<T>*>(x);
}
template <class T>
Real<T>* reals(DistributedArray<T>& x) {
  return reinterpret_cast<Real<T>*>(x.local().data());
}
template <class T>
const Real<T>* reals(const DistributedArray<T>& x) {
  return reinterpret_cast<const Real<T>*>(x.local().data());
}

template <class T>
class Space {
 public:
  using Array = DistributedArray<T>;
  using R = Real<T>;

  Space(const Layout& layout, Rank rank);
  /// Whether some elements are split among ranks (of the layout: the same on every rank).
  bool any_split() const { return any_split_; }

  /// real part of sum of conj(x) y
  LocalSum dot(const Array& x, const Array& y) const {
    return sum([&](std::size_t i, std::size_t n) { return kernels::dot(reals(x) + i, reals(y) + i, n); });
  }
  LocalSum norm2(const Array& x) const {
    return sum([&](std::size_t i, std::size_t n) { return kernels::sum_squares(reals(x) + i, n); });
  }
  /// y = a x + b y
  void axpby(double a, const Array& x, double b, Array& y) const {
    kernels::axpby(R(a), reals(x), R(b), reals(y), count_);
  }
  LocalSum axpby_norm2(double a, const Array& x, double b, Array& y) const {
    return sum([&](std::size_t i, std::size_t n) {
      return kernels::axpby_norm2(R(a), reals(x) + i, R(b), reals(y) + i, n);
    });
  }
  /// term(first, count) summed over the parts of this rank's reals.
  template <class Term>
  LocalSum sum(const Term& term) const {
    return sum_over(0, count_, term);
  }
  /// The same over the reals [begin, end).
  template <class Term>
  LocalSum sum_over(std::size_t begin, std::size_t end, const Term& term) const {
    LocalSum result;
    for (const Part& part : parts_) {
      const std::size_t first = std::max(begin, part.first), last = std::min(end, part.first + part.count);
      if (first < last) (part.replicated ? result.replicated : result.split) += term(first, last - first);
    }
    return result;
  }
  /// The same of terms that are kernels::TwoSums.
  template <class Term>
  LocalSums two_sums(const Term& term) const {
    LocalSums result;
    for (const Part& part : parts_) {
      const kernels::TwoSums sums = term(part.first, part.count);
      (part.replicated ? result.first.replicated : result.first.split) += sums.first;
      (part.replicated ? result.second.replicated : result.second.split) += sums.second;
    }
    return result;
  }
  /// Number of this rank's reals.
  std::size_t count() const { return count_; }

 private:
  struct Part {
    std::size_t first, count;  // in reals
    bool replicated;
  };
  void add_parts(const Layout& layout, Rank rank);

  std::vector<Part> parts_;
  std::size_t count_ = 0;
  bool any_split_ = false;
};

}  // namespace shoal::solver
