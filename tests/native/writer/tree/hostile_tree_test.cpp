// Extreme trees: names of any bytes, extreme depth, a million nodes.
#include <random>

#include "check.h"
#include "writer/bytes/msgpack_reader.h"
#include "writer/tree/proton_writer.h"
#include "writer/tree/sample_tree.h"

using namespace proton;

namespace {

std::string encode(const CallPathTree &tree) {
  FileFacts facts;
  facts.dropped[std::string("reason \xFF\0", 9)] = UINT64_MAX;
  return encode_profile(tree, sample::one_gpu(), facts, FileFormat::kProton);
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
  CHECK(msgpack::parse(encode(tree)).type == msgpack::Value::Type::kMap);
}

TEST(a_name_of_a_megabyte_is_kept) {
  CallPathTree tree;
  std::string name(1 << 20, 'n');
  tree.metrics().add(sample::scope(tree, kRootNode, name), name, Aggregation::kInclusive, 1.0);
  CHECK(encode(tree).find(name) != std::string::npos);
}

TEST(ten_thousand_levels_are_written) {
  CallPathTree tree;
  NodeIndex deepest = sample::chain(tree, 10'000);
  tree.metrics().add(deepest, "time (ns)", Aggregation::kInclusive, int64_t{4711});
  CHECK_EQ(msgpack::parse(encode(tree))["rows"].integer, 10'001);
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
  CHECK_EQ(msgpack::parse(encode(tree))["rows"].integer, kNodes);
}
#endif
