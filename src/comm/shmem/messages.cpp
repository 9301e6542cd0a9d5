// SPDX-License-Identifier: Apache-2.0
#include "comm/shmem/messages.h"

#if SHOAL_SHMEM_HAS_MPI

#include <fmt/format.h>
#include <mpi.h>

#include "comm/mpi/mpi_call.h"
#include "comm/mpi/mpi_messenger.h"
#include "shoal/base/error.h"

namespace shoal::comm::shmem {
namespace {

class MpiMessages final : public LibraryMessages {
 public:
  explicit MpiMessages(const World& world)
      : communicator_(duplicate(world)), messenger_(communicator_, world) {}

  Messenger& messenger() override { return messenger_; }
  void open(const Group& group) override { messenger_.open(group); }
  void close(const Group& group) noexcept override { messenger_.close(group); }
  void finalize() override { MPI_Comm_free(&communicator_); }

 private:
  static MPI_Comm duplicate(const World& world) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != world.rank)
      fail(ErrorCode::communication,
           fmt::format("PE {} of OpenSHMEM is rank {} of its MPI", world.rank, rank));
    MPI_Comm communicator = MPI_COMM_NULL;
    mpi::call(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup", world.rank);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    return communicator;
  }

  MPI_Comm communicator_;
  mpi::MpiMessenger messenger_;
};

}  // namespace

void prepare_messages() {
  int initialized = 0, provided = 0;
  MPI_Initialized(&initialized);
  if (initialized)
    fail(ErrorCode::unsupported,
         "transport shmem: this program has started MPI but not OpenSHMEM: call shmem_init as well, or use "
         "transport mpi");
  mpi::call(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", 0);
}

std::unique_ptr<LibraryMessages> make_messages(const World& world) {
  return std::make_unique<MpiMessages>(world);
}

}  // namespace shoal::comm::shmem

#else

namespace shoal::comm::shmem {

void prepare_messages() {}
std::unique_ptr<LibraryMessages> make_messages(const World&) { return nullptr; }

}  // namespace shoal::comm::shmem

#endif
