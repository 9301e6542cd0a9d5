// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <Eigen/SVD>

#include "shoal/base/error.h"
#include "shoal/solver/proximal/functions.h"
#include "solver/proximal/space_of.h"
#include "solver/run.h"

namespace shoal::solver {
namespace {

// Whether every rank's part consists of whole blocks.
bool has_whole_blocks(const Layout& layout, Index rows, Index cols) {
  if (layout.is_stack()) return false;
  const int axes = layout.axes();
  if (axes == 1)
    return std::ranges::all_of(layout.extents(0), [&](Index n) { return n % (rows * cols) == 0; });
  const auto whole = [&](int axis, Index length) {
    return layout.shape()[static_cast<std::size_t>(axis)] == length &&
           std::ranges::all_of(layout.extents(axis), [&](Index n) { return n == 0 || n == length; });
  };
  return axes > 1 && whole(axes - 2, rows) && whole(axes - 1, cols);
}

template <class T>
class Nuclear {
 public:
  using value_type = T;
  using Array = DistributedArray<T>;

  // Eigen sees blocks as transposed, which have the same singular values, and made square with zeros: its
  // code for other shapes takes half a minute to compile.
  Nuclear(Index rows, Index cols, double sigma)
      : rows_(rows),
        cols_(cols),
        sigma_(sigma),
        square_(Matrix::Zero(std::max(rows, cols), std::max(rows, cols))),
        svd_(square_.rows(), square_.cols(), Eigen::ComputeFullU | Eigen::ComputeFullV) {}

  LocalSum local_value(const Array& x) const {
    check(x.layout());
    const auto size = static_cast<std::size_t>(rows_ * cols_);
    double sum = 0;
    for (std::size_t i = 0; i < x.local().size(); i += size)
      sum += decompose(x.local().data() + i) ? static_cast<double>(svd_.singularValues().sum())
                                             : std::numeric_limits<double>::quiet_NaN();
    return x.layout().is_replicated() ? LocalSum{0, sigma_ * sum} : LocalSum{sigma_ * sum, 0};
  }

  void prox(const Array& x, double tau, Array& out) const {
    check(x.layout());
    const auto size = static_cast<std::size_t>(rows_ * cols_);
    const auto t = static_cast<Real<T>>(tau * sigma_);
    for (std::size_t i = 0; i < x.local().size(); i += size) {
      Eigen::Map<Matrix> block(out.local().data() + i, cols_, rows_);
      if (!decompose(x.local().data() + i)) {
        block.setConstant(T(std::numeric_limits<Real<T>>::quiet_NaN()));
        continue;
      }
      block.setZero();
      const auto& values = svd_.singularValues();
      for (Eigen::Index k = 0; k < values.size() && values(k) > t; ++k)
        block.noalias() += (values(k) - t) *
                           (svd_.matrixU().col(k).head(cols_) * svd_.matrixV().col(k).head(rows_).adjoint());
    }
  }

 private:
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

  void check(const Layout& layout) const {
    if (checked_ && *checked_ == layout) return;
    if (!has_whole_blocks(layout, rows_, cols_))
      fail(ErrorCode::invalid_argument,
           fmt::format("nuclear: {} does not hold whole blocks of {}×{} on each rank; let the shape end in "
                       "these and split other axes, or a row in multiples of {}",
                       layout.describe(), rows_, cols_, rows_ * cols_));
    checked_ = layout;
  }
  // False where an element is not finite.
  bool decompose(const T* block) const {
    const Eigen::Map<const Matrix> matrix(block, cols_, rows_);
    if (!matrix.allFinite()) return false;
    square_.topLeftCorner(cols_, rows_) = matrix;
    svd_.compute(square_);
    return true;
  }

  Index rows_, cols_;
  double sigma_;
  mutable Matrix square_;
  mutable Eigen::JacobiSVD<Matrix, Eigen::NoQRPreconditioner> svd_;
  mutable std::optional<Layout> checked_;
};

}  // namespace

template <class T>
AnyProximal<T> nuclear(Index rows, Index cols, double sigma) {
  if (rows < 1 || cols < 1 || !(sigma >= 0) || !std::isfinite(sigma))
    fail(ErrorCode::invalid_argument,
         fmt::format("nuclear: blocks of {}×{}, sigma {}; give sizes of 1 or more and sigma of 0 or more",
                     rows, cols, sigma));
  return Nuclear<T>(rows, cols, sigma);
}

#define SHOAL_INSTANTIATE(T) template AnyProximal<T> nuclear<T>(Index, Index, double);
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE

}  // namespace shoal::solver
