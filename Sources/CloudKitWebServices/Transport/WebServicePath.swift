import Foundation

/// The path of a request: container, environment, database and endpoint.
package struct WebServicePath: Hashable, Sendable {
  package var container: String
  package var environment: ContainerEnvironment
  /// Absent for device tokens.
  package var database: DatabaseScope?
  /// Module and verb, as text so that a reply can name an unknown endpoint.
  package var verb: String

  package init(
    container: String,
    environment: ContainerEnvironment,
    database: DatabaseScope?,
    endpoint: Endpoint
  ) {
    self.container = container
    self.environment = environment
    self.database = database
    self.verb = endpoint.rawValue
  }

  package var endpoint: Endpoint? { Endpoint(rawValue: verb) }

  /// The path with `items` as its query, percent-encoded.
  package func text(items: [(name: String, value: String)] = []) -> String {
    var parts: [String] = []
    if let database {
      parts = ["database", WebServiceName.protocolVersion, Self.escape(container)]
      parts += [environment.rawValue, database.rawValue, verb]
    } else {
      parts = ["device", WebServiceName.protocolVersion, Self.escape(container)]
      parts += [environment.rawValue, verb]
    }
    let path = "/" + parts.joined(separator: "/")
    guard !items.isEmpty else { return path }
    let query = items.map { "\(Self.escape($0.name))=\(Self.escape($0.value))" }
    return path + "?" + query.joined(separator: "&")
  }

  /// Parses `/database/1/…` and `/device/1/…`; nil if the path has another form.
  package init?(path: String) {
    let parts = path.split(ascii: "/").map { part in
      let isEscaped = part.utf8.contains(UInt8(ascii: "%"))
      return isEscaped ? part.removingPercentEncoding ?? String(part) : String(part)
    }
    // An escaped slash would be part of a name, and no valid name has one.
    guard !parts.contains(where: { $0.utf8.contains(UInt8(ascii: "/")) }) else { return nil }
    guard parts.count >= 6 || (parts.first == "device" && parts.count >= 5),
      parts[0] == "database" || parts[0] == "device",
      parts[1] == WebServiceName.protocolVersion,
      let environment = ContainerEnvironment(rawValue: parts[3])
    else { return nil }
    container = parts[2]
    self.environment = environment
    if let scope = DatabaseScope(rawValue: parts[4]) {
      database = scope
      verb = parts[5...].joined(separator: "/")
    } else {
      database = nil
      verb = parts[4...].joined(separator: "/")
    }
  }

  /// Percent-encodes all but unreserved characters, including `+ / =` of a token.
  package static func escape(_ text: String) -> String {
    // Most texts need no escapes.
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        true
      default: false
      }
    }
    return isPlain ? text : text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
  }

  private static let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
  )
}
