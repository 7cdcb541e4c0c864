/* The C interface for collectors of third parties: hand records to proton_bench from any thread.
 *
 * Get the sink once, with the GIL held:
 *
 *     PyObject *capsule = proton_bench._native.record_sink();
 *     const pb_record_sink *sink = PyCapsule_GetPointer(capsule, PB_RECORD_SINK_CAPSULE);
 *     if (!pb_record_sink_usable(sink)) { ... refuse to start: another major version ... }
 *
 * Then, for each kernel launch:
 *
 *     pb_token token;
 *     uint64_t id = sink->capture(sink->self, &token);   in the thread that launches
 *     if (id != 0 && launch() failed) sink->failed(sink->self, id);
 *     ...
 *     sink->complete_kernels(sink->self, records, n);    later, in any thread
 *
 * Every id that `capture` returned must reach exactly one of: a record of complete_kernels,
 * `failed`, or a count given to `dropped`; a phase is complete only then.
 *
 * Lifetimes: the sink lives until the process ends, also after the capsule is gone. Everything the
 * collector passes is read before the call returns and never kept, so buffers and texts may be
 * reused at once.
 *
 * Threads: every function may be called without the GIL and with any lock of the collector's own
 * held; none calls back into the collector. No function blocks on a device, throws or fails: what
 * cannot be kept is counted as dropped and shown in every report. After fork() the child's
 * functions are no-ops until a session starts there.
 *
 * All times are int64 nanoseconds of CLOCK_MONOTONIC. Texts are NUL-terminated; UTF-8 is expected,
 * other bytes are escaped. The header is C99 and C++.
 */
#ifndef PROTON_BENCH_RECORD_SINK_H_
#define PROTON_BENCH_RECORD_SINK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a struct of this header changes its layout or a function its meaning. Functions that
 * are added at the end of pb_record_sink only make its `size` larger. */
#define PB_RECORD_SINK_ABI_VERSION 1u

/* Name of the capsule that proton_bench._native.record_sink() returns. */
#define PB_RECORD_SINK_CAPSULE "proton_bench.record_sink"

/* Where the launching thread stood. Copy freely; the bytes of `place` mean nothing outside. */
typedef struct pb_token {
  uint64_t correlation_id; /* 0: no session listens */
  uint32_t epoch;          /* the set of sessions that were active */
  uint32_t place[5];
} pb_token;

/* What distinguishes launches of one kernel on one call path. Unused: 0, and 1 for extents. */
typedef struct pb_variant_record {
  uint64_t code_hash; /* 0: unknown */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes; /* dynamic shared memory */
  uint32_t reserved;     /* 0 */
  const char *signature; /* argument signature; NULL: unknown */
} pb_variant_record;

/* A kernel ran on a device. */
typedef struct pb_kernel_record {
  uint64_t correlation_id; /* from capture */
  int64_t start_ns;
  int64_t end_ns;                   /* >= start_ns, else the record is dropped */
  const char *name;                 /* NULL: the op that encloses the launch names it */
  const pb_variant_record *variant; /* NULL: unknown */
  const char *device_kind;          /* "CUDA", "HIP", "CPU" or a kind of the collector's own */
  int32_t device_index;
  uint32_t stream;
  uint64_t reserved; /* 0 */
} pb_kernel_record;

/* The functions; pass `self` back as their first argument. */
typedef struct pb_record_sink {
  uint32_t abi_version; /* PB_RECORD_SINK_ABI_VERSION of the build */
  uint32_t size;        /* sizeof(pb_record_sink) of the build */
  void *self;

  /* Notes where the calling thread stands and returns a new correlation id for the launch it is
   * about to make; 0, at the cost of one atomic read, when no session is active: then record
   * nothing for this launch. `out` may be NULL. Waits for no lock. [launching thread] */
  uint64_t (*capture)(void *self, pb_token *out);

  /* The launch of this id failed: no kernel will come. [any thread] */
  void (*failed)(void *self, uint64_t correlation_id);

  /* Kernels completed, in any order; one record per id, so a launch that starts several kernels
   * captures once for each. A record whose id is unknown is counted as dropped. [any thread] */
  void (*complete_kernels)(void *self, const pb_kernel_record *records, size_t count);

  /* `count` records were lost. `reason` becomes a key of the profile's `dropped` map: use few,
   * short, constant texts ("buffer full"). [any thread] */
  void (*dropped)(void *self, const char *reason, uint64_t count);
} pb_record_sink;

/* Whether this header and the sink agree: the same ABI and every function above present. */
static inline int pb_record_sink_usable(const pb_record_sink *sink) {
  return sink != NULL && sink->abi_version == PB_RECORD_SINK_ABI_VERSION &&
         sink->size >= sizeof(pb_record_sink);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PROTON_BENCH_RECORD_SINK_H_ */
