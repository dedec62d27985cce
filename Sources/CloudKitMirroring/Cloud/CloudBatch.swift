import Foundation

/// The operations of one request, numbered so that it can be repeated after a lost reply.
package struct CloudBatch: Hashable, Sendable {
  package var device: String
  package var sequence: Int64
  package var operations: [CloudOperation]
  /// The device of the last settled batch, where it is another one; set when the batch is sent, and
  /// no part of the encoding.
  package var finishedDevice: String?

  package init(device: String, sequence: Int64, operations: [CloudOperation]) {
    self.device = device
    self.sequence = sequence
    self.operations = operations
  }

  /// The names of the files that the operations have, which are no longer needed once the batch is settled.
  package var files: [String] { operations.flatMap { $0.set.files } }

  private static let version: UInt8 = 1

  /// The encoding in which the metadata keeps a batch until its reply has arrived.
  package var encoded: Data {
    var writer = ByteWriter()
    writer.byte(Self.version)
    writer.text(device)
    writer.integer(sequence)
    writer.integer(Int64(operations.count))
    for operation in operations {
      writer.byte(operation.kind.rawValue)
      writer.text(operation.name)
      writer.text(operation.recordType)
      writer.byte(operation.tag == nil ? 0 : 1)
      writer.text(operation.tag ?? "")
      writer.data(operation.set.encoded)
      writer.text(operation.removed.sorted().joined(separator: "\n"))
      writer.text(operation.encryptedKeys.sorted().joined(separator: "\n"))
      writer.byte(operation.isEdge ? 1 : 0)
    }
    return writer.bytes
  }

  package init(encoded: Data) throws {
    var reader = ByteReader(encoded)
    guard try reader.byte() == Self.version else {
      throw FieldBagError(reason: "The metadata has a batch in the encoding of another version.")
    }
    device = try reader.text()
    sequence = try reader.integer()
    operations = []
    for _ in 0..<(try reader.count()) {
      guard let kind = CloudOperation.Kind(rawValue: try reader.byte()) else {
        throw FieldBagError(reason: "The metadata has an operation of an unknown kind.")
      }
      let name = try reader.text()
      let recordType = try reader.text()
      let hasTag = try reader.byte() == 1
      let tag = try reader.text()
      var operation = CloudOperation(kind, name: name, recordType: recordType)
      operation.tag = hasTag ? tag : nil
      operation.set = try FieldBag(encoded: try reader.data())
      operation.removed = Self.names(try reader.text())
      operation.encryptedKeys = Self.names(try reader.text())
      operation.isEdge = try reader.byte() == 1
      operations.append(operation)
    }
  }

  private static func names(_ text: String) -> Set<String> {
    Set(text.split(separator: "\n").map(String.init))
  }
}
