import Foundation
import WatershedSQLite

/// Attributes that change to another type of number.
///
/// Core Data infers a mapping between types whose values have one class. Those are the integers,
/// Boolean, Float and Double, all `NSNumber`; a decimal number has a class of its own, and a change
/// to or from it needs a mapping model.
///
/// A value is either kept exactly or the migration is refused: 70,000 is no Integer 16, 1.5 no
/// integer, 2 no Boolean, and 9,007,199,254,740,993 no Double. A Double that becomes a Float stays
/// unchanged in the file, and reads rounded to a Float.
enum NumberConversion {
  private static let whole: Set<NSAttributeType> = [
    .integer16AttributeType, .integer32AttributeType, .integer64AttributeType,
    .booleanAttributeType,
  ]
  private static let real: Set<NSAttributeType> = [.doubleAttributeType, .floatAttributeType]

  static func isPossible(from before: NSAttributeType, to after: NSAttributeType) -> Bool {
    isNumber(before) && isNumber(after)
  }

  static func isNumber(_ type: NSAttributeType) -> Bool {
    whole.contains(type) || real.contains(type)
  }

  /// Whether values are stored as whole numbers.
  static func isWhole(_ type: NSAttributeType) -> Bool { whole.contains(type) }

  /// Whether a stored number is a value of a type.
  static func fits(_ value: SQLiteValue, _ type: NSAttributeType) -> Bool {
    switch value {
    case .integer(let number): fits(number, type)
    case .real(let number):
      switch type {
      case .doubleAttributeType: true
      case .floatAttributeType:
        !number.isFinite || abs(number) <= Double(Float.greatestFiniteMagnitude)
      default: Int64(exactly: number).map { fits($0, type) } ?? false
      }
    case .null: true
    case .text, .blob: false
    }
  }

  private static func fits(_ number: Int64, _ type: NSAttributeType) -> Bool {
    switch type {
    case .integer16AttributeType: Int16(exactly: number) != nil
    case .integer32AttributeType: Int32(exactly: number) != nil
    case .integer64AttributeType: true
    case .booleanAttributeType: number == 0 || number == 1
    case .doubleAttributeType: Double(exactly: number) != nil
    case .floatAttributeType: Float(exactly: number) != nil
    default: false
    }
  }

  /// Whether a number of key-value coding fits an attribute of the type.
  static func fits(_ value: NSNumber, _ type: NSAttributeType) -> Bool {
    let number = value.int64Value
    let stored: SQLiteValue =
      NSNumber(value: number) == value ? .integer(number) : .real(value.doubleValue)
    return fits(stored, type)
  }

  /// The SQL function that checks whether a number fits a type.
  static let function = "WatershedNumberFits"

  static func refusal(_ value: String, _ attribute: String, _ entity: String) -> NSError {
    MigrationError.make(
      NSMigrationError,
      [
        "reason": "The value \(value) of the source attribute cannot be kept in the type of the "
          + "destination attribute",
        "entity": entity,
        "attribute": attribute,
      ]
    )
  }
}
