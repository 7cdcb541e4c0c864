#include "collector/cupti/counters/sampling_service.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collector/cupti/counters/pm_device.h"
#include "collector/gpu/devices/clock_pairs.h"
#include "driver/cuda/cuda_driver.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

/// False: the other side writes no more.
bool read_all(int from, void *to, size_t bytes) noexcept {
  auto *at = static_cast<char *>(to);
  while (bytes > 0) {
    ssize_t got = ::read(from, at, bytes);
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

template <typename T> bool write_all(int to, const std::vector<T> &values) noexcept {
  return write_all(to, values.data(), values.size() * sizeof(T));
}

/// What the text of a request says.
struct Asked {
  std::string library;
  std::string uuid;
  std::vector<std::vector<std::string>> sets;

  explicit Asked(const std::string &text) {
    std::vector<std::string> words = split_words(text);
    if (words.size() < 3)
      throw Error(ErrorCode::kUsage, "a request for counters names no metrics");
    library = words[0];
    uuid = words[1];
    sets.emplace_back();
    for (size_t i = 2; i < words.size(); ++i)
      if (words[i].empty())
        sets.emplace_back();
      else
        sets.back().push_back(std::move(words[i]));
    std::erase_if(sets, [](const auto &set) { return set.empty(); });
  }
};

bool read_cupti_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &cupti = static_cast<const CuptiLibrary *>(library)->functions();
  return cupti.get_timestamp(&time_ns) == cupti::kSuccess;
}

/// The driver and libcupti, ready to count.
class Cupti {
public:
  explicit Cupti(const std::string &path)
      : driver_(CudaDriver::open()), library_(open(driver_, path)),
        sampling_(CuptiPmSampling::of(library_)) {
    initialize_counters(library_);
    clock_.start(read_cupti_clock, &library_);
  }

  std::unique_ptr<PmDevice> device(const Asked &asked, const SamplingRequest &request) const {
    int ordinal = driver_.ordinal_of(asked.uuid);
    if (ordinal < 0)
      throw Error(ErrorCode::kUnavailable,
                  "the process that samples counters does not see the GPU " + asked.uuid);
    return std::make_unique<PmDevice>(
        library_, sampling_, ordinal, asked.sets,
        PmSettings{request.interval_ns, request.burst_ms, request.hardware_bytes});
  }

  /// Turns times of libcupti's clock into CLOCK_MONOTONIC.
  void convert(std::vector<int64_t> &times) noexcept {
    clock_.observe();
    for (int64_t &time : times)
      time = clock_.monotonic(time);
  }
  void observe() noexcept { clock_.observe(); }

private:
  // libcupti refuses counters with "unknown error" before CUDA is initialised.
  static CuptiLibrary open(const CudaDriver &driver, const std::string &path) {
    driver.initialize();
    return CuptiLibrary::open({{path, "the recorded program", false}});
  }

  CudaDriver driver_;
  CuptiLibrary library_;
  CuptiPmSampling sampling_;
  ClockPairs clock_;
};

class Service {
public:
  explicit Service(int socket) : socket_(socket) {}

  /// False: there are no more requests.
  bool answer_one() {
    SamplingRequest request;
    if (!read_all(socket_, &request, sizeof request) || request.text_bytes > kMostTextBytes)
      return false;
    std::string text(request.text_bytes, '\0');
    if (!read_all(socket_, text.data(), text.size()))
      return false;
    try {
      return send(sample(Asked(text), request));
    } catch (const std::exception &failed) {
      SamplingAnswer answer;
      answer.has_failed = 1;
      return send(answer, failed.what());
    }
  }

private:
  CounterSamples sample(const Asked &asked, const SamplingRequest &request) {
    int64_t before_ns = monotonic_ns(), open_ns = 0;
    std::unique_ptr<PmDevice> &device = devices_[asked.uuid];
    if (!device) {
      if (!cupti_)
        cupti_.emplace(asked.library);
      device = cupti_->device(asked, request);
      open_ns = monotonic_ns() - before_ns;
    }
    CounterSamples samples;
    if (request.is_opening != 0) {
      samples.metrics = device->metrics();
    } else {
      cupti_->observe();
      samples = device->sample([&] { wait(request.burst_ms); });
      cupti_->convert(samples.start_ns);
      cupti_->convert(samples.end_ns);
    }
    samples.open_ns = open_ns;
    return samples;
  }

  void wait(uint32_t milliseconds) const noexcept {
    pollfd other{socket_, POLLIN, 0};
    int64_t end_ns = monotonic_ns() + int64_t{milliseconds} * 1'000'000;
    while (poll(&other, 1, static_cast<int>(milliseconds)) < 0 && errno == EINTR &&
           monotonic_ns() < end_ns) {
    }
  }

  bool send(const CounterSamples &samples) const {
    SamplingAnswer answer;
    answer.open_ns = samples.open_ns;
    answer.decode_ns = samples.decode_ns;
    answer.info_ns = samples.info_ns;
    answer.evaluate_ns = samples.evaluate_ns;
    answer.samples = samples.start_ns.size();
    answer.lost = samples.lost;
    answer.is_image_full = samples.is_image_full ? 1 : 0;
    answer.is_buffer_full = samples.is_buffer_full ? 1 : 0;
    std::string metrics;
    for (const std::string &metric : samples.metrics)
      metrics += metric + '\0';
    return send(answer, metrics) && write_all(socket_, samples.start_ns) &&
           write_all(socket_, samples.end_ns) && write_all(socket_, samples.values);
  }

  bool send(SamplingAnswer answer, const std::string &text) const {
    answer.process_ns = process_cpu_ns();
    answer.text_bytes = text.size();
    return write_all(socket_, &answer, sizeof answer) &&
           write_all(socket_, text.data(), text.size());
  }

  int socket_;
  std::optional<Cupti> cupti_;
  std::map<std::string, std::unique_ptr<PmDevice>> devices_; ///< by UUID
};

} // namespace

std::vector<std::string> split_words(const std::string &text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size(); at += words.back().size() + 1)
    words.emplace_back(text.c_str() + at);
  return words;
}

void serve_counter_samples(int socket) {
  // A call of libcupti may hang or take long.
  std::thread([socket] {
    pollfd other{socket, 0, 0}; // no events: only that it was closed
    while (poll(&other, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }).detach();
  Service service(socket);
  while (service.answer_one()) {
  }
}

} // namespace proton
