#include "tools/workload/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "tools/workload/bucketing.h"

namespace weft::tools {
namespace {

using collectives::Collective;

constexpr const char* kHeader =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n";

std::string row(std::string_view kind, std::string_view ranks, std::string_view bytes, std::string_view stage,
                std::string_view count = "1") {
  std::string line = "CommType.";
  line.append(kind).append(",CommGroup.dp_group,").append(ranks).append(",").append(bytes).append(",");
  return line.append(stage).append(",None,None,,None,None,None,").append(count).append("\n");
}

std::vector<std::uint64_t> sizes(const std::vector<Bucket>& buckets) {
  std::vector<std::uint64_t> sizes;
  for (const Bucket& bucket : buckets) sizes.push_back(bucket.size_bytes);
  return sizes;
}

std::string message_of(const Result<Workload>& result) { return result ? "no error" : result.error().message(); }

TEST(Bucketing, ClosesABucketThatReachedItsCap) {
  const std::vector<std::uint64_t> tensors = {7, 3, 3, 4, 2, 10};
  const auto buckets = pack(tensors, {.first_bytes = 10, .cap_bytes = 6, .order = Bucketing::Order::reverse});
  EXPECT_EQ(sizes(buckets), (std::vector<std::uint64_t>{10, 6, 6, 7}));
  EXPECT_EQ(buckets[1].tensors, (std::vector<std::size_t>{4, 3}));
}

TEST(Bucketing, LetsTheLastTensorExceedTheCap) {
  const auto buckets = pack(std::vector<std::uint64_t>{1, 100, 1, 1}, {5, 5, Bucketing::Order::forward});
  EXPECT_EQ(sizes(buckets), (std::vector<std::uint64_t>{101, 2}));
}

TEST(Bucketing, OfNothingIsNothing) { EXPECT_TRUE(pack({}, {}).empty()); }

// The expected sizes were computed by PyTorch 1.13 (torch.distributed._compute_bucket_assignment_by_size).
TEST(Workloads, Resnet50HasTheBucketsOfPyTorch) {
  const auto workload = read_workload(std::string(WEFT_SOURCE_DIR) + "/workloads/resnet50.json");
  ASSERT_TRUE(workload) << message_of(workload);
  std::vector<std::uint64_t> found;
  for (const Operation& operation : workload->operations) found.push_back(operation.size_bytes);
  EXPECT_EQ(found, (std::vector<std::uint64_t>{8196000, 31502336, 26255360, 26550272, 9724160}));
  EXPECT_EQ(workload->type, device::DataType::f32);
  EXPECT_EQ(workload->operations[0].stage, "bucket 0: fc.bias .. fc.weight");
  EXPECT_EQ(workload->operations[0].group_size, std::nullopt);
}

TEST(Workloads, Gpt2HasTheBucketsOfPyTorch) {
  const auto workload = read_workload(std::string(WEFT_SOURCE_DIR) + "/workloads/gpt2_small.json");
  ASSERT_TRUE(workload) << message_of(workload);
  ASSERT_EQ(workload->operations.size(), 13U);
  EXPECT_EQ(workload->operations.front().size_bytes, 9446400U);
  EXPECT_EQ(workload->operations.back().size_bytes, 176446464U);
  std::uint64_t total = 0;
  for (const Operation& operation : workload->operations) total += operation.size_bytes;
  EXPECT_EQ(total, 124439808U * 4);
}

TEST(JsonWorkload, DefaultsToPyTorchsBucketing) {
  const auto workload = parse_json_workload(
      R"({"schema":"weft-workload-1","name":"two","type":"f16","tensors":[{"name":"a","shape":[]},
          {"name":"b","shape":[600000]}, {"name":"c","shape":[0, 5]}]})",
      "two.json");
  ASSERT_TRUE(workload) << message_of(workload);
  ASSERT_EQ(workload->operations.size(), 2U);
  EXPECT_EQ(workload->operations[0].size_bytes, 1200000U);
  EXPECT_EQ(workload->operations[1], (Operation{Collective::all_reduce, std::nullopt, 2, "bucket 1: a", 1}));
}

struct Wrong {
  const char* text;
  const char* expected;
};

TEST(JsonWorkload, NamesThePlaceOfWhatIsWrong) {
  const Wrong cases[] = {
      {"{\"schema\":\n  nope}", "w.json:2:"},
      {"{\"schema\":\"weft-workload-1\"", "cut short"},
      {"{} x", "w.json:1:4: not JSON: something follows"},
      {"{}", "schema: is missing"},
      {R"({"schema":"weft-workload-2"})", "schema: is \"weft-workload-2\""},
      {R"({"schema":"weft-workload-1","name":"n","type":"f31"})", "type: \"f31\" is no element type"},
      {R"({"schema":"weft-workload-1","name":"n","type":"f32"})", "tensors: is not an array"},
      {R"({"schema":"weft-workload-1","name":"n","type":"f32","tensors":[{"name":"a"}]})",
       "tensors[0].shape: is missing"},
      {R"({"schema":"weft-workload-1","name":"n","type":"f32","tensors":[{"name":"a","shape":[2,-1]}]})",
       "tensors[0].shape[1]: is not a whole number"},
      {R"({"schema":"weft-workload-1","name":"n","type":"f32","tensors":[{"name":"a","shape":[4294967296,4294967296]}]})",
       "tensors[0].shape: is larger"},
      {R"({"schema":"weft-workload-1","name":"n","type":"f32","tensors":[],"bucketing":{"order":"random"}})",
       "bucketing.order: is neither"},
      {R"({"schema":"weft-workload-1","name":"n","type":"f32","tensors":[],"bucketing":{"byte":1}})", "is not known"},
  };
  for (const Wrong& wrong : cases) {
    const auto workload = parse_json_workload(wrong.text, "w.json");
    ASSERT_FALSE(workload) << wrong.text;
    EXPECT_EQ(workload.error().code(), ErrorCode::malformed);
    EXPECT_NE(message_of(workload).find(wrong.expected), std::string::npos) << message_of(workload);
  }
}

TEST(JsonWorkload, RefusesDeepNesting) {
  EXPECT_FALSE(parse_json_workload(std::string(100000, '['), "deep"));
  EXPECT_FALSE(parse_json_workload("{\"schema\":" + std::string(100000, '['), "deep"));
}

TEST(AicbTrace, ReadsWhatRealTracesHave) {
  const auto workload = parse_aicb_trace(
      std::string("[rank0 ~ rank127]\n") + kHeader + row("all_reduce", "16", "8", "init.model_setup") +
          "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n" +
          row("reduce_scatter", "16", "6422958080", "step") + row("broadcast", "8", "17409", "forward_step", "3") +
          row("isend", "2", "64", "pipeline") + row("isend", "2", "64", "pipeline") +
          row("barrier", "128", "0", "init.__init__") + "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n",
      "dir/trace.csv");
  ASSERT_TRUE(workload) << message_of(workload);
  EXPECT_EQ(workload->name, "trace.csv");
  const std::vector<Operation> expected = {{Collective::all_reduce, 16, 8, "init.model_setup", 1},
                                           {Collective::reduce_scatter, 16, 6422958080, "step", 1},
                                           {Collective::broadcast, 8, 17409, "forward_step", 3},
                                           {Collective::barrier, 128, 0, "init.__init__", 1}};
  EXPECT_EQ(workload->operations, expected);
  EXPECT_EQ(workload->epoch_ends, (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(workload->left_out, (std::vector<LeftOut>{{"isend", 2}}));
}

TEST(AicbTrace, ToleratesOtherWritersHabits) {
  const auto workload = parse_aicb_trace(
      "\xEF\xBB\xBF\"stage\",count,msg_size,comm_type,comm_group_size\r\n\r\n"
      "\"a, \"\"b\"\"\", 2 ,4096.0,CommType.all_gather,None\r\n",
      "t");
  ASSERT_TRUE(workload) << message_of(workload);
  EXPECT_EQ(workload->operations,
            (std::vector<Operation>{{Collective::all_gather, std::nullopt, 4096, "a, \"b\"", 2}}));
}

TEST(AicbTrace, NamesLineAndColumnOfWhatIsWrong) {
  const std::string top = std::string("[rank0 ~ rank1]\n") + kHeader;
  const std::pair<std::string, const char*> cases[] = {
      {"", "t:1:1: neither"},
      {"[rank0]\n", "t:1:1: neither"},
      {"a,b\n", "t:1:1: the header of an AICB trace has a column comm_type"},
      {top + row("all_reduce", "2", "x", "s"), "t:3:42: msg_size is \"x\""},
      {top + row("all_reduce", "2", "-4", "s"), "t:3:42: msg_size is \"-4\""},
      {top + row("all_reduce", "2", "4.5", "s"), "t:3:42: msg_size is \"4.5\""},
      {top + row("all_reduce", "2", "99999999999999999999", "s"), "t:3:42: msg_size"},
      {top + row("all_reduce", "2", "None", "s"), "t:3:42: msg_size is missing"},
      {top + row("all_reduce", "0", "4", "s"), "t:3:40: comm_group_size is not from 1"},
      {top + row("all_reduce", "2", "4", "s", "many"), ": count is \"many\""},
      {top + row("all_confuse", "2", "4", "s"), "t:3:1: \"CommType.all_confuse\" is no known"},
      {top + "all_reduce,,2,4,,,,,,,,1\n", "t:3:1: comm_type is"},
      {top + "CommType.all_reduce,2\n", "t:3:21: 2 cells where the header has 12"},
      {top + "\"CommType\n", "t:3:1: a quotation mark"},
      {top + "\"a\"b,\n", "t:3:4: a comma is missing"},
  };
  for (const auto& [text, expected] : cases) {
    const auto workload = parse_aicb_trace(text, "t");
    ASSERT_FALSE(workload) << text;
    EXPECT_NE(message_of(workload).find(expected), std::string::npos) << message_of(workload) << "\n" << expected;
  }
}

TEST(Fold, MakesGroupsThatTheRanksCanForm) {
  Workload workload;
  workload.operations = {{Collective::all_reduce, 128, 100, "large", 1},
                         {Collective::all_reduce, 1, 100, "alone", 1},
                         {Collective::all_gather, 2, 100, "small", 1},
                         {Collective::all_reduce, std::nullopt, 100, "all", 1}};
  workload.epoch_ends = {0, 2, 4};
  const auto folded = fold(workload, RankCount{4});
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->operations, (std::vector<Operation>{{Collective::all_reduce, 4, 100, "large", 1},
                                                        {Collective::all_gather, 2, 100, "small", 1},
                                                        {Collective::all_reduce, 4, 100, "all", 1}}));
  EXPECT_EQ(folded->epoch_ends, (std::vector<std::size_t>{0, 1, 3}));
  const auto uneven = fold(workload, RankCount{3});
  ASSERT_FALSE(uneven);
  EXPECT_NE(uneven.error().message().find("operation 2 (all_gather, stage \"small\") has groups of 2"),
            std::string::npos)
      << uneven.error().message();
  const auto one = fold(workload, RankCount{1});
  ASSERT_TRUE(one);
}

TEST(ReadWorkload, SaysThatAFileIsMissing) {
  const auto workload = read_workload("/nowhere/workload.json");
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().code(), ErrorCode::not_found);
}

// Public traces of real jobs, where the tester has them: WEFT_TEST_TRACES is the folder with aicb/ in it.
class RealTraces : public testing::Test {
 protected:
  static Result<Workload> read(const std::string& file) {
    return read_workload(std::string(std::getenv("WEFT_TEST_TRACES")) + "/aicb/" + file);
  }
  void SetUp() override {
    if (std::getenv("WEFT_TEST_TRACES") == nullptr) GTEST_SKIP() << "WEFT_TEST_TRACES names no folder with traces";
  }
  static std::map<Collective, int> kinds(const Workload& workload) {
    std::map<Collective, int> kinds;
    for (const Operation& operation : workload.operations) ++kinds[operation.collective];
    return kinds;
  }
};

TEST_F(RealTraces, Gpt13b) {
  const auto workload = read("G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv");
  ASSERT_TRUE(workload) << message_of(workload);
  EXPECT_EQ(kinds(*workload), (std::map<Collective, int>{{Collective::all_reduce, 172},
                                                         {Collective::all_gather, 3},
                                                         {Collective::broadcast, 3},
                                                         {Collective::reduce_scatter, 1}}));
  EXPECT_EQ(workload->epoch_ends.size(), 2U);
  std::set<std::uint64_t> distinct;
  for (const Operation& operation : workload->operations) distinct.insert(operation.size_bytes);
  EXPECT_EQ(*distinct.rbegin(), 6422958080U);
  EXPECT_EQ(std::count_if(distinct.begin(), distinct.end(), [](auto size) { return size > (1ULL << 31); }), 2);
  EXPECT_TRUE(fold(*workload, RankCount{16}));
  EXPECT_TRUE(fold(*workload, RankCount{2}));
}

TEST_F(RealTraces, Llama7b) {
  const auto workload = read("L7B-D1-C01_Llama7B_zero2_mbs1.csv");
  ASSERT_TRUE(workload) << message_of(workload);
  EXPECT_EQ(kinds(*workload), (std::map<Collective, int>{{Collective::broadcast, 291},
                                                         {Collective::all_reduce, 8},
                                                         {Collective::all_gather, 6},
                                                         {Collective::barrier, 1}}));
  EXPECT_EQ(std::count_if(workload->operations.begin(), workload->operations.end(),
                          [](const Operation& operation) { return operation.size_bytes % 4 != 0; }),
            1);
  EXPECT_EQ(std::count_if(workload->operations.begin(), workload->operations.end(),
                          [](const Operation& operation) { return operation.size_bytes > (1ULL << 31); }),
            6);
}

}  // namespace
}  // namespace weft::tools
