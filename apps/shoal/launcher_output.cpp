// SPDX-License-Identifier: Apache-2.0
#include "launcher_output.h"

#include <algorithm>
#include <array>
#include <regex>
#include <utility>

namespace shoal::app {
namespace {

bool only_dashes(std::string_view line) { return line.find_first_not_of("-\r\n") == std::string_view::npos; }
// Open MPI frames its notices with 74 dashes.
bool is_rule(std::string_view line) { return only_dashes(line) && std::ranges::count(line, '-') == 74; }

constexpr std::array ends_of_pes = {"noticed that process rank", "Primary job  terminated",
                                    "processes exited with non-zero status", "was invoked on rank"};

// Open MPI's daemons sometimes log that a notice came in pieces while the job was ending:
// "[node1:4711] [[19941,0],0] ORTE_ERROR_LOG: ...".
bool may_be_log(std::string_view line) { return line.starts_with('['); }
bool is_log(std::string_view line) {
  return may_be_log(line) && line.find("] ORTE_ERROR_LOG: ") != std::string_view::npos;
}

}  // namespace

std::string LauncherOutput::pass(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (mid_line_) {
      out += c;
      mid_line_ = c != '\n';
      continue;
    }
    line_ += c;
    if (c == '\n') {
      out += take_line();
    } else if (!in_frame_ && !only_dashes(line_) && !may_be_log(line_)) {
      out += std::exchange(line_, "");
      mid_line_ = true;
    }
  }
  return out;
}

std::string LauncherOutput::take_line() {
  const std::string line = std::exchange(line_, "");
  if (is_log(line)) return "";
  if (!in_frame_ && !is_rule(line)) return line;
  frame_ += line;
  if (std::exchange(in_frame_, true) && is_rule(line)) {
    in_frame_ = false;
    const std::string frame = std::exchange(frame_, "");
    return is_notice(frame) ? "" : frame;
  }
  return "";
}

bool LauncherOutput::is_notice(const std::string& frame) {
  static const std::regex ended(R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal)");
  std::smatch match;
  if (!ended_pe_ && std::regex_search(frame, match, ended))
    ended_pe_ = EndedPe{std::stoi(match[1].str()), match[2].str()};
  return std::ranges::any_of(ends_of_pes,
                             [&](const char* words) { return frame.find(words) != std::string::npos; });
}

std::string LauncherOutput::rest() { return std::exchange(frame_, "") + std::exchange(line_, ""); }

}  // namespace shoal::app
