import ArgumentParser
import Foundation
import Testing

@testable import WatershedCommands

/// Compares the table of `Configuration.md` with `ServerConfiguration` and the flags of `serve`.
@Suite("The page of the configuration")
struct ConfigurationPageTests {
  private static let sources = Watershed.packageRoot
    .appendingPathComponent("Sources/WatershedCommands/Configuration")

  private struct Row {
    var key: String
    var variable: String
    var flag: String?
    var kind: String
    var standard: String
    var meaning: String
  }

  /// The doc comments of a type's stored properties, by name.
  private func meanings(of type: String) throws -> [String: String] {
    // The file of the type, or of the one that it is nested in.
    let texts = try FileManager.default.contentsOfDirectory(atPath: Self.sources.path).sorted()
      .map { try String(contentsOf: Self.sources.appendingPathComponent($0), encoding: .utf8) }
    let text = try #require(texts.first { $0.contains("struct \(type):") })
    var found: [String: String] = [:]
    var comment: [String] = []
    var isInType = false
    for line in text.split(separator: "\n") {
      let text = line.trimmingCharacters(in: .whitespaces)
      if isInType, text.hasPrefix("struct ") || text.hasPrefix("init(") || text.hasPrefix("func ") {
        break
      }
      if text.hasPrefix("struct \(type):") { isInType = true }
      if text.hasPrefix("///") {
        comment.append(text.dropFirst(3).trimmingCharacters(in: .whitespaces))
      } else {
        if isInType, let match = text.wholeMatch(of: /var (\w+)( =|:).*/), !text.hasSuffix("{") {
          found[String(match.1)] = comment.filter { !$0.isEmpty }.joined(separator: " ")
        }
        comment = []
      }
    }
    return found
  }

  /// A default value as the page shows it.
  private func text(_ value: Any) -> String {
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional {
      return mirror.children.first.map { text($0.value) } ?? "none"
    }
    if let policy = value as? any RawRepresentable { return text(policy.rawValue) }
    if let list = value as? [String] {
      return list.isEmpty ? "none" : list.map { "`\($0)`" }.joined(separator: ", ")
    }
    if let string = value as? String { return string.isEmpty ? "empty" : "`\(string)`" }
    if let number = value as? Double {
      return number == number.rounded() ? "`\(Int64(number))`" : "`\(number)`"
    }
    return "`\(value)`"
  }

  private func defaults(of value: Any) -> [String: String] {
    Dictionary(
      Mirror(reflecting: value).children.map { ($0.label ?? "", text($0.value)) },
      uniquingKeysWith: { $1 }
    )
  }

  /// The flag of `serve` for a variable, `--rate-limit` for `WATERSHED_RATE_LIMIT`.
  private func flag(_ variable: String, _ help: [Substring]) -> String? {
    let name = variable.dropFirst("WATERSHED_".count).lowercased()
    let flag = "--" + name.replacing("_", with: "-")
    return help.contains { $0 == flag } ? flag : nil
  }

  /// The kind of a value, without the article in messages.
  private func kind(_ kind: ServerConfiguration.Kind) -> String {
    kind == .flag
      ? kind.rawValue : String(kind.rawValue.replacing(/^an?\ /, with: "", maxReplacements: 1))
  }

  private func rows() throws -> [Row] {
    let help = ServeCommand.helpMessage(columns: 200).split { $0.isWhitespace }
    let values = defaults(of: ServerConfiguration())
    let meanings = try meanings(of: "ServerConfiguration")
    #expect(Set(values.keys) == Set(ServerConfiguration.keys.map(\.name)))
    var rows: [Row] = []
    for key in ServerConfiguration.keys {
      guard let section = ServerConfiguration.sections.first(where: { $0.name == key.name }) else {
        let variable = ServerConfiguration.variable(key.name)
        rows.append(
          Row(
            key: key.name,
            variable: variable,
            flag: flag(variable, help),
            kind: kind(key.kind),
            standard: values[key.name] ?? "",
            meaning: meanings[key.name] ?? ""
          )
        )
        continue
      }
      rows.append(
        Row(
          key: key.name,
          variable: "",
          flag: nil,
          kind: kind(key.kind),
          standard: values[key.name] ?? "",
          meaning: meanings[key.name] ?? ""
        )
      )
      rows += try sectionRows(section, help)
    }
    return rows
  }

  private func sectionRows(
    _ section: ServerConfiguration.Section,
    _ help: [Substring]
  ) throws -> [Row] {
    let meanings = try meanings(of: "\(section.type)")
    // With its required keys alone.
    let least = try JSONEncoder().encode(
      Dictionary(section.required.map { ($0, "") }, uniquingKeysWith: { $1 })
    )
    let values = defaults(of: try JSONDecoder().decode(section.type, from: least))
    #expect(Set(values.keys) == Set(section.keys.map(\.name)))
    return section.keys.map { key in
      let variable = ServerConfiguration.variable(key.name, in: section.prefix)
      return Row(
        key: "\(section.name).\(key.name)",
        variable: variable,
        flag: flag(variable, help),
        kind: kind(key.kind),
        standard: section.required.contains(key.name) ? "required" : values[key.name] ?? "",
        meaning: meanings[key.name] ?? ""
      )
    }
  }

  @Test("The page has every key with its variable, its flag, its default and its meaning")
  func page() throws {
    let titles = ["Key", "Variable", "Flag of `serve`", "Value", "Default", "Meaning"]
    let lines =
      try [GeneratedPart.row(titles), "|---|---|---|---|---|---|"]
      + rows().map { row in
        GeneratedPart.row([
          "`\(row.key)`", row.variable.isEmpty ? "" : "`\(row.variable)`",
          row.flag.map { "`\($0)`" } ?? "", row.kind, row.standard, row.meaning,
        ])
      }
    try GeneratedPart.hold(lines.map { $0 + "\n" }.joined(), on: "Configuration.md")
  }

  @Test("Every key of every object is in its table, which says whether it is shown")
  func tables() throws {
    // The texts of all keys are different, so that a secret would be found wherever it is printed.
    var configuration = ServerConfiguration()
    configuration.s3 = try decoded()
    configuration.openID = try decoded()
    configuration.smtp = try decoded()
    configuration.database = "postgresql://w:hush@db/w?sslpassword=hush"
    let shown = String(decoding: try JSONEncoder().encode(configuration.redacted), as: UTF8.self)
    for secret in ["secretKey", "clientSecret", "password"] {
      #expect(!shown.contains("value of \(secret)\""), "\(secret)")
    }
    for key in ["bucket", "clientID", "passwordFile"] {
      #expect(shown.contains("value of \(key)\""), "\(key)")
    }
    #expect(!shown.contains("hush"))
    let words = ServerConfiguration.keys.first { $0.name == "registration" }?.words
    #expect(words == ["closed", "invitation", "open"])
  }

  /// A section with a text for each of its keys that take any.
  private func decoded<Section: ConfigurationSection>() throws -> Section {
    let texts = Section.table.filter { $0.kind == .text && $0.words == nil }
      .map { ($0.name, "value of \($0.name)") }
    let data = try JSONEncoder().encode(Dictionary(uniqueKeysWithValues: texts))
    return try JSONDecoder().decode(Section.self, from: data)
  }

  @Test("Every key has a description")
  func meanings() throws {
    for row in try rows() { #expect(!row.meaning.isEmpty, "\(row.key)") }
  }
}
