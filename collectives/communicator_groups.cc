// Which ranks a communicator is made of.
#include <algorithm>

#include <fmt/format.h>

#include "base/random.h"
#include "base/wire.h"
#include "collectives/communicator_entry.h"

namespace weft::collectives {

Result<std::unique_ptr<Communicator>> Communicator::create(std::shared_ptr<Job> job) {
  bootstrap::Group group;
  if (job->session) {
    group = job->session->world();
  } else {
    group.members = {Rank{0}};
  }
  return create_in(std::move(job), std::move(group));
}

Result<std::unique_ptr<Communicator>> Communicator::create_in(std::shared_ptr<Job> job, bootstrap::Group group) {
  WEFT_TRY_ASSIGN(select::AlgorithmSetting setting,
                  select::AlgorithmSetting::parse(job->settings.text(Setting::algorithm)));
  Wiring wiring = lone_wiring();
  if (group.members.size() > 1) {
    WEFT_TRY_ASSIGN(wiring, connect_group(*job->session, group, job->settings));
  }
  Trace trace;
  if (job->settings.is_set(Setting::trace_file)) {
    WEFT_TRY_ASSIGN(trace, Trace::create({.path = job->settings.text(Setting::trace_file),
                                          .rank = job->identity.rank,
                                          .ranks = RankCount{job->identity.size}}));
  }
  std::unique_ptr<Communicator> made{
      new Communicator(std::move(job), std::move(group), std::move(wiring), std::move(setting))};
  made->trace_ = std::move(trace);
  return made;
}

Result<std::unique_ptr<Communicator>> Communicator::split(std::int32_t color, std::int32_t key) {
  WEFT_ENTER();
  const std::uint64_t split = ++num_splits_;
  if (!job_->session) {
    if (color < 0) return std::unique_ptr<Communicator>{};
    return create_in(job_, group_);
  }
  ByteWriter own;
  own.number(static_cast<std::uint32_t>(color)).number(static_cast<std::uint32_t>(key));
  WEFT_TRY_ASSIGN(const auto blobs,
                  job_->session->all_gather(group_, fmt::format("split {}", split), own.bytes(), exchange_deadline()));
  struct Member {
    std::int32_t key;
    std::uint32_t index;
  };
  std::vector<Member> members;
  for (std::uint32_t index = 0; index < blobs.size(); ++index) {
    ByteReader reader(blobs[index]);
    const auto its_color = static_cast<std::int32_t>(reader.number<std::uint32_t>());
    const auto its_key = static_cast<std::int32_t>(reader.number<std::uint32_t>());
    WEFT_TRY(reader.finish("a rank's split"));
    if (its_color == color) members.push_back({its_key, index});
  }
  if (color < 0) return std::unique_ptr<Communicator>{};
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });

  bootstrap::Group group;
  // Unique in the job as long as 64-bit mixes of (parent, split, color) do not collide; equal on all members.
  Random mixer{group_.id ^ (split << 32) ^ static_cast<std::uint32_t>(color)};
  group.id = mixer.next() | 1;
  for (std::uint32_t position = 0; position < members.size(); ++position) {
    group.members.push_back(group_.members[members[position].index]);
    if (members[position].index == group_.own_index) group.own_index = position;
  }
  return create_in(job_, std::move(group));
}

Result<std::unique_ptr<Communicator>> Communicator::duplicate() { return split(0, 0); }

}  // namespace weft::collectives
