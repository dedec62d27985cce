import CloudKitWebServices
import Foundation

extension StoredRecord {
  func decodedFields() throws -> [String: FieldValue] {
    guard !fields.isEmpty else { return [:] }
    return try WireCoding.decode([String: FieldValue].self, from: fields, origin: .storage)
  }

  /// The index entries of a field: one value, one per element, or none.
  func indexValues(of field: String, _ fields: [String: FieldValue]) -> [IndexValue] {
    switch field {
    case "___createTime": [.integer(created.timestamp)]
    case "___modTime": [.integer(modified.timestamp)]
    case "___createdBy": [.text(created.userRecordName ?? "")]
    case "___modifiedBy": [.text(modified.userRecordName ?? "")]
    case "___recordID": [.text(key.name)]
    case "___etag": [.text(tag)]
    case "___parent": parent.map { [.text($0)] } ?? []
    case "___share": (try? decodedSharing()?.share).map { [.text($0)] } ?? []
    default: fields[field].map { $0.content.indexValues } ?? []
    }
  }
}

/// The properties of a record's fields that a save needs, computed in one pass.
struct FieldSurvey {
  private(set) var contents: RecordContents = []
  /// Bytes that count for the size of a record.
  private(set) var size = 0

  /// The properties of fields that are encrypted, or to be encrypted.
  init(_ fields: [String: FieldValue]) {
    for (name, value) in fields {
      size += name.utf8.count + value.content.countedSize
      // Encrypted values are never references or files.
      if value.isEncrypted || value.sealedType != nil {
        contents.insert(.encrypted)
        continue
      }
      if value.content.hasExactDates { contents.insert(.exactDates) }
      switch value.content {
      case .asset, .assetList: contents.insert(.assets)
      case .reference, .referenceList: contents.insert(.references)
      default: break
      }
    }
  }
}

extension FieldContent {
  /// The index entries: of a location its latitude, of a file none.
  var indexValues: [IndexValue] {
    switch self {
    case .string(let value): [.text(value)]
    case .int64(let value): [.integer(value)]
    case .timestamp(let value): [.integer(value.milliseconds)]
    case .double(let value): [.real(value)]
    case .bytes(let value): [.bytes(value)]
    case .location(let value): [.real(value.latitude)]
    case .reference(let value): [.text(value.recordName)]
    case .stringList(let values): values.map { .text($0) }
    case .int64List(let values): values.map { .integer($0) }
    case .timestampList(let values): values.map { .integer($0.milliseconds) }
    case .doubleList(let values): values.map { .real($0) }
    case .bytesList(let values): values.map { .bytes($0) }
    case .locationList(let values): values.map { .real($0.latitude) }
    case .referenceList(let values): values.map { .text($0.recordName) }
    default: []
    }
  }

  /// Bytes that count for the size of a record; a file's do not.
  var countedSize: Int {
    switch self {
    case .null, .unknownList, .untagged: 0
    case .string(let value): value.utf8.count
    case .int64, .double, .timestamp: 8
    case .bytes(let value): value.count
    case .location: 64
    case .reference(let value): value.recordName.utf8.count + 16
    case .asset: 64
    case .stringList(let values): values.reduce(0) { $0 + $1.utf8.count + 4 }
    case .int64List(let values): values.count * 8
    case .timestampList(let values): values.count * 8
    case .doubleList(let values): values.count * 8
    case .bytesList(let values): values.reduce(0) { $0 + $1.count + 4 }
    case .locationList(let values): values.count * 64
    case .referenceList(let values): values.reduce(0) { $0 + $1.recordName.utf8.count + 16 }
    case .assetList(let values): values.count * 64
    }
  }
}

extension StoredRecord {
  /// Whether a kept field may have a reference with an action; its fields are not decoded.
  var mayBind: Bool {
    guard contents.contains(.references) else { return false }
    return [ReferenceAction.validate, .deleteSelf].contains { action in
      fields.firstRange(of: Data("\"\(action.rawValue)\"".utf8)) != nil
    }
  }

  /// About the memory that the record takes when it is decoded: a list of references takes many times
  /// its bytes.
  var decodedSize: Int {
    let bytes = fields.count + (sharing?.count ?? 0)
    guard contents.contains(.references) else { return bytes }
    let brace = UInt8(ascii: "{")
    return fields.reduce(bytes) { $1 == brace ? $0 + Self.bytesPerReference : $0 }
  }

  private static var bytesPerReference: Int { 2 * MemoryLayout<ReferenceValue>.stride }
}
