// SPDX-License-Identifier: Apache-2.0
// A group of ranks that communicate: the typed front that programs use.
//
// Templates here only turn ranges into Buffers and build one Operation; all else is in the transport.
// Ranges with strides (StridedView) are packed before a call starts and unpacked when it is done; contiguous
// ones cost nothing extra. Every rank of the communicator must make the same collective calls in the same
// order, also those with nothing to contribute. A call returns when this rank's part is done and its buffers
// are free; its `_async` form returns at once with a Request, and the buffers are free after its wait().
// Counts are in elements, 64-bit, exact on the wire, and may be 0. Errors are thrown as shoal::Error with the
// pattern, the rank and the library's text. Copies of a communicator are cheap and mean the same group. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
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

template <class T>
inline constexpr bool is_strided = false;
template <class T>
inline constexpr bool is_strided<StridedView<T>> = true;

/// Any contiguous range of elements that have a DType (vector, array, span, View, string), or a StridedView.
template <class Range>
concept ElementRange = is_strided<std::remove_cvref_t<Range>> || requires(Range&& range) {
  View{range.data(), range.size()};
};

template <class Range>
auto view_of(Range&& range) {
  if constexpr (is_strided<std::remove_cvref_t<Range>> || requires { range.space(); }) {
    return range;
  } else {
    return View{range.data(), range.size()};
  }
}

/// One message of an exchange whose elements may have strides.
struct StridedPart {
  Rank peer = 0;
  StridedBuffer buffer{};
  StridedPart(Rank its_peer, const StridedBuffer& elements) : peer(its_peer), buffer(elements) {}
  StridedPart(const Part& part) : peer(part.peer), buffer(part.buffer) {}
};

/// An Operation some of whose buffers have strides. They are packed before it starts and unpacked when it
/// is done: transports see contiguous memory alone.
struct StridedOperation {
  Operation operation{};
  std::optional<StridedBuffer> send{};
  std::optional<StridedBuffer> recv{};
  std::span<const StridedPart> sends{};
  std::span<const StridedPart> receives{};
};

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
    submit(moving({.pattern = Pattern::broadcast, .peer = root}, data, data));
  }
  template <ElementRange Range>
  Request broadcast_async(Range&& data, Rank root) {
    return start(moving({.pattern = Pattern::broadcast, .peer = root}, data, data));
  }

  /// out = the reduction of all ranks' `in`, element by element, in rank order within a host (docs/comm.md);
  /// same length everywhere. float16 and bfloat16 are combined in float32 and rounded once. `in` may be
  /// `out`.
  template <ElementRange In, ElementRange Out>
  void all_reduce(const In& in, Out&& out, Reduction reduction) {
    submit(moving({.pattern = Pattern::all_reduce, .reduction = reduction}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request all_reduce_async(const In& in, Out&& out, Reduction reduction) {
    return start(moving({.pattern = Pattern::all_reduce, .reduction = reduction}, in, out));
  }
  template <ElementRange InOut>
  void all_reduce(InOut&& data, Reduction reduction) {
    submit(moving({.pattern = Pattern::all_reduce, .reduction = reduction}, data, data));
  }
  template <ElementRange InOut>
  Request all_reduce_async(InOut&& data, Reduction reduction) {
    return start(moving({.pattern = Pattern::all_reduce, .reduction = reduction}, data, data));
  }
  /// Of one value: returns the result.
  template <class T>
  requires std::is_arithmetic_v<T> T all_reduce(T value, Reduction reduction) {
    all_reduce(std::span<T>(&value, 1), reduction);
    return value;
  }

  template <class T>
  Located<T> all_reduce(Located<T> value, Reduction reduction) {
    all_reduce(std::span<Located<T>>(&value, 1), reduction);
    return value;
  }
  /// The smallest (Reduction::min) or largest (max) element of all ranks' `mine` and its index, where
  /// mine[i] has the index first + i. A NaN wins; of equal ones that with the smallest index does. Where
  /// nobody has an element, the location is no_location.
  template <std::ranges::contiguous_range In>
  auto all_reduce_location(const In& mine, std::int64_t first, Reduction reduction) {
    using T = std::ranges::range_value_t<In>;
    const bool largest = reduction == Reduction::max;
    Located<T> best = largest ? no_greatest<T>() : no_least<T>();
    for (const T value : mine) {
      const Located<T> next{value, first++};
      best = largest ? greatest(best, next) : least(best, next);
    }
    return all_reduce(best, reduction);
  }

  /// The reduction on the root alone; elsewhere `out` is not used and may be empty. In place on the root.
  template <ElementRange In, ElementRange Out>
  void reduce(const In& in, Out&& out, Reduction reduction, Rank root) {
    submit(moving({.pattern = Pattern::reduce, .reduction = reduction, .peer = root}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request reduce_async(const In& in, Out&& out, Reduction reduction, Rank root) {
    return start(moving({.pattern = Pattern::reduce, .reduction = reduction, .peer = root}, in, out));
  }

  /// out (counts[rank] elements) = this rank's part of the reduction of all ranks' `in` (the sum of counts).
  template <ElementRange In, ElementRange Out>
  void reduce_scatter(const In& in, Out&& out, std::span<const std::int64_t> counts, Reduction reduction) {
    submit(moving({.pattern = Pattern::reduce_scatter, .reduction = reduction, .counts = counts}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request reduce_scatter_async(const In& in, Out&& out, std::span<const std::int64_t> counts,
                               Reduction reduction) {
    return start(
        moving({.pattern = Pattern::reduce_scatter, .reduction = reduction, .counts = counts}, in, out));
  }

  /// out = the reduction over ranks 0 to mine, in rank order. `in` may be `out`.
  template <ElementRange In, ElementRange Out>
  void scan(const In& in, Out&& out, Reduction reduction) {
    submit(moving({.pattern = Pattern::scan, .reduction = reduction}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request scan_async(const In& in, Out&& out, Reduction reduction) {
    return start(moving({.pattern = Pattern::scan, .reduction = reduction}, in, out));
  }
  /// The same without this rank's own; on rank 0 what changes nothing (0 for a sum, 1 for a product, ...).
  template <ElementRange In, ElementRange Out>
  void exclusive_scan(const In& in, Out&& out, Reduction reduction) {
    submit(moving({.pattern = Pattern::exclusive_scan, .reduction = reduction}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request exclusive_scan_async(const In& in, Out&& out, Reduction reduction) {
    return start(moving({.pattern = Pattern::exclusive_scan, .reduction = reduction}, in, out));
  }

  /// Concatenation in rank order of all ranks' `in`. `counts[r]` is the length of rank r's part (known
  /// to all), `out` holds their sum. Nothing is padded; a part may be empty. `in` may be its place in `out`.
  template <ElementRange In, ElementRange Out>
  void all_gather(const In& in, Out&& out, std::span<const std::int64_t> counts) {
    submit(moving({.pattern = Pattern::all_gather, .counts = counts}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request all_gather_async(const In& in, Out&& out, std::span<const std::int64_t> counts) {
    return start(moving({.pattern = Pattern::all_gather, .counts = counts}, in, out));
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
    submit(moving({.pattern = Pattern::gather, .peer = root, .counts = counts}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request gather_async(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    return start(moving({.pattern = Pattern::gather, .peer = root, .counts = counts}, in, out));
  }

  /// out (counts[rank] elements) = this rank's part of the root's `in`, which is not used elsewhere.
  template <ElementRange In, ElementRange Out>
  void scatter(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    submit(moving({.pattern = Pattern::scatter, .peer = root, .counts = counts}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request scatter_async(const In& in, Out&& out, std::span<const std::int64_t> counts, Rank root) {
    return start(moving({.pattern = Pattern::scatter, .peer = root, .counts = counts}, in, out));
  }

  /// Part r of `in` (send_counts[r] elements) goes to rank r; part r of `out` (recv_counts[r]) comes from
  /// it. `in` and `out` must not overlap.
  template <ElementRange In, ElementRange Out>
  void all_to_all(const In& in, std::span<const std::int64_t> send_counts, Out&& out,
                  std::span<const std::int64_t> recv_counts) {
    submit(
        moving({.pattern = Pattern::all_to_all, .counts = send_counts, .recv_counts = recv_counts}, in, out));
  }
  template <ElementRange In, ElementRange Out>
  Request all_to_all_async(const In& in, std::span<const std::int64_t> send_counts, Out&& out,
                           std::span<const std::int64_t> recv_counts) {
    return start(
        moving({.pattern = Pattern::all_to_all, .counts = send_counts, .recv_counts = recv_counts}, in, out));
  }

  /// Messages between a pair with the same tag (>= 0) arrive in the order they were sent. The receiver's
  /// length must equal the sender's. send() may wait for the receiver.
  template <ElementRange Range>
  void send(const Range& data, Rank to, int tag = 0) {
    submit(sending({.pattern = Pattern::send, .peer = to, .tag = tag}, data));
  }
  template <ElementRange Range>
  Request send_async(const Range& data, Rank to, int tag = 0) {
    return start(sending({.pattern = Pattern::send, .peer = to, .tag = tag}, data));
  }
  template <ElementRange Range>
  void recv(Range&& data, Rank from, int tag = 0) {
    submit(receiving({.pattern = Pattern::recv, .peer = from, .tag = tag}, data));
  }
  template <ElementRange Range>
  Request recv_async(Range&& data, Rank from, int tag = 0) {
    return start(receiving({.pattern = Pattern::recv, .peer = from, .tag = tag}, data));
  }
  /// Both at once; `to` and `from` may be the same rank, and this one.
  template <ElementRange In, ElementRange Out>
  void sendrecv(const In& in, Rank to, Out&& out, Rank from, int tag = 0) {
    const auto sent = part(to, in);
    const auto received = part(from, out);
    submit(exchanging(sent, received, tag));
  }
  template <ElementRange In, ElementRange Out>
  Request sendrecv_async(const In& in, Rank to, Out&& out, Rank from, int tag = 0) {
    const auto sent = part(to, in);
    const auto received = part(from, out);
    return start(exchanging(sent, received, tag));
  }

  /// Any number of messages in both directions, completed together: there is no order to get wrong. Among
  /// the ranks that name each other only, the others need not call. part(peer, range) makes the parts.
  void exchange(std::span<const Part> sends, std::span<const Part> receives, int tag = 0) {
    submit({.pattern = Pattern::exchange, .tag = tag, .sends = sends, .receives = receives});
  }
  Request exchange_async(std::span<const Part> sends, std::span<const Part> receives, int tag = 0) {
    return start({.pattern = Pattern::exchange, .tag = tag, .sends = sends, .receives = receives});
  }
  /// The same where some parts have strides.
  void exchange_strided(std::span<const StridedPart> sends, std::span<const StridedPart> receives,
                        int tag = 0) {
    submit(exchanging(sends, receives, tag));
  }
  Request exchange_strided_async(std::span<const StridedPart> sends, std::span<const StridedPart> receives,
                                 int tag = 0) {
    return start(exchanging(sends, receives, tag));
  }
  template <ElementRange Range>
  static auto part(Rank peer, Range&& range) {
    if constexpr (is_strided<std::remove_cvref_t<Range>>)
      return StridedPart(peer, range.erased());
    else
      return Part{peer, erase(view_of(range))};
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

  // `operation` with its buffers, and their strides where it has some.
  template <class In, class Out>
  static auto moving(Operation operation, const In& in, Out&& out) {
    operation.send = erase(view_of(in));
    operation.recv = erase(view_of(out));
    if constexpr (is_strided<In> || is_strided<std::remove_cvref_t<Out>>)
      return StridedOperation{.operation = operation, .send = strides_of(in), .recv = strides_of(out)};
    else
      return operation;
  }
  template <class In>
  static auto sending(Operation operation, const In& in) {
    operation.send = erase(view_of(in));
    if constexpr (is_strided<In>)
      return StridedOperation{.operation = operation, .send = strides_of(in)};
    else
      return operation;
  }
  template <class Out>
  static auto receiving(Operation operation, Out&& out) {
    operation.recv = erase(view_of(out));
    if constexpr (is_strided<std::remove_cvref_t<Out>>)
      return StridedOperation{.operation = operation, .recv = strides_of(out)};
    else
      return operation;
  }
  // (What the spans refer to outlives the call in whose arguments these stand.)
  static Operation exchanging(const Part& sent, const Part& received, int tag) {
    return {.pattern = Pattern::exchange, .tag = tag, .sends = {&sent, 1}, .receives = {&received, 1}};
  }
  static StridedOperation exchanging(const StridedPart& sent, const StridedPart& received, int tag) {
    return exchanging(std::span(&sent, 1), std::span(&received, 1), tag);
  }
  static StridedOperation exchanging(std::span<const StridedPart> sends,
                                     std::span<const StridedPart> receives, int tag) {
    return {.operation = {.pattern = Pattern::exchange, .tag = tag}, .sends = sends, .receives = receives};
  }
  template <class Range>
  static std::optional<StridedBuffer> strides_of(const Range& range) {
    if constexpr (is_strided<Range>)
      return range.erased();
    else
      return std::nullopt;
  }

  void submit(const Operation& operation);
  Request start(const Operation& operation);
  void submit(const StridedOperation& call);
  Request start(const StridedOperation& call);
  std::vector<std::int64_t> gather_counts(std::int64_t mine);
  std::shared_ptr<const Membership> membership_;
};

}  // namespace shoal::comm
