// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/faulty.h"

#include <csignal>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

// What a started operation is when nothing of it is left to do.
class Nothing final : public Pending {
 public:
  bool test() override { return true; }
  void wait() override {}
};

// Of an exchange only the messages of this rank are lost; it still receives.
Operation without_sends(const Operation& operation) {
  Operation rest = operation;
  rest.sends = {};
  return rest;
}

// What a rank sends to itself never leaves it, so an exchange with such a part cannot lose its sends.
bool sends_to_itself(const Group& group, const Operation& operation) {
  for (const Part& part : operation.sends)
    if (part.peer == group.rank) return true;
  return false;
}

}  // namespace

class Faulty::Memory final : public ForwardingMemory {
 public:
  Memory(Faulty& owner, std::unique_ptr<SymmetricMemory> inner)
      : ForwardingMemory(std::move(inner)), owner_(owner) {}

  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override {
    if (!owner_.strike(Call::put)) ForwardingMemory::put(peer, offset, source, bytes);
  }
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override {
    if (!owner_.strike(Call::put))
      ForwardingMemory::put_signal(peer, offset, source, bytes, signal_offset, value);
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    owner_.strike(Call::get);
    ForwardingMemory::get(peer, offset, destination, bytes);
  }

 private:
  Faulty& owner_;
};

Faulty::Faulty(std::unique_ptr<Transport> inner, std::vector<Fault> faults) : Forwarding(std::move(inner)) {
  for (Fault& fault : faults) {
    if (fault.rank && *fault.rank >= world().size)
      throw AgreedError(ErrorCode::invalid_argument,
                        fmt::format("SHOAL_FAULT: rank={}, but the job has {}", *fault.rank, world().size));
    faults_.push_back({std::move(fault)});
  }
}

// Stops for ever, without a call that could let the library move data. Threads cannot be killed: there it
// sleeps until the others have given up, and then ends with them.
void Faulty::silence() {
  const auto patience = default_deadline() * 2 + std::chrono::milliseconds(500);
  std::this_thread::sleep_for(patience);
  for (;;) {
    if (name() == "threads") inner().progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool Faulty::strike(Call call) {
  bool lost = false;
  for (auto& [fault, seen] : faults_) {
    if (!fault.applies_to(call) || !fault.strikes(world().rank, ++seen)) continue;
    switch (fault.action) {
      case FaultAction::die: std::raise(SIGKILL); break;
      case FaultAction::silent: silence(); break;
      case FaultAction::fail:
        fail(ErrorCode::communication,
             fmt::format("injected fault: {} on rank {}, operation {}", to_string(call), world().rank, seen));
      case FaultAction::exit: std::exit(3);
      case FaultAction::delay: std::this_thread::sleep_for(fault.delay); break;
      case FaultAction::lose: lost = true; break;
    }
  }
  return lost;
}

void Faulty::submit(const Group& group, const Operation& operation) {
  const bool lost = strike(call_of(operation.pattern)) && !sends_to_itself(group, operation);
  if (!lost) return inner().submit(group, operation);
  if (operation.pattern == Pattern::exchange) inner().submit(group, without_sends(operation));
}

std::unique_ptr<Pending> Faulty::start(const Group& group, const Operation& operation) {
  const bool lost = strike(call_of(operation.pattern)) && !sends_to_itself(group, operation);
  if (!lost) return inner().start(group, operation);
  if (operation.pattern == Pattern::exchange) return inner().start(group, without_sends(operation));
  return std::make_unique<Nothing>();
}

std::unique_ptr<SymmetricMemory> Faulty::allocate(const Group& group, std::size_t bytes) {
  strike(Call::allocate);
  return std::make_unique<Memory>(*this, inner().allocate(group, bytes));
}

}  // namespace shoal::comm
