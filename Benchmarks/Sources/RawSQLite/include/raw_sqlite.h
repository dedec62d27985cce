#ifndef RAW_SQLITE_H
#define RAW_SQLITE_H

#include <stdint.h>

/* The common local workload, written against SQLite's C API with nothing between: the limit that
   the object graph is measured against in the same run. Data and sums are those of workload.md. */

typedef struct {
  double insert, fetch, by_id, traverse, update, erase, batch;
  int64_t fetch_rows, fetch_score, fetch_length, by_id_score, tag_names, attachment_sizes;
} raw_sqlite_result;

/* Runs every phase on a new file. Returns 0, or SQLite's error code. */
int raw_sqlite_run(const char *path, int64_t posts, raw_sqlite_result *result);

/* Runs the posts of the workload alone, for comparison with batch inserts. */
int raw_sqlite_run_batch(const char *path, int64_t posts, raw_sqlite_result *result);

/* From now on the process's own time is measured, user and system, instead of the time that passes:
   on a machine that is busy with other work its ratios can still be compared. */
void raw_sqlite_measure_processor_time(void);

/* The seconds on the clock that all engines are measured with. */
double raw_sqlite_now(void);

/* The bytes that the process has allocated and not freed. */
int64_t raw_allocated_bytes(void);

#endif
