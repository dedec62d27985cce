#ifndef WATERSHED_SWIFT_RUNTIME_H
#define WATERSHED_SWIFT_RUNTIME_H

/// Retains an object, unless nothing held it any more and it is going: then the answer is null.
///
/// The Swift runtime's own function behind weak references; see ObjectRegistry.swift.
void *_Nullable swift_tryRetain(void *_Nonnull object);

/// How many hold an object.
unsigned long swift_retainCount(void *_Nonnull object);

#endif
