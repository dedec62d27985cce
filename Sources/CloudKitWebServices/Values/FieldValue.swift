import Foundation

/// A field's value as it travels: `{"value": …, "type": …, "isEncrypted": …}`.
package struct FieldValue: Hashable, Sendable {
  package var content: FieldContent
  package var isEncrypted: Bool
  /// What is inside the sealed bytes that a server keeps; it is never on the wire.
  package var sealedType: FieldType?

  package init(
    _ content: FieldContent,
    isEncrypted: Bool = false,
    sealedType: FieldType? = nil
  ) {
    self.content = content
    self.isEncrypted = isEncrypted
    self.sealedType = sealedType
  }
}

extension Date {
  /// The wire's form of a moment: whole milliseconds since 1970.
  package var wireMilliseconds: Int64 {
    let milliseconds = (timeIntervalSince1970 * 1000).rounded()
    return Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max)
  }

  package init(wireMilliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(wireMilliseconds) / 1000)
  }
}
