/// The bytes of a page's rows, one after another.
///
/// It avoids allocating an array for each row. It grows while its page is read and is immutable
/// afterwards.
final class RowMemory {
  private var start: UnsafeMutableRawPointer
  private var capacity: Int
  private(set) var count = 0

  init(capacity: Int = 4096) {
    self.capacity = max(capacity, 1)
    start = .allocate(byteCount: self.capacity, alignment: 1)
  }

  deinit { start.deallocate() }

  func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    if capacity - count < bytes.count {
      capacity = max(capacity * 4, count + bytes.count)
      let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
      larger.copyMemory(from: start, byteCount: count)
      start.deallocate()
      start = larger
    }
    (start + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  func with<Result>(
    _ range: Range<Int>,
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: start + range.lowerBound, count: range.count))
  }
}
