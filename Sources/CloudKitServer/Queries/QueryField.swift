import CloudKitWebServices
import Foundation

/// A field that a query names: one of the type's, or a system field under any of its names.
struct QueryField: Hashable, Sendable {
  var schema: FieldSchema
  /// The name in the request, or the web services' name of a system field.
  var spokenName: String

  var name: String { schema.name }

  /// The type of its values, or of a list's elements; nil for a number of undetermined type.
  var element: FieldType? { schema.type.wireType?.element ?? schema.type.wireType }

  static let recordName = "recordName"

  private static let systemNames = [
    recordName: "___recordID",
    "createdTimestamp": "___createTime",
    "modifiedTimestamp": "___modTime",
    "createdUserRecordName": "___createdBy",
    "modifiedUserRecordName": "___modifiedBy",
    "parent": "___parent",
    "share": "___share",
    "recordChangeTag": "___etag",
  ]

  /// The schema's name of a field, which the request may name as the web services do.
  ///
  /// If an app's field has the name of a system field, the app's field takes precedence.
  static func systemName(_ name: String, in type: RecordTypeSchema) -> String {
    type[field: name] == nil ? systemNames[name] ?? name : name
  }

  /// Looks the field up, or throws the error of its name.
  init(
    fieldName: String?,
    systemFieldName: String?,
    in type: RecordTypeSchema
  ) throws(ErrorDictionary) {
    let name: String
    if let system = systemFieldName {
      guard let known = Self.systemNames[system] ?? (system.hasPrefix("___") ? system : nil) else {
        throw ErrorDictionary(.badRequest, "Unknown field '\(system)'")
      }
      name = known
      spokenName = system
    } else if let fieldName {
      name = Self.systemName(fieldName, in: type)
      spokenName = fieldName
    } else {
      throw ErrorDictionary(.badRequest, "missing required field 'fieldName'")
    }
    if let declared = type[field: name] {
      schema = declared
    } else if name == "___parent" || name == "___share" {
      schema = FieldSchema(name: name, type: .typed(.reference), indexes: [.queryable])
    } else if let system = FieldSchema.system.first(where: { $0.name == name }) {
      schema = system
    } else {
      throw ErrorDictionary(.badRequest, "Unknown field '\(spokenName)'")
    }
  }

  /// The operand in the form in which this field's values are compared.
  func operand(
    _ value: FieldValue?,
    isList: Bool
  ) throws(ErrorDictionary) -> FieldContent {
    guard let content = value?.content, content != .null else {
      throw ErrorDictionary(.badRequest, "the filter on '\(spokenName)' has no value")
    }
    for type in schema.type.elementTypes {
      if let wanted = isList ? type.list : type,
        let fitting = FieldCoercion.value(
          type == .int64 || type == .double ? content.untaggedNumber : content,
          as: wanted
        )
      {
        return fitting
      }
    }
    // Names of records and users may be plain strings.
    if element == .reference {
      let texts = FieldCoercion.value(content, as: isList ? .stringList : .string)
      if case .string(let text) = texts { return .string(text) }
      if case .stringList(let list) = texts { return .stringList(list) }
    }
    let scalar = schema.type.wireType.map { ($0.element ?? $0).rawValue } ?? schema.type.tag
    throw ErrorDictionary(
      .badRequest,
      "Invalid value, expected type \(isList ? scalar + "_LIST" : scalar) for the filter on "
        + "'\(spokenName)'"
    )
  }
}

extension FieldContent {
  /// A number without its tag: a literal of a predicate has the tag of its own notation, and
  /// `rating > 4` has one meaning for a field of either type.
  fileprivate var untaggedNumber: FieldContent {
    switch self {
    case .int64(let number): .untagged(.integer(number))
    case .double(let number): .untagged(.fraction(number))
    case .int64List(let numbers): .untagged(.list(numbers.map { .integer($0) }))
    case .doubleList(let numbers): .untagged(.list(numbers.map { .fraction($0) }))
    default: self
    }
  }
}
