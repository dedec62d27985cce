import Foundation

/// The typed value of a field.
package indirect enum RecordValue: Hashable, Sendable {
  /// Text.
  case string(String)
  /// An integer; Boolean values are 0 and 1.
  case int64(Int64)
  /// A floating-point number.
  case double(Double)
  /// Bytes.
  case data(Data)
  /// A date.
  case date(Date)
  /// A location.
  case location(CLLocation)
  /// A reference to another record of the zone.
  case reference(CKRecord.Reference)
  /// A file stored beside the record.
  case asset(CKAsset)
  /// A list of values of one type.
  case list([RecordValue])
}

extension RecordValue {
  /// The value that developers read: numbers are `NSNumber`, so that a cast to any numeric type
  /// succeeds as it does at Apple.
  package var objectValue: any CKRecordValueProtocol {
    switch self {
    case .string(let text): text
    case .int64(let number): NSNumber(value: number)
    case .double(let number): NSNumber(value: number)
    case .data(let data): data
    case .date(let date): date
    case .location(let location): location
    case .reference(let reference): reference
    case .asset(let asset): asset
    case .list(let elements): Self.listObject(elements)
    }
  }

  /// A typed array if all elements are of one type, otherwise an `NSArray`.
  private static func listObject(_ elements: [RecordValue]) -> any CKRecordValueProtocol {
    let objects = elements.map(\.objectValue)
    guard !objects.isEmpty else { return NSArray() }
    if let texts = objects as? [String] { return texts }
    let numbers = objects.compactMap { $0 as? NSNumber }
    if numbers.count == objects.count { return numbers }
    if let references = objects as? [CKRecord.Reference] { return references }
    if let assets = objects as? [CKAsset] { return assets }
    if let dates = objects as? [Date] { return dates }
    if let data = objects as? [Data] { return data }
    if let locations = objects as? [CLLocation] { return locations }
    return NSArray(array: objects)
  }

  /// The assets in the value, in order.
  package var assets: [CKAsset] {
    switch self {
    case .asset(let asset): [asset]
    case .list(let elements): elements.flatMap(\.assets)
    default: []
    }
  }

  /// The approximate size of the value in bytes, which counts towards a record's megabyte; assets
  /// do not count.
  package var byteCount: Int {
    switch self {
    case .string(let text): text.utf8.count
    case .int64, .double, .date: 8
    case .data(let data): data.count
    case .location: 64
    case .reference(let reference):
      reference.recordID.recordName.utf8.count + reference.recordID.zoneID.zoneName.utf8.count
    case .asset: 0
    case .list(let elements): elements.reduce(0) { $0 + $1.byteCount }
    }
  }
}

/// A value that converts itself to its typed form.
package protocol RecordValueConvertible {
  /// The typed form; nil if no field can hold an element of the list.
  var recordValue: RecordValue? { get }
}

extension RecordValue {
  /// The typed form of a developer's value; nil if no field can hold it.
  package init?(_ value: any CKRecordValueProtocol) {
    guard let convertible = value as? any RecordValueConvertible,
      let typed = convertible.recordValue
    else { return nil }
    self = typed
  }

  /// A list, unless it holds lists.
  package init?(elements: [RecordValue?]) {
    var list: [RecordValue] = []
    list.reserveCapacity(elements.count)
    for element in elements {
      guard let element else { return nil }
      if case .list = element { return nil }
      list.append(element)
    }
    self = .list(list)
  }
}

extension RecordValueConvertible where Self: BinaryInteger {
  /// An integer; one beyond 64 signed bits keeps its bits, as the service stores it.
  package var recordValue: RecordValue? { .int64(Int64(truncatingIfNeeded: self)) }
}

extension Int: RecordValueConvertible {}
extension Int8: RecordValueConvertible {}
extension Int16: RecordValueConvertible {}
extension Int32: RecordValueConvertible {}
extension Int64: RecordValueConvertible {}
extension UInt: RecordValueConvertible {}
extension UInt8: RecordValueConvertible {}
extension UInt16: RecordValueConvertible {}
extension UInt32: RecordValueConvertible {}
extension UInt64: RecordValueConvertible {}

extension Bool: RecordValueConvertible {
  package var recordValue: RecordValue? { .int64(self ? 1 : 0) }
}

extension Double: RecordValueConvertible {
  package var recordValue: RecordValue? { .double(self) }
}

extension Float: RecordValueConvertible {
  package var recordValue: RecordValue? { .double(Double(self)) }
}

extension String: RecordValueConvertible {
  package var recordValue: RecordValue? { .string(self) }
}

extension Substring: RecordValueConvertible {
  package var recordValue: RecordValue? { .string(String(self)) }
}

extension Data: RecordValueConvertible {
  package var recordValue: RecordValue? { .data(self) }
}

extension Date: RecordValueConvertible {
  package var recordValue: RecordValue? { .date(self) }
}

extension Array: RecordValueConvertible where Element: CKRecordValueProtocol {
  package var recordValue: RecordValue? { RecordValue(elements: map { RecordValue($0) }) }
}

extension NSString: RecordValueConvertible {
  package var recordValue: RecordValue? { .string(String(describing: self)) }
}

extension NSNumber: RecordValueConvertible {
  package var recordValue: RecordValue? {
    switch UInt8(bitPattern: objCType.pointee) {
    case UInt8(ascii: "d"), UInt8(ascii: "f"): .double(doubleValue)
    case UInt8(ascii: "Q"): .int64(Int64(bitPattern: uint64Value))
    default: .int64(int64Value)
    }
  }
}

extension NSData: RecordValueConvertible {
  package var recordValue: RecordValue? { .data(Data(referencing: self)) }
}

extension NSDate: RecordValueConvertible {
  package var recordValue: RecordValue? {
    .date(Date(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate))
  }
}

extension NSArray: RecordValueConvertible {
  package var recordValue: RecordValue? {
    RecordValue(elements: map { ($0 as? any RecordValueConvertible)?.recordValue })
  }
}

extension CLLocation: RecordValueConvertible {
  package var recordValue: RecordValue? { .location(self) }
}

extension CKReference: RecordValueConvertible {
  package var recordValue: RecordValue? { .reference(self) }
}

extension CKAsset: RecordValueConvertible {
  package var recordValue: RecordValue? { .asset(self) }
}
