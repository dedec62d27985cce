/// A value that `JSONWriter` writes faster than `JSONEncoder`, to the same bytes.
package protocol JSONWritable: Encodable {
  func write(to writer: inout JSONWriter)
}

extension ModifyRecordsRequest: JSONWritable {
  /// Writes the request with sorted keys.
  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("atomic", atomic)
    if let clientSequence {
      writer.key("clientSequence")
      writer.beginObject()
      writer.key("acknowledged")
      writer.integer(clientSequence.acknowledged)
      writer.member("device", clientSequence.device)
      writer.member("finishedDevice", clientSequence.finishedDevice)
      writer.key("sequence")
      writer.integer(clientSequence.sequence)
      writer.endObject()
    }
    writer.member("desiredKeys", desiredKeys)
    writer.member("numbersAsStrings", numbersAsStrings)
    writer.key("operations")
    writer.beginArray()
    for operation in operations { operation.write(to: &writer) }
    writer.endArray()
    if let zoneID { writer.member("zoneID", zoneID) }
    writer.endObject()
  }
}

extension RecordOperation {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.member("desiredKeys", desiredKeys)
    writer.member("numbersAsStrings", numbersAsStrings)
    writer.member("operationType", operationType.rawValue)
    writer.key("record")
    writer.record(record)
    writer.endObject()
  }
}

extension JSONWriter {
  fileprivate mutating func member(_ name: String, _ flag: Bool?) {
    guard let flag else { return }
    key(name)
    boolean(flag)
  }

  fileprivate mutating func member(_ name: String, _ texts: [String]?) {
    guard let texts else { return }
    key(name)
    beginArray()
    for text in texts { string(text) }
    endArray()
  }
}
