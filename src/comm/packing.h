// SPDX-License-Identifier: Apache-2.0
// Calls with strided buffers: packed copies stand in for them while the call is under way.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "shoal/comm/communicator.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {

class Packing {
 public:
  explicit Packing(const StridedOperation& call);

  /// The call; its buffers are not yet packed before pack().
  const Operation& operation() const { return operation_; }
  /// Copies what the call reads on rank `me`.
  void pack(Rank me);
  /// Copies what the call has written to its places.
  void unpack();

 private:
  void replace(Buffer& buffer, const StridedBuffer& place, bool is_read, bool is_written);

  Operation operation_;
  StridedOperation call_;
  std::vector<StridedPart> strided_sends_, strided_receives_;
  std::vector<Part> sends_, receives_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::pair<const std::byte*, StridedBuffer>> results_;
};

/// Ends with the unpacking.
class PackedPending final : public Pending {
 public:
  PackedPending(std::unique_ptr<Packing> packing, std::unique_ptr<Pending> pending)
      : packing_(std::move(packing)), pending_(std::move(pending)) {}
  bool test() override {
    if (!pending_->test()) return false;
    packing_->unpack();
    return true;
  }
  void wait() override {
    pending_->wait();
    packing_->unpack();
  }

 private:
  std::unique_ptr<Packing> packing_;  // outlives pending_, which uses its memory
  std::unique_ptr<Pending> pending_;
};

}  // namespace shoal::comm
