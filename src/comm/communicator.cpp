// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/communicator.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

// One process's end of the job, shared by all its communicators.
struct Communicator::Endpoint {
  std::unique_ptr<Transport> transport;
  std::uint64_t next_context = 1;  // above every context this process has taken part in
};

struct Communicator::Membership {
  Membership(std::shared_ptr<Endpoint> end, Group members)
      : endpoint(std::move(end)), group(std::move(members)) {
    endpoint->transport->open(group);
  }
  ~Membership() { endpoint->transport->close(group); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  std::shared_ptr<Endpoint> endpoint;
  Group group;
};

Communicator Communicator::make_world(std::unique_ptr<Transport> transport) {
  Group group;
  group.rank = transport->world().rank;
  group.world_rank.resize(static_cast<std::size_t>(transport->world().size));
  std::iota(group.world_rank.begin(), group.world_rank.end(), 0);
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->transport = std::move(transport);
  return Communicator(std::make_shared<const Membership>(std::move(endpoint), std::move(group)));
}

Rank Communicator::rank() const { return membership_->group.rank; }
int Communicator::size() const { return membership_->group.size(); }
Transport& Communicator::transport() const { return *membership_->endpoint->transport; }

const std::string& Communicator::host(Rank rank) const {
  const Rank world_rank = membership_->group.world_rank.at(static_cast<std::size_t>(rank));
  return transport().world().host[static_cast<std::size_t>(world_rank)];
}

namespace {

[[noreturn]] void misuse(const Group& group, const Operation& operation, const std::string& what) {
  fail(ErrorCode::invalid_argument,
       fmt::format("{} on rank {}: {}", to_string(operation.pattern), group.rank, what));
}

// What is wrong on this rank alone; what differs between ranks is found by the library's errors.
void validate(const Group& group, const Operation& operation) {
  const bool has_peer = operation.pattern == Pattern::broadcast || operation.pattern == Pattern::send ||
                        operation.pattern == Pattern::recv;
  if (has_peer && (operation.peer < 0 || operation.peer >= group.size()))
    misuse(group, operation,
           fmt::format("rank {} is not in a communicator of {}", operation.peer, group.size()));
  if (operation.pattern == Pattern::send || operation.pattern == Pattern::recv) {
    if (operation.peer == group.rank) misuse(group, operation, "a rank cannot exchange messages with itself");
    if (operation.tag < 0) misuse(group, operation, fmt::format("tag {} is negative", operation.tag));
  }
  if (operation.send.space == MemorySpace::device || operation.recv.space == MemorySpace::device)
    fail(ErrorCode::unsupported,
         fmt::format("{}: this transport does not carry device memory", to_string(operation.pattern)));
  if (operation.pattern == Pattern::all_reduce) {
    if (operation.send.count != operation.recv.count)
      misuse(group, operation,
             fmt::format("{} elements in, {} out", operation.send.count, operation.recv.count));
    if (operation.send.dtype != operation.recv.dtype)
      misuse(group, operation,
             fmt::format("{} in, {} out", to_string(operation.send.dtype), to_string(operation.recv.dtype)));
  }
  if (operation.pattern == Pattern::all_gather) {
    if (operation.counts.size() != static_cast<std::size_t>(group.size()))
      misuse(group, operation, fmt::format("{} counts for {} ranks", operation.counts.size(), group.size()));
    const std::int64_t mine = operation.counts[static_cast<std::size_t>(group.rank)];
    if (mine != operation.send.count)
      misuse(
          group, operation,
          fmt::format("counts[{}] is {}, but {} elements are given", group.rank, mine, operation.send.count));
    const std::int64_t total =
        std::accumulate(operation.counts.begin(), operation.counts.end(), std::int64_t{0});
    if (total != operation.recv.count)
      misuse(group, operation,
             fmt::format("the counts sum to {}, but there is room for {}", total, operation.recv.count));
  }
}

}  // namespace

void Communicator::submit(const Operation& operation) {
  validate(membership_->group, operation);
  transport().submit(membership_->group, operation);
}

void Communicator::barrier() { submit({.pattern = Pattern::barrier}); }

std::vector<std::int64_t> Communicator::gather_counts(std::int64_t mine) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(size()));
  const std::vector<std::int64_t> ones(counts.size(), 1);
  all_gather(std::span<const std::int64_t>(&mine, 1), counts, ones);
  return counts;
}

std::vector<std::string> Communicator::all_gather_strings(const std::string& mine) {
  const std::vector<std::int64_t> counts = gather_counts(static_cast<std::int64_t>(mine.size()));
  std::vector<char> all(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
  all_gather(mine, all, counts);
  std::vector<std::string> strings;
  auto begin = all.begin();
  for (const std::int64_t count : counts) {
    strings.emplace_back(begin, begin + count);
    begin += count;
  }
  return strings;
}

std::optional<Communicator> Communicator::split(int color, int key) {
  const std::shared_ptr<Endpoint>& endpoint = membership_->endpoint;
  const std::int64_t mine[3] = {color, key, static_cast<std::int64_t>(endpoint->next_context)};
  const std::vector<std::int64_t> all = all_gather(std::span<const std::int64_t>(mine));

  // (color, key, rank) of every member, and a context that none of them has used.
  std::vector<std::tuple<std::int64_t, std::int64_t, Rank>> members;
  std::uint64_t context = 0;
  for (Rank r = 0; r < size(); ++r) {
    const std::int64_t* entry = &all[static_cast<std::size_t>(r) * 3];
    context = std::max(context, static_cast<std::uint64_t>(entry[2]));
    if (entry[0] == color) members.emplace_back(entry[0], entry[1], r);
  }
  endpoint->next_context = context + 1;
  if (color < 0) return std::nullopt;
  std::sort(members.begin(), members.end());

  Group group;
  group.context = context;
  for (const auto& [its_color, its_key, r] : members) {
    if (r == rank()) group.rank = group.size();
    group.world_rank.push_back(membership_->group.world_rank[static_cast<std::size_t>(r)]);
  }
  return Communicator(std::make_shared<const Membership>(endpoint, std::move(group)));
}

std::unique_ptr<SymmetricMemory> Communicator::allocate(std::size_t bytes) {
  return transport().allocate(membership_->group, bytes);
}

}  // namespace shoal::comm
