import ArgumentParser
import CloudKitWebServices
import Foundation

/// Adds and removes single indexes, for a query that was refused.
enum SchemaIndexCommand {
  /// The index and its field.
  struct Options: ParsableArguments {
    @Option(help: "The record type.") var recordType: String

    @Option(help: "The field; system fields such as recordName and modifiedTimestamp too.")
    var field: String

    @Option(help: "QUERYABLE, SORTABLE or SEARCHABLE.", transform: Options.index)
    var index: FieldIndex

    private static func index(_ text: String) throws -> FieldIndex {
      guard let index = FieldIndex(rawValue: text.uppercased()) else {
        throw ValidationError("An index is QUERYABLE, SORTABLE or SEARCHABLE, not \(text).")
      }
      return index
    }
  }

  private struct Body: Encodable {
    var container: String
    var recordType: String
    var field: String
    var index: FieldIndex
    var isKept: Bool
  }

  fileprivate static func run(
    _ options: Options,
    isKept: Bool,
    _ container: ContainerOptions,
    _ server: ServerOptions,
    _ output: OutputOptions
  ) async throws {
    let body = Body(
      container: container.containerID,
      recordType: options.recordType,
      field: options.field,
      index: options.index,
      isKept: isKept
    )
    let reply: SchemaChanges = try await server.connect {
      try await $0.requireContainer(container.containerID)
      return try await $0.call(.schema(.setIndex), body)
    }
    try output.write(reply, text: reply.text)
  }

  /// `watershed schema add-index`.
  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "add-index",
      abstract: "Mark a field of the development schema queryable, sortable or searchable."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var container: ContainerOptions
    @OptionGroup var options: Options

    func run() async throws {
      try await perform("no index was added") {
        try await SchemaIndexCommand.run(options, isKept: true, container, server, output)
      }
    }
  }

  /// `watershed schema remove-index`.
  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove-index",
      abstract: "Remove such a mark; queries that need it are refused."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var container: ContainerOptions
    @OptionGroup var options: Options

    func run() async throws {
      try await perform("no index was removed") {
        try await SchemaIndexCommand.run(options, isKept: false, container, server, output)
      }
    }
  }
}
