// Weft for C++20: thin, header-only, over the C interface (weft.h says what each call does, costs and promises).
//
// Nothing throws. A call that can fail returns weft::Outcome<T>: a value, or a Failure with status and text.
// Objects own their handles: move them, let them go out of scope. Threads: as weft.h.
//
// It stays one file: users copy or include one header, and Communicator, most of it, needs the others.
#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP

#include <weft/weft.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace weft {

/// Why a call failed.
struct Failure {
  weft_status_t status = WEFT_ERROR_SYSTEM;
  std::string text;  ///< What failed, where, and what to do: one line.

  /// The calling thread's last failure.
  static Failure last(weft_status_t status) { return {status, weft_last_error()}; }
};

/// A value, or why there is none.
template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Outcome(Failure failure)
      : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] explicit operator bool() const noexcept { return state_.index() == 0; }
  /// Only if there is one.
  [[nodiscard]] T& operator*() & { return std::get<0>(state_); }
  [[nodiscard]] T&& operator*() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] T* operator->() { return &std::get<0>(state_); }
  /// Only if there is none.
  [[nodiscard]] const Failure& failure() const { return std::get<1>(state_); }

 private:
  std::variant<T, Failure> state_;
};

/// Success without a value.
template <>
class [[nodiscard]] Outcome<void> {
 public:
  Outcome() = default;
  Outcome(Failure failure) : failure_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] explicit operator bool() const noexcept { return !failure_.has_value(); }
  [[nodiscard]] const Failure& failure() const { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

namespace detail {
inline Outcome<void> outcome_of(weft_status_t status) {
  if (status == WEFT_SUCCESS) return {};
  return Failure::last(status);
}
}  // namespace detail

enum class Op : int { sum = WEFT_SUM, prod = WEFT_PROD, min = WEFT_MIN, max = WEFT_MAX, avg = WEFT_AVG };

/// Maps C++ types to Weft's. For 16-bit floats of your own, specialise it (WEFT_F16, WEFT_BF16).
template <class T>
struct TypeOf;
template <class T>
requires std::integral<T> &&(sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8) struct TypeOf<T> {
  static constexpr weft_type_t value = sizeof(T) == 1   ? (std::is_signed_v<T> ? WEFT_I8 : WEFT_U8)
                                       : sizeof(T) == 4 ? (std::is_signed_v<T> ? WEFT_I32 : WEFT_U32)
                                                        : (std::is_signed_v<T> ? WEFT_I64 : WEFT_U64);
};
template <>
struct TypeOf<float> {
  static constexpr weft_type_t value = WEFT_F32;
};
template <>
struct TypeOf<double> {
  static constexpr weft_type_t value = WEFT_F64;
};
template <class T>
concept Element = requires {
  TypeOf<std::remove_const_t<T>>::value;
};

/// An operation in flight. Let it go only after wait() or a test() that said done.
class Request {
 public:
  explicit Request(weft_request_t request) : request_(request) {}
  /// Waits at most `timeout` (0: WEFT_TIMEOUT).
  Outcome<void> wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero()) {
    return detail::outcome_of(weft_wait(&request_, static_cast<std::uint64_t>(timeout.count())));
  }
  /// True once complete; then it is done with.
  Outcome<bool> test() {
    int done = 0;
    const weft_status_t status = weft_test(&request_, &done);
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return done != 0;
  }

 private:
  weft_request_t request_;
};

/// Elements in memory that every transport uses directly.
template <Element T>
class Memory {
 public:
  static Outcome<Memory> allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) {
      return Failure{WEFT_ERROR_LIMIT_EXCEEDED, "limit exceeded: more elements than addresses"};
    }
    void* memory = nullptr;
    const weft_status_t status = weft_memory_allocate(count * sizeof(T), &memory);
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return Memory{static_cast<T*>(memory), count};
  }
  [[nodiscard]] std::span<T> span() noexcept { return {memory_.get(), count_}; }
  [[nodiscard]] T* data() noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return memory_.get()[index]; }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { weft_memory_free(memory); }
  };
  Memory(T* memory, std::size_t count) : memory_(memory), count_(count) {}
  std::unique_ptr<T, Free> memory_;
  std::size_t count_;
};

/// A verified plan of your own (docs/plans.md).
class Plan {
 public:
  static Outcome<Plan> parse(std::string_view text) {
    weft_plan_t* plan = nullptr;
    const weft_status_t status = weft_plan_parse(text.data(), text.size(), &plan);
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return Plan{plan};
  }
  [[nodiscard]] const weft_plan_t* handle() const noexcept { return plan_.get(); }

 private:
  struct Free {
    void operator()(weft_plan_t* plan) const noexcept { weft_plan_free(plan); }
  };
  explicit Plan(weft_plan_t* plan) : plan_(plan) {}
  std::unique_ptr<weft_plan_t, Free> plan_;
};

/// A group of ranks. See weft.h for what each operation does; counts follow from the spans (all_reduce, reduce,
/// gathers, all_to_all: from send; scatters: from receive), and a span that is too short for them is refused.
class Communicator {
 public:
  /// Joins the job that the environment describes.
  static Outcome<Communicator> create() {
    weft_communicator_t* made = nullptr;
    const weft_status_t status = weft_create(&made);
    return give(status, made);
  }
  static Outcome<Communicator> create(const weft_unique_id_t& id, std::uint32_t rank, std::uint32_t size) {
    weft_communicator_t* made = nullptr;
    const weft_status_t status = weft_create_with_id(&id, rank, size, &made);
    return give(status, made);
  }
  /// Empty for a negative color.
  Outcome<std::optional<Communicator>> split(std::int32_t color, std::int32_t key = 0) {
    weft_communicator_t* made = nullptr;
    const weft_status_t status = weft_split(handle(), color, key, &made);
    if (status != WEFT_SUCCESS) return Failure::last(status);
    if (made == nullptr) return std::optional<Communicator>{};
    return std::optional<Communicator>{Communicator{made}};
  }
  Outcome<Communicator> duplicate() {
    weft_communicator_t* made = nullptr;
    const weft_status_t status = weft_duplicate(handle(), &made);
    return give(status, made);
  }
  /// Finishes what is in flight and says goodbye; the destructor does the same and drops the outcome.
  Outcome<void> destroy() { return detail::outcome_of(weft_destroy(communicator_.release())); }
  /// Any thread.
  Outcome<void> abort(const std::string& reason) { return detail::outcome_of(weft_abort(handle(), reason.c_str())); }

  [[nodiscard]] std::uint32_t rank() const noexcept { return weft_rank(communicator_.get()); }
  [[nodiscard]] std::uint32_t size() const noexcept { return weft_size(communicator_.get()); }
  [[nodiscard]] weft_communicator_t* handle() const noexcept { return communicator_.get(); }
  /// What was chosen and why, as JSON.
  [[nodiscard]] std::string describe() const {
    std::size_t length = 0;
    if (weft_describe(handle(), nullptr, 0, &length) != WEFT_SUCCESS) return {};
    std::string text(length + 1, '\0');
    if (weft_describe(handle(), text.data(), text.size(), &length) != WEFT_SUCCESS) return {};
    text.resize(length);
    return text;
  }

  template <Element T>
  Outcome<void> all_reduce(std::span<const T> send, std::span<T> receive, Op op = Op::sum) {
    if (receive.size() < send.size()) return too_short("all_reduce: receive", receive.size(), send.size());
    return detail::outcome_of(weft_all_reduce(handle(), send.data(), receive.data(), send.size(), type<T>(), to_c(op)));
  }
  /// In place.
  template <Element T>
  Outcome<void> all_reduce(std::span<T> values, Op op = Op::sum) {
    return all_reduce(std::span<const T>(values), values, op);
  }
  template <Element T>
  Outcome<Request> start_all_reduce(std::span<const T> send, std::span<T> receive, Op op = Op::sum) {
    if (receive.size() < send.size()) return too_short("all_reduce: receive", receive.size(), send.size());
    weft_request_t request;
    return begun(
        weft_start_all_reduce(handle(), send.data(), receive.data(), send.size(), type<T>(), to_c(op), &request),
        request);
  }
  template <Element T>
  Outcome<void> reduce(std::span<const T> send, std::span<T> receive, std::uint32_t root, Op op = Op::sum) {
    if (rank() == root && receive.size() < send.size()) {
      return too_short("reduce: receive", receive.size(), send.size());
    }
    return detail::outcome_of(
        weft_reduce(handle(), send.data(), receive.data(), send.size(), type<T>(), to_c(op), root));
  }
  /// The root's values arrive everywhere.
  template <Element T>
  Outcome<void> broadcast(std::span<T> values, std::uint32_t root) {
    return detail::outcome_of(weft_broadcast(handle(), values.data(), values.data(), values.size(), type<T>(), root));
  }
  template <Element T>
  Outcome<void> all_gather(std::span<const T> send, std::span<T> receive) {
    if (receive.size() / size() < send.size()) return too_short("all_gather: receive", receive.size(), send.size());
    return detail::outcome_of(weft_all_gather(handle(), send.data(), receive.data(), send.size(), type<T>()));
  }
  template <Element T>
  Outcome<void> reduce_scatter(std::span<const T> send, std::span<T> receive, Op op = Op::sum) {
    if (send.size() / size() < receive.size()) return too_short("reduce_scatter: send", send.size(), receive.size());
    return detail::outcome_of(
        weft_reduce_scatter(handle(), send.data(), receive.data(), receive.size(), type<T>(), to_c(op)));
  }
  template <Element T>
  Outcome<void> gather(std::span<const T> send, std::span<T> receive, std::uint32_t root) {
    if (rank() == root && receive.size() / size() < send.size()) {
      return too_short("gather: receive", receive.size(), send.size());
    }
    return detail::outcome_of(weft_gather(handle(), send.data(), receive.data(), send.size(), type<T>(), root));
  }
  template <Element T>
  Outcome<void> scatter(std::span<const T> send, std::span<T> receive, std::uint32_t root) {
    if (rank() == root && send.size() / size() < receive.size()) {
      return too_short("scatter: send", send.size(), receive.size());
    }
    return detail::outcome_of(weft_scatter(handle(), send.data(), receive.data(), receive.size(), type<T>(), root));
  }
  template <Element T>
  Outcome<void> all_to_all(std::span<const T> send, std::span<T> receive) {
    if (receive.size() < send.size()) return too_short("all_to_all: receive", receive.size(), send.size());
    return detail::outcome_of(weft_all_to_all(handle(), send.data(), receive.data(), send.size() / size(), type<T>()));
  }
  Outcome<void> barrier() { return detail::outcome_of(weft_barrier(handle())); }

  template <Element T>
  Outcome<void> send(std::span<const T> values, std::uint32_t peer) {
    return detail::outcome_of(weft_send(handle(), values.data(), values.size(), type<T>(), peer));
  }
  template <Element T>
  Outcome<void> receive(std::span<T> values, std::uint32_t peer) {
    return detail::outcome_of(weft_receive(handle(), values.data(), values.size(), type<T>(), peer));
  }
  template <Element T>
  Outcome<Request> start_send(std::span<const T> values, std::uint32_t peer) {
    weft_request_t request;
    return begun(weft_start_send(handle(), values.data(), values.size(), type<T>(), peer, &request), request);
  }
  template <Element T>
  Outcome<Request> start_receive(std::span<T> values, std::uint32_t peer) {
    weft_request_t request;
    return begun(weft_start_receive(handle(), values.data(), values.size(), type<T>(), peer, &request), request);
  }

  /// Runs the plan's collective with this plan on `count` elements a block.
  template <Element T>
  Outcome<Request> start_plan(const Plan& plan, const T* send, T* receive, std::size_t count, Op op = Op::sum) {
    weft_request_t request;
    return begun(weft_start_plan(handle(), plan.handle(), send, receive, count, type<T>(), to_c(op), &request),
                 request);
  }

 private:
  struct Destroy {
    void operator()(weft_communicator_t* communicator) const noexcept { weft_destroy(communicator); }
  };
  explicit Communicator(weft_communicator_t* communicator) : communicator_(communicator) {}
  /// The C interface takes one count for both buffers, so a span that is shorter would be overrun.
  static Failure too_short(std::string_view which, std::size_t has, std::size_t other) {
    return {WEFT_ERROR_INVALID_ARGUMENT, "invalid argument: " + std::string(which) + " has " + std::to_string(has) +
                                             " elements, too few for the other span's " + std::to_string(other)};
  }
  static Outcome<Communicator> give(weft_status_t status, weft_communicator_t* made) {
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return Communicator{made};
  }
  static Outcome<Request> begun(weft_status_t status, const weft_request_t& request) {
    if (status != WEFT_SUCCESS) return Failure::last(status);
    return Request{request};
  }
  template <Element T>
  static constexpr weft_type_t type() {
    return TypeOf<T>::value;
  }
  static constexpr weft_op_t to_c(Op op) { return static_cast<weft_op_t>(op); }

  std::unique_ptr<weft_communicator_t, Destroy> communicator_;
};

/// While it lives, blocking calls of this thread only start; end() waits for all of them.
class Group {
 public:
  Group() { weft_group_begin(); }
  ~Group() {
    if (is_open_) weft_group_end();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  Outcome<void> end() {
    is_open_ = false;
    return detail::outcome_of(weft_group_end());
  }

 private:
  bool is_open_ = true;
};

}  // namespace weft

#endif  // WEFT_WEFT_HPP
