import CloudKitWebServices
import Crypto
import Foundation

/// Makes texts that only this server can make: change tokens, receipts, capability URLs.
struct Signer: Sendable {
  /// What a text is good for; one made for one purpose never serves another.
  enum Purpose: String, CaseIterable {
    case changeToken, continuation, upload, receipt, download, shareAcceptance, signIn, identity,
      identityTicket, publicVisit, unownedDevice
  }

  /// Of each purpose, made of the server's secret.
  private let keys: [Purpose: SymmetricKey]
  private let secret: SymmetricKey

  init(secret: Data) {
    let secret = SymmetricKey(data: secret)
    self.secret = secret
    keys = Dictionary(
      uniqueKeysWithValues: Purpose.allCases.map { ($0, Self.key($0, of: secret)) }
    )
  }

  /// Seals a value: nobody else can make the text, change it or read it.
  ///
  /// What a token counts is the business of the database's owner, not of whoever holds it.
  func seal(_ value: some Encodable, for purpose: Purpose) throws -> String {
    let payload = try WireCoding.encode(value)
    let key = key(purpose)
    // One value has one text; a nonce made of the payload under the key never serves two payloads.
    let nonce = try AES.GCM.Nonce(
      data: Data(HMAC<SHA256>.authenticationCode(for: payload, using: key)).prefix(12)
    )
    let box = try AES.GCM.seal(payload, using: key, nonce: nonce)
    let bytes = Data(box.nonce) + box.ciphertext + box.tag
    return purpose.isKeptAsBytes ? bytes.base64EncodedString() : bytes.base64URL
  }

  /// The value, or nil where the text is not one of this server's for this purpose.
  func open<Value: Decodable>(
    _ text: String,
    as type: Value.Type,
    for purpose: Purpose
  ) -> Value? {
    let bytes = purpose.isKeptAsBytes ? Data(base64Encoded: text) : Data(base64URL: text)
    guard let bytes, let box = try? AES.GCM.SealedBox(combined: bytes),
      let payload = try? AES.GCM.open(box, using: key(purpose))
    else { return nil }
    return try? WireCoding.decode(type, from: payload)
  }

  private func key(_ purpose: Purpose) -> SymmetricKey {
    keys[purpose] ?? Self.key(purpose, of: secret)
  }

  private static func key(_ purpose: Purpose, of secret: SymmetricKey) -> SymmetricKey {
    SymmetricKey(
      data: HMAC<SHA256>.authenticationCode(for: Data(purpose.rawValue.utf8), using: secret)
    )
  }
}

extension Signer.Purpose {
  /// Some clients read Apple's tokens as base64, keep the bytes, and write them as base64 again.
  fileprivate var isKeptAsBytes: Bool { self == .changeToken || self == .continuation }
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

  /// Base64 with the alphabet for URLs and without padding.
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
