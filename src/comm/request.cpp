// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/request.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "shoal/comm/transport.h"

namespace shoal::comm {

Request::Request() = default;
Request::Request(std::unique_ptr<Pending> pending, std::shared_ptr<const void> keep)
    : keep_(std::move(keep)), pending_(std::move(pending)) {}
Request::~Request() { drop(); }
Request::Request(Request&&) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  if (this == &other) return *this;
  drop();
  pending_ = std::move(other.pending_);
  keep_ = std::move(other.keep_);
  return *this;
}

void Request::drop() noexcept {
  if (!pending_ || std::uncaught_exceptions() > 0) return;
  pending_.reset();  // with checks (SHOAL_CHECK=normal) it names itself
  std::fputs("shoal: a Request was dropped before its wait(): its buffers may still be in use\n", stderr);
  std::abort();
}

bool Request::test() {
  if (!pending_) return true;
  std::unique_ptr<Pending> pending = std::move(pending_);  // gone where test() throws, as in wait()
  if (pending->test()) return true;
  pending_ = std::move(pending);
  return false;
}

void Request::wait() {
  if (!pending_) return;
  // Whatever happens, there is nothing to wait for afterwards.
  const std::unique_ptr<Pending> pending = std::move(pending_);
  pending->wait();
}

// Waiting for one moves all on, so the order of the waits does not matter.
void wait_all(std::span<Request> requests) {
  for (Request& request : requests) request.wait();
}

}  // namespace shoal::comm
