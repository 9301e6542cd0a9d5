// SPDX-License-Identifier: Apache-2.0
// Reading another process's memory and another thread's, and what happens when it is gone.
#include "comm/peer_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

using Window = PeerMemory::Window;

World world_of(Rank rank) { return {.rank = rank, .size = 2, .host = {"here", "there"}}; }

// What reading `bytes` at `address` of rank 1 throws.
std::pair<ErrorCode, std::string> error_of(const PeerMemory& memory, std::uint64_t address,
                                           std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  try {
    memory.read(1, data.data(), address, bytes);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::invalid_argument, "nothing was thrown"};
}

// A child is rank 1: it changes its copy of some numbers, says so, and waits for its end.
class PeerMemoryOfProcesses : public testing::Test {
 protected:
  void SetUp() override {
    void* const pages = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    windows_ = static_cast<Window*>(pages);
    std::iota(numbers_.begin(), numbers_.end(), 0);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      const World world = world_of(1);
      const PeerMemory mine(world, {&windows_[0], &windows_[1]}, false);
      for (int& number : numbers_) number += 7;
      const bool told = write(ready[1], "x", 1) == 1;
      while (told) pause();
      _exit(1);
    }
    char word = 0;
    EXPECT_EQ(read(ready[0], &word, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  void TearDown() override {
    end_child();
    munmap(windows_, 4096);
  }
  void end_child() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

  const World world_ = world_of(0);
  Window* windows_ = nullptr;
  std::vector<int> numbers_ = std::vector<int>(100'000);
  pid_t child_ = 0;
};

TEST_F(PeerMemoryOfProcesses, ReadsWhatThePeerHasWritten) {
  const PeerMemory memory(world_, {&windows_[0], &windows_[1]}, false);
  if (!memory.reaches_all()) GTEST_SKIP() << "this kernel lets no process read its siblings' memory";
  std::vector<int> data(numbers_.size() - 3);
  memory.read(1, data.data(), address_of(&numbers_[3]), data.size() * sizeof(int));
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], static_cast<int>(i) + 3 + 7);
}

TEST_F(PeerMemoryOfProcesses, AnotherProcessThanThePeersIsNoticed) {
  const PeerMemory memory(world_, {&windows_[0], &windows_[1]}, false);
  windows_[1].process = getpid();
  EXPECT_FALSE(memory.reaches_all());
}

TEST_F(PeerMemoryOfProcesses, CanBeForbidden) {
  const PeerMemory memory(world_, {&windows_[0], &windows_[1]}, false);
  setenv("SHOAL_NO_SINGLE_COPY", "1", 1);
  EXPECT_FALSE(memory.reaches_all());
  unsetenv("SHOAL_NO_SINGLE_COPY");
}

TEST_F(PeerMemoryOfProcesses, AnEndedPeerIsNamed) {
  const PeerMemory memory(world_, {&windows_[0], &windows_[1]}, false);
  end_child();
  const auto [code, text] = error_of(memory, address_of(numbers_.data()), 4096);
  EXPECT_EQ(code, ErrorCode::communication) << text;
  EXPECT_NE(text.find("PE 0 cannot read 4096 bytes of PE 1 (there)"), std::string::npos) << text;
}

TEST(PeerMemoryOfThreads, NothingIsReadOfAThreadThatHasWithdrawn) {
  const World first = world_of(0), second = world_of(1);
  Window windows[2] = {};
  const PeerMemory memory(first, {&windows[0], &windows[1]}, true),
      peer(second, {&windows[0], &windows[1]}, true);
  const std::vector<int> numbers = {5, 6, 7};
  int number = 0;
  memory.read(1, &number, address_of(&numbers[1]), sizeof number);
  EXPECT_EQ(number, 6);
  peer.withdraw();
  EXPECT_EQ(error_of(memory, address_of(numbers.data()), 4).first, ErrorCode::aborted);
}

}  // namespace
}  // namespace shoal::comm
