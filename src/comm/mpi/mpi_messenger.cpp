// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_messenger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "comm/mpi/mpi_call.h"
#include "comm/mpi/pieces.h"
#include "shoal/base/error.h"

namespace shoal::comm::mpi {
namespace {

// Over plain networks Open MPI sends up to 64 KiB at once, and of more only the beginning, until the receiver
// has answered. In pieces all of it leaves at once: 64 KiB arrive in 0.7 of the time, 1 MiB in half. Around
// 256 KiB nothing is gained. What comes before its receive is posted takes memory, so only the beginning of
// a very large message is cut.
constexpr std::size_t at_once_bytes = std::size_t{60} << 10;
constexpr std::size_t short_bytes = std::size_t{128} << 10;
constexpr std::size_t long_bytes = std::size_t{512} << 10;
constexpr std::size_t most_at_once_bytes = std::size_t{4} << 20;

// each(begin, length) for the pieces of a message of `bytes`, on both sides alike.
template <class Each>
void for_messages(std::size_t bytes, bool cut, Each&& each) {
  const std::size_t limit = std::min(at_once_bytes, largest_piece());
  std::size_t begin = 0;
  if (cut && bytes > at_once_bytes && (bytes <= short_bytes || bytes >= long_bytes)) {
    const std::size_t first = std::min(bytes, most_at_once_bytes);
    const std::size_t pieces = (first + limit - 1) / limit;
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t end = first * (i + 1) / pieces;
      each(begin, end - begin);
      begin = end;
    }
    if (begin == bytes) return;
  }
  for_pieces(bytes - begin, [&](std::size_t offset, std::size_t length) { each(begin + offset, length); });
}

[[maybe_unused]] bool has_remote_memory_network() {
  std::error_code ignored;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored);
  return devices != std::filesystem::directory_iterator();
}

// A few items without memory of the heap, or many.
template <class T>
class Items {
 public:
  explicit Items(std::size_t count) : count_(count), many_(count > few_.size() ? count : 0) {}
  std::size_t size() const { return count_; }
  T* data() { return many_.empty() ? few_.data() : many_.data(); }
  const T* data() const { return many_.empty() ? few_.data() : many_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  std::array<T, 4> few_{};
  std::size_t count_;
  std::vector<T> many_;
};

template <class Part>
std::size_t count_messages(std::span<const Part> parts, bool cut) {
  std::size_t count = 0;
  for (const Part& part : parts) for_messages(part.bytes, cut, [&](std::size_t, std::size_t) { ++count; });
  return count;
}

// The requests of one exchange.
class MpiExchange final : public Exchange {
 public:
  MpiExchange(const World& world, const Group& group, MPI_Comm communicator, int tag, bool cut,
              std::span<const OutgoingPart> sends, std::span<const IncomingPart> receives)
      : world_(world),
        receives_(count_messages(receives, cut)),
        messages_(receives_ + count_messages(sends, cut)),
        requests_(messages_.size()),
        statuses_(messages_.size()) {
    std::size_t at = receives_;
    const auto next = [&](Rank peer, std::size_t length) {
      messages_[at] = {group.world_rank[static_cast<std::size_t>(peer)], length};
      requests_[at] = MPI_REQUEST_NULL;
      return &requests_[at++];
    };
    // What is sent is on its way while the receives are posted.
    for (const OutgoingPart& part : sends)
      for_messages(part.bytes, cut, [&](std::size_t begin, std::size_t length) {
        call(MPI_Isend(static_cast<const std::byte*>(part.data) + begin, static_cast<int>(length), MPI_BYTE,
                       part.peer, tag, communicator, next(part.peer, length)),
             "MPI_Isend", world_.rank);
      });
    at = 0;
    for (const IncomingPart& part : receives)
      for_messages(part.bytes, cut, [&](std::size_t begin, std::size_t length) {
        call(MPI_Irecv(static_cast<std::byte*>(part.data) + begin, static_cast<int>(length), MPI_BYTE,
                       part.peer, tag, communicator, next(part.peer, length)),
             "MPI_Irecv", world_.rank);
      });
  }

  // Given up, since the job is ending: MPI must not write to buffers that are no longer ours.
  ~MpiExchange() override {
    if (done_) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&requests_[i]);
      MPI_Request_free(&requests_[i]);
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

  bool polls_library() const override { return true; }

  std::vector<Rank> waiting_for() const override {
    std::vector<Rank> ranks;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int flag = 0;
      MPI_Request_get_status(requests_[i], &flag, MPI_STATUS_IGNORE);
      if (flag == 0 && std::find(ranks.begin(), ranks.end(), messages_[i].peer) == ranks.end())
        ranks.push_back(messages_[i].peer);
    }
    return ranks;
  }

 private:
  // Testall says only that one of the requests went wrong; its status says which and why.
  [[noreturn]] void explain_failure(int code) const {
    for (std::size_t i = 0; i < statuses_.size(); ++i) {
      const int error = statuses_[i].MPI_ERROR;
      if (error == MPI_SUCCESS || error == MPI_ERR_PENDING) continue;
      int error_class = error;
      MPI_Error_class(error, &error_class);
      if (error_class == MPI_ERR_TRUNCATE && i < receives_) refuse(i, "more");
      call(error, "MPI_Testall", world_.rank);
    }
    call(code, "MPI_Testall", world_.rank);
    fail(ErrorCode::communication, fmt::format("MPI_Testall failed on rank {}", world_.rank));
  }

  void check_lengths() const {
    for (std::size_t i = 0; i < receives_; ++i) {
      int length = 0;
      MPI_Get_count(&statuses_[i], MPI_BYTE, &length);
      if (static_cast<std::size_t>(length) != messages_[i].bytes) refuse(i, std::to_string(length));
    }
  }

  [[noreturn]] void refuse(std::size_t i, const std::string& sent) const {
    fail(ErrorCode::invalid_argument,
         fmt::format("recv on rank {} expects {} bytes, but rank {} sent {}", world_.rank, messages_[i].bytes,
                     statuses_[i].MPI_SOURCE, sent));
  }

  struct Message {
    Rank peer;  // in the world
    std::size_t bytes;
  };
  const World& world_;
  std::size_t receives_;
  Items<Message> messages_;  // of each request; receives first
  Items<MPI_Request> requests_;
  Items<MPI_Status> statuses_;
  bool done_ = false;
};

}  // namespace

MpiMessenger::MpiMessenger(MPI_Comm communicator, const World& world)
    : world_communicator_(communicator), world_(world) {
  int* largest_tag = nullptr;
  int has_largest_tag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &has_largest_tag);
  if (has_largest_tag) largest_tag_ = *largest_tag;
#ifdef OPEN_MPI
  const int mine = has_remote_memory_network() ? 0 : 1;
#else
  const int mine = 0;
#endif
  int all = 0;
  call(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, communicator), "MPI_Allreduce", world.rank);
  cut_ = all != 0;
}

// Programs' tags lie above those of collectives (MPI has no negative ones).
std::unique_ptr<Exchange> MpiMessenger::start(const Group& group, int tag,
                                              std::span<const OutgoingPart> sends,
                                              std::span<const IncomingPart> receives) {
  const std::int64_t mpi_tag = std::int64_t{tag} - subset_tag;
  if (mpi_tag > largest_tag_)
    fail(ErrorCode::invalid_argument,
         fmt::format("tag {} is above {}, the largest that this MPI allows", tag, largest_tag_ + subset_tag));
  return std::make_unique<MpiExchange>(world_, group, communicators_.at(group.context),
                                       static_cast<int>(mpi_tag), cut_, sends, receives);
}

void MpiMessenger::open(const Group& group) {
  if (group.size() == world_.size && group.context == 0) {
    communicators_[0] = world_communicator_;
    return;
  }
  MPI_Group everybody, members;
  MPI_Comm created;
  call(MPI_Comm_group(world_communicator_, &everybody), "MPI_Comm_group", world_.rank);
  call(MPI_Group_incl(everybody, group.size(), group.world_rank.data(), &members), "MPI_Group_incl",
       world_.rank);
  call(
      MPI_Comm_create_group(world_communicator_, members, static_cast<int>(group.context % 32'000), &created),
      "MPI_Comm_create_group", world_.rank);
  MPI_Group_free(&members);
  MPI_Group_free(&everybody);
  MPI_Comm_set_errhandler(created, MPI_ERRORS_RETURN);
  communicators_[group.context] = created;
}

void MpiMessenger::close(const Group& group) noexcept {
  const auto found = communicators_.find(group.context);
  if (found == communicators_.end() || group.context == 0) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&found->second);
  communicators_.erase(found);
}

}  // namespace shoal::comm::mpi
