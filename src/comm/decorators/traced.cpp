// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/traced.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

// Longer than any sleep of somebody who waits (comm/wait.h): a gap between two calls of progress() that is
// longer is no wait but the program's work.
constexpr std::int64_t longest_pause_ns = 3'000'000;
constexpr int clock_rounds = 8;
constexpr int clock_tag = 1, report_tag = 2;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Operation message(Pattern pattern, Rank peer, int tag, void* data, std::size_t bytes) {
  const Buffer buffer{data, static_cast<std::int64_t>(bytes), DType::uint8};
  return {.pattern = pattern, .peer = peer, .tag = tag, .send = buffer, .recv = buffer};
}

// Bytes of this rank's operands that other ranks need: what any algorithm has to send at least once.
std::uint64_t bytes_sent(const Group& group, const Operation& operation) {
  const auto mine = static_cast<std::size_t>(group.rank);
  switch (operation.pattern) {
    case Pattern::barrier:
    case Pattern::recv: return 0;
    case Pattern::broadcast: return operation.peer == group.rank ? operation.recv.bytes() : 0;
    case Pattern::scatter:
      if (operation.peer != group.rank) return 0;
      return operation.send.bytes() - operation.recv.bytes();
    case Pattern::reduce:
    case Pattern::gather: return operation.peer == group.rank ? 0 : operation.send.bytes();
    case Pattern::all_to_all:
      return operation.send.bytes() -
             static_cast<std::size_t>(operation.counts[mine]) * size_of(operation.send.dtype);
    case Pattern::exchange: {
      std::uint64_t bytes = 0;
      for (const Part& part : operation.sends)
        if (part.peer != group.rank) bytes += part.buffer.bytes();
      return bytes;
    }
    default: return operation.send.bytes();
  }
}

TraceEvent event_of(const Group& group, const Operation& operation, TraceEvent::Kind kind) {
  const bool paired = operation.pattern == Pattern::send || operation.pattern == Pattern::recv;
  return {.bytes = bytes_sent(group, operation),
          .context = group.context,
          .peer = paired || has_root(operation.pattern) ? operation.peer : -1,
          .call = call_of(operation.pattern),
          .dtype = main_buffer(operation).dtype,
          .kind = kind};
}

}  // namespace

// Records an event when it goes out of scope: also one that ends in an exception, often the last of a job.
class Traced::Timing {
 public:
  Timing(Traced& owner, const TraceEvent& event) : owner_(owner), event_(event) {
    owner_.end_wait();
    event_.begin_ns = now_ns();
  }
  ~Timing() {
    event_.duration_ns = now_ns() - event_.begin_ns;
    owner_.log_.record(event_);
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

 private:
  Traced& owner_;
  TraceEvent event_;
};

class Traced::Started final : public Pending {
 public:
  Started(Traced& owner, const TraceEvent& event, std::unique_ptr<Pending> inner)
      : owner_(owner), span_(event), inner_(std::move(inner)) {
    span_.kind = TraceEvent::Kind::span;
    span_.begin_ns = now_ns();
  }
  bool test() override {
    if (!inner_->test()) return false;
    end();
    return true;
  }
  void wait() override {
    {
      TraceEvent event = span_;
      event.kind = TraceEvent::Kind::wait;
      const Timing timing(owner_, event);
      inner_->wait();
    }
    end();
  }

 private:
  void end() {
    if (ended_) return;
    ended_ = true;
    span_.duration_ns = now_ns() - span_.begin_ns;
    owner_.log_.record(span_);
  }
  Traced& owner_;
  TraceEvent span_;
  std::unique_ptr<Pending> inner_;
  bool ended_ = false;
};

class Traced::Memory final : public ForwardingMemory {
 public:
  Memory(Traced& owner, std::uint64_t context, std::unique_ptr<SymmetricMemory> inner)
      : ForwardingMemory(std::move(inner)), owner_(owner), context_(context) {}

  void put(Rank peer, std::size_t offset, const void* source, std::size_t bytes) override {
    const Timing timing(owner_, event(Call::put, peer, bytes));
    ForwardingMemory::put(peer, offset, source, bytes);
  }
  void put_signal(Rank peer, std::size_t offset, const void* source, std::size_t bytes,
                  std::size_t signal_offset, std::uint64_t value) override {
    const Timing timing(owner_, event(Call::put, peer, bytes));
    ForwardingMemory::put_signal(peer, offset, source, bytes, signal_offset, value);
  }
  void get(Rank peer, std::size_t offset, void* destination, std::size_t bytes) override {
    const Timing timing(owner_, event(Call::get, peer, 0));
    ForwardingMemory::get(peer, offset, destination, bytes);
  }
  void flush() override {
    const Timing timing(owner_, event(Call::flush, -1, 0));
    ForwardingMemory::flush();
  }

 private:
  TraceEvent event(Call call, Rank peer, std::size_t bytes) const {
    return {.bytes = bytes, .context = context_, .peer = peer, .call = call};
  }
  Traced& owner_;
  std::uint64_t context_;
};

// What a rank sends to rank 0 at the end, before its events.
struct Traced::Report {
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::int64_t shift_ns = 0;
  Totals totals{};
};

Traced::Traced(std::unique_ptr<Transport> inner, std::string path)
    : Forwarding(std::move(inner)), path_(std::move(path)) {
  prepare();
}

Traced::~Traced() { write_part(); }

// Rank 0 opens the file before anything is worked for in vain, and tells the others when it began.
void Traced::prepare() {
  const Group everybody = private_world(world(), trace_context);
  Forwarding::open(everybody);
  std::string trouble;
  if (world().rank == 0) try {
      file_ = std::make_unique<TraceFile>(path_);
    } catch (const Error& error) {
      trouble = error.what();
    }
  std::array<std::int64_t, 2> start = {now_ns(), trouble.empty() ? 1 : 0};
  const Buffer buffer{start.data(), 2, DType::int64};
  inner().submit(everybody, {.pattern = Pattern::broadcast, .send = buffer, .recv = buffer});
  if (!trouble.empty()) throw AgreedError(ErrorCode::io, trouble);
  if (start[1] == 0) throw AgreedError(ErrorCode::aborted, "rank 0 cannot write the trace");
  shift_ns_ = measure_clock(everybody) - start[0];
  Forwarding::close(everybody);
}

// What has to be added to this process's clock to get that of rank 0. Processes of a host share a clock. Of
// several questions to rank 0 the one that was answered fastest counts (Cristian 1989): its error is at
// most half of the time that it took.
std::int64_t Traced::measure_clock(const Group& everybody) {
  const std::vector<std::string>& host = world().host;
  const auto elsewhere = [&](Rank rank) { return host[static_cast<std::size_t>(rank)] != host[0]; };
  std::int64_t clock = 0, offset = 0, fastest = std::numeric_limits<std::int64_t>::max();
  const auto exchange = [&](Pattern pattern, Rank peer) {
    inner().submit(everybody, message(pattern, peer, clock_tag, &clock, sizeof clock));
  };
  if (world().rank > 0 && elsewhere(world().rank))
    for (int round = 0; round < clock_rounds; ++round) {
      const std::int64_t asked = now_ns();
      exchange(Pattern::send, 0);
      exchange(Pattern::recv, 0);
      const std::int64_t answered = now_ns();
      if (answered - asked >= fastest) continue;
      fastest = answered - asked;
      offset = clock - (asked + fastest / 2);
    }
  for (Rank rank = 1; world().rank == 0 && rank < world().size; ++rank)
    for (int round = 0; elsewhere(rank) && round < clock_rounds; ++round) {
      exchange(Pattern::recv, rank);
      clock = now_ns();
      exchange(Pattern::send, rank);
    }
  return offset;
}

void Traced::submit(const Group& group, const Operation& operation) {
  const Timing timing(*this, event_of(group, operation, TraceEvent::Kind::call));
  inner().submit(group, operation);
}

std::unique_ptr<Pending> Traced::start(const Group& group, const Operation& operation) {
  const TraceEvent event = event_of(group, operation, TraceEvent::Kind::start);
  const Timing timing(*this, event);
  return std::make_unique<Started>(*this, event, inner().start(group, operation));
}

std::unique_ptr<SymmetricMemory> Traced::allocate(const Group& group, std::size_t bytes) {
  const Timing timing(*this, {.context = group.context, .call = Call::allocate});
  return std::make_unique<Memory>(*this, group.context, inner().allocate(group, bytes));
}

void Traced::progress() {
  if (!waiting_) wait_begin_ns_ = last_progress_ns_ = now_ns();
  waiting_ = true;
  inner().progress();
  const std::int64_t now = now_ns();
  if (now - last_progress_ns_ > longest_pause_ns) {
    end_wait();
    waiting_ = true;
    wait_begin_ns_ = now;
  }
  last_progress_ns_ = now;
}

void Traced::end_wait() {
  if (!waiting_) return;
  waiting_ = false;
  log_.record(
      {.begin_ns = wait_begin_ns_, .duration_ns = last_progress_ns_ - wait_begin_ns_, .call = Call::wait});
}

void Traced::finalize() {
  end_wait();
  collect();
  written_ = true;
  inner().finalize();
}

void Traced::collect() {
  const Group everybody = private_world(world(), trace_context);
  Forwarding::open(everybody);
  std::vector<TraceEvent> events = log_.events();
  Report report{events.size(), log_.dropped(), shift_ns_, log_.totals()};
  const auto transfer = [&](Pattern pattern, Rank peer, void* data, std::size_t bytes) {
    inner().submit(everybody, message(pattern, peer, report_tag, data, bytes));
  };
  if (world().rank > 0) {
    transfer(Pattern::send, 0, &report, sizeof report);
    transfer(Pattern::send, 0, events.data(), events.size() * sizeof(TraceEvent));
  } else {
    std::vector<Totals> totals;
    std::uint64_t shown = 0, dropped = 0;
    for (Rank rank = 0; rank < world().size; ++rank) {
      if (rank > 0) {
        transfer(Pattern::recv, rank, &report, sizeof report);
        events.resize(report.events);
        transfer(Pattern::recv, rank, events.data(), events.size() * sizeof(TraceEvent));
      }
      file_->add(rank, world().host[static_cast<std::size_t>(rank)], events, report.shift_ns);
      totals.push_back(report.totals);
      shown += report.events;
      dropped += report.dropped;
    }
    file_->close();
    fmt::print(stderr, "shoal: trace of {} ranks in {}: {} events, {} older ones dropped\n{}", world().size,
               path_, shown, dropped, trace_table(totals));
  }
  Forwarding::close(everybody);
}

// The job is ending early: nobody can be asked for anything any more.
void Traced::write_part() noexcept {
  if (written_) return;
  written_ = true;
  try {
    end_wait();
    const std::string path = fmt::format("{}.rank{}", path_, world().rank);
    TraceFile part(path);
    part.add(world().rank, world().host[static_cast<std::size_t>(world().rank)], log_.events(), shift_ns_);
    part.close();
    fmt::print(stderr, "shoal: the job ended early: the trace of rank {} is in {}\n", world().rank, path);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shoal: the trace of rank %d is lost: %s\n", world().rank, error.what());
  }
}

void Traced::abort(int exit_code) noexcept {
  write_part();
  inner().abort(exit_code);
}

}  // namespace shoal::comm
