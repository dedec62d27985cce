import Crypto
import Foundation

/// Signs requests to an S3 service (AWS Signature Version 4).
struct S3Signature {
  var region: String
  var accessKey: String
  var secretKey: String

  /// The headers that authenticate the request; `query` is already sorted and escaped.
  func headers(
    method: String,
    host: String,
    path: String,
    query: String,
    payload: Data,
    at date: Date
  ) -> [(String, String)] {
    let time = Self.time(date)
    let day = String(time.prefix(8))
    let hash = Data(SHA256.hash(data: payload)).lowercaseHexadecimal
    let headers = [("host", host), ("x-amz-content-sha256", hash), ("x-amz-date", time)]
    let names = headers.map(\.0).joined(separator: ";")
    let canonical =
      "\(method)\n\(path)\n\(query)\n"
      + headers.map { "\($0.0):\($0.1)\n" }.joined() + "\n\(names)\n\(hash)"
    let scope = "\(day)/\(region)/s3/aws4_request"
    let canonicalHash = Data(SHA256.hash(data: Data(canonical.utf8))).lowercaseHexadecimal
    let text = "AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(canonicalHash)"
    var key = Data("AWS4\(secretKey)".utf8)
    for part in [day, region, "s3", "aws4_request", text] {
      key = Data(
        HMAC<SHA256>.authenticationCode(for: Data(part.utf8), using: SymmetricKey(data: key))
      )
    }
    let authorization =
      "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope), SignedHeaders=\(names), "
      + "Signature=\(key.lowercaseHexadecimal)"
    return headers.dropFirst() + [("authorization", authorization)]
  }

  /// `20260131T120000Z`.
  private static func time(_ date: Date) -> String {
    date.formatted(
      Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted, timeZone: .gmt)
    )
  }

  /// Escapes by the signature's rules: everything except unreserved characters.
  static func escape(_ text: String, keepsSlashes: Bool = false) -> String {
    var allowed = CharacterSet(
      charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
    )
    if keepsSlashes { allowed.insert("/") }
    return text.addingPercentEncoding(withAllowedCharacters: allowed) ?? text
  }

  /// Items sorted by name, escaped and joined.
  static func query(_ items: [(String, String)]) -> String {
    items.map { (escape($0.0), escape($0.1)) }.sorted { $0.0 < $1.0 }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
  }
}

extension Data {
  var lowercaseHexadecimal: String {
    map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
