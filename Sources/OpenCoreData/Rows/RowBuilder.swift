import Foundation
import WatershedSQLite

/// Builds rows: collects the values in a reused buffer, and copies them once their size is known.
///
/// A builder belongs to one connection or one thread.
package final class RowBuilder {
  /// The limit of inline strings and data; larger ones are boxed.
  static let inlineLimit = 2048

  /// Whether a large value whose file is missing fails the read; see ``MissingLargeValue``.
  var requiresFiles = false
  private var slots: UnsafeMutablePointer<RowSlot>
  private var slotCapacity = 32
  private var count = 0
  private var bytes: UnsafeMutableRawPointer
  private var byteCapacity = 4096
  private var used = 0
  private var boxes: [RowBoxes.Box] = []
  private var boxedBytes = 0

  package init() {
    slots = .allocate(capacity: slotCapacity)
    bytes = .allocate(byteCount: byteCapacity, alignment: 16)
  }

  deinit {
    slots.deallocate()
    bytes.deallocate()
  }

  /// Begins a row with a number of values.
  @inline(__always)
  func begin(_ width: Int) {
    if width > slotCapacity {
      slots.deallocate()
      slotCapacity = width
      slots = .allocate(capacity: width)
    }
    count = 0
    used = 0
  }

  @inline(__always)
  private func append(_ slot: RowSlot) {
    slots[count] = slot
    count += 1
  }

  @inline(__always)
  func null() { append(.null) }

  @inline(__always)
  func integer(_ value: Int64) {
    append(RowSlot(word: UInt64(bitPattern: value), extra: 0, kind: .integer))
  }

  @inline(__always)
  func double(_ value: Double) {
    append(RowSlot(word: value.bitPattern, extra: 0, kind: .double))
  }

  @inline(__always)
  func date(_ value: Double) {
    append(RowSlot(word: value.bitPattern, extra: 0, kind: .date))
  }

  @inline(__always)
  func reference(entityNumber: Int32, key: Int64) {
    append(
      RowSlot(
        word: UInt64(bitPattern: key),
        extra: UInt32(bitPattern: entityNumber),
        kind: .reference
      )
    )
  }

  /// Appends the bytes of a string, data, a UUID, a decimal or a URL; the caller has checked the
  /// limit.
  @inline(__always)
  func append(_ source: UnsafeRawBufferPointer, as kind: RowSlot.Kind) {
    if used + source.count > byteCapacity { grow(source.count) }
    if let base = source.baseAddress {
      (bytes + used).copyMemory(from: base, byteCount: source.count)
    }
    append(RowSlot(word: UInt64(used), extra: UInt32(source.count), kind: kind))
    used += source.count
  }

  private func grow(_ more: Int) {
    let capacity = max(byteCapacity * 2, used + more)
    let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    grown.copyMemory(from: bytes, byteCount: used)
    bytes.deallocate()
    bytes = grown
    byteCapacity = capacity
  }

  @inline(never)
  func box(_ value: RowValue, byteCount: Int) { box(.value(value), byteCount) }

  /// Appends a large value whose file is not read yet.
  func box(_ file: ExternalFile) { box(.file(file), ExternalFile.countedBytes) }

  private func box(_ box: RowBoxes.Box, _ byteCount: Int) {
    append(RowSlot(word: UInt64(boxes.count), extra: 0, kind: .boxed))
    boxes.append(box)
    boxedBytes += byteCount
  }

  func value(_ value: RowValue) {
    switch value {
    case .null: null()
    case .integer(let value): integer(value)
    // SQLite has no NaN: it stores NULL, so the row has null.
    case .double(let value): if value.isNaN { null() } else { double(value) }
    case .date(let value): if value.isNaN { null() } else { date(value) }
    case .reference(let value): reference(entityNumber: value.entityNumber, key: value.key)
    case .string(let text):
      text.withBytes { utf8 in
        if utf8.count > Self.inlineLimit {
          box(value, byteCount: utf8.count)
        } else {
          append(UnsafeRawBufferPointer(utf8), as: .string)
        }
      }
    case .data(let data):
      if let file = ExternalFile.file(of: data) {
        box(file)
      } else if data.count > Self.inlineLimit {
        box(value, byteCount: data.count)
      } else {
        data.withUnsafeBytes { append($0, as: .data) }
      }
    case .uuid(let value): withUnsafeBytes(of: value.uuid) { append($0, as: .uuid) }
    case .decimal(let value): withUnsafeBytes(of: value.value) { append($0, as: .decimal) }
    case .url: box(value, byteCount: 128)
    }
  }

  /// Creates the row of the values since ``begin(_:)``.
  @inline(__always)
  func row(reference: RowReference, version: Int64) -> Row {
    let stride = MemoryLayout<RowSlot>.stride
    let count = count
    let used = used
    let tail = (used + stride - 1) / stride
    let boxes = takeBoxes()
    let made = RowStorage.create(minimumCapacity: count + tail) { _ in
      RowHeader(
        key: reference.key,
        version: version,
        entityNumber: reference.entityNumber,
        count: UInt16(count),
        size: UInt32((count + tail) * stride),
        boxes: boxes
      )
    }
    made.withUnsafeMutablePointerToElements { target in
      let start = UInt64(count * stride)
      for index in 0..<count {
        var slot = slots[index]
        switch slot.kind {
        case .string, .data, .uuid, .decimal, .url: slot.word += start
        default: break
        }
        (target + index).initialize(to: slot)
      }
      UnsafeMutableRawPointer(target + count).copyMemory(from: bytes, byteCount: used)
    }
    return Row(storage: unsafeDowncast(made, to: RowStorage.self))
  }

  @inline(__always)
  private func takeBoxes() -> RowBoxes? {
    boxes.isEmpty ? nil : boxed()
  }

  @inline(never)
  private func boxed() -> RowBoxes {
    defer {
      boxes = []
      boxedBytes = 0
    }
    return RowBoxes(boxes, byteCount: boxedBytes)
  }

  static func row(
    reference: RowReference,
    version: Int64,
    values: UnsafeBufferPointer<RowValue>
  ) -> RowStorage {
    let builder = RowBuilder()
    return builder.row(reference: reference, version: version, values: values).storage
  }

  /// Creates a row of given values.
  package func row(
    reference: RowReference,
    version: Int64,
    values: UnsafeBufferPointer<RowValue>
  ) -> Row {
    begin(values.count)
    for index in values.indices { value(values[index]) }
    return row(reference: reference, version: version)
  }
}
