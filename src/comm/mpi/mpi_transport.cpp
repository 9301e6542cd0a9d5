// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of an MPI job (MPI 3.1 or newer; built once for each library, since their binary
// interfaces differ). Collectives and messages run over MPI's point-to-point calls.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "comm/host_memory.h"
#include "comm/messenger.h"
#include "comm/module.h"
#include "comm/mpi/mpi_call.h"
#include "comm/mpi/mpi_memory.h"
#include "comm/wait.h"
#include "shoal/base/error.h"

namespace shoal::comm::mpi {
namespace {

// One message carries at most this much; longer ones are cut, on both sides alike.
constexpr std::size_t largest_piece = std::size_t{1} << 30;

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

class MpiTransport final : public Transport, private Messenger {
 public:
  explicit MpiTransport(const JobOptions&) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    owns_mpi_ = !initialized;
    if (owns_mpi_) {
      int provided = 0;
      call(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", 0);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // MPICH asks this one for requests
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &world_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_.size);
    call(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup", world_.rank);
    call(MPI_Comm_dup(MPI_COMM_WORLD, &put_communicator_), "MPI_Comm_dup", world_.rank);
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(put_communicator_, MPI_ERRORS_RETURN);
    remote_ = std::make_unique<RemoteAccess>(put_communicator_, world_.rank);
    gather_hosts();
  }

  std::string_view name() const override { return "mpi"; }
  std::string library() const override { return library_version(); }
  const World& world() const override { return world_; }

  void submit(const Group& group, const Operation& operation) override {
    run_by_messages(*this, group, operation);
  }

  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override {
    // The number of an allocation must be new on every member: one above the highest that any has used.
    std::uint64_t number = next_memory_;
    run_by_messages(*this, group,
                    {.pattern = Pattern::all_reduce,
                     .reduction = Reduction::max,
                     .send = {&number, 1, DType::uint64},
                     .recv = {&number, 1, DType::uint64}});
    next_memory_ = number + 1;
    return std::make_unique<MpiMemory>(static_cast<Messenger&>(*this), *remote_, group, identities_, bytes,
                                       number);
  }

  void open(const Group& group) override {
    if (group.size() == world_.size && group.context == 0) {
      communicators_[0] = communicator_;
      return;
    }
    MPI_Group everybody, members;
    MPI_Comm created;
    call(MPI_Comm_group(communicator_, &everybody), "MPI_Comm_group", world_.rank);
    call(MPI_Group_incl(everybody, group.size(), group.world_rank.data(), &members), "MPI_Group_incl",
         world_.rank);
    call(MPI_Comm_create_group(communicator_, members, static_cast<int>(group.context % 32'000), &created),
         "MPI_Comm_create_group", world_.rank);
    MPI_Group_free(&members);
    MPI_Group_free(&everybody);
    MPI_Comm_set_errhandler(created, MPI_ERRORS_RETURN);
    communicators_[group.context] = created;
  }

  void close(const Group& group) noexcept override {
    const auto found = communicators_.find(group.context);
    if (found == communicators_.end() || group.context == 0) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Comm_free(&found->second);
    communicators_.erase(found);
  }

  void progress() override {
    if (several_hosts_) remote_->progress();
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
  void exchange(const Group& group, int tag, std::span<const OutgoingPart> sends,
                std::span<const IncomingPart> receives) override;
  [[noreturn]] void explain_failure(int code, const std::vector<MPI_Status>& statuses,
                                    const std::vector<std::size_t>& receive_bytes) const;
  void gather_hosts();

  World world_;
  bool owns_mpi_ = false;
  bool several_hosts_ = false;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  MPI_Comm put_communicator_ = MPI_COMM_NULL;
  std::map<std::uint64_t, MPI_Comm> communicators_;  // by context
  std::vector<std::string> identities_;              // equal for ranks that can share memory
  std::unique_ptr<RemoteAccess> remote_;
  std::uint64_t next_memory_ = 1;
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
  identities_ = gather(host_identity());
  several_hosts_ = std::any_of(identities_.begin(), identities_.end(),
                               [&](const auto& host) { return host != identities_[0]; });
}

// Testall says only that one of the requests went wrong; its status says which and why.
void MpiTransport::explain_failure(int code, const std::vector<MPI_Status>& statuses,
                                   const std::vector<std::size_t>& receive_bytes) const {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const int error = statuses[i].MPI_ERROR;
    if (error == MPI_SUCCESS || error == MPI_ERR_PENDING) continue;
    int error_class = error;
    MPI_Error_class(error, &error_class);
    if (error_class == MPI_ERR_TRUNCATE && i < receive_bytes.size())
      fail(ErrorCode::invalid_argument, fmt::format("recv on rank {} expects {} bytes, but rank {} sent more",
                                                    world_.rank, receive_bytes[i], statuses[i].MPI_SOURCE));
    call(error, "MPI_Testall", world_.rank);
  }
  call(code, "MPI_Testall", world_.rank);
  fail(ErrorCode::communication, fmt::format("MPI_Testall failed on rank {}", world_.rank));
}

void MpiTransport::exchange(const Group& group, int tag, std::span<const OutgoingPart> sends,
                            std::span<const IncomingPart> receives) {
  const MPI_Comm communicator = communicators_.at(group.context);
  const int mpi_tag = tag + 1;  // collectives use 0
  std::vector<MPI_Request> requests;
  std::vector<std::size_t> piece_bytes;  // of the receives
  const auto pieces = [](std::size_t bytes, auto&& each) {
    std::size_t begin = 0;
    do {
      const std::size_t length = std::min(bytes - begin, largest_piece);
      each(begin, length);
      begin += length;
    } while (begin < bytes);
  };
  for (const IncomingPart& part : receives)
    pieces(part.bytes, [&](std::size_t begin, std::size_t length) {
      piece_bytes.push_back(length);
      call(MPI_Irecv(static_cast<std::byte*>(part.data) + begin, static_cast<int>(length), MPI_BYTE,
                     part.peer, mpi_tag, communicator, &requests.emplace_back()),
           "MPI_Irecv", world_.rank);
    });
  for (const OutgoingPart& part : sends)
    pieces(part.bytes, [&](std::size_t begin, std::size_t length) {
      call(MPI_Isend(static_cast<const std::byte*>(part.data) + begin, static_cast<int>(length), MPI_BYTE,
                     part.peer, mpi_tag, communicator, &requests.emplace_back()),
           "MPI_Isend", world_.rank);
    });
  std::vector<MPI_Status> statuses(requests.size());
  const auto all_done = [&] {
    int done = 0;
    const int code = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, statuses.data());
    if (code != MPI_SUCCESS) explain_failure(code, statuses, piece_bytes);
    return done != 0;
  };
  if (!wait_until(
          all_done, [this] { progress(); }, default_deadline())) {
    std::string peers;
    for (const IncomingPart& part : receives) {
      const auto peer = static_cast<std::size_t>(group.world_rank[static_cast<std::size_t>(part.peer)]);
      peers += fmt::format("{}{} ({})", peers.empty() ? "" : ", ", peer, world_.host[peer]);
    }
    fail(ErrorCode::timeout,
         fmt::format("rank {} waits for {} s already for one of: rank {}", world_.rank,
                     default_deadline().count() / 1000, peers.empty() ? "(taking a message)" : peers));
  }
  for (std::size_t i = 0; i < piece_bytes.size(); ++i) {
    int length = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &length);
    if (static_cast<std::size_t>(length) != piece_bytes[i])
      fail(ErrorCode::invalid_argument,
           fmt::format("recv on rank {} expects {} bytes, but rank {} sent {}", world_.rank, piece_bytes[i],
                       statuses[i].MPI_SOURCE, length));
  }
}

std::unique_ptr<Transport> create(const JobOptions& options) {
  return std::make_unique<MpiTransport>(options);
}

constexpr Module module{module_abi, "mpi", library_version, create};

}  // namespace
}  // namespace shoal::comm::mpi

extern "C" const shoal::comm::Module* shoal_transport_module() { return &shoal::comm::mpi::module; }
