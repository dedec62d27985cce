import Foundation

/// The kind of value that an attribute holds, with Core Data's own numbers.
public enum NSAttributeType: UInt, Sendable, Hashable, CaseIterable {
  /// No type: only a transient attribute can have it.
  case undefinedAttributeType = 0
  /// A whole number of 16 bits.
  case integer16AttributeType = 100
  /// A whole number of 32 bits.
  case integer32AttributeType = 200
  /// A whole number of 64 bits.
  case integer64AttributeType = 300
  /// A decimal number, exact to 38 digits.
  case decimalAttributeType = 400
  /// A floating-point number of 64 bits.
  case doubleAttributeType = 500
  /// A floating-point number of 32 bits.
  case floatAttributeType = 600
  /// Text.
  case stringAttributeType = 700
  /// Yes or no.
  case booleanAttributeType = 800
  /// A moment in time.
  case dateAttributeType = 900
  /// Bytes.
  case binaryDataAttributeType = 1000
  /// A universally unique identifier.
  case UUIDAttributeType = 1100
  /// A resource identifier.
  case URIAttributeType = 1200
  /// Any value that a value transformer turns into bytes.
  case transformableAttributeType = 1800
  /// The identifier of an object, for expressions in fetches.
  case objectIDAttributeType = 2000
  /// A group of attributes.
  case compositeAttributeType = 2100
}

/// What happens to the destination of a relationship when its source is deleted.
public enum NSDeleteRule: UInt, Sendable, Hashable, CaseIterable {
  /// The destination is left as it is.
  case noActionDeleteRule = 0
  /// The destination's inverse is set to nil.
  case nullifyDeleteRule = 1
  /// The destination is deleted too.
  case cascadeDeleteRule = 2
  /// The source cannot be deleted while it has a destination.
  case denyDeleteRule = 3
}

/// How an element of a fetch index is stored.
public enum NSFetchIndexElementType: UInt, Sendable, Hashable {
  /// A balanced tree over the values.
  case binary = 0
  /// A spatial tree over ranges of numbers.
  case rTree = 1
}
