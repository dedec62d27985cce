import ArgumentParser
import CloudKitWebServices
import Foundation

/// A field of a record in the input: `{"type": …, "value": …, "isEncrypted": …}`, for dates also `secondsSince2001`.
///
/// The type is one of `cktool`'s (`stringType`, `int64ListType`), of the wire (`STRING`,
/// `INT64_LIST`) or of the schema language (`LIST<INT64>`, `ENCRYPTED STRING`).
struct FieldInput {
  private let content: Content
  private let isEncrypted: Bool

  private enum Content {
    case ready(FieldContent)
    /// A file that is uploaded before the record is saved.
    case asset(AssetSource)
    case assets([AssetSource])
  }

  /// Parses a field; `place` is its location, for messages.
  init(_ json: JSONValue, place: String) throws {
    let members = try json.object(place, of: ["type", "value", "isEncrypted", "secondsSince2001"])
    let value = members["value"] ?? .null
    let flag: Bool
    switch members["isEncrypted"] ?? .null {
    case .null: flag = false
    case .flag(let given): flag = given
    default: throw ValidationError("\(place).isEncrypted: true or false is expected.")
    }
    let name = try members["type"]?.text("\(place).type")
    guard let name, name != "UNKNOWN_LIST" else {
      let isEmptyList = name != nil && value == .list([])
      guard value == .null || isEmptyList else {
        throw ValidationError("\(place): a type is missing.")
      }
      content = .ready(isEmptyList ? .unknownList : .null)
      isEncrypted = flag
      return
    }
    guard let (type, isSealed) = Self.type(name) else {
      throw ValidationError("\(place): there is no type '\(name)'.")
    }
    let content = try Self.content(of: type, value, place)
    if case .ready(let dates) = content, let exact = try Self.exactDates(members, place) {
      self.content = .ready(dates.with(exact))
    } else {
      self.content = content
    }
    isEncrypted = flag || isSealed
  }

  /// Returns the value for a request; `asset` uploads the file of an asset's value.
  func fieldValue(asset: (AssetSource) async throws -> AssetValue) async throws -> FieldValue {
    switch content {
    case .ready(let content): return FieldValue(content, isEncrypted: isEncrypted)
    case .asset(let source): return FieldValue(.asset(try await asset(source)))
    case .assets(let sources):
      var values: [AssetValue] = []
      for source in sources { values.append(try await asset(source)) }
      return FieldValue(.assetList(values))
    }
  }

  /// The type of a name.
  static func type(_ name: String) -> (type: FieldType, isEncrypted: Bool)? {
    var rest = name
    var isEncrypted = false
    if name.hasSuffix("Type") {
      rest.removeLast("Type".count)
      if rest.hasPrefix("encrypted") {
        rest.removeFirst("encrypted".count)
        isEncrypted = true
      }
      let isList = rest.hasSuffix("List")
      if isList { rest.removeLast("List".count) }
      guard let element = FieldType(tag: rest.uppercased()), !element.isList,
        let type = isList ? element.list : element
      else { return nil }
      return (type, isEncrypted)
    }
    for prefix in ["ENCRYPTED_", "ENCRYPTED "] where rest.hasPrefix(prefix) {
      rest.removeFirst(prefix.count)
      isEncrypted = true
    }
    if rest.hasPrefix("LIST<"), rest.hasSuffix(">") {
      let element = FieldType(tag: String(rest.dropFirst("LIST<".count).dropLast()))
      return element?.list.map { ($0, isEncrypted) }
    }
    return FieldType(tag: rest).map { ($0, isEncrypted) }
  }

  private static func content(
    of type: FieldType,
    _ value: JSONValue,
    _ place: String
  ) throws -> Content {
    guard value != .null else { return .ready(.null) }
    guard type.isList else {
      if type == .asset { return .asset(try source(value, place)) }
      return .ready(try scalar(type, value, place))
    }
    guard case .list(let elements) = value else {
      throw ValidationError("\(place): a list is expected for the type \(type.rawValue).")
    }
    let items = zip(elements, elements.indices.map { "\(place)[\($0)]" })
    switch type {
    case .stringList: return .ready(.stringList(try items.map(string)))
    case .int64List: return .ready(.int64List(try items.map(int64)))
    case .doubleList: return .ready(.doubleList(try items.map(double)))
    case .timestampList: return .ready(.timestampList(try items.map(date)))
    case .bytesList: return .ready(.bytesList(try items.map(bytes)))
    case .locationList: return .ready(.locationList(try items.map(location)))
    case .referenceList: return .ready(.referenceList(try items.map(reference)))
    case .assetList: return .assets(try items.map(source))
    default: throw mismatch(type, place)
    }
  }

  private static func scalar(
    _ type: FieldType,
    _ value: JSONValue,
    _ place: String
  ) throws -> FieldContent {
    switch type {
    case .string: .string(try string(value, place))
    case .int64: .int64(try int64(value, place))
    case .double: .double(try double(value, place))
    case .timestamp: .timestamp(try date(value, place))
    case .bytes: .bytes(try bytes(value, place))
    case .location: .location(try location(value, place))
    case .reference: .reference(try reference(value, place))
    default: throw mismatch(type, place)
    }
  }

  // MARK: Single values

  private static func mismatch(_ type: FieldType, _ place: String) -> ValidationError {
    ValidationError("\(place): the value is not of the type \(type.rawValue).")
  }

  private static func string(_ value: JSONValue, _ place: String) throws -> String {
    guard case .text(let text) = value else { throw mismatch(.string, place) }
    return text
  }

  private static func int64(_ value: JSONValue, _ place: String) throws -> Int64 {
    switch value {
    case .whole(let number): return number
    case .flag(let flag): return flag ? 1 : 0
    case .text(let text): if let number = Int64(text) { return number }
    default: break
    }
    throw mismatch(.int64, place)
  }

  private static func double(_ value: JSONValue, _ place: String) throws -> Double {
    switch value {
    case .whole(let number): return Double(number)
    case .number(let number): return number
    case .text(let text): if let number = Double(text), number.isFinite { return number }
    default: break
    }
    throw mismatch(.double, place)
  }

  private static func date(_ value: JSONValue, _ place: String) throws -> TimestampValue {
    TimestampValue(milliseconds: try timestamp(value, place))
  }

  /// What the milliseconds of dates leave out, as `records get` and `export` print it.
  private static func exactDates(
    _ members: [String: JSONValue],
    _ place: String
  ) throws -> ExactDates? {
    let place = "\(place).secondsSince2001"
    switch members["secondsSince2001"] ?? .null {
    case .null: return nil
    case .list(let elements):
      return .list(try elements.map { $0 == .null ? nil : try double($0, place) })
    case let number: return .one(try double(number, place))
    }
  }

  /// Milliseconds since 1970, or a date as `RecordFilter` reads it.
  private static func timestamp(_ value: JSONValue, _ place: String) throws -> Int64 {
    switch value {
    case .whole(let number): return number
    case .text(let text):
      if let date = RecordFilter.date(text) { return date.wireMilliseconds }
      if let number = Int64(text) { return number }
    default: break
    }
    throw mismatch(.timestamp, place)
  }

  private static func bytes(_ value: JSONValue, _ place: String) throws -> Data {
    guard case .text(let text) = value, let data = Data(base64Encoded: text) else {
      throw mismatch(.bytes, place)
    }
    return data
  }

  private static let locationKeys: Set<String> = [
    "latitude", "longitude", "horizontalAccuracy", "verticalAccuracy", "altitude", "speed",
    "course", "timestamp",
  ]

  private static func location(_ value: JSONValue, _ place: String) throws -> LocationValue {
    let members = try value.object(place, of: locationKeys)
    func number(_ key: String) throws -> Double? {
      guard let member = members[key], member != .null else { return nil }
      return try double(member, "\(place).\(key)")
    }
    guard let latitude = try number("latitude"), let longitude = try number("longitude") else {
      throw ValidationError("\(place): a place has latitude and longitude.")
    }
    return LocationValue(
      latitude: latitude,
      longitude: longitude,
      horizontalAccuracy: try number("horizontalAccuracy"),
      verticalAccuracy: try number("verticalAccuracy"),
      altitude: try number("altitude"),
      speed: try number("speed"),
      course: try number("course"),
      timestamp: try members["timestamp"].flatMap { member in
        member == .null ? nil : try timestamp(member, "\(place).timestamp")
      }
    )
  }

  /// A record's name, or an object with zone and action.
  private static func reference(_ value: JSONValue, _ place: String) throws -> ReferenceValue {
    if case .text(let name) = value {
      return ReferenceValue(recordName: name, action: ReferenceAction.none)
    }
    let members = try value.object(place, of: ["recordName", "zoneID", "action"])
    guard let name = try members["recordName"]?.text("\(place).recordName") else {
      throw ValidationError("\(place): a reference has a recordName.")
    }
    var action = ReferenceAction.none
    if let text = try members["action"]?.text("\(place).action") {
      guard let known = ReferenceAction(rawValue: text) else {
        let names = ReferenceAction.allCases.map(\.rawValue).joined(separator: ", ")
        throw ValidationError("\(place).action: there is no '\(text)'; it is one of \(names).")
      }
      action = known
    }
    return ReferenceValue(
      recordName: name,
      zoneID: try members["zoneID"].flatMap { try zone($0, place: "\(place).zoneID") },
      action: action
    )
  }

  static func zone(_ value: JSONValue, place: String) throws -> ZoneID? {
    guard value != .null else { return nil }
    let members = try value.object(place, of: ["zoneName", "ownerRecordName", "zoneType"])
    guard let name = try members["zoneName"]?.text("\(place).zoneName") else {
      throw ValidationError("\(place): a zone has a zoneName.")
    }
    return ZoneID(
      zoneName: name,
      ownerRecordName: try members["ownerRecordName"]?.text("\(place).ownerRecordName")
    )
  }

  // MARK: Assets

  private static let assetKeys: Set<String> = [
    "fileChecksum", "size", "receipt", "wrappingKey", "referenceChecksum", "downloadURL",
  ]

  private static func source(_ value: JSONValue, _ place: String) throws -> AssetSource {
    if case .text(let key) = value { return .key(key) }
    let members = try value.object(place, of: assetKeys)
    func text(_ key: String) throws -> String? { try members[key]?.text("\(place).\(key)") }
    if let receipt = try text("receipt") {
      return .uploaded(
        AssetValue(
          fileChecksum: try text("fileChecksum"),
          size: try members["size"].map { try int64($0, "\(place).size") },
          receipt: receipt,
          wrappingKey: try text("wrappingKey"),
          referenceChecksum: try text("referenceChecksum")
        )
      )
    }
    guard let url = try text("downloadURL") else {
      throw ValidationError(
        "\(place): an asset is a KEY of --asset-files, or has a downloadURL as `records get` prints it."
      )
    }
    return .download(url)
  }
}

/// The source of an asset's bytes.
enum AssetSource {
  /// A key in `--asset-files`.
  case key(String)
  /// The file of another record.
  case download(String)
  /// A file that was already uploaded.
  case uploaded(AssetValue)
}
