#include "bootstrap/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/log.h"
#include "bootstrap/launchers.h"
#include "bootstrap/secret_source.h"
#include "bootstrap/session.h"
#include "job_fixture.h"

namespace weft::bootstrap::testing {
namespace {

const std::string kSecretText(64, '5');

Result<Identity> identify_from(const Variables& variables) {
  return identify(settings_of(variables), lookup_of(variables));
}

struct GoodCase {
  const char* name;
  Variables variables;
  std::uint32_t rank;
  std::uint32_t size;
  std::uint32_t local_rank;
  std::uint32_t local_size;
  const char* address;
  const char* source;
};

class GoodEnvironments : public ::testing::TestWithParam<GoodCase> {};

TEST_P(GoodEnvironments, AreUnderstood) {
  const GoodCase& wanted = GetParam();
  const auto identity = identify_from(wanted.variables);
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_EQ(identity->rank, Rank{wanted.rank});
  EXPECT_EQ(identity->size, wanted.size);
  EXPECT_EQ(identity->local_rank, wanted.local_rank);
  EXPECT_EQ(identity->local_size, wanted.local_size);
  EXPECT_EQ(identity->address, wanted.address);
  EXPECT_EQ(identity->source, wanted.source);
}

INSTANTIATE_TEST_SUITE_P(
    Table, GoodEnvironments,
    ::testing::Values(
        GoodCase{"nothing", {}, 0, 1, 0, 1, "", "no launcher"},
        GoodCase{"weft",
                 {{"WEFT_RANK", "2"},
                  {"WEFT_SIZE", "4"},
                  {"WEFT_LOCAL_RANK", "0"},
                  {"WEFT_LOCAL_SIZE", "2"},
                  {"WEFT_ADDRESS", " node7:29400 "},
                  {"WEFT_SECRET", kSecretText}},
                 2,
                 4,
                 0,
                 2,
                 "node7:29400",
                 "WEFT_*"},
        GoodCase{"weft_before_others",
                 {{"WEFT_RANK", "1"},
                  {"WEFT_SIZE", "2"},
                  {"WEFT_ADDRESS", "127.0.0.1:1"},
                  {"RANK", "5"},
                  {"WORLD_SIZE", "9"},
                  {"OMPI_COMM_WORLD_RANK", "x"}},
                 1,
                 2,
                 0,
                 1,
                 "127.0.0.1:1",
                 "WEFT_*"},
        GoodCase{"torchrun",
                 {{"RANK", "3"},
                  {"WORLD_SIZE", "4"},
                  {"LOCAL_RANK", "1"},
                  {"LOCAL_WORLD_SIZE", "2"},
                  {"MASTER_ADDR", " 10.0.5.4"},
                  {"MASTER_PORT", "29500"},
                  {"WEFT_SECRET", kSecretText}},
                 3,
                 4,
                 1,
                 2,
                 "10.0.5.4:29500",
                 "torchrun"},
        GoodCase{"torchrun_whose_agent_holds_the_port",
                 {{"RANK", "0"},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", "29500"},
                  {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
                 0,
                 2,
                 0,
                 1,
                 "127.0.0.1:29501",
                 "torchrun"},
        GoodCase{"torchrun_over_ipv6",
                 {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "29500"}},
                 0,
                 2,
                 0,
                 1,
                 "[::1]:29500",
                 "torchrun"},
        GoodCase{"open_mpi",
                 {{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                  {"PMIX_RANK", "1"},
                  {"WEFT_ADDRESS", "localhost:29400"}},
                 1,
                 2,
                 1,
                 2,
                 "localhost:29400",
                 "Open MPI"},
        GoodCase{"mpich",
                 {{"PMI_RANK", "1"},
                  {"PMI_SIZE", "3"},
                  {"MPI_LOCALRANKID", "1"},
                  {"MPI_LOCALNRANKS", "3"},
                  {"WEFT_ADDRESS", "[::1]:29400"}},
                 1,
                 3,
                 1,
                 3,
                 "[::1]:29400",
                 "PMI (MPICH)"},
        GoodCase{"slurm",
                 {{"SLURM_PROCID", "5"},
                  {"SLURM_NTASKS", "6"},
                  {"SLURM_LOCALID", "1"},
                  {"SLURM_NODEID", "2"},
                  {"SLURM_TASKS_PER_NODE", "2(x3)"},
                  {"MASTER_ADDR", "node0"},
                  {"MASTER_PORT", "4000"},
                  {"WEFT_SECRET", kSecretText}},
                 5,
                 6,
                 1,
                 2,
                 "node0:4000",
                 "Slurm"},
        GoodCase{"a_slurm_allocation_is_no_launch", {{"SLURM_NTASKS", "8"}}, 0, 1, 0, 1, "", "no launcher"},
        GoodCase{"one_rank", {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "x"}}, 0, 1, 0, 1, "", "torchrun"}),
    [](const auto& tested) { return tested.param.name; });

struct BadCase {
  const char* name;
  Variables variables;
  ErrorCode code;
  std::vector<const char*> parts;
};

class BadEnvironments : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadEnvironments, AreErrorsThatNameTheVariable) {
  const auto identity = identify_from(GetParam().variables);
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code(), GetParam().code) << identity.error().message();
  for (const char* part : GetParam().parts) EXPECT_TRUE(contains(identity.error(), part)) << identity.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadEnvironments,
    ::testing::Values(
        BadCase{"only_rank", {{"WEFT_RANK", "1"}}, ErrorCode::invalid_argument, {"WEFT_RANK is set", "WEFT_SIZE"}},
        BadCase{"only_size", {{"WORLD_SIZE", "4"}}, ErrorCode::invalid_argument, {"WORLD_SIZE is set", "RANK is not"}},
        BadCase{
            "open_mpi_in_part", {{"OMPI_COMM_WORLD_SIZE", "4"}}, ErrorCode::invalid_argument, {"OMPI_COMM_WORLD_RANK"}},
        BadCase{"not_a_number", {{"PMI_RANK", "one"}, {"PMI_SIZE", "2"}}, ErrorCode::malformed, {"PMI_RANK=\"one\""}},
        BadCase{"negative", {{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, ErrorCode::malformed, {"RANK"}},
        BadCase{"rank_too_large",
                {{"RANK", "2"}, {"WORLD_SIZE", "2"}},
                ErrorCode::invalid_argument,
                {"RANK=2", "WORLD_SIZE=2"}},
        BadCase{"local_rank_too_large",
                {{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_LOCAL_RANK", "3"}, {"WEFT_LOCAL_SIZE", "2"}},
                ErrorCode::invalid_argument,
                {"local rank 3 of 2"}},
        BadCase{"no_address",
                {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
                ErrorCode::invalid_argument,
                {"WEFT_ADDRESS", "Open MPI"}},
        BadCase{"half_an_address",
                {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}},
                ErrorCode::invalid_argument,
                {"MASTER_PORT is not"}},
        BadCase{"no_port",
                {{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_ADDRESS", "node7"}},
                ErrorCode::malformed,
                {"WEFT_ADDRESS", "no port"}},
        BadCase{"port_zero",
                {{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_ADDRESS", "127.0.0.1:0"}},
                ErrorCode::invalid_argument,
                {"port 0"}},
        BadCase{"no_secret",
                {{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_ADDRESS", "node7:1"}},
                ErrorCode::invalid_argument,
                {"WEFT_SECRET", "node7:1"}}),
    [](const auto& tested) { return tested.param.name; });

TEST(Identity, LoopbackSecretsDependOnAddressAndJob) {
  const auto secret_of = [](const char* address, const char* job) {
    return identify_from({{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_ADDRESS", address}, {"WEFT_JOB", job}})
        ->secret;
  };
  EXPECT_EQ(secret_of("127.0.0.1:1", "a"), secret_of("127.0.0.1:1", "a"));
  EXPECT_FALSE(secret_of("127.0.0.1:1", "a") == secret_of("127.0.0.1:1", "b"));
  EXPECT_FALSE(secret_of("127.0.0.1:1", "a") == secret_of("127.0.0.1:2", "a"));
}

TEST(Identity, OneRankAmongSeveralIsToldSo) {
  const log::Level before = log::level();
  const auto text_of = [](const Variables& variables) {
    ::testing::internal::CaptureStderr();
    log::set_level(log::Level::warning);
    EXPECT_TRUE(identify_from(variables));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(text_of({{"FLUX_TASK_RANK", "2"}, {"FLUX_JOB_SIZE", "4"}})
                .find("world size 1 although launched as rank 2 of 4 by Flux"),
            std::string::npos);
  EXPECT_NE(text_of({{"WEFT_RANK", "0"}, {"WEFT_SIZE", "1"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}})
                .find("launched as rank 1 of 3 by PMI (MPICH)"),
            std::string::npos);
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(text_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}), "");
  log::set_level(before);
}

class SecretFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const int fd = mkstemp(path_.data());
    ASSERT_GE(fd, 0);
    close(fd);
  }
  void TearDown() override { std::remove(path_.c_str()); }
  void write(const std::string& text) { std::ofstream(path_) << text; }

  std::string path_ = ::testing::TempDir() + "weft_secret_XXXXXX";
};

TEST_F(SecretFile, IsReadIfItIsPrivate) {
  write("  " + kSecretText + "\n");
  const auto identity =
      identify_from({{"WEFT_RANK", "0"}, {"WEFT_SIZE", "2"}, {"WEFT_ADDRESS", "node7:1"}, {"WEFT_SECRET_FILE", path_}});
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_EQ(identity->secret.to_hex(), kSecretText);
}

TEST_F(SecretFile, IsRefusedIfOthersMayReadIt) {
  write(kSecretText);
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  const auto secret = read_secret_file(path_);
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().code(), ErrorCode::unauthenticated);
  EXPECT_TRUE(contains(secret.error(), "0640"));
}

TEST_F(SecretFile, IsRefusedIfItIsNoSecret) {
  write(kSecretText.substr(1));
  const auto secret = read_secret_file(path_);
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().code(), ErrorCode::malformed);
  EXPECT_FALSE(contains(secret.error(), "5555"));
  EXPECT_EQ(read_secret_file("/").error().code(), ErrorCode::malformed);
  EXPECT_EQ(read_secret_file(path_ + ".none").error().code(), ErrorCode::not_found);
}

TEST(Slurm, TasksPerNode) {
  EXPECT_EQ(parse_slurm_tasks_per_node("2(x3),1", 0), 2U);
  EXPECT_EQ(parse_slurm_tasks_per_node("2(x3),1", 2), 2U);
  EXPECT_EQ(parse_slurm_tasks_per_node("2(x3),1", 3), 1U);
  EXPECT_EQ(parse_slurm_tasks_per_node("2(x3),1", 4), std::nullopt);
  for (const char* text : {"", "x", "2(x", "2(x)", "2(3)", "0", ",", "2(x3"}) {
    EXPECT_EQ(parse_slurm_tasks_per_node(text, 0), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weft::bootstrap::testing
