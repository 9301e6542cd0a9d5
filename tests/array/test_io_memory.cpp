// SPDX-License-Identifier: Apache-2.0
// Files where one rank runs out of memory at any of its allocations: all ranks say so, and none waits for
// another. A program of its own, since it replaces the functions that allocate.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>

#include "array/support.h"
#include "shoal/array/io.h"

namespace {

// The parts of arrays below are larger, and what messages and names take is smaller.
constexpr std::size_t large = 16 << 10;
// Of this thread: how many large allocations succeed before one fails; negative: all do.
thread_local int left = -1;

bool must_fail(std::size_t bytes) { return bytes >= large && left >= 0 && left-- == 0; }

}  // namespace

void* operator new(std::size_t bytes) {
  void* memory = must_fail(bytes) ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// (Inlined without the other, GCC 12 takes free() for the wrong end of what operator new gave.)
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  void* memory = nullptr;
  return must_fail(bytes) || ::posix_memalign(&memory, alignment, bytes) != 0 ? nullptr : memory;
}

namespace shoal::array {
namespace {

using testing::expect_error;
using testing::filled;

class IoMemory : public ::testing::Test {
 protected:
  IoMemory()
      : path_(std::filesystem::temp_directory_path() /
              ("shoal-io-memory-" + std::to_string(::getpid()) + ".npy")) {}
  ~IoMemory() override { std::filesystem::remove(path_); }

  // `work` with the first, the second, ... large allocation of rank 1 failing, until none is left; returns
  // how many there are.
  static int fail_each(comm::Communicator& world, const std::function<void()>& work) {
    for (int allocation = 0;; ++allocation) {
      if (world.rank() == 1) left = allocation;
      bool failed = false;
      try {
        work();
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
        EXPECT_NE(std::string(error.what()).find("PE 1"), std::string::npos) << error.what();
      }
      const bool reached = world.all_reduce(left < 0 && world.rank() == 1 ? 1 : 0, comm::Reduction::max) > 0;
      left = -1;
      EXPECT_EQ(failed, reached) << "allocation " << allocation;
      if (!reached) return allocation;
    }
  }

  std::string path_;
};

TEST_F(IoMemory, AFailureOnOneRankIsAnErrorOnAll) {
  const Shape shape{60, 50, 40};
  comm::run_threads(3, [&](comm::Communicator& world) {
    const Layout slabs = Layout::split(shape, 3), other = Layout::split(shape, 3, 1);
    const auto x = filled<double>(world, other);
    for (const Order order : {Order::c, Order::fortran}) {
      const int writing = fail_each(world, [&] { write_npy(path_, x, order); });
      EXPECT_GE(writing, 2);
      for (const Layout& layout : {slabs, other, Layout::replicated(shape, 3)}) {
        const int reading = fail_each(world, [&] { (void)read_npy<double>(path_, world, layout); });
        EXPECT_GE(reading, 1) << layout.describe();
      }
      EXPECT_EQ(read_npy<double>(path_, world, other).to_full(), x.to_full());
    }
  });
}

}  // namespace
}  // namespace shoal::array
