import CloudKitWebServices
import Crypto
import Foundation

/// The three headers of a request that a server-to-server key signed, parsed.
struct KeySignature: Sendable {
  static let keyIDHeader = "x-apple-cloudkit-request-keyid"
  static let dateHeader = "x-apple-cloudkit-request-iso8601date"
  static let signatureHeader = "x-apple-cloudkit-request-signaturev1"

  var keyID: String
  /// The date as received: the signed message contains these characters.
  var dateText: String
  var date: Date
  var signature: P256.Signing.ECDSASignature

  /// Returns nil if the request names no key; throws if it names one and the other headers are
  /// invalid.
  init?(_ headers: [String: String]) throws(ErrorDictionary) {
    guard let keyID = headers[Self.keyIDHeader] else { return nil }
    guard let dateText = headers[Self.dateHeader], let date = Self.date(dateText) else {
      throw ErrorDictionary(.authenticationFailed, "the request's ISO 8601 date cannot be read")
    }
    guard let text = headers[Self.signatureHeader],
      let der = Data(base64Encoded: text, options: .ignoreUnknownCharacters),
      let raw = DERSignature.raw(der),
      let signature = try? P256.Signing.ECDSASignature(rawRepresentation: raw)
    else { throw ErrorDictionary(.authenticationFailed, "the request's signature cannot be read") }
    self.keyID = keyID
    self.dateText = dateText
    self.date = date
    self.signature = signature
  }

  /// Identifies this signature: the key and the first of its two numbers, which no other signature
  /// shares.
  ///
  /// The second number has two valid values, and DER several encodings of each; with those in the
  /// identifier, a replay could pass as another signature.
  var name: String {
    var hash = SHA256()
    hash.update(data: Data(keyID.utf8))
    hash.update(data: Data([0]))
    hash.update(data: signature.rawRepresentation.prefix(32))
    return Data(hash.finalize()).hexadecimal
  }

  /// Whether the key signed this request.
  ///
  /// Clients differ for an empty body: most hash the empty data, one omits the hash.
  func isValid(_ request: WebServiceRequest, by key: P256.Signing.PublicKey) -> Bool {
    let hash = Data(SHA256.hash(data: request.body)).base64EncodedString()
    let hashes = request.body.isEmpty ? [hash, ""] : [hash]
    return hashes.contains { hash in
      key.isValidSignature(signature, for: Data("\(dateText):\(hash):\(request.path)".utf8))
    }
  }

  /// Parses `Z`, an offset, or fractions of a second: clients send all of them.
  static func date(_ text: String) -> Date? {
    let styles = [
      Date.ISO8601FormatStyle(timeZone: .gmt),
      Date.ISO8601FormatStyle(timeZoneSeparator: .colon, timeZone: .gmt),
      Date.ISO8601FormatStyle(includingFractionalSeconds: true, timeZone: .gmt),
    ]
    for style in styles {
      if let date = try? style.parse(text) { return date }
    }
    return nil
  }
}

/// Reads ECDSA signatures in any encoding that clients use.
enum DERSignature {
  private static let width = 32

  /// Both numbers, 32 bytes each.
  ///
  /// Stricter readers refuse a missing or superfluous leading zero and long forms of lengths;
  /// existing encoders write them.
  static func raw(_ der: Data) -> Data? {
    guard (6...128).contains(der.count) else { return nil }
    var bytes = ArraySlice(der)
    guard var sequence = element(0x30, &bytes), bytes.isEmpty,
      let first = integer(&sequence), let second = integer(&sequence), sequence.isEmpty
    else { return nil }
    return first + second
  }

  private static func element(_ tag: UInt8, _ bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>?
  {
    guard bytes.popFirst() == tag, var length = bytes.popFirst().map(Int.init) else { return nil }
    if length & 0x80 != 0 {
      let count = length & 0x7F
      guard (1...2).contains(count), bytes.count >= count else { return nil }
      length = 0
      for _ in 0..<count { length = length << 8 | Int(bytes.popFirst() ?? 0) }
    }
    guard length <= bytes.count else { return nil }
    let content = bytes.prefix(length)
    bytes = bytes.dropFirst(length)
    return content
  }

  private static func integer(_ bytes: inout ArraySlice<UInt8>) -> Data? {
    guard let content = element(0x02, &bytes), !content.isEmpty else { return nil }
    let digits = content.drop { $0 == 0 }
    guard !digits.isEmpty, digits.count <= width else { return nil }
    return Data(repeating: 0, count: width - digits.count) + Data(digits)
  }
}
