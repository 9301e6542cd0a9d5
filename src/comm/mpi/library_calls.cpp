// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/library_calls.h"

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <span>

#include "comm/mpi/mpi_call.h"

namespace shoal::comm::mpi {
namespace {

using Call = std::function<void()>;

// MPI's form of counts: 32-bit, with the offset of each part.
struct Parts {
  explicit Parts(std::span<const std::int64_t> counts) {
    int begin = 0;
    for (const std::int64_t count : counts) {
      length.push_back(static_cast<int>(count));
      offset.push_back(begin);
      begin += length.back();
    }
  }
  bool equal() const { return std::ranges::count(length, length.front()) == std::ssize(length); }

  std::vector<int> length, offset;
};

bool fits(const Buffer& buffer) {
  return buffer.count == 0 ||
         (buffer.dtype == DType::float32 && buffer.count <= std::numeric_limits<int>::max());
}

class MpiCalls final : public LibraryCalls {
 public:
  MpiCalls() { MPI_Comm_rank(world, &rank_); }

  std::string name() const override { return "MPI"; }
  Operands operands() override { return {}; }

  Call prepare(const Operation& o) override {
    if (!fits(o.send) || !fits(o.recv) || o.reduction != Reduction::sum) return {};
    switch (o.pattern) {
      case Pattern::barrier: return [this] { check(MPI_Barrier(world), "MPI_Barrier"); };
      case Pattern::broadcast: return broadcast(o);
      case Pattern::reduce:
      case Pattern::all_reduce:
      case Pattern::scan:
      case Pattern::exclusive_scan: return reduction(o);
      case Pattern::reduce_scatter: return reduce_scatter(o);
      case Pattern::gather: return gather(o);
      case Pattern::all_gather: return all_gather(o);
      case Pattern::scatter: return scatter(o);
      case Pattern::all_to_all: return all_to_all(o);
      case Pattern::exchange: return send_and_receive(o);
      case Pattern::send:
      case Pattern::recv: return message(o);
      default: return {};
    }
  }

 private:
  static inline const MPI_Comm world = MPI_COMM_WORLD;
  static constexpr int tag = 1;

  void check(int code, const char* what) const { call(code, what, rank_); }
  static int count(const Buffer& buffer) { return static_cast<int>(buffer.count); }

  Call broadcast(const Operation& o) const {
    return [this, data = o.recv, root = o.peer] {
      check(MPI_Bcast(data.data, count(data), MPI_FLOAT, root, world), "MPI_Bcast");
    };
  }

  Call reduction(const Operation& o) const {
    const void* in = o.send.data;
    void* out = o.recv.data;
    const int n = count(o.send), root = o.peer;
    if (o.pattern == Pattern::reduce)
      return [=, this] { check(MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, root, world), "MPI_Reduce"); };
    if (o.pattern == Pattern::all_reduce)
      return [=, this] { check(MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, world), "MPI_Allreduce"); };
    if (o.pattern == Pattern::scan)
      return [=, this] { check(MPI_Scan(in, out, n, MPI_FLOAT, MPI_SUM, world), "MPI_Scan"); };
    return [=, this] { check(MPI_Exscan(in, out, n, MPI_FLOAT, MPI_SUM, world), "MPI_Exscan"); };
  }

  Call reduce_scatter(const Operation& o) const {
    const void* in = o.send.data;
    void* out = o.recv.data;
    const Parts parts(o.counts);
    if (parts.equal())
      return [=, this, n = parts.length.front()] {
        check(MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, world), "MPI_Reduce_scatter_block");
      };
    return [=, this] {
      check(MPI_Reduce_scatter(in, out, parts.length.data(), MPI_FLOAT, MPI_SUM, world),
            "MPI_Reduce_scatter");
    };
  }

  Call gather(const Operation& o) const {
    const void* in = o.send.data;
    void* out = o.recv.data;
    const int n = count(o.send), root = o.peer;
    const Parts parts(o.counts);
    if (parts.equal())
      return [=, this] { check(MPI_Gather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, root, world), "MPI_Gather"); };
    return [=, this] {
      check(MPI_Gatherv(in, n, MPI_FLOAT, out, parts.length.data(), parts.offset.data(), MPI_FLOAT, root,
                        world),
            "MPI_Gatherv");
    };
  }

  Call all_gather(const Operation& o) const {
    const void* in = o.send.data;
    void* out = o.recv.data;
    const int n = count(o.send);
    const Parts parts(o.counts);
    if (parts.equal())
      return [=, this] { check(MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world), "MPI_Allgather"); };
    return [=, this] {
      check(MPI_Allgatherv(in, n, MPI_FLOAT, out, parts.length.data(), parts.offset.data(), MPI_FLOAT, world),
            "MPI_Allgatherv");
    };
  }

  Call scatter(const Operation& o) const {
    const void* in = o.send.data;
    void* out = o.recv.data;
    const int n = count(o.recv), root = o.peer;
    const Parts parts(o.counts);
    if (parts.equal())
      return
          [=, this] { check(MPI_Scatter(in, n, MPI_FLOAT, out, n, MPI_FLOAT, root, world), "MPI_Scatter"); };
    return [=, this] {
      check(MPI_Scatterv(in, parts.length.data(), parts.offset.data(), MPI_FLOAT, out, n, MPI_FLOAT, root,
                         world),
            "MPI_Scatterv");
    };
  }

  Call all_to_all(const Operation& o) const {
    const void* in = o.send.data;
    void* out = o.recv.data;
    const Parts to(o.counts), from(o.recv_counts);
    // All ranks must take the same call, which each can only tell from its own counts: the benchmark's
    // are the same on all.
    if (to.equal() && from.equal())
      return [=, this, n = to.length.front()] {
        check(MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world), "MPI_Alltoall");
      };
    return [=, this] {
      check(MPI_Alltoallv(in, to.length.data(), to.offset.data(), MPI_FLOAT, out, from.length.data(),
                          from.offset.data(), MPI_FLOAT, world),
            "MPI_Alltoallv");
    };
  }

  Call send_and_receive(const Operation& o) const {
    if (o.sends.size() != 1 || o.receives.size() != 1) return {};
    const Part out = o.sends[0], in = o.receives[0];
    if (!fits(out.buffer) || !fits(in.buffer)) return {};
    return [=, this] {
      check(MPI_Sendrecv(out.buffer.data, count(out.buffer), MPI_FLOAT, out.peer, tag, in.buffer.data,
                         count(in.buffer), MPI_FLOAT, in.peer, tag, world, MPI_STATUS_IGNORE),
            "MPI_Sendrecv");
    };
  }

  Call message(const Operation& o) const {
    const int peer = o.peer;
    if (o.pattern == Pattern::send)
      return [=, this, data = o.send] {
        check(MPI_Send(data.data, count(data), MPI_FLOAT, peer, tag, world), "MPI_Send");
      };
    return [=, this, data = o.recv] {
      check(MPI_Recv(data.data, count(data), MPI_FLOAT, peer, tag, world, MPI_STATUS_IGNORE), "MPI_Recv");
    };
  }

  int rank_ = 0;
};

}  // namespace

std::unique_ptr<LibraryCalls> make_library_calls() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) return nullptr;
  return std::make_unique<MpiCalls>();
}

}  // namespace shoal::comm::mpi
