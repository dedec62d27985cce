import Foundation

/// Prints records as CloudKit prints them: values as an old-style property list.
package struct RecordFormatter {
  /// Whether object addresses are printed; without them the text is the same in each run.
  package var address = true
  /// Whether long lines are broken as in Apple's documentation.
  package var wrapped = false

  package init(address: Bool = true, wrapped: Bool = false) {
    self.address = address
    self.wrapped = wrapped
  }

  /// The whole record.
  package func text(of record: CKRecord) -> String {
    let recordID = record.recordID
    var text = "<CKRecord: \(addressText(record)); recordID=\(recordID.recordName):"
    text += wrapped ? "\n" : ""
    text += "(\(recordID.zoneID.zoneName):\(recordID.zoneID.ownerName)), values={\n"
    let fields = record.fields
    for key in fields.keys.sorted() {
      guard let field = fields[key] else { continue }
      text += "\"\(Self.escaped(key))\" = \(self.text(of: field.value));\n"
    }
    return text + "}, recordType=\(record.recordType)>"
  }

  /// One value.
  package func text(of value: RecordValue) -> String {
    switch value {
    case .string(let text): Self.quotedIfNeeded(text)
    case .int64(let number): Self.quotedIfNeeded(String(number))
    case .double(let number): Self.quotedIfNeeded(NSNumber(value: number).stringValue)
    case .data(let data): Self.text(of: data)
    case .date(let date): "\"\(Self.text(of: date))\""
    case .location(let location): "\"\(location)\""
    case .reference(let reference): "\"\(text(of: reference))\""
    case .asset(let asset): "\"\(text(of: asset))\""
    case .list(let elements): listText(elements)
    }
  }

  func text(of asset: CKAsset) -> String {
    let separator = wrapped ? "\n" : " "
    return "<CKAsset: \(addressText(asset));\(separator)"
      + "path=\(asset.fileURL?.path ?? "(null)"),\(separator)UUID=\(asset.uuid.uuidString)>"
  }

  private func text(of reference: CKRecord.Reference) -> String {
    let zoneID = reference.recordID.zoneID
    return "<CKReference: \(addressText(reference)); "
      + "\(reference.recordID.recordName):(\(zoneID.zoneName):\(zoneID.ownerName))>"
  }

  private func listText(_ elements: [RecordValue]) -> String {
    guard !elements.isEmpty else { return "(\n)" }
    return "(\n" + elements.map { "    " + text(of: $0) }.joined(separator: ",\n") + "\n)"
  }

  private func addressText(_ object: AnyObject) -> String {
    address ? Self.address(of: object) : "0x0"
  }

  /// The address of an object, as `%p` prints it.
  static func address(of object: AnyObject) -> String {
    "0x" + String(UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()), radix: 16)
  }

  /// Old-style property lists leave a text of ASCII letters and digits without quotes.
  static func quotedIfNeeded(_ text: String) -> String {
    let isBare =
      !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: false
        }
      }
    return isBare ? text : "\"\(escaped(text))\""
  }

  private static func escaped(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == 0x22 || $0 == 0x5C || $0 < 0x20 }) else { return text }
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": escaped += "\\\""
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\t": escaped += "\\t"
      case "\r": escaped += "\\r"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// The form of `NSData`: up to 24 bytes whole, more than that the first 16 and the last 8.
  private static func text(of data: Data) -> String {
    guard data.count > 24 else {
      return "{length = \(data.count), bytes = 0x\(hex(data))}"
    }
    let head = words(data.prefix(16))
    let tail = words(data.suffix(8))
    return "{length = \(data.count), bytes = 0x\(head) ... \(tail) }"
  }

  private static func words(_ data: Data) -> String {
    stride(from: data.startIndex, to: data.endIndex, by: 4)
      .map { hex(data[$0..<min($0 + 4, data.endIndex)]) }
      .joined(separator: " ")
  }

  private static func hex(_ data: Data) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(data.count * 2)
    for byte in data {
      bytes.append(digits[Int(byte >> 4)])
      bytes.append(digits[Int(byte & 15)])
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The form of `NSDate`: UTC to the second.
  private static func text(of date: Date) -> String { date.description }
}

extension CKRecord {
  /// The record in the form CloudKit prints, optionally without addresses or with wrapped lines.
  package func formatted(address: Bool = true, wrapped: Bool = false) -> String {
    RecordFormatter(address: address, wrapped: wrapped).text(of: self)
  }
}
