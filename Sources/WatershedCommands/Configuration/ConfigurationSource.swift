import Foundation

/// Reads a server's configuration from its file and the environment.
struct ConfigurationSource {
  var file: String?
  var environment: [String: String]

  /// Why a configuration cannot be read, one sentence for each problem.
  struct Unreadable: Error, Hashable, CustomStringConvertible {
    var problems: [String]

    var description: String { problems.joined(separator: "\n") }
  }

  init(file: String?, environment: [String: String] = ProcessInfo.processInfo.environment) {
    self.file = file ?? environment["WATERSHED_CONFIG"]
    self.environment = environment
  }

  /// The resulting configuration, and all problems that were found.
  struct Examination {
    /// The configuration without the invalid values; nil if it could not be read.
    var configuration: ServerConfiguration?
    /// The errors.
    var mistakes: [String] = []
    /// Parts that this program does not know, and values of the file that are without effect.
    var warnings: [String] = []
  }

  /// Defaults, then the file, then the environment; throws every mistake in them.
  func load() throws -> ServerConfiguration {
    let found = examine()
    guard found.mistakes.isEmpty, let configuration = found.configuration else {
      throw Unreadable(problems: found.mistakes)
    }
    return configuration
  }

  /// Reads everything that can be read.
  func examine() -> Examination {
    var found = Examination()
    var values: [String: Any] = [:]
    if let file {
      do throws(Unreadable) {
        let read = try ConfigurationFile(path: file)
        found.mistakes = read.problems
        values = read.values
      } catch {
        found.mistakes = error.problems
      }
    }
    func take(_ kind: ServerConfiguration.Kind, _ name: String) -> Any? {
      guard let text = environment[name], !text.isEmpty else { return nil }
      do throws(Unreadable) {
        return try Self.value(text, kind, name)
      } catch {
        found.mistakes += error.problems
        return nil
      }
    }
    var overridden: [String] = []
    /// Sets a value; another one of the file is mentioned, since a change of the file has no effect.
    func put(
      _ value: Any,
      _ key: String,
      _ path: String,
      _ name: String,
      in values: inout [String: Any]
    ) {
      if let former = values[key] as? NSObject, former != value as? NSObject {
        overridden.append("\(path): the variable \(name) overrides the file's value")
      }
      values[key] = value
    }
    for key in ServerConfiguration.keys where key.kind != .object {
      let name = ServerConfiguration.variable(key.name)
      if let value = take(key.kind, name) { put(value, key.name, key.name, name, in: &values) }
    }
    for section in ServerConfiguration.sections
    where values[section.name] == nil || values[section.name] is [String: Any] {
      var object = values[section.name] as? [String: Any] ?? [:]
      for key in section.keys {
        let name = ServerConfiguration.variable(key.name, in: section.prefix)
        if let value = take(key.kind, name) {
          put(value, key.name, "\(section.name).\(key.name)", name, in: &object)
        }
      }
      guard !object.isEmpty || values[section.name] != nil else { continue }
      let missing = section.required.filter { object[$0] == nil }
      found.mistakes += missing.map { "\(section.name).\($0) is missing" }
      values[section.name] = missing.isEmpty ? object : nil
    }
    found.warnings = unknownVariables() + overridden
    do {
      found.configuration = try decode(values)
    } catch {
      found.mistakes.append("\(error)")
    }
    return found
  }

  /// Variables with this program's prefix that neither a server nor a command uses.
  private func unknownVariables() -> [String] {
    let known = ServerConfiguration.variables
    return environment.keys.filter { name in
      name.hasPrefix("WATERSHED_") && !known.contains(name)
        && !Self.otherVariables.contains { name.hasPrefix($0) }
    }.sorted().map { name in
      let guess = ConfigurationFile.nearest(to: name, known).map { "; did you mean \($0)?" } ?? ""
      return "\(name): there is no such variable\(guess)"
    }
  }

  /// The prefixes of variables of commands, apps and this project's tests.
  static let otherVariables = [
    "WATERSHED_CONFIG", "WATERSHED_SERVER", "WATERSHED_PLAIN_HTTP", "WATERSHED_ADMIN_TOKEN",
    "WATERSHED_CLOUDKIT_",
    "WATERSHED_FUZZ", "WATERSHED_SEED", "WATERSHED_SHARED", "WATERSHED_PYTHON",
    "WATERSHED_WITHOUT_", "WATERSHED_BENCHMARKS",
  ]

  private static func value(
    _ text: String,
    _ kind: ServerConfiguration.Kind,
    _ name: String
  ) throws(Unreadable) -> Any {
    switch kind {
    case .text, .object: return text
    case .number:
      if let number = Double(text), number.isFinite { return number }
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

  /// The defaults, with these values replaced.
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
