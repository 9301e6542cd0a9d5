// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <list>
#include <map>
#include <random>
#include <span>
#include <stdexcept>

#include "comm/property_model.h"

namespace shoal::comm::property {
namespace {

// An operation that has been issued; its buffers stay where they are until it has been checked.
struct Issued {
  Step step;
  int communicator_size = 1;
  Rank rank = 0;
  Buffers buffers;
  std::vector<std::int64_t> counts, recv_counts;
  std::vector<Request> requests;
  std::function<Request()> late;  // what is started only when the rest is waited for
  int tag = 0;
  std::size_t due = 0;
};

template <class T>
std::span<T> as(std::vector<std::byte>& bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Patterns whose `in` may be their `out`.
bool one_buffer(Pattern pattern) {
  return pattern == Pattern::reduce || pattern == Pattern::all_reduce || pattern == Pattern::scan ||
         pattern == Pattern::exclusive_scan;
}

// The typed calls of one issued operation. `now` is the blocking form.
template <class T>
class Caller {
 public:
  Caller(Communicator& comm, Issued& issued, bool now)
      : comm_(comm), issued_(issued), now_(now), step_(issued.step), root_(step_.root % comm.size()) {
    std::vector<std::byte>& in_bytes = issued.buffers.in;
    std::vector<std::byte>& out_bytes = issued.buffers.out;
    in_ = as<T>(in_bytes);
    out_ = as<T>(out_bytes);
    if (!step_.in_place || out_bytes.empty()) return;
    if (step_.pattern == Pattern::all_gather) {
      std::int64_t begin = 0;
      for (Rank r = 0; r < comm.rank(); ++r) begin += issued.counts[static_cast<std::size_t>(r)];
      const std::span<T> place = out_.subspan(static_cast<std::size_t>(begin), in_.size());
      std::ranges::copy(in_bytes, reinterpret_cast<std::byte*>(place.data()));
      in_ = place;
    } else if (one_buffer(step_.pattern)) {
      out_bytes = in_bytes;
      in_ = out_ = as<T>(out_bytes);
    }
  }

  void call() {
    const std::span<const std::int64_t> counts = issued_.counts;
    const Reduction op = step_.reduction;
    switch (step_.pattern) {
      case Pattern::barrier: return now_ ? comm_.barrier() : keep(comm_.barrier_async());
      case Pattern::broadcast:
        return now_ ? comm_.broadcast(out_, root_) : keep(comm_.broadcast_async(out_, root_));
      case Pattern::reduce:
        return now_ ? comm_.reduce(in_, out_, op, root_) : keep(comm_.reduce_async(in_, out_, op, root_));
      case Pattern::all_reduce:
        return now_ ? comm_.all_reduce(in_, out_, op) : keep(comm_.all_reduce_async(in_, out_, op));
      case Pattern::reduce_scatter:
        return now_ ? comm_.reduce_scatter(in_, out_, counts, op)
                    : keep(comm_.reduce_scatter_async(in_, out_, counts, op));
      case Pattern::gather:
        return now_ ? comm_.gather(in_, out_, counts, root_)
                    : keep(comm_.gather_async(in_, out_, counts, root_));
      case Pattern::all_gather:
        return now_ ? comm_.all_gather(in_, out_, counts) : keep(comm_.all_gather_async(in_, out_, counts));
      case Pattern::scatter:
        return now_ ? comm_.scatter(in_, out_, counts, root_)
                    : keep(comm_.scatter_async(in_, out_, counts, root_));
      case Pattern::all_to_all:
        return now_ ? comm_.all_to_all(in_, counts, out_, issued_.recv_counts)
                    : keep(comm_.all_to_all_async(in_, counts, out_, issued_.recv_counts));
      case Pattern::scan: return now_ ? comm_.scan(in_, out_, op) : keep(comm_.scan_async(in_, out_, op));
      case Pattern::exclusive_scan:
        return now_ ? comm_.exclusive_scan(in_, out_, op) : keep(comm_.exclusive_scan_async(in_, out_, op));
      case Pattern::exchange:
      case Pattern::send:
      case Pattern::recv: return ring();
    }
  }

 private:
  void keep(Request request) { issued_.requests.push_back(std::move(request)); }

  void ring() {
    const Rank next = (comm_.rank() + 1) % comm_.size(),
               previous = (comm_.rank() + comm_.size() - 1) % comm_.size();
    const int tag = issued_.tag;
    if (step_.pattern == Pattern::exchange || comm_.size() == 1)
      return now_ ? comm_.sendrecv(in_, next, out_, previous, tag)
                  : keep(comm_.sendrecv_async(in_, next, out_, previous, tag));
    if (!now_) {
      keep(comm_.send_async(in_, next, tag));
      auto receive = [comm = comm_, out = out_, previous, tag]() mutable {
        return comm.recv_async(out, previous, tag);
      };
      if (step_.pattern == Pattern::send) return keep(receive());
      issued_.late = receive;
      return;
    }
    if (step_.pattern == Pattern::recv) {
      Request received = comm_.recv_async(out_, previous, tag);
      comm_.send(in_, next, tag);
      return received.wait();
    }
    if (comm_.rank() % 2 == 0) comm_.send(in_, next, tag);
    comm_.recv(out_, previous, tag);
    if (comm_.rank() % 2 == 1) comm_.send(in_, next, tag);
  }

  Communicator& comm_;
  Issued& issued_;
  bool now_;
  const Step& step_;
  Rank root_;
  std::span<T> in_, out_;
};

template <class T>
void call_as(Communicator& comm, Issued& issued, bool now) {
  Caller<T>(comm, issued, now).call();
}

void call(Communicator& comm, Issued& issued, bool now) {
  switch (issued.step.dtype) {
    case DType::int8: return call_as<std::int8_t>(comm, issued, now);
    case DType::uint8: return call_as<std::uint8_t>(comm, issued, now);
    case DType::int16: return call_as<std::int16_t>(comm, issued, now);
    case DType::uint16: return call_as<std::uint16_t>(comm, issued, now);
    case DType::int32: return call_as<std::int32_t>(comm, issued, now);
    case DType::uint32: return call_as<std::uint32_t>(comm, issued, now);
    case DType::int64: return call_as<std::int64_t>(comm, issued, now);
    case DType::uint64: return call_as<std::uint64_t>(comm, issued, now);
    case DType::float16: return call_as<float16>(comm, issued, now);
    case DType::bfloat16: return call_as<bfloat16>(comm, issued, now);
    case DType::float32: return call_as<float>(comm, issued, now);
    case DType::float64: return call_as<double>(comm, issued, now);
    case DType::complex64: return call_as<std::complex<float>>(comm, issued, now);
    case DType::complex128: return call_as<std::complex<double>>(comm, issued, now);
    case DType::boolean: return call_as<bool>(comm, issued, now);
    case DType::located_int32: return call_as<Located<std::int32_t>>(comm, issued, now);
    case DType::located_int64: return call_as<Located<std::int64_t>>(comm, issued, now);
    case DType::located_float32: return call_as<Located<float>>(comm, issued, now);
    case DType::located_float64: return call_as<Located<double>>(comm, issued, now);
  }
}

std::optional<Communicator> create(const NewCommunicator& made, Communicator& parent) {
  switch (made.how) {
    case NewCommunicator::How::split:
      return parent.split(parent.rank() % made.divisor, made.reversed ? -parent.rank() : parent.rank());
    case NewCommunicator::How::subset: {
      std::vector<Rank> members;
      for (Rank r = 0; r < parent.size(); r += made.divisor) members.push_back(r);
      if (made.reversed) std::ranges::reverse(members);
      if (parent.rank() % made.divisor != 0) return std::nullopt;
      return parent.subset(members);
    }
    case NewCommunicator::How::duplicate: return parent.duplicate();
  }
  return std::nullopt;
}

class Runner {
 public:
  Runner(Communicator& world, const Script& script, const Spoil& spoil)
      : world_rank_(world.rank()),
        script_(script),
        spoil_(spoil),
        order_(script.seed * 1000 + static_cast<std::uint64_t>(world.rank())) {
    communicators_.emplace_back(world);
  }

  void run() {
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      const Step& step = script_.steps[i];
      std::optional<Communicator>& comm =
          communicators_[static_cast<std::size_t>(step.creates ? step.creates->parent : step.communicator)];
      if (step.creates) {
        std::optional<Communicator> made = comm ? create(*step.creates, *comm) : std::nullopt;
        communicators_.push_back(std::move(made));
      } else if (comm) {
        issue(step, i, *comm);
      }
      finish(i);
    }
    finish(script_.steps.size() + 100);
  }

 private:
  void issue(const Step& step, std::size_t i, Communicator& comm) {
    Issued& issued = issued_.emplace_back();
    issued.step = step;
    issued.communicator_size = comm.size();
    issued.rank = comm.rank();
    // The same tags on all communicators, but never twice on one: messages are told apart by both.
    issued.tag = tags_[step.communicator]++;
    issued.due = i + static_cast<std::size_t>(step.lifetime);
    issued.buffers = make_buffers(step, comm.size(), comm.rank());
    issued.counts = counts(step, comm.size());
    if (step.pattern == Pattern::all_to_all)
      for (Rank r = 0; r < comm.size(); ++r) {
        issued.counts[static_cast<std::size_t>(r)] = all_to_all_count(step, comm.size(), comm.rank(), r);
        issued.recv_counts.push_back(all_to_all_count(step, comm.size(), r, comm.rank()));
      }
    call(comm, issued, step.lifetime == 0);
  }

  // Those that are due by step i, in an order of this rank's own.
  void finish(std::size_t i) {
    std::vector<Issued*> due;
    for (Issued& issued : issued_)
      if (issued.due <= i) due.push_back(&issued);
    std::shuffle(due.begin(), due.end(), order_);
    for (Issued* issued : due) {
      if (issued->late) issued->requests.push_back(issued->late());
      for (Request& request : issued->requests)
        if (order_() % 3 != 0 || !request.test()) request.wait();
      check(*issued);
    }
    std::erase_if(issued_, [i](const Issued& issued) { return issued.due <= i; });
  }

  void check(Issued& issued) {
    std::vector<std::byte>& out = issued.buffers.out;
    if (spoil_) spoil_(issued.step, world_rank_, out);
    normalise(issued.step.dtype, out);
    const auto [got, expected] = std::ranges::mismatch(out, issued.buffers.expected);
    if (got == out.end()) return;
    const std::size_t size = size_of(issued.step.dtype);
    throw std::runtime_error(
        fmt::format("step {} on rank {} of the world, {} of {}: element {} of {} is wrong", issued.step.id,
                    world_rank_, issued.rank, issued.communicator_size,
                    static_cast<std::size_t>(got - out.begin()) / size, out.size() / size));
  }

  Rank world_rank_;
  const Script& script_;
  const Spoil& spoil_;
  std::mt19937_64 order_;
  std::vector<std::optional<Communicator>> communicators_;
  std::map<int, int> tags_;  // next, of each communicator
  std::list<Issued> issued_;
};

}  // namespace

void run(Communicator& world, const Script& script, const Spoil& spoil) {
  if (world.size() != script.ranks)
    throw std::runtime_error(fmt::format("a script of {} ranks on {}", script.ranks, world.size()));
  Runner(world, script, spoil).run();
}

}  // namespace shoal::comm::property
