// SPDX-License-Identifier: Apache-2.0
// Views with strides: what arrives is right by index, and what lies between the elements stays as it was.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>

#include "comm/conformance.h"
#include "comm/conformance_support.h"
#include "shoal/base/error.h"

namespace shoal::comm::conformance {
namespace {

using Counts = std::vector<std::int64_t>;
constexpr std::int64_t rows = 5, columns = 6;

// A view of a row-major array of rows x columns, and where its elements lie, by loops of its own.
struct Shape {
  std::string name;
  Counts extents, strides;
  std::int64_t begin;
  std::vector<std::size_t> offsets;  // in the order of the indices

  template <class T>
  StridedView<T> of(std::vector<T>& array) const {
    return {array.data() + begin, extents, strides};
  }
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{"a[:, ::2]", {rows, columns / 2}, {columns, 2}, 0, {}},
                            {"a[::-1]", {rows, columns}, {-columns, 1}, (rows - 1) * columns, {}},
                            {"a^T", {columns, rows}, {1, columns}, 0, {}},
                            {"pairs, swapped", {rows, columns / 2, 2}, {columns, 2, -1}, 1, {}},
                            {"a[1:1]", {0, columns}, {columns, 1}, 0, {}},
                            {"a", {rows, columns}, {columns, 1}, 0, {}}};
  const auto add = [&](Shape& shape, std::int64_t i, std::int64_t j) {
    shape.offsets.push_back(static_cast<std::size_t>(i * columns + j));
  };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; j += 2) add(all[0], i, j);
  for (std::int64_t i = rows; i-- > 0;)
    for (std::int64_t j = 0; j < columns; ++j) add(all[1], i, j);
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) add(all[2], i, j);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t pair = 0; pair < columns / 2; ++pair)
      for (std::int64_t k = 0; k < 2; ++k) add(all[3], i, 2 * pair + 1 - k);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) add(all[5], i, j);
  return all;
}

template <class T>
const T untouched = static_cast<T>(99.0f);

// An array whose view holds value(rank, 0), value(rank, 1), ... in the order of the indices.
template <class T>
std::vector<T> filled(const Shape& shape, Rank rank) {
  std::vector<T> array(rows * columns, untouched<T>);
  for (std::size_t k = 0; k < shape.offsets.size(); ++k) array[shape.offsets[k]] = value<T>(rank, k);
  return array;
}
template <class T>
std::vector<T> blank() {
  return std::vector<T>(rows * columns, untouched<T>);
}

template <class T, class Expected>
void expect_view(const Shape& shape, const std::vector<T>& array, Expected&& expected, const char* what) {
  std::vector<T> whole(array.size(), untouched<T>);
  for (std::size_t k = 0; k < shape.offsets.size(); ++k) whole[shape.offsets[k]] = expected(k);
  for (std::size_t i = 0; i < array.size(); ++i)
    expect_equal(array[i], whole[i], "{} {}, element {}", what, shape.name, i);
}

// Both forms of a call must do the same.
template <class Blocking, class Async>
void run(bool async, Blocking&& blocking, Async&& start) {
  if (async)
    start().wait();
  else
    blocking();
}

template <class T>
void reductions(Communicator& comm, const Shape& shape, bool async) {
  const auto sum = [&](std::size_t k) { return from_double<T>(reduced(Reduction::sum, comm.size(), k)); };
  std::vector<T> mine = filled<T>(shape, comm.rank());
  run(
      async, [&] { comm.all_reduce(shape.of(mine), Reduction::sum); },
      [&] { return comm.all_reduce_async(shape.of(mine), Reduction::sum); });
  expect_view(shape, mine, sum, "all_reduce in place");

  mine = filled<T>(shape, comm.rank());
  std::vector<T> flat(shape.offsets.size()), out = blank<T>();
  run(
      async, [&] { comm.all_reduce(shape.of(mine), flat, Reduction::sum); },
      [&] { return comm.all_reduce_async(shape.of(mine), flat, Reduction::sum); });
  for (std::size_t k = 0; k < flat.size(); ++k) expect_equal(flat[k], sum(k), "all_reduce, strides in");
  flat = values<T>(comm.rank(), flat.size());
  run(
      async, [&] { comm.scan(flat, shape.of(out), Reduction::sum); },
      [&] { return comm.scan_async(flat, shape.of(out), Reduction::sum); });
  const auto prefix = [&](std::size_t k) {
    return from_double<T>(reduced(Reduction::sum, comm.rank() + 1, k));
  };
  expect_view(shape, out, prefix, "scan, strides out");

  const Rank root = comm.size() - 1;
  out = blank<T>();
  run(
      async, [&] { comm.reduce(shape.of(mine), shape.of(out), Reduction::sum, root); },
      [&] { return comm.reduce_async(shape.of(mine), shape.of(out), Reduction::sum, root); });
  if (comm.rank() == root)
    expect_view(shape, out, sum, "reduce");
  else
    expect(out == blank<T>(), "reduce writes on the root alone");
}

template <class T>
void roots(Communicator& comm, const Shape& shape, bool async) {
  const auto n = static_cast<std::int64_t>(shape.offsets.size());
  const Counts counts(static_cast<std::size_t>(comm.size()), n);
  for (Rank root = 0; root < comm.size(); ++root) {
    std::vector<T> array = comm.rank() == root ? filled<T>(shape, root) : blank<T>();
    run(
        async, [&] { comm.broadcast(shape.of(array), root); },
        [&] { return comm.broadcast_async(shape.of(array), root); });
    expect_view(
        shape, array, [&](std::size_t k) { return value<T>(root, k); }, "broadcast");

    // Gathered into every third element, and scattered from there.
    std::vector<T> mine = filled<T>(shape, comm.rank()), back = blank<T>();
    std::vector<T> wide(static_cast<std::size_t>(3 * n * comm.size() + 1), untouched<T>);
    const StridedView<T> all(wide.data(), {n * comm.size()}, {3});
    run(
        async, [&] { comm.gather(shape.of(mine), all, counts, root); },
        [&] { return comm.gather_async(shape.of(mine), all, counts, root); });
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const std::size_t k = i / 3, part = static_cast<std::size_t>(std::max<std::int64_t>(n, 1));
      const bool holds = comm.rank() == root && i % 3 == 0 && k < all.size();
      expect_equal(wide[i], holds ? value<T>(static_cast<Rank>(k / part), k % part) : untouched<T>, "gather");
    }
    run(
        async, [&] { comm.scatter(all, shape.of(back), counts, root); },
        [&] { return comm.scatter_async(all, shape.of(back), counts, root); });
    expect(back == mine, "scatter undoes gather");
  }
}

template <class T>
void among_all(Communicator& comm, const Shape& shape, bool async) {
  const std::size_t n = shape.offsets.size(), ranks = static_cast<std::size_t>(comm.size());
  const Counts counts(ranks, static_cast<std::int64_t>(n));
  std::vector<T> mine = filled<T>(shape, comm.rank()), all(n * ranks);
  run(
      async, [&] { comm.all_gather(shape.of(mine), all, counts); },
      [&] { return comm.all_gather_async(shape.of(mine), all, counts); });
  for (std::size_t i = 0; i < all.size(); ++i)
    expect_equal(all[i], value<T>(static_cast<Rank>(i / n), i % n), "all_gather");
  expect(comm.all_gather(shape.of(mine)) == all, "all_gather, lengths unknown");

  // From back to front: part r goes to rank r; and every second element receives.
  const Counts threes(ranks, 3);
  std::vector<T> sent(3 * ranks), received(6 * ranks, untouched<T>);
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[sent.size() - 1 - i] = value<T>(comm.rank() + static_cast<Rank>(i / 3), i);
  const auto length = static_cast<std::int64_t>(3 * ranks);
  const StridedView<const T> in(sent.data() + sent.size() - 1, {length}, {-1});
  const StridedView<T> out(received.data(), {length}, {2});
  run(
      async, [&] { comm.all_to_all(in, threes, out, threes); },
      [&] { return comm.all_to_all_async(in, threes, out, threes); });
  for (std::size_t i = 0; i < received.size(); ++i) {
    const std::size_t k = i / 2, own = static_cast<std::size_t>(comm.rank());
    const T expected = value<T>(static_cast<Rank>(k / 3) + comm.rank(), 3 * own + k % 3);
    expect_equal(received[i], i % 2 == 0 ? expected : untouched<T>, "all_to_all");
  }

  std::vector<T> piece(6, untouched<T>);
  const StridedView<T> part(piece.data(), {3}, {2});
  run(
      async, [&] { comm.reduce_scatter(values<T>(comm.rank(), 3 * ranks), part, threes, Reduction::sum); },
      [&] {
        Request request;  // (its input must live until the wait)
        sent = values<T>(comm.rank(), 3 * ranks);
        request = comm.reduce_scatter_async(sent, part, threes, Reduction::sum);
        return request;
      });
  for (std::size_t k = 0; k < 3; ++k) {
    const std::size_t at = 3 * static_cast<std::size_t>(comm.rank()) + k;
    expect_equal(piece[2 * k], from_double<T>(reduced(Reduction::sum, comm.size(), at)), "reduce_scatter");
    expect_equal(piece[2 * k + 1], untouched<T>, "between the elements of reduce_scatter");
  }
}

template <class T>
void neighbours(Communicator& comm, const Shape& shape, bool async) {
  const Rank next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
  const auto theirs = [&](std::size_t k) { return value<T>(previous, k); };
  std::vector<T> mine = filled<T>(shape, comm.rank()), out = blank<T>();
  run(
      async, [&] { comm.sendrecv(shape.of(mine), next, shape.of(out), previous); },
      [&] { return comm.sendrecv_async(shape.of(mine), next, shape.of(out), previous); });
  expect_view(shape, out, theirs, "sendrecv");

  // One side with strides, the other without.
  std::vector<T> flat(shape.offsets.size());
  comm.sendrecv(shape.of(mine), next, flat, previous);
  for (std::size_t k = 0; k < flat.size(); ++k) expect_equal(flat[k], theirs(k), "into contiguous memory");

  out = blank<T>();
  const std::vector<StridedPart> sends = {Communicator::part(next, shape.of(mine)),
                                          Communicator::part(next, flat)};
  std::vector<T> passed_on(flat.size());
  const std::vector<StridedPart> receives = {Communicator::part(previous, shape.of(out)),
                                             Communicator::part(previous, passed_on)};
  run(
      async, [&] { comm.exchange_strided(sends, receives, 3); },
      [&] { return comm.exchange_strided_async(sends, receives, 3); });
  expect_view(shape, out, theirs, "exchange");
  const Rank before = (previous + comm.size() - 1) % comm.size();
  for (std::size_t k = 0; k < flat.size(); ++k)
    expect_equal(passed_on[k], value<T>(before, k), "exchange, contiguous part");

  if (comm.size() == 1) return;
  out = blank<T>();
  if (async) {
    std::array requests = {comm.recv_async(shape.of(out), previous, 5),
                           comm.send_async(shape.of(mine), next, 5)};
    wait_all(requests);
  } else if (comm.rank() % 2 == 0) {
    comm.send(shape.of(mine), next, 5);
    comm.recv(shape.of(out), previous, 5);
  } else {
    comm.recv(shape.of(out), previous, 5);
    comm.send(shape.of(mine), next, 5);
  }
  expect_view(shape, out, theirs, "send and recv");
}

template <class T>
void strided_case(Communicator& comm) {
  for (const Shape& shape : shapes())
    for (const bool async : {false, true}) {
      reductions<T>(comm, shape, async);
      roots<T>(comm, shape, async);
      among_all<T>(comm, shape, async);
      neighbours<T>(comm, shape, async);
    }
}

// The results are there when the request says so, and what was read may be written at once.
void packed_at_the_start(Communicator& comm) {
  std::vector<double> mine = values<double>(comm.rank(), 20), out(20, -1.0);
  Request request = comm.all_reduce_async(StridedView<double>(mine.data(), {10}, {2}),
                                          StridedView<double>(out.data() + 18, {10}, {-2}), Reduction::sum);
  std::ranges::fill(mine, 1e9);
  while (!request.test()) {
  }
  for (std::size_t k = 0; k < 10; ++k) {
    expect_equal(out[18 - 2 * k], reduced(Reduction::sum, comm.size(), 2 * k), "element");
    expect_equal(out[2 * k + 1], -1.0, "between");
  }
}

void misuse_case(Communicator& comm) {
  std::vector<float> data(12);
  const auto wrong = [&](const Counts& extents, const Counts& strides, const char* what) {
    expect_error(
        ErrorCode::invalid_argument, [&] { (void)StridedView<float>(data.data(), extents, strides); }, what);
  };
  wrong({3, 4}, {4}, "a stride missing");
  wrong({3, -4}, {4, 1}, "negative extent");
  wrong(Counts(9, 1), Counts(9, 1), "too many dimensions");
  wrong({std::int64_t{1} << 32, std::int64_t{1} << 31}, {0, 0}, "too many elements");
  const StridedView<float> device(data.data(), {3}, {4}, MemorySpace::device);
  expect_error(
      ErrorCode::unsupported, [&] { comm.broadcast(device, 0); }, "device memory");
  const std::array parts = {Communicator::part(comm.rank(), device)};
  expect_error(
      ErrorCode::unsupported, [&] { comm.exchange_strided(parts, parts); }, "device memory of a part");
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        comm.all_reduce(StridedView<float>(data.data(), {3}, {4}), std::span(data).first(4), Reduction::sum);
      },
      "lengths differ");
  comm.barrier();
}

}  // namespace

void add_strided_cases(std::vector<Case>& cases) {
  cases.push_back({"strided/int16", strided_case<std::int16_t>});
  cases.push_back({"strided/float32", strided_case<float>});
  cases.push_back({"strided/complex128", strided_case<std::complex<double>>});
  cases.push_back({"strided/packed at the start", packed_at_the_start});
  cases.push_back({"strided/misuse", misuse_case});
}

}  // namespace shoal::comm::conformance
