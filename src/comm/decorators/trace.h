// SPDX-License-Identifier: Apache-2.0
// What a rank remembers of its communication, and the two ways in which it is shown: a timeline in the Trace
// Event format that browsers' trace viewers open, and a table of totals.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/decorators/call.h"

namespace shoal::comm {

struct TraceEvent {
  enum class Kind : std::uint8_t {
    call,   // from entering a blocking call to leaving it
    start,  // the same for the start of an operation
    wait,   // the same for its wait
    span,   // from the start of an operation until it was found to be done
  };
  std::int64_t begin_ns = 0;  // this process's steady clock
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;    // of this rank's operands that others need
  std::uint64_t context = 0;  // of the communicator; 0 is the whole job
  Rank peer = -1;             // root, or the other rank; -1: none
  Call call{};
  DType dtype{};
  Kind kind = Kind::call;
};

struct CallTotals {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::int64_t inside_ns = 0;   // all calls, waits included
  std::int64_t waiting_ns = 0;  // waits for started operations and for signals
};
using Totals = std::array<CallTotals, call_count>;

/// Keeps all totals and the last `capacity` events.
class TraceLog {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 17;  // 6 MiB

  void record(const TraceEvent& event);
  const Totals& totals() const { return totals_; }
  std::uint64_t dropped() const { return recorded_ - events_.size(); }
  /// In order of recording.
  std::vector<TraceEvent> events() const;

 private:
  std::vector<TraceEvent> events_;  // a ring once it is full
  std::uint64_t recorded_ = 0;
  Totals totals_{};
};

/// A timeline on disk. Throws io naming the file.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path);
  /// `shift_ns` is added to the events' times, so that those of all ranks begin near 0 on one clock.
  void add(Rank rank, const std::string& host, std::span<const TraceEvent> events, std::int64_t shift_ns);
  void close();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(const std::string& text);
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  bool first_ = true;
};

/// A line for each call that was made, with sums over the ranks and the largest rank's times.
std::string trace_table(std::span<const Totals> of_ranks);

}  // namespace shoal::comm
