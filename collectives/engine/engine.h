#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/trace.h"
#include "collectives/engine/arena.h"
#include "collectives/engine/message.h"
#include "collectives/engine/operation.h"
#include "collectives/engine/program.h"
#include "device/device.h"
#include "transport/transport.h"

namespace weft::collectives::engine {

/// A caller's handle of an operation.
struct RequestId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

/// How this rank reaches another one.
struct LinkInfo {
  transport::Endpoint* endpoint = nullptr;  ///< Null for the rank itself.
  std::uint32_t transport_index = 0;
  std::string name;  ///< For errors: "rank 3 (host b, pid 4711)".
};

/// Runs programs over links: the only place that sees both plans and transports.
///
/// Protocol. A transfer's slice of at most the link's eager limit travels as one `data` message. A larger one: on a
/// `write` link the receiver says `ready` with the place (the user's buffer itself for a plain receive, a landing
/// buffer for a reduction), the sender writes there with a notice; on a `read` link the sender says `available`, the
/// receiver reduces or copies straight from the sender's memory (or reads it first) and says `consumed`; memory that
/// cannot be read goes as a train of `data` messages once the receiver said `ready`. Every message names operation,
/// slice and transfer, so nothing depends on arrival order; what arrives early is parked and bounded by flow control
/// (kRunAhead operations).
///
/// Failure is the communicator's: the first cause ends every operation in flight on this rank, and the peers are told.
///
/// Thread: loop for every call.
class Engine {
 public:
  struct Options {
    Rank own_rank{0};
    std::vector<LinkInfo> links;                    ///< By rank.
    std::vector<transport::Transport*> transports;  ///< At most kTransportsMax; outlive the engine.
    MemorySource* memory = nullptr;                 ///< Outlives the engine.
    std::uint64_t eager_limit = 0;                  ///< 0: each link's advice. Equal on all ranks.
    plan::SlicingLimits slicing{};                  ///< Equal on all ranks.
    const Clock* clock = nullptr;
    Trace* trace = nullptr;  ///< Null, or where finished operations are recorded; outlives the engine.
  };
  explicit Engine(Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] Rank own_rank() const noexcept { return options_.own_rank; }
  [[nodiscard]] plan::SlicingLimits slicing() const noexcept { return options_.slicing; }

  /// Starts the next collective of this communicator. The program outlives the operation.
  /// Shape:  buffers as the program's contract says; sizes were checked by the caller.
  /// Errors: the communicator's failure, if it has one. Precondition: has_room().
  /// Cost:   nothing is allocated if an operation of this program ran before.
  Result<RequestId> start(const Program& program, const void* input, void* output);
  /// Starts the next send to, or receive from, the peer of a point_to_point_program.
  Result<RequestId> start_point_to_point(const Program& program, const void* input, void* output);

  /// Does what can be done now. True if anything happened. Never blocks.
  bool progress();

  /// An operation that has not been collected.
  [[nodiscard]] bool is_known(RequestId request) const noexcept {
    return request.index < operations_.size() && operations_[request.index]->generation == request.generation &&
           (operations_[request.index]->in_flight || operations_[request.index]->is_finished);
  }
  /// Some operation that has not been collected runs this program.
  [[nodiscard]] bool is_running(const Program& program) const noexcept;
  /// Precondition, as of the next two: is_known(request), or it was once.
  [[nodiscard]] bool is_finished(RequestId request) const noexcept;
  /// The result of a finished operation; the request is void afterwards.
  Status collect(RequestId request);
  /// False while the oldest of kInFlightMax collectives is not finished: make progress first.
  [[nodiscard]] bool has_room() const noexcept { return collectives_[next_sequence_ % kInFlightMax] == nullptr; }
  /// Operations that are not finished.
  [[nodiscard]] std::uint32_t num_in_flight() const noexcept { return num_in_flight_; }
  /// True while something waits for room or for a device: nothing will wake a sleeper when it comes.
  [[nodiscard]] bool must_poll() const noexcept {
    return !retries_.empty() || !computing_.empty() || report_is_due_ || num_puts_ > 0 || mismatch_.has_value() ||
           num_windows_closing_ > 0 || num_faults_due_ > 0 || num_refusals_ > 0;
  }
  /// For people: what the operation is and which peers it waits for.
  [[nodiscard]] std::string explain(RequestId request) const;

  /// Ends every operation with `cause` and tells the peers. The first cause stays.
  void fail(const Error& cause);
  /// Bytes of messages that arrived before their call did; see kRunAhead.
  [[nodiscard]] std::uint64_t parked_bytes() const noexcept;
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

  /// Starts an orderly end towards all peers.
  void close();

  // Windows: see window.cc and put.cc.
  /// Opens local memory as window `window` (equal numbers on all ranks); peers' keys by rank, per transport in use.
  Status open_window(std::uint32_t window, std::byte* base, std::uint64_t size_bytes);
  struct RemoteWindow {
    transport::RegionKey key;
    std::uint64_t size_bytes = 0;
    bool is_shared = false;    ///< The peer maps it.
    bool is_writable = false;  ///< The peer's link writes it without this rank's engine.
  };
  /// What `peer` has to know of this rank's window. Registers it with the pair's transport.
  Result<RemoteWindow> window_for(std::uint32_t window, Rank peer);
  void set_remote_window(std::uint32_t window, Rank peer, RemoteWindow remote);
  /// Tells all peers that nothing more comes from here. Once all have said so and what they wrote is here,
  /// is_window_quiet() answers true, and close_window() harms nobody.
  void start_closing_window(std::uint32_t window);
  [[nodiscard]] bool is_window_quiet(std::uint32_t window) const noexcept;
  void close_window(std::uint32_t window);
  /// The peer has closed its communicator: nothing more will come from it.
  [[nodiscard]] bool is_closed(Rank peer) const noexcept { return links_[peer.index()].is_closed; }
  Result<RequestId> start_put(std::uint32_t window, const void* source, std::uint64_t size_bytes, Rank peer,
                              std::uint64_t offset, bool with_signal);
  /// Signals from `peer` that arrived and were not taken.
  [[nodiscard]] std::uint64_t signals(std::uint32_t window, Rank peer) const;
  void take_signals(std::uint32_t window, Rank peer, std::uint64_t count);

 private:
  /// Operations that a rank may be ahead of a peer before it stops sending to it; bounds what a peer must park.
  static constexpr std::uint32_t kRunAhead = 128;
  /// How often completed operations are reported to a peer that has nothing else to be told.
  static constexpr std::uint32_t kReportEvery = kRunAhead / 4;
  /// Collectives in flight; a power of two.
  static constexpr std::uint32_t kInFlightMax = 64;
  static constexpr std::size_t kPollBatch = 32;
  /// Collectives that are remembered: what a peer, kRunAhead behind the oldest in flight, may still answer to; a power
  /// of two.
  static constexpr std::uint32_t kCalled = 2 * kRunAhead;
  static_assert(kCalled >= kRunAhead + kInFlightMax);

  /// A step of a slice in flight. Two whole words, passed in registers: what is written to a queue by parts and read as
  /// a whole a moment later makes the processor wait until the parts have left its store buffer, 10 ns a time.
  class Task {
   public:
    Task() = default;
    Task(Operation* of, std::uint32_t slot, std::uint32_t step) noexcept
        : operation(of), place_(std::uint64_t{slot} << 32 | step) {}
    [[nodiscard]] std::uint32_t slot() const noexcept { return static_cast<std::uint32_t>(place_ >> 32); }
    [[nodiscard]] std::uint32_t step() const noexcept { return static_cast<std::uint32_t>(place_); }

    Operation* operation = nullptr;

   private:
    std::uint64_t place_ = 0;
  };
  struct Computing {
    Task task;
    device::Device* device = nullptr;
    device::Ticket ticket{};
  };
  struct Parked {
    MessageHeaderWire header;
    std::vector<std::byte> payload;
  };
  /// How far a peer is, as it reported.
  struct Flow {
    std::uint32_t peer_completed = 0;
  };
  struct Link {
    transport::Endpoint* endpoint = nullptr;
    transport::Transport* transport = nullptr;
    std::uint32_t transport_index = 0;
    std::uint64_t eager_limit = 0;
    std::uint64_t payload_max = 0;
    transport::Capabilities capabilities;
    std::string name;
    bool is_closed = false;
    Flow collectives;
    Flow sends;  ///< Of our sends: how many of them the peer has completed.
    std::uint32_t sends_started = 0;
    std::uint32_t receives_started = 0;
    std::uint32_t receives_completed = 0;
    std::uint32_t receives_reported = 0;
    std::vector<Operation*> send_operations;  ///< Point to point, in flight.
    std::vector<Operation*> receive_operations;
    std::vector<CallWire> sent;  ///< The latest sends.
    std::vector<Parked> parked;
    std::vector<std::uint32_t> puts;  ///< Not all posted, in the order of their calls; only the first one posts.
    bool fault_is_due = false;
    std::optional<Error> refusal;
  };
  struct Put {
    bool in_use = false;
    std::uint32_t window = 0;
    std::uint32_t peer = 0;
    std::uint32_t token = 0;
    const std::byte* source = nullptr;
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t progress_bytes = 0;
    bool with_signal = false;
    bool is_write = false;        ///< The bytes went out as a write.
    bool bytes_done = false;      ///< Visible at the peer, or on their way, and the signal counts them.
    bool is_out = false;          ///< Nothing more is to be posted: the next put to this peer may start.
    bool is_written = false;      ///< The write's source may change.
    bool is_revoked = false;      ///< The peer failed; that is yet to be heard.
    std::byte* bounce = nullptr;  ///< Host copy of a source in device memory.
    std::optional<transport::Registration> registration;
    Operation* operation = nullptr;
  };
  struct Window {
    bool is_open = false;
    std::byte* base = nullptr;
    std::uint64_t size_bytes = 0;
    std::array<std::optional<transport::Registration>, kTransportsMax> registrations;
    std::vector<RemoteWindow> remote;    ///< By rank.
    std::vector<std::uint64_t> signals;  ///< By rank.
    // Writes overtake messages and each other, so signals and the end of a window name how many of them come before.
    // By rank:
    std::vector<std::uint32_t> writes_sent;
    std::vector<std::uint32_t> writes_arrived;                ///< All before this one are here.
    std::vector<std::vector<std::uint32_t>> writes_ahead;     ///< Those that are here and have overtaken others.
    std::vector<std::vector<std::uint32_t>> signals_waiting;  ///< In order: each for so many writes.
    std::vector<std::uint32_t> writes_expected;               ///< Of a peer that has closed.
    std::vector<bool> has_closed, is_told;
    bool is_closing = false;
  };

  // engine.cc: life of operations.
  Operation* acquire_operation(const Program& program, Channel channel, const void* input, void* output);
  Status begin(Operation& operation);
  void activate_slice(Operation& operation, std::uint32_t slot);
  void complete(Task task);
  void finish_slice(Operation& operation, std::uint32_t slot);
  void average(Operation& operation, std::uint32_t slice);
  void finish(Operation& operation);
  void release_registrations(Operation& operation);
  void run(Task task);
  void run_tasks();
  void retry_later(Task task) { retries_.push_back(task); }
  void record(const Operation& operation);
  [[nodiscard]] OwnedBuffer owned_buffer(const void* base, std::uint64_t size_bytes) const;

  // engine_failure.cc
  void fail_operation(Operation& operation, const Error& cause);
  /// A link refused a post for good. What its peer said before it closed or broke may wait to be polled, and is the
  /// better cause: the communicator ends with it, or else with this refusal once everything has been polled.
  void refused(Link& link, const Error& error);
  void judge_refusals(std::uint32_t transport_index);
  /// Ends the communicator for what a link answered.
  void fail_at(const Link& link, const Error& cause);
  /// Ends the communicator because the peer is gone in order, and the operation is not done with it.
  void fail_closed(const Link& link, const Operation& operation);
  /// Tells those peers of the failure that have not been told. Best effort.
  void tell_fault();
  void link_closed(Rank peer);
  [[nodiscard]] bool waits_for(const Operation& operation, Rank peer) const;
  [[nodiscard]] Rank rank_of(const Link& link) const noexcept {
    return Rank{static_cast<std::uint32_t>(&link - links_.data())};
  }

  // engine_own.cc: sends to this rank itself.
  void match_own(Operation& operation);
  void finish_with_partner(Operation& operation);

  // engine_local.cc: bytes.
  struct Source {
    const std::byte* data = nullptr;
    device::Device* device = nullptr;
    Source(const std::byte* bytes, device::Device* owner) noexcept : data(bytes), device(owner) {}
    Source(const Piece& piece) noexcept : data(piece.data), device(piece.device) {}
  };
  void run_local(Task task);
  /// `to` = from, `to` = left op right, as the task's step does it. True if it is done already.
  bool start_copy(Task task, const Piece& to, const Source& from);
  bool start_reduce(Task task, const Piece& to, const Source& left, const Source& right);
  /// Starts destination = bytes, or destination = operand op bytes; true if it is done already.
  bool start_combine(Task task, std::uint64_t offset, const std::byte* bytes, std::uint64_t size_bytes);
  bool start_on(device::Device* device, Task task, device::Ticket ticket);
  void poll_devices();
  /// How `address` of the operation's buffers is named towards the link.
  Result<Arena::Place> place_of(Operation& operation, const Link& link, const std::byte* address);

  // engine_send.cc, engine_receive.cc: transfers.
  /// Whether memory that the peer cannot map goes as a train of messages.
  [[nodiscard]] static bool travels_in_messages(const Link& link) noexcept;
  void run_send(Task task);
  void begin_send(Task task);
  void post_data(Task task);
  void post_available(Task task);
  void post_write(Task task);
  /// The receiver is ready: what it waits for goes out.
  void start_payload(Task task);
  void run_receive(Task task);
  void begin_receive(Task task);
  void post_ready(Task task);
  void receive_data(Task task, std::uint32_t offset, std::span<const std::byte> payload);
  void read_available(Task task);
  void post_read(Task task);
  void combine_landed(Task task);
  void after_combine(Task task);
  void post_consumed(Task task);
  [[nodiscard]] MessageHeaderWire header_of(Task task, MessageKind kind, std::uint32_t offset = 0,
                                            std::uint8_t detail = 0) const;
  /// True once the message is out; false: try again later (a failure ends the communicator).
  bool post(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload);

  // engine_messages.cc: arrivals.
  void handle(const transport::Completion& completion, std::uint32_t transport_index);
  void handle_message(Rank peer, std::span<const std::byte> message);
  void deliver(Link& link, Rank peer, const MessageHeaderWire& header, std::span<const std::byte> payload);
  void apply(Task task, const MessageHeaderWire& header, std::span<const std::byte> payload);
  void park(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload);
  void unpark(Task task);
  Operation* find_operation(Link& link, const MessageHeaderWire& header);
  void protocol_error(const Link& link, std::string_view what);
  void report_progress();
  std::uint32_t add_landing(Task task);

  // engine_mismatch.cc
  void check_parked_signatures(Operation& operation);
  /// What this rank called where the peer's message belongs, if it is still known.
  [[nodiscard]] std::optional<CallWire> call_of(Link& link, const MessageHeaderWire& header);
  void report_mismatch(Link& link, const MessageHeaderWire& header);
  void progress_mismatch();
  void handle_mismatch(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload);

  // window.cc
  void handle_put(Link& link, const MessageHeaderWire& header, std::span<const std::byte> payload);
  void add_signal(const MessageHeaderWire& header, Rank peer);
  void handle_window_notice(std::uint32_t notice, Rank peer);
  static void count_signals(Window& window, Rank peer);
  void window_closing(Link& link, Rank peer, const MessageHeaderWire& header);
  void tell_closing_windows();

  // put.cc
  void run_puts(Link& link);
  /// Posts what can be posted now.
  void run_put(Put& put);
  void post_put_write(Put& put);
  void put_written(std::uint32_t token);
  void finish_put(Put& put);
  /// Frees what the put holds; its operation is the caller's affair.
  void end_put(Put& put);
  void progress_puts();
  /// Copies between any two kinds of memory, and waits for it.
  void copy_now(std::byte* to, const std::byte* from, std::uint64_t size_bytes);

  Options options_;
  std::vector<Link> links_;
  Arena arena_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<Operation*> free_operations_;
  std::array<Operation*, kInFlightMax> collectives_{};
  std::array<CallWire, kCalled> called_{};  ///< The latest collectives, for the description of mismatches.
  std::uint32_t next_sequence_ = 0;         ///< Of the next collective.
  std::uint32_t completed_ = 0;             ///< All collectives before this one are complete here.
  std::uint32_t last_report_ = 0;           ///< completed_ when the peers were last told.
  bool report_is_due_ = false;
  std::uint32_t num_in_flight_ = 0;
  std::uint32_t num_parked_ = 0;  ///< Messages, of all links.
  std::vector<Task> tasks_;       ///< A queue: tasks_[first_task_..] are to be run.
  std::size_t first_task_ = 0;
  std::vector<Task> retries_;
  std::vector<Task> retrying_;
  std::vector<Computing> computing_;
  std::vector<Task> landings_;  ///< By landing number; operation is null where free.
  std::vector<std::uint32_t> free_landings_;
  std::vector<Window> windows_;
  std::deque<Put> puts_;
  std::vector<std::uint32_t> free_puts_;
  std::uint32_t num_puts_ = 0;
  std::uint32_t num_windows_closing_ = 0;  ///< That not all peers were told of.
  std::optional<Error> failure_;
  std::uint32_t num_faults_due_ = 0;
  std::uint32_t num_refusals_ = 0;
  struct PendingMismatch {
    Nanos until{};
    std::optional<Error> fallback;
    Link* link = nullptr;
    MessageHeaderWire header;
    CallWire call;
    bool is_posted = false;
  };
  std::optional<PendingMismatch> mismatch_;
  std::array<transport::Completion, kPollBatch> completions_;
};

}  // namespace weft::collectives::engine
