// System calls that fail on purpose, for the tests of stores under failure.
//
// A program that links this target has its calls to the file system counted, those of SQLite and of
// Foundation too, as far as they are about files in one folder. One call, or all from one on, can fail.
#ifndef SYSTEM_CALL_FAULTS_H
#define SYSTEM_CALL_FAULTS_H

typedef enum {
  // Only counts.
  system_call_none,
  // The call fails with an error number.
  system_call_fails,
  // A write writes half of its bytes; other calls are not counted.
  system_call_is_cut,
  // The process ends before the call.
  system_call_ends_process,
  // The callback runs before the call.
  system_call_calls_back,
} system_call_fault;

// Begins to count calls. The call with the number `nth`, from 1, gets the fault; with `sticky` all later
// ones too. With `writes_only` the calls that need no space on the disk are not counted.
void system_calls_arm(const char *folder, long nth, system_call_fault fault, int error_number,
                      int sticky, int writes_only, void (*callback)(void));

// From then on each file of the folder that is brought to the disk by `fsync` or `fdatasync` is copied, as it is then,
// into another folder, under the number of its inode: what a power failure leaves of its content.
void system_calls_keep_synced(const char *copies);

// Ends the counting and returns how many calls there were.
long system_calls_disarm(void);

// The name of the call that got the fault; an empty text where none did.
const char *system_calls_hit(void);

// Lets this process, and the programs that it becomes, use one processor; 0 where that worked.
int system_calls_use_one_processor(void);

#endif
