// SPDX-License-Identifier: Apache-2.0
// A communication that has been started and not yet waited for.
#pragma once

#include <memory>
#include <span>

namespace shoal::comm {

class Pending;
class Transport;

/// Move-only. Its buffers are in use until wait() has returned or test() has returned true. Dropping one
/// that is not done is a mistake that ends the program with a message (as std::thread does), unless an
/// exception is on its way.
class [[nodiscard]] Request {
 public:
  Request();  // done
  Request(std::unique_ptr<Pending> pending, std::shared_ptr<const void> keep);
  ~Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&& other) noexcept;

  /// Moves all communication of this rank on, without waiting; true when this one is done.
  bool test();
  /// Until it is done; throws as the blocking form does.
  void wait();

 private:
  void drop() noexcept;
  std::shared_ptr<const void> keep_;  // the job's end must outlive what is under way
  std::unique_ptr<Pending> pending_;
};

/// Until all are done, in whatever order they end.
void wait_all(std::span<Request> requests);

}  // namespace shoal::comm
