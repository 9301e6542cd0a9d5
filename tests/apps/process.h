// SPDX-License-Identifier: Apache-2.0
// Runs a program as a user does, with a limit on its time, and looks at what it leaves behind.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shoal::test {

struct Command {
  std::vector<std::string> line;                                      // program, arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  // added; "" removes
  std::string input = {};                                             // standard input, then its end
  double limit_s = 60;
  bool terminal = false;  // standard input, output and error are one pseudo-terminal (in `out`)
};

struct Outcome {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;      // 0 when it ended itself
  bool timed_out = false;
  std::string out, err;
  double seconds = 0;

  /// All of it in a few lines, for the message of a failed expectation.
  std::string describe() const;
};

/// A program at work. Every process that descends from it carries a mark in its environment, by which
/// those that its launcher puts into other sessions are found too.
class Process {
 public:
  explicit Process(Command command);
  /// Ends whatever is left of it.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  double seconds() const;

  /// Types on the terminal of a command that has one.
  void type(const std::string& text);

  /// Reads output until `condition` holds; false if the program ended or its time was over before.
  bool read_until(const std::function<bool(const Outcome&)>& condition);

  /// Waits for the end. After its limit the program and all its processes are killed.
  Outcome wait();

  /// Living processes of the job: this one, launchers, PEs.
  std::vector<pid_t> family() const;
  /// The PE with this rank in an MPI or OpenSHMEM job; 0 when there is none (yet).
  pid_t pe(int rank) const;
  /// True as soon as no process of the job is left; false when some are after `limit_s`.
  bool all_gone(double limit_s) const;

 private:
  bool pump(int timeout_ms);  // false when the program has ended and all its output is read
  void kill_family() const;

  Command command_;
  std::string mark_;
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1, err_ = -1;
  bool reaped_ = false;
  std::size_t written_ = 0;
  double start_ = 0;
  Outcome outcome_;
};

Outcome run(Command command);

/// Names in /dev/shm.
std::set<std::string> shared_memory_files();

/// Names in /dev/shm that are not in `before` and that no living process has open or mapped: those of
/// jobs that run beside the test are in use. Waits up to `limit_s` for there to be none.
std::set<std::string> abandoned_shared_memory(const std::set<std::string>& before, double limit_s);

/// The path of the program under test.
std::string shoal_program();

/// The model that SHOAL_TEST_MODEL names, or "" when there is none.
std::string large_model();

/// SHOAL_TEST_DATA/models/NAME.
std::string data_model(const std::string& name);

/// "" when `shoal doctor` finds the transport (and library, where given), else why not.
std::string missing_transport(const std::string& transport, const std::string& library = "");

/// The command that starts `arguments` of shoal on `pes` PEs. `how` is "threads", "mpi" or "shmem", by
/// shoal itself, or a launcher called directly: "mpirun.openmpi", "mpirun.mpich", "oshrun".
std::vector<std::string> job_line(const std::string& how, int pes, const std::vector<std::string>& arguments);

/// "" when `how` (as above) can be used on this machine, else why not.
std::string missing_way(const std::string& how);

}  // namespace shoal::test
