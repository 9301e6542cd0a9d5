// SPDX-License-Identifier: Apache-2.0
// The one exception type of Shoal. An error is one line that a user can act on: what (file, field,
// PE), why, and what to do. Programs print it after "shoal: " and end with a non-zero code.
#pragma once

#include <stdexcept>
#include <string>

namespace shoal {

enum class ErrorCode {
  invalid_argument,  // the caller's or the user's request makes no sense
  io,                // the operating system refused a file, a socket or memory
  format,            // a file's content is not what its format demands
  unsupported,       // well-formed, but not something this build does
  out_of_memory,     // does not fit: memory, symmetric heap, context
  communication,     // the communication library reported a fault
  timeout,           // a peer was silent past its deadline
  aborted,           // another rank of the job failed
  numeric,           // a value that must be finite is not
};

/// Short lower-case name, as printed in JSON ("invalid_argument", ...).
const char* to_string(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// Throws Error(code, message).
[[noreturn]] void fail(ErrorCode code, const std::string& message);

}  // namespace shoal
