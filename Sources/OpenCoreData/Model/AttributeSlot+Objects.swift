extension AttributeSlot {
  /// A row's value as key-value coding gives it to an app; transformable values are decoded.
  package func object(_ value: RowValue) -> Any? {
    guard holdsObjects else { return AttributeConversion.boxed(value, as: type) }
    guard case .data(let bytes) = value else { return nil }
    return TransformableCoding.decode(bytes, of: self)
  }
}
