// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/mpi_memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "comm/direct_memory.h"
#include "comm/mpi/mpi_call.h"
#include "comm/mpi/pieces.h"
#include "comm/wait.h"
#include "shoal/base/error.h"

namespace shoal::comm::mpi {
namespace {

// Messages of up to this many bytes leave at once (mpi_messenger.cpp), and the receiver copies one into place
// while the next arrives.
constexpr std::size_t put_piece_bytes = std::size_t{60} << 10;

// each(begin, length) for the pieces of a put, which differ by a byte at most; one of an empty put.
template <class Each>
void for_put_pieces(std::size_t bytes, Each&& each) {
  const std::size_t most = std::min(put_piece_bytes, largest_piece());
  const std::size_t pieces = std::max<std::size_t>((bytes + most - 1) / most, 1);
  const std::size_t quotient = bytes / pieces, remainder = bytes % pieces;
  for (std::size_t i = 0, begin = 0; i < pieces; ++i) {
    const std::size_t length = quotient + (i < remainder ? 1 : 0);
    each(begin, length);
    begin += length;
  }
}

}  // namespace

void RemoteAccess::send(Rank world_rank, const Request& request, const void* data) {
  Sending& sending = sending_.emplace_back();
  const std::size_t payload = request.kind == Request::Kind::get ? 0 : request.bytes;
  sending.message = std::make_unique_for_overwrite<std::byte[]>(sizeof request + payload);
  std::memcpy(sending.message.get(), &request, sizeof request);
  if (payload > 0) std::memcpy(sending.message.get() + sizeof request, data, payload);
  call(MPI_Isend(sending.message.get(), static_cast<int>(sizeof request + payload), MPI_BYTE, world_rank, 0,
                 communicator_, &sending.request),
       "MPI_Isend", rank_);
}

void RemoteAccess::get(Rank world_rank, Request request, void* destination) {
  request.kind = Request::Kind::get;
  request.value = next_get_++;
  open_gets_[request.value] = static_cast<std::byte*>(destination);
  send(world_rank, request, nullptr);
  const auto answered = [&] { return !open_gets_.contains(request.value); };
  if (!wait_until(
          answered, [this] { progress(); }, default_deadline()))
    fail(ErrorCode::timeout, fmt::format("rank {} has not answered a get for {} s", world_rank,
                                         default_deadline().count() / 1000));
}

void RemoteAccess::progress() {
  for (auto it = sending_.begin(); it != sending_.end();) {
    int done = 0;
    call(MPI_Test(&it->request, &done, MPI_STATUS_IGNORE), "MPI_Test", rank_);
    it = done ? sending_.erase(it) : std::next(it);
  }
  for (;;) {
    int found = 0;
    MPI_Message message;
    MPI_Status status;
    call(MPI_Improbe(MPI_ANY_SOURCE, 0, communicator_, &found, &message, &status), "MPI_Improbe", rank_);
    if (!found) return;
    int size = 0;
    call(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count", rank_);
    arrived_.resize(static_cast<std::size_t>(size));
    call(MPI_Mrecv(arrived_.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv", rank_);
    serve(status.MPI_SOURCE, arrived_.data(), arrived_.size());
  }
}

void RemoteAccess::serve(Rank source, const std::byte* message, std::size_t size) {
  Request request;
  const auto refuse = [&] {
    fail(ErrorCode::communication,
         fmt::format("rank {} got a request from rank {} that fits no allocation", rank_, source));
  };
  if (size < sizeof request) refuse();
  std::memcpy(&request, message, sizeof request);
  const std::byte* payload = message + sizeof request;
  if (request.kind == Request::Kind::reply) {
    const auto open = open_gets_.find(request.value);
    if (open == open_gets_.end() || request.bytes != size - sizeof request) refuse();
    if (request.bytes > 0) std::memcpy(open->second, payload, request.bytes);
    open_gets_.erase(open);
    return;
  }
  const auto found = memories.find(request.memory);
  if (found == memories.end()) refuse();
  MpiMemory& memory = *found->second;
  if (request.offset > memory.bytes() || request.bytes > memory.bytes() - request.offset) refuse();
  if (request.kind == Request::Kind::get) {
    request.kind = Request::Kind::reply;
    return send(source, request, memory.local() + request.offset);
  }
  if (request.bytes != size - sizeof request) refuse();
  if (request.bytes > 0) std::memcpy(memory.local() + request.offset, payload, request.bytes);
  if (!request.has_signal) return;
  if (memory.bytes() < sizeof(std::uint64_t) ||
      request.signal_offset > memory.bytes() - sizeof(std::uint64_t))
    refuse();
  store_signal(memory.local(), request.signal_offset, request.value);
}

void RemoteAccess::drain() {
  const auto empty = [&] { return sending_.empty(); };
  if (!wait_until(
          empty, [this] { progress(); }, default_deadline()))
    fail(ErrorCode::timeout, fmt::format("a peer has not taken a put of rank {} for {} s", rank_,
                                         default_deadline().count() / 1000));
}

namespace {

// What each member tells the others when memory is allocated.
struct Offer {
  HostMemory::Handle handle{};
  std::uint64_t asked = 0;
  std::uint64_t available = 0;
  std::int64_t ok = 0;
};

template <class T>
std::vector<T> gather(Transport& transport, const Group& group, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  const std::vector<std::int64_t> counts(all.size(), sizeof(T));
  transport.submit(group,
                   {.pattern = Pattern::all_gather,
                    .send = {const_cast<T*>(&mine), sizeof(T), DType::uint8},
                    .recv = {all.data(), static_cast<std::int64_t>(sizeof(T) * all.size()), DType::uint8},
                    .counts = counts});
  return all;
}

}  // namespace

MpiMemory::MpiMemory(Transport& transport, RemoteAccess& remote, const Group& group,
                     const std::vector<std::string>& hosts, std::size_t bytes, std::uint64_t number)
    : remote_(remote),
      world_rank_(group.world_rank),
      rank_(group.rank),
      bytes_(bytes),
      number_(number),
      memory_(bytes <= available_memory() ? HostMemory::create(bytes) : HostMemory()),
      peers_(group.world_rank.size()) {
  Offer mine{.asked = bytes, .available = available_memory(), .ok = !memory_.empty()};
  if (mine.ok) mine.handle = memory_.handle();
  const std::vector<Offer> offers = gather(transport, group, mine);
  for (Rank r = 0; r < group.size(); ++r) {
    const Offer& offer = offers[static_cast<std::size_t>(r)];
    if (offer.asked != bytes)
      fail(ErrorCode::invalid_argument,
           fmt::format("symmetric allocation of {} bytes on rank {}, but {} on rank {}", bytes, rank_,
                       offer.asked, r));
    if (!offer.ok)
      fail(ErrorCode::out_of_memory,
           fmt::format("symmetric allocation of {} bytes failed on rank {}: {} bytes are available there",
                       bytes, r, offer.available));
  }
  const auto host_of = [&](Rank r) {
    return hosts[static_cast<std::size_t>(group.world_rank[static_cast<std::size_t>(r)])];
  };
  for (Rank r = 0; r < group.size(); ++r)
    if (r != rank_ && host_of(r) == host_of(rank_))
      peers_[static_cast<std::size_t>(r)] = HostMemory::open(offers[static_cast<std::size_t>(r)].handle);
  remote_.memories[number_] = this;
  // All members learn whether any pair of them needs messages: both sides then have to serve them.
  std::int32_t needs_messages = 0;
  for (Rank r = 0; r < group.size(); ++r)
    if (!direct(r)) needs_messages = 1;
  transport.submit(group, {.pattern = Pattern::all_reduce,
                           .reduction = Reduction::max,
                           .send = {&needs_messages, 1, DType::int32},
                           .recv = {&needs_messages, 1, DType::int32}});
  remote_.in_use = remote_.in_use || needs_messages != 0;
  memory_.close_file();
}

MpiMemory::~MpiMemory() { remote_.memories.erase(number_); }

std::byte* MpiMemory::direct(Rank peer) {
  return peer == rank_ ? memory_.data() : peers_[static_cast<std::size_t>(peer)].data();
}

void MpiMemory::put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) {
  if (std::byte* memory = direct(peer)) return store_put(memory, offset, source, bytes);
  for_put_pieces(bytes, [&](std::size_t begin, std::size_t length) {
    remote_.send(world_rank_[static_cast<std::size_t>(peer)],
                 {.memory = number_, .offset = offset + begin, .bytes = length},
                 static_cast<const std::byte*>(source) + begin);
  });
}

void MpiMemory::put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                           std::size_t signal_offset, std::uint64_t value) {
  if (std::byte* memory = direct(peer)) {
    store_put(memory, offset, source, bytes);
    return store_signal(memory, signal_offset, value);
  }
  // The last piece carries the signal; messages of a pair keep their order.
  for_put_pieces(bytes, [&](std::size_t begin, std::size_t length) {
    remote_.send(world_rank_[static_cast<std::size_t>(peer)],
                 {.has_signal = begin + length == bytes,
                  .memory = number_,
                  .offset = offset + begin,
                  .bytes = length,
                  .signal_offset = signal_offset,
                  .value = value},
                 static_cast<const std::byte*>(source) + begin);
  });
}

void MpiMemory::get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) {
  if (const std::byte* memory = direct(peer)) {
    if (bytes > 0) std::memcpy(destination, memory + offset, bytes);
    return;
  }
  for_pieces(bytes, [&](std::size_t begin, std::size_t length) {
    remote_.get(world_rank_[static_cast<std::size_t>(peer)],
                {.memory = number_, .offset = offset + begin, .bytes = length},
                static_cast<std::byte*>(destination) + begin);
  });
}

// Messages between a pair are served in order, so an answered get of nothing proves all earlier puts.
void MpiMemory::flush() {
  for (Rank peer = 0; peer < static_cast<Rank>(world_rank_.size()); ++peer)
    if (!direct(peer)) get(peer, 0, nullptr, 0);
}

}  // namespace shoal::comm::mpi
