// SPDX-License-Identifier: Apache-2.0
// A group of ranks that communicate: the typed front that programs use.
//
// Templates here only turn contiguous ranges into Buffers and build one Operation; all else is in the
// transport. Every rank of the communicator must make the same collective calls in the same order,
// also those with nothing to contribute. A call returns when this rank's part is done and its buffers
// are free; its `_async` form returns at once with a Request, and the buffers are free after its wait().
// Counts are in elements, 64-bit, exact on the wire, and may be 0. Errors are thrown as shoal::Error with the
// pattern, the rank and the library's text. Copies of a communicator are cheap and mean the same group. Not
// thread-safe.
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
#include "shoal/comm/request.h"

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
  Rank world_rank(Rank rank) const;          // number of the PE in the job
  Transport& transport() const;

  void barrier() { submit({.pattern = Pattern::barrier}); }
  Request barrier_async() { return start({.pattern = Pattern::barrier}); }

  /// Every rank's `data` becomes the root's. Same length everywhere.
  template <ElementRange Range>
  void broadcast(Range&& data, Rank root) {
    submit(rooted(Pattern::broadcast, data, data, root));
  }
  template <ElementRange Range>
  Request broadcast_async(Range&& data, Rank root) {
    return start(rooted(Pattern::broadcast, data, data, root));
  }

  /// out = the reduction of all ranks' `in`, element by element, combined in rank order; same length
  /// everywhere. float16 and bfloat16 are combined in float32 and rounded once. `in` may be `out`.
  template <ElementRange In, ElementRange Out>
  void all_reduce(const In& in, Out&& out, Reduction reduction) {
    submit(reducing(Pattern::all_reduce, in, out, reduction));
  }
  template <ElementRange In, ElementRange Out>
  Request all_reduce_async(const In& in, Out&& out, Reduction reduction) {
    return start(reducing(Pattern::all_reduce, in, out, reduction));
  }
  template <ElementRange InOut>
  void all_reduce(InOut&& data, Reduction reduction) {
    submit(reducing(Pattern::all_reduce, data, data, reduction));
  }
  template <ElementRange InOut>
  Request all_reduce_async(InOut&& data, Reduction reduction) {
    return start(reducing(Pattern::all_reduce, data, data, reduction));
  }
  /// Of one value: returns the result.
  template <class T>
  requires std::is_arithmetic_v<T> T all_reduce(T value, Reduction reduction) {
    all_reduce(std::span<T>(&value, 1), reduction);
    return value;
  }

  /// The same on the root alone; elsewhere `out` is not used and may be empty. In place on the root.
  template <ElementRange In, ElementRange Out>
  void reduce(const In& in, Out&& out, Reduction reduction, Rank root) {
    submit(reducing(Pattern::reduce, in, out, reduction, root));
  }
  template <ElementRange In, ElementRange Out>
  Request reduce_async(const In& in, Out&& out, Reduction reduction, Rank root) {
    return start(reducing(Pattern::reduce, in, out, reduction, root));
  }

  /// out (counts[rank] elements) = this rank's part of the reduction of all ranks' `in` (the sum of counts).
  template <ElementRange In, ElementRange Out>
  void reduce_scatter(const In& in, Out&& out, std::span<const std::int64_t> counts, Reduction reduction) {
    submit(with_counts(reducing(Pattern::reduce_scatter, in, out, reduction), counts));
  }
  template <ElementRange In, ElementRange Out>
  Request reduce_scatter_async(const In& in, Out&& out, std::span<const std::int64_t> counts,
                               Reduction reduction) {
    return start(with_counts(reducing(Pattern::reduce_scatter, in, out, reduction), counts));
  }

  /// out = the reduction over ranks 0 to mine, in rank order. `in` may be `out`.
  template <ElementRange In, ElementRange Out>
  void scan(const In& in, Out&& out, Reduction reduction) {
    submit(reducing(Pattern::scan, in, out, reduction));
  }
  template <ElementRange In, ElementRange Out>
  Request scan_async(const In& in, Out&& out, Reduction reduction) {
    return start(reducing(Pattern::scan, in, out, reduction));
  }
  /// The same without this rank's own; on rank 0 what changes nothing (0 for a sum, 1 for a product, ...).
  template <ElementRange In, ElementRange Out>
  void exclusive_scan(const In& in, Out&& out, Reduction reduction) {
    submit(reducing(Pattern::exclusive_scan, in, out, reduction));
  }
  template <ElementRange In, ElementRange Out>
  Request exclusive_scan_async(const In& in, Out&& out, Reduction reduction) {
    return start(reducing(Pattern::exclusive_scan, in, out, reduction));
  }

  /// Concatenation in rank order of all ranks' `in`. `counts[r]` is the length of rank r's part (known
  /// to all), `out` holds their sum. Nothing is padded; a part may be empty. `in` may be its place in `out`.
  template <ElementRange In, ElementRange Out>
  void all_gather(const In& in, Out&& out, std::span<const std::int64_t> counts) {
    submit(with_counts(moving(Pattern::all_gather, in, out), counts));
  }
  template <ElementRange In, ElementRange Out>
  Request all_gather_async(const In& in, Out&& out, std::span<const std::int64_t> counts) {
    return start(with_counts(moving(Pattern::all_gather, in, out), counts));
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

  /// The concatenation on the root alone; elsewhere `out` is not used and may be empty.
  template <ElementRange In, ElementRange Out>
  void gather(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    submit(with_counts(rooted(Pattern::gather, in, out, root), counts));
  }
  template <ElementRange In, ElementRange Out>
  Request gather_async(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    return start(with_counts(rooted(Pattern::gather, in, out, root), counts));
  }

  /// out (counts[rank] elements) = this rank's part of the root's `in`, which is not used elsewhere.
  template <ElementRange In, ElementRange Out>
  void scatter(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    submit(with_counts(rooted(Pattern::scatter, in, out, root), counts));
  }
  template <ElementRange In, ElementRange Out>
  Request scatter_async(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    return start(with_counts(rooted(Pattern::scatter, in, out, root), counts));
  }

  /// Part r of `in` (send_counts[r] elements) goes to rank r; part r of `out` (recv_counts[r]) comes from
  /// it. `in` and `out` must not overlap.
  template <ElementRange In, ElementRange Out>
  void all_to_all(const In& in, std::span<const std::int64_t> send_counts, Out&& out,
                  std::span<const std::int64_t> recv_counts) {
    submit(with_counts(moving(Pattern::all_to_all, in, out), send_counts, recv_counts));
  }
  template <ElementRange In, ElementRange Out>
  Request all_to_all_async(const In& in, std::span<const std::int64_t> send_counts, Out&& out,
                           std::span<const std::int64_t> recv_counts) {
    return start(with_counts(moving(Pattern::all_to_all, in, out), send_counts, recv_counts));
  }

  /// Messages between a pair with the same tag (>= 0) arrive in the order they were sent. The receiver's
  /// length must equal the sender's. send() may wait for the receiver.
  template <ElementRange Range>
  void send(const Range& data, Rank to, int tag = 0) {
    submit({.pattern = Pattern::send, .peer = to, .tag = tag, .send = erase(view_of(data))});
  }
  template <ElementRange Range>
  Request send_async(const Range& data, Rank to, int tag = 0) {
    return start({.pattern = Pattern::send, .peer = to, .tag = tag, .send = erase(view_of(data))});
  }
  template <ElementRange Range>
  void recv(Range&& data, Rank from, int tag = 0) {
    submit({.pattern = Pattern::recv, .peer = from, .tag = tag, .recv = erase(view_of(data))});
  }
  template <ElementRange Range>
  Request recv_async(Range&& data, Rank from, int tag = 0) {
    return start({.pattern = Pattern::recv, .peer = from, .tag = tag, .recv = erase(view_of(data))});
  }
  /// Both at once; `to` and `from` may be the same rank, and this one.
  template <ElementRange In, ElementRange Out>
  void sendrecv(const In& in, Rank to, Out&& out, Rank from, int tag = 0) {
    const Part sent{to, erase(view_of(in))}, received{from, erase(view_of(out))};
    exchange({&sent, 1}, {&received, 1}, tag);
  }

  /// Any number of messages in both directions, completed together: there is no order to get wrong. Among
  /// the ranks that name each other only, the others need not call. part(peer, range) makes the parts.
  void exchange(std::span<const Part> sends, std::span<const Part> receives, int tag = 0) {
    submit({.pattern = Pattern::exchange, .tag = tag, .sends = sends, .receives = receives});
  }
  Request exchange_async(std::span<const Part> sends, std::span<const Part> receives, int tag = 0) {
    return start({.pattern = Pattern::exchange, .tag = tag, .sends = sends, .receives = receives});
  }
  template <ElementRange Range>
  static Part part(Rank peer, Range&& range) {
    return {peer, erase(view_of(range))};
  }

  /// Ranks with equal `color` form a new communicator, ordered by `key`, then by rank. A negative
  /// color gives none. Collective over this communicator.
  std::optional<Communicator> split(int color, int key = 0);
  /// The ranks of `members`, in that order, form a new communicator. Collective over the members alone.
  Communicator subset(std::span<const Rank> members);
  /// The same ranks, apart from this communicator's messages. Collective.
  Communicator duplicate();

  /// Collective: `bytes` of symmetric memory on every member (see SymmetricSegments for the typed form).
  std::unique_ptr<SymmetricMemory> allocate(std::size_t bytes);

  /// What a job makes communicators of; not for programs.
  struct Endpoint;
  static Communicator make_world(std::unique_ptr<Transport> transport);

 private:
  struct Membership;
  explicit Communicator(std::shared_ptr<const Membership> membership) : membership_(std::move(membership)) {}

  template <class In, class Out>
  static Operation moving(Pattern pattern, const In& in, Out&& out) {
    return {.pattern = pattern, .send = erase(view_of(in)), .recv = erase(view_of(out))};
  }
  template <class In, class Out>
  static Operation rooted(Pattern pattern, const In& in, Out&& out, Rank root) {
    return {.pattern = pattern, .peer = root, .send = erase(view_of(in)), .recv = erase(view_of(out))};
  }
  template <class In, class Out>
  static Operation reducing(Pattern pattern, const In& in, Out&& out, Reduction reduction, Rank root = 0) {
    return {.pattern = pattern,
            .reduction = reduction,
            .peer = root,
            .send = erase(view_of(in)),
            .recv = erase(view_of(out))};
  }
  static Operation with_counts(Operation operation, std::span<const std::int64_t> counts,
                               std::span<const std::int64_t> recv_counts = {}) {
    operation.counts = counts;
    operation.recv_counts = recv_counts;
    return operation;
  }

  void submit(const Operation& operation);
  Request start(const Operation& operation);
  std::vector<std::int64_t> gather_counts(std::int64_t mine);
  std::shared_ptr<const Membership> membership_;
};

}  // namespace shoal::comm
