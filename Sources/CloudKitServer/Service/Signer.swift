import CloudKitWebServices
import Crypto
import Effects
import Foundation
import Synchronization

/// Seals texts that only this server can create: change tokens, receipts, capability URLs.
///
/// The newest key seals. Older ones open what they sealed as long as that is valid, so that a new
/// key signs no user out and expires no client's tokens.
final class Signer: Sendable {
  /// The purpose of a text; a text for one purpose is never valid for another.
  enum Purpose: String, CaseIterable {
    case changeToken, continuation, upload, receipt, download, shareAcceptance, signIn, identity,
      identityTicket, publicVisit, unownedDevice
  }

  /// A signing key, and the keys derived from it for each purpose.
  private struct Derived: Sendable {
    var source: SigningKey
    var keys: [Purpose: SymmetricKey]

    init(_ source: SigningKey) {
      self.source = source
      let secret = SymmetricKey(data: source.key)
      keys = Dictionary(
        uniqueKeysWithValues: Purpose.allCases.map { purpose in
          let code = HMAC<SHA256>.authenticationCode(
            for: Data(purpose.rawValue.utf8),
            using: secret
          )
          return (purpose, SymmetricKey(data: code))
        }
      )
    }

    func opens(_ purpose: Purpose, at time: Int64) -> Bool {
      guard let retired = source.retired else { return true }
      return purpose.outlivesKeys || time - retired < SigningKey.overlap
    }
  }

  private struct State: Sendable {
    /// Newest first.
    var keys: [Derived]
    /// When the file was last read again, in seconds of uptime.
    var reread: Double?
  }

  /// Seconds between two reads of the file for a text that no known key opens.
  private static let pause = 5.0

  private let state: Mutex<State>
  /// The key that earlier versions stored in the database: a client that read the database can seal
  /// with it, so it opens no text that grants access.
  private let former: SigningKey?
  private let clock: any EffectClock
  private let readAgain: @Sendable () -> [SigningKey]?

  /// `reread` returns the keys of the file, which another server may have changed.
  init(
    keys: [SigningKey],
    former secret: Data?,
    clock: any EffectClock,
    reread: @escaping @Sendable () -> [SigningKey]? = { nil }
  ) {
    former = secret.map { SigningKey(id: "database", key: $0, retired: 0) }
    self.clock = clock
    readAgain = reread
    state = Mutex(State(keys: Self.derived(keys, former)))
  }

  private static func derived(_ keys: [SigningKey], _ former: SigningKey?) -> [Derived] {
    (keys.reversed() + [former].compactMap(\.self)).map { Derived($0) }
  }

  /// Adopts the keys of a ring that has changed.
  func use(_ keys: [SigningKey]) {
    state.withLock { $0.keys = Self.derived(keys, former) }
  }

  /// Seals a value: clients can neither create, nor change, nor read the text.
  ///
  /// The counters in a token are not meant for its holder, only for the database's owner.
  func seal(_ value: some Encodable, for purpose: Purpose) throws -> String {
    let payload = try WireCoding.encode(value)
    guard let key = state.withLock({ $0.keys.first?.keys[purpose] }) else {
      throw KeyRing.MissingKey(id: "signing")
    }
    // Equal values have equal texts; a nonce derived from the payload with the key is never used
    // for two payloads.
    let nonce = try AES.GCM.Nonce(
      data: Data(HMAC<SHA256>.authenticationCode(for: payload, using: key)).prefix(12)
    )
    let box = try AES.GCM.seal(payload, using: key, nonce: nonce)
    let bytes = Data(box.nonce) + box.ciphertext + box.tag
    return purpose.isKeptAsBytes ? bytes.base64EncodedString() : bytes.base64URL
  }

  /// The value, or nil if the text was not sealed by this server for this purpose.
  func open<Value: Decodable>(
    _ text: String,
    as type: Value.Type,
    for purpose: Purpose
  ) -> Value? {
    let bytes = purpose.isKeptAsBytes ? Data(base64Encoded: text) : Data(base64URL: text)
    // Base64 has several texts for some bytes; a text that is valid once must not be accepted in
    // another form.
    guard let bytes, purpose.isKeptAsBytes || bytes.base64URL == text,
      let box = try? AES.GCM.SealedBox(combined: bytes),
      let payload = payload(of: box, for: purpose) ?? payloadAfterReading(of: box, for: purpose)
    else { return nil }
    return try? WireCoding.decode(type, from: payload)
  }

  private func payload(of box: AES.GCM.SealedBox, for purpose: Purpose) -> Data? {
    let time = clock.now.wireMilliseconds
    for key in state.withLock({ $0.keys }) where key.opens(purpose, at: time) {
      if let key = key.keys[purpose], let payload = try? AES.GCM.open(box, using: key) {
        return payload
      }
    }
    return nil
  }

  /// Reads the file again, in case another server has rotated the keys.
  private func payloadAfterReading(of box: AES.GCM.SealedBox, for purpose: Purpose) -> Data? {
    let uptime = clock.uptime
    let isDue = state.withLock { state in
      if let last = state.reread, uptime - last < Self.pause { return false }
      state.reread = uptime
      return true
    }
    guard isDue, let keys = readAgain(),
      keys.map(\.id)
        != state.withLock({ $0.keys.reversed().map(\.source.id) })
        .filter({ $0 != former?.id })
    else { return nil }
    use(keys)
    return payload(of: box, for: purpose)
  }
}

extension Signer.Purpose {
  /// Some clients decode Apple's tokens from base64, keep the bytes, and encode them again.
  fileprivate var isKeptAsBytes: Bool { self == .changeToken || self == .continuation }

  /// Whether texts of this purpose stay valid for longer than keys overlap.
  ///
  /// They contain the position of a reader, or identify a device without a user, and are only
  /// useful together with other credentials: a copied key grants nothing with them. A receipt names
  /// a file, so one that is sealed with a copied key must not be valid.
  fileprivate var outlivesKeys: Bool {
    switch self {
    case .changeToken, .continuation, .unownedDevice: true
    default: false
    }
  }
}

extension Data {
  var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(count * 2)
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Base64 with the URL-safe alphabet and without padding.
  var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }

  init?(base64URL text: some StringProtocol) {
    var base64 = String(text).replacing("-", with: "+").replacing("_", with: "/")
    base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
    self.init(base64Encoded: String(base64))
  }
}
