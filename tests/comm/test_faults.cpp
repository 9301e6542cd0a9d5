// SPDX-License-Identifier: Apache-2.0
// Events from outside: signals to ranks and launchers, ranks that stop or hang, too little of something.
// The job ends (or goes on, where it can) in time, says who and where, and leaves nothing behind. What users
// see of each, with times, is in docs/faults.md.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <sched.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>
#include <set>
#include <string>
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

struct Way {
  std::string name;  // for the test's name
  std::string transport;
  std::string library;  // as in TransportStatus
  std::vector<std::string> launch;
  bool launcher_names_ranks = false;  // of ranks that were ended by a signal
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

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

class Faults : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    for (const TransportStatus& status : probe_transports())
      if (status.library == GetParam().library && !status.available) GTEST_SKIP() << status.detail;
    // Where Open MPI keeps what belongs to a job.
    char name[] = "/tmp/shoal-faults-XXXXXX";
    session_folder = mkdtemp(name);
    files_before = test::shared_memory_files();
  }
  void TearDown() override {
    std::error_code ignored;
    if (!session_folder.empty()) std::filesystem::remove_all(session_folder, ignored);
  }
  bool threads() const { return GetParam().launch.empty(); }

  Command job(int ranks, const std::string& event, int who, const std::string& timeout = "20") const {
    Command command{.line = GetParam().launch,
                    .environment = {{"SHOAL_TIMEOUT", timeout}, {"TMPDIR", session_folder}},
                    .limit_s = 30};
    if (!command.line.empty()) command.line.insert(command.line.end(), {"-n", std::to_string(ranks)});
    command.line.insert(command.line.end(), {FAILING_PROGRAM, GetParam().transport, std::to_string(ranks),
                                             event, std::to_string(who)});
    return command;
  }

  // Runs it, and looks at what is left of it.
  Outcome run(const Command& command) {
    Process process(command);
    const Outcome outcome = process.wait();
    expect_nothing_left(process);
    return outcome;
  }
  void expect_nothing_left(const Process& process) {
    EXPECT_TRUE(process.all_gone(2)) << process.family().size() << " processes are left";
    if (litters) return;
    EXPECT_EQ(test::abandoned_shared_memory(files_before, 2), std::set<std::string>{});
    EXPECT_TRUE(std::filesystem::is_empty(session_folder)) << session_folder;
  }

  // For events after which files stay behind: then not in the machine's /dev/shm.
  bool own_shared_memory(const char* options) {
    litters = true;
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", "/dev/shm", "tmpfs", 0, options) == 0;
  }

  // What both streams say.
  static std::string text(const Outcome& outcome) { return outcome.out + outcome.err; }

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
    if (GetParam().library != "MPICH") {
      EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    }
    expect_nothing_left(process);
  }

  std::string session_folder;
  std::set<std::string> files_before;
  bool litters = false;  // the library leaves files in /dev/shm after this event (docs/faults.md)
};
INSTANTIATE_TEST_SUITE_P(Job, Faults, testing::ValuesIn(ways),
                         [](const auto& way) { return way.param.name; });

constexpr double soon = 5;  // seconds in which a job whose rank has ended is over

TEST_P(Faults, AKilledRankEndsTheJob) {
  if (threads()) GTEST_SKIP() << "a rank that is a thread dies with all others";
  // First, middle and last, each with some library.
  const std::vector<int> whom = GetParam().name == "shmem"         ? std::vector{1}
                                : GetParam().name == "mpi_openmpi" ? std::vector{0, 2}
                                                                   : std::vector{0, 1, 2};
  for (const int who : whom) {
    const Outcome outcome = run(job(3, "kill", who));
    EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
    EXPECT_LT(outcome.seconds, soon) << outcome.describe();
    EXPECT_TRUE(has(text(outcome), host())) << outcome.describe();
    if (GetParam().launcher_names_ranks) {
      EXPECT_TRUE(has(text(outcome), "rank " + std::to_string(who))) << outcome.describe();
    }
  }
}

TEST_P(Faults, ATerminatedRankEndsTheJob) {
  if (threads()) GTEST_SKIP() << "a rank that is a thread ends with all others";
  const Outcome outcome = run(job(3, "terminate", 1));
  EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.seconds, soon) << outcome.describe();
  EXPECT_TRUE(has(text(outcome), host())) << outcome.describe();
}

TEST_P(Faults, AStoppedRankIsNamedAfterTheDeadline) {
  // (A stopped thread stops its process, so there the rank sleeps.)
  const Outcome outcome = run(job(3, threads() ? "hang" : "stop", 1, "2"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, 2 + soon) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, pe(0) + ": ")) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, ": " + pe(1) + " has been silent for 2 s\n")) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, pe(0) + " has waited 0.")) << outcome.describe();
  // One rank speaks for all.
  EXPECT_EQ(outcome.err.find("has been silent"), outcome.err.rfind("has been silent")) << outcome.describe();
  EXPECT_EQ(outcome.err.find("has waited"), outcome.err.rfind("has waited")) << outcome.describe();
}

TEST_P(Faults, AStoppedStageIsNamedThroughThoseThatWaitForIt) {
  if (threads()) GTEST_SKIP() << "a rank that is a thread stops with all others";
  const Outcome outcome = run(job(4, "pipeline", 1, "2"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, 2 + soon) << outcome.describe();
  EXPECT_TRUE(has(outcome.err,
                  pe(1) + " has been silent for 2 s (PE 0 waits for PE 3, PE 3 for PE 2, PE 2 for PE 1)"))
      << outcome.describe();
}

TEST_P(Faults, RanksThatWaitForEachOtherAreNamed) {
  const Outcome outcome = run(job(3, "deadlock", 0, "1"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, 1 + soon) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "nobody is silent: PE ")) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "PE 2 for PE 0")) << outcome.describe();
}

TEST_P(Faults, ARankThatPausesGoesOnWithTheSameResult) {
  const Outcome outcome = run(job(3, "pause", 1));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_GT(outcome.seconds, 1.9);
  EXPECT_EQ(outcome.out, "result 681987\n");  // as undisturbed, with any library
  EXPECT_EQ(outcome.err, "");
}

TEST_P(Faults, ExitInTheMiddleIsNamed) {
  const Outcome outcome = run(job(3, "exit", 1));
  EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.seconds, soon) << outcome.describe();
  EXPECT_EQ(outcome.err.find("shoal: " + pe(1) + ": the program called exit() in the middle of the job\n"),
            0u)
      << outcome.describe();
}

TEST_P(Faults, ARankThatLeavesTooEarlyIsNamed) {
  const Outcome outcome = run(job(3, "return", 1, "2"));
  EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.seconds, 2 + soon) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "PE 1 ") && has(outcome.err, host())) << outcome.describe();
}

TEST_P(Faults, ARankThatHasLeftWithoutAWordIsNamed) {
  const Outcome outcome = run(job(3, "leave", 1, "1"));
  EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
  EXPECT_LT(outcome.seconds, 1 + soon) << outcome.describe();
  const std::string what = threads() ? " has been silent for 1 s"
                                     : " has ended its part of the job, and nothing has come from it for 1 s";
  EXPECT_TRUE(has(outcome.err, pe(0) + ": " + pe(1) + what + "\n")) << outcome.describe();
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

TEST_P(Faults, SignalsToTheLauncherEndTheJob) {
  for (const int signal : {SIGINT, SIGTERM})
    end_from_outside([&](Process& process) { kill(process.pid(), signal); }, soon);
}

// (Open MPI's launchers leave at once at a second interrupt; MPICH's ends its processes first.)
TEST_P(Faults, AKilledLauncherTakesItsRanksAlong) {
  if (!own_shared_memory("size=256m")) GTEST_SKIP() << "only the superuser may give a test its own /dev/shm";
  end_from_outside([](Process& process) { kill(process.pid(), SIGKILL); }, soon);
}

TEST_P(Faults, ASecondInterruptEndsTheJobAtOnce) {
  if (!own_shared_memory("size=256m")) GTEST_SKIP() << "only the superuser may give a test its own /dev/shm";
  const auto twice = [](Process& process) {
    kill(process.pid(), SIGINT);
    usleep(50'000);
    kill(process.pid(), SIGINT);
  };
  end_from_outside(twice, 2);
}

TEST_P(Faults, AHeapThatIsTooSmallIsOneCleanError) {
  if (GetParam().transport != "shmem") GTEST_SKIP() << "symmetric memory is not limited beforehand here";
  const Outcome outcome = run(job(3, "small-heap", 0));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.seconds, soon);
  EXPECT_TRUE(has(outcome.err, "symmetric allocation of 20974")) << outcome.describe();
  EXPECT_TRUE(has(outcome.err, "are free on all 3 PEs")) << outcome.describe();
  EXPECT_EQ(outcome.err.find("are free"), outcome.err.rfind("are free")) << outcome.describe();
}

TEST_P(Faults, StaticObjectsMayOutliveTheJob) {
  const Outcome outcome = run(job(3, "keep", 0));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
  EXPECT_EQ(text(outcome), "");
}

// (A program that has initialised the library itself may call comm::run as often as it likes:
// <transport>/host_program.cpp.)
TEST_P(Faults, ASecondJobInAProcessWorksOrSaysWhyNot) {
  const Outcome outcome = run(job(2, "twice", 0));
  if (threads()) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
    return;
  }
  EXPECT_NE(outcome.exit_code, 0) << outcome.describe();
  EXPECT_TRUE(
      has(outcome.err, GetParam().transport == "mpi" ? "shoal: MPI has ended" : "shoal: OpenSHMEM has ended"))
      << outcome.describe();
}

TEST_P(Faults, EightRanksShareACore) {
  Command command = job(8, "barriers", 0);
  command.line.insert(command.line.begin(), {"taskset", "-c", "0"});
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << "1,000 barriers took " << outcome.describe();
}

TEST_P(Faults, WaitingTakesFewCycles) {
  const Outcome outcome = run(job(3, "idle", 1));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.describe();
}

// Without room in /dev/shm the libraries find another way, or say that they have none.
TEST_P(Faults, AFullSharedMemoryFolderIsNoTrap) {
  if (!own_shared_memory("size=64k")) GTEST_SKIP() << "only the superuser may give a test its own /dev/shm";
  std::ofstream("/dev/shm/full") << std::string(60'000, 'x');
  files_before = test::shared_memory_files();
  const Outcome outcome = run(job(3, "work", 0));
  EXPECT_LT(outcome.seconds, 10);
  if (outcome.exit_code == 0) {
    EXPECT_TRUE(has(outcome.out, "result ")) << outcome.describe();
  } else {
    EXPECT_FALSE(text(outcome).empty()) << outcome.describe();
  }
}

// An installation with one library alone, under the launcher of another.
TEST(WrongLauncher, IsToldApart) {
  for (const TransportStatus& status : probe_transports())
    if (status.name == "mpi" && !status.available) GTEST_SKIP() << status.detail;
  const auto start = [](const std::vector<std::string>& launch, const std::string& module) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("shoal-" + std::to_string(getpid()) + module);
    std::filesystem::create_directory(folder);
    std::filesystem::create_symlink(std::string(MODULE_FOLDER) + "/transport_" + module + ".so",
                                    folder / ("transport_" + module + ".so"));
    Command command{.line = launch, .environment = {{"SHOAL_MODULE_PATH", folder.string()}}, .limit_s = 20};
    command.line.insert(command.line.end(), {"-n", "2", FAILING_PROGRAM, "mpi", "2", "nothing", "0"});
    const Outcome outcome = test::run(command);
    std::filesystem::remove_all(folder);
    return outcome;
  };
  const Outcome mpich = start({"mpirun.mpich"}, "mpi_openmpi");
  EXPECT_NE(mpich.exit_code, 0);
  EXPECT_LT(mpich.seconds, soon);
  EXPECT_TRUE(has(mpich.err, "transport_mpi_mpich.so was not built (install mpich")) << mpich.describe();
  const Outcome open = start(open_mpi("mpirun.openmpi"), "mpi_mpich");
  EXPECT_NE(open.exit_code, 0);
  EXPECT_LT(open.seconds, soon);
  EXPECT_TRUE(has(open.err, "transport_mpi_openmpi.so was not built (install openmpi-bin"))
      << open.describe();
  const Outcome shmem =
      test::run({.line = {"mpirun.mpich", "-n", "2", FAILING_PROGRAM, "shmem", "2", "nothing", "0"}});
  EXPECT_NE(shmem.exit_code, 0);
  EXPECT_TRUE(has(shmem.err, "transport shmem cannot run under the launcher of MPICH")) << shmem.describe();
}

}  // namespace
}  // namespace shoal::comm
