// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/communicator.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "comm/messenger.h"
#include "comm/packing.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"
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

Rank Communicator::world_rank(Rank rank) const {
  return membership_->group.world_rank.at(static_cast<std::size_t>(rank));
}

const std::string& Communicator::host(Rank rank) const {
  return transport().world().host[static_cast<std::size_t>(world_rank(rank))];
}

namespace {

// What is wrong on this rank alone; what differs between ranks is found by the library's errors.
class Validator {
 public:
  Validator(const Group& group, const Operation& operation) : group_(group), op_(operation) {}

  void check() const {
    sound(op_.send);
    sound(op_.recv);
    switch (op_.pattern) {
      case Pattern::barrier: return;
      case Pattern::broadcast: return member(op_.peer);
      case Pattern::reduce:
        member(op_.peer);
        reducible();
        return is_root() ? same_elements() : void();
      case Pattern::all_reduce:
      case Pattern::scan:
      case Pattern::exclusive_scan: reducible(); return same_elements();
      case Pattern::reduce_scatter:
        reducible();
        same_type();
        counts(op_.counts);
        sum(op_.counts, op_.send.count);
        return mine(op_.counts, op_.recv.count);
      case Pattern::gather:
        member(op_.peer);
        counts(op_.counts);
        mine(op_.counts, op_.send.count);
        return is_root() ? sum(op_.counts, op_.recv.count) : void();
      case Pattern::all_gather:
        same_type();
        counts(op_.counts);
        mine(op_.counts, op_.send.count);
        return sum(op_.counts, op_.recv.count);
      case Pattern::scatter:
        member(op_.peer);
        counts(op_.counts);
        mine(op_.counts, op_.recv.count);
        return is_root() ? sum(op_.counts, op_.send.count) : void();
      case Pattern::all_to_all:
        same_type();
        counts(op_.counts);
        counts(op_.recv_counts);
        sum(op_.counts, op_.send.count);
        sum(op_.recv_counts, op_.recv.count);
        if (op_.counts[own()] != op_.recv_counts[own()])
          misuse(fmt::format("sends {} elements to itself, but receives {}", op_.counts[own()],
                             op_.recv_counts[own()]));
        return;
      case Pattern::exchange:
        tag();
        for (const std::span<const Part> parts : {op_.sends, op_.receives})
          for (const Part& part : parts) {
            member(part.peer);
            sound(part.buffer);
          }
        return;
      case Pattern::send:
      case Pattern::recv:
        member(op_.peer);
        tag();
        if (op_.peer == group_.rank) misuse("a rank cannot send to itself by this call: use sendrecv");
        return;
    }
  }

 private:
  [[noreturn]] void misuse(const std::string& what) const {
    fail(ErrorCode::invalid_argument,
         fmt::format("{} on rank {}: {}", to_string(op_.pattern), group_.rank, what));
  }
  std::size_t own() const { return static_cast<std::size_t>(group_.rank); }
  bool is_root() const { return op_.peer == group_.rank; }

  void sound(const Buffer& buffer) const {
    if (buffer.space == MemorySpace::device)
      fail(ErrorCode::unsupported, fmt::format("{} on rank {}: this transport does not carry device memory",
                                               to_string(op_.pattern), group_.rank));
    std::int64_t bytes = 0;
    if (buffer.count < 0 ||
        __builtin_mul_overflow(buffer.count, static_cast<std::int64_t>(size_of(buffer.dtype)), &bytes))
      misuse(fmt::format("{} elements of {} are more bytes than 64 bits count",
                         static_cast<std::uint64_t>(buffer.count), to_string(buffer.dtype)));
  }
  void reducible() const {
    if (!is_defined(op_.reduction, op_.send.dtype))
      fail(ErrorCode::unsupported,
           fmt::format("{} on rank {}: reduction {} is not defined for {}", to_string(op_.pattern),
                       group_.rank, to_string(op_.reduction), to_string(op_.send.dtype)));
  }
  void member(Rank rank) const {
    if (rank < 0 || rank >= group_.size())
      misuse(fmt::format("rank {} is not in a communicator of {}", rank, group_.size()));
  }
  void tag() const {
    if (op_.tag < 0) misuse(fmt::format("tag {} is negative", op_.tag));
  }
  void same_type() const {
    if (op_.send.dtype != op_.recv.dtype)
      misuse(fmt::format("{} in, {} out", to_string(op_.send.dtype), to_string(op_.recv.dtype)));
  }
  void same_elements() const {
    same_type();
    if (op_.send.count != op_.recv.count)
      misuse(fmt::format("{} elements in, {} out", op_.send.count, op_.recv.count));
  }
  void counts(std::span<const std::int64_t> counts) const {
    if (counts.size() != static_cast<std::size_t>(group_.size()))
      misuse(fmt::format("{} counts for {} ranks", counts.size(), group_.size()));
    for (std::size_t r = 0; r < counts.size(); ++r)
      if (counts[r] < 0) misuse(fmt::format("counts[{}] is {}", r, counts[r]));
  }
  void mine(std::span<const std::int64_t> counts, std::int64_t count) const {
    if (counts[own()] != count)
      misuse(
          fmt::format("counts[{}] is {}, but the buffer has {} elements", group_.rank, counts[own()], count));
  }
  void sum(std::span<const std::int64_t> counts, std::int64_t count) const {
    std::int64_t total = 0;
    for (const std::int64_t part : counts)
      if (__builtin_add_overflow(total, part, &total)) misuse("the counts sum to more than 64 bits count");
    if (total != count)
      misuse(fmt::format("the counts sum to {}, but the buffer has {} elements", total, count));
  }

  const Group& group_;
  const Operation& op_;
};

}  // namespace

void Communicator::submit(const Operation& operation) {
  Validator(membership_->group, operation).check();
  transport().submit(membership_->group, operation);
}

Request Communicator::start(const Operation& operation) {
  Validator(membership_->group, operation).check();
  return {transport().start(membership_->group, operation), membership_};
}

void Communicator::submit(const StridedOperation& call) { start(call).wait(); }

Request Communicator::start(const StridedOperation& call) {
  auto packing = std::make_unique<Packing>(call);
  Validator(membership_->group, packing->operation()).check();
  packing->pack(rank());
  std::unique_ptr<Pending> pending = transport().start(membership_->group, packing->operation());
  return {std::make_unique<PackedPending>(std::move(packing), std::move(pending)), membership_};
}

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
  const std::array<std::int64_t, 3> mine = {color, key, static_cast<std::int64_t>(endpoint->next_context)};
  const std::vector<std::int64_t> threes(static_cast<std::size_t>(size()), 3);
  std::vector<std::int64_t> all(3 * threes.size());
  all_gather(mine, all, threes);

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

Communicator Communicator::subset(std::span<const Rank> members) {
  const std::shared_ptr<Endpoint>& endpoint = membership_->endpoint;
  Group group;
  group.rank = -1;
  for (const Rank member : members) {
    if (member < 0 || member >= size() || std::count(members.begin(), members.end(), member) != 1)
      fail(ErrorCode::invalid_argument,
           fmt::format("subset on rank {}: member {} is not a rank of {}, or stands twice", rank(), member,
                       size()));
    if (member == rank()) group.rank = group.size();
    group.world_rank.push_back(membership_->group.world_rank[static_cast<std::size_t>(member)]);
  }
  if (group.rank < 0)
    fail(ErrorCode::invalid_argument, fmt::format("subset: rank {} is not a member", rank()));

  // A context that no member has used, agreed by messages of this communicator.
  const std::uint64_t mine = endpoint->next_context;
  std::vector<std::uint64_t> theirs(members.size(), mine);
  std::vector<Part> sends, receives;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank()) continue;
    sends.push_back(part(members[i], std::span(&mine, 1)));
    receives.push_back(part(members[i], std::span(&theirs[i], 1)));
  }
  transport().submit(membership_->group,
                     {.pattern = Pattern::exchange, .tag = subset_tag, .sends = sends, .receives = receives});
  group.context = *std::max_element(theirs.begin(), theirs.end());
  endpoint->next_context = group.context + 1;
  return Communicator(std::make_shared<const Membership>(endpoint, std::move(group)));
}

Communicator Communicator::duplicate() { return *split(0, rank()); }

std::unique_ptr<SymmetricMemory> Communicator::allocate(std::size_t bytes) {
  try {
    return transport().allocate(membership_->group, bytes);
  } catch (const Error& error) {
    // All members throw this with the same text: one line for the job.
    if (error.code() == ErrorCode::out_of_memory && size() == transport().world().size)
      throw AgreedError(error.code(), error.what());
    throw;
  }
}

}  // namespace shoal::comm
