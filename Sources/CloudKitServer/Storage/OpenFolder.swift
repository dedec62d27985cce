import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The folder in which a file or folder is created.
///
/// Root opens it: what root creates and the owner that it gets are of one folder, even if another user replaces a part
/// of the path meanwhile. The folders of a server's data belong to the server's user, who could put links there.
/// Other users create by path, since they may be allowed to create in a folder that they cannot read.
struct OpenFolder: ~Copyable {
  private let folder: URL
  private let isOpen: Bool
  /// The open folder, or the one to which the system's relative paths are relative.
  private let descriptor: Int32

  init(_ folder: URL) throws {
    self.folder = folder
    isOpen = geteuid() == 0
    descriptor = isOpen ? try Self.descriptor(of: folder) : AT_FDCWD
  }

  deinit {
    if isOpen { _ = close(descriptor) }
  }

  /// Opens a folder; the last part of its path may be a link that root made, or one to a folder of the link's owner.
  private static func descriptor(of folder: URL) throws -> Int32 {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
    let direct = open(folder.path, flags | O_NOFOLLOW)
    if direct >= 0 { return direct }
    guard errno == ELOOP || errno == ENOTDIR else { throw PrivateFile.failure(folder) }
    let followed = open(folder.path, flags)
    guard followed >= 0 else { throw PrivateFile.failure(folder) }
    var (link, target) = (stat(), stat())
    guard lstat(folder.path, &link) == 0, fstat(followed, &target) == 0,
      Self.mayFollow(link, to: target)
    else {
      _ = close(followed)
      throw ForeignLink(path: folder.path)
    }
    return followed
  }

  /// Whether root follows a link: one of root, or one to what belongs to the link's owner.
  private static func mayFollow(_ link: stat, to target: stat) -> Bool {
    link.st_mode & S_IFMT == S_IFLNK && link.st_uid == 0 || link.st_uid == target.st_uid
  }

  /// Throws if root would follow another user's link to a file that is not that user's, or is missing.
  static func refuseForeignLink(_ file: URL) throws(ForeignLink) {
    var (link, target) = (stat(), stat())
    guard geteuid() == 0, lstat(file.path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK,
      link.st_uid != 0
    else { return }
    guard stat(file.path, &target) == 0, Self.mayFollow(link, to: target) else {
      throw ForeignLink(path: file.path)
    }
  }

  private func name(_ item: URL) -> String { isOpen ? item.lastPathComponent : item.path }

  /// The owner that root gives an item of the folder: the former item's, or the folder's.
  ///
  /// Nil if it stays with the user of this process.
  /// The server of a data folder runs as a user of its own. After a command of root on the stopped server it could
  /// otherwise open neither a new key file nor a new folder.
  func heir(of item: URL) -> FileOwner? {
    guard isOpen else { return nil }
    var (former, own) = (stat(), stat())
    if fstatat(descriptor, name(item), &former, AT_SYMLINK_NOFOLLOW) == 0, former.st_uid != 0 {
      return FileOwner(former)
    }
    return fstat(descriptor, &own) == 0 && own.st_uid != 0 ? FileOwner(own) : nil
  }

  /// Creates a file, which must not exist; returns its descriptor.
  func create(_ file: URL) throws -> Int32 {
    let heir = heir(of: file)
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let created = openat(descriptor, name(file), flags, 0o600)
    guard created >= 0 else { throw PrivateFile.failure(file) }
    guard heir?.take(created) ?? true else {
      let error = PrivateFile.failure(file)
      _ = close(created)
      throw error
    }
    return created
  }

  /// Creates a folder, which must not exist.
  func makeFolder(_ made: URL) throws {
    let heir = heir(of: made)
    guard mkdirat(descriptor, name(made), 0o700) == 0 else { throw PrivateFile.failure(made) }
    guard let heir else { return }
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    let opened = openat(descriptor, name(made), flags)
    guard opened >= 0 else { throw PrivateFile.failure(made) }
    defer { _ = close(opened) }
    guard heir.take(opened) else { throw PrivateFile.failure(made) }
  }

  /// Removes a file, if there is one.
  func remove(_ file: URL) { _ = unlinkat(descriptor, name(file), 0) }

  /// Gives a file of the folder another name in it, in place of the file that has the name.
  func rename(_ file: URL, to new: URL) throws {
    guard renameat(descriptor, name(file), descriptor, name(new)) == 0 else {
      throw PrivateFile.failure(new)
    }
  }
}

/// A link that root does not follow: its owner would choose which files of other users root changes.
package struct ForeignLink: Error, Hashable, CustomStringConvertible, LocalizedError {
  var path: String

  package var errorDescription: String? { description }

  package var description: String {
    "\(path) is a link of another user to what is not that user's, so root does not follow it: put the file or "
      + "folder itself there, or make the link as root."
  }
}
