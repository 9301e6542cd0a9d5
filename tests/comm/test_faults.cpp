// SPDX-License-Identifier: Apache-2.0
// Events from outside: signals to ranks and launchers, ranks that stop or hang, too little of something.
// The job ends (or goes on, where it can) in time, says who and where, and leaves nothing behind. What users
// see of each, with times, is in docs/faults.md.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <sched.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/process.h"
#include "shoal/comm/job.h"

namespace shoal::comm {
namespace {

using test::Command;
using test::Outcome;
using test::Process;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// "PE 1 (host)"
std::string pe(int rank) { return "PE " + std::to_string(rank) + " (" + host() + ")"; }

// What both streams say.
std::string text(const Outcome& outcome) { return outcome.out + outcome.err; }

struct Way {
  std::string name;
  std::string transport;
  std::string library;  // as in TransportStatus
  std::vector<std::string> launch;
  bool launcher_names_ranks = false;  // of ranks that were ended by a signal
};

std::vector<std::string> open_mpi(const std::string& program) {
  return {program, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle",
          "1",     "--mca",           "osc",       "^rdma"};
}

const std::vector<Way> ways = {
    {"threads", "threads", "threads of one process", {}},
    {"mpi_openmpi", "mpi", "Open MPI", open_mpi("mpirun.openmpi"), true},
    {"mpi_mpich", "mpi", "MPICH", {"mpirun.mpich"}},
    {"shmem", "shmem", "OpenSHMEM of Open MPI", open_mpi("oshrun"), true},
};

// A case in one of the ways.
class Trial {
 public:
  explicit Trial(const Way& started_by) : way(started_by) {
    // Where Open MPI keeps what belongs to a job.
    char name[] = "/tmp/shoal-faults-XXXXXX";
    session_folder_ = mkdtemp(name);
    files_before_ = test::shared_memory_files();
  }
  ~Trial() {
    std::error_code ignored;
    std::filesystem::remove_all(session_folder_, ignored);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  bool threads() const { return way.launch.empty(); }

  Command job(int ranks, const std::string& event, int who, const std::string& timeout = "20") const {
    Command command{.line = way.launch,
                    .environment = {{"SHOAL_TIMEOUT", timeout}, {"TMPDIR", session_folder_}},
                    .limit_s = 30};
    if (!command.line.empty()) command.line.insert(command.line.end(), {"-n", std::to_string(ranks)});
    command.line.insert(command.line.end(),
                        {FAILING_PROGRAM, way.transport, std::to_string(ranks), event, std::to_string(who)});
    return command;
  }

  // Runs it, and looks at what is left of it.
  Outcome run(const Command& command) {
    Process process(command);
    const Outcome outcome = process.wait();
    expect_nothing_left(process);
    return outcome;
  }

  // For events after which files stay behind: this thread and what it starts see a /dev/shm of their own.
  // False where only the superuser may do that.
  bool own_shared_memory(const char* options) {
    litters_ = true;
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("none", "/dev/shm", "tmpfs", 0, options) == 0)
      return true;
    std::cout << "skipped: " << way.name << ": a /dev/shm of its own: " << std::strerror(errno) << std::endl;
    return false;
  }

  // A job that works until it is ended from outside.
  void end_from_outside(const std::function<void(Process&)>& event, double limit_s) {
    Process process(job(3, "for-ever", 0));
    ASSERT_TRUE(process.read_until([](const Outcome& so_far) { return has(so_far.out, "ready"); }))
        << process.wait().describe();
    const double start = process.seconds();
    event(process);
    const Outcome outcome = process.wait();
    EXPECT_LT(outcome.seconds - start, limit_s) << outcome.describe();
    // (MPICH's launcher sometimes ends with 0 when it is told to end.)
    if (way.library != "MPICH") {
      EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    }
    expect_nothing_left(process);
  }

  const Way& way;

 private:
  void expect_nothing_left(const Process& process) {
    EXPECT_TRUE(process.all_gone(2)) << process.family().size() << " processes are left";
    if (litters_) return;
    // (The jobs beside this one leave theirs for a moment.)
    EXPECT_EQ(test::abandoned_shared_memory(files_before_, 4), std::set<std::string>{});
    EXPECT_TRUE(std::filesystem::is_empty(session_folder_)) << session_folder_;
  }

  std::string session_folder_;
  std::set<std::string> files_before_;
  bool litters_ = false;  // the library leaves files in /dev/shm after this event (docs/faults.md)
};

// The ways that this machine has; says what is missing.
std::vector<const Way*> usable_ways() {
  std::vector<const Way*> usable;
  const std::vector<TransportStatus> all = probe_transports();
  for (const Way& way : ways)
    for (const TransportStatus& status : all) {
      if (status.library != way.library) continue;
      if (status.available)
        usable.push_back(&way);
      else
        std::cout << "skipped: " << way.name << ": " << status.detail << std::endl;
    }
  return usable;
}

void try_one(const Way& way, int variant, const std::function<void(Trial&, int)>& body) {
  SCOPED_TRACE(way.name + ", " + std::to_string(variant));
  try {
    Trial trial(way);
    body(trial, variant);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

// Tries a case in all ways, and each of its variants, at once: most of the time passes in waiting.
void side_by_side(const std::vector<int>& variants, const std::function<void(Trial&, int)>& body) {
  const std::vector<const Way*> usable = usable_ways();
  std::vector<std::thread> trials;
  for (const Way* way : usable)
    for (const int variant : variants) trials.emplace_back(try_one, std::cref(*way), variant, body);
  for (std::thread& trial : trials) trial.join();
}
void side_by_side(const std::function<void(Trial&)>& body) {
  side_by_side({0}, [&](Trial& trial, int) { body(trial); });
}
// Where the jobs would be in each other's way.
void one_by_one(const std::function<void(Trial&)>& body) {
  for (const Way* way : usable_ways()) try_one(*way, 0, [&](Trial& trial, int) { body(trial); });
}

constexpr double soon = 5;  // seconds in which a job whose rank has ended is over

TEST(Faults, AKilledRankEndsTheJob) {
  // First, middle and last, each with some library.
  side_by_side({0, 1, 2}, [](Trial& trial, int who) {
    if (trial.threads()) return;  // a rank that is a thread dies with all others
    if (trial.way.launcher_names_ranks && (trial.way.transport == "shmem") != (who == 1)) return;
    const Outcome outcome = trial.run(trial.job(3, "kill", who));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, soon) << outcome.describe();
    EXPECT_TRUE(has(text(outcome), host())) << outcome.describe();
    if (trial.way.launcher_names_ranks) {
      EXPECT_TRUE(has(text(outcome), "rank " + std::to_string(who))) << outcome.describe();
    }
  });
}

TEST(Faults, ATerminatedRankEndsTheJob) {
  side_by_side([](Trial& trial) {
    if (trial.threads()) return;  // as above
    const Outcome outcome = trial.run(trial.job(3, "terminate", 1));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, soon) << outcome.describe();
    EXPECT_TRUE(has(text(outcome), host())) << outcome.describe();
  });
}

TEST(Faults, AStoppedRankIsNamedAfterTheDeadline) {
  side_by_side([](Trial& trial) {
    // (A stopped thread stops its process, so there the rank sleeps.)
    const Outcome outcome = trial.run(trial.job(3, trial.threads() ? "hang" : "stop", 1, "1.5"));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_LT(outcome.seconds, 1.5 + soon) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, pe(0) + ": ")) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, ": " + pe(1) + " has been silent for 1.5 s\n")) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, pe(0) + " has waited 0.")) << outcome.describe();
    // One rank speaks for all.
    EXPECT_EQ(outcome.err.find("has been silent"), outcome.err.rfind("has been silent"))
        << outcome.describe();
    EXPECT_EQ(outcome.err.find("has waited"), outcome.err.rfind("has waited")) << outcome.describe();
  });
}

// Where both sides of a copy were at work.
TEST(Faults, ARankThatEndsOrStopsAmidLargeCopiesEndsTheJob) {
  side_by_side({SIGKILL, SIGSTOP}, [](Trial& trial, int signal) {
    if (trial.threads()) return;  // a rank that is a thread ends or stops with all others
    const bool kills = signal == SIGKILL;
    const Outcome outcome = trial.run(trial.job(3, kills ? "copies-kill" : "copies-stop", 1, "1.5"));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, (kills ? 0 : 1.5) + soon) << outcome.describe();
    EXPECT_TRUE(has(text(outcome), kills ? host() : pe(1))) << outcome.describe();
  });
}

TEST(Faults, AStoppedStageIsNamedThroughThoseThatWaitForIt) {
  side_by_side([](Trial& trial) {
    if (trial.threads()) return;  // a rank that is a thread stops with all others
    const Outcome outcome = trial.run(trial.job(4, "pipeline", 1, "2"));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_LT(outcome.seconds, 2 + soon) << outcome.describe();
    EXPECT_TRUE(has(outcome.err,
                    pe(1) + " has been silent for 2 s (PE 0 waits for PE 3, PE 3 for PE 2, PE 2 for PE 1)"))
        << outcome.describe();
  });
}

TEST(Faults, RanksThatWaitForEachOtherAreNamed) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "deadlock", 0, "1"));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_LT(outcome.seconds, 1 + soon) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, "nobody is silent: PE ")) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, "PE 2 for PE 0")) << outcome.describe();
  });
}

TEST(Faults, ARankThatPausesGoesOnWithTheSameResult) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "pause", 1));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
    EXPECT_GT(outcome.seconds, 1.9);
    EXPECT_EQ(outcome.out, "result 681987\n");  // as undisturbed, with any library
    EXPECT_EQ(outcome.err, "");
  });
}

TEST(Faults, ExitInTheMiddleIsNamed) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "exit", 1));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, soon) << outcome.describe();
    EXPECT_EQ(outcome.err.find("shoal: " + pe(1) + ": the program called exit() in the middle of the job\n"),
              0u)
        << outcome.describe();
  });
}

TEST(Faults, ARankThatLeavesTooEarlyIsNamed) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "return", 1, "2"));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, 2 + soon) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, "PE 1 ") && has(outcome.err, host())) << outcome.describe();
  });
}

TEST(Faults, ARankThatHasLeftWithoutAWordIsNamed) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "leave", 1, "1"));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, 1 + soon) << outcome.describe();
    const std::string what = trial.threads()
                                 ? " has been silent for 1 s"
                                 : " has ended its part of the job, and nothing has come from it for 1 s";
    EXPECT_TRUE(has(outcome.err, pe(0) + ": " + pe(1) + what + "\n")) << outcome.describe();
  });
}

// As with Ctrl-Z: all stop, for longer than the deadline, and go on.
TEST(StoppedJob, HasNoSilentRanks) {
  const Outcome outcome = test::run({.line = {FAILING_PROGRAM, "threads", "3", "pause", "1"},
                                     .environment = {{"SHOAL_TIMEOUT", "1"}},
                                     .limit_s = 20});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_EQ(outcome.out, "result 681987\n");
  EXPECT_GT(outcome.seconds, 1.9);
}

TEST(Faults, SignalsToTheLauncherEndTheJob) {
  side_by_side({SIGINT, SIGTERM}, [](Trial& trial, int signal) {
    trial.end_from_outside([&](Process& process) { kill(process.pid(), signal); }, soon);
  });
}

// (Open MPI's launchers leave at once at a second interrupt; MPICH's ends its processes first.)
TEST(Faults, AKilledLauncherTakesItsRanksAlong) {
  side_by_side([](Trial& trial) {
    if (!trial.own_shared_memory("size=256m")) return;
    trial.end_from_outside([](Process& process) { kill(process.pid(), SIGKILL); }, soon);
  });
}

TEST(Faults, ASecondInterruptEndsTheJobAtOnce) {
  const auto twice = [](Process& process) {
    kill(process.pid(), SIGINT);
    usleep(50'000);
    kill(process.pid(), SIGINT);
  };
  side_by_side([&](Trial& trial) {
    if (!trial.own_shared_memory("size=256m")) return;
    trial.end_from_outside(twice, 2);
  });
}

TEST(Faults, AHeapThatIsTooSmallIsOneCleanError) {
  side_by_side([](Trial& trial) {
    if (trial.way.transport != "shmem") return;  // symmetric memory is not limited beforehand
    const Outcome outcome = trial.run(trial.job(3, "small-heap", 0));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_LT(outcome.seconds, soon);
    EXPECT_TRUE(has(outcome.err, "symmetric allocation of 20974")) << outcome.describe();
    EXPECT_TRUE(has(outcome.err, "are free on all 3 PEs")) << outcome.describe();
    EXPECT_EQ(outcome.err.find("are free"), outcome.err.rfind("are free")) << outcome.describe();
  });
}

TEST(Faults, StaticObjectsMayOutliveTheJob) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "keep", 0));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
    EXPECT_EQ(text(outcome), "");
  });
}

// (A program that has initialised the library itself may call comm::run as often as it likes:
// <transport>/host_program.cpp.)
TEST(Faults, ASecondJobInAProcessWorksOrSaysWhyNot) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(2, "twice", 0));
    if (trial.threads()) {
      EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
      return;
    }
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_TRUE(has(outcome.err,
                    trial.way.transport == "mpi" ? "shoal: MPI has ended" : "shoal: OpenSHMEM has ended"))
        << outcome.describe();
  });
}

TEST(Faults, EightRanksShareACore) {
  one_by_one([](Trial& trial) {
    Command command = trial.job(8, "barriers", 0);
    command.line.insert(command.line.begin(), {"taskset", "-c", "0"});
    const Outcome outcome = trial.run(command);
    EXPECT_EQ(outcome.exit_code, 0) << "1,000 barriers took " << outcome.describe();
  });
}

TEST(Faults, WaitingTakesFewCycles) {
  side_by_side([](Trial& trial) {
    const Outcome outcome = trial.run(trial.job(3, "idle", 1));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  });
}

// Without room in /dev/shm the libraries find another way, or say that they have none.
TEST(Faults, AFullSharedMemoryFolderIsNoTrap) {
  side_by_side([](Trial& trial) {
    if (!trial.own_shared_memory("size=64k")) return;
    std::ofstream("/dev/shm/full") << std::string(60'000, 'x');
    const Outcome outcome = trial.run(trial.job(3, "work", 0));
    EXPECT_LT(outcome.seconds, 10);
    if (outcome.exit_code == 0) {
      EXPECT_TRUE(has(outcome.out, "result ")) << outcome.describe();
    } else {
      EXPECT_FALSE(text(outcome).empty()) << outcome.describe();
    }
  });
}

// An installation with one library alone, under the launcher of another.
TEST(WrongLauncher, IsToldApart) {
  for (const TransportStatus& status : probe_transports())
    if (status.name == "mpi" && !status.available) GTEST_SKIP() << status.detail;
  const auto start = [](const std::vector<std::string>& launch, const std::string& module,
                        const std::string& transport) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("shoal-" + std::to_string(getpid()) + module);
    std::filesystem::create_directory(folder);
    std::filesystem::create_symlink(std::string(MODULE_FOLDER) + "/transport_" + module + ".so",
                                    folder / ("transport_" + module + ".so"));
    Command command{.line = launch, .environment = {{"SHOAL_MODULE_PATH", folder.string()}}, .limit_s = 20};
    command.line.insert(command.line.end(), {"-n", "2", FAILING_PROGRAM, transport, "2", "nothing", "0"});
    const Outcome outcome = test::run(command);
    std::filesystem::remove_all(folder);
    return outcome;
  };
  const Outcome mpich = start({"mpirun.mpich"}, "mpi_openmpi", "mpi");
  EXPECT_NE(mpich.exit_code, 0);
  EXPECT_LT(mpich.seconds, soon);
  EXPECT_TRUE(has(mpich.err, "transport_mpi_mpich.so was not built (install mpich")) << mpich.describe();
  const Outcome open = start(open_mpi("mpirun.openmpi"), "mpi_mpich", "mpi");
  EXPECT_NE(open.exit_code, 0);
  EXPECT_LT(open.seconds, soon);
  EXPECT_TRUE(has(open.err, "transport_mpi_openmpi.so was not built (install openmpi-bin"))
      << open.describe();
  const Outcome shmem = start({"mpirun.mpich"}, "shmem_openmpi", "shmem");
  EXPECT_NE(shmem.exit_code, 0);
  EXPECT_TRUE(has(shmem.err, "transport shmem cannot run under the launcher of MPICH")) << shmem.describe();
}

}  // namespace
}  // namespace shoal::comm
