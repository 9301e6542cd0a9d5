// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of an MPI job (MPI 3.1 or newer; built once for each library, since their binary
// interfaces differ). Collectives and messages run over MPI's point-to-point calls.
#include <mpi.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "comm/host_memory.h"
#include "comm/hosts.h"
#include "comm/mailbox.h"
#include "comm/message_transport.h"
#include "comm/module.h"
#include "comm/mpi/library_calls.h"
#include "comm/mpi/mpi_call.h"
#include "comm/mpi/mpi_memory.h"
#include "comm/mpi/mpi_messenger.h"
#include "comm/split_messenger.h"
#include "shoal/base/error.h"

namespace shoal::comm::mpi {
namespace {

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version(text);
  std::replace(version.begin(), version.end(), '\t', ' ');
  version = version.substr(0, version.find_first_of(",\n"));
  // MPICH says "MPICH Version: 4.0.2" with a run of blanks.
  while (version.find("  ") != std::string::npos) version.erase(version.find("  "), 1);
  return version;
}

class MpiTransport final : public MessageTransport {
 public:
  explicit MpiTransport(const JobOptions& options) {
    set_options(schedule_options(options));
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized)
      throw AgreedError(ErrorCode::unsupported,
                        "MPI has ended in this process and cannot start again: use one comm::run, or call "
                        "MPI_Init before the first and MPI_Finalize after the last");
    owns_mpi_ = !initialized;
    if (owns_mpi_) {
      int provided = 0;
      call(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", 0);
      if (provided < MPI_THREAD_FUNNELED)
        fail(ErrorCode::unsupported,
             "this MPI gives no thread level above single; Shoal computes with threads");
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // MPICH asks this one for requests
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &world_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_.size);
    call(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup", world_.rank);
    call(MPI_Comm_dup(MPI_COMM_WORLD, &put_communicator_), "MPI_Comm_dup", world_.rank);
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(put_communicator_, MPI_ERRORS_RETURN);
    messenger_ = std::make_unique<MpiMessenger>(communicator_, world_);
    remote_ = std::make_unique<RemoteAccess>(put_communicator_, world_.rank);
    gather_hosts();
    share_host_memory();
  }
  ~MpiTransport() override { drop_host_memory(); }

  std::string_view name() const override { return "mpi"; }
  std::string library() const override { return library_version(); }
  const World& world() const override { return world_; }

  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override {
    // The number of an allocation must be new on every member: one above the highest that any has used.
    std::uint64_t number = next_memory_;
    submit(group, {.pattern = Pattern::all_reduce,
                   .reduction = Reduction::max,
                   .send = {&number, 1, DType::uint64},
                   .recv = {&number, 1, DType::uint64}});
    next_memory_ = number + 1;
    return std::make_unique<MpiMemory>(*this, *remote_, group, identities_, bytes, number);
  }

  void open(const Group& group) override {
    place(group, host_of_);
    if (!split_ || group.state->hosts.count() > 1) messenger_->open(group);
    share_memory(group);
    if (group.context == 0) make_wait_board(group);
  }
  void close(const Group& group) noexcept override {
    messenger_->close(group);
    forget(group);
  }

  void finalize() override {
    remote_->drain();
    call(MPI_Barrier(communicator_), "MPI_Barrier", world_.rank);
    MPI_Comm_free(&put_communicator_);
    MPI_Comm_free(&communicator_);
    if (owns_mpi_) MPI_Finalize();
  }

  void abort(int exit_code) noexcept override { MPI_Abort(MPI_COMM_WORLD, exit_code); }

 private:
  Messenger& messenger() override {
    if (split_) return *split_;
    return *messenger_;
  }
  void poll() override {
    // A probe moves the whole library on: beside messages that do so themselves it comes now and then.
    constexpr unsigned some = 8;
    if (remote_->in_use && (is_idle() || ++polls_ % some == 0)) remote_->progress();
    if (mailbox_) mailbox_->advance();
  }
  void gather_hosts();
  void share_host_memory();

  World world_;
  bool owns_mpi_ = false;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  MPI_Comm put_communicator_ = MPI_COMM_NULL;
  std::vector<int> host_of_;             // equal for ranks that can share memory
  std::vector<std::string> identities_;  // the same
  std::unique_ptr<MpiMessenger> messenger_;
  std::unique_ptr<RemoteAccess> remote_;
  std::unique_ptr<Mailbox> mailbox_;       // for messages within this host
  std::unique_ptr<SplitMessenger> split_;  // of both
  std::uint64_t next_memory_ = 1;
  unsigned polls_ = 0;
};

void MpiTransport::gather_hosts() {
  const auto gather = [&](const std::string& mine) {
    constexpr std::size_t width = 320;
    std::vector<char> all(width * static_cast<std::size_t>(world_.size)), own(width);
    mine.copy(own.data(), width - 1);
    call(MPI_Allgather(own.data(), width, MPI_CHAR, all.data(), width, MPI_CHAR, communicator_),
         "MPI_Allgather", world_.rank);
    std::vector<std::string> texts;
    for (int r = 0; r < world_.size; ++r)
      texts.emplace_back(all.data() + static_cast<std::size_t>(r) * width);
    return texts;
  };
  world_.host = gather(host_name());
  host_of_ = number_hosts(gather(host_identity()));
  for (const int host : host_of_) identities_.push_back(std::to_string(host));
}

// Messages within a host go through its memory, if all of its ranks can map each other's.
void MpiTransport::share_host_memory() {
  if (world_.size == 1) return;
  Group everybody;
  everybody.rank = world_.rank;
  for (Rank r = 0; r < world_.size; ++r) everybody.world_rank.push_back(r);
  messenger_->open(everybody);
  auto memory = allocate(everybody, Mailbox::footprint(world_.size));
  const auto index = [](Rank rank) { return static_cast<std::size_t>(rank); };
  const auto is_near = [&](Rank rank) { return host_of_[index(rank)] == host_of_[index(world_.rank)]; };
  char reaches_all = 1;
  for (Rank r = 0; r < world_.size; ++r)
    if (is_near(r) && !memory->direct(r)) reaches_all = 0;
  std::vector<char> all(host_of_.size());
  call(MPI_Allgather(&reaches_all, 1, MPI_CHAR, all.data(), 1, MPI_CHAR, communicator_), "MPI_Allgather",
       world_.rank);
  const std::vector<int> before = host_of_;
  for (std::size_t r = 0; r < before.size(); ++r)
    for (std::size_t other = 0; other < before.size(); ++other)
      if (before[other] == before[r] && !all[other]) host_of_[r] = world_.size + static_cast<int>(r);
  identities_.clear();
  for (const int host : host_of_) identities_.push_back(std::to_string(host));

  std::vector<bool> near;
  std::vector<Rank> peers;
  for (Rank r = 0; r < world_.size; ++r) {
    near.push_back(is_near(r));
    if (near.back()) peers.push_back(r);
  }
  mailbox_ = std::make_unique<Mailbox>(std::move(memory), world_, std::move(peers));
  split_ = std::make_unique<SplitMessenger>(*mailbox_, *messenger_, std::move(near));
  use_mailbox(mailbox_.get());
  use_host_memory(allocate(everybody, host_memory_bytes()));
}

std::unique_ptr<Transport> create(const JobOptions& options) {
  return std::make_unique<MpiTransport>(options);
}

std::vector<std::unique_ptr<LibraryCalls>> baselines(Communicator&, std::size_t) {
  std::vector<std::unique_ptr<LibraryCalls>> all;
  all.push_back(make_library_calls());
  return all;
}

constexpr Module module{module_abi, "mpi", library_version, create, baselines};

}  // namespace
}  // namespace shoal::comm::mpi

extern "C" const shoal::comm::Module* shoal_transport_module() { return &shoal::comm::mpi::module; }
