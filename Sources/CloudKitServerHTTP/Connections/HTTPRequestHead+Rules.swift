import CloudKitWebServices
import NIOHTTP1

/// What a request's head asks of its connection.
extension HTTPRequestHead {
  /// Whether the client wants to speak another protocol after this request, which the server does not do.
  ///
  /// NIO's decoder parses nothing that follows such a request and keeps it, without a limit, until the connection ends.
  var asksForAnotherProtocol: Bool { method == .CONNECT || headers.contains(name: "upgrade") }

  /// Whether the client waits for `100 Continue`.
  ///
  /// HTTP/1.0 does not have it, and another expectation is not understood (RFC 9110, 10.1.1).
  var awaitsContinue: Bool {
    version != .http1_0 && headers["expect"].contains { $0.lowercased() == "100-continue" }
  }

  /// Whether the request names its host as often as its version requires: once, in HTTP/1.0 at most once (RFC 9112, 3.2).
  var namesItsHost: Bool {
    let count = headers["host"].count
    return count == 1 || count == 0 && version == .http1_0
  }

  /// Why the head is refused, for the client; nil for a head that is served.
  var defect: String? {
    if !namesItsHost { return "a request of HTTP/1.1 has one Host header" }
    // The service compares and hashes what headers say.
    let field = headers.first { CombiningMarks.areTooMany(in: $0.value) }
    return field.map {
      "the header \($0.name) has more than \(CombiningMarks.runLimit) combining marks in a row"
    }
  }

  /// The host and the path of a target that is a whole address, as clients send it to a proxy; nil for a path.
  ///
  /// A server accepts both forms, and the host of the address replaces the header's (RFC 9112, 3.2.2).
  var addressedTarget: (host: String, path: String)? {
    let text = uri[...]
    guard text.utf8.first != UInt8(ascii: "/") else { return nil }
    for scheme in ["http://", "https://"] where text.prefix(scheme.count).lowercased() == scheme {
      let rest = text.utf8.dropFirst(scheme.utf8.count)
      let end =
        rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
      let path = String(decoding: rest[end...], as: UTF8.self)
      return (
        String(decoding: rest[..<end], as: UTF8.self),
        path.utf8.first == UInt8(ascii: "/") ? path : "/" + path
      )
    }
    return nil
  }
}
