import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Synchronizes the entries of a folder: a file that was renamed into it survives a power failure
/// only if the folder was synchronized too.
enum DurableFolder {
  static func synchronize(_ folder: URL) throws {
    let descriptor = open(folder.path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CocoaError(.fileReadUnknown, userInfo: [NSFilePathErrorKey: folder.path])
    }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try handle.synchronize()
    try handle.close()
  }
}
