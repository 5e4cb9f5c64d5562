// Ranks that called different things: both sides learn both calls before either reports.
#include <cstring>

#include <fmt/format.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/sequence.h"

namespace weft::collectives::engine {
namespace {

/// How long a rank that noticed a mismatch waits for the other side's description before it reports without.
constexpr Nanos kMismatchPatience = std::chrono::seconds(1);

constexpr const char* kSameOrder = "All ranks must make the same calls in the same order.";

}  // namespace

void Engine::check_parked_signatures(Operation& operation) {
  for (std::uint32_t rank = 0; rank < links_.size(); ++rank) {
    Link& link = links_[rank];
    if (link.parked.empty()) continue;
    if (operation.channel == Channel::point_to_point && operation.program->steps.front().peer != rank) continue;
    for (std::size_t i = 0; i < link.parked.size() && operation.in_flight; ++i) {
      const Parked& parked = link.parked[i];
      if (parked.header.channel != operation.channel || parked.header.sequence != operation.sequence) continue;
      if (operation.channel == Channel::point_to_point && find_operation(link, parked.header) != &operation) continue;
      if (parked.header.kind == MessageKind::mismatch) {
        const Parked copy = parked;
        return handle_mismatch(link, copy.header, copy.payload);
      }
      if (parked.header.signature != operation.program->signature) {
        return report_mismatch(link, MessageHeaderWire{parked.header});
      }
    }
  }
}

std::optional<CallWire> Engine::call_of(Link& link, const MessageHeaderWire& header) {
  if (const Operation* operation = find_operation(link, header)) return operation->program->wire;
  // Complete: a small send is, long before its receiver objects.
  if (header.channel == Channel::collective) {
    const bool is_known = is_before(header.sequence, next_sequence_) && next_sequence_ - header.sequence <= kCalled;
    return is_known ? std::optional{called_[header.sequence % kCalled]} : std::nullopt;
  }
  const bool is_known = is_for_sender(header.kind) && is_before(header.sequence, link.sends_started) &&
                        link.sends_started - header.sequence <= kRunAhead;
  return is_known ? std::optional{link.sent[header.sequence % kRunAhead]} : std::nullopt;
}

void Engine::report_mismatch(Link& link, const MessageHeaderWire& header) {
  if (mismatch_ || failure_) return;
  const std::optional<CallWire> own = call_of(link, header);
  const std::string here = own ? describe(*own, header.channel) : "complete";
  PendingMismatch pending;
  pending.until = options_.clock->now() + kMismatchPatience;
  pending.fallback =
      Error{ErrorCode::mismatch,
            fmt::format("operation #{} is {} here, and something else at {}", header.sequence, here, link.name),
            kSameOrder}
          .about(rank_of(link));
  pending.link = &link;
  pending.header = header;
  pending.header.kind = MessageKind::mismatch;
  // Which of our halves it is about: the peer looks for its other half.
  pending.header.reserved = is_for_sender(header.kind) ? 1 : 0;
  pending.call = own.value_or(CallWire{});
  mismatch_ = std::move(pending);
  progress_mismatch();
}

void Engine::progress_mismatch() {
  if (!mismatch_->is_posted) {
    const bool is_posted = post(*mismatch_->link, mismatch_->header, bytes_of(mismatch_->call));
    if (!mismatch_) return;  // The link is broken, and that is the first cause now.
    mismatch_->is_posted = is_posted;
  }
  if (options_.clock->now() >= mismatch_->until) fail(Error{*mismatch_->fallback});
}

void Engine::handle_mismatch(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload) {
  CallWire theirs;
  if (payload.size() != sizeof theirs) return protocol_error(link, "a mismatch without a description");
  std::memcpy(&theirs, payload.data(), sizeof theirs);
  if (header.channel == Channel::collective && !is_before(header.sequence, next_sequence_)) {
    return park(link, header, payload);
  }
  MessageHeaderWire ours = header;
  // The peer's receive is our send: look on the other side for point-to-point operations.
  const bool is_about_their_send = header.reserved != 0;
  ours.kind = is_about_their_send == (theirs.is_reply == 0) ? MessageKind::data : MessageKind::ready;
  const std::optional<CallWire> own = call_of(link, ours);
  if (theirs.is_reply == 0) {
    CallWire reply = own.value_or(CallWire{});
    reply.is_reply = 1;
    (void)post(link, header, bytes_of(reply));
    if (failure_) return;
  }
  const std::string here = own ? describe(*own, header.channel) : "complete";
  const std::string there = describe(theirs, header.channel);
  const bool is_same_call = here == there;
  fail(Error{ErrorCode::mismatch,
             fmt::format("operation #{} is {} here and {} at {}{}", header.sequence, here, there, link.name,
                         is_same_call ? ", but with another algorithm or slicing" : ""),
             is_same_call ? "Give all ranks the same WEFT_ALGORITHM, WEFT_SLICE_SIZE and plan." : kSameOrder}
           .about(rank_of(link)));
}

}  // namespace weft::collectives::engine
