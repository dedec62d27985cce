import Foundation
import Testing

/// Runs a program with a terminal as its standard output (util-linux).
private let script = "/usr/bin/script"

/// The demo of a model that does not exist: it writes two lines of its timeline and fails.
@Suite("Colours of the output", .enabled(if: FileManager.default.isExecutableFile(atPath: script)))
struct ColorTests {
  private func output(
    _ options: String = "",
    environment: [String: String]
  ) async throws -> String {
    let command = "'\(Watershed.program.path)' demo --model none.xcdatamodeld \(options)"
    let outcome = try await CommandProcess(
      ["--quiet", "--return", "--command", command, "/dev/null"],
      program: URL(fileURLWithPath: script),
      environment: environment
    ).finish()
    #expect(outcome.output.contains("Watershed demo, seed 1"), "\(outcome.errors)")
    return outcome.output
  }

  @Test("The demo has colours on a terminal")
  func terminal() async throws {
    #expect(try await output(environment: ["NO_COLOR": ""]).contains("\u{1B}["))
  }

  @Test("The demo has no colours with NO_COLOR", arguments: ["1", "0"])
  func variable(value: String) async throws {
    #expect(try await !output(environment: ["NO_COLOR": value]).contains("\u{1B}["))
  }

  @Test("The demo has no colours with --no-color")
  func flag() async throws {
    #expect(try await !output("--no-color", environment: ["NO_COLOR": ""]).contains("\u{1B}["))
  }

  @Test("The demo has no colours where its output is no terminal")
  func pipe() async throws {
    let outcome = try await CommandProcess(
      ["demo", "--model", "none.xcdatamodeld"],
      environment: ["NO_COLOR": ""]
    ).finish()
    #expect(outcome.output.contains("Watershed demo, seed 1"))
    #expect(!outcome.output.contains("\u{1B}["))
  }
}
