import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed schema`: a container's schemas, as text and as changes.
struct SchemaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "A container's schemas: export, import, validate, compare, promote, reset.",
    discussion: """
      watershed schema export --container-id iCloud.org.example.app > app.ckdb
      watershed schema import --container-id iCloud.org.example.app --file app.ckdb
      watershed schema promote --container-id iCloud.org.example.app

      The verbs of cktool with their flags work too: export-schema, import-schema, validate-schema, \
      reset-schema.
      """,
    subcommands: [
      SchemaExportCommand.self, SchemaImportCommand.self, SchemaValidateCommand.self,
      SchemaDiffCommand.self, SchemaPromoteCommand.self, SchemaResetCommand.self,
      SchemaIndexCommand.Add.self, SchemaIndexCommand.Remove.self, SchemaRolesCommand.self,
    ]
  )
}

/// The container of a schema command.
struct ContainerOptions: ParsableArguments {
  @Option(
    name: [.customLong("container-id"), .customLong("container")],
    help: "The container, such as iCloud.org.example.app."
  )
  var containerID: String

  @Option(
    name: .customLong("team-id"),
    help: "Ignored: cktool has this option, and a server has one team."
  )
  var teamID: String?
}

/// The changes of a schema, from the admin API.
struct SchemaChanges: Codable {
  var changes: [SchemaDifference.Change]
  /// The number of records of each type that an import would delete, or whose field it would
  /// remove.
  var affectedRecords: [String: Int64]?

  /// One line for each change.
  var text: String { changes.map(\.description).joined(separator: "\n") }

  /// The indexes that the changes remove, each with its field.
  var lostIndexes: [String] {
    changes.filter { $0.subject == .indexes }.flatMap { change in
      let left = Set((change.after ?? "").split(separator: " "))
      return (change.before ?? "").split(separator: " ").filter { !left.contains($0) }
        .map { "\($0) of \(change.recordType ?? "").\(change.name)" }
    }
  }

  private func records(of type: String) -> String {
    affectedRecords?[type].map { Count.of(Int($0), "record") } ?? "its records"
  }

  /// The types and fields that the changes remove, with the number of records.
  var lostTypesAndFields: [String] {
    changes.filter { $0.kind == .removed }.compactMap { change in
      switch change.subject {
      case .recordType: "the type \(change.name) with \(records(of: change.name))"
      case .field:
        "the field \(change.recordType ?? "").\(change.name) of "
          + records(of: change.recordType ?? "")
      default: nil
      }
    }
  }
}

/// A schema file and its target.
struct NewSchemaBody: Encodable {
  var container: String
  var environment: ContainerEnvironment
  var schema: String
}
