// SPDX-License-Identifier: Apache-2.0
// Minimum and maximum with their places, with NaN, and reductions that a type does not have.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "comm/conformance.h"
#include "comm/conformance_support.h"
#include "shoal/base/error.h"

namespace shoal::comm::conformance {
namespace {

using Counts = std::vector<std::int64_t>;

// Higher ranks have smaller locations, so that the order of the ranks does not decide a tie.
std::int64_t place(int ranks, Rank rank, std::size_t i) {
  return std::int64_t{1'000'000} * (ranks - rank) + static_cast<std::int64_t>(i);
}

template <class T>
Located<T> expected_place(int ranks, std::size_t i, Reduction reduction) {
  Located<T> best{value<T>(0, i), place(ranks, 0, i)};
  for (Rank r = 1; r < ranks; ++r) {
    const T v = value<T>(r, i);
    const bool better = reduction == Reduction::min ? v <= best.value : v >= best.value;
    if (better) best = {v, place(ranks, r, i)};
  }
  return best;
}

template <class T>
void located_case(Communicator& comm) {
  for (const Reduction reduction : {Reduction::min, Reduction::max})
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{9'001}}) {
      std::vector<Located<T>> mine(n), out(n);
      for (std::size_t i = 0; i < n; ++i)
        mine[i] = {value<T>(comm.rank(), i), place(comm.size(), comm.rank(), i)};
      comm.all_reduce(mine, out, reduction);
      comm.all_reduce_async(mine, reduction).wait();
      for (std::size_t i = 0; i < n; ++i) {
        const Located<T> expected = expected_place<T>(comm.size(), i, reduction);
        for (const Located<T>& got : {out[i], mine[i]}) {
          expect_equal(got.value, expected.value, "value");
          expect_equal(got.location, expected.location, "location");
        }
      }
    }
  const std::array mine = {Located<T>{static_cast<T>(comm.rank()), comm.rank()}};
  std::array<Located<T>, 1> below;
  comm.exclusive_scan(mine, below, Reduction::max);
  expect_equal(below[0].location, comm.rank() == 0 ? no_location : std::int64_t{comm.rank() - 1}, "below");
}

// The place in the concatenation of unequal parts, some of them empty.
template <class T>
void place_in_parts(Communicator& comm) {
  for (Rank holder = 0; holder < comm.size(); ++holder) {
    const auto length = static_cast<std::size_t>(2 * comm.rank() % 5),
               held = static_cast<std::size_t>(2 * holder % 5);
    std::int64_t first = 0, least_place = 0;
    for (Rank r = 0; r < comm.size(); ++r) {
      if (r < comm.rank()) first += 2 * r % 5;
      if (r < holder) least_place += 2 * r % 5;
    }
    std::vector<T> mine(length, static_cast<T>(4));
    if (comm.rank() == holder && held > 0) mine.back() = static_cast<T>(-3);
    const Located<T> least = comm.all_reduce_location(mine, first, Reduction::min);
    const std::int64_t all = comm.all_reduce(static_cast<std::int64_t>(length), Reduction::sum);
    if (held > 0) {
      expect_equal(least.value, static_cast<T>(-3), "smallest");
      expect_equal(least.location, least_place + static_cast<std::int64_t>(held) - 1, "its place");
    }
    const Located<T> largest = comm.all_reduce_location(mine, first, Reduction::max);
    expect(all == 0 ? largest.location == no_location : largest.value == static_cast<T>(4), "largest");
    if (all > 0) expect_equal(largest.location, std::int64_t{0}, "the first of equal ones");
  }
  const Located<T> nothing = comm.all_reduce_location(std::vector<T>(), 0, Reduction::min);
  expect_equal(nothing.location, no_location, "nobody has an element");
}

// Whichever rank has it, and in every pattern: a NaN is not lost.
template <class T>
void nan_case(Communicator& comm) {
  const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  const auto is_not_a_number = [](T x) { return std::isnan(static_cast<float>(x)); };
  const std::size_t n = 11;
  for (const Reduction reduction : {Reduction::min, Reduction::max})
    for (Rank holder = 0; holder < comm.size(); ++holder) {
      std::vector<T> mine = values<T>(comm.rank(), n), all(n), one(n), prefix(n);
      const std::size_t at = static_cast<std::size_t>(holder) % n;
      if (comm.rank() == holder) mine[at] = nan;
      comm.all_reduce(mine, all, reduction);
      comm.reduce(mine, one, reduction, 0);
      comm.scan(mine, prefix, reduction);
      for (std::size_t i = 0; i < n; ++i) {
        const T expected = from_double<T>(reduced(reduction, comm.size(), i));
        if (i == at)
          expect(is_not_a_number(all[i]), fmt::format("all_reduce loses the NaN of rank {}", holder));
        else
          expect_equal(all[i], expected, "all_reduce");
        if (comm.rank() == 0) expect(i == at ? is_not_a_number(one[i]) : one[i] == expected, "reduce");
      }
      expect(is_not_a_number(prefix[at]) == (comm.rank() >= holder), "scan");
    }
}

void nan_has_a_place(Communicator& comm) {
  for (Rank holder = 0; holder < comm.size(); ++holder) {
    // Two ranks hold a NaN: the smaller location is given.
    std::vector<double> mine = {1.0 * comm.rank(), 5.0};
    if (comm.rank() >= holder) mine[1] = std::numeric_limits<double>::quiet_NaN();
    for (const Reduction reduction : {Reduction::min, Reduction::max}) {
      const Located<double> found = comm.all_reduce_location(mine, 2 * comm.rank(), reduction);
      expect(std::isnan(found.value), "NaN");
      expect_equal(found.location, std::int64_t{2 * holder + 1}, "its place");
    }
  }
}

template <class T>
void refused(Communicator& comm, Reduction reduction) {
  std::vector<T> data(static_cast<std::size_t>(comm.size()), T{}), out(data.size());
  const Counts ones(data.size(), 1);
  const auto wrong = [&](auto&& call, const char* what) { expect_error(ErrorCode::unsupported, call, what); };
  wrong([&] { comm.all_reduce(data, reduction); }, "all_reduce");
  wrong([&] { comm.all_reduce_async(data, reduction).wait(); }, "all_reduce_async");
  wrong([&] { comm.reduce(data, out, reduction, 0); }, "reduce");
  wrong([&] { comm.reduce_scatter(data, std::span(out).first(1), ones, reduction); }, "reduce_scatter");
  wrong([&] { comm.scan(data, out, reduction); }, "scan");
  wrong([&] { comm.exclusive_scan(data, out, reduction); }, "exclusive_scan");
}

// Refused on every rank before anything is sent, so that all can go on.
void undefined_reductions(Communicator& comm) {
  for (const Reduction reduction : {Reduction::min, Reduction::max, Reduction::logical_and}) {
    refused<std::complex<float>>(comm, reduction);
    refused<std::complex<double>>(comm, reduction);
  }
  refused<float>(comm, Reduction::logical_or);
  refused<bfloat16>(comm, Reduction::logical_and);
  refused<Located<double>>(comm, Reduction::sum);
  expect_equal(comm.all_reduce(1, Reduction::sum), comm.size(), "afterwards");
}

// One bool an element, as C++ has it in arrays (vector<bool> has bits).
void booleans(Communicator& comm) {
  std::array<bool, 3> mine = {comm.rank() == 0, true, false}, all{};
  comm.all_reduce(mine, all, Reduction::logical_or);
  expect(all == std::array{true, true, false}, "or");
  comm.all_reduce(mine, all, Reduction::logical_and);
  expect(all == std::array{comm.size() == 1, true, false}, "and");
  comm.all_reduce(mine, all, Reduction::max);
  expect(all == std::array{true, true, false}, "max");
  comm.broadcast(mine, comm.size() - 1);
  expect_equal(mine[0], comm.size() == 1, "broadcast");
}

}  // namespace

void add_reduction_cases(std::vector<Case>& cases) {
  cases.push_back({"located/int32", located_case<std::int32_t>});
  cases.push_back({"located/int64", located_case<std::int64_t>});
  cases.push_back({"located/float32", located_case<float>});
  cases.push_back({"located/float64", located_case<double>});
  cases.push_back({"located/parts of int64", place_in_parts<std::int64_t>});
  cases.push_back({"located/parts of float32", place_in_parts<float>});
  cases.push_back({"located/NaN", nan_has_a_place});
  cases.push_back({"NaN/float16", nan_case<float16>});
  cases.push_back({"NaN/bfloat16", nan_case<bfloat16>});
  cases.push_back({"NaN/float32", nan_case<float>});
  cases.push_back({"NaN/float64", nan_case<double>});
  cases.push_back({"reductions that are not defined", undefined_reductions});
  cases.push_back({"all_reduce/bool", booleans});
}

}  // namespace shoal::comm::conformance
