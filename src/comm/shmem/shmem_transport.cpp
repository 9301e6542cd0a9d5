// SPDX-License-Identifier: Apache-2.0
// Ranks as PEs of an OpenSHMEM job (1.4 or newer). Puts go straight into the peer's symmetric memory:
// by stores where the library gives a pointer (same host), else by its puts, a fence and an atomic set.
// Messages and collectives within a host run over symmetric memory; between hosts over the library's MPI,
// where it has one.
#include <dlfcn.h>
#include <shmem.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "comm/direct_memory.h"
#include "comm/host_memory.h"
#include "comm/hosts.h"
#include "comm/mailbox.h"
#include "comm/message_transport.h"
#include "comm/module.h"
#include "comm/mpi/library_calls.h"
#include "comm/shmem/library_calls.h"
#include "comm/shmem/messages.h"
#include "comm/shmem/symmetric_heap.h"
#include "comm/split_messenger.h"
#include "shoal/base/error.h"

namespace shoal::comm::shmem {
namespace {

// The symmetric memory of this PE and where the peers' can be addressed.
struct Arena {
  std::byte* base = nullptr;
  SymmetricHeap heap{0};
  std::vector<std::byte*> direct;  // of each PE, or null
  void (*open_mpi_progress)() = nullptr;

  // Lets the library move on what comes and goes. The standard's way is to test a word (that never has this
  // value); in Open MPI a test moves nothing.
  void progress() const {
    if (open_mpi_progress) return open_mpi_progress();
    shmem_ulong_test(reinterpret_cast<unsigned long*>(base), SHMEM_CMP_EQ, ~0ul);
  }
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
    if (std::byte* memory = direct(peer)) {
      store_put(memory, offset, source, bytes);
      return store_signal(memory, signal_offset, value);
    }
    put_and_set(peer, offset, source, bytes, signal_offset, value);
    // What the library has only queued so far would stay here until this PE's next call, and that may
    // come after much computing.
    for (int i = 0; i < 16; ++i) arena_.progress();
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    if (bytes == 0) return;
    if (const std::byte* memory = direct(peer))
      std::memcpy(destination, memory + offset, bytes);
    else
      shmem_getmem(destination, local() + offset, bytes, pe(peer));
  }
  void fence() override { shmem_fence(); }
  void flush() override { shmem_quiet(); }

 private:
  // The signal covers earlier puts as well, hence a fence before it.
  void put_and_set(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                   std::size_t signal_offset, std::uint64_t value) {
#if SHOAL_HAVE_PUTMEM_SIGNAL
    if (bytes > 0) {
      shmem_fence();
      shmem_putmem_signal(local() + offset, source, bytes,
                          reinterpret_cast<std::uint64_t*>(local() + signal_offset), value, SHMEM_SIGNAL_SET,
                          pe(peer));
      return;
    }
#else
    put(peer, offset, source, bytes);
#endif
    shmem_fence();
    static_assert(sizeof(unsigned long) == sizeof(std::uint64_t));
    shmem_ulong_atomic_set(reinterpret_cast<unsigned long*>(local() + signal_offset), value, pe(peer));
  }

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

// Symbols of a library that the standard has no call for; null with other libraries.
template <class T>
T* library_symbol(const char* name) {
  return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
}

enum class LibraryState : std::uint8_t { not_started, running, ended };

LibraryState library_state() {
  int ended = 0;
  const int* started = library_symbol<int>("oshmem_shmem_initialized");
  if (started) {
    // Open MPI's OpenSHMEM ends MPI with itself.
    if (auto* mpi_finalized = library_symbol<int(int*)>("MPI_Finalized")) mpi_finalized(&ended);
  } else {
    started = library_symbol<int>("shmem_internal_initialized");  // Sandia's
    if (const int* finalized = library_symbol<int>("shmem_internal_finalized")) ended = *finalized;
  }
  if (ended) return LibraryState::ended;
  return started && *started ? LibraryState::running : LibraryState::not_started;
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
    set_options(schedule_options(options));
    // Room for rounding each of some hundred allocations to whole cache lines.
    const auto arena_bytes = [&](int size) {
      return options.symmetric_bytes + Mailbox::footprint(size) + host_memory_bytes() +
             WaitBoard::footprint(size) + 65536;
    };
    const LibraryState state = library_state();
    if (state == LibraryState::ended)
      throw AgreedError(ErrorCode::unsupported,
                        "OpenSHMEM has ended in this process and cannot start again: use one comm::run, or "
                        "call shmem_init before the first and shmem_finalize after the last");
    owns_shmem_ = state == LibraryState::not_started;
    if (owns_shmem_) start_library(arena_bytes(read_launch_environment().size) + heap_overhead);
    world_.rank = shmem_my_pe();
    world_.size = shmem_n_pes();
    make_arena(arena_bytes(world_.size));
    arena_.open_mpi_progress = library_symbol<void()>("opal_progress");
    share_host_memory();
  }

  std::string_view name() const override { return "shmem"; }
  std::string library() const override { return library_version(); }
  const World& world() const override { return world_; }

  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override;
  ~ShmemTransport() override { drop_host_memory(); }

  void open(const Group& group) override {
    place(group, host_of_);
    if (messages_ && group.state->hosts.count() > 1) messages_->open(group);
    share_memory(group);
    if (group.context == 0) make_wait_board(group);
  }
  void close(const Group& group) noexcept override {
    if (messages_) messages_->close(group);
    forget(group);
  }

  void finalize() override {
    drop_host_memory();
    mailbox_.reset();
    shmem_barrier_all();
    if (messages_) messages_->finalize();
    shmem_free(arena_.base);
    if (owns_shmem_) shmem_finalize();
  }

  void abort(int exit_code) noexcept override { shmem_global_exit(exit_code); }

 private:
  // The library's own bookkeeping within the symmetric heap, with room to spare.
  static constexpr std::size_t heap_overhead = std::size_t{1} << 20;

  Messenger& messenger() override {
    if (split_) return *split_;
    return *mailbox_;
  }
  // Between hosts nothing moves by itself over TCP: a PE sees incoming puts only within library calls,
  // and it makes none while it looks at its memory.
  void poll() override {
    if (several_hosts_) arena_.progress();
    if (mailbox_) mailbox_->advance();
  }

  void start_library(std::size_t heap_bytes);
  void make_arena(std::size_t bytes);
  void gather_hosts();
  void share_host_memory();

  World world_;
  std::vector<int> host_of_;  // by PE
  bool owns_shmem_ = true;
  bool several_hosts_ = false;
  Arena arena_;
  std::unique_ptr<Mailbox> mailbox_;
  std::unique_ptr<LibraryMessages> messages_;  // between hosts; null: the mailbox carries them too
  std::unique_ptr<SplitMessenger> split_;      // of both
};

void ShmemTransport::start_library(std::size_t heap_bytes) {
  // Open MPI finds the program's static data by this symbol; without it initialisation crashes often.
  if (!dlsym(RTLD_DEFAULT, "_end"))
    fail(ErrorCode::unsupported,
         "transport shmem: this program does not export its symbols: link it with -rdynamic (CMake: "
         "ENABLE_EXPORTS)");
  prepare_environment(heap_bytes);
  prepare_messages();
  // Open MPI's makes a PE deaf to SIGTERM, also to that of the launcher, which then takes a second longer.
  struct sigaction on_terminate {};
  sigaction(SIGTERM, nullptr, &on_terminate);
  int provided = 0;
  const int failed = shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
  sigaction(SIGTERM, &on_terminate, nullptr);
  if (failed) fail(ErrorCode::communication, "shmem_init_thread failed");
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

  gather_hosts();
}

// The names of all hosts, and which PEs share one: those that can address each other's memory.
void ShmemTransport::gather_hosts() {
  constexpr std::size_t width = 256;
  std::vector<char> name(width);
  host_name().copy(name.data(), width - 1);
  std::memcpy(arena_.base, name.data(), width);
  shmem_barrier_all();
  for (int pe = 0; pe < world_.size; ++pe) {
    shmem_getmem(name.data(), arena_.base, width, pe);
    world_.host.emplace_back(name.data());
  }
  host_of_ = number_hosts(world_.host);
  // A PE that some other of its host cannot address counts as a host of its own, for all of them.
  const auto index = [](int pe) { return static_cast<std::size_t>(pe); };
  std::int64_t reaches_all = 1, others = 1;
  for (int pe = 0; pe < world_.size; ++pe)
    if (host_of_[index(pe)] == host_of_[index(world_.rank)] && !arena_.direct[index(pe)]) reaches_all = 0;
  shmem_barrier_all();  // the names have been read
  std::memcpy(arena_.base, &reaches_all, sizeof reaches_all);
  shmem_barrier_all();
  const std::vector<int> by_name = host_of_;
  for (int pe = 0; pe < world_.size; ++pe) {
    shmem_getmem(&others, arena_.base, sizeof others, pe);
    for (int near = 0; others == 0 && near < world_.size; ++near)
      if (by_name[index(near)] == by_name[index(pe)]) host_of_[index(near)] = world_.size + near;
  }
  for (int pe = 0; pe < world_.size; ++pe)
    if (host_of_[index(pe)] != host_of_[index(world_.rank)]) arena_.direct[index(pe)] = nullptr;
  several_hosts_ = std::count(arena_.direct.begin(), arena_.direct.end(), nullptr) > 0;
  shmem_barrier_all();
}

// Messages and collectives of this host go through a mailbox and slots at the beginning of the arena.
void ShmemTransport::share_host_memory() {
  Group everybody;
  everybody.rank = world_.rank;
  std::vector<Rank> carried;
  std::vector<bool> near;
  if (several_hosts_) messages_ = make_messages(world_);
  for (Rank r = 0; r < world_.size; ++r) {
    everybody.world_rank.push_back(r);
    near.push_back(arena_.direct[static_cast<std::size_t>(r)] != nullptr);
    if (near.back() || !messages_) carried.push_back(r);
  }
  const std::size_t mailbox_bytes = Mailbox::footprint(world_.size);
  std::memset(arena_.base, 0, mailbox_bytes + HostArena::zeroed_bytes());
  shmem_barrier_all();
  arena_.heap.take(0, mailbox_bytes);
  arena_.heap.take(mailbox_bytes, host_memory_bytes());
  mailbox_ = std::make_unique<Mailbox>(std::make_unique<ShmemMemory>(arena_, everybody, 0), world_, carried);
  use_mailbox(mailbox_.get());
  use_host_memory(std::make_unique<ShmemMemory>(arena_, everybody, mailbox_bytes));
  if (messages_) split_ = std::make_unique<SplitMessenger>(*mailbox_, messages_->messenger(), near);
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

// Open MPI carries its OpenSHMEM on an MPI that is initialised with it: a user of the one has the other.
std::vector<std::unique_ptr<LibraryCalls>> baselines(Communicator& world, std::size_t operand_bytes) {
  std::vector<std::unique_ptr<LibraryCalls>> all;
  all.push_back(make_library_calls(world, operand_bytes));
#if SHOAL_SHMEM_HAS_MPI
  if (auto calls = mpi::make_library_calls()) all.push_back(std::move(calls));
#endif
  return all;
}

constexpr Module module{module_abi, "shmem", library_version, create, baselines};

}  // namespace
}  // namespace shoal::comm::shmem

extern "C" const shoal::comm::Module* shoal_transport_module() { return &shoal::comm::shmem::module; }
