// SPDX-License-Identifier: Apache-2.0
#include "shoal/solver/ista.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "solver/monitor.h"
#include "solver/run.h"
#include "solver/space.h"
#include "solver/threshold.h"

namespace shoal::solver {
namespace {

template <class T>
double step_for(const AnyOperator<T>& a, const IstaOptions<T>& options) {
  if (options.step > 0) return options.step;
  const double largest = largest_squared_singular_value(a, options.power);
  if (!std::isfinite(largest))
    fail(ErrorCode::numeric, "ista: the operator gives numbers that are not finite; no step can be found");
  return largest == 0 ? 1 : 0.95 / largest;
}

template <class T>
void check(const AnyOperator<T>& a, const IstaOptions<T>& options) {
  if (!(options.step >= 0) || !(options.epsilon >= 0))
    fail(ErrorCode::invalid_argument,
         fmt::format("ista: step is {} and epsilon is {}; give 0 or more", options.step, options.epsilon));
  if (options.sparsifier)
    require_equal(options.sparsifier->range(), a.domain(),
                  "the sparsifier's range and the operator's domain");
}

// FISTA, and ISTA as the same without momentum: then the extrapolated point y is x itself, and its residual
// is that of x.
template <class T>
class Ista final : public Solver<T> {
 public:
  Ista(const AnyOperator<T>& a, const IstaOptions<T>& options, bool accelerated)
      : Solver<T>(a,
                  std::make_unique<Monitor<T>>(a.communicator(), accelerated ? "fista" : "ista",
                                               options.max_iterations, options.callback, options.show_every)),
        options_(options),
        accelerated_(accelerated),
        step_(step_for(a, options)),
        domain_(a.domain(), a.communicator().rank()),
        range_(a.range(), a.communicator().rank()),
        coefficients_(options.sparsifier ? options.sparsifier->domain() : a.domain(),
                      a.communicator().rank()),
        sum_(domain_.any_split() || range_.any_split() || coefficients_.any_split()),
        b_(a.communicator(), a.range()),
        r_(b_),
        ax_(b_),
        g_(a.communicator(), a.domain()) {
    if (accelerated) {
      y_.emplace(g_);
      ry_.emplace(r_);
    }
    if (options.sparsifier) c_.emplace(a.communicator(), options.sparsifier->domain());
  }

 private:
  using Solver<T>::a_;
  using Solver<T>::result_;
  using Solver<T>::monitor_;
  using Array = DistributedArray<T>;
  using R = Real<T>;

  Array& y() { return y_ ? *y_ : result_.x; }
  Array& residual_at_y() { return ry_ ? *ry_ : r_; }

  void start(const Array& b, const Array* x0) override {
    sum_.use(b.reduction_communicator());
    std::ranges::copy(b.local(), b_.local().begin());
    std::ranges::copy(b.local(), r_.local().begin());
    if (x0 != nullptr) {
      a_.apply(result_.x, ax_);
      range_.axpby(-1, ax_, 1, r_);
    }
    if (accelerated_) {
      *y_ = result_.x;
      *ry_ = r_;
    }
    t_ = 1;
    const auto [rr, sum_of_penalty] = sum_(range_.norm2(r_), penalty_of_start());
    least_residual_ = std::sqrt(rr);
    cost_ = rr / 2 + options_.epsilon * sum_of_penalty;
    monitor_->begin(result_, {.residual = std::sqrt(rr), .cost = cost_, .suspect = &r_});
  }

  void iterate() override {
    const double t_next = accelerated_ ? (1 + std::sqrt(1 + 4 * t_ * t_)) / 2 : 1;
    const double momentum = (t_ - 1) / t_next;
    t_ = t_next;
    a_.apply_adjoint(residual_at_y(), g_);
    const LocalSum penalty_sum = threshold_step();  // g = threshold(y + step A^H (b - A y))
    const LocalSums squares = move_to(g_, momentum);
    a_.apply(result_.x, ax_);
    const LocalSum residual = update_residuals(momentum);
    const auto [change, xx, sum_of_penalty, rr] = sum_(squares.first, squares.second, penalty_sum, residual);
    end_iteration(std::sqrt(change), std::sqrt(xx), std::sqrt(rr),
                  rr / 2 + options_.epsilon * sum_of_penalty);
  }

  LocalSum threshold_step() {
    const double t = step_ * options_.epsilon * decay();
    const auto gradient_step = [&](std::size_t i, std::size_t n) {
      kernels::axpby(R(1), reals(y()) + i, R(step_), reals(g_) + i, n);
    };
    if (!c_) return thresholded(t, domain_, g_, gradient_step);
    gradient_step(0, domain_.count());
    options_.sparsifier->apply_adjoint(g_, *c_);
    const LocalSum sum = thresholded(t, coefficients_, *c_, [](std::size_t, std::size_t) {});
    options_.sparsifier->apply(*c_, g_);
    return sum;
  }

  // In place, after before(first real, count) has been done; the sum of the penalties.
  template <class Before>
  LocalSum thresholded(double t, const Space<T>& space, Array& c, const Before& before) const {
    return space.sum([&](std::size_t first, std::size_t count) {
      constexpr std::size_t piece = 4096;  // reals, which stay in the cache from one loop to the next
      double sum = 0;
      for (std::size_t i = first; i < first + count; i += piece) {
        const std::size_t length = std::min(piece, first + count - i);
        before(i, length);
        T* elements = c.local().data() + i / reals_per_element;
        apply_threshold(options_.threshold, t, elements, length / reals_per_element);
        sum += penalty(options_.threshold, elements, length / reals_per_element);
      }
      return sum;
    });
  }

  LocalSum penalty_of_start() {
    const Array* c = &result_.x;
    if (c_) {
      options_.sparsifier->apply_adjoint(result_.x, *c_);
      c = &*c_;
    }
    return coefficients_.sum([&](std::size_t first, std::size_t count) {
      return penalty(options_.threshold, c->local().data() + first / reals_per_element,
                     count / reals_per_element);
    });
  }

  // y = g + m (g - x); x = g; sums of |g - x|^2 and |g|^2.
  LocalSums move_to(const Array& g, double momentum) {
    return domain_.two_sums([&](std::size_t i, std::size_t n) {
      return kernels::extrapolate(R(momentum), reals(g) + i, reals(result_.x) + i, reals(y()) + i, n);
    });
  }

  // A is linear: A y is known from A x now and before.
  LocalSum update_residuals(double momentum) {
    return range_.sum([&](std::size_t i, std::size_t n) {
      return kernels::ista_residuals(reals(b_) + i, reals(ax_) + i, R(momentum), reals(r_) + i,
                                     reals(residual_at_y()) + i, n);
    });
  }

  void end_iteration(double change, double length, double residual, double cost) {
    // Not before the thresholds have come to rest: a large one may hold x at zero for a while.
    const bool at_rest = static_cast<std::size_t>(result_.iterations) + 1 >= options_.decay.size();
    const bool still = change <= options_.tolerance * length;
    const bool level = std::abs(cost - cost_) <= options_.cost_tolerance * cost_;
    cost_ = cost;
    monitor_->end(
        result_,
        {.residual = residual, .cost = cost, .converged = at_rest && (still || level), .suspect = &r_});
    if (result_.stop == Stop::none && options_.growth_limit > 0 &&
        residual > options_.growth_limit * least_residual_)
      monitor_->stop(result_, Stop::diverging);
    least_residual_ = std::min(least_residual_, residual);
  }

  double decay() const {
    if (options_.decay.empty()) return 1;
    return options_.decay[std::min(static_cast<std::size_t>(result_.iterations), options_.decay.size() - 1)];
  }

  static constexpr std::size_t reals_per_element = is_complex<T> ? 2 : 1;

  IstaOptions<T> options_;
  bool accelerated_;
  double step_;
  Space<T> domain_, range_, coefficients_;
  Reducer sum_;
  Array b_, r_, ax_, g_;         // r = b - A x
  std::optional<Array> y_, ry_;  // FISTA's extrapolated point and its residual
  std::optional<Array> c_;       // S^H x, where there is S
  double t_ = 1, cost_ = 0, least_residual_ = 0;
};

template <class T>
std::unique_ptr<Solver<T>> make(const AnyOperator<T>& a, const IstaOptions<T>& options, bool accelerated) {
  check(a, options);
  return std::make_unique<Ista<T>>(a, options, accelerated);
}

}  // namespace

template <class T>
std::unique_ptr<Solver<T>> make_ista(const AnyOperator<T>& a, const IstaOptions<T>& options) {
  return make(a, options, false);
}
template <class T>
std::unique_ptr<Solver<T>> make_fista(const AnyOperator<T>& a, const IstaOptions<T>& options) {
  return make(a, options, true);
}
template <class T>
Result<T> ista(const AnyOperator<T>& a, const DistributedArray<T>& b, const IstaOptions<T>& options) {
  return run<T>(make_ista(a, options), b, nullptr);
}
template <class T>
Result<T> ista(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
               const IstaOptions<T>& options) {
  return run(make_ista(a, options), b, &x0);
}
template <class T>
Result<T> fista(const AnyOperator<T>& a, const DistributedArray<T>& b, const IstaOptions<T>& options) {
  return run<T>(make_fista(a, options), b, nullptr);
}
template <class T>
Result<T> fista(const AnyOperator<T>& a, const DistributedArray<T>& b, const DistributedArray<T>& x0,
                const IstaOptions<T>& options) {
  return run(make_fista(a, options), b, &x0);
}

#define SHOAL_INSTANTIATE_ONE(name, T)                                                                   \
  template std::unique_ptr<Solver<T>> make_##name(const AnyOperator<T>&, const IstaOptions<T>&);         \
  template Result<T> name(const AnyOperator<T>&, const DistributedArray<T>&, const IstaOptions<T>&);     \
  template Result<T> name(const AnyOperator<T>&, const DistributedArray<T>&, const DistributedArray<T>&, \
                          const IstaOptions<T>&);
#define SHOAL_INSTANTIATE(T)     \
  SHOAL_INSTANTIATE_ONE(ista, T) \
  SHOAL_INSTANTIATE_ONE(fista, T)
SHOAL_SOLVER_ELEMENTS(SHOAL_INSTANTIATE)
#undef SHOAL_INSTANTIATE
#undef SHOAL_INSTANTIATE_ONE

}  // namespace shoal::solver
