import Foundation

/// Frees the bodies of deallocated objects one after another, however long the chain is that they form.
///
/// An object holds the destinations that were read. A list of versions or a tree that was walked is a chain of
/// objects of which each has the last reference to the next: releasing the first would deallocate each one
/// within the deallocation of the one before, and end the process by a stack overflow after some thousand. So
/// the first body that a thread frees is the outermost; bodies whose objects are deallocated meanwhile wait
/// until it is freed.
enum BodyDisposal {
  private typealias Bodies = [UnsafeMutablePointer<ObjectBody>]

  /// The key of the bodies that wait on each thread; nil if the process has no key left.
  private static let key: pthread_key_t? = {
    var key = pthread_key_t()
    return pthread_key_create(&key, nil) == 0 ? key : nil
  }()

  @inline(__always)
  static func dispose(_ body: UnsafeMutablePointer<ObjectBody>) {
    guard body.pointee.holdsObjects, let key else { return free(body) }
    disposeInTurn(body, key)
  }

  @inline(never)
  private static func disposeInTurn(
    _ body: UnsafeMutablePointer<ObjectBody>,
    _ key: pthread_key_t
  ) {
    if let known = pthread_getspecific(key) {
      known.assumingMemoryBound(to: Bodies.self).pointee.append(body)
      return
    }
    let waiting = UnsafeMutablePointer<Bodies>.allocate(capacity: 1)
    waiting.initialize(to: [])
    pthread_setspecific(key, waiting)
    free(body)
    while let next = waiting.pointee.popLast() { free(next) }
    pthread_setspecific(key, nil)
    waiting.deinitialize(count: 1)
    waiting.deallocate()
  }

  private static func free(_ body: UnsafeMutablePointer<ObjectBody>) {
    if let work = body.pointee.work {
      work.deinitialize(count: 1)
      work.deallocate()
    }
    body.pointee.letGo()
    body.deinitialize(count: 1)
    body.deallocate()
  }
}

extension ObjectBody {
  /// Whether freeing it may deallocate other objects.
  @inline(__always)
  fileprivate var holdsObjects: Bool { !toManys.isEmpty || !toOneObjects.isEmpty || work != nil }
}
