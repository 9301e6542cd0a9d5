// SPDX-License-Identifier: Apache-2.0
// A transport that looks at every call before it passes it on.
//
// Goals: the mistakes that otherwise end in a hang, in wrong numbers or in a message about bytes are told
// with operands, ranks and hosts; no cost where nobody asked for it.
// Non-goals: what Communicator checks always (roots, peers, tags, counts, types); replicated values.
// Rejected: comparing while a started collective is under way, beside it. What is wrong must be found before
// the inner transport is given operands that do not fit together.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>

#include "comm/decorators/agreement.h"
#include "comm/decorators/forwarding.h"
#include "comm/decorators/operands.h"

namespace shoal::comm {

enum class Checking : std::uint8_t { off, light, normal, heavy, communicating };

class Checked final : public Forwarding {
 public:
  Checked(std::unique_ptr<Transport> inner, Checking level);
  ~Checked() override;

  void submit(const Group& group, const Operation& operation) override;
  std::unique_ptr<Pending> start(const Group& group, const Operation& operation) override;
  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override;
  void open(const Group& group) override;
  void close(const Group& group) noexcept override;
  void progress() override;

 private:
  class Memory;
  class Started;
  // The group that carries the messages about a group's calls.
  struct Companion {
    Group group;
    std::uint64_t calls = 0;  // collectives so far
  };

  bool communicates() const { return level_ == Checking::communicating; }
  void check_locally(const Group& group, const Operation& operation) const;
  void check_in_flight(const Group& group, const Operation& operation,
                       std::span<const MemoryRange> ranges) const;
  void agree_on(const Group& group, const CallDescription& mine, const Operation* operation);
  std::vector<std::int64_t> gather(Companion& companion, std::span<const std::int64_t> mine,
                                   const std::string& what);
  [[noreturn]] void refuse(const Group& group, const std::string& what) const;
  template <class Wait>
  void explaining(Wait&& wait);

  Checking level_;
  std::map<std::uint64_t, Companion> companions_;  // by context of the group that they belong to
  std::list<Started*> in_flight_;
};

}  // namespace shoal::comm
