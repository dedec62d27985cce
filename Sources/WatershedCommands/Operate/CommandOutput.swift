import ArgumentParser
import CloudKitServer
import Effects
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The format of results.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
  case text, json, ndjson, env
}

/// Writes results to standard output, and remarks to standard error.
struct OutputOptions: ParsableArguments {
  @Option(
    help: "How results are written: text, json, ndjson or env; text on a terminal, else json."
  )
  var output: OutputFormat?

  @Flag(name: .shortAndLong, help: "Print only results and errors.")
  var quiet = false

  @OptionGroup var color: ColorOptions

  var format: OutputFormat { output ?? (isatty(1) == 1 ? .text : .json) }

  /// Changes when the meaning of a key does; keys are only added.
  static let schema = 1

  /// Writes one result: as text, or its fields.
  func write(_ value: some Encodable, text: @autoclosure () -> String) throws {
    switch format {
    case .text: try Self.print(text())
    case .json, .ndjson: try Self.print(Self.json(value, isPretty: format == .json))
    case .env: try Self.print(Self.environment(value))
    }
  }

  /// Writes a list: a table, an object with one key, or a line for each element.
  func write(
    _ name: String,
    _ values: [some Encodable],
    columns: [[String]],
    titles: [String]
  )
    throws
  {
    switch format {
    case .text: try Self.print(Self.table(columns, titles: titles))
    case .json: try Self.print(Self.json([name: values], isPretty: true))
    case .ndjson: for value in values { try Self.print(Self.json(value, isPretty: false)) }
    case .env: for value in values { try Self.print(Self.environment(value)) }
    }
  }

  /// Writes the elements of a list that continues, a line for each.
  func write(lines values: [some Encodable]) throws {
    for value in values {
      try Self.print(
        format == .env ? Self.environment(value) : Self.json(value, isPretty: false)
      )
    }
  }

  /// Reports a success without a result: a remark for users, an object for programs.
  func done(_ text: String, _ facts: some Encodable) throws {
    if let output, output != .text { try write(facts, text: "") }
    remark(text)
  }

  /// A remark for users.
  func remark(_ text: String) {
    guard !quiet else { return }
    StandardError.print(text)
  }

  // MARK: Formats

  private static func print(_ text: String) throws {
    guard !text.isEmpty else { return }
    try StandardOutput.write(text.hasSuffix("\n") ? text : text + "\n")
  }

  private static func object(_ value: some Encodable) throws -> Any {
    try JSONSerialization.jsonObject(
      with: JSONEncoder().encode(value),
      options: .fragmentsAllowed
    )
  }

  private static func json(_ value: some Encodable, isPretty: Bool) throws -> String {
    var object = try object(value)
    if var dictionary = object as? [String: Any] {
      if isPretty { dictionary["schema"] = schema }
      object = dictionary
    }
    var options: JSONSerialization.WritingOptions = [
      .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed,
    ]
    if isPretty { options.insert(.prettyPrinted) }
    return String(
      decoding: try JSONSerialization.data(withJSONObject: object, options: options),
      as: UTF8.self
    ).spelledOutJSON
  }

  /// `NAME=value` for each scalar field, quoted for a shell if needed.
  private static func environment(_ value: some Encodable) throws -> String {
    guard let fields = try object(value) as? [String: Any] else { return "" }
    return fields.sorted { $0.key < $1.key }.compactMap { name, value in
      guard !(value is [Any]), !(value is [String: Any]), !(value is NSNull) else { return nil }
      let key = name.replacing(/([a-z0-9])([A-Z])/) { "\($0.output.1)_\($0.output.2)" }
      let shown = isatty(1) == 1 ? "\(value)".spelledOut : "\(value)"
      let text = shown.replacing("'", with: "'\\''")
      return "WATERSHED_\(key.uppercased())='\(text)'"
    }.joined(separator: "\n")
  }

  private static func table(_ rows: [[String]], titles: [String]) -> String {
    guard !rows.isEmpty else { return "" }
    let all = [titles.map { $0.uppercased() }] + rows.map { $0.map(\.spelledOut) }
    let widths = titles.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      zip(row, widths).map { cell, width in
        cell + String(repeating: " ", count: width - cell.count)
      }.joined(separator: "  ").replacing(#/ +$/#, with: "")
    }.joined(separator: "\n")
  }
}

extension AsyncParsableCommand {
  /// Runs a command's work; an error is printed in three lines, with its exit code.
  func perform(_ what: String, _ body: () async throws -> Void) async throws {
    let interruption = Interruption {
      Interruption.end(what, next: "check what was completed, then run it again")
    }
    defer { interruption.stop() }
    do {
      try await body()
    } catch let exit as ExitCode {
      throw exit
    } catch let error as StandardOutputError {
      throw error
    } catch let error as ValidationError {
      throw error
    } catch {
      let failure = CommandFailure(error, doing: what)
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
  }
}

extension ParsableCommand {
  /// Runs a step of a command that calls no server; an error is printed in three lines, with its exit code.
  func attempt<Result>(_ what: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as StandardOutputError {
      throw error
    } catch {
      let failure = CommandFailure(error, doing: what)
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
  }
}
