#ifndef WATERSHED_SWIFT_RUNTIME_H
#define WATERSHED_SWIFT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Retains an object, unless nothing held it any more and it is going: then the answer is null.
///
/// The Swift runtime's own function behind weak references; see ObjectRegistry.swift.
void *_Nullable swift_tryRetain(void *_Nonnull object);

/// How many hold an object.
unsigned long swift_retainCount(void *_Nonnull object);

/// Where an image has its records of one kind.
struct swift_record_range {
  const void *_Nullable start;
  size_t length;
};

/// The first members of the runtime's list of an image's records, which later versions only append to:
/// stdlib/public/runtime/MetadataSections.h in the Swift repository.
struct swift_metadata_sections {
  uintptr_t version;
  const void *_Nullable baseAddress;
  void *_Nullable unused0;
  void *_Nullable unused1;
  struct swift_record_range protocols;
  struct swift_record_range conformances;
  struct swift_record_range types;
};

/// Calls a function for each image of the process, until it returns false.
void swift_enumerateAllMetadataSections(
    bool (*_Nonnull body)(const struct swift_metadata_sections *_Nonnull sections,
                          void *_Nullable context),
    void *_Nullable context);

struct swift_metadata_response {
  const void *_Nullable metadata;
  size_t state;
};

/// Calls the function of a type's descriptor that returns the type's complete metadata.
static inline const void *_Nullable watershed_metadata(const void *_Nonnull accessor) {
  typedef struct swift_metadata_response (*function)(size_t request) __attribute__((swiftcall));
  return ((function)accessor)(0).metadata;
}

#endif
