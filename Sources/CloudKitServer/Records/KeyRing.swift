import CloudKitWebServices
import Crypto
import Foundation

/// The server's keys for encrypted fields and for signing, by ID; it is stored in a file beside the
/// database, never in it.
struct KeyRing: Codable, Sendable {
  /// The key that seals.
  private(set) var current: String
  /// 32 bytes each; old ones are kept as long as something they sealed exists.
  private(set) var keys: [String: Data]
  /// Nil in files of versions that signed with a secret of the database.
  var signing: [SigningKey]?

  /// Creates a ring of one key, whose number differs from all known keys.
  init(first key: Data, besides known: some Collection<String> = []) {
    current = ""
    keys = [:]
    add(key, besides: known)
  }

  /// Adds the key that seals from now on, under a number that is neither in the ring nor known to
  /// the data.
  mutating func add(_ key: Data, besides known: some Collection<String> = []) {
    let taken = Array(keys.keys) + Array(known)
    let next = (taken.compactMap { Int($0) }.max() ?? 0) + 1
    current = "\(next)"
    keys[current] = key
  }

  /// The first key.
  var oldestKey: Data {
    keys.min { (Int($0.key) ?? .max, $0.key) < (Int($1.key) ?? .max, $1.key) }?.value ?? Data()
  }

  /// A fingerprint of each key by its ID: half of a SHA-256, which distinguishes two keys and reveals
  /// nothing about either.
  var fingerprints: [String: String] {
    keys.mapValues { key in
      Data(SHA256.hash(data: Data("watershed field key".utf8) + key).prefix(16)).hexadecimal
    }
  }

  /// Throws if the ring does not match the data with these fingerprints.
  func check(against known: [String: String], file: URL) throws(KeyRingMismatch) {
    let mine = fingerprints
    let other = known.filter { id, fingerprint in mine[id].map { $0 != fingerprint } ?? false }
    guard other.isEmpty else {
      throw KeyRingMismatch(file: file.path, problem: .other, ids: other.keys.sorted())
    }
    let missing = known.keys.filter { mine[$0] == nil }.sorted()
    guard missing.isEmpty else {
      throw KeyRingMismatch(file: file.path, problem: .missingKeys, ids: missing)
    }
  }

  /// Reads the ring of a file, checks it against the data's fingerprints, and adds those of new
  /// keys.
  ///
  /// A ring is created only if there is no file and the data has no fingerprints. `isUsed` means
  /// that the data already has accounts: a server without fingerprints has then created a file.
  static func open(
    _ file: URL,
    known: inout [String: String],
    isUsed: Bool,
    makeKey: () -> Data
  ) throws -> KeyRing {
    if let ring = try read(file) {
      try ring.check(against: known, file: file)
      known = ring.fingerprints
      return ring
    }
    guard known.isEmpty, !isUsed else {
      throw KeyRingMismatch(file: file.path, problem: .missingFile, ids: known.keys.sorted())
    }
    let made = KeyRing(first: makeKey())
    try made.write(file)
    known = made.fingerprints
    return made
  }

  func key(_ id: String) throws -> SymmetricKey {
    guard let key = keys[id] else { throw MissingKey(id: id) }
    return SymmetricKey(data: key)
  }

  /// The ring in a file; nil if there is no file.
  static func read(_ file: URL) throws -> KeyRing? {
    guard try ForeignFile.isThere(file) else { return nil }
    do {
      return try WireCoding.decode(KeyRing.self, from: try Data(contentsOf: file))
    } catch is MalformedBody {
      throw DamagedKeyFile(file: file.path)
    }
  }

  /// Writes the ring atomically, readable only for its owner.
  func write(_ file: URL) throws {
    let folder = file.deletingLastPathComponent()
    try PrivateFile.makeFolder(folder)
    try PrivateFile.write(try WireCoding.encode(self), to: file)
    // Data that is sealed with a new key must not survive a power failure that the key does not.
    try DurableFolder.synchronize(folder)
  }

  struct MissingKey: Error, CustomStringConvertible {
    var id: String

    var description: String { "the key \(id) is not in the server's key file" }
  }
}

/// The content of a key file is not a key ring.
package struct DamagedKeyFile: Error, Hashable, CustomStringConvertible {
  var file: String

  package var description: String {
    "The key file \(file) is damaged. Put it back from a backup, where it is "
      + "\(CloudKitService.keyFileName)."
  }
}

/// The key file of a server does not match the data that it opens.
package struct KeyRingMismatch: Error, Hashable, CustomStringConvertible {
  package enum Problem: Hashable, Sendable {
    /// There is no file, and the data was used with one.
    case missingFile
    /// The file lacks keys with which other servers sealed.
    case missingKeys
    /// The file has other keys under the same numbers.
    case other
  }

  var file: String
  package var problem: Problem
  /// The numbers of the keys that are missing or differ; empty if they are not known.
  var ids: [String]

  package var description: String {
    let keys = ids.count == 1 ? "key \(ids[0])" : "keys \(ids.joined(separator: ", "))"
    let what =
      switch problem {
      case .missingFile:
        "The key file \(file) does not exist, and the data was written with one"
          + (ids.isEmpty ? "" : " (\(keys))") + "."
      case .missingKeys:
        "The key file \(file) lacks the \(keys), which values in the data were sealed with."
      case .other:
        "The key file \(file) is another server's: its \(keys) differ\(ids.count == 1 ? "s" : "") "
          + "from what values in the data were sealed with."
      }
    return what + " All servers of a database share one key file: give this server the same, with "
      + "keyFile in the configuration, or put it back from a backup, where it is "
      + "\(CloudKitService.keyFileName). If it is lost for good: watershed storage adopt."
  }
}
