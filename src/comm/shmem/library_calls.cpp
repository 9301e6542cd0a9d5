// SPDX-License-Identifier: Apache-2.0
// The operands lie in symmetric memory, so that no copy in or out is timed as the library's. Work arrays
// may not be used again while a peer is still in the call before, so calls take them in turn.
#include "comm/shmem/library_calls.h"

#include <shmem.h>

#include <algorithm>
#include <limits>

#include "shoal/base/error.h"
#include "shoal/comm/transport.h"

namespace shoal::comm::shmem {
namespace {

using Call = std::function<void()>;

constexpr std::size_t line = 64;
constexpr int sync_words = std::max(
    {SHMEM_BCAST_SYNC_SIZE, SHMEM_COLLECT_SYNC_SIZE, SHMEM_REDUCE_SYNC_SIZE, SHMEM_ALLTOALL_SYNC_SIZE});

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + line - 1) / line * line; }

// Offsets within the symmetric memory.
struct Layout {
  Layout(int ranks, std::size_t operand_bytes)
      : operand(round_up(operand_bytes)),
        work(round_up(std::max<std::size_t>(operand_bytes / 2 + sizeof(float),
                                            SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(float)))),
        sync(round_up(sync_words * sizeof(long))),
        // With roots in turn, whoever begins call k + ranks has heard of every rank that it has ended call k.
        syncs(ranks + 1) {}
  std::size_t recv() const { return operand; }
  std::size_t work_at(std::uint64_t call) const { return 2 * operand + call % 2 * work; }
  std::size_t sync_at(std::uint64_t call) const {
    return 2 * operand + 2 * work + call % static_cast<std::uint64_t>(syncs) * sync;
  }
  std::size_t flag() const { return 2 * operand + 2 * work + static_cast<std::size_t>(syncs) * sync; }
  std::size_t bytes() const { return flag() + line; }

  std::size_t operand, work, sync;
  int syncs;
};

class ShmemCalls final : public LibraryCalls {
 public:
  ShmemCalls(Communicator& world, std::size_t operand_bytes)
      : layout_(world.size(), operand_bytes), size_(world.size()), memory_(world.allocate(layout_.bytes())) {
    std::fill_n(reinterpret_cast<long*>(at(layout_.sync_at(0))),
                static_cast<std::size_t>(layout_.syncs) * layout_.sync / sizeof(long),
                static_cast<long>(SHMEM_SYNC_VALUE));
    world.barrier();
  }

  std::string name() const override { return "OpenSHMEM"; }
  Operands operands() override { return {at(0), at(layout_.recv())}; }

  Call prepare(const Operation& o) override {
    const bool fits = o.send.count <= std::numeric_limits<int>::max() && o.reduction == Reduction::sum;
    for (const Buffer& buffer : {o.send, o.recv})
      if (!fits || (buffer.count > 0 && buffer.dtype != DType::float32)) return {};
    switch (o.pattern) {
      case Pattern::barrier: return [] { shmem_barrier_all(); };
      case Pattern::broadcast:
        return [this, data = o.recv, root = o.peer] {
          shmem_broadcast32(data.data, data.data, static_cast<std::size_t>(data.count), root, 0, 0, size_,
                            next_sync());
        };
      case Pattern::all_reduce:
        return [this, in = o.send, out = o.recv] {
          float* work = reinterpret_cast<float*>(at(layout_.work_at(calls_)));
          shmem_float_sum_to_all(static_cast<float*>(out.data), static_cast<const float*>(in.data),
                                 static_cast<int>(in.count), 0, 0, size_, work, next_sync());
        };
      case Pattern::all_gather: return all_gather(o);
      case Pattern::all_to_all:
        if (!equal(o.counts) || !equal(o.recv_counts)) return {};
        return [this, in = o.send, out = o.recv, n = static_cast<std::size_t>(o.counts[0])] {
          shmem_alltoall32(out.data, in.data, n, 0, 0, size_, next_sync());
        };
      case Pattern::send:
        return [this, data = o.send, peer = o.peer, sent = std::uint64_t{0}]() mutable {
          shmem_putmem(at(layout_.recv()), data.data, data.bytes(), peer);
          shmem_fence();
          shmem_ulong_atomic_set(flag(), ++sent, peer);
        };
      case Pattern::recv:
        *flag() = 0;
        return [this, received = std::uint64_t{0}]() mutable {
          shmem_ulong_wait_until(flag(), SHMEM_CMP_GE, ++received);
        };
      default: return {};
    }
  }

 private:
  static bool equal(std::span<const std::int64_t> counts) {
    return std::ranges::count(counts, counts.front()) == std::ssize(counts);
  }

  Call all_gather(const Operation& o) {
    if (equal(o.counts))
      return [this, in = o.send, out = o.recv] {
        shmem_fcollect32(out.data, in.data, static_cast<std::size_t>(in.count), 0, 0, size_, next_sync());
      };
    return [this, in = o.send, out = o.recv] {
      shmem_collect32(out.data, in.data, static_cast<std::size_t>(in.count), 0, 0, size_, next_sync());
    };
  }

  std::byte* at(std::size_t offset) { return memory_->local() + offset; }
  unsigned long* flag() { return reinterpret_cast<unsigned long*>(at(layout_.flag())); }
  long* next_sync() { return reinterpret_cast<long*>(at(layout_.sync_at(calls_++))); }

  Layout layout_;
  int size_;
  std::unique_ptr<SymmetricMemory> memory_;
  std::uint64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<LibraryCalls> make_library_calls(Communicator& world, std::size_t operand_bytes) {
  return std::make_unique<ShmemCalls>(world, operand_bytes);
}

}  // namespace shoal::comm::shmem
