import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed schema promote`.
struct SchemaPromoteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "promote",
    abstract: "Copy what only the development schema has to production.",
    discussion: """
      Types, fields, roles, grants and indexes are copied, records never. Types and fields stay in \
      production once they were promoted; an index that development no longer has is removed there too, and \
      is listed before.
      """,
    aliases: ["deploy"]
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions
  @OptionGroup var consent: ConsentOptions

  private struct Body: Encodable {
    var container: String
    var isDryRun: Bool
  }

  func run() async throws {
    try await perform("the schema was not promoted") {
      let planned = try await promote(isDryRun: true)
      try output.write(planned, text: planned.text)
      guard !planned.changes.isEmpty else {
        return output.remark("Production has everything already.")
      }
      let count = planned.changes.count
      let lost = planned.lostIndexes
      let deed =
        "make \(Count.of(count, "change")) in production"
        + (lost.isEmpty ? "" : " and remove its indexes \(lost.joined(separator: ", "))")
      guard try consent.isGiven(to: deed, output, reportsTrial: false) else { return }
      _ = try await promote(isDryRun: false)
      output.remark("Promoted.")
    }
  }

  private func promote(isDryRun: Bool) async throws -> SchemaChanges {
    let body = Body(container: container.containerID, isDryRun: isDryRun)
    return try await server.connect {
      try await $0.requireContainer(container.containerID)
      return try await $0.call(.schema(.promote), body)
    }
  }
}

/// `watershed schema reset-development`.
struct SchemaResetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset-development",
    abstract: "Replace the development schema by production's, and delete all development data.",
    aliases: ["reset-schema", "reset"]
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions
  @OptionGroup var consent: ConsentOptions

  func run() async throws {
    try await perform("development was not reset") {
      let name = container.containerID
      let lost = try await server.connect {
        try await $0.requireContainer(name)
        return try await $0.usage().filter {
          $0.container == name && $0.environment == .development
        }
      }
      let deed =
        "replace the development schema of \(name) and delete all its development data "
        + "(\(lost.summary))"
      guard try consent.isGiven(to: deed, output) else { return }
      let _: NoReply = try await server.connect {
        try await $0.call(.schema(.resetDevelopment), ["container": name])
      }
      try output.done("Development has production's schema and no data.", ["container": name])
    }
  }
}
