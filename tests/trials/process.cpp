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
  if (id_ < 0) throw std::runtime_error("no more processes");
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

Ending Process::wait(double most_seconds) {
  const double deadline = now() + most_seconds;
  int status = 0;
  rusage usage{};
  Ending ending;
  while (wait4(id_, &status, WNOHANG, &usage) == 0) {
    if (now() > deadline) {
      signal(SIGKILL);
      ending.was_cut_off = true;
    }
    sleep_for(0.001);
  }
  if (WIFEXITED(status))
    ending.exit_code = WEXITSTATUS(status);
  else
    ending.signal = WTERMSIG(status);
  ending.seconds = now() - start_;
  ending.peak_bytes = 1024.0 * static_cast<double>(usage.ru_maxrss);
  return ending;
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string fresh_folder(const std::string& parent) {
  std::filesystem::create_directories(parent);
  std::string name = parent + "/trial_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("there is no room for a folder in " + parent);
  return name;
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace dyad::trials
