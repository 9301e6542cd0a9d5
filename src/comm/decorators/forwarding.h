// SPDX-License-Identifier: Apache-2.0
// A transport that passes every call on to another: what decorators start from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "shoal/comm/transport.h"

namespace shoal::comm {

class Forwarding : public Transport {
 public:
  explicit Forwarding(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  std::string library() const override { return inner_->library(); }
  const World& world() const override { return inner_->world(); }
  void submit(const Group& group, const Operation& operation) override { inner_->submit(group, operation); }
  std::unique_ptr<Pending> start(const Group& group, const Operation& operation) override {
    return inner_->start(group, operation);
  }
  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override {
    return inner_->allocate(group, bytes);
  }
  void open(const Group& group) override { inner_->open(group); }
  void close(const Group& group) noexcept override { inner_->close(group); }
  void progress() override { inner_->progress(); }
  WaitBoard* wait_board() override { return inner_->wait_board(); }
  void finalize() override { inner_->finalize(); }
  void abort(int exit_code) noexcept override { inner_->abort(exit_code); }

 protected:
  Transport& inner() { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

/// The same for symmetric memory.
class ForwardingMemory : public SymmetricMemory {
 public:
  explicit ForwardingMemory(std::unique_ptr<SymmetricMemory> inner) : inner_(std::move(inner)) {}

  std::byte* local() override { return inner_->local(); }
  std::byte* direct(Rank peer) override { return inner_->direct(peer); }
  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override {
    inner_->put(peer, offset, source, bytes);
  }
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override {
    inner_->put_signal(peer, offset, source, bytes, signal_offset, value);
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    inner_->get(peer, offset, destination, bytes);
  }
  void fence() override { inner_->fence(); }
  void flush() override { inner_->flush(); }

 private:
  std::unique_ptr<SymmetricMemory> inner_;
};

/// The whole job as a group of its own: decorators' own messages never meet the program's.
Group private_world(const World& world, std::uint64_t context_bit);
/// Contexts of programs count from 0; decorators set one of these bits.
inline constexpr std::uint64_t check_context = std::uint64_t{1} << 62;
inline constexpr std::uint64_t trace_context = std::uint64_t{1} << 61;

}  // namespace shoal::comm
