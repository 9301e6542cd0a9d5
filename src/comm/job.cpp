// SPDX-License-Identifier: Apache-2.0
#include "shoal/comm/job.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "comm/decorators/decorators.h"
#include "comm/module.h"
#include "comm/threads/threads_transport.h"
#include "comm/wait_board.h"
#include "shoal/base/error.h"
#include "shoal/comm/transport.h"

namespace shoal::comm {
namespace {

std::string describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown exception";
  }
}

bool is_aborted(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& exception) {
    return exception.code() == ErrorCode::aborted;
  } catch (...) {
    return false;
  }
}

// The end of the whole job, with a line that says why.
[[noreturn]] void die(const Communicator& world, const std::string& what) {
  std::fprintf(stderr, "%s\n", error_line(world, what).c_str());
  std::fflush(nullptr);
  // The message travels through the launcher's daemons, as does the news of the abort: let it be first.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  world.transport().abort(1);
  std::_Exit(1);
}

// A rank inside its body, for what happens behind the body's back. An exit handler is given nothing, so
// it finds this by its thread.
class InBody {
 public:
  explicit InBody(const Communicator& world) : world_(world) {
    current = this;
    // After the library's own, so that it comes before them.
    static const bool registered = std::atexit([] {
                                     if (current && current->process_ == getpid()) current->end_by_exit();
                                   }) == 0;
    (void)registered;
  }
  ~InBody() { current = nullptr; }
  InBody(const InBody&) = delete;
  InBody& operator=(const InBody&) = delete;

 private:
  [[noreturn]] void end_by_exit() const { die(world_, "the program called exit() in the middle of the job"); }
  static thread_local const InBody* current;
  const Communicator& world_;
  const pid_t process_ = getpid();  // not of a child that was forked meanwhile
};
thread_local const InBody* InBody::current = nullptr;

struct ThreadsResult {
  int exit_code = 0;
  std::exception_ptr error;  // of the first rank that failed
  std::string line;          // what to print for it
};

// What becomes of a job when a rank has failed and another is stuck, so that it does not see that.
enum class StuckRanks { are_waited_for, end_with_the_process };

ThreadsResult run_on_threads(int ranks, StuckRanks stuck, const Decorations& decorations,
                             const std::function<int(Communicator&)>& body) {
  if (ranks < 1) fail(ErrorCode::invalid_argument, fmt::format("{} ranks: at least 1 is needed", ranks));
  const std::shared_ptr<threads::Job> job = threads::make_job(ranks);
  ThreadsResult result;
  std::mutex mutex;
  std::atomic<int> at_work = ranks;
  // A thread cannot be ended from outside.
  const auto end_without_the_stuck = [&] {
    if (stuck == StuckRanks::are_waited_for) return;
    if (wait_until([&] { return at_work == 0; }, [] {}, std::chrono::seconds(3))) return;
    const std::lock_guard lock(mutex);
    std::fprintf(stderr, "%s\n", result.line.c_str());
    std::fflush(nullptr);
    std::_Exit(1);
  };
  const auto rank_main = [&](Rank rank) {
    std::string line;
    try {
      Communicator world =
          Communicator::make_world(decorate(threads::make_transport(job, rank), decorations));
      try {
        int code = 1;
        {
          const InBody inside(world);
          code = body(world);
        }
        world.transport().finalize();
        const std::lock_guard lock(mutex);
        result.exit_code = std::max(result.exit_code, code);
        --at_work;
        return;
      } catch (const std::exception& error) {
        line = dynamic_cast<const AgreedError*>(&error) ? fmt::format("shoal: {}", error.what())
                                                        : error_line(world, error.what());
        throw;
      }
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      {
        const std::lock_guard lock(mutex);
        // The first real failure; ranks that were stopped because of it have nothing to tell.
        if (!result.error || (is_aborted(result.error) && !is_aborted(error))) {
          result.error = error;
          result.line = line.empty() ? "shoal: " + describe(error) : line;
        }
        threads::stop(*job);
      }
      --at_work;
      end_without_the_stuck();
    }
  };
  std::vector<std::thread> others;
  std::string trouble;
  try {
    for (Rank rank = 1; rank < ranks; ++rank) others.emplace_back(rank_main, rank);
  } catch (const std::system_error& error) {
    trouble = fmt::format("cannot start {} ranks as threads: {}", ranks, error.what());
    threads::stop(*job);
  }
  if (trouble.empty()) rank_main(0);
  for (std::thread& thread : others) thread.join();
  if (!trouble.empty()) fail(ErrorCode::io, trouble);
  return result;
}

// Loads the module that belongs to the launcher which started us.
const Module& find_module(const std::string& transport, const LaunchEnvironment& environment) {
  std::string reasons;
  for (const ModuleDescription& description : known_modules) {
    if (description.transport != transport || !is_offered(description)) continue;
    // Started plainly or by Slurm any library will do; within a launcher only its own finds the job.
    const bool belongs = environment.launcher.empty() || environment.launcher == "Slurm" ||
                         environment.launcher == description.environment;
    if (!belongs) continue;
    std::string reason;
    if (const Module* module = load_module(description, reason)) return *module;
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (reasons.empty())
    throw AgreedError(ErrorCode::unsupported,
                      fmt::format("transport {} cannot run under the launcher of {}: use `shoal run -n {} "
                                  "--transport {}`, which starts the right one",
                                  transport, environment.launcher, environment.size, transport));
  fail(ErrorCode::unsupported, fmt::format("transport {} is not available: {}", transport, reasons));
}

void check_world_size(const World& world, const LaunchEnvironment& environment, const Transport& transport) {
  if (world.size > 1 || environment.size <= 1) return;
  throw AgreedError(
      ErrorCode::communication,
      fmt::format(
          "the launcher ({}) started {} processes, but for {} this one is alone: the launcher belongs to "
          "another library; `shoal doctor` shows which one fits{}",
          environment.launcher, environment.size, transport.library(),
          environment.launcher == "Slurm" ? " (try srun --mpi=pmix)" : ""));
}

int run_on_processes(const std::string& name, const JobOptions& options, const LaunchEnvironment& environment,
                     const Decorations& decorations, const std::function<int(Communicator&)>& body) {
  const Module& module = find_module(name, environment);
  std::unique_ptr<Transport> joined = module.create(options);
  check_world_size(joined->world(), environment, *joined);
  Communicator world = Communicator::make_world(decorate(std::move(joined), decorations));
  try {
    int code = 1;
    try {
      const InBody inside(world);
      code = body(world);
    } catch (const AgreedError& error) {
      if (world.rank() == 0) std::fprintf(stderr, "shoal: %s\n", error.what());
    }
    if (WaitBoard* board = world.transport().wait_board()) board->leave();
    world.barrier();
    world.transport().finalize();
    return code;
  } catch (const std::exception& error) {
    die(world, error.what());
  } catch (...) {
    die(world, "unknown exception");
  }
}

}  // namespace

void agree(Communicator& communicator, const std::function<void()>& local) {
  std::string message;
  auto code = ErrorCode::invalid_argument;
  bool failed = true;
  try {
    local();
    failed = false;
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  } catch (const std::bad_alloc&) {
    code = ErrorCode::out_of_memory;
    message = "out of memory";
  } catch (...) {
    message = describe(std::current_exception());
  }
  const int size = communicator.size();
  const Rank first = communicator.all_reduce(failed ? communicator.rank() : size, Reduction::min);
  if (first == size) return;
  std::vector<std::int64_t> wire = {static_cast<std::int64_t>(code),
                                    static_cast<std::int64_t>(message.size())};
  communicator.broadcast(wire, first);
  message.resize(static_cast<std::size_t>(wire[1]));
  communicator.broadcast(message, first);
  const int failures = communicator.all_reduce(failed ? 1 : 0, Reduction::sum);
  // The same everywhere (a bad file on a shared disk) needs no rank; else say where.
  if (failures < size)
    message =
        fmt::format("PE {} ({}): {}", communicator.world_rank(first), communicator.host(first), message);
  code = static_cast<ErrorCode>(wire[0]);
  // Ranks outside a part of the job know nothing of this: there it is an error like any other.
  if (size < communicator.transport().world().size) fail(code, message);
  throw AgreedError(code, message);
}

std::string error_line(const Communicator& world, const std::string& what) {
  if (world.size() == 1) return "shoal: " + what;
  return fmt::format("shoal: PE {} ({}): {}", world.rank(), world.host(world.rank()), what);
}

int run(const JobOptions& options, const std::function<int(Communicator&)>& body) {
  (void)default_deadline();  // what is wrong with it is told before anything is started
  const LaunchEnvironment environment = read_launch_environment();
  const std::string name = resolve_transport(options.transport, environment);
  const Decorations decorations = read_decorations(options);
  if (name != "threads") {
    try {
      return run_on_processes(name, options, environment, decorations, body);
    } catch (const AgreedError&) {
      // Rank 0 will print it. A launcher ends the others when one rank fails: let rank 0 be first.
      if (environment.rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      throw;
    }
  }
  if (environment.size > 1)
    fail(ErrorCode::invalid_argument, fmt::format("transport threads runs in one process, but the launcher "
                                                  "({}) started {}: leave out the launcher, "
                                                  "or use --transport mpi or shmem",
                                                  environment.launcher, environment.size));
  const ThreadsResult result =
      run_on_threads(options.threads, StuckRanks::end_with_the_process, decorations, body);
  if (!result.error) return result.exit_code;
  std::fprintf(stderr, "%s\n", result.line.c_str());
  return std::max(result.exit_code, 1);
}

void run_threads(int ranks, const std::function<void(Communicator&)>& body) {
  const ThreadsResult result =
      run_on_threads(ranks, StuckRanks::are_waited_for, read_decorations({}), [&](Communicator& world) {
        body(world);
        return 0;
      });
  if (result.error) std::rethrow_exception(result.error);
}

std::chrono::milliseconds default_deadline() {
  static const std::chrono::milliseconds deadline = [] {
    const char* text = std::getenv("SHOAL_TIMEOUT");
    if (!text || !*text) return std::chrono::milliseconds(300'000);
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    if (*end != '\0' || !(seconds >= 0.001 && seconds <= 1e9))
      fail(ErrorCode::invalid_argument, fmt::format("SHOAL_TIMEOUT={}: give seconds, at least 0.001", text));
    return std::chrono::milliseconds(static_cast<long long>(seconds * 1000.0));
  }();
  return deadline;
}

std::vector<TransportStatus> probe_transports() {
  std::vector<TransportStatus> all;
  all.push_back({"threads", "threads of one process", true, "nothing needed", "", ""});
  for (const ModuleDescription& description : known_modules) {
    if (!is_offered(description)) continue;
    TransportStatus status{description.transport, description.library, false, "", "", description.package};
    if (const Module* module = load_module(description, status.detail)) {
      status.available = true;
      status.detail = module->library();
    }
    for (const char* launcher : description.launchers)
      if (launcher && status.launcher.empty()) status.launcher = find_program(launcher);
    if (status.available && status.launcher.empty()) {
      status.available = false;
      status.detail =
          fmt::format("no {} on PATH (install {})", description.launchers[0], description.package);
    }
    all.push_back(status);
  }
  return all;
}

}  // namespace shoal::comm
