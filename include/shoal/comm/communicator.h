// SPDX-License-Identifier: Apache-2.0
// A group of ranks that communicate: the typed front that programs use.
//
// Templates here only turn contiguous ranges into Buffers and build one Operation; all else is in the
// transport. Every rank of the communicator must make the same collective calls in the same order,
// also those with nothing to contribute. A call returns when this rank's part is done and its buffers
// are free. Errors are thrown as shoal::Error with the pattern, the rank and the library's text.
// Copies of a communicator are cheap and mean the same group. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shoal/base/view.h"
#include "shoal/comm/operation.h"

namespace shoal::comm {

class SymmetricMemory;
class Transport;

/// Any contiguous range of elements that have a DType: vector, array, span, View, string.
template <class Range>
concept ElementRange = requires(Range&& range) {
  View{range.data(), range.size()};
};

template <class Range>
auto view_of(Range&& range) {
  if constexpr (requires { range.space(); }) {
    return range;
  } else {
    return View{range.data(), range.size()};
  }
}

class Communicator {
 public:
  Rank rank() const;
  int size() const;
  const std::string& host(Rank rank) const;  // name of the machine that `rank` runs on
  Transport& transport() const;

  void barrier();

  /// Every rank's `data` becomes the root's. Same length everywhere.
  template <ElementRange Range>
  void broadcast(Range&& data, Rank root) {
    submit({.pattern = Pattern::broadcast,
            .peer = root,
            .send = erase(view_of(data)),
            .recv = erase(view_of(data))});
  }

  /// out = the reduction of all ranks' `in`, element by element, combined in rank order; same length
  /// everywhere. float16 and bfloat16 are combined in float32 and rounded once.
  template <ElementRange In, ElementRange Out>
  void all_reduce(const In& in, Out&& out, Reduction reduction) {
    submit({.pattern = Pattern::all_reduce,
            .reduction = reduction,
            .send = erase(view_of(in)),
            .recv = erase(view_of(out))});
  }
  template <ElementRange InOut>
  void all_reduce(InOut&& data, Reduction reduction) {
    all_reduce(data, data, reduction);
  }
  /// Of one value: returns the result.
  template <class T>
  requires std::is_arithmetic_v<T> T all_reduce(T value, Reduction reduction) {
    all_reduce(std::span<T>(&value, 1), reduction);
    return value;
  }

  /// Concatenation in rank order of all ranks' `in`. `counts[r]` is the length of rank r's part (known
  /// to all), `out` holds their sum. Nothing is padded; a part may be empty.
  template <ElementRange In, ElementRange Out>
  void all_gather(const In& in, Out&& out, std::span<const std::int64_t> counts) {
    submit({.pattern = Pattern::all_gather,
            .send = erase(view_of(in)),
            .recv = erase(view_of(out)),
            .counts = counts});
  }
  /// The same when the lengths are not known beforehand (they are gathered first).
  template <ElementRange In>
  auto all_gather(const In& in) {
    using T = std::remove_cvref_t<decltype(*in.data())>;
    const std::vector<std::int64_t> counts = gather_counts(static_cast<std::int64_t>(in.size()));
    std::int64_t total = 0;
    for (const std::int64_t count : counts) total += count;
    std::vector<T> out(static_cast<std::size_t>(total));
    all_gather(in, out, counts);
    return out;
  }
  /// Each rank's string, in rank order.
  std::vector<std::string> all_gather_strings(const std::string& mine);

  /// Messages between a pair with the same tag arrive in the order they were sent. The receiver's
  /// length must equal the sender's. send() may wait for the receiver.
  template <ElementRange Range>
  void send(const Range& data, Rank to, int tag = 0) {
    submit({.pattern = Pattern::send, .peer = to, .tag = tag, .send = erase(view_of(data))});
  }
  template <ElementRange Range>
  void recv(Range&& data, Rank from, int tag = 0) {
    submit({.pattern = Pattern::recv, .peer = from, .tag = tag, .recv = erase(view_of(data))});
  }

  /// Ranks with equal `color` form a new communicator, ordered by `key`, then by rank. A negative
  /// color gives none. Collective over this communicator.
  std::optional<Communicator> split(int color, int key = 0);

  /// Collective: `bytes` of symmetric memory on every member (see SymmetricSegments for the typed form).
  std::unique_ptr<SymmetricMemory> allocate(std::size_t bytes);

  /// What a job makes communicators of; not for programs.
  struct Endpoint;
  static Communicator make_world(std::unique_ptr<Transport> transport);

 private:
  struct Membership;
  explicit Communicator(std::shared_ptr<const Membership> membership) : membership_(std::move(membership)) {}
  void submit(const Operation& operation);
  std::vector<std::int64_t> gather_counts(std::int64_t mine);
  std::shared_ptr<const Membership> membership_;
};

}  // namespace shoal::comm
