import ArgumentParser
import CloudKitMirroring
import Foundation

/// `watershed recovery`: what a mirrored store keeps of values that other devices' deletions overrode.
struct RecoveryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recovery",
    abstract: "Inspect the recovery list of a mirrored store.",
    subcommands: [List.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the entries of a store's recovery list, oldest first, with their values.",
      discussion: """
        The store's file is read as it is: no app, model or server is needed, and nothing is changed. An \
        app restores or discards an entry with NSPersistentCloudKitContainer.restore(_:) and discard(_:): \
        that requires its model, and notifies its contexts of the object.
        """
    )

    @OptionGroup var output: OutputOptions
    @Argument(help: "The store's file, such as Model.sqlite.") var store: String
    @Option(help: "The most entries to read.") var limit = 1000

    func validate() throws {
      guard limit > 0 else { throw ValidationError("--limit has to be above zero.") }
    }

    func run() async throws {
      let what = "the recovery list cannot be read"
      try await perform(what) {
        let list: RecoveryListFile
        do {
          list = try RecoveryListFile(contentsOf: URL(fileURLWithPath: store), limit: limit)
        } catch {
          throw CommandFailure(
            "UNREADABLE_FILE",
            what: what,
            why: "\(error)",
            next: "name the .sqlite file of a store that an app mirrors"
          )
        }
        let entries = list.entries.map(Entry.init)
        try output.write(
          "entries",
          entries,
          columns: entries.map { entry in
            let fields = entry.fields.keys.sorted().joined(separator: " ")
            let date = Date(timeIntervalSince1970: Double(entry.date) / 1000).formatted(.iso8601)
            return ["\(entry.id)", date, entry.entity, entry.record, entry.reason, fields]
          },
          titles: ["id", "date", "entity", "record", "reason", "fields"]
        )
      }
    }
  }

  /// An entry as it is printed.
  private struct Entry: Encodable {
    var id: Int64
    /// Milliseconds since 1970.
    var date: Int64
    var entity: String
    var record: String
    var reason: String
    /// The values by the names of the record's fields.
    var fields: [String: Value]

    init(_ edit: RecoveredEdit) {
      id = edit.id
      let date = Date(timeIntervalSinceReferenceDate: edit.noted)
      self.date = Int64((date.timeIntervalSince1970 * 1000).rounded())
      entity = edit.entityName
      record = edit.record
      reason = edit.reason
      fields = edit.fields.values.mapValues(Value.init)
    }
  }

  /// A value, with its type where JSON has none of its own.
  private enum Value: Encodable {
    case text(String)
    case integer(Int64)
    case number(Double)
    case tagged(type: String, value: String)

    init(_ value: MirrorValue) {
      switch value {
      case .string(let text): self = .text(text)
      case .integer(let number): self = .integer(number)
      case .double(let number):
        self = number.isFinite ? .number(number) : .tagged(type: "DOUBLE", value: "\(number)")
      case .date(let date): self = .tagged(type: "TIMESTAMP", value: "\(date.milliseconds)")
      case .data(let data): self = .tagged(type: "BYTES", value: data.base64EncodedString())
      case .asset(let asset): self = .tagged(type: "ASSETID", value: asset.file)
      case .fingerprint(let fingerprint):
        self = .tagged(type: "FINGERPRINT", value: "\(fingerprint.size) bytes")
      }
    }

    private enum CodingKeys: String, CodingKey { case type, value }

    func encode(to encoder: any Encoder) throws {
      switch self {
      case .text(let text):
        var container = encoder.singleValueContainer()
        try container.encode(text)
      case .integer(let number):
        var container = encoder.singleValueContainer()
        try container.encode(number)
      case .number(let number):
        var container = encoder.singleValueContainer()
        try container.encode(number)
      case .tagged(let type, let value):
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(type, forKey: .type)
        try container.encode(value, forKey: .value)
      }
    }
  }
}
