#include "collector/gpu/work/code_text.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>

namespace proton {
namespace {

using Class = InstructionClass;

/// How an instruction is counted: as one class, or by what its name says.
enum class Count : uint8_t { kOne, kLoad, kStore, kByType, kNot };

/// The first rule that has a prefix of an instruction decides.
struct Rule {
  std::string_view prefixes; ///< between blanks
  Count count = Count::kNot;
  Class one = {}; ///< of kOne
};

constexpr Rule one(std::string_view prefixes, Class one) { return {prefixes, Count::kOne, one}; }

// "Instruction Set" of the PTX ISA. A prefix ends where a part of the name does.
constexpr Rule kPtx[] = {
    {"ld ldu ldmatrix wmma.load multimem.ld_reduce", Count::kLoad},
    {"st stmatrix wmma.store multimem.st", Count::kStore},
    one("tex tld4 suld", Class::kGlobalLoad),
    one("sust", Class::kGlobalStore),
    one("atom red sured multimem.red", Class::kAtomic),
    {"cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.mbarrier"},
    {"cp.async.bulk.commit_group cp.async.bulk.wait_group cp.async.bulk.prefetch"},
    one("cp.async cp.reduce.async multimem.cp", Class::kAsyncCopy),
    one("mma wmma.mma wgmma.mma_async tcgen05.mma", Class::kMma),
    one("tcgen05.ld tcgen05.st tcgen05.cp tcgen05.shift", Class::kTensorMemory),
    one("ex2 lg2 sin cos tanh rcp sqrt rsqrt", Class::kSpecial),
    one("cvt", Class::kConversion),
    one("shfl movmatrix vote match redux", Class::kShuffle),
    one("bar barrier mbarrier", Class::kBarrier),
    one("bra brx call", Class::kBranch),
    {"add addc sub subc mul mul24 mad mad24 madc fma div rem abs neg min max sad", Count::kByType},
    {"testp copysign set setp selp slct and or xor not cnot lop3 shl shr shf prmt", Count::kByType},
    {"popc clz bfind brev bfe bfi fns bmsk szext dp4a dp2a", Count::kByType},
};

// The ISA documents of CDNA 3 and RDNA 3, and "AMDGPU Instruction Syntax" of LLVM.
constexpr Rule kAmdGcn[] = {
    one("global_load_lds_ global_load_async_ tensor_load_ tensor_store_", Class::kAsyncCopy),
    one("global_load_ flat_load_ buffer_load_", Class::kGlobalLoad),
    one("global_store_ flat_store_ buffer_store_", Class::kGlobalStore),
    one("scratch_load_", Class::kLocalLoad),
    one("scratch_store_", Class::kLocalStore),
    one("ds_read ds_load_", Class::kSharedLoad),
    one("ds_write ds_store_", Class::kSharedStore),
    one("ds_permute_ ds_bpermute_ ds_swizzle_", Class::kShuffle),
    {"ds_nop"},
    one("global_atomic_ flat_atomic_ buffer_atomic_ ds_", Class::kAtomic),
    one("v_mfma_ v_smfmac_ v_wmma_ v_swmmac_", Class::kMma),
    one("v_exp_ v_log_ v_sin_ v_cos_ v_tanh_ v_rcp_ v_rsq_ v_sqrt_", Class::kSpecial),
    one("v_cvt_", Class::kConversion),
    one("v_permlane", Class::kShuffle),
    one("s_barrier", Class::kBarrier),
    one("s_cbranch_ s_branch s_setpc_ s_swappc_ s_call_", Class::kBranch),
    {"v_mov_ v_dual_mov_ v_accvgpr_ v_readlane_ v_readfirstlane_ v_writelane_ s_mov_"},
    {"s_load_ s_buffer_load_"},
    {"v_ s_", Count::kByType},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_name(char c) { return is_letter(c) || is_digit(c) || c == '$' || c == '%'; }

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// Whether a visitor returns true for a part of the text between separators.
template <typename Visit> bool any_part(std::string_view text, char separator, Visit visit) {
  for (;;) {
    size_t end = text.find(separator);
    if (visit(text.substr(0, end)))
      return true;
    if (end == std::string_view::npos)
      return false;
    text.remove_prefix(end + 1);
  }
}

bool is_integer_type(std::string_view part) {
  return part == "pred" || (part.size() > 1 && std::string_view("subi").find(part[0]) < 4 &&
                            std::all_of(part.begin() + 1, part.end(), is_digit));
}

/// The class of arithmetic by the widest type in its name.
std::optional<Class> class_by_type(std::string_view name, char separator) {
  std::optional<Class> found;
  auto widen = [&](Class to) { found = found ? std::min(*found, to) : to; };
  any_part(name, separator, [&](std::string_view part) {
    if (part == "f64")
      widen(Class::kFp64);
    else if (is_one_of(part, {"f32", "f32x2", "tf32"}))
      widen(Class::kFp32);
    else if (is_one_of(part, {"f16", "f16x2", "bf16", "bf16x2"}))
      widen(Class::kFp16);
    else if (is_integer_type(part))
      widen(Class::kInteger);
    return false;
  });
  return found;
}

/// The class of an access by the state space in its name; generic addresses count as global ones.
std::optional<Class> class_by_space(std::string_view name, Class global, Class shared,
                                    Class local) {
  std::optional<Class> found = global;
  any_part(name, '.', [&](std::string_view part) {
    if (part.starts_with("shared"))
      found = shared;
    else if (part == "local")
      found = local;
    else if (part.starts_with("param") || part == "const")
      found.reset();
    else
      return false;
    return true;
  });
  return found;
}

class Counter {
public:
  Counter(std::span<const Rule> rules, char separator) : rules_(rules), separator_(separator) {}

  void add(std::string_view name) {
    auto [known, is_new] = classes_.try_emplace(name);
    if (is_new)
      known->second = class_of(name);
    if (known->second)
      ++mix_[static_cast<size_t>(*known->second)];
  }
  void add(Class one) { ++mix_[static_cast<size_t>(one)]; }
  const InstructionMix &mix() const { return mix_; }

private:
  bool has_prefix(std::string_view name, std::string_view prefix) const {
    if (!name.starts_with(prefix))
      return false;
    return separator_ != '.' || name.size() == prefix.size() || name[prefix.size()] == '.';
  }
  std::optional<Class> class_of(std::string_view name) const {
    auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const Rule &each) {
      return any_part(each.prefixes, ' ',
                      [&](std::string_view prefix) { return has_prefix(name, prefix); });
    });
    if (rule == rules_.end())
      return {};
    switch (rule->count) {
    case Count::kOne:
      return rule->one;
    case Count::kLoad:
      return class_by_space(name, Class::kGlobalLoad, Class::kSharedLoad, Class::kLocalLoad);
    case Count::kStore:
      return class_by_space(name, Class::kGlobalStore, Class::kSharedStore, Class::kLocalStore);
    case Count::kByType:
      return class_by_type(name, separator_);
    case Count::kNot:
      break;
    }
    return {};
  }

  std::span<const Rule> rules_;
  char separator_;
  std::unordered_map<std::string_view, std::optional<Class>> classes_; ///< a text has few names
  InstructionMix mix_{};
};

/// Statements of PTX: labels, directives, and instructions up to their semicolon.
class PtxReader {
public:
  explicit PtxReader(std::string_view text) : text_(text) {}

  InstructionMix read() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (skip_comment() || skip_string())
        continue;
      if (c == '.')
        skip_directive();
      else if (c == '@')
        skip_guard();
      else if (is_of_name(c))
        read_statement();
      else
        ++at_;
    }
    return counter_.mix();
  }

private:
  bool is_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  void skip_to(std::string_view what, size_t more) {
    size_t found = text_.find(what, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + more;
  }
  bool skip_comment() {
    if (is_at("//"))
      skip_to("\n", 0);
    else if (is_at("/*"))
      skip_to("*/", 2);
    else
      return false;
    return true;
  }
  bool skip_string() {
    if (text_[at_] != '"')
      return false;
    at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
    return true;
  }
  /// Up to the first of these characters outside of comments and texts.
  void skip_until(std::string_view ends) {
    while (at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos)
      if (!skip_comment() && !skip_string())
        ++at_;
  }
  // Many end with their line. Further lines of others do not begin as an instruction does.
  void skip_directive() { skip_until("\n;{"); }
  std::string_view take_name() {
    size_t begin = at_;
    while (at_ < text_.size() && is_of_name(text_[at_]))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }
  void skip_guard() {
    ++at_;
    while (at_ < text_.size() && (text_[at_] == '!' || text_[at_] == ' '))
      ++at_;
    take_name();
  }
  void read_statement() {
    size_t begin = at_;
    take_name();
    if (is_at(":") && !is_at("::")) { // a label
      ++at_;
      return;
    }
    while (at_ < text_.size() && (is_of_name(text_[at_]) || text_[at_] == '.' || text_[at_] == ':'))
      ++at_;
    counter_.add(text_.substr(begin, at_ - begin));
    skip_until(";");
  }

  std::string_view text_;
  size_t at_ = 0;
  Counter counter_{kPtx, '.'};
};

/// A line of the assembly without its comment and the blanks around it.
std::string_view gcn_line(std::string_view line) {
  for (std::string_view comment : {";", "//"})
    line = line.substr(0, line.find(comment));
  size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

InstructionMix count_gcn(std::string_view text) {
  Counter counter(kAmdGcn, '_');
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = gcn_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty()) {
      std::string_view name = line.substr(0, line.find_first_of(" \t"));
      if (name.starts_with("buffer_load_") && line.ends_with(" lds"))
        counter.add(Class::kAsyncCopy);
      else if (!name.ends_with(':'))
        counter.add(name);
      size_t second = line.find(":: "); // of two that are issued at once
      line = second == std::string_view::npos ? "" : gcn_line(line.substr(second + 3));
    }
  }
  return counter.mix();
}

} // namespace

InstructionMix count_instructions(std::string_view text, CodeLanguage language) {
  return language == CodeLanguage::kPtx ? PtxReader(text).read() : count_gcn(text);
}

} // namespace proton
