import Testing

@testable import WatershedCommands

/// Compares the table of `Troubleshooting.md` with `watershed explain`.
@Suite("The page of messages")
struct MessagesPageTests {
  @Test("The page has every code of watershed explain, with its meaning and its remedy")
  func page() throws {
    let rows = ExplainCommand.texts.sorted { $0.code < $1.code }.map {
      GeneratedPart.row(["`\($0.code)`", $0.meaning, $0.remedy])
    }
    let lines = ["| Code | Meaning | What to do |", "|---|---|---|"] + rows
    try GeneratedPart.hold(
      lines.map { $0 + "\n" }.joined(),
      on: "Troubleshooting.md"
    )
  }

  @Test("No code is explained twice")
  func codes() {
    let codes = ExplainCommand.texts.map(\.code)
    #expect(Set(codes).count == codes.count)
  }
}
