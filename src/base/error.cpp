// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/error.h"

namespace shoal {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::io: return "io";
    case ErrorCode::format: return "format";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::communication: return "communication";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::aborted: return "aborted";
    case ErrorCode::numeric: return "numeric";
  }
  return "unknown";
}

void fail(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace shoal
