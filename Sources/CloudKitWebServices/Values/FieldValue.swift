import Foundation

/// A field's value on the wire: `{"value": …, "type": …, "isEncrypted": …}`.
package struct FieldValue: Hashable, Sendable {
  package var content: FieldContent
  package var isEncrypted: Bool
  /// The type inside the sealed bytes in the server's storage; it is never on the wire.
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

  /// The value with another content.
  package func replacing(_ content: FieldContent) -> FieldValue {
    FieldValue(content, isEncrypted: isEncrypted, sealedType: sealedType)
  }
}

extension Date {
  /// The date on the wire: whole milliseconds since 1970.
  package var wireMilliseconds: Int64 {
    let milliseconds = (timeIntervalSince1970 * 1000).rounded()
    return Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max)
  }

  package init(wireMilliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(wireMilliseconds) / 1000)
  }
}
