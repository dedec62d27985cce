import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A thread of this process; its number may be that of another thread after it has ended.
struct ThreadKey: Hashable, Sendable {
  /// Never 0.
  let number: UInt

  init?(number: UInt) {
    if number == 0 { return nil }
    self.number = number
  }

  private init() {
    #if canImport(Glibc)
    number = UInt(pthread_self())
    #else
    number = UInt(bitPattern: pthread_self())
    #endif
  }

  /// The calling thread.
  static var current: ThreadKey { ThreadKey() }
}
