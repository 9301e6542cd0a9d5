// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/checked.h"

#include <cstdio>
#include <exception>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "comm/decorators/labels.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::comm {

// An operation that is under way: its memory, its label, and its name should it be dropped.
class Checked::Started final : public Pending {
 public:
  Started(Checked& owner, const Group& group, const Operation& operation, std::vector<MemoryRange> memory)
      : owner_(owner),
        group_{group.context, group.world_rank, group.rank},
        pattern_(operation.pattern),
        buffer_(main_buffer(operation)),
        memory_(std::move(memory)) {
    owner_.in_flight_.push_back(this);
    place_ = std::prev(owner_.in_flight_.end());
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  ~Started() override {
    if (!done_ && inner_ && std::uncaught_exceptions() == 0)
      std::fprintf(stderr, "shoal: %s on %s: its Request was dropped while it was under way\n",
                   name().c_str(), name_of(owner_.world(), group_, group_.rank).c_str());
    owner_.in_flight_.erase(place_);
  }

  void begin(const Group& group, const Operation& operation) {
    owner_.explaining([&] {
      if (owner_.communicates() && !is_collective(operation.pattern))
        labels_.emplace(owner_.inner(), owner_.companions_.at(group.context).group, operation);
      inner_ = owner_.inner().start(group, operation);
    });
  }

  bool test() override {
    if (done_) return true;
    owner_.explaining([&] {
      if (inner_->test() && (!labels_ || labels_->test())) finish();
    });
    return done_;
  }

  void wait() override {
    if (done_) return;
    done_ = true;  // whatever happens, nobody waits for it again
    owner_.explaining([&] {
      inner_->wait();
      if (labels_) labels_->wait();
      finish();
    });
  }

  std::string mismatch() const { return labels_ ? labels_->mismatch(owner_.world(), group_) : ""; }
  std::string name() const { return fmt::format("{} ({})", to_string(pattern_), describe(buffer_)); }
  std::span<const MemoryRange> memory() const { return memory_; }

 private:
  void finish() {
    done_ = true;
    memory_.clear();
    const std::string wrong = mismatch();
    labels_.reset();
    if (!wrong.empty()) fail(ErrorCode::invalid_argument, wrong);
  }

  Checked& owner_;
  Group group_;
  Pattern pattern_;
  Buffer buffer_;
  std::vector<MemoryRange> memory_;
  std::list<Started*>::iterator place_;
  std::optional<MessageLabels> labels_;
  std::unique_ptr<Pending> inner_;
  bool done_ = false;
};

// Offsets into an allocation, on whichever rank.
class Checked::Memory final : public ForwardingMemory {
 public:
  Memory(std::unique_ptr<SymmetricMemory> inner, const World& world, const Group& group, std::size_t bytes)
      : ForwardingMemory(std::move(inner)), world_(world), group_(group), bytes_(bytes) {}

  std::byte* direct(Rank peer) override {
    check("direct", peer, 0, local(), 0);
    return ForwardingMemory::direct(peer);
  }
  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override {
    check("put", peer, offset, source, bytes);
    ForwardingMemory::put(peer, offset, source, bytes);
  }
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override {
    check("put", peer, offset, source, bytes);
    check("put", peer, signal_offset, local(), sizeof value);
    if (signal_offset % sizeof value != 0)
      misuse("put", fmt::format("signal offset {} is no multiple of {}", signal_offset, sizeof value));
    if (signal_offset < offset + bytes && offset < signal_offset + sizeof value)
      misuse("put", fmt::format("the signal at {} lies within the data, bytes {} to {}", signal_offset,
                                offset, offset + bytes));
    ForwardingMemory::put_signal(peer, offset, source, bytes, signal_offset, value);
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    check("get", peer, offset, destination, bytes);
    ForwardingMemory::get(peer, offset, destination, bytes);
  }

 private:
  [[noreturn]] void misuse(const char* call, const std::string& what) const {
    fail(ErrorCode::invalid_argument,
         fmt::format("{} on {}: {}", call, name_of(world_, group_, group_.rank), what));
  }
  void check(const char* call, Rank peer, std::size_t offset, const void* memory, std::size_t bytes) const {
    if (peer < 0 || peer >= group_.size())
      misuse(call, fmt::format("rank {} is not in a communicator of {}", peer, group_.size()));
    if (offset > bytes_ || bytes > bytes_ - offset)
      misuse(call, fmt::format("bytes {} to {} are past the end of an allocation of {}", offset,
                               offset + bytes, bytes_));
    if (!memory && bytes > 0) misuse(call, fmt::format("a null pointer with {} bytes", bytes));
  }

  const World& world_;
  Group group_;
  std::size_t bytes_;
};

Checked::Checked(std::unique_ptr<Transport> inner, Checking level)
    : Forwarding(std::move(inner)), level_(level) {}
Checked::~Checked() = default;

void Checked::open(const Group& group) {
  inner().open(group);
  if (!communicates()) return;
  Companion& companion = companions_[group.context];
  companion.group = {group.context | check_context, group.world_rank, group.rank};
  inner().open(companion.group);
}

void Checked::close(const Group& group) noexcept {
  if (const auto found = companions_.find(group.context); found != companions_.end()) {
    inner().close(found->second.group);
    companions_.erase(found);
  }
  inner().close(group);
}

void Checked::check_locally(const Group& group, const Operation& operation) const {
  check_operands(group, operation);
  if (level_ < Checking::normal) return;
  check_parts(group, operation);
}

void Checked::check_in_flight(const Group& group, const Operation& operation,
                              std::span<const MemoryRange> ranges) const {
  for (const Started* other : in_flight_)
    for (const MemoryRange& theirs : other->memory())
      for (const MemoryRange& mine : ranges)
        if (mine.conflicts(theirs))
          fail(ErrorCode::invalid_argument,
               fmt::format("{} ({}) on {}: its memory is in use by {}, which was started and not waited for",
                           to_string(operation.pattern), describe(main_buffer(operation)),
                           name_of(world(), group, group.rank), other->name()));
}

void Checked::submit(const Group& group, const Operation& operation) {
  // The labels of messages need what a started operation has.
  if (communicates() && !is_collective(operation.pattern)) return start(group, operation)->wait();
  check_locally(group, operation);
  if (level_ >= Checking::heavy && !in_flight_.empty())
    check_in_flight(group, operation, memory_of(group, operation));
  if (communicates()) agree_on(group, CallDescription::of(operation), &operation);
  if (in_flight_.empty()) return inner().submit(group, operation);
  explaining([&] { inner().submit(group, operation); });
}

std::unique_ptr<Pending> Checked::start(const Group& group, const Operation& operation) {
  check_locally(group, operation);
  if (level_ < Checking::normal) return inner().start(group, operation);
  std::vector<MemoryRange> memory;
  if (level_ >= Checking::heavy) {
    memory = memory_of(group, operation);
    check_in_flight(group, operation, memory);
  }
  if (communicates() && is_collective(operation.pattern))
    agree_on(group, CallDescription::of(operation), &operation);
  auto started = std::make_unique<Started>(*this, group, operation, std::move(memory));
  started->begin(group, operation);
  return started;
}

std::unique_ptr<SymmetricMemory> Checked::allocate(const Group& group, std::size_t bytes) {
  if (communicates()) agree_on(group, CallDescription::of_allocation(bytes), nullptr);
  std::unique_ptr<SymmetricMemory> memory = inner().allocate(group, bytes);
  if (level_ < Checking::heavy) return memory;
  return std::make_unique<Memory>(std::move(memory), world(), group, bytes);
}

void Checked::progress() {
  if (in_flight_.empty()) return inner().progress();
  explaining([&] { inner().progress(); });
}

// A transport tells of a message that does not fit in bytes, and to whoever waits just then. Where its
// label has come, that says more.
template <class Wait>
void Checked::explaining(Wait&& wait) {
  try {
    wait();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument)
      for (const Started* started : in_flight_)
        if (const std::string wrong = started->mismatch(); !wrong.empty())
          fail(ErrorCode::invalid_argument, wrong);
    throw;
  }
}

std::vector<std::int64_t> Checked::gather(Companion& companion, std::span<const std::int64_t> mine,
                                          const std::string& what) {
  const std::vector<std::int64_t> counts(companion.group.world_rank.size(),
                                         static_cast<std::int64_t>(mine.size()));
  std::vector<std::int64_t> all(counts.size() * mine.size());
  try {
    explaining([&] {
      inner().submit(companion.group, {.pattern = Pattern::all_gather,
                                       .send = erase(View<const std::int64_t>(mine)),
                                       .recv = erase(View<std::int64_t>(all)),
                                       .counts = counts});
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    fail(ErrorCode::timeout, fmt::format("{}: not all ranks call it: {}", what, error.what()));
  }
  return all;
}

// What all members know is said once for the whole job; a part of it knows nothing of the others.
void Checked::refuse(const Group& group, const std::string& what) const {
  if (group.size() == world().size) throw AgreedError(ErrorCode::invalid_argument, what);
  fail(ErrorCode::invalid_argument, what);
}

void Checked::agree_on(const Group& group, const CallDescription& mine, const Operation* operation) {
  Companion& companion = companions_.at(group.context);
  const std::uint64_t number = ++companion.calls;
  const auto call = static_cast<Call>(mine.field[CallDescription::call]);
  const std::string what = fmt::format("{} on {}", to_string(call), name_of(world(), group, group.rank));
  const std::vector<std::int64_t> words = gather(companion, mine.field, what);
  std::vector<CallDescription> calls(group.world_rank.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    calls[i / CallDescription::fields].field[i % CallDescription::fields] = words[i];
  if (const std::string wrong = compare_calls(world(), group, calls, number); !wrong.empty())
    refuse(group, wrong);
  if (!operation || !needs_counts(calls)) return;
  std::vector<std::int64_t> counts(operation->counts.begin(), operation->counts.end());
  counts.insert(counts.end(), operation->recv_counts.begin(), operation->recv_counts.end());
  const std::vector<std::int64_t> all = gather(companion, counts, what);
  if (const std::string wrong = compare_counts(world(), group, calls, all, number); !wrong.empty())
    refuse(group, wrong);
}

}  // namespace shoal::comm
