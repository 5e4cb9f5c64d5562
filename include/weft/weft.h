/*
 * Weft: collectives and zero-copy transport between the processes of a job. The C interface.
 *
 * Every function that can fail returns a weft_status_t; WEFT_SUCCESS is 0. weft_last_error() has the reason of the
 * calling thread's last failure as one line: what failed, where (rank, host, address), and what to do.
 *
 * Threads: a communicator is used by one thread at a time; weft_abort() may be called from any. Several communicators
 * may be used by several threads at once. No function changes errno, signals or the process's state behind the caller's
 * back, except that the soft limit of open files is raised to the hard one when it is too low.
 *
 * Fork: a child may not use communicators of its parent (WEFT_ERROR_CLOSED); it may exit or exec at will.
 *
 * Versioning: functions and enumerators are only added; structs keep their size.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

/* This is C. NOLINTBEGIN(modernize-*, readability-identifier-naming) */
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ------------------------------------------------------------------------------------------------------ */

typedef enum weft_status {
  WEFT_SUCCESS = 0,
  WEFT_ERROR_INVALID_ARGUMENT = 1, /* makes no sense; nothing was done */
  WEFT_ERROR_OUT_OF_RANGE = 2,
  WEFT_ERROR_MISMATCH = 3,        /* ranks called different things; both sides are named */
  WEFT_ERROR_TIMEOUT = 4,         /* a deadline passed; who was waited for is named */
  WEFT_ERROR_CLOSED = 5,          /* destroyed, aborted, or used after fork */
  WEFT_ERROR_PEER_FAILED = 6,     /* a process died or a link broke */
  WEFT_ERROR_UNAUTHENTICATED = 7, /* the other side did not prove the job's secret */
  WEFT_ERROR_MALFORMED = 8,       /* a file, setting or message does not follow its format */
  WEFT_ERROR_LIMIT_EXCEEDED = 9,  /* a limit of the system is too low; it is named */
  WEFT_ERROR_UNSUPPORTED = 10,
  WEFT_ERROR_NOT_FOUND = 11,
  WEFT_ERROR_ADDRESS_IN_USE = 12,
  WEFT_ERROR_SYSTEM = 13
} weft_status_t;

/* The status's name ("timeout"). Never NULL. Thread: any. */
WEFT_API const char* weft_status_name(weft_status_t status);
/* One line about the calling thread's last failure; "" if there was none. Valid until its next failing call. Thread:
 * any. */
WEFT_API const char* weft_last_error(void);
/* The library's version: major * 10000 + minor * 100 + patch. Thread: any. */
WEFT_API uint32_t weft_version(void);

/* ---- Jobs and communicators -------------------------------------------------------------------------------------- */

typedef struct weft_communicator weft_communicator_t;

/* Address and secret of a job as opaque bytes, for frameworks that carry them to the other ranks by their own means.
 * Treat it like a password. */
typedef struct weft_unique_id {
  unsigned char bytes[128];
} weft_unique_id_t;

/* Founds a job of `size` ranks that meets in this process, which must live until every rank has created its
 * communicator. Thread: blocking. */
WEFT_API weft_status_t weft_unique_id_create(uint32_t size, weft_unique_id_t* id);

/* Joins the job that the environment describes (WEFT_RANK, WEFT_SIZE, WEFT_ADDRESS, WEFT_SECRET; or torchrun, Open MPI,
 * MPICH, Slurm) and connects its ranks. Nothing set: a communicator of one rank. Collective; Thread: blocking, at most
 * WEFT_BOOTSTRAP_TIMEOUT + WEFT_CONNECT_TIMEOUT. Errors: TIMEOUT names the ranks that are missing. */
WEFT_API weft_status_t weft_create(weft_communicator_t** communicator);
/* The same for a job founded with weft_unique_id_create. */
WEFT_API weft_status_t weft_create_with_id(const weft_unique_id_t* id, uint32_t rank, uint32_t size,
                                           weft_communicator_t** communicator);

/* Ranks that give the same `color` form a new communicator, ordered by (key, rank). A negative color: no part in it,
 * and *communicator is NULL. Collective over `parent`; Thread: blocking. */
WEFT_API weft_status_t weft_split(weft_communicator_t* parent, int32_t color, int32_t key,
                                  weft_communicator_t** communicator);
/* A communicator of the same ranks with its own connections and its own order of operations. Collective; Thread:
 * blocking. */
WEFT_API weft_status_t weft_duplicate(weft_communicator_t* parent, weft_communicator_t** communicator);

/* Finishes what was started (at most WEFT_TIMEOUT), says goodbye to the peers and frees everything. Not collective: it
 * does not wait for peers that still work. Data that was sent arrives. NULL is fine. While another thread is inside,
 * WEFT_ERROR_INVALID_ARGUMENT, and the communicator stays; after any other error it is gone all the same. */
WEFT_API weft_status_t weft_destroy(weft_communicator_t* communicator);
/* Makes every operation in flight, here and at the peers, end with WEFT_ERROR_CLOSED and `reason`. Thread: any; bounded
 * time; may be repeated. The communicator can then only be destroyed. */
WEFT_API weft_status_t weft_abort(weft_communicator_t* communicator, const char* reason);

WEFT_API uint32_t weft_rank(const weft_communicator_t* communicator);
WEFT_API uint32_t weft_size(const weft_communicator_t* communicator);

/* What was chosen and why, as JSON: ranks with host and pid; for each peer the transport, and why not a better one;
 * settings. Copies at most `capacity` bytes with the final 0; *length is the full length without it. buffer may be NULL
 * if capacity is 0. */
WEFT_API weft_status_t weft_describe(weft_communicator_t* communicator, char* buffer, size_t capacity, size_t* length);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Memory that every transport uses directly: peers on this host map it, network devices have it registered. Aligned to
 * 4096, zeroed, reserved at once (it cannot fail later). Any communicator of the process may use it. Thread: any. */
WEFT_API weft_status_t weft_memory_allocate(size_t size_bytes, void** memory);
/* No operation that uses it may be in flight. NULL is fine. Errors: INVALID_ARGUMENT - it is not such memory, or was
 * freed before. Thread: any. */
WEFT_API weft_status_t weft_memory_free(void* memory);

/* ---- Operations -------------------------------------------------------------------------------------------------- */

typedef enum weft_type {
  WEFT_I8 = 0,
  WEFT_U8 = 1,
  WEFT_I32 = 2,
  WEFT_U32 = 3,
  WEFT_I64 = 4,
  WEFT_U64 = 5,
  WEFT_F16 = 6,
  WEFT_BF16 = 7,
  WEFT_F32 = 8,
  WEFT_F64 = 9
} weft_type_t;

typedef enum weft_op { WEFT_SUM = 0, WEFT_PROD = 1, WEFT_MIN = 2, WEFT_MAX = 3, WEFT_AVG = 4 } weft_op_t;

/* An operation in flight; a value, nothing to free. */
typedef struct weft_request {
  uint64_t opaque[3];
} weft_request_t;

/* Collectives. All ranks of the communicator call the same ones in the same order with the same count, type, op and
 * root; a difference is WEFT_ERROR_MISMATCH on both sides, and no rank's memory is harmed. Counts are elements of
 * `type` a block:
 *
 *   all_reduce       send count          receive count           on all ranks
 *   reduce           send count          receive count           receive is used at the root only, else may be NULL
 *   broadcast        send count          receive count           send is used at the root only, else may be NULL
 *   all_gather       send count          receive size * count
 *   reduce_scatter   send size * count   receive count
 *   gather           send count          receive size * count    receive at the root only
 *   scatter          send size * count   receive count           send at the root only
 *   all_to_all       send size * count   receive size * count    never in place
 *
 * In place: send == receive (all_reduce, reduce, broadcast); send == receive + rank * count (all_gather, gather at the
 * root); receive == send + rank * count (reduce_scatter, scatter at the root). Any other overlap is
 * WEFT_ERROR_INVALID_ARGUMENT. Buffers are aligned to their element. Results have the same bits on every rank and in
 * every run with the same settings. Integers wrap; NaN propagates; f16 and bf16 add in f32 and round once a step; avg
 * divides the sum once at the end.
 *
 * weft_X is weft_start_X and weft_wait with WEFT_TIMEOUT. After its WEFT_ERROR_TIMEOUT the operation is still in flight
 * and uses its buffers until weft_destroy has returned. Between start and completion: do not write what is sent, do not
 * touch what is received. Inside weft_group_begin/end, weft_X only starts. */
WEFT_API weft_status_t weft_all_reduce(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                       weft_type_t type, weft_op_t op);
WEFT_API weft_status_t weft_reduce(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                   weft_type_t type, weft_op_t op, uint32_t root);
WEFT_API weft_status_t weft_broadcast(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                      weft_type_t type, uint32_t root);
WEFT_API weft_status_t weft_all_gather(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                       weft_type_t type);
WEFT_API weft_status_t weft_reduce_scatter(weft_communicator_t* communicator, const void* send, void* receive,
                                           size_t count, weft_type_t type, weft_op_t op);
WEFT_API weft_status_t weft_gather(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                   weft_type_t type, uint32_t root);
WEFT_API weft_status_t weft_scatter(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                    weft_type_t type, uint32_t root);
WEFT_API weft_status_t weft_all_to_all(weft_communicator_t* communicator, const void* send, void* receive, size_t count,
                                       weft_type_t type);
WEFT_API weft_status_t weft_barrier(weft_communicator_t* communicator);

WEFT_API weft_status_t weft_start_all_reduce(weft_communicator_t* communicator, const void* send, void* receive,
                                             size_t count, weft_type_t type, weft_op_t op, weft_request_t* request);
WEFT_API weft_status_t weft_start_reduce(weft_communicator_t* communicator, const void* send, void* receive,
                                         size_t count, weft_type_t type, weft_op_t op, uint32_t root,
                                         weft_request_t* request);
WEFT_API weft_status_t weft_start_broadcast(weft_communicator_t* communicator, const void* send, void* receive,
                                            size_t count, weft_type_t type, uint32_t root, weft_request_t* request);
WEFT_API weft_status_t weft_start_all_gather(weft_communicator_t* communicator, const void* send, void* receive,
                                             size_t count, weft_type_t type, weft_request_t* request);
WEFT_API weft_status_t weft_start_reduce_scatter(weft_communicator_t* communicator, const void* send, void* receive,
                                                 size_t count, weft_type_t type, weft_op_t op, weft_request_t* request);
WEFT_API weft_status_t weft_start_gather(weft_communicator_t* communicator, const void* send, void* receive,
                                         size_t count, weft_type_t type, uint32_t root, weft_request_t* request);
WEFT_API weft_status_t weft_start_scatter(weft_communicator_t* communicator, const void* send, void* receive,
                                          size_t count, weft_type_t type, uint32_t root, weft_request_t* request);
WEFT_API weft_status_t weft_start_all_to_all(weft_communicator_t* communicator, const void* send, void* receive,
                                             size_t count, weft_type_t type, weft_request_t* request);
WEFT_API weft_status_t weft_start_barrier(weft_communicator_t* communicator, weft_request_t* request);

/* Point to point: the n-th send from rank a to rank b meets the n-th receive at b from a; count and type must agree.
 * A send may complete before it is received (small messages); a blocking send may also wait for its receive. */
WEFT_API weft_status_t weft_send(weft_communicator_t* communicator, const void* send, size_t count, weft_type_t type,
                                 uint32_t peer);
WEFT_API weft_status_t weft_receive(weft_communicator_t* communicator, void* receive, size_t count, weft_type_t type,
                                    uint32_t peer);
WEFT_API weft_status_t weft_start_send(weft_communicator_t* communicator, const void* send, size_t count,
                                       weft_type_t type, uint32_t peer, weft_request_t* request);
WEFT_API weft_status_t weft_start_receive(weft_communicator_t* communicator, void* receive, size_t count,
                                          weft_type_t type, uint32_t peer, weft_request_t* request);

/* *done becomes 1 once the request is complete (its status is returned then), 0 if it is still in flight. Never blocks.
 */
WEFT_API weft_status_t weft_test(weft_request_t* request, int* done);
/* Waits until the request is complete or `timeout_ns` passed (0: WEFT_TIMEOUT; UINT64_MAX: for ever). After
 * WEFT_ERROR_TIMEOUT the request is still in flight and may be waited for again. */
WEFT_API weft_status_t weft_wait(weft_request_t* request, uint64_t timeout_ns);

/* Between begin and end, blocking calls of this thread only start their operation; end waits for all of them, on
 * however many communicators, and returns the first error. Groups nest; only the outermost end waits. */
WEFT_API weft_status_t weft_group_begin(void);
WEFT_API weft_status_t weft_group_end(void);

/* ---- One-sided: put, signal, wait -------------------------------------------------------------------------------- */

typedef struct weft_window weft_window_t;

/* Opens [base, base + size_bytes) of every rank to puts of the others; sizes may differ, 0 and NULL are fine. Memory
 * from weft_memory_allocate is written directly by all transports. Collective; Thread: blocking. */
WEFT_API weft_status_t weft_window_create(weft_communicator_t* communicator, void* base, size_t size_bytes,
                                          weft_window_t** window);
/* Collective: afterwards no peer writes any more. Before weft_destroy of the communicator. After an error the window is
 * gone for this rank, but peers may write into its memory until the communicator is destroyed. */
WEFT_API weft_status_t weft_window_destroy(weft_window_t* window);
/* Starts copying into the peer's window at `offset`. With signal != 0 the peer's signal count from this rank grows by
 * one once the bytes are visible there, and those of all earlier puts into the window from this rank. size_bytes 0 with
 * a signal is a pure signal. Complete: `source` may change. */
WEFT_API weft_status_t weft_put(weft_window_t* window, const void* source, size_t size_bytes, uint32_t peer,
                                uint64_t offset, int signal, weft_request_t* request);
/* Waits until `count` signals from `peer` arrived that were not waited for before, and takes them. timeout_ns as
 * weft_wait. */
WEFT_API weft_status_t weft_wait_signal(weft_window_t* window, uint32_t peer, uint64_t count, uint64_t timeout_ns);

/* ---- Own algorithms ---------------------------------------------------------------------------------------------- */

typedef struct weft_plan weft_plan_t;

/* Reads a plan in text form (docs/plans.md) and verifies it: bounds, matching, race freedom, result. Thread: any. */
WEFT_API weft_status_t weft_plan_parse(const char* text, size_t length, weft_plan_t** plan);
WEFT_API weft_status_t weft_plan_free(weft_plan_t* plan);
/* Runs the plan's collective with this plan. All ranks must give equal plans. Buffers and counts as the collective's
 * own call; op is used if the collective reduces. */
WEFT_API weft_status_t weft_start_plan(weft_communicator_t* communicator, const weft_plan_t* plan, const void* send,
                                       void* receive, size_t count, weft_type_t type, weft_op_t op,
                                       weft_request_t* request);

/* NOLINTEND(modernize-*, readability-identifier-naming) */
#ifdef __cplusplus
}
#endif

#endif /* WEFT_WEFT_H */
