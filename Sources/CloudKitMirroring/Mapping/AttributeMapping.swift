import Foundation
import OpenCoreData

/// How the values of one attribute are stored in a record.
package struct AttributeMapping: Sendable {
  /// The field types of Core Data's attribute types in CloudKit.
  package enum Form: Hashable, Sendable {
    case integer
    case double
    case decimal
    case date
    case uuid
    case url
    case string
    case data

    package init?(_ type: NSAttributeType) {
      switch type {
      case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
        .booleanAttributeType:
        self = .integer
      case .doubleAttributeType, .floatAttributeType: self = .double
      case .decimalAttributeType: self = .decimal
      case .dateAttributeType: self = .date
      case .UUIDAttributeType: self = .uuid
      case .URIAttributeType: self = .url
      case .stringAttributeType: self = .string
      case .binaryDataAttributeType, .transformableAttributeType, .compositeAttributeType:
        self = .data
      case .undefinedAttributeType, .objectIDAttributeType: return nil
      }
    }

    /// Whether values vary in length, so that a large one can move into a file.
    package var hasAsset: Bool { self == .string || self == .data || self == .url }
  }

  package let name: String
  /// The row index.
  package let index: Int
  package let type: NSAttributeType
  package let form: Form
  package let isOptional: Bool
  package let isEncrypted: Bool
  /// The value that an import sets if neither the record nor the last agreed copy has the fields.
  package let defaultValue: RowValue
  package let field: String
  /// The field of the file, for values that vary in length.
  package let assetField: String?
  /// The field of the exact text, for decimals that the model marks as exact.
  package let exactField: String?

  /// Returns nil for an attribute that is not mirrored.
  package init?(_ slot: AttributeSlot) {
    guard !slot.isTransient, !slot.isDerived, !MirrorFlags.isIgnored(slot.description),
      let form = Form(slot.type)
    else { return nil }
    self.form = form
    name = slot.name
    index = slot.index
    type = slot.type
    isOptional = slot.isOptional
    isEncrypted = MirrorFlags.isEncrypted(slot.description)
    defaultValue = slot.defaultRowValue
    field = MirrorNames.field(slot.name)
    assetField = form.hasAsset ? MirrorNames.assetField(slot.name) : nil
    exactField =
      form == .decimal && MirrorFlags.isExact(slot.description)
      ? MirrorNames.exactField(slot.name) : nil
  }

  /// All fields of the attribute.
  package var fields: [String] { [field, assetField, exactField].compactMap(\.self) }

  /// The value in a record; nil for null.
  package func mirrorValue(_ value: RowValue) -> MirrorValue? {
    switch value {
    case .null, .reference: nil
    case .integer(let number): .integer(number)
    // The service's numbers are JSON's, which cannot represent these: the field is left out.
    case .double(let number): number.isFinite ? .double(number) : nil
    case .decimal(let number): Self.double(number.value).map(MirrorValue.double)
    case .date(let seconds):
      .date(seconds.isFinite ? MirrorDate(secondsSince2001: seconds) : MirrorDate(milliseconds: 0))
    case .uuid(let uuid): .string(uuid.uuidString)
    case .url(let url): .string(url.absoluteString)
    case .string(let text): .string(text)
    case .data(let data): .data(data)
    }
  }

  /// The value in a row, or nil if the record's value has another type.
  package func rowValue(_ value: MirrorValue) -> RowValue? {
    switch (form, value) {
    case (.integer, .integer(let number)): integer(number)
    case (.integer, .double(let number)): Int64(exactly: number.rounded()).flatMap(integer)
    case (.double, .double(let number)): .double(number)
    case (.double, .integer(let number)): .double(Double(number))
    case (.decimal, .double(let number)): decimal(number)
    case (.decimal, .integer(let number)): .decimal(RowDecimal(Decimal(number)))
    case (.date, .date(let date)): .date(date.secondsSince2001)
    case (.uuid, .string(let text)): UUID(uuidString: text).map(RowValue.uuid)
    case (.url, .string(let text)): URL(string: text).map(RowValue.url)
    case (.string, .string(let text)): .string(text)
    case (.data, .data(let data)): .data(data)
    default: nil
    }
  }

  /// The attribute's value from its content in a record's fields.
  package func rowValue(_ content: MirrorValue, in fields: FieldBag) -> RowValue? {
    guard exactField != nil, let text = fields.exactText(of: name),
      let decimal = Decimal(string: text, locale: Self.posix), !decimal.isNaN
    else { return rowValue(content) }
    return .decimal(RowDecimal(decimal))
  }

  /// The exact text of a decimal that its double does not represent; nil for any other value.
  package func exactText(_ value: RowValue) -> MirrorValue? {
    guard exactField != nil, case .decimal(let number) = value, !number.value.isNaN,
      let double = Self.double(number.value), Decimal(nearest: double) != number.value
    else { return nil }
    return .string(number.value.description)
  }

  /// Returns nil for a number that no decimal can represent, because it would become NaN.
  private func decimal(_ number: Double) -> RowValue? {
    let decimal = Decimal(nearest: number)
    return decimal.isNaN ? nil : .decimal(RowDecimal(decimal))
  }

  private static let posix = Locale(identifier: "en_US_POSIX")

  /// The value in the bytes of a file.
  package func rowValue(fileContents: Data) -> RowValue? {
    switch form {
    case .string, .url:
      String(data: fileContents, encoding: .utf8).flatMap { rowValue(.string($0)) }
    case .data: .data(fileContents)
    default: nil
    }
  }

  /// The bytes of a value's file.
  package static func fileContents(_ value: MirrorValue) -> Data? {
    switch value {
    case .string(let text): Data(text.utf8)
    case .data(let data): data
    default: nil
    }
  }

  /// Returns nil for a number of another client that does not fit the attribute's width.
  private func integer(_ number: Int64) -> RowValue? {
    switch type {
    case .booleanAttributeType: .integer(number == 0 ? 0 : 1)
    case .integer16AttributeType: Int16(exactly: number).map { .integer(Int64($0)) }
    case .integer32AttributeType: Int32(exactly: number).map { .integer(Int64($0)) }
    default: .integer(number)
    }
  }

  /// The nearest double, from the digits: Foundation's own conversion is wrong for numbers far from
  /// zero.
  private static func double(_ decimal: Decimal) -> Double? {
    guard let number = Double(decimal.description), number.isFinite else { return nil }
    return number
  }
}

/// A model's settings for the mirroring, besides types.
package enum MirrorFlags {
  /// The keys with Boolean values.
  package static let keys = [
    MirrorNames.ignoredKey, MirrorNames.encryptedKey, MirrorNames.exactDecimalKey,
  ]

  /// Whether a property is not mirrored.
  package static func isIgnored(_ property: NSPropertyDescription) -> Bool {
    truth(property.userInfo?[MirrorNames.ignoredKey]) ?? false
  }

  /// Whether an attribute's values are stored in the encrypted values of its record.
  package static func isEncrypted(_ attribute: NSAttributeDescription) -> Bool {
    attribute.allowsCloudEncryption
      || (truth(attribute.userInfo?[MirrorNames.encryptedKey]) ?? false)
  }

  /// Whether an attribute's decimals are mirrored exactly.
  package static func isExact(_ attribute: NSAttributeDescription) -> Bool {
    attribute.attributeType == .decimalAttributeType
      && truth(attribute.userInfo?[MirrorNames.exactDecimalKey]) ?? false
  }

  /// A Boolean in the spellings that a model file can contain.
  package static func truth(_ value: Any?) -> Bool? {
    switch value {
    case let value as Bool: value
    case let value as NSNumber: value.boolValue
    case let text as String:
      switch text.lowercased() {
      case "yes", "true", "1": true
      case "no", "false", "0": false
      default: nil
      }
    default: nil
    }
  }
}
