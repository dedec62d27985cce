import Foundation
import Testing

@testable import WatershedCommands

/// What a configuration has that a server could not use, or would not notice.
@Suite("Mistakes of a configuration")
struct ConfigurationMistakeTests {
  private func examine(
    _ text: String,
    _ environment: [String: String] = [:]
  ) throws -> ConfigurationSource.Examination {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("c-\(UUID().uuidString).json")
    try Data(text.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    return ConfigurationSource(file: file.path, environment: environment).examine()
  }

  @Test("A variable that overrides another value of the file is named")
  func overridden() throws {
    let found = try examine(
      #"{"logLevel":"debug","logFormat":"json","smtp":{"host":"a","from":"a@example.org"}}"#,
      [
        "WATERSHED_LOG_LEVEL": "info", "WATERSHED_LOG_FORMAT": "json", "WATERSHED_SMTP_HOST": "b",
      ]
    )
    #expect(found.mistakes.isEmpty)
    #expect(
      found.warnings == [
        "logLevel: the variable WATERSHED_LOG_LEVEL overrides the file's value",
        "smtp.host: the variable WATERSHED_SMTP_HOST overrides the file's value",
      ]
    )
  }

  @Test("A number of a variable is finite", arguments: ["nan", "inf", "1e400"])
  func numbers(text: String) throws {
    let found = try examine("{}", ["WATERSHED_RATE_LIMIT": text])
    #expect(found.mistakes.count == 1)
    #expect(found.mistakes.first?.hasPrefix("WATERSHED_RATE_LIMIT: ") == true)
  }

  @Test(
    "Addresses that a server cannot use are found before it starts",
    arguments: [
      (#"{"port":8081,"adminListen":"127.0.0.1:8081"}"#, "give it a port of its own"),
      (#"{"keyFile":"/tmp"}"#, "is a folder"),
      (#"{"publicURL":"https://cloud.example.org/x"}"#, "has a path"),
    ]
  )
  func addresses(text: String, problem: String) throws {
    let problems = try examine(text).configuration?.problems ?? []
    #expect(problems.contains { $0.contains(problem) }, "\(problems)")
  }

  @Test(
    "The shipped configurations name the service's data folder, so that --config alone finds it"
  )
  func shipped() throws {
    for path in ["Deploy/watershed.json", "Deploy/debian/watershed.json"] {
      let file = Watershed.packageRoot.appendingPathComponent(path)
      let found = ConfigurationSource(file: file.path, environment: [:]).examine()
      #expect(found.mistakes.isEmpty)
      #expect(found.configuration?.data == "/var/lib/watershed")
      #expect(found.configuration?.logLevel == "info")
    }
  }
}
