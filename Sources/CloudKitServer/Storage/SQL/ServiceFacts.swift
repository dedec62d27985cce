import CloudKitWebServices
import Effects
import Foundation

/// The service's own values, by name.
struct ServiceFacts<Session: SQLSession> {
  let session: Session

  subscript(name: String) -> Data? {
    get throws {
      try session.query("SELECT value FROM service WHERE name = $1", [.text(name)]) {
        $0.blob(0)
      }.first
    }
  }

  func number(_ name: String) throws -> Int64? {
    try self[name].flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
  }

  func set(_ name: String, _ value: Data) throws {
    try session.insert(into: StorageTables.service, .replaced, [[.text(name), .bytes(value)]])
  }

  func set(_ name: String, _ number: Int64) throws { try set(name, Data(String(number).utf8)) }

  /// The value, created if it does not exist; two servers that start at the same time get the same
  /// value.
  func kept(_ name: String, _ make: () -> Data) throws -> Data {
    if let value = try self[name] { return value }
    try session.insert(into: StorageTables.service, .ignored, [[.text(name), .bytes(make())]])
    return try self[name] ?? Data()
  }

  /// The number of transactions that an SQLite file has committed.
  func commitCount() throws -> Int64 { try number("openings") ?? 0 }

  func setCommitCount(_ count: Int64) throws { try set("openings", count) }

  /// Counts the open transaction; other processes may have counted since the last one.
  func countCommit() throws -> Int64 {
    let count = try commitCount() + 1
    try setCommitCount(count)
    return count
  }

  /// Stores the identity of the PostgreSQL server, and begins a new incarnation if the stored one
  /// differs: the other server's last commits may be missing here.
  ///
  /// If several servers detect it at the same time, the first one begins the incarnation.
  func settle(in origin: String, _ randomness: any RandomSource) throws {
    let known = try session.query(
      "SELECT value FROM service WHERE name = 'origin' \(session.dialect.locked)",
      []
    ) { String(decoding: $0.blob(0), as: UTF8.self) }.first
    guard known != origin else { return }
    try set("origin", Data(origin.utf8))
    guard let known else { return }
    _ = try branchOff(randomness)
    // Transaction numbers are not comparable between PostgreSQL clusters: events with greater
    // numbers would wait for transactions that never run.
    guard known.prefix(while: { $0 != " " }) != origin.prefix(while: { $0 != " " }) else { return }
    try session.run("DELETE FROM events", [])
  }

  /// The signing secret of earlier versions; later ones have their keys in a file.
  var secret: Data? {
    get throws { try self["secret"] }
  }

  func incarnation(_ randomness: any RandomSource) throws -> String {
    let value = try kept("incarnation") { Data(randomness.bytes(8).hexadecimal.utf8) }
    return String(decoding: value, as: UTF8.self)
  }

  var fingerprints: StorageFingerprints {
    get throws {
      guard let data = try self["fingerprints"] else { return StorageFingerprints() }
      return try WireCoding.decode(StorageFingerprints.self, from: data)
    }
  }

  func changeFingerprints<Result>(
    _ body: (inout StorageFingerprints) throws -> Result
  ) throws -> Result {
    let known = try fingerprints
    var changed = known
    let result = try body(&changed)
    if changed != known { try set("fingerprints", try WireCoding.encode(changed)) }
    return result
  }

  /// Begins and stores a new incarnation, with which no change token of a former one can be
  /// continued.
  func beginNewIncarnation(_ randomness: any RandomSource) throws -> String {
    let next = randomness.bytes(8).hexadecimal
    try set("incarnation", Data(next.utf8))
    return next
  }
}
