// SPDX-License-Identifier: Apache-2.0
#include "apps/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

namespace shoal::test {
namespace {

constexpr const char* mark_variable = "SHOAL_TEST_JOB";

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// /proc/PID/environ of a process that has ended but was not waited for is empty.
std::string environment_of(pid_t pid) { return '\0' + read_file(fmt::format("/proc/{}/environ", pid)); }

bool has_variable(const std::string& environment, const std::string& assignment) {
  return environment.find('\0' + assignment + '\0') != std::string::npos;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos) pids.push_back(std::stoi(name));
  }
  return pids;
}

bool in_use(const std::string& path) {
  for (const pid_t pid : all_processes()) {
    if (read_file(fmt::format("/proc/{}/maps", pid)).find(path) != std::string::npos) return true;
    std::error_code ignored;
    for (const auto& fd : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), ignored))
      if (std::filesystem::read_symlink(fd.path(), ignored) == path) return true;
  }
  return false;
}

void set_environment(const Command& command, const std::string& mark) {
  // What a person's shell or an outer launcher has set is not part of the test.
  for (const char* name : {"SHOAL_TRANSPORT", "SHOAL_TIMEOUT", "SHOAL_KERNELS", "SHOAL_MODULE_PATH",
                           "SHOAL_STDERR_TERMINAL", "SHOAL_STDOUT_TERMINAL", "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID"})
    unsetenv(name);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv(mark_variable, mark.c_str(), 1);
  for (const auto& [name, value] : command.environment)
    if (value.empty())
      unsetenv(name.c_str());
    else
      setenv(name.c_str(), value.c_str(), 1);
}

[[noreturn]] void become(const Command& command, const std::string& mark) {
  set_environment(command, mark);
  signal(SIGPIPE, SIG_DFL);  // as a shell leaves it
  std::vector<char*> argv;
  for (const std::string& word : command.line) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "%s: %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

std::string cut(const std::string& text) {
  return text.size() <= 3000 ? text : text.substr(0, 1500) + "\n[...]\n" + text.substr(text.size() - 1500);
}

}  // namespace

std::string Outcome::describe() const {
  return fmt::format(
      "exit code {}, signal {}{}, {:.1f} s\n--- standard output\n{}\n--- standard error\n{}\n---", exit_code,
      signal, timed_out ? ", TIMED OUT" : "", seconds, cut(out), cut(err));
}

Process::Process(Command command) : command_(std::move(command)), start_(now_s()) {
  static std::atomic<int> count = 0;  // some tests start programs side by side
  mark_ = fmt::format("{}-{}", getpid(), ++count);
  if (command_.terminal) {
    winsize size{};
    size.ws_row = 40;
    size.ws_col = 200;
    pid_ = forkpty(&out_, nullptr, nullptr, &size);
    if (pid_ == 0) become(command_, mark_);
  } else {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
      throw std::runtime_error("pipe failed");
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      become(command_, mark_);
    }
    for (const int end : {in[0], out[1], err[1]}) close(end);
    in_ = in[1];
    out_ = out[0];
    err_ = err[0];
    fcntl(in_, F_SETFL, O_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
  }
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

Process::~Process() {
  kill_family();
  if (!reaped_) waitpid(pid_, nullptr, 0);
  for (const int end : {in_, out_, err_})
    if (end >= 0) close(end);
}

double Process::seconds() const { return now_s() - start_; }

void Process::type(const std::string& text) {
  if (write(out_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the terminal takes no input");
}

bool Process::pump(int timeout_ms) {
  if (in_ >= 0) {
    const ssize_t n = write(in_, command_.input.data() + written_, command_.input.size() - written_);
    if (n > 0) written_ += static_cast<std::size_t>(n);
    if (written_ == command_.input.size() || (n < 0 && errno != EAGAIN)) {
      close(in_);
      in_ = -1;
    }
  }
  pollfd ends[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // a negative descriptor is ignored
  poll(ends, 2, timeout_ms);
  for (int i = 0; i < 2; ++i) {
    if (ends[i].revents == 0) continue;
    int& end = i == 0 ? out_ : err_;
    char block[65536];
    const ssize_t n = read(end, block, sizeof block);
    if (n > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(block, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {  // a terminal ends with EIO
      close(end);
      end = -1;
    }
  }
  if (!reaped_) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      reaped_ = true;
      outcome_.seconds = seconds();
      if (WIFEXITED(status))
        outcome_.exit_code = WEXITSTATUS(status);
      else
        outcome_.signal = WTERMSIG(status);
    } else if (out_ < 0 && err_ < 0) {
      pause_ms(2);
    }
  }
  return !reaped_ || out_ >= 0 || err_ >= 0;
}

bool Process::read_until(const std::function<bool(const Outcome&)>& condition) {
  while (!condition(outcome_)) {
    if (!pump(10)) return condition(outcome_);
    if (seconds() > command_.limit_s) return false;
  }
  return true;
}

Outcome Process::wait() {
  while (pump(10)) {
    if (reaped_ && seconds() > outcome_.seconds + 5) break;  // left processes hold the pipes
    if (reaped_ || outcome_.timed_out || seconds() <= command_.limit_s) continue;
    outcome_.timed_out = true;
    kill_family();
  }
  return outcome_;
}

std::vector<pid_t> Process::family() const {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes())
    if (has_variable(environment_of(pid), std::string(mark_variable) + "=" + mark_)) found.push_back(pid);
  return found;
}

pid_t Process::pe(int rank) const {
  for (const pid_t pid : family()) {
    const std::string environment = environment_of(pid);
    std::error_code ignored;
    if (std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored) != shoal_program()) continue;
    if (has_variable(environment, fmt::format("OMPI_COMM_WORLD_RANK={}", rank)) ||
        has_variable(environment, fmt::format("PMI_RANK={}", rank)))
      return pid;
  }
  return 0;
}

bool Process::all_gone(double limit_s) const {
  for (const double end = now_s() + limit_s; now_s() < end; pause_ms(20))
    if (family().empty()) return true;
  return family().empty();
}

void Process::kill_family() const {
  // Twice: a launcher may have started another process in the meantime.
  for (int i = 0; i < 2; ++i)
    for (const pid_t pid : family()) kill(pid, SIGKILL);
  if (!reaped_) kill(pid_, SIGKILL);
}

Outcome run(Command command) { return Process(std::move(command)).wait(); }

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored))
    names.insert(entry.path().filename().string());
  return names;
}

std::set<std::string> abandoned_shared_memory(const std::set<std::string>& before, double limit_s) {
  for (const double end = now_s() + limit_s;; pause_ms(50)) {
    std::set<std::string> abandoned;
    for (const std::string& name : shared_memory_files())
      if (!before.contains(name) && !in_use("/dev/shm/" + name)) abandoned.insert(name);
    if (abandoned.empty() || now_s() > end) return abandoned;
  }
}

std::string shoal_program() { return SHOAL_PROGRAM; }

std::string large_model() {
  const char* path = std::getenv("SHOAL_TEST_MODEL");
  return path && std::filesystem::exists(path) ? path : "";
}

std::string data_model(const std::string& name) { return std::string(SHOAL_TEST_DATA) + "/models/" + name; }

std::string missing_transport(const std::string& transport, const std::string& library) {
  const Outcome doctor = run({.line = {shoal_program(), "doctor", "--json"}});
  if (doctor.exit_code != 0) throw std::runtime_error("shoal doctor: " + doctor.describe());
  std::string reason = "shoal doctor does not know transport " + transport;
  const auto report = nlohmann::json::parse(doctor.out);
  for (const auto& entry : report.at("transports")) {
    if (entry.at("name") != transport || (!library.empty() && entry.at("library") != library)) continue;
    if (entry.at("available").get<bool>()) return "";
    reason = fmt::format("transport {} is missing: {}", transport, entry.at("detail").get<std::string>());
  }
  return reason;
}

std::string missing_way(const std::string& how) {
  if (how == "mpirun.openmpi") return missing_transport("mpi", "Open MPI");
  if (how == "mpirun.mpich") return missing_transport("mpi", "MPICH");
  if (how == "oshrun") return missing_transport("shmem", "OpenSHMEM of Open MPI");
  return missing_transport(how);
}

std::vector<std::string> job_line(const std::string& how, int pes,
                                  const std::vector<std::string>& arguments) {
  std::vector<std::string> line;
  if (how == "mpirun.openmpi" || how == "oshrun")
    line = {how, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"};
  else if (how == "mpirun.mpich")
    line = {how};
  if (!line.empty()) line.insert(line.end(), {"-n", std::to_string(pes)});
  const bool direct = !line.empty();
  line.push_back(shoal_program());
  line.insert(line.end(), arguments.begin(), arguments.end());
  if (!direct) line.insert(line.end(), {"-n", std::to_string(pes), "--transport", how});
  if (how == "mpirun.openmpi") line.insert(line.end(), {"--transport", "mpi"});
  return line;
}

}  // namespace shoal::test
