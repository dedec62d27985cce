import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Maps files into memory, up to a limit.
///
/// A mapped file takes no memory until it is read, and the kernel takes its pages back when memory is short. It
/// remains readable after it was removed.
///
/// Only for files that are written once, under another name, and then renamed: a page beyond the end of a
/// file that was truncated, and one that the disk cannot read, ends the process with SIGBUS.
package final class FileMappings: Sendable {
  /// The contents of a file.
  package enum Contents: Sendable {
    /// A small file, read whole.
    case read(Data)
    case mapped(Data)
    /// The file is there and can be read, but it could not be mapped.
    case unmapped
  }

  /// The mappings of the process.
  ///
  /// Linux permits 65,530 mappings for each process (`vm.max_map_count`); the allocator, stacks and libraries
  /// need some of them.
  package static let shared = FileMappings(limit: 1 << 15)

  /// Files of fewer bytes are read whole: a mapping costs a few calls and at least a page.
  package static let smallest = 64 << 10

  private let limit: Int
  private let count = Atomic(0)

  package init(limit: Int) {
    self.limit = limit
  }

  /// The contents of a file; nil where there is none.
  package func contents(of path: String) throws -> Contents? {
    guard let descriptor = try FileSystem.descriptor(of: path, O_RDONLY, "read") else { return nil }
    defer { close(descriptor) }
    guard let size = try FileSystem.size(of: descriptor, path), size >= Self.smallest else {
      return .read(try FileSystem.contents(of: descriptor, path))
    }
    return map(descriptor, size).map(Contents.mapped) ?? .unmapped
  }

  private func map(_ descriptor: Int32, _ size: Int) -> Data? {
    guard count.add(1, ordering: .relaxed).newValue <= limit else {
      count.subtract(1, ordering: .relaxed)
      return nil
    }
    // `Data` changes bytes that no other value shares in place. The pages must permit that; as they are
    // private, the file stays as it is.
    let access = PROT_READ | PROT_WRITE
    let start = mmap(nil, size, access, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0)
    guard let start, start != UnsafeMutableRawPointer(bitPattern: -1) else {
      count.subtract(1, ordering: .relaxed)
      return nil
    }
    return Data(
      bytesNoCopy: start,
      count: size,
      deallocator: .custom { [self] start, size in
        munmap(start, size)
        count.subtract(1, ordering: .relaxed)
      }
    )
  }
}
