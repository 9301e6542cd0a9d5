// SPDX-License-Identifier: Apache-2.0
// What the tests of arrays share: ranks, element types, layouts of all kinds, values in closed form.
#pragma once

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "shoal/array/distributed_array.h"
#include "shoal/array/simd.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::array::testing {

#if defined(SHOAL_SANITIZED)
inline constexpr int rank_counts[] = {
    1, 3};  // a sanitizer multiplies the time, and finds no more with the others
#else
inline constexpr int rank_counts[] = {1, 2, 3, 4, 6};
#endif

/// Runs `body` on each of these numbers of ranks.
inline void on_ranks(const std::function<void(comm::Communicator&)>& body) {
  for (const int ranks : rank_counts) {
    SCOPED_TRACE(ranks);
    comm::run_threads(ranks, body);
  }
}

/// body.template operator()<T>() for each element type.
template <class Body>
void for_each_type(const Body& body) {
  body.template operator()<float>();
  body.template operator()<double>();
  body.template operator()<std::complex<float>>();
  body.template operator()<std::complex<double>>();
}

/// A small whole number that depends on the global index (complex: both parts), exact in every type.
template <class T>
T value(Index i) {
  const auto re = static_cast<Real<T>>((i * 7 + 3) % 11 - 5);
  if constexpr (is_complex<T>)
    return T(re, static_cast<Real<T>>((i * 5 + 1) % 7 - 3));
  else
    return re;
}

template <class T>
std::vector<T> values(Index n) {
  std::vector<T> all;
  for (Index i = 0; i < n; ++i) all.push_back(value<T>(i));
  return all;
}

/// The array of value() in a layout.
template <class T>
DistributedArray<T> filled(const comm::Communicator& communicator, const Layout& layout) {
  return DistributedArray<T>::from_full(communicator, layout, values<T>(layout.size()));
}

/// Parts of very different length, some of them empty where there are many.
inline std::vector<Index> uneven(Index n, int parts) {
  std::vector<Index> extents(static_cast<std::size_t>(parts), 0);
  for (int p = 0; p + 1 < parts; ++p) {
    extents[static_cast<std::size_t>(p)] = p % 2 == 0 ? n / 2 : 0;
    n -= extents[static_cast<std::size_t>(p)];
  }
  extents.back() = n;
  return extents;
}

/// A grid of `axes` axes for so many ranks, with more than one part on as many axes as it can.
inline std::vector<int> grid(int ranks, int axes) {
  std::vector<int> parts(static_cast<std::size_t>(axes), 1);
  std::size_t axis = 0;
  for (int factor = 2; ranks > 1; ++factor)
    while (ranks % factor == 0) {
      parts[axis++ % parts.size()] *= factor;
      ranks /= factor;
    }
  return parts;
}

/// Slabs along every axis, uneven slabs, blocks, uneven blocks, replicas.
inline std::vector<Layout> layouts(const Shape& shape, int ranks) {
  std::vector<Layout> all;
  const int axes = static_cast<int>(shape.size());
  for (int axis = 0; axis < axes; ++axis) {
    all.push_back(Layout::split(shape, ranks, axis));
    all.push_back(Layout::split_unevenly(shape, uneven(shape[static_cast<std::size_t>(axis)], ranks), axis));
  }
  const std::vector<int> parts = grid(ranks, axes);
  all.push_back(Layout::blocks(shape, parts));
  std::vector<std::vector<Index>> extents;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) extents.push_back(uneven(shape[axis], parts[axis]));
  all.push_back(Layout::blocks_unevenly(shape, extents));
  all.push_back(Layout::replicated(shape, ranks));
  return all;
}

/// That `call` throws an Error of this code whose message has `part` in it.
inline void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace shoal::array::testing
