import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The entries of a folder on the disk: a file that was renamed into it is there after a power cut only
/// when the folder was synchronized too.
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
