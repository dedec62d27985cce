import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed records`: with `cktool`'s flags where it has the verb.
struct RecordsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "records",
    abstract:
      "Records of a database: create, query, look up, update, delete, export, import, copy.",
    discussion: """
      The verbs of cktool with their flags work too: create-record, query-records, delete-record, \
      delete-records.
      """,
    subcommands: [
      Create.self, Query.self, Get.self, Update.self, Delete.self, DeleteMatching.self,
      Export.self, Import.self, Copy.self,
    ],
    aliases: ["record"]
  )

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create a record and print it.",
      aliases: ["create-record"]
    )

    @OptionGroup var place: Place
    @OptionGroup var given: FieldOptions
    @Option(help: "The record's type, unless the JSON says it.") var recordType: String?
    @Option(help: "The record's name; without it the JSON's, or one that the server makes.")
    var recordName: String?

    func run() async throws {
      try await perform("no record was created") {
        let input = try given.record()
        guard let type = recordType ?? input.recordType else {
          throw ValidationError("Name the record's type with --record-type.")
        }
        let record = try await place.save(makesContainer: true) { connection in
          RecordOperation(
            operationType: .create,
            record: RecordDictionary(
              recordName: recordName ?? input.recordName,
              recordType: type,
              fields: try await given.values(of: input, type: type, connection),
              parent: input.parent,
              createShortGUID: input.createsShortGUID
            )
          )
        }
        try place.output.write(record, text: record.recordName ?? "")
      }
    }
  }

  struct Update: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Update fields of a record; without a change tag, regardless of its version.",
      aliases: ["update-record"]
    )

    @OptionGroup var place: Place
    @OptionGroup var given: FieldOptions
    @Option(help: "The record's name, unless the JSON says it.") var recordName: String?
    @Option(help: "The record's type.") var recordType: String?
    @Option(help: "Update it only if it still has this tag, or the JSON's.")
    var recordChangeTag: String?

    func run() async throws {
      try await perform("the record was not changed") {
        let input = try given.record()
        guard let name = recordName ?? input.recordName else {
          throw ValidationError("Name the record with --record-name.")
        }
        let tag = recordChangeTag ?? input.recordChangeTag
        let record = try await place.save { connection in
          var type = recordType ?? input.recordType
          if type == nil { type = try await place.record(name, connection)?.recordType }
          var record = RecordDictionary(
            recordName: name,
            recordType: type,
            recordChangeTag: tag,
            fields: try await given.values(of: input, type: type ?? "", connection),
            parent: input.parent
          )
          record.removesParent = input.removesParent
          return RecordOperation(
            operationType: tag == nil ? .forceUpdate : .update,
            record: record
          )
        }
        try place.output.write(record, text: record.recordName ?? "")
      }
    }
  }

  struct Get: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print one record.",
      aliases: ["get-record"]
    )

    @OptionGroup var place: Place
    @Option(help: "The record's name.") var recordName: String

    func run() async throws {
      try await perform("the record cannot be shown") {
        let found = try await place.open { try await place.record(recordName, $0) }
        guard let record = found else { return }
        let text = String(decoding: try WireCoding.encode(record), as: UTF8.self)
        try place.output.write(record, text: text.spelledOutJSON)
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete one record.",
      aliases: ["delete-record"]
    )

    @OptionGroup var place: Place
    @OptionGroup var consent: ConsentOptions
    @Option(help: "The record's name.") var recordName: String

    private struct Deleted: Encodable {
      var recordName: String
      var existed: Bool
    }

    func run() async throws {
      try await perform("the record was not deleted") {
        guard try consent.isGiven(to: "delete the record \(recordName)", place.output) else {
          return
        }
        let existed = try await delete()
        try place.output.done(
          existed ? "Deleted \(recordName)." : "There was no record \(recordName).",
          Deleted(recordName: recordName, existed: existed)
        )
      }
    }

    /// Whether there was such a record; the deletion itself succeeds without one.
    private func delete() async throws -> Bool {
      var existed = true
      _ = try await place.save { connection in
        do {
          _ = try await place.record(recordName, connection)
        } catch let error as ErrorDictionary
          where [.notFound, .accessDenied].contains(error.serverErrorCode)
        {
          // Who may not read it may still be allowed to delete it.
          existed = error.serverErrorCode == .accessDenied
        }
        return RecordOperation(
          operationType: .forceDelete,
          record: RecordDictionary(recordName: recordName)
        )
      }
      return existed
    }
  }
}
