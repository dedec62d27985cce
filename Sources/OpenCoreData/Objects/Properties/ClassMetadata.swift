/// The method table of a class, whose layout is that of the Swift ABI, TypeMetadata.rst.
enum ClassMetadata {
  /// The index of the first method, after the description and the destroyer of instance variables.
  static let firstMethod = 7
  /// The index of the size of the metadata and the offset of its address point, 32 bits each.
  private static let sizes = 4

  /// The words of a class's metadata, or nil where its layout is another one.
  static func words(of type: AnyClass) -> UnsafeMutableBufferPointer<UInt>? {
    #if canImport(ObjectiveC)
    // Metadata has more fields there.
    return nil
    #else
    let start = unsafeBitCast(type, to: UnsafeMutablePointer<UInt>.self)
    let size = start[sizes] & 0xFFFF_FFFF
    let addressPoint = start[sizes] >> 32
    guard UInt.bitWidth == 64, size > addressPoint, size < 1 << 20 else { return nil }
    let count = Int(size - addressPoint) / MemoryLayout<UInt>.size
    return UnsafeMutableBufferPointer(start: start, count: count)
    #endif
  }
}
