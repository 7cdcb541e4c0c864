// Gives a reader changed inputs, one after the other: reader [options] FILE|FOLDER...
//
//   --attempts N   how many inputs; 0, the default: each file as it is, once
//   --seed S       the same number gives the same inputs
//   --kept FOLDER  keeps inputs that reached new code, and reads them the next time
//   --trying FILE  holds the present input, in case it kills the process
//
// A reader is a source beside this one that defines LLVMFuzzerTestOneInput, so that libFuzzer can
// drive it too. Where the core was compiled with -fsanitize-coverage=trace-pc, inputs that reach
// new code are changed further; without it all inputs are changes of those given.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A limit on memory for small inputs; leaks are not reported: a reader's Python side would free
// them.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options();
extern "C" const char *__asan_default_options() {
  return "max_allocation_size_mb=500:hard_rss_limit_mb=1500:quarantine_size_mb=16:handle_abort=1:"
         "detect_stack_use_after_return=0";
}

namespace {

using Input = std::vector<uint8_t>;
using Random = std::mt19937_64;

constexpr size_t kLargestInput = size_t{1} << 16;
constexpr int kSecondsPerInput = 2;

// Edges of code that some input has taken.
constexpr size_t kEdges = size_t{1} << 16;
std::bitset<kEdges> known_edges;
size_t new_edges = 0;
uintptr_t previous_block = 0;
bool is_watching = false;

} // namespace

// Called by each basic block of instrumented code.
extern "C" __attribute__((visibility("default"))) void __sanitizer_cov_trace_pc();
extern "C" __attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
  if (!is_watching)
    return;
  auto block = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  size_t edge = (block ^ previous_block) % kEdges;
  previous_block = block >> 1;
  if (!known_edges[edge]) {
    known_edges[edge] = true;
    ++new_edges;
  }
}

namespace {

/// The present input, in a file that stays if the process dies.
class TryingFile {
public:
  explicit TryingFile(const std::string &path) {
    if (path.empty())
      return;
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, kBytes) != 0) {
      std::perror(path.c_str());
      std::exit(2);
    }
    void *memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED)
      memory_ = static_cast<uint8_t *>(memory);
  }

  void put(const Input &input) {
    if (memory_ == nullptr)
      return;
    uint64_t size = input.size();
    std::memcpy(memory_, &size, sizeof size);
    std::copy(input.begin(), input.end(), memory_ + sizeof size);
  }

private:
  static constexpr size_t kBytes = kLargestInput + sizeof(uint64_t);
  uint8_t *memory_ = nullptr;
};

size_t below(Random &random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

// Numbers at which something begins or ends.
uint64_t odd_number(Random &random) {
  static constexpr uint64_t kOdd[] = {0,
                                      1,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fff,
                                      0xffff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      ~uint64_t{0} >> 1,
                                      ~uint64_t{0}};
  return random() % 4 == 0 ? random() : kOdd[below(random, std::size(kOdd))];
}

void change_once(Input &input, const std::vector<Input> &pool, Random &random) {
  size_t at = below(random, input.size());
  size_t length = std::min<size_t>(1 + below(random, 16), input.size() - at);
  auto place = input.begin() + static_cast<ptrdiff_t>(at);
  switch (random() % 8) {
  case 0: // one bit
    if (!input.empty())
      input[at] ^= static_cast<uint8_t>(1u << random() % 8);
    break;
  case 1: // one byte
    if (!input.empty())
      input[at] = static_cast<uint8_t>(random());
    break;
  case 2: // a number
  case 3: {
    uint64_t number = odd_number(random);
    size_t width = std::min<size_t>(size_t{1} << random() % 4, input.size() - at);
    if (width > 0)
      std::memcpy(input.data() + at, &number, width);
    break;
  }
  case 4: // without some bytes
    input.erase(place, place + static_cast<ptrdiff_t>(length));
    break;
  case 5: { // some bytes twice
    Input copy(place, place + static_cast<ptrdiff_t>(length));
    input.insert(place, copy.begin(), copy.end());
    break;
  }
  case 6: // the end
    if (random() % 4 == 0)
      input.resize(at);
    break;
  default: { // some bytes of another input
    const Input &other = pool[below(random, pool.size())];
    size_t from = below(random, other.size());
    size_t count = std::min<size_t>(below(random, 64), other.size() - from);
    input.insert(place, other.begin() + static_cast<ptrdiff_t>(from),
                 other.begin() + static_cast<ptrdiff_t>(from + count));
  }
  }
}

Input changed(const std::vector<Input> &pool, Random &random) {
  // The newest half as often as all others: they led to new code.
  size_t first = random() % 2 == 0 ? pool.size() / 2 : 0;
  Input input = pool[first + below(random, pool.size() - first)];
  for (size_t n = 1 + below(random, 6); n > 0; --n)
    change_once(input, pool, random);
  input.resize(std::min(input.size(), kLargestInput));
  return input;
}

void read(const Input &input, TryingFile &trying) {
  trying.put(input);
  itimerval limit{};
  limit.it_value.tv_sec = kSecondsPerInput;
  setitimer(ITIMER_PROF, &limit, nullptr); // ends the process
  // Exactly as long as the input, so that a sanitizer sees a byte read behind it.
  std::unique_ptr<uint8_t[]> exact(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), exact.get());
  previous_block = 0;
  is_watching = true;
  LLVMFuzzerTestOneInput(exact.get(), input.size());
  is_watching = false;
}

void add_file(std::vector<Input> &pool, const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  Input input{std::istreambuf_iterator<char>(file), {}};
  input.resize(std::min(input.size(), kLargestInput));
  pool.push_back(std::move(input));
}

/// The files of a folder in the order of their names, so that a seed means the same everywhere.
void add(std::vector<Input> &pool, const std::filesystem::path &path) {
  if (!std::filesystem::is_directory(path))
    return add_file(pool, path);
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    if (entry.is_regular_file())
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto &file : files)
    add_file(pool, file);
}

void keep(const Input &input, const std::string &folder) {
  if (folder.empty())
    return;
  uint64_t hash = 14695981039346656037u; // FNV-1a
  for (uint8_t byte : input)
    hash = (hash ^ byte) * 1099511628211u;
  char name[20];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  std::ofstream(std::filesystem::path(folder) / name, std::ios::binary)
      .write(reinterpret_cast<const char *>(input.data()),
             static_cast<std::streamsize>(input.size()));
}

struct Options {
  uint64_t attempts = 0;
  uint64_t seed = 1;
  std::string kept;
  std::string trying;
  std::vector<Input> pool;
};

Options options_of(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!word.starts_with("--")) {
      add(options.pool, argv[i]);
      continue;
    }
    ++i;
    if (word == "--attempts")
      options.attempts = std::strtoull(value, nullptr, 10);
    else if (word == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (word == "--kept")
      options.kept = value;
    else if (word == "--trying")
      options.trying = value;
  }
  if (!options.kept.empty())
    add(options.pool, options.kept);
  return options;
}

} // namespace

int main(int argc, char **argv) {
  Options options = options_of(argc, argv);
  std::vector<Input> &pool = options.pool;
  if (pool.empty()) {
    std::fprintf(stderr, "%s: give files or folders to begin with\n", argv[0]);
    return 2;
  }
  TryingFile trying(options.trying);
  for (const Input &input : pool)
    read(input, trying);
  Random random(options.seed);
  for (uint64_t attempt = 0; attempt < options.attempts; ++attempt) {
    Input input = changed(pool, random);
    size_t before = new_edges;
    read(input, trying);
    if (new_edges == before)
      continue;
    keep(input, options.kept);
    pool.push_back(std::move(input));
  }
  std::printf("%llu inputs, %zu edges\n",
              static_cast<unsigned long long>(pool.size() + options.attempts), new_edges);
  return 0;
}
