// SPDX-License-Identifier: Apache-2.0
#include "comm/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "comm/wait.h"
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

// What is written is what is there already.
bool PeerMemory::reaches_all() const {
  if (std::getenv("SHOAL_NO_SINGLE_COPY")) return false;
  if (threads_) return true;
  for (Rank peer = 0; peer < world_.size; ++peer) {
    const Window* window = windows_[static_cast<std::size_t>(peer)];
    if (!window || peer == world_.rank) continue;
    std::uint64_t value = window->value;
    if (!is_there(peer) || copy_process(process_vm_writev, peer, &value, window->address, sizeof value) != 0)
      return false;
  }
  return true;
}

bool PeerMemory::is_there(Rank peer) const {
  const Window& window = *windows_[static_cast<std::size_t>(peer)];
  std::uint64_t found = 0;
  return copy_process(process_vm_readv, peer, &found, window.address, sizeof found) == 0 &&
         found == window.value;
}

void PeerMemory::probe(Rank peer) const {
  if (!threads_ && !is_there(peer))
    fail(ErrorCode::communication, fmt::format("PE {} ({}), which PE {} waits for, has ended", peer,
                                               world_.host[static_cast<std::size_t>(peer)], world_.rank));
}

template <class Call>
int PeerMemory::copy_process(Call call, Rank peer, void* here, std::uint64_t address,
                             std::size_t bytes) const {
  constexpr std::size_t most = std::size_t{1} << 30;  // of a call
  const auto process = static_cast<pid_t>(windows_[static_cast<std::size_t>(peer)]->process);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t length = std::min(bytes - done, most);
    const iovec local{static_cast<std::byte*>(here) + done, length};
    const iovec there{reinterpret_cast<void*>(address + done), length};
    const ssize_t copied = call(process, &local, 1, &there, 1, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied <= 0) return copied < 0 ? errno : EFAULT;
    done += static_cast<std::size_t>(copied);
  }
  return 0;
}

// Either this rank sees that the peer has withdrawn, or the peer sees that it is being copied from or to:
// both words are stored before the other is loaded, in one order that all see.
template <class Copy>
void PeerMemory::guarded(std::uint64_t& word, Rank peer, Copy&& copy) const {
  shared(word).store(static_cast<std::uint64_t>(peer) + 1, std::memory_order_seq_cst);
  const bool withdrawn =
      shared(windows_[static_cast<std::size_t>(peer)]->withdrawn).load(std::memory_order_seq_cst) != 0;
  if (!withdrawn) copy();
  shared(word).store(0, std::memory_order_release);
  if (withdrawn) fail(ErrorCode::aborted, "another rank has failed");
}

void PeerMemory::refuse(int error, std::string_view what, std::size_t bytes, Rank peer) const {
  fail(ErrorCode::communication,
       fmt::format("PE {} cannot {} {} bytes of PE {} ({}), which may have ended: {}", world_.rank, what,
                   bytes, peer, world_.host[static_cast<std::size_t>(peer)], std::strerror(error)));
}

void PeerMemory::read(Rank peer, void* to, std::uint64_t address, std::size_t bytes) const {
  if (bytes == 0) return;
  if (threads_)
    return guarded(own().reading, peer,
                   [&] { std::memcpy(to, reinterpret_cast<const void*>(address), bytes); });
  const int error = copy_process(process_vm_readv, peer, to, address, bytes);
  if (error != 0) refuse(error, "read", bytes, peer);
}

void PeerMemory::write(Rank peer, std::uint64_t address, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  int error = 0;
  guarded(own().writing, peer, [&] {
    if (threads_)
      std::memcpy(reinterpret_cast<void*>(address), from, bytes);
    else
      error = copy_process(process_vm_writev, peer, const_cast<void*>(from), address, bytes);
  });
  if (error != 0) refuse(error, "write", bytes, peer);
}

// (A process that has no memory any more is in no system call.)
void PeerMemory::outlast(Rank peer, const std::function<bool()>& done) const {
  const auto over = [&] { return done() || (!threads_ && !is_there(peer)); };
  const auto nothing = [] {};
  const auto long_enough = threads_ ? std::chrono::milliseconds::max() : std::chrono::milliseconds(1000);
  if (wait_until(over, nothing, long_enough)) return;
  kill(static_cast<pid_t>(windows_[static_cast<std::size_t>(peer)]->process), SIGKILL);
  wait_until(over, nothing, std::chrono::milliseconds::max());
}

void PeerMemory::withdraw() const {
  shared(own().withdrawn).store(1, std::memory_order_seq_cst);
  const auto me = static_cast<std::uint64_t>(world_.rank) + 1;
  for (Rank peer = 0; peer < world_.size; ++peer) {
    Window* const window = windows_[static_cast<std::size_t>(peer)];
    if (!window || peer == world_.rank) continue;
    outlast(peer, [&] {
      return (!threads_ || shared(window->reading).load(std::memory_order_seq_cst) != me) &&
             shared(window->writing).load(std::memory_order_seq_cst) != me;
    });
  }
}

}  // namespace shoal::comm
