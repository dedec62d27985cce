import CloudKitWebServices
import Crypto
import Effects
import Foundation
import Synchronization

/// Encrypts the values of encrypted fields before they reach the storage.
///
/// An envelope is: version (1 byte), the length of the key's ID (1 byte) and the ID, nonce (12),
/// the ciphertext of AES-GCM, tag (16). It is bound to container, environment, database, zone,
/// record and field: anywhere else it cannot be decrypted. The ID allows keys that the server does
/// not have, as end-to-end encryption needs.
final class FieldVault: Sendable {
  private static let version: UInt8 = 1

  /// The field that a value belongs to.
  struct Place: Hashable, Sendable {
    var container: String
    var environment: ContainerEnvironment
    var partition: PartitionID
    var record: RecordKey
    var field: String

    /// Each part is prefixed with its length, so that no two places have equal bytes.
    fileprivate var bytes: Data {
      let parts = [
        container, environment.rawValue, "\(partition.rawValue)", "\(record.zone.rawValue)",
        record.name, field,
      ]
      return parts.reduce(into: Data()) { $0.append(lengthAnd: $1) }
    }
  }

  private let ring: Mutex<KeyRing>
  /// The file of the key ring; nil in memory.
  private let file: URL?
  private let randomness: any RandomSource
  /// Has the fingerprints of the keys.
  private let storage: any Storage

  /// Reads the key ring, or creates the first key; a ring that does not match the storage is
  /// refused with `KeyRingMismatch`.
  ///
  /// Without a file the keys are lost with the vault, and the storage gets no fingerprints of them.
  init(file: URL?, storage: any Storage, randomness: any RandomSource, now: Int64) throws {
    self.file = file
    self.storage = storage
    self.randomness = randomness
    guard let file else {
      var made = KeyRing(first: randomness.bytes(32))
      made.addSigningKey(randomness.bytes(32), now: now)
      ring = Mutex(made)
      return
    }
    let isUsed = try storage.read { try $0.accountCount() } > 0
    ring = Mutex(
      try storage.changeFingerprints { known in
        var opened = try KeyRing.open(file, known: &known.fieldKeys, isUsed: isUsed) {
          randomness.bytes(32)
        }
        if opened.signingKeys.isEmpty {
          opened.addSigningKey(randomness.bytes(32), now: now)
          try opened.write(file)
        }
        return opened
      }
    )
  }

  /// The IDs of all keys, the current one first.
  var keyIDs: [String] {
    ring.withLock { ring in [ring.current] + ring.keys.keys.filter { $0 != ring.current }.sorted() }
  }

  /// Creates a new key, which seals from now on; the others still open what they sealed.
  ///
  /// The file is written before the fingerprint: after a crash between the two, the next start
  /// records the fingerprint.
  ///
  /// A new signing key is created with it; after a leak of the file, texts that the former ones
  /// sealed become invalid immediately, except change tokens.
  func rotate(now: Int64, formerHaveLeaked: Bool = false) throws -> String {
    guard let file else {
      return ring.withLock { ring in
        ring.add(randomness.bytes(32))
        ring.addSigningKey(
          randomness.bytes(32),
          now: now,
          formerHasLeaked: formerHaveLeaked
        )
        return ring.current
      }
    }
    return try storage.changeFingerprints { known in
      var next = try KeyRing.open(file, known: &known.fieldKeys, isUsed: true) { Data() }
      next.add(randomness.bytes(32), besides: known.fieldKeys.keys)
      next.addSigningKey(randomness.bytes(32), now: now, formerHasLeaked: formerHaveLeaked)
      try next.write(file)
      known.fieldKeys = next.fingerprints
      ring.withLock { $0 = next }
      return next.current
    }
  }

  /// Writes the ring to another file, for a backup; throws if the ring lacks a key of the storage.
  func export(to copy: URL) throws {
    guard let file else { return try ring.withLock { try $0.write(copy) } }
    try storage.changeFingerprints { known in
      try KeyRing.open(file, known: &known.fieldKeys, isUsed: true) { Data() }
    }.write(copy)
  }

  // MARK: Signing

  /// Newest last.
  var signingKeys: [SigningKey] { ring.withLock { $0.signingKeys } }

  /// The signing keys of the file, which another server may have rotated.
  func reread() throws -> [SigningKey] {
    guard let file, let found = try KeyRing.read(file), !found.signingKeys.isEmpty else {
      return signingKeys
    }
    return ring.withLock { ring in
      // A ring with additional keys is adopted completely: other servers sealed with its newer
      // field keys. A ring without the keys of this one belongs to other data; the next start
      // refuses it.
      if ring.keys.allSatisfy({ found.keys[$0.key] == $0.value }) { ring = found }
      return ring.signingKeys
    }
  }

  // MARK: Names of users

  /// The record name of an account's user in a container.
  ///
  /// It is derived from the account and the oldest key: a user who was created after the backup
  /// from which a server was restored gets the same name again, and devices that know it do not
  /// treat them as another user. Without the key, the names in two containers cannot be linked.
  func userRecordName(account: String, container: String) -> String {
    let oldest = ring.withLock { $0.oldestKey }
    let parts = ["user record name", container, account]
    let code = HMAC<SHA256>.authenticationCode(
      for: parts.reduce(into: Data()) { $0.append(lengthAnd: $1) },
      using: SymmetricKey(data: oldest)
    )
    return "_" + Data(code).prefix(16).hexadecimal
  }

  // MARK: Values

  /// Encrypts a value for the storage; returns one that is sealed or not encrypted unchanged.
  func seal(_ value: FieldValue, at place: Place) throws -> FieldValue {
    guard value.isEncrypted, value.sealedType == nil, let type = value.content.type else {
      return value
    }
    let (id, key) = try ring.withLock { ring in (ring.current, try ring.key(ring.current)) }
    var plain = value
    plain.isEncrypted = false
    let box = try AES.GCM.seal(
      try WireCoding.encode(plain),
      using: key,
      nonce: AES.GCM.Nonce(data: randomness.bytes(12)),
      authenticating: place.bytes
    )
    var envelope = Data([Self.version, UInt8(id.utf8.count)])
    envelope.append(contentsOf: id.utf8)
    envelope.append(contentsOf: box.nonce)
    envelope.append(box.ciphertext)
    envelope.append(box.tag)
    return FieldValue(.bytes(envelope), isEncrypted: true, sealedType: type)
  }

  /// Decrypts a value for its readers.
  func open(_ value: FieldValue, at place: Place) throws -> FieldValue {
    guard value.isEncrypted, value.sealedType != nil, case .bytes(let envelope) = value.content
    else {
      // Earlier servers accepted `sealedType` from clients: without the flag the value is no
      // envelope.
      var plain = value
      plain.sealedType = nil
      return plain
    }
    var rest = envelope
    guard rest.popFirst() == Self.version, let length = rest.popFirst(), rest.count >= length else {
      throw UnreadableEnvelope(reason: "its format is not known", place: place)
    }
    let id = String(decoding: rest.prefix(Int(length)), as: UTF8.self)
    rest = rest.dropFirst(Int(length))
    do {
      let box = try AES.GCM.SealedBox(combined: rest)
      let plain = try AES.GCM.open(box, using: try key(id), authenticating: place.bytes)
      var opened = try WireCoding.decode(FieldValue.self, from: plain)
      opened.isEncrypted = true
      return opened
    } catch {
      throw UnreadableEnvelope(reason: "\(error)", place: place)
    }
  }

  private func key(_ id: String) throws -> SymmetricKey {
    try ring.withLock { ring in
      if ring.keys[id] == nil, let file, let known = try KeyRing.read(file) { ring = known }
      return try ring.key(id)
    }
  }

  // MARK: Whole bodies

  /// Encrypts a kept reply, which may contain decrypted values.
  func seal(_ body: Data, for purpose: String) throws -> Data {
    let (id, key) = try ring.withLock { ring in (ring.current, try ring.key(ring.current)) }
    let box = try AES.GCM.seal(
      body,
      using: key,
      nonce: AES.GCM.Nonce(data: randomness.bytes(12)),
      authenticating: Data(purpose.utf8)
    )
    return Data([Self.version, UInt8(id.utf8.count)]) + Data(id.utf8) + box.nonce + box.ciphertext
      + box.tag
  }

  func open(_ sealed: Data, for purpose: String) throws -> Data {
    var rest = sealed
    guard rest.popFirst() == Self.version, let length = rest.popFirst(), rest.count >= length else {
      throw UnreadableBody()
    }
    let id = String(decoding: rest.prefix(Int(length)), as: UTF8.self)
    let box = try AES.GCM.SealedBox(combined: rest.dropFirst(Int(length)))
    return try AES.GCM.open(box, using: try key(id), authenticating: Data(purpose.utf8))
  }

  // MARK: Codes

  /// A code of a body that cannot be computed without the key file, with the ID of its key.
  func code(of body: Data, for purpose: String) throws -> Data {
    let (id, key) = try ring.withLock { ring in (ring.current, try ring.key(ring.current)) }
    let code = HMAC<SHA512>.authenticationCode(for: body, using: Self.codeKey(key, purpose))
    return Data([Self.version, UInt8(id.utf8.count)]) + Data(id.utf8) + Data(code)
  }

  /// Whether a code authenticates a body; throws if the code's key is missing.
  func isCode(_ code: Data, of body: Data, for purpose: String) throws -> Bool {
    var rest = code
    guard rest.popFirst() == Self.version, let length = rest.popFirst(), rest.count >= length else {
      throw UnreadableBody()
    }
    let key = try key(String(decoding: rest.prefix(Int(length)), as: UTF8.self))
    return HMAC<SHA512>.isValidAuthenticationCode(
      Data(rest.dropFirst(Int(length))),
      authenticating: body,
      using: Self.codeKey(key, purpose)
    )
  }

  private static func codeKey(_ key: SymmetricKey, _ purpose: String) -> SymmetricKey {
    HKDF<SHA512>.deriveKey(
      inputKeyMaterial: key,
      info: Data("code \(purpose)".utf8),
      outputByteCount: 64
    )
  }
}

/// A sealed value that cannot be decrypted: its key is missing, or it was moved or changed.
struct UnreadableEnvelope: Error, CustomStringConvertible {
  var reason: String
  var place: FieldVault.Place

  var description: String {
    "the encrypted field '\(place.field)' of record '\(place.record.name)' cannot be opened: "
      + reason
  }
}

struct UnreadableBody: Error, CustomStringConvertible {
  var description: String { "a sealed body has an unknown format" }
}

extension Data {
  fileprivate mutating func append(lengthAnd part: String) {
    let length = Swift.withUnsafeBytes(of: UInt32(part.utf8.count).bigEndian) { Data($0) }
    append(length)
    append(contentsOf: part.utf8)
  }
}
