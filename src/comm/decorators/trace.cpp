// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::comm {
namespace {

using Kind = TraceEvent::Kind;

double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }
double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string event_name(const TraceEvent& event) {
  if (event.call == Call::wait) return "wait for a signal";
  if (event.kind == Kind::start) return fmt::format("start {}", to_string(event.call));
  if (event.kind == Kind::wait) return fmt::format("wait for {}", to_string(event.call));
  return std::string(to_string(event.call));
}

bool is_pattern(Call call) { return index_of(call) < index_of(Call::allocate); }

std::string arguments(const TraceEvent& event) {
  if (event.call == Call::wait) return "{}";
  std::string text = fmt::format("{{\"bytes\":{}", event.bytes);
  const bool rooted = is_pattern(event.call) && has_root(static_cast<Pattern>(event.call));
  if (event.peer >= 0) text += fmt::format(",\"{}\":{}", rooted ? "root" : "peer", event.peer);
  if (is_pattern(event.call)) text += fmt::format(",\"dtype\":\"{}\"", to_string(event.dtype));
  return text + fmt::format(",\"communicator\":{}}}", event.context);
}

// Host names come from the system: nothing in them may end a JSON string.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' '; }, '_');
  return text;
}

}  // namespace

void TraceLog::record(const TraceEvent& event) {
  CallTotals& totals = totals_[index_of(event.call)];
  if (event.kind != Kind::span) totals.inside_ns += event.duration_ns;
  if (event.kind == Kind::wait || event.call == Call::wait) totals.waiting_ns += event.duration_ns;
  if (event.kind == Kind::call || event.kind == Kind::start) {
    ++totals.calls;
    totals.bytes += event.bytes;
  }
  if (events_.size() < capacity)
    events_.push_back(event);
  else
    events_[recorded_ % capacity] = event;
  ++recorded_;
}

std::vector<TraceEvent> TraceLog::events() const {
  const auto oldest = static_cast<std::ptrdiff_t>(dropped() > 0 ? recorded_ % capacity : 0);
  std::vector<TraceEvent> ordered(events_.begin() + oldest, events_.end());
  ordered.insert(ordered.end(), events_.begin(), events_.begin() + oldest);
  return ordered;
}

TraceFile::TraceFile(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "w")) {
  if (!file_) fail(ErrorCode::io, fmt::format("trace {}: {}", path_, std::strerror(errno)));
}

void TraceFile::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size())
    fail(ErrorCode::io, fmt::format("trace {}: {}", path_, std::strerror(errno)));
}

void TraceFile::add(Rank rank, const std::string& host, std::span<const TraceEvent> events,
                    std::int64_t shift_ns) {
  std::string text = first_ ? "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" : ",\n";
  first_ = false;
  auto out = std::back_inserter(text);
  fmt::format_to(out, R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":"rank {} on {}"}}}})",
                 rank, rank, plain(host));
  fmt::format_to(out,
                 ",\n"
                 R"({{"name":"process_sort_index","ph":"M","pid":{},"args":{{"sort_index":{}}}}})",
                 rank, rank);
  std::uint64_t number = 0;
  for (const TraceEvent& event : events) {
    const double begin = us(event.begin_ns + shift_ns), length = us(event.duration_ns);
    const std::string name = event_name(event);
    if (event.kind == Kind::span) {
      // Started operations overlap, so they cannot share the calls' line: an asynchronous pair for each.
      const std::string common = fmt::format(R"("name":"{}","cat":"started","id":"{}-{}","pid":{},"tid":0)",
                                             name, rank, ++number, rank);
      fmt::format_to(out,
                     ",\n"
                     R"({{"ph":"b",{},"ts":{:.3f},"args":{}}})",
                     common, begin, arguments(event));
      fmt::format_to(out,
                     ",\n"
                     R"({{"ph":"e",{},"ts":{:.3f}}})",
                     common, begin + length);
    } else {
      fmt::format_to(out,
                     ",\n"
                     R"({{"name":"{}","ph":"X","pid":{},"tid":0,"ts":{:.3f},"dur":{:.3f},"args":{}}})",
                     name, rank, begin, length, arguments(event));
    }
    if (text.size() > 65536) {
      write(text);
      text.clear();
    }
  }
  write(text);
}

void TraceFile::close() {
  write("\n]}\n");
  if (std::fclose(file_.release()) != 0)
    fail(ErrorCode::io, fmt::format("trace {}: {}", path_, std::strerror(errno)));
}

std::string trace_table(std::span<const Totals> of_ranks) {
  std::string text = fmt::format("{:<16}{:>10}{:>16}{:>14}{:>12}{:>7}{:>14}{:>12}{:>7}\n", "call", "calls",
                                 "bytes sent", "inside ms", "most", "rank", "waiting ms", "most", "rank");
  for (std::size_t call = 0; call < call_count; ++call) {
    CallTotals sum;
    std::size_t slowest = 0, most_waiting = 0;
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      const CallTotals& its = of_ranks[rank][call];
      sum.calls += its.calls;
      sum.bytes += its.bytes;
      sum.inside_ns += its.inside_ns;
      sum.waiting_ns += its.waiting_ns;
      if (its.inside_ns > of_ranks[slowest][call].inside_ns) slowest = rank;
      if (its.waiting_ns > of_ranks[most_waiting][call].waiting_ns) most_waiting = rank;
    }
    if (sum.calls == 0) continue;
    text += fmt::format("{:<16}{:>10}{:>16}{:>14.3f}{:>12.3f}{:>7}{:>14.3f}{:>12.3f}{:>7}\n",
                        to_string(static_cast<Call>(call)), sum.calls, sum.bytes, ms(sum.inside_ns),
                        ms(of_ranks[slowest][call].inside_ns), slowest, ms(sum.waiting_ns),
                        ms(of_ranks[most_waiting][call].waiting_ns), most_waiting);
  }
  return text;
}

}  // namespace shoal::comm
