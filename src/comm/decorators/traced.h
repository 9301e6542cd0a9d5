// SPDX-License-Identifier: Apache-2.0
// A transport that remembers what was called, when and for how long (docs/debugging.md).
//
// An event costs two readings of the clock and a store into a ring. Nothing is sent before the end of the
// job, when rank 0 collects one rank after the other, so that it never holds more than two ranks' events.
#pragma once

#include <cstdint>
#include <string>

#include "comm/decorators/forwarding.h"
#include "comm/decorators/trace.h"

namespace shoal::comm {

class Traced final : public Forwarding {
 public:
  /// Collective. Throws an AgreedError (io) when rank 0 cannot write `path`.
  Traced(std::unique_ptr<Transport> inner, std::string path);
  /// A rank that ends without finalize() writes what it has to PATH.rankN.
  ~Traced() override;

  void submit(const Group& group, const Operation& operation) override;
  std::unique_ptr<Pending> start(const Group& group, const Operation& operation) override;
  std::unique_ptr<SymmetricMemory> allocate(const Group& group, std::size_t bytes) override;
  void progress() override;
  void finalize() override;
  void abort(int exit_code) noexcept override;

 private:
  class Timing;
  class Memory;
  class Started;
  struct Report;

  void prepare();
  std::int64_t measure_clock(const Group& everybody);
  void end_wait();
  void collect();
  void write_part() noexcept;

  std::string path_;
  std::unique_ptr<TraceFile> file_;  // on rank 0
  TraceLog log_;
  std::int64_t shift_ns_ = 0;  // from this process's clock to nanoseconds since rank 0 began
  bool written_ = false;
  // Calls of progress() that follow each other closely are one wait for a signal.
  bool waiting_ = false;
  std::int64_t wait_begin_ns_ = 0;
  std::int64_t last_progress_ns_ = 0;
};

}  // namespace shoal::comm
