#include "raw_sqlite.h"

#include <malloc.h>

int64_t raw_allocated_bytes(void) {
  struct mallinfo2 information = mallinfo2();
  return (int64_t)(information.uordblks + information.hblkhd);
}
