#include "process.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dyad::trials {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void redirect(const std::string& path, int flags, int descriptor) {
  const int file = open(path.empty() ? "/dev/null" : path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
  close(file);
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const Setup& setup) : start_(now()) {
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("fork failed");
  if (id_ > 0) return;
  redirect(setup.input, O_RDONLY, STDIN_FILENO);
  redirect(setup.output, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(setup.errors, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  for (const std::string& variable : setup.environment) putenv(const_cast<char*>(variable.c_str()));
  if (setup.before) setup.before();
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());
  _exit(127);
}

void Process::signal(int number) const { kill(id_, number); }

ExitStatus Process::wait(double max_seconds) {
  const double deadline = now() + max_seconds;
  int wait_status = 0;
  rusage usage{};
  ExitStatus status;
  while (wait4(id_, &wait_status, WNOHANG, &usage) == 0) {
    if (now() > deadline) {
      signal(SIGKILL);
      status.has_timed_out = true;
    }
    sleep_for(0.001);
  }
  if (WIFEXITED(wait_status))
    status.exit_code = WEXITSTATUS(wait_status);
  else
    status.signal = WTERMSIG(wait_status);
  status.seconds = now() - start_;
  status.peak_bytes = 1024.0 * static_cast<double>(usage.ru_maxrss);
  return status;
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string new_folder(const std::string& parent) {
  std::filesystem::create_directories(parent);
  std::string name = parent + "/trial_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a folder in " + parent);
  return name;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace dyad::trials
