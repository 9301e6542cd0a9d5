// SPDX-License-Identifier: Apache-2.0
#include "comm/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

std::atomic_ref<std::uint64_t> shared(std::uint64_t& word) { return std::atomic_ref<std::uint64_t>(word); }

}  // namespace

PeerMemory::PeerMemory(const World& world, std::vector<Window*> windows, bool threads)
    : world_(world), windows_(std::move(windows)), threads_(threads) {
  // No two ranks have the same word, so a wrong process is noticed.
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  word_ = (now << 20) + static_cast<std::uint64_t>(world.rank) + 1;
  Window& mine = own();
  mine.process = getpid();
  mine.address = address_of(&word_);
  mine.value = word_;
}

bool PeerMemory::reads_all() const {
  if (std::getenv("SHOAL_NO_SINGLE_COPY")) return false;
  if (threads_) return true;
  for (Rank peer = 0; peer < world_.size; ++peer) {
    const Window* window = windows_[static_cast<std::size_t>(peer)];
    if (!window || peer == world_.rank) continue;
    std::uint64_t found = 0;
    if (read_process(peer, &found, window->address, sizeof found) != 0 || found != window->value)
      return false;
  }
  return true;
}

void PeerMemory::read(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const {
  if (bytes == 0) return;
  if (threads_) return read_thread(peer, to, address, bytes);
  if (const int error = read_process(peer, to, address, bytes))
    fail(ErrorCode::communication,
         fmt::format("PE {} cannot read {} bytes of PE {} ({}), which may have ended: {}", world_.rank, bytes,
                     peer, world_.host[static_cast<std::size_t>(peer)], std::strerror(error)));
}

// Either the reader sees that the peer has withdrawn, or the peer sees that it is being read: both words are
// stored before the other is loaded, in one order that all see.
void PeerMemory::read_thread(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const {
  shared(own().reading).store(static_cast<std::uint64_t>(peer) + 1, std::memory_order_seq_cst);
  const bool withdrawn =
      shared(windows_[static_cast<std::size_t>(peer)]->withdrawn).load(std::memory_order_seq_cst) != 0;
  if (!withdrawn) std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  shared(own().reading).store(0, std::memory_order_release);
  if (withdrawn) fail(ErrorCode::aborted, "another rank has failed");
}

int PeerMemory::read_process(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const {
  constexpr std::size_t most = std::size_t{1} << 30;  // of a call
  const auto process = static_cast<pid_t>(windows_[static_cast<std::size_t>(peer)]->process);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t length = std::min(bytes - done, most);
    const iovec here{static_cast<std::byte*>(to) + done, length};
    const iovec there{reinterpret_cast<void*>(address + done), length};
    const ssize_t read = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return read < 0 ? errno : EFAULT;
    done += static_cast<std::size_t>(read);
  }
  return 0;
}

void PeerMemory::withdraw() const {
  if (!threads_) return;  // the kernel checks what it reads
  shared(own().withdrawn).store(1, std::memory_order_seq_cst);
  const auto me = static_cast<std::uint64_t>(world_.rank) + 1;
  for (Window* window : windows_)
    while (window && shared(window->reading).load(std::memory_order_seq_cst) == me) std::this_thread::yield();
}

}  // namespace shoal::comm
