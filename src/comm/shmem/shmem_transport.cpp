// SPDX-License-Identifier: Apache-2.0
// Ranks as PEs of an OpenSHMEM job (1.4 or newer). Puts go straight into the peer's symmetric memory:
// by stores where the library gives a pointer (same host), else by its puts, a fence and an atomic set.
// Messages and collectives run over a Mailbox in symmetric memory.
#include <dlfcn.h>
#include <shmem.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "comm/direct_memory.h"
#include "comm/host_memory.h"
#include "comm/mailbox.h"
#include "comm/message_transport.h"
#include "comm/module.h"
#include "comm/shmem/symmetric_heap.h"
#include "comm/wait.h"
#include "shoal/base/error.h"

namespace shoal::comm::shmem {
namespace {

// The symmetric memory of this PE and where the peers' can be addressed.
struct Arena {
  std::byte* base = nullptr;
  SymmetricHeap heap{0};
  std::vector<std::byte*> direct;  // of each PE, or null
  void (*progress_library)() = nullptr;
};

class ShmemMemory final : public SymmetricMemory {
 public:
  ShmemMemory(Arena& arena, const Group& group, std::uint64_t begin)
      : arena_(arena), world_rank_(group.world_rank), begin_(begin) {}
  ~ShmemMemory() override { arena_.heap.give_back(begin_); }

  std::byte* local() override { return arena_.base + begin_; }
  std::byte* direct(Rank peer) override {
    std::byte* base = arena_.direct[static_cast<std::size_t>(pe(peer))];
    return base ? base + begin_ : nullptr;
  }
  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override {
    if (std::byte* memory = direct(peer)) return store_put(memory, offset, source, bytes);
    if (bytes > 0) shmem_putmem(local() + offset, source, bytes, pe(peer));
  }
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override {
    put(peer, offset, source, bytes);
    if (std::byte* memory = direct(peer)) return store_signal(memory, signal_offset, value);
    shmem_fence();
    static_assert(sizeof(unsigned long) == sizeof(std::uint64_t));
    shmem_ulong_atomic_set(reinterpret_cast<unsigned long*>(local() + signal_offset), value, pe(peer));
    // What the library has only queued so far would stay here until this PE's next call, and that may
    // come after much computing.
    for (int i = 0; arena_.progress_library && i < 16; ++i) arena_.progress_library();
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    if (bytes == 0) return;
    if (const std::byte* memory = direct(peer))
      std::memcpy(destination, memory + offset, bytes);
    else
      shmem_getmem(destination, local() + offset, bytes, pe(peer));
  }
  void flush() override { shmem_quiet(); }

 private:
  int pe(Rank peer) const { return world_rank_[static_cast<std::size_t>(peer)]; }
  Arena& arena_;
  std::vector<Rank> world_rank_;
  std::uint64_t begin_;
};

std::string library_version() {
  char name[SHMEM_MAX_NAME_LEN] = "";
  int major = 0, minor = 0;
  shmem_info_get_name(name);
  shmem_info_get_version(&major, &minor);
  // Open MPI gives its address on the web for a name.
  const std::string vendor = std::string(name).find("open-mpi.org") != std::string::npos ? "Open MPI" : name;
  return fmt::format("{}, OpenSHMEM {}.{}", vendor, major, minor);
}

// Symbols of Open MPI that the standard has no call for; null with other libraries.
template <class T>
T* library_symbol(const char* name) {
  return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
}

// What must be in the environment before the library starts. A user's own settings stay.
void prepare_environment(std::size_t heap_bytes) {
  const std::string size = std::to_string(heap_bytes);
  setenv("SHMEM_SYMMETRIC_SIZE", size.c_str(), 0);       // the standard's name
  setenv("SHMEM_SYMMETRIC_HEAP_SIZE", size.c_str(), 0);  // Open MPI's
  setenv("OMPI_MCA_osc", "^rdma", 0);                    // else shmem_finalize crashes in Open MPI 4.1
}

class ShmemTransport final : public MessageTransport {
 public:
  explicit ShmemTransport(const JobOptions& options) {
    // Room for rounding each of some hundred allocations to whole cache lines.
    const auto arena_bytes = [&](int size) {
      return options.symmetric_bytes + Mailbox::footprint(size) + 65536;
    };
    const int* initialized = library_symbol<int>("oshmem_shmem_initialized");
    owns_shmem_ = !initialized || *initialized == 0;
    if (owns_shmem_) start_library(arena_bytes(read_launch_environment().size) + heap_overhead);
    world_.rank = shmem_my_pe();
    world_.size = shmem_n_pes();
    make_arena(arena_bytes(world_.size));
    arena_.progress_library = library_symbol<void()>("opal_progress");
    gather_hosts();
  }

  std::string_view name() const override { return "shmem"; }
  std::string library() const override { return library_version(); }
  const World& world() const override { return world_; }

  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override;
  void open(const Group&) override {}
  void close(const Group& group) noexcept override { forget(group); }

  void finalize() override {
    mailbox_.reset();
    shmem_barrier_all();
    shmem_free(arena_.base);
    if (owns_shmem_) shmem_finalize();
  }

  void abort(int exit_code) noexcept override { shmem_global_exit(exit_code); }

 private:
  // The library's own bookkeeping within the symmetric heap, with room to spare.
  static constexpr std::size_t heap_overhead = std::size_t{1} << 20;

  Messenger& messenger() override { return *mailbox_; }
  // Between hosts nothing moves by itself over TCP: a PE sees incoming puts only within library calls,
  // and none of the standard's polls makes progress.
  void poll() override {
    if (several_hosts_ && arena_.progress_library) arena_.progress_library();
    if (mailbox_) mailbox_->advance();
  }

  void start_library(std::size_t heap_bytes);
  void make_arena(std::size_t bytes);
  void gather_hosts();

  World world_;
  bool owns_shmem_ = true;
  bool several_hosts_ = false;
  Arena arena_;
  std::unique_ptr<Mailbox> mailbox_;
};

void ShmemTransport::start_library(std::size_t heap_bytes) {
  // Open MPI finds the program's static data by this symbol; without it initialisation crashes often.
  if (!dlsym(RTLD_DEFAULT, "_end"))
    fail(ErrorCode::unsupported,
         "transport shmem: this program does not export its symbols: link it with -rdynamic (CMake: "
         "ENABLE_EXPORTS)");
  prepare_environment(heap_bytes);
  int provided = 0;
  if (shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) != 0)
    fail(ErrorCode::communication, "shmem_init_thread failed");
}

// (Not shmem_calloc: Open MPI's clears after its barrier, and so destroys what peers put early.)
void ShmemTransport::make_arena(std::size_t bytes) {
  arena_.base = static_cast<std::byte*>(shmem_align(64, bytes));
  if (!arena_.base)
    fail(ErrorCode::out_of_memory,
         fmt::format("symmetric heap: {} bytes are needed on each PE, more than there are: set "
                     "SHMEM_SYMMETRIC_SIZE and SHMEM_SYMMETRIC_HEAP_SIZE to at least {}",
                     bytes, bytes + heap_overhead));
  arena_.heap = SymmetricHeap(bytes);
  for (int pe = 0; pe < world_.size; ++pe)
    arena_.direct.push_back(pe == world_.rank ? arena_.base
                                              : static_cast<std::byte*>(shmem_ptr(arena_.base, pe)));

  Group everybody;
  everybody.rank = world_.rank;
  for (Rank r = 0; r < world_.size; ++r) everybody.world_rank.push_back(r);
  const std::size_t mailbox_bytes = Mailbox::footprint(world_.size);
  std::memset(arena_.base, 0, mailbox_bytes);
  shmem_barrier_all();
  arena_.heap.take(0, mailbox_bytes);
  world_.host.assign(static_cast<std::size_t>(world_.size), "?");
  mailbox_ = std::make_unique<Mailbox>(std::make_unique<ShmemMemory>(arena_, everybody, 0), world_);
  several_hosts_ = std::count(arena_.direct.begin(), arena_.direct.end(), nullptr) > 0;
}

void ShmemTransport::gather_hosts() {
  Group everybody;
  everybody.rank = world_.rank;
  for (Rank r = 0; r < world_.size; ++r) everybody.world_rank.push_back(r);
  constexpr std::size_t width = 256;
  std::vector<char> all(width * static_cast<std::size_t>(world_.size)), mine(width);
  host_name().copy(mine.data(), width - 1);
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(world_.size), width);
  submit(everybody, {.pattern = Pattern::all_gather,
                     .send = erase(View<char>(mine)),
                     .recv = erase(View<char>(all)),
                     .counts = counts});
  for (std::size_t r = 0; r < world_.host.size(); ++r) world_.host[r] = all.data() + r * width;
}

std::unique_ptr<SymmetricMemory> ShmemTransport::allocate(const Group& group, std::size_t bytes) {
  // Everybody tells what it asks for and what it holds: pairs of numbers, the first (asked, count).
  std::vector<std::uint64_t> mine = {bytes, arena_.heap.taken().size()};
  const auto gather = [&](std::span<const std::uint64_t> data, std::span<const std::int64_t> counts) {
    std::int64_t total = 0;
    for (const std::int64_t count : counts) total += count;
    std::vector<std::uint64_t> all(static_cast<std::size_t>(total));
    submit(group, {.pattern = Pattern::all_gather,
                   .send = erase(View<const std::uint64_t>(data)),
                   .recv = erase(View<std::uint64_t>(all)),
                   .counts = counts});
    return all;
  };
  const std::vector<std::int64_t> twos(group.world_rank.size(), 2);
  const std::vector<std::uint64_t> asked = gather(mine, twos);
  std::vector<std::int64_t> counts;
  for (Rank r = 0; r < group.size(); ++r) {
    const auto at = static_cast<std::size_t>(r) * 2;
    if (asked[at] != bytes)
      fail(ErrorCode::invalid_argument,
           fmt::format("symmetric allocation of {} bytes on rank {}, but {} on rank {}", bytes, group.rank,
                       asked[at], r));
    counts.push_back(static_cast<std::int64_t>(2 * asked[at + 1]));
  }
  std::vector<std::uint64_t> held;
  for (const SymmetricHeap::Piece& piece : arena_.heap.taken())
    held.insert(held.end(), {piece.begin, piece.end});
  const std::vector<std::uint64_t> all = gather(held, counts);
  std::vector<SymmetricHeap::Piece> taken;
  for (std::size_t i = 0; i < all.size(); i += 2) taken.push_back({all[i], all[i + 1]});

  const std::optional<std::uint64_t> begin = arena_.heap.find(bytes, taken);
  if (!begin)
    fail(ErrorCode::out_of_memory,
         fmt::format("symmetric allocation of {} bytes: at most {} of the heap's {} are free on all {} PEs",
                     bytes, arena_.heap.largest_free(taken), arena_.heap.bytes(), group.size()));
  arena_.heap.take(*begin, bytes);
  std::memset(arena_.base + *begin, 0, bytes);
  submit(group, {.pattern = Pattern::barrier});
  return std::make_unique<ShmemMemory>(arena_, group, *begin);
}

std::unique_ptr<Transport> create(const JobOptions& options) {
  return std::make_unique<ShmemTransport>(options);
}

constexpr Module module{module_abi, "shmem", library_version, create};

}  // namespace
}  // namespace shoal::comm::shmem

extern "C" const shoal::comm::Module* shoal_transport_module() { return &shoal::comm::shmem::module; }
