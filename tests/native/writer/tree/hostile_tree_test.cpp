// Extreme trees: names of any bytes, extreme depth, a million nodes.
#include <random>

#include "check.h"
#include "writer/bytes/msgpack_reader.h"
#include "writer/tree/profile_writer.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

namespace {

constexpr FileFormat kFormats[] = {FileFormat::kProton, FileFormat::kHatchet,
                                   FileFormat::kHatchetCompact, FileFormat::kHatchetMsgpack};

std::string encode(const CallPathTree &tree, FileFormat format) {
  FileFacts facts;
  facts.dropped[std::string("reason \xFF\0", 9)] = UINT64_MAX;
  return encode_profile(tree, sample::one_gpu(), facts, format);
}

// A strict decoder: overlong forms, surrogates and values past U+10FFFF are refused.
bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i++]);
    int more = lead < 0x80   ? 0
               : lead < 0xC2 ? -1
               : lead < 0xE0 ? 1
               : lead < 0xF0 ? 2
               : lead < 0xF5 ? 3
                             : -1;
    if (more < 0)
      return false;
    uint32_t value = more == 0 ? lead : lead & (0x3Fu >> more);
    for (int k = 0; k < more; ++k) {
      if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80)
        return false;
      value = value << 6 | (static_cast<unsigned char>(text[i++]) & 0x3Fu);
    }
    bool is_overlong = (more == 2 && value < 0x800) || (more == 3 && value < 0x10000);
    if (is_overlong || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      return false;
  }
  return true;
}

bool has_raw_control(std::string_view text) {
  for (char byte : text)
    if (static_cast<unsigned char>(byte) < 0x20 && byte != '\n')
      return true;
  return false;
}

std::string random_name(std::mt19937 &random) {
  static const std::string kPieces[] = {
      "\"",        "\\",       "\n",           std::string(1, '\0'),
      "\xFF",      "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
      "\xC3",      "ä",        "\x7F",         "[/bold]",
      "</script>", "\u2028",   "(inc)",        "ROOT",
      "\x1B[31m"};
  std::string name;
  for (size_t pieces = random() % 8; pieces != 0; --pieces)
    name += random() % 2 == 0 ? kPieces[random() % std::size(kPieces)]
                              : std::string(1, static_cast<char>(random()));
  return name;
}

} // namespace

TEST(names_of_any_bytes_give_valid_files) {
  std::mt19937 random(7);
  CallPathTree tree;
  for (int i = 0; i < 3000; ++i) {
    auto parent = static_cast<NodeIndex>(random() % tree.nodes().size());
    NodeIndex node = tree.child(parent, Name(random_name(random)), FrameKind::kScope);
    if (i % 50 == 0)
      tree.metrics().add(node, random_name(random), Aggregation::kInclusive, int64_t{i});
  }
  for (FileFormat format : kFormats) {
    std::string file = encode(tree, format);
    bool is_json = format == FileFormat::kHatchet || format == FileFormat::kHatchetCompact;
    CHECK(is_json ? is_utf8(file) && !has_raw_control(file)
                  : msgpack::parse(file).type != msgpack::Value::Type::kNil);
  }
}

TEST(a_name_of_a_megabyte_is_kept_in_every_format) {
  CallPathTree tree;
  std::string name(1 << 20, 'n');
  tree.metrics().add(sample::scope(tree, kRootNode, name), name, Aggregation::kInclusive, 1.0);
  for (FileFormat format : kFormats)
    CHECK(encode(tree, format).find(name) != std::string::npos);
}

TEST(ten_thousand_levels_are_written_in_every_format) {
  CallPathTree tree;
  NodeIndex deepest = sample::chain(tree, 10'000);
  tree.metrics().add(deepest, "time (ns)", Aggregation::kInclusive, int64_t{4711});
  for (FileFormat format : kFormats)
    CHECK(encode(tree, format).size() > 4711);
  CHECK_EQ(msgpack::parse(encode(tree, FileFormat::kProton))["rows"].integer, 10'001);
}

#ifndef __SANITIZE_THREAD__ // one thread: nothing to find, and ten times as slow
TEST(a_million_nodes_are_written) {
  constexpr NodeIndex kNodes = 1'000'000;
  CallPathTree tree;
  Name names[] = {Name("a"), Name("b"), Name("c"), Name("d")};
  size_t time = tree.metrics().builtin("time (ns)", Aggregation::kInclusive);
  for (NodeIndex i = 1; i < kNodes; ++i) {
    NodeIndex node = tree.child((i - 1) / 4, names[i % 4], FrameKind::kScope);
    tree.metrics().add_int(time, node, i);
  }
  CHECK_EQ(tree.nodes().size(), kNodes);
  CHECK_EQ(msgpack::parse(encode(tree, FileFormat::kProton))["rows"].integer, kNodes);
  CHECK(encode(tree, FileFormat::kHatchetMsgpack).size() > kNodes);
}
#endif
