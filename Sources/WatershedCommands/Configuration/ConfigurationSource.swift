import Foundation

/// Reads a server's configuration from its file and the environment.
struct ConfigurationSource {
  var file: String?
  var environment: [String: String]

  /// Why a configuration cannot be read, a sentence for each thing.
  struct Unreadable: Error, Hashable, CustomStringConvertible {
    var problems: [String]

    var description: String { problems.joined(separator: "\n") }
  }

  init(file: String?, environment: [String: String] = ProcessInfo.processInfo.environment) {
    self.file = file ?? environment["WATERSHED_CONFIG"]
    self.environment = environment
  }

  /// Defaults, then the file, then the environment.
  func load() throws -> ServerConfiguration {
    var values: [String: Any] = [:]
    if let file {
      let found = try ConfigurationFile(path: file)
      guard found.problems.isEmpty else { throw Unreadable(problems: found.problems) }
      values = found.values
    }
    for (key, kind) in ServerConfiguration.keys where kind != .object {
      let name = ServerConfiguration.variable(key)
      if let text = environment[name], !text.isEmpty {
        values[key] = try Self.value(text, kind, name)
      }
    }
    for section in ServerConfiguration.sections
    where values[section.name] == nil || values[section.name] is [String: Any] {
      var object = values[section.name] as? [String: Any] ?? [:]
      for (key, kind) in section.keys {
        let name = ServerConfiguration.variable(key, in: section.prefix)
        if let text = environment[name], !text.isEmpty {
          object[key] = try Self.value(text, kind, name)
        }
      }
      if !object.isEmpty { values[section.name] = object }
    }
    return try decode(values)
  }

  private static func value(
    _ text: String,
    _ kind: ServerConfiguration.Kind,
    _ name: String
  ) throws -> Any {
    switch kind {
    case .text, .object: return text
    case .number:
      if let number = Double(text) { return number }
    case .wholeNumber:
      if let number = Int64(text) { return number }
    case .flag:
      switch text.lowercased() {
      case "1", "true", "yes", "on": return true
      case "0", "false", "no", "off": return false
      default: break
      }
    case .list:
      return text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    throw Unreadable(problems: ["\(name): \(kind.rawValue) is expected, not '\(text)'"])
  }

  /// The defaults with these values in their places.
  private func decode(_ values: [String: Any]) throws -> ServerConfiguration {
    let defaults = try JSONSerialization.jsonObject(
      with: JSONEncoder().encode(ServerConfiguration())
    )
    guard var merged = defaults as? [String: Any] else { return ServerConfiguration() }
    merged.merge(values) { $1 }
    do {
      return try JSONDecoder().decode(
        ServerConfiguration.self,
        from: JSONSerialization.data(withJSONObject: merged)
      )
    } catch let error as DecodingError {
      throw Unreadable(problems: [Self.sentence(error)])
    }
  }

  private static func sentence(_ error: DecodingError) -> String {
    switch error {
    case .typeMismatch(_, let context), .valueNotFound(_, let context),
      .dataCorrupted(let context):
      let path = context.codingPath.map(\.stringValue).joined(separator: ".")
      return "\(path): \(context.debugDescription)"
    case .keyNotFound(let key, let context):
      let path = (context.codingPath + [key]).map(\.stringValue).joined(separator: ".")
      return "\(path) is missing"
    @unknown default: return "\(error)"
    }
  }
}
