// Definitions in the program come before those of the C library, for SQLite and Foundation as well.
#define _GNU_SOURCE
#include "include/SystemCallFaults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_bool is_armed;
static atomic_long count;
static char folder[PATH_MAX];
static size_t folder_length;
static long target;
static system_call_fault fault;
static int number;
static bool is_sticky;
static bool counts_writes_only;
static void (*callback)(void);
static const char *hit_call = "";
// Calls of the callback are not counted.
static __thread bool is_inside;
static char copies[PATH_MAX];

#define DESCRIPTOR_LIMIT 65536
static unsigned char is_watched[DESCRIPTOR_LIMIT];

void system_calls_arm(const char *path, long nth, system_call_fault kind, int error_number,
                      int sticky, int writes_only, void (*body)(void)) {
  snprintf(folder, sizeof folder, "%s", path);
  folder_length = strlen(folder);
  target = nth;
  fault = kind;
  number = error_number;
  is_sticky = sticky != 0;
  counts_writes_only = writes_only != 0;
  callback = body;
  hit_call = "";
  atomic_store(&count, 0);
  atomic_store(&is_armed, true);
}

long system_calls_disarm(void) {
  atomic_store(&is_armed, false);
  return atomic_load(&count);
}

void system_calls_keep_synced(const char *path) { snprintf(copies, sizeof copies, "%s", path); }

const char *system_calls_hit(void) { return hit_call; }

int system_calls_use_one_processor(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  for (int processor = 0; processor < CPU_SETSIZE; processor++) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    CPU_ZERO(&allowed);
    CPU_SET(processor, &allowed);
    return sched_setaffinity(0, sizeof allowed, &allowed);
  }
  return -1;
}

static bool is_ours(const char *path) {
  return path != NULL && folder_length > 0 && strncmp(path, folder, folder_length) == 0;
}

static bool is_ours_at(int descriptor, const char *path) {
  if (path != NULL && path[0] == '/') return is_ours(path);
  return descriptor >= 0 && descriptor < DESCRIPTOR_LIMIT && is_watched[descriptor];
}

static bool is_our_descriptor(int descriptor) {
  return descriptor >= 0 && descriptor < DESCRIPTOR_LIMIT && is_watched[descriptor];
}

static int mark(int descriptor, bool ours) {
  if (descriptor >= 0 && descriptor < DESCRIPTOR_LIMIT) is_watched[descriptor] = ours;
  return descriptor;
}

typedef enum { verdict_allow, verdict_fail, verdict_cut } verdict;
typedef enum { call_reads, call_takes_space, call_writes } call_kind;

static verdict judge(const char *name, call_kind kind) {
  if (!atomic_load(&is_armed) || is_inside) return verdict_allow;
  if (fault == system_call_is_cut && kind != call_writes) return verdict_allow;
  if (counts_writes_only && kind == call_reads) return verdict_allow;
  long mine = atomic_fetch_add(&count, 1) + 1;
  if (mine != target && !(is_sticky && mine > target)) return verdict_allow;
  if (mine == target) hit_call = name;
  switch (fault) {
    case system_call_none:
      return verdict_allow;
    case system_call_fails:
      errno = number;
      return verdict_fail;
    case system_call_is_cut:
      return verdict_cut;
    case system_call_ends_process:
      kill(getpid(), SIGKILL);
      pause();
      return verdict_fail;
    case system_call_calls_back:
      is_inside = true;
      callback();
      is_inside = false;
      return verdict_allow;
  }
  return verdict_allow;
}

#define NEXT(result, name, ...)                      \
  static result (*next)(__VA_ARGS__);                \
  if (next == NULL) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

// The path of the copy of a file; false where no copies are kept.
static bool copy_of(int descriptor, char path[PATH_MAX + 32], struct stat *found) {
  if (copies[0] == 0 || is_inside || fstat(descriptor, found) != 0) return false;
  snprintf(path, PATH_MAX + 32, "%s/%llu", copies, (unsigned long long)found->st_ino);
  return true;
}

// Copies a file that is on the disk now. A copy that cannot be made ends the process: the test would prove nothing.
static void keep_synced(int descriptor) {
  char path[PATH_MAX + 32];
  static char bytes[1 << 16];
  static atomic_flag is_busy = ATOMIC_FLAG_INIT;
  struct stat found;
  if (!copy_of(descriptor, path, &found) || !S_ISREG(found.st_mode)) return;
  while (atomic_flag_test_and_set(&is_busy)) sched_yield();
  is_inside = true;
  int copy = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (copy < 0) abort();
  // A descriptor that is only written is not SQLite's: closing another one of the file releases no lock.
  int access_mode = fcntl(descriptor, F_GETFL) & O_ACCMODE;
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor);
  int source = access_mode == O_WRONLY ? open(self, O_RDONLY) : descriptor;
  if (source < 0) abort();
  off_t at = 0;
  for (ssize_t length; (length = pread(source, bytes, sizeof bytes, at)) != 0; at += length) {
    if (length < 0 || write(copy, bytes, (size_t)length) != length) abort();
  }
  if (source != descriptor) close(source);
  close(copy);
  is_inside = false;
  atomic_flag_clear(&is_busy);
}

// A new file has no content on the disk; its inode may be that of a file that was removed.
static int forget_synced(int descriptor, int flags) {
  char path[PATH_MAX + 32];
  struct stat found;
  if (descriptor >= 0 && (flags & O_CREAT) != 0 && copy_of(descriptor, path, &found) && found.st_size == 0) {
    is_inside = true;
    unlink(path);
    is_inside = false;
  }
  return descriptor;
}

// Opening a file for writing may need space for its name.
static call_kind kind_of(int flags) {
  return (flags & O_CREAT) != 0 ? call_takes_space : call_reads;
}

static mode_t mode_of(int flags, va_list list) {
  bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? (mode_t)va_arg(list, int) : 0;
}

#define OPEN(name)                                                             \
  int name(const char *path, int flags, ...) {                                 \
    NEXT(int, name, const char *, int, ...);                                   \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    mode_t mode = mode_of(flags, list);                                        \
    va_end(list);                                                              \
    bool ours = is_ours(path);                                                 \
    if (ours && judge(#name, kind_of(flags)) == verdict_fail) return -1;       \
    int descriptor = next(path, flags, mode);                                  \
    return mark(ours ? forget_synced(descriptor, flags) : descriptor, ours);   \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                           \
  int name(int folder_descriptor, const char *path, int flags, ...) {          \
    NEXT(int, name, int, const char *, int, ...);                              \
    va_list list;                                                              \
    va_start(list, flags);                                                     \
    mode_t mode = mode_of(flags, list);                                        \
    va_end(list);                                                              \
    bool ours = is_ours_at(folder_descriptor, path);                           \
    if (ours && judge(#name, kind_of(flags)) == verdict_fail) return -1;       \
    int descriptor = next(folder_descriptor, path, flags, mode);               \
    return mark(ours ? forget_synced(descriptor, flags) : descriptor, ours);   \
  }
OPENAT(openat)
OPENAT(openat64)

#define MAKE_TEMPORARY(name)                                                   \
  int name(char *path) {                                                       \
    NEXT(int, name, char *);                                                   \
    bool ours = is_ours(path);                                                 \
    if (ours && judge(#name, call_takes_space) == verdict_fail) return -1;     \
    return mark(next(path), ours);                                             \
  }
MAKE_TEMPORARY(mkstemp)
MAKE_TEMPORARY(mkstemp64)

int close(int descriptor) {
  NEXT(int, close, int);
  mark(descriptor, false);
  return next(descriptor);
}

#define TWO_PATHS(name)                                                        \
  int name(const char *path, const char *other) {                              \
    NEXT(int, name, const char *, const char *);                               \
    bool ours = is_ours(path) || is_ours(other);                               \
    if (ours && judge(#name, call_takes_space) == verdict_fail) return -1;     \
    return next(path, other);                                                  \
  }
TWO_PATHS(rename)
TWO_PATHS(link)
TWO_PATHS(symlink)

int renameat(int descriptor, const char *path, int other_descriptor, const char *other) {
  NEXT(int, renameat, int, const char *, int, const char *);
  bool ours = is_ours_at(descriptor, path) || is_ours_at(other_descriptor, other);
  if (ours && judge("renameat", call_takes_space) == verdict_fail) return -1;
  return next(descriptor, path, other_descriptor, other);
}

int renameat2(int descriptor, const char *path, int other_descriptor, const char *other,
              unsigned int flags) {
  NEXT(int, renameat2, int, const char *, int, const char *, unsigned int);
  bool ours = is_ours_at(descriptor, path) || is_ours_at(other_descriptor, other);
  if (ours && judge("renameat2", call_takes_space) == verdict_fail) return -1;
  return next(descriptor, path, other_descriptor, other, flags);
}

int linkat(int descriptor, const char *path, int other_descriptor, const char *other, int flags) {
  NEXT(int, linkat, int, const char *, int, const char *, int);
  bool ours = is_ours_at(descriptor, path) || is_ours_at(other_descriptor, other);
  if (ours && judge("linkat", call_takes_space) == verdict_fail) return -1;
  return next(descriptor, path, other_descriptor, other, flags);
}

#define ONE_PATH(name)                                                         \
  int name(const char *path) {                                                 \
    NEXT(int, name, const char *);                                             \
    if (is_ours(path) && judge(#name, call_reads) == verdict_fail) return -1;  \
    return next(path);                                                         \
  }
ONE_PATH(unlink)
ONE_PATH(rmdir)
ONE_PATH(remove)

int unlinkat(int descriptor, const char *path, int flags) {
  NEXT(int, unlinkat, int, const char *, int);
  bool ours = is_ours_at(descriptor, path);
  if (ours && judge("unlinkat", call_reads) == verdict_fail) return -1;
  return next(descriptor, path, flags);
}

int mkdir(const char *path, mode_t mode) {
  NEXT(int, mkdir, const char *, mode_t);
  if (is_ours(path) && judge("mkdir", call_takes_space) == verdict_fail) return -1;
  return next(path, mode);
}

int access(const char *path, int mode) {
  NEXT(int, access, const char *, int);
  if (is_ours(path) && judge("access", call_reads) == verdict_fail) return -1;
  return next(path, mode);
}

#define STATUS(name, type)                                                     \
  int name(const char *path, struct type *found) {                             \
    NEXT(int, name, const char *, struct type *);                              \
    if (is_ours(path) && judge(#name, call_reads) == verdict_fail) return -1;  \
    return next(path, found);                                                  \
  }
STATUS(stat, stat)
STATUS(lstat, stat)
STATUS(stat64, stat64)
STATUS(lstat64, stat64)

DIR *opendir(const char *path) {
  NEXT(DIR *, opendir, const char *);
  if (is_ours(path) && judge("opendir", call_reads) == verdict_fail) return NULL;
  return next(path);
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
  NEXT(ssize_t, write, int, const void *, size_t);
  if (is_our_descriptor(descriptor)) {
    verdict found = judge("write", call_writes);
    if (found == verdict_fail) return -1;
    if (found == verdict_cut && length > 1) length /= 2;
  }
  return next(descriptor, bytes, length);
}

#define POSITIONED_WRITE(name, position)                                       \
  ssize_t name(int descriptor, const void *bytes, size_t length, position at) { \
    NEXT(ssize_t, name, int, const void *, size_t, position);                  \
    if (is_our_descriptor(descriptor)) {                                       \
      verdict found = judge(#name, call_writes);                               \
      if (found == verdict_fail) return -1;                                    \
      if (found == verdict_cut && length > 1) length /= 2;                     \
    }                                                                          \
    return next(descriptor, bytes, length, at);                                \
  }
POSITIONED_WRITE(pwrite, off_t)
POSITIONED_WRITE(pwrite64, off64_t)

ssize_t read(int descriptor, void *bytes, size_t length) {
  NEXT(ssize_t, read, int, void *, size_t);
  if (is_our_descriptor(descriptor) && judge("read", call_reads) == verdict_fail) return -1;
  return next(descriptor, bytes, length);
}

#define POSITIONED_READ(name, position)                                        \
  ssize_t name(int descriptor, void *bytes, size_t length, position at) {      \
    NEXT(ssize_t, name, int, void *, size_t, position);                        \
    if (is_our_descriptor(descriptor) && judge(#name, call_reads) == verdict_fail) \
      return -1;                                                               \
    return next(descriptor, bytes, length, at);                                \
  }
POSITIONED_READ(pread, off_t)
POSITIONED_READ(pread64, off64_t)

#define SYNCHRONIZE(name)                                                      \
  int name(int descriptor) {                                                   \
    NEXT(int, name, int);                                                      \
    if (is_our_descriptor(descriptor) && judge(#name, call_takes_space) == verdict_fail) \
      return -1;                                                               \
    int result = next(descriptor);                                             \
    if (result == 0 && is_our_descriptor(descriptor)) keep_synced(descriptor); \
    return result;                                                             \
  }
SYNCHRONIZE(fsync)
SYNCHRONIZE(fdatasync)

#define TRUNCATE(name, position)                                               \
  int name(int descriptor, position length) {                                  \
    NEXT(int, name, int, position);                                            \
    if (is_our_descriptor(descriptor) && judge(#name, call_takes_space) == verdict_fail) \
      return -1;                                                               \
    return next(descriptor, length);                                           \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)
