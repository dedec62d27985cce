import Testing

@testable import WatershedCommands

@Suite("watershed explain")
struct ExplainTests {
  @Test(
    "An app's error is found by its number and by its name, in the notations of both languages",
    arguments: [
      ("14", "serverRecordChanged"), ("serverRecordChanged", "serverRecordChanged"),
      ("CKError.serverRecordChanged", "serverRecordChanged"),
      ("CKErrorServerRecordChanged", "serverRecordChanged"), (".zoneNotFound", "zoneNotFound"),
      ("134060", "NSCoreDataError"),
      ("1570", "NSValidationMissingMandatoryPropertyError"),
      ("nspersistentstoreopenerror", "NSPersistentStoreOpenError"), ("134400", "accountUnusable"),
    ]
  )
  func names(text: String, name: String) {
    #expect(AppError.find(text)?.name == name)
  }

  @Test("No error of an app is explained twice, and no name of one is a code of the server")
  func unique() {
    let errors = AppError.all
    #expect(Set(errors.map(\.number)).count == errors.count)
    let names = errors.map { $0.name.uppercased() } + ExplainCommand.texts.map(\.code)
    #expect(Set(names).count == names.count)
  }

  @Test("The command prints name, number, meaning and remedy, and refuses an unknown number")
  func command() async throws {
    let found = try await CommandProcess.run("explain", "14", "--output", "text")
    #expect(found.output.hasPrefix("serverRecordChanged (14): "), "\(found.output)")
    let unknown = try await CommandProcess.run("explain", "99999")
    #expect(unknown.exitCode == 1)
    #expect(unknown.errors.contains("[UNKNOWN_CODE]"))
  }
}
