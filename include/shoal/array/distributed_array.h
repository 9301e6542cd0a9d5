// SPDX-License-Identifier: Apache-2.0
// An array whose parts live on the ranks of a communicator: a layout, the communicator, and this rank's
// elements in C order. Element types: float, double, and complex of both.
//
//   DistributedArray<double> x(communicator, Layout::split({300, 200, 200}, communicator.size()));
//   y = 2.0 * x - y;                         // one pass, no temporary, no communication
//   const double r = norm(y);                // one all_reduce
//
// Element-wise algebra is local. What is collective says so, and every rank calls it, also with nothing
// in its part. Indexing is local. Algebra between arrays of different layouts throws and names both.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "shoal/array/expression.h"
#include "shoal/array/layout.h"
#include "shoal/comm/communicator.h"

namespace shoal::array {

/// Groups of ranks within which reductions run.
struct Mask {
  std::vector<int> color_of_rank;
  comm::Communicator group;  // this rank's
};

/// Selects the constructor that leaves the elements as they are found in memory.
struct Uninitialised {};
inline constexpr Uninitialised uninitialised{};

/// An expression of value type From may be assigned to an array of To: all but complex to real.
template <class From, class To>
concept FitsInto = is_complex<To> || !is_complex<From>;

/// A copy owns its memory. A member of a stack and an adopted array are views: their memory is another's, so
/// assignment to them changes elements and never the layout, and moving from them copies.
template <class T>
class DistributedArray : public Expression<DistributedArray<T>> {
 public:
  using value_type = T;

  /// Zeros. The layout must be for communicator.size() ranks.
  DistributedArray(const comm::Communicator& communicator, const Layout& layout);
  DistributedArray(const comm::Communicator& communicator, const Layout& layout, Uninitialised);
  /// Works in the caller's memory, which must hold this rank's part and outlive the array.
  static DistributedArray adopt(const comm::Communicator& communicator, const Layout& layout,
                                std::span<T> local);
  /// Takes its part of `full` (global array in C order; of a stack, the members one after the other), which
  /// every rank passes whole. No communication.
  static DistributedArray from_full(const comm::Communicator& communicator, const Layout& layout,
                                    std::span<const T> full);
  /// The elements of `local`, which is moved in.
  static DistributedArray from_local(const comm::Communicator& communicator, const Layout& layout,
                                     std::vector<T> local);

  /// Assignment between equal layouts changes the elements alone; else all is taken over.
  DistributedArray(const DistributedArray& other);
  DistributedArray(DistributedArray&& other) noexcept;
  DistributedArray& operator=(const DistributedArray& other);
  DistributedArray& operator=(DistributedArray&& other);
  ~DistributedArray();

  /// The value of an expression: a new array with the communicator and mask of the first operand, or this
  /// array's elements in one pass (with the expression's layout, if it differs).
  template <class E>
  requires FitsInto<typename E::value_type, T> DistributedArray(const Expression<E>& expression);
  template <class E>
  requires FitsInto<typename E::value_type, T> DistributedArray& operator=(const Expression<E>& expression);
  template <class E>
  requires FitsInto<typename E::value_type, T> DistributedArray& operator+=(const Expression<E>& expression);
  template <class E>
  requires FitsInto<typename E::value_type, T> DistributedArray& operator-=(const Expression<E>& expression);
  DistributedArray& operator*=(T factor);
  DistributedArray& operator/=(T divisor);

  const comm::Communicator& communicator() const { return communicator_; }
  Rank rank() const { return communicator_.rank(); }
  const Layout& layout() const { return layout_; }
  Index size() const { return layout_.size(); }
  Shape local_shape() const { return layout_.block(rank()).extent; }

  /// This rank's elements, in C order of its block; of a stack, the members one after the other.
  std::span<T> local() { return {data_, local_size_}; }
  std::span<const T> local() const { return {data_, local_size_}; }
  T& operator[](std::size_t local_index) { return data_[local_index]; }
  const T& operator[](std::size_t local_index) const { return data_[local_index]; }

  /// Member `i` of a stack, as an array in this one's memory; valid as long as this array is neither
  /// destroyed, moved from nor assigned another layout. `auto& m = x.member(0)` is the view, `auto m` a copy.
  DistributedArray& member(int i);
  const DistributedArray& member(int i) const;

  void fill(T value);
  /// Collective: the global array in C order on every rank; of a stack, its members one after the other.
  std::vector<T> to_full() const;
  /// Collective: on `root` alone; empty elsewhere.
  std::vector<T> to_full_on(Rank root) const;

  /// Reductions of this array (dot, norm) run among the ranks of equal color alone. Collective; the
  /// communicator is made once, and copies and results share it. (pylops-mpi: mask.)
  void set_mask(std::span<const int> color_of_rank);
  /// Where reductions run: the communicator, or the part of it that the mask gives.
  const comm::Communicator& reduction_communicator() const;
  /// The color of each rank; empty without a mask.
  std::span<const int> mask() const;

  /// Takes the mask of `other`, an array on the same communicator. Local.
  template <class U>
  void share_mask(const DistributedArray<U>& other) {
    take_mask(other.mask_);
  }

 private:
  template <class U>
  friend class DistributedArray;

  DistributedArray(const comm::Communicator& communicator, const Layout& layout, std::shared_ptr<void> memory,
                   T* data);
  void make_members();
  void take_mask(const std::shared_ptr<const Mask>& mask);

  comm::Communicator communicator_;
  Layout layout_;
  std::shared_ptr<const Mask> mask_;  // null: none
  std::shared_ptr<void> memory_;      // null: a view
  T* data_ = nullptr;
  std::size_t local_size_ = 0;
  bool view_ = false;
  std::vector<DistributedArray> members_;  // views, of a stack
};

/// Zeros of the layout, communicator and mask of `x`.
template <class T>
DistributedArray<T> zeros_like(const DistributedArray<T>& x);
template <class T>
DistributedArray<T> empty_like(const DistributedArray<T>& x);
/// Several arrays as one; copies them. All on one communicator.
template <class T>
DistributedArray<T> stack(std::span<const DistributedArray<T>* const> members);

// Reductions: collective, one all_reduce (norm: up to two more where a sum of squares is 0 or not finite),
// the same bits on every rank. Replicated arrays (and members) are local: no communication where nothing is
// split. Partial sums are in the element's precision or better.

/// sum of conj(x) y.
template <class T>
T dot(const DistributedArray<T>& x, const DistributedArray<T>& y);
/// sum of x y, without conjugation.
template <class T>
T dotu(const DistributedArray<T>& x, const DistributedArray<T>& y);

/// Which norm of the elements as one vector: two, p (any real but 0), the number of non-zeros, the largest
/// and the smallest magnitude (0 and infinity where there are no elements).
struct Norm {
  enum class Kind : std::uint8_t { p, count, largest, smallest } kind = Kind::p;
  double p = 2;
};
inline constexpr Norm norm_two{};
inline constexpr Norm norm_one{Norm::Kind::p, 1};
inline constexpr Norm norm_zero{Norm::Kind::count, 0};
inline constexpr Norm norm_max{Norm::Kind::largest, 0};
inline constexpr Norm norm_min{Norm::Kind::smallest, 0};

/// Scaled inside, so that elements of 1e-200 or 1e200 neither vanish nor overflow.
template <class T>
Real<T> norm(const DistributedArray<T>& x, Norm which = norm_two);
/// Along one axis: an array of the other axes, split as they were (replicated if `axis` was the split one).
/// Collective. Throws unsupported for blocks over several axes of which `axis` is one: redistribute first.
template <class T>
DistributedArray<Real<T>> norm_along(const DistributedArray<T>& x, int axis, Norm which = norm_two);

/// Several dots by one all_reduce, which may be under way while something else is computed.
template <class T>
class PendingDots {
 public:
  struct Pair {
    const DistributedArray<T>* x;
    const DistributedArray<T>* y;
  };
  /// Starts sum of conj(x) y for each pair (at most 8; arrays of one communicator, and the x that are split
  /// of one mask, else it throws and names both); they are read before it returns.
  explicit PendingDots(std::span<const Pair> pairs);
  PendingDots(PendingDots&&) noexcept;
  ~PendingDots();
  /// In order of the pairs. Once.
  std::span<const T> wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Fused updates: each reads and writes memory once.

/// y = a x + b y; where b is 0, y is not read, so it may hold anything before.
template <class T>
void axpby(T a, const DistributedArray<T>& x, T b, DistributedArray<T>& y);
/// y += a x; returns dot(y, y), by one all_reduce.
template <class T>
Real<T> axpy_norm2(T a, const DistributedArray<T>& x, DistributedArray<T>& y);
/// conj(x), in place.
template <class T>
void conjugate(DistributedArray<T>& x);

/// Uniform in [0, 1), or normal with mean 0 and variance 1; complex: each part. What an element becomes
/// depends on `seed` and its global index alone, not on the number of ranks. Local.
template <class T>
void fill_uniform(DistributedArray<T>& x, std::uint64_t seed);
template <class T>
void fill_normal(DistributedArray<T>& x, std::uint64_t seed);

/// Collective, for debugging: throws invalid_argument with rank and index where a replicated array (or
/// member) differs from rank 0's.
template <class T>
void check_replicas(const DistributedArray<T>& x);

}  // namespace shoal::array

#include "shoal/array/expression_apply.h"
