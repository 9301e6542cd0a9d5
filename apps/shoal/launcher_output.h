// SPDX-License-Identifier: Apache-2.0
// What a job and its launcher print on standard error, on its way to the user. Open MPI tells in framed
// notices how a PE ended; they are taken out, and what they say is kept, so that the user gets one line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shoal::app {

class LauncherOutput {
 public:
  struct EndedPe {
    int rank = 0;
    std::string host;
  };

  /// Takes what has been read and returns what is to be passed on now. A line is held back only while it
  /// may belong to a notice.
  std::string pass(std::string_view text);
  /// What is still held back when the output ends.
  std::string rest();
  /// The PE that was the first to be ended by a signal, if the launcher has told.
  const std::optional<EndedPe>& ended_pe() const { return ended_pe_; }

 private:
  std::string take_line();
  bool is_notice(const std::string& frame);

  std::string line_;   // begun, and not passed on yet
  std::string frame_;  // lines since a rule
  bool in_frame_ = false;
  bool mid_line_ = false;  // the beginning of this line has been passed on
  std::optional<EndedPe> ended_pe_;
};

}  // namespace shoal::app
