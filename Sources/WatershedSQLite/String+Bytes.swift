extension String {
  /// Lends the UTF-8 bytes where the string has them.
  ///
  /// `withUTF8(_:)` needs a variable, and with it a count of references for each call; only strings
  /// of other frameworks, which do not exist on Linux, would have to be copied.
  @inlinable
  package func withBytes<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result {
    if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
    var copy = self
    return try copy.withUTF8(body)
  }
}
