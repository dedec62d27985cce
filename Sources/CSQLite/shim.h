#include <sqlite3.h>

// Swift cannot call variadic functions.
// After this, closing the last connection leaves the write-ahead log as it is.
static inline int watershed_sqlite3_keep_log(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
