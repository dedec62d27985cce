import CloudKitWebServices
import Crypto
import Foundation

/// Makes texts that only this server can make: change tokens, receipts, capability URLs.
struct Signer: Sendable {
  /// What a text is good for; one made for one purpose never serves another.
  enum Purpose: String {
    case changeToken, continuation, upload, receipt, download
  }

  let secret: Data

  func seal(_ value: some Encodable, for purpose: Purpose) throws -> String {
    let payload = try WireCoding.encode(value)
    let text = payload.base64URL + "." + signature(payload, purpose).base64URL
    return purpose.isKeptAsBytes ? Data(text.utf8).base64EncodedString() : text
  }

  /// The value, or nil where the text is not one of this server's for this purpose.
  func open<Value: Decodable>(
    _ text: String,
    as type: Value.Type,
    for purpose: Purpose
  ) -> Value? {
    var text = text
    if purpose.isKeptAsBytes {
      guard let bytes = Data(base64Encoded: text) else { return nil }
      text = String(decoding: bytes, as: UTF8.self)
    }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let payload = Data(base64URL: parts[0]),
      let signature = Data(base64URL: parts[1]), signature.count == 16,
      // The library compares whole codes in constant time; this one is cut short.
      zip(signature, self.signature(payload, purpose)).reduce(0, { $0 | ($1.0 ^ $1.1) }) == 0
    else { return nil }
    return try? WireCoding.decode(type, from: payload)
  }

  private func signature(_ payload: Data, _ purpose: Purpose) -> Data {
    var code = HMAC<SHA256>(key: SymmetricKey(data: secret))
    code.update(data: Data(purpose.rawValue.utf8))
    code.update(data: Data([0]))
    code.update(data: payload)
    return Data(code.finalize()).prefix(16)
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
