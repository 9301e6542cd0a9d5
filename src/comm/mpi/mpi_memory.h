// SPDX-License-Identifier: Apache-2.0
// Symmetric memory under MPI. Within a host, peers map each other's memory and put by stores. Between
// hosts a put is a message that the receiver copies into place while it waits for its signal: messages of
// a pair keep their order, so the signal covers the data, and no progress thread is needed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "comm/host_memory.h"
#include "shoal/comm/transport.h"

namespace shoal::comm::mpi {

class MpiMemory;

/// Carries puts and gets between hosts; one for a process.
class RemoteAccess {
 public:
  RemoteAccess(MPI_Comm communicator, Rank rank) : communicator_(communicator), rank_(rank) {}

  struct Request {
    enum class Kind : std::int32_t { put, get, reply } kind = Kind::put;
    std::int32_t has_signal = 0;
    std::uint64_t memory = 0;  // number of the allocation
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t signal_offset = 0;
    std::uint64_t value = 0;  // of the signal; for get and reply: number of the request
  };

  void send(Rank world_rank, const Request& request, const void* data);
  /// Copies from the peer; blocks with the job's deadline.
  void get(Rank world_rank, Request request, void* destination);
  /// Serves what has arrived and forgets what has been sent.
  void progress();
  /// Until all sends have left.
  void drain();

  std::map<std::uint64_t, MpiMemory*> memories;
  bool in_use = false;  // some pair of ranks here cannot map each other's memory

 private:
  struct Sending {
    std::unique_ptr<std::byte[]> message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void serve(Rank source, const std::byte* message, std::size_t size);

  MPI_Comm communicator_;
  Rank rank_;
  std::list<Sending> sending_;
  std::vector<std::byte> arrived_;
  std::map<std::uint64_t, std::byte*> open_gets_;
  std::uint64_t next_get_ = 1;
};

class MpiMemory final : public SymmetricMemory {
 public:
  /// Collective over `group`; `number` is the same on all members and unique in each of them.
  MpiMemory(Transport& transport, RemoteAccess& remote, const Group& group,
            const std::vector<std::string>& hosts, std::size_t bytes, std::uint64_t number);
  ~MpiMemory() override;

  std::byte* local() override { return memory_.data(); }
  std::byte* direct(Rank peer) override;
  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override;
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override;
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override;
  void fence() override {}  // messages of a pair keep their order
  void flush() override;
  std::size_t bytes() const { return bytes_; }

 private:
  RemoteAccess& remote_;
  std::vector<Rank> world_rank_;
  Rank rank_;
  std::size_t bytes_;
  std::uint64_t number_;
  HostMemory memory_;
  std::vector<HostMemory> peers_;  // empty() where not reachable
};

}  // namespace shoal::comm::mpi
