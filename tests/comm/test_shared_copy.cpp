// SPDX-License-Identifier: Apache-2.0
// Copies in which both sides take part: with and without the sender's help, given up half-way, and with a
// sender that ends or stops between the claim of a piece and its copy.
#include "comm/shared_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

using Window = PeerMemory::Window;

World world_of(Rank rank) { return {.rank = rank, .size = 2, .host = {"here", "there"}}; }

std::vector<int> numbers(std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

TEST(CopyShape, PiecesCoverEveryLength) {
  for (const std::size_t bytes :
       {1ul, 63ul, 64ul, 65ul, 40'000ul, 65'536ul, 1ul << 20, 5'000'001ul, 1ul << 40}) {
    const CopyShape shape{1, bytes};
    EXPECT_GE(shape.pieces() * shape.piece(), bytes);
    EXPECT_LT((shape.pieces() - 1) * shape.piece(), bytes);
    EXPECT_LE(shape.pieces(), 255u) << bytes;  // what the counts have room for
  }
  EXPECT_EQ((CopyShape{1, 0}).pieces(), 0u);
  EXPECT_EQ((CopyShape{1, tuning::shared_piece_bytes}).pieces(), 1u);
  EXPECT_EQ((CopyShape{1, 2 * tuning::shared_piece_bytes}).pieces(), 2u);
}

// Both ranks in one process; rank 0 receives.
class SharedCopyOfThreads : public testing::Test {
 protected:
  const World first = world_of(0), second = world_of(1);
  Window windows[2] = {};
  const PeerMemory receiver{first, {&windows[0], &windows[1]}, true};
  const PeerMemory sender{second, {&windows[0], &windows[1]}, true};
  CopyLine line{};
  const std::vector<int> in = numbers(1000);
  std::vector<int> out = std::vector<int>(1000);
  const CopyShape shape{7, 4000, 128};
};

TEST_F(SharedCopyOfThreads, AllArrivesWithoutHelp) {
  SharedReading reading(receiver, 1, line, shape, out.data(), address_of(in.data()));
  EXPECT_TRUE(reading.advance());
  EXPECT_EQ(out, in);
  EXPECT_FALSE(help_copy(sender, 0, line, shape, in.data()));
}

TEST_F(SharedCopyOfThreads, TheSenderWritesFromBehind) {
  EXPECT_FALSE(help_copy(sender, 0, line, shape, in.data()));  // not opened yet
  SharedReading reading(receiver, 1, line, shape, out.data(), address_of(in.data()));
  EXPECT_FALSE(help_copy(sender, 0, line, {6, 4000, 128}, in.data()));  // another copy
  EXPECT_FALSE(help_copy(sender, 0, line, {7, 4004, 128}, in.data()));  // and length
  const std::size_t piece = shape.piece() / sizeof(int);
  ASSERT_TRUE(help_copy(sender, 0, line, shape, in.data()));
  EXPECT_EQ(out.back(), 1000);
  EXPECT_EQ(out[piece], 0);
  std::uint64_t helped = 1;
  while (help_copy(sender, 0, line, shape, in.data())) ++helped;
  EXPECT_EQ(helped, shape.pieces() - 1);  // the receiver has claimed the first
  EXPECT_TRUE(reading.advance());
  EXPECT_EQ(out, in);
}

TEST_F(SharedCopyOfThreads, ManyCopiesByBothAtOnce) {
  constexpr std::uint64_t copies = 2000;
  std::atomic<std::uint64_t> taken = 0;
  std::thread helper([&] {
    for (std::uint64_t number = 1; number <= copies; ++number)
      while (taken.load() < number) help_copy(sender, 0, line, {number, 4000, 128}, in.data());
  });
  for (std::uint64_t number = 1; number <= copies; ++number) {
    std::ranges::fill(out, 0);
    SharedReading reading(receiver, 1, line, {number, 4000, 128}, out.data(), address_of(in.data()));
    while (!reading.advance()) std::this_thread::yield();
    EXPECT_EQ(out, in);
    taken = number;
  }
  helper.join();
}

TEST_F(SharedCopyOfThreads, NothingIsWrittenOnceItIsGivenUp) {
  {
    SharedReading reading(receiver, 1, line, shape, out.data(), address_of(in.data()));
    ASSERT_TRUE(help_copy(sender, 0, line, shape, in.data()));
  }
  std::ranges::fill(out, -1);
  EXPECT_FALSE(help_copy(sender, 0, line, shape, in.data()));
  EXPECT_EQ(out, std::vector<int>(1000, -1));
}

TEST_F(SharedCopyOfThreads, AReceiverThatHasWithdrawnIsNotWrittenTo) {
  SharedReading reading(receiver, 1, line, shape, out.data(), address_of(in.data()));
  receiver.withdraw();
  EXPECT_THROW(help_copy(sender, 0, line, shape, in.data()), Error);
  EXPECT_EQ(out, std::vector<int>(1000));
  try {
    reading.advance();
    FAIL() << "the sender has failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::communication);
    EXPECT_NE(std::string(error.what()).find("PE 1"), std::string::npos) << error.what();
  }
}

// Rank 1, the sender, is a child of this process.
class SharedCopyOfProcesses : public testing::Test {
 protected:
  struct Shared {
    Window windows[2];
    CopyLine line;
    std::uint64_t ready;
  };
  void SetUp() override {
    void* const pages =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    shared_ = static_cast<Shared*>(pages);
  }
  void TearDown() override {
    reading_.reset();
    memory_.reset();
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    munmap(shared_, sizeof(Shared));
  }

  // The child changes its numbers, and does `work` once the copy has been opened; false: not possible here.
  bool open(const std::function<void(const PeerMemory&)>& work) {
    child_ = fork();
    if (child_ == 0) {
      const World world = world_of(1);
      const PeerMemory memory(world, {&shared_->windows[0], &shared_->windows[1]}, false);
      for (int& number : in_) number += 5;
      word(shared_->ready) = 1;
      while (word(shared_->line.state) == 0) std::this_thread::yield();
      work(memory);
      _exit(0);
    }
    memory_.emplace(world_, std::vector<Window*>{&shared_->windows[0], &shared_->windows[1]}, false);
    while (word(shared_->ready) == 0) std::this_thread::yield();
    if (!memory_->reaches_all()) return false;
    reading_.emplace(*memory_, 1, shared_->line, shape_, out_.data(), address_of(in_.data()));
    return true;
  }
  static std::atomic_ref<std::uint64_t> word(std::uint64_t& number) {
    return std::atomic_ref<std::uint64_t>(number);
  }
  // What a sender does first, and no more.
  void claim_only() { word(shared_->line.state) += 1 << 8; }
  void await_claim() {
    while ((word(shared_->line.state) & 0xff00) == 0) std::this_thread::yield();
  }

  const World world_ = world_of(0);
  Shared* shared_ = nullptr;
  std::vector<int> in_ = numbers(100'000);
  std::vector<int> out_ = std::vector<int>(100'000);
  const CopyShape shape_{3, 400'000};
  std::optional<PeerMemory> memory_;
  std::optional<SharedReading> reading_;
  pid_t child_ = 0;
};

TEST_F(SharedCopyOfProcesses, BothCopy) {
  const bool possible = open([&](const PeerMemory& memory) {
    help_copy(memory, 0, shared_->line, shape_, in_.data());
    while (true) pause();
  });
  if (!possible) GTEST_SKIP() << "this kernel lets no process read its siblings' memory";
  await_claim();
  while (!reading_->advance()) std::this_thread::yield();
  for (std::size_t i = 0; i < out_.size(); ++i) ASSERT_EQ(out_[i], static_cast<int>(i) + 1 + 5);
}

TEST_F(SharedCopyOfProcesses, ASenderThatEndsBetweenClaimAndPieceIsNamed) {
  const bool possible = open([&](const PeerMemory&) {
    claim_only();
    while (true) pause();
  });
  if (!possible) GTEST_SKIP() << "this kernel lets no process read its siblings' memory";
  await_claim();
  EXPECT_FALSE(reading_->advance());  // all but the sender's piece is there
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  child_ = 0;
  try {
    while (!reading_->advance()) std::this_thread::yield();
    FAIL() << "the sender has ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::communication);
    EXPECT_NE(std::string(error.what()).find("PE 1 (there)"), std::string::npos) << error.what();
  }
}

// It would write when it is woken, into memory that may have become something else.
TEST_F(SharedCopyOfProcesses, ASenderThatIsStoppedBetweenClaimAndPieceCannotWriteAfterwards) {
  const bool possible = open([&](const PeerMemory&) {
    claim_only();
    raise(SIGSTOP);
    _exit(1);
  });
  if (!possible) GTEST_SKIP() << "this kernel lets no process read its siblings' memory";
  await_claim();
  EXPECT_FALSE(reading_->advance());
  const auto start = std::chrono::steady_clock::now();
  reading_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 200 && ended == 0; ++i) {
    ended = waitpid(child_, &status, WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(ended, child_);
  EXPECT_TRUE(WIFSIGNALED(status));
  child_ = 0;
}

}  // namespace
}  // namespace shoal::comm
