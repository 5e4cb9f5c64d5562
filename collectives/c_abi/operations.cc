// Collectives, point to point, own plans.
#include <algorithm>

#include "collectives/c_abi/c_abi.h"
#include "collectives/plan/text.h"
#include "collectives/plan/verify.h"

namespace weft::c_abi {
namespace {

using collectives::Collective;
using collectives::UserCall;

constexpr device::DataType to_type(weft_type_t type) noexcept {
  return static_cast<device::DataType>(std::min<std::uint32_t>(static_cast<std::uint32_t>(type), 0xff));
}
constexpr device::ReduceOp to_op(weft_op_t op) noexcept {
  return static_cast<device::ReduceOp>(std::min<std::uint32_t>(static_cast<std::uint32_t>(op), 0xff));
}

Result<collectives::engine::RequestId> start(weft_communicator_t* communicator, const UserCall& call) {
  if (auto error = unusable(communicator)) return *std::move(error);
  return communicator->communicator->start(call);
}

weft_status_t block(weft_communicator_t* communicator, const UserCall& call) noexcept {
  return guarded([&] {
    if (is_in_group()) return finish_blocking(communicator, start(communicator, call));
    if (auto error = unusable(communicator)) return report(*error);
    return status_of(communicator->communicator->run(call));
  });
}

weft_status_t begin(weft_communicator_t* communicator, const UserCall& call, weft_request_t* request) noexcept {
  return guarded([&] {
    if (request == nullptr) return report(null_request());
    return hand_out(communicator, start(communicator, call), request);
  });
}

UserCall reducing(Collective collective, const void* send, void* receive, size_t count, weft_type_t type, weft_op_t op,
                  uint32_t root = 0) noexcept {
  return {collective, send, receive, count, to_type(type), to_op(op), root};
}

UserCall moving(Collective collective, const void* send, void* receive, size_t count, weft_type_t type,
                uint32_t root = 0) noexcept {
  return {collective, send, receive, count, to_type(type), device::ReduceOp::sum, root};
}

}  // namespace
}  // namespace weft::c_abi

using namespace weft::c_abi;  // NOLINT(google-build-using-namespace): the C functions below are this namespace's face.
using weft::collectives::Collective;

extern "C" {

weft_status_t weft_all_reduce(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                              weft_op_t op) {
  return block(c, reducing(Collective::all_reduce, send, receive, count, type, op));
}
weft_status_t weft_reduce(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                          weft_op_t op, uint32_t root) {
  return block(c, reducing(Collective::reduce, send, receive, count, type, op, root));
}
weft_status_t weft_broadcast(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                             uint32_t root) {
  return block(c, moving(Collective::broadcast, send, receive, count, type, root));
}
weft_status_t weft_all_gather(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type) {
  return block(c, moving(Collective::all_gather, send, receive, count, type));
}
weft_status_t weft_reduce_scatter(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                  weft_type_t type, weft_op_t op) {
  return block(c, reducing(Collective::reduce_scatter, send, receive, count, type, op));
}
weft_status_t weft_gather(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                          uint32_t root) {
  return block(c, moving(Collective::gather, send, receive, count, type, root));
}
weft_status_t weft_scatter(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                           uint32_t root) {
  return block(c, moving(Collective::scatter, send, receive, count, type, root));
}
weft_status_t weft_all_to_all(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type) {
  return block(c, moving(Collective::all_to_all, send, receive, count, type));
}
weft_status_t weft_barrier(weft_communicator_t* c) {
  return block(c, moving(Collective::barrier, nullptr, nullptr, 0, WEFT_U8));
}

weft_status_t weft_start_all_reduce(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                    weft_type_t type, weft_op_t op, weft_request_t* request) {
  return begin(c, reducing(Collective::all_reduce, send, receive, count, type, op), request);
}
weft_status_t weft_start_reduce(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                                weft_op_t op, uint32_t root, weft_request_t* request) {
  return begin(c, reducing(Collective::reduce, send, receive, count, type, op, root), request);
}
weft_status_t weft_start_broadcast(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                   weft_type_t type, uint32_t root, weft_request_t* request) {
  return begin(c, moving(Collective::broadcast, send, receive, count, type, root), request);
}
weft_status_t weft_start_all_gather(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                    weft_type_t type, weft_request_t* request) {
  return begin(c, moving(Collective::all_gather, send, receive, count, type), request);
}
weft_status_t weft_start_reduce_scatter(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                        weft_type_t type, weft_op_t op, weft_request_t* request) {
  return begin(c, reducing(Collective::reduce_scatter, send, receive, count, type, op), request);
}
weft_status_t weft_start_gather(weft_communicator_t* c, const void* send, void* receive, size_t count, weft_type_t type,
                                uint32_t root, weft_request_t* request) {
  return begin(c, moving(Collective::gather, send, receive, count, type, root), request);
}
weft_status_t weft_start_scatter(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                 weft_type_t type, uint32_t root, weft_request_t* request) {
  return begin(c, moving(Collective::scatter, send, receive, count, type, root), request);
}
weft_status_t weft_start_all_to_all(weft_communicator_t* c, const void* send, void* receive, size_t count,
                                    weft_type_t type, weft_request_t* request) {
  return begin(c, moving(Collective::all_to_all, send, receive, count, type), request);
}
weft_status_t weft_start_barrier(weft_communicator_t* c, weft_request_t* request) {
  return begin(c, moving(Collective::barrier, nullptr, nullptr, 0, WEFT_U8), request);
}

weft_status_t weft_start_send(weft_communicator_t* c, const void* send, size_t count, weft_type_t type, uint32_t peer,
                              weft_request_t* request) {
  return guarded([&] {
    if (const auto error = unusable(c)) return report(*error);
    if (request == nullptr) return report(null_request());
    return hand_out(c, c->communicator->start_send(send, count, to_type(type), weft::Rank{peer}), request);
  });
}
weft_status_t weft_start_receive(weft_communicator_t* c, void* receive, size_t count, weft_type_t type, uint32_t peer,
                                 weft_request_t* request) {
  return guarded([&] {
    if (const auto error = unusable(c)) return report(*error);
    if (request == nullptr) return report(null_request());
    return hand_out(c, c->communicator->start_receive(receive, count, to_type(type), weft::Rank{peer}), request);
  });
}
weft_status_t weft_send(weft_communicator_t* c, const void* send, size_t count, weft_type_t type, uint32_t peer) {
  return guarded([&] {
    if (const auto error = unusable(c)) return report(*error);
    return finish_blocking(c, c->communicator->start_send(send, count, to_type(type), weft::Rank{peer}));
  });
}
weft_status_t weft_receive(weft_communicator_t* c, void* receive, size_t count, weft_type_t type, uint32_t peer) {
  return guarded([&] {
    if (const auto error = unusable(c)) return report(*error);
    return finish_blocking(c, c->communicator->start_receive(receive, count, to_type(type), weft::Rank{peer}));
  });
}

weft_status_t weft_plan_parse(const char* text, size_t length, weft_plan_t** plan) {
  return guarded([&] {
    if (text == nullptr || plan == nullptr) {
      return report(weft::Error{weft::ErrorCode::invalid_argument, "text or plan is null"});
    }
    auto parsed = weft::collectives::plan::parse_plan({text, length});
    if (!parsed) return report(parsed.error());
    const auto verdict = weft::collectives::plan::verify(*parsed);
    if (!verdict) return report(verdict.error());
    *plan = new weft_plan{std::move(*parsed)};
    return WEFT_SUCCESS;
  });
}

weft_status_t weft_plan_free(weft_plan_t* plan) {
  delete plan;
  return WEFT_SUCCESS;
}

weft_status_t weft_start_plan(weft_communicator_t* c, const weft_plan_t* plan, const void* send, void* receive,
                              size_t count, weft_type_t type, weft_op_t op, weft_request_t* request) {
  return guarded([&] {
    if (const auto error = unusable(c)) return report(*error);
    if (plan == nullptr) return report(weft::Error{weft::ErrorCode::invalid_argument, "plan is null"});
    const UserCall call = reducing(plan->plan.contract.collective, send, receive, count, type, op);
    if (request == nullptr) return report(null_request());
    return hand_out(c, c->communicator->start_plan(plan->plan, call), request);
  });
}
}
