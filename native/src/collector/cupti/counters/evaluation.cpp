#include "collector/cupti/counters/evaluation.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/cupti/cupti_profiler_host.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr uint64_t kMostTextBytes = 1 << 20;
constexpr uint64_t kMostIndices = 1 << 24;

/// False: the other end is closed.
bool read_all(int from, void *to, size_t bytes) noexcept {
  auto *at = static_cast<char *>(to);
  while (bytes > 0) {
    ssize_t got = read(from, at, bytes);
    if (got == 0 || (got < 0 && errno != EINTR))
      return false;
    at += std::max<ssize_t>(got, 0);
    bytes -= static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return true;
}

bool write_all(int to, const void *from, size_t bytes) noexcept {
  const auto *at = static_cast<const char *>(from);
  while (bytes > 0) {
    ssize_t put = write(to, at, bytes);
    if (put < 0 && errno != EINTR)
      return false;
    at += std::max<ssize_t>(put, 0);
    bytes -= static_cast<size_t>(std::max<ssize_t>(put, 0));
  }
  return true;
}

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    parts.emplace_back(text.c_str() + at);
    at += parts.back().size() + 1;
  }
  return parts;
}

/// A part of the memory of both processes.
class MappedImage {
public:
  MappedImage(int memory, const EvaluationRequest &request)
      : bytes_(request.image_bytes),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory,
                   static_cast<off_t>(request.image_offset))) {
    if (data_ == MAP_FAILED)
      throw Error(ErrorCode::kUnavailable, "no memory to evaluate counters");
  }
  ~MappedImage() { munmap(data_, bytes_); }
  MappedImage(const MappedImage &) = delete;
  MappedImage &operator=(const MappedImage &) = delete;
  const uint8_t *data() const { return static_cast<const uint8_t *>(data_); }
  size_t bytes() const { return bytes_; }

private:
  size_t bytes_;
  void *data_;
};

/// A library and its host objects, which take long to make.
class Hosts {
public:
  CuptiProfilerHost &find(const std::string &text) {
    std::unique_ptr<CuptiProfilerHost> &host = hosts_[text];
    if (host)
      return *host;
    std::vector<std::string> parts = split(text);
    if (parts.size() < 3)
      throw Error(ErrorCode::kUsage, "a request to evaluate counters names no metrics");
    std::unique_ptr<CuptiLibrary> &library = libraries_[parts[0]];
    if (!library) {
      library = std::make_unique<CuptiLibrary>(
          CuptiLibrary::open({{parts[0], "the recorded program", false}}));
      load_counter_libraries(*library);
    }
    host = std::make_unique<CuptiProfilerHost>(
        *library, cupti::kProfilerOfPmSamples, parts[1],
        std::vector<std::string>(parts.begin() + 2, parts.end()));
    return *host;
  }

private:
  std::map<std::string, std::unique_ptr<CuptiLibrary>> libraries_;
  std::map<std::string, std::unique_ptr<CuptiProfilerHost>> hosts_;
};

int64_t process_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool answer_one(Hosts &hosts, int socket, int memory) {
  EvaluationRequest request;
  if (!read_all(socket, &request, sizeof request) || request.text_bytes > kMostTextBytes ||
      request.samples > kMostIndices)
    return false;
  std::string text(request.text_bytes, '\0');
  std::vector<uint64_t> samples(request.samples);
  if (!read_all(socket, text.data(), text.size()) ||
      !read_all(socket, samples.data(), samples.size() * sizeof(uint64_t)))
    return false;
  std::vector<double> values;
  std::string error;
  try {
    MappedImage image(memory, request);
    values = evaluate_samples(hosts.find(text), image.data(), image.bytes(), samples);
  } catch (const std::exception &failed) {
    error = failed.what();
  }
  EvaluationAnswer answer{process_time_ns(), error.size(), values.size()};
  return write_all(socket, &answer, sizeof answer) &&
         write_all(socket, error.data(), error.size()) &&
         write_all(socket, values.data(), values.size() * sizeof(double));
}

} // namespace

std::vector<double> evaluate_samples(CuptiProfilerHost &host, const uint8_t *image, size_t bytes,
                                     const std::vector<uint64_t> &samples) {
  size_t metrics = host.metrics().size();
  std::vector<double> values(samples.size() * metrics);
  double *row = values.data();
  for (uint64_t sample : samples) {
    if (host.evaluate(image, bytes, sample, row) != cupti::kSuccess)
      std::fill_n(row, metrics, std::numeric_limits<double>::quiet_NaN());
    row += metrics;
  }
  return values;
}

void serve_evaluations(int socket, int memory) {
  // A call of libcupti that hangs would not see that the recorded program has ended.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Hosts hosts;
  while (answer_one(hosts, socket, memory)) {
  }
}

} // namespace proton
