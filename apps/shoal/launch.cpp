// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "launcher_output.h"
#include "shoal/base/error.h"
#include "shoal/comm/job.h"

namespace shoal::app {
namespace {

// Set for the processes of a supervised job: "1" when the supervisor's standard error is a terminal,
// and so on.
constexpr const char* stderr_variable = "SHOAL_STDERR_TERMINAL";
constexpr const char* stdout_variable = "SHOAL_STDOUT_TERMINAL";

bool terminal(const char* variable, int descriptor) {
  const char* value = std::getenv(variable);
  return value ? std::strcmp(value, "1") == 0 : isatty(descriptor) == 1;
}

struct Launcher {
  std::string program;
  bool open_mpi = false;
};

Launcher find_launcher(const std::string& transport) {
  std::string missing;
  for (const comm::TransportStatus& status : comm::probe_transports()) {
    if (status.name != transport) continue;
    if (status.available) return {status.launcher, status.library.find("Open MPI") != std::string::npos};
    missing += fmt::format("; {}: {}", status.library, status.detail);
  }
  fail(ErrorCode::unsupported, fmt::format("transport {} is not available{}", transport, missing));
}

// The same command for each PE: without what concerned the start, with the transport made explicit.
std::vector<std::string> pe_arguments(const std::vector<std::string>& arguments,
                                      const std::string& transport) {
  static constexpr std::array with_value = {"-n", "--pes", "--transport", "--hostfile"};
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    bool drop = false;
    for (const char* option : with_value) {
      const std::string name = option;
      if (arguments[i] == name) {
        drop = true;
        ++i;
        break;
      }
      const bool is_long = name.starts_with("--");
      if (arguments[i].starts_with(name + "=") || (!is_long && arguments[i].starts_with(name))) {
        drop = true;
        break;
      }
    }
    if (!drop) kept.push_back(arguments[i]);
  }
  kept.insert(kept.end(), {"--transport", transport});
  return kept;
}

std::vector<std::string> command_line(const Launch& launch, const Launcher& launcher) {
  std::vector<std::string> line = {launcher.program};
  if (launcher.open_mpi) {
    // Waiting ranks yield, so more PEs than cores work well; binding would put several on one core.
    line.insert(line.end(), {"--oversubscribe", "--bind-to", "none"});
    if (launch.yields) line.insert(line.end(), {"--mca", "mpi_yield_when_idle", "1"});
    if (launch.transport == "shmem") line.insert(line.end(), {"--mca", "osc", "^rdma"});
    if (!launch.hostfile.empty())
      line.insert(line.end(), {"--hostfile", launch.hostfile, "--map-by", "node"});
    for (const char* variable : {stderr_variable, stdout_variable}) line.insert(line.end(), {"-x", variable});
    for (const char* variable : {"SHOAL_TIMEOUT", "SHOAL_KERNELS", "SHOAL_MODULE_PATH", "SHOAL_CHECK",
                                 "SHOAL_TRACE", "SHOAL_FAULT", "SHOAL_TUNING"})
      if (std::getenv(variable)) line.insert(line.end(), {"-x", variable});
  } else if (!launch.hostfile.empty()) {
    line.insert(line.end(), {"-f", launch.hostfile});
  }
  line.insert(line.end(),
              {"-n", std::to_string(launch.pes), std::filesystem::read_symlink("/proc/self/exe").string()});
  const std::vector<std::string> rest = pe_arguments(launch.command, launch.transport);
  line.insert(line.end(), rest.begin(), rest.end());
  return line;
}

[[noreturn]] void become(const std::vector<std::string>& line, int input, int errors, pid_t supervisor) {
  // A session of its own: the terminal's Ctrl-C reaches the supervisor alone.
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != supervisor) _exit(1);
  dup2(input, STDIN_FILENO);
  setenv(stderr_variable, isatty(STDERR_FILENO) ? "1" : "0", 1);
  setenv(stdout_variable, isatty(STDOUT_FILENO) ? "1" : "0", 1);
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  }
  dup2(errors, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : line) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "shoal: %s: %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

// What the signal handler of the supervisor may touch has to be global.
volatile std::sig_atomic_t signals_seen = 0;
volatile std::sig_atomic_t end_signal = 0;  // the one that ends the program; 0: none yet

void on_signal(int signal) {
  if (signal == SIGINT)
    signals_seen = signals_seen + 1;
  else
    end_signal = signal;
}

class Supervisor {
 public:
  Supervisor(pid_t job, int job_input, int job_errors)
      : job_(job), job_input_(job_input), job_errors_(job_errors) {}

  int wait() {
    for (;;) {
      if (const auto code = exit_code()) return *code;
      handle_signals();
      pollfd ends[2] = {{job_input_ >= 0 ? STDIN_FILENO : -1, POLLIN, 0}, {job_errors_, POLLIN, 0}};
      if (poll(ends, 2, 20) <= 0) continue;
      if (ends[1].revents != 0) pass_errors();
      if (ends[0].revents != 0) pass_input();
    }
  }

 private:
  // Returns false at the end.
  bool pass_errors() {
    char block[4096];
    const ssize_t n = read(job_errors_, block, sizeof block);
    if (n < 0 && errno == EINTR) return true;
    if (n > 0) {
      print_errors(output_.pass({block, static_cast<std::size_t>(n)}));
      return true;
    }
    close(job_errors_);
    job_errors_ = -1;
    return false;
  }
  void pass_last_errors() {
    pollfd end{job_errors_, POLLIN, 0};
    while (job_errors_ >= 0 && poll(&end, 1, 100) > 0 && pass_errors()) {
    }
    print_errors(output_.rest());
  }
  static void print_errors(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
      if (n < 0 && errno != EINTR) return;
      if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // What is typed goes to the job.
  void pass_input() {
    char block[4096];
    const ssize_t n = read(STDIN_FILENO, block, sizeof block);
    if (n < 0 && errno == EINTR) return;
    bool open = n > 0;
    for (ssize_t done = 0; open && done < n;) {
      const ssize_t written = write(job_input_, block + done, static_cast<std::size_t>(n - done));
      if (written > 0) done += written;
      open = written > 0 || errno == EINTR;
      if (written < 0 && errno == EINTR) handle_signals();
    }
    if (open) return;
    close(job_input_);
    job_input_ = -1;
  }

  bool has_children() const {
    std::ifstream file(fmt::format("/proc/{}/task/{}/children", job_, job_));
    int first = 0;
    return static_cast<bool>(file >> first);
  }

  std::optional<int> exit_code() {
    int status = 0;
    if (waitpid(job_, &status, WNOHANG) != job_) return std::nullopt;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pass_last_errors();
    if (ending_) return 128 + end_signal;
    // Ctrl-C before the PEs were ready for it.
    if (code == 128 + SIGUSR1 && last_interrupt_ != std::chrono::steady_clock::time_point{})
      return 128 + SIGINT;
    const std::string who =
        output_.ended_pe() ? fmt::format("PE {} ({})", output_.ended_pe()->rank, output_.ended_pe()->host)
                           : "a PE";
    if (code > 128 && code < 128 + NSIG)
      fmt::print(stderr, "shoal: {} was ended by signal {} ({}), and the job with it{}\n", who, code - 128,
                 strsignal(code - 128), code == 128 + SIGKILL ? "; was its host out of memory?" : "");
    else if (code > 1)
      fmt::print(stderr, "shoal: the launcher ended with code {}\n", code);
    return code;
  }

  void handle_signals() {
    const auto now = std::chrono::steady_clock::now();
    if (signals_seen > 0 && !ending_) {
      const bool second = signals_seen > 1 || now - last_interrupt_ < std::chrono::seconds(2);
      signals_seen = 0;
      last_interrupt_ = now;
      // The launcher passes it on to the PEs; before it has any there is no answer to end.
      if (!second && has_children())
        kill(job_, SIGUSR1);
      else
        end_signal = SIGINT;
    }
    if (end_signal != 0 && !ending_) {
      ending_ = true;
      kill(job_, SIGTERM);
      ended_at_ = now;
    }
    // A launcher that does not end its job in time.
    if (ending_ && now - ended_at_ > std::chrono::seconds(4)) kill(-job_, SIGKILL);
  }

  pid_t job_;
  int job_input_;  // -1: closed, or never wanted
  int job_errors_;
  LauncherOutput output_;
  bool ending_ = false;
  std::chrono::steady_clock::time_point last_interrupt_{}, ended_at_{};
};

}  // namespace

bool stderr_is_terminal() { return terminal(stderr_variable, STDERR_FILENO); }
bool stdout_is_terminal() { return terminal(stdout_variable, STDOUT_FILENO); }

JobPlace place_job(const JobRequest& request) {
  JobPlace p;
  p.environment = comm::read_launch_environment();
  const bool launched = !p.environment.launcher.empty();
  p.transport = comm::resolve_transport(request.transport, p.environment);
  p.start = !launched && p.transport != "threads" && request.has_pes;
  if (launched && request.has_pes && request.pes != p.environment.size)
    fail(ErrorCode::invalid_argument,
         fmt::format("-n {}: the launcher ({}) has started {} processes; leave out -n", request.pes,
                     p.environment.launcher, p.environment.size));
  p.pes = launched ? p.environment.size : request.pes;
  if (!launched && p.transport != "threads" && !request.has_pes) p.pes = 1;
  if (!request.hostfile.empty() && !p.start)
    fail(ErrorCode::invalid_argument,
         "--hostfile needs -n N and --transport mpi or shmem, outside a launcher");
  return p;
}

int launch_job(const Launch& launch) {
  const std::vector<std::string> line = command_line(launch, find_launcher(launch.transport));
  if (!launch.hostfile.empty() && access(launch.hostfile.c_str(), R_OK) != 0)
    fail(ErrorCode::io, fmt::format("--hostfile {}: {}", launch.hostfile, std::strerror(errno)));
  // Standard input stays with whoever called us, unless it is for the job.
  int input[2], errors[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
    fail(ErrorCode::io, fmt::format("pipe: {}", std::strerror(errno)));
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const pid_t supervisor = getpid();
  const pid_t job = fork();
  if (job < 0) fail(ErrorCode::io, fmt::format("fork: {}", std::strerror(errno)));
  if (job == 0) {
    close(input[1]);
    close(errors[0]);
    signal(SIGPIPE, SIG_DFL);
    become(line, input[0], errors[1], supervisor);
  }
  close(input[0]);
  close(errors[1]);
  if (!launch.wants_input) close(input[1]);
  return Supervisor(job, launch.wants_input ? input[1] : -1, errors[0]).wait();
}

}  // namespace shoal::app
