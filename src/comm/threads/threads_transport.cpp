// SPDX-License-Identifier: Apache-2.0
#include "comm/threads/threads_transport.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "comm/direct_memory.h"
#include "comm/host_memory.h"
#include "comm/hosts.h"
#include "comm/mailbox.h"
#include "comm/message_transport.h"
#include "comm/wait_board.h"
#include "shoal/base/error.h"

namespace shoal::comm::threads {
namespace {

// The memory of all ranks of one allocation.
struct Block {
  explicit Block(int ranks)
      : asked(static_cast<std::size_t>(ranks)),
        memory(static_cast<std::size_t>(ranks)),
        filled_in(static_cast<std::size_t>(ranks)) {}
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* pointer) const { munmap(pointer, bytes); }
  };
  // Each rank fills in its own, then says so and counts itself ready.
  std::vector<std::size_t> asked;
  std::vector<std::unique_ptr<std::byte[], Unmap>> memory;
  std::vector<std::atomic<bool>> filled_in;
  std::atomic<int> ready{0};
};

class ThreadsMemory final : public SymmetricMemory {
 public:
  ThreadsMemory(std::shared_ptr<Block> block, Rank rank) : block_(std::move(block)), rank_(rank) {}
  std::byte* local() override { return direct(rank_); }
  std::byte* direct(Rank peer) override { return block_->memory[static_cast<std::size_t>(peer)].get(); }
  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override {
    store_put(direct(peer), offset, source, bytes);
  }
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override {
    store_put(direct(peer), offset, source, bytes);
    store_signal(direct(peer), signal_offset, value);
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(destination, direct(peer) + offset, bytes);
  }
  void flush() override {}

 private:
  std::shared_ptr<Block> block_;
  Rank rank_;
};

}  // namespace

class Job {
 public:
  explicit Job(int ranks) : ranks_(ranks) {}
  int ranks() const { return ranks_; }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  void stop() { stopped_.store(true, std::memory_order_release); }

  // The block of a group's `sequence`-th allocation: made by the first that asks, found by the others,
  // forgotten here once all have it.
  std::shared_ptr<Block> find_block(const Group& group, std::uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    // Groups of equal context are disjoint, so the first member tells them apart.
    const Key key{group.context, group.world_rank.front(), sequence};
    auto& entry = blocks_[key];
    if (!entry.block) entry.block = std::make_shared<Block>(group.size());
    const std::shared_ptr<Block> block = entry.block;
    if (++entry.found == group.size()) blocks_.erase(key);
    return block;
  }

 private:
  struct Key {
    std::uint64_t context;
    Rank first;
    std::uint64_t sequence;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::shared_ptr<Block> block;
    int found = 0;
  };
  int ranks_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::map<Key, Entry> blocks_;
};

namespace {

class ThreadsTransport final : public MessageTransport {
 public:
  ThreadsTransport(std::shared_ptr<Job> job, Rank rank) : job_(std::move(job)) {
    world_.rank = rank;
    world_.size = job_->ranks();
    world_.host.assign(static_cast<std::size_t>(world_.size), host_name());
    Group everybody;
    everybody.rank = rank;
    for (Rank r = 0; r < world_.size; ++r) everybody.world_rank.push_back(r);
    host_of_ = number_hosts(world_.host);
    mailbox_ = std::make_unique<Mailbox>(allocate(everybody, Mailbox::footprint(world_.size)), world_,
                                         everybody.world_rank);
    use_mailbox(mailbox_.get(), true);
    use_host_memory(allocate(everybody, host_memory_bytes()));
  }
  ~ThreadsTransport() override { drop_host_memory(); }

  std::string_view name() const override { return "threads"; }
  std::string library() const override { return "threads of one process"; }
  const World& world() const override { return world_; }

  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override {
    const std::shared_ptr<Block> block = job_->find_block(group, allocations_[group.context]++);
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64;
    const auto me = static_cast<std::size_t>(group.rank);
    block->asked[me] = bytes;
    // Pages are zero, and take memory only once they are touched.
    void* const pages = bytes <= available_memory() ? mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                                    : MAP_FAILED;
    if (pages != MAP_FAILED) block->memory[me] = {static_cast<std::byte*>(pages), Block::Unmap{rounded}};
    block->filled_in[me].store(true, std::memory_order_relaxed);
    block->ready.fetch_add(1, std::memory_order_acq_rel);
    const auto all_ready = [&] { return block->ready.load(std::memory_order_acquire) == group.size(); };
    const auto who = [&] {
      std::vector<Rank> missing;
      for (std::size_t r = 0; r < block->filled_in.size(); ++r)
        if (!block->filled_in[r].load(std::memory_order_relaxed)) missing.push_back(group.world_rank[r]);
      return missing;
    };
    wait_or_fail(
        wait_board(), world_, "symmetric allocation", all_ready, [this] { progress(); }, who);
    for (std::size_t r = 0; r < block->asked.size(); ++r)
      if (block->asked[r] != bytes)
        fail(ErrorCode::invalid_argument,
             fmt::format("symmetric allocation of {} bytes on rank {}, but {} on rank {}", bytes, group.rank,
                         block->asked[r], r));
    for (std::size_t r = 0; r < block->memory.size(); ++r)
      if (!block->memory[r])
        fail(ErrorCode::out_of_memory,
             fmt::format("symmetric allocation of {} bytes failed on rank {}: {} bytes are available", bytes,
                         r, available_memory()));
    return std::make_unique<ThreadsMemory>(block, group.rank);
  }

  void open(const Group& group) override {
    place(group, host_of_);
    share_memory(group);
    if (group.context == 0) make_wait_board(group);
  }
  void close(const Group& group) noexcept override {
    allocations_.erase(group.context);
    forget(group);
  }

  void finalize() override {}
  void abort(int) noexcept override { job_->stop(); }

 private:
  Messenger& messenger() override { return *mailbox_; }
  void poll() override {
    if (job_->stopped()) fail(ErrorCode::aborted, "another rank has failed");
    if (mailbox_) mailbox_->advance();
  }

  std::shared_ptr<Job> job_;
  World world_;
  std::vector<int> host_of_;                            // by rank
  std::map<std::uint64_t, std::uint64_t> allocations_;  // so far, by context
  std::unique_ptr<Mailbox> mailbox_;
};

}  // namespace

std::shared_ptr<Job> make_job(int ranks) { return std::make_shared<Job>(ranks); }

std::unique_ptr<Transport> make_transport(std::shared_ptr<Job> job, Rank rank) {
  return std::make_unique<ThreadsTransport>(std::move(job), rank);
}

void stop(Job& job) { job.stop(); }

}  // namespace shoal::comm::threads
