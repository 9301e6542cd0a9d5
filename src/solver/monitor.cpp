// SPDX-License-Identifier: Apache-2.0
#include "solver/monitor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::solver {
namespace {

// The history is allocated for so many iterations at most; beyond, it grows.
constexpr int most_reserved = 1 << 20;

template <class T>
bool is_finite(const T& value) {
  if constexpr (array::is_complex<T>)
    return std::isfinite(value.real()) && std::isfinite(value.imag());
  else
    return std::isfinite(value);
}

}  // namespace

const char* to_string(Stop stop) {
  switch (stop) {
    case Stop::none: return "not stopped";
    case Stop::converged: return "converged";
    case Stop::iteration_limit: return "iteration limit";
    case Stop::non_finite: return "non-finite";
    case Stop::breakdown: return "breakdown";
    case Stop::diverging: return "diverging";
    case Stop::callback: return "callback";
  }
  return "unknown";
}

template <class T>
Monitor<T>::Monitor(const comm::Communicator& communicator, std::string method, int max_iterations,
                    Callback<T> callback, int show_every)
    : max_iterations_(max_iterations),
      callback_(std::move(callback)),
      progress_(method, max_iterations, communicator.rank() == 0 ? show_every : 0) {
  if (max_iterations < 0 || show_every < 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("{}: max_iterations is {} and show_every is {}; give 0 or more", method, max_iterations,
                     show_every));
}

template <class T>
bool Monitor<T>::record(Result<T>& result, const Norms& norms) {
  result.residual_norm = norms.residual;
  result.history.push_back(norms.cost);
  const bool cost_is_number = norms.constrained ? norms.cost > -HUGE_VAL : std::isfinite(norms.cost);
  if (std::isfinite(norms.residual) && cost_is_number) return true;
  stop_non_finite(result, *norms.suspect, norms.not_finite_here);
  return false;
}

template <class T>
void Monitor<T>::begin(Result<T>& result, const Norms& norms) {
  result.stop = Stop::none;
  result.iterations = 0;
  result.non_finite_rank = -1;
  result.history.clear();
  result.history.reserve(static_cast<std::size_t>(std::min(max_iterations_, most_reserved)) + 1);
  progress_.begin();
  if (!record(result, norms)) return;
  if (norms.converged)
    stop(result, Stop::converged);
  else if (max_iterations_ == 0)
    stop(result, Stop::iteration_limit);
}

template <class T>
void Monitor<T>::end(Result<T>& result, const Norms& norms) {
  ++result.iterations;
  if (!record(result, norms)) return;
  progress_.show(result.iterations, norms.residual);
  const Next next =
      callback_ ? callback_({result.iterations, norms.residual, norms.cost, result.x}) : Next::go_on;
  if (norms.converged)
    stop(result, Stop::converged);
  else if (next == Next::stop)
    stop(result, Stop::callback);
  else if (result.iterations >= max_iterations_)
    stop(result, Stop::iteration_limit);
}

template <class T>
void Monitor<T>::stop(Result<T>& result, Stop why) {
  result.stop = why;
  finish(result);
}

template <class T>
void Monitor<T>::stop_non_finite(Result<T>& result, const DistributedArray<T>& suspect,
                                 bool not_finite_here) {
  // Of those that had the same norm: other groups of a mask go on.
  comm::Communicator group = result.x.reduction_communicator();
  const bool here = not_finite_here || !std::ranges::all_of(suspect.local(), is_finite<T>);
  const int nobody = suspect.communicator().size();
  const int first = group.all_reduce(here ? suspect.rank() : nobody, comm::Reduction::min);
  result.non_finite_rank = first == nobody ? -1 : first;
  stop(result, Stop::non_finite);
}

template <class T>
void Monitor<T>::finish(const Result<T>& result) {
  progress_.end(result.iterations, result.residual_norm, to_string(result.stop));
}

template class Monitor<float>;
template class Monitor<double>;
template class Monitor<std::complex<float>>;
template class Monitor<std::complex<double>>;

}  // namespace shoal::solver
