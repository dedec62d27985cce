import Foundation

// Each type says how it fits into a row; the accessors are the same for all, and are repeated
// because a witness of a public protocol must itself be public.

extension Int: RowScalar {
  init?(row: RowValue) {
    guard case .integer(let number) = row else { return nil }
    self = Int(truncatingIfNeeded: number)
  }

  var row: RowValue { .integer(Int64(self)) }

  static var none: Int { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Int {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Int,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Int? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Int,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Int16: RowScalar {
  init?(row: RowValue) {
    guard case .integer(let number) = row else { return nil }
    self = Int16(truncatingIfNeeded: number)
  }

  var row: RowValue { .integer(Int64(self)) }

  static var none: Int16 { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Int16 {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Int16,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Int16? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Int16,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Int32: RowScalar {
  init?(row: RowValue) {
    guard case .integer(let number) = row else { return nil }
    self = Int32(truncatingIfNeeded: number)
  }

  var row: RowValue { .integer(Int64(self)) }

  static var none: Int32 { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Int32 {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Int32,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Int32? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Int32,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Int64: RowScalar {
  init?(row: RowValue) {
    guard case .integer(let number) = row else { return nil }
    self = number
  }

  var row: RowValue { .integer(self) }

  static var none: Int64 { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Int64 {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Int64,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Int64? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Int64,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Bool: RowScalar {
  init?(row: RowValue) {
    guard case .integer(let number) = row else { return nil }
    self = number != 0
  }

  var row: RowValue { .integer(self ? 1 : 0) }

  static var none: Bool { false }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Bool {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Bool,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Bool? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Bool,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Double: RowScalar {
  init?(row: RowValue) {
    guard case .double(let number) = row else { return nil }
    self = number
  }

  var row: RowValue { .double(self) }

  static var none: Double { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Double {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Double,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Double? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Double,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Float: RowScalar {
  init?(row: RowValue) {
    guard case .double(let number) = row else { return nil }
    self = Float(number)
  }

  var row: RowValue { .double(Double(self)) }

  static var none: Float { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Float {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Float,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Float? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Float,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension String: RowScalar {
  init?(row: RowValue) {
    guard case .string(let text) = row else { return nil }
    self = text
  }

  var row: RowValue { .string(self) }

  static var none: String { "" }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> String {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: String,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> String? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: String,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Date: RowScalar {
  init?(row: RowValue) {
    guard case .date(let seconds) = row else { return nil }
    self = Date(timeIntervalSinceReferenceDate: seconds)
  }

  var row: RowValue { .date(timeIntervalSinceReferenceDate) }

  static var none: Date { Date(timeIntervalSinceReferenceDate: 0) }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Date {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Date,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Date? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Date,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Data: RowScalar {
  init?(row: RowValue) {
    guard case .data(let bytes) = row else { return nil }
    self = bytes
  }

  var row: RowValue { .data(self) }

  static var none: Data { Data() }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Data {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Data,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Data? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Data,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension Decimal: RowScalar {
  init?(row: RowValue) {
    guard case .decimal(let box) = row else { return nil }
    self = box.value
  }

  var row: RowValue { .decimal(RowDecimal(self)) }

  static var none: Decimal { 0 }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Decimal {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: Decimal,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Decimal? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: Decimal,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension UUID: RowScalar {
  init?(row: RowValue) {
    guard case .uuid(let identifier) = row else { return nil }
    self = identifier
  }

  var row: RowValue { .uuid(self) }

  static var none: UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> UUID {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: UUID,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> UUID? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: UUID,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}

extension URL: RowScalar {
  init?(row: RowValue) {
    guard case .url(let url) = row else { return nil }
    self = url
  }

  var row: RowValue { .url(self) }

  static var none: URL { URL(fileURLWithPath: "/") }

  /// Reads an attribute.
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> URL {
    object.scalar(at: slot) ?? none
  }

  /// Writes an attribute.
  public static func setManagedValue(
    _ value: URL,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }

  /// Reads an attribute; nil where it has no value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> URL? {
    object.scalar(at: slot)
  }

  /// Writes an attribute.
  public static func writeManagedValue(
    _ value: URL,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    object.setScalar(value, at: slot)
  }
}
