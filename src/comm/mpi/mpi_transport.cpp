// SPDX-License-Identifier: Apache-2.0
// Ranks as processes of an MPI job (MPI 3.1 or newer; built once for each library, since their binary
// interfaces differ). Collectives and messages run over MPI's point-to-point calls.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "comm/host_memory.h"
#include "comm/message_transport.h"
#include "comm/module.h"
#include "comm/mpi/mpi_call.h"
#include "comm/mpi/mpi_memory.h"
#include "comm/mpi/pieces.h"
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

class MpiTransport final : public MessageTransport, private Messenger {
 public:
  explicit MpiTransport(const JobOptions&) {
    int initialized = 0;
    MPI_Initialized(&initialized);
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
    int* largest_tag = nullptr;
    int has_largest_tag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &has_largest_tag);
    if (has_largest_tag) largest_tag_ = *largest_tag;
    remote_ = std::make_unique<RemoteAccess>(put_communicator_, world_.rank);
    gather_hosts();
  }

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
  Messenger& messenger() override { return *this; }
  void poll() override {
    if (remote_->in_use) remote_->progress();
  }
  std::unique_ptr<Exchange> start(const Group& group, int tag, std::span<const OutgoingPart> sends,
                                  std::span<const IncomingPart> receives) override;
  using MessageTransport::start;
  void gather_hosts();

  World world_;
  bool owns_mpi_ = false;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  MPI_Comm put_communicator_ = MPI_COMM_NULL;
  std::map<std::uint64_t, MPI_Comm> communicators_;  // by context
  std::vector<std::string> identities_;              // equal for ranks that can share memory
  std::unique_ptr<RemoteAccess> remote_;
  std::uint64_t next_memory_ = 1;
  int largest_tag_ = 32767;
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
}

// The requests of one exchange.
class MpiExchange final : public Exchange {
 public:
  MpiExchange(const World& world, const Group& group, MPI_Comm communicator, int tag,
              std::span<const OutgoingPart> sends, std::span<const IncomingPart> receives)
      : world_(world) {
    for (const IncomingPart& part : receives) {
      peers_.push_back(group.world_rank[static_cast<std::size_t>(part.peer)]);
      for_pieces(part.bytes, [&](std::size_t begin, std::size_t length) {
        receive_bytes_.push_back(length);
        call(MPI_Irecv(static_cast<std::byte*>(part.data) + begin, static_cast<int>(length), MPI_BYTE,
                       part.peer, tag, communicator, &requests_.emplace_back()),
             "MPI_Irecv", world_.rank);
      });
    }
    for (const OutgoingPart& part : sends)
      for_pieces(part.bytes, [&](std::size_t begin, std::size_t length) {
        call(MPI_Isend(static_cast<const std::byte*>(part.data) + begin, static_cast<int>(length), MPI_BYTE,
                       part.peer, tag, communicator, &requests_.emplace_back()),
             "MPI_Isend", world_.rank);
      });
    statuses_.resize(requests_.size());
  }

  // Given up, since the job is ending: MPI must not write to buffers that are no longer ours.
  ~MpiExchange() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (done_ || finalized) return;
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  bool done() override {
    if (done_) return true;
    int flag = 0;
    const int code =
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, statuses_.data());
    if (code != MPI_SUCCESS) explain_failure(code);
    if (flag == 0) return false;
    done_ = true;
    check_lengths();
    return true;
  }

  std::string waiting_for() const override {
    std::string ranks;
    for (const Rank peer : peers_)
      ranks += fmt::format("{}rank {} ({})", ranks.empty() ? "" : ", ", peer,
                           world_.host[static_cast<std::size_t>(peer)]);
    return ranks.empty() ? "a rank that takes no message" : ranks;
  }

 private:
  // Testall says only that one of the requests went wrong; its status says which and why.
  [[noreturn]] void explain_failure(int code) const {
    for (std::size_t i = 0; i < statuses_.size(); ++i) {
      const int error = statuses_[i].MPI_ERROR;
      if (error == MPI_SUCCESS || error == MPI_ERR_PENDING) continue;
      int error_class = error;
      MPI_Error_class(error, &error_class);
      if (error_class == MPI_ERR_TRUNCATE && i < receive_bytes_.size()) refuse(i, "more");
      call(error, "MPI_Testall", world_.rank);
    }
    call(code, "MPI_Testall", world_.rank);
    fail(ErrorCode::communication, fmt::format("MPI_Testall failed on rank {}", world_.rank));
  }

  void check_lengths() const {
    for (std::size_t i = 0; i < receive_bytes_.size(); ++i) {
      int length = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &length);
      if (static_cast<std::size_t>(length) != receive_bytes_[i]) refuse(i, std::to_string(length));
    }
  }

  [[noreturn]] void refuse(std::size_t i, const std::string& sent) const {
    fail(ErrorCode::invalid_argument,
         fmt::format("recv on rank {} expects {} bytes, but rank {} sent {}", world_.rank, receive_bytes_[i],
                     statuses_[i].MPI_SOURCE, sent));
  }

  const World& world_;
  std::vector<Rank> peers_;                 // that are received from
  std::vector<std::size_t> receive_bytes_;  // of the first requests, which are the receives
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  bool done_ = false;
};

// Programs' tags lie above those of collectives (MPI has no negative ones).
std::unique_ptr<Exchange> MpiTransport::start(const Group& group, int tag,
                                              std::span<const OutgoingPart> sends,
                                              std::span<const IncomingPart> receives) {
  const std::int64_t mpi_tag = std::int64_t{tag} - subset_tag;
  if (mpi_tag > largest_tag_)
    fail(ErrorCode::invalid_argument,
         fmt::format("tag {} is above {}, the largest that this MPI allows", tag, largest_tag_ + subset_tag));
  return std::make_unique<MpiExchange>(world_, group, communicators_.at(group.context),
                                       static_cast<int>(mpi_tag), sends, receives);
}

std::unique_ptr<Transport> create(const JobOptions& options) {
  return std::make_unique<MpiTransport>(options);
}

constexpr Module module{module_abi, "mpi", library_version, create};

}  // namespace
}  // namespace shoal::comm::mpi

extern "C" const shoal::comm::Module* shoal_transport_module() { return &shoal::comm::mpi::module; }
