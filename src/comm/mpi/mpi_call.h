// SPDX-License-Identifier: Apache-2.0
// Every return code of MPI is looked at: a fault becomes an Error with the call, the rank and MPI's text.
#pragma once

#include <mpi.h>

#include <string>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::comm::mpi {

inline void call(int code, const char* what, int rank) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(ErrorCode::communication, fmt::format("{} failed on rank {}: {}", what, rank, text));
}

}  // namespace shoal::comm::mpi
