extension String {
  /// Calls the body with the string's UTF-8 bytes, without a copy.
  ///
  /// `withUTF8(_:)` needs a variable, and so a retain and release for each call; only bridged
  /// strings of other frameworks, which do not exist on Linux, would have to be copied.
  @inlinable
  package func withBytes<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result {
    if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
    var copy = self
    return try copy.withUTF8(body)
  }
}
