// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/operation.h"

namespace shoal::comm {

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::product: return "product";
    case Reduction::min: return "min";
    case Reduction::max: return "max";
    case Reduction::logical_and: return "logical_and";
    case Reduction::logical_or: return "logical_or";
  }
  return "unknown";
}

const char* to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::barrier: return "barrier";
    case Pattern::broadcast: return "broadcast";
    case Pattern::all_reduce: return "all_reduce";
    case Pattern::all_gather: return "all_gather";
    case Pattern::send: return "send";
    case Pattern::recv: return "recv";
  }
  return "unknown";
}

}  // namespace shoal::comm
