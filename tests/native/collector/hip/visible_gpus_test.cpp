#include "collector/hip/hip_devices.h"

#include "check.h"

using namespace proton;

namespace {

const std::vector<GpuIdentity> kGpus = {{"GPU-00000000000000aa", "0000:05:00.0"},
                                        {"GPU-00000000000000bb", "0000:15:00.0"},
                                        {"GPU-00000000000000cc", "0000:25:00.0"}};

std::string listed(const std::vector<int> &ordinals) {
  std::string text;
  for (int ordinal : ordinals)
    text += std::to_string(ordinal) + " ";
  return text;
}

std::string by_variables(const char *rocr, const char *hip) {
  return listed(ordinals_by_variables(kGpus, {rocr, hip}));
}

} // namespace

TEST(without_variables_all_gpus_are_there_in_their_order) {
  CHECK_EQ(by_variables("", ""), "0 1 2 ");
}

TEST(indices_hide_and_reorder) {
  CHECK_EQ(by_variables("2,0", ""), "1 -1 0 ");
  CHECK_EQ(by_variables("", " 1 , 2 "), "-1 0 1 ");
}

TEST(indices_of_the_second_variable_count_what_the_first_left) {
  CHECK_EQ(by_variables("2,0", "1"), "0 -1 -1 ");
}

TEST(uuids_name_gpus_in_both) {
  CHECK_EQ(by_variables("GPU-00000000000000cc,GPU-00000000000000aa", "1"), "0 -1 -1 ");
  CHECK_EQ(by_variables("1,2", "GPU-00000000000000cc"), "-1 -1 0 ");
}

TEST(a_word_that_names_no_gpu_ends_the_list) {
  CHECK_EQ(by_variables("1,7,2", ""), "-1 0 -1 ");
  CHECK_EQ(by_variables("1,x", "0"), "-1 0 -1 ");
  CHECK_EQ(by_variables("1,1,2", ""), "-1 0 -1 ");
  CHECK_EQ(by_variables("-1", ""), "-1 -1 -1 ");
}

TEST(what_hip_says_of_its_devices_goes_first) {
  CHECK_EQ(listed(ordinals_by_identity(kGpus, {kGpus[2], kGpus[0]})), "1 -1 0 ");
}

TEST(places_on_the_bus_tell_gpus_apart_where_uuids_do_not) {
  std::vector<GpuIdentity> without = kGpus;
  for (GpuIdentity &gpu : without)
    gpu.uuid = "GPU-XX";
  CHECK_EQ(listed(ordinals_by_identity(without, {without[1]})), "-1 0 -1 ");
  for (GpuIdentity &gpu : without)
    gpu.pci = "0000:05:00.0"; // parts of one GPU
  CHECK_EQ(listed(ordinals_by_identity(without, {without[1]})), "");
}
