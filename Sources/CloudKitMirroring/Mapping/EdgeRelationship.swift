import Crypto
import Foundation
import OpenCoreData

/// The two sides of a relationship in the order in which an edge record names them.
///
/// The side whose owning entity's name sorts first, case-insensitively, is first; if both sides
/// belong to one entity, the relationship's name decides. The owning entity is the one that
/// declares the relationship, which may be a parent of the object's entity.
package struct EdgeRelationship: Hashable, Sendable {
  package struct Side: Hashable, Sendable {
    package var entityName: String
    package var relationship: String

    package init(entityName: String, relationship: String) {
      self.entityName = entityName
      self.relationship = relationship
    }

    init(_ description: NSRelationshipDescription) {
      entityName = description.declaringEntity?.name ?? ""
      relationship = description.name
    }
  }

  package let first: Side
  package let second: Side

  package init(_ one: Side, _ other: Side) {
    let isOrdered = Self.precedes(one, other)
    first = isOrdered ? one : other
    second = isOrdered ? other : one
  }

  init(_ relationship: NSRelationshipDescription, _ inverse: NSRelationshipDescription) {
    self.init(Side(relationship), Side(inverse))
  }

  /// Whether a side of the relationship is at position 0.
  func startsWith(_ relationship: NSRelationshipDescription) -> Bool {
    first == Side(relationship)
  }

  /// Whether the relationship is its own inverse, so that an edge has no direction.
  package var isSymmetric: Bool { first == second }

  private static func precedes(_ left: Side, _ right: Side) -> Bool {
    for (a, b) in [
      (left.entityName.lowercased(), right.entityName.lowercased()),
      (left.relationship.lowercased(), right.relationship.lowercased()),
      // Names that differ only in case still need the same order on every device.
      (left.entityName, right.entityName),
      (left.relationship, right.relationship),
    ] where a != b {
      return a.utf8.lexicographicallyPrecedes(b.utf8)
    }
    return true
  }
}

/// One edge of a many-to-many relationship, as in a `CDMR` record.
package struct Edge: Hashable, Sendable {
  package var relationship: EdgeRelationship
  /// The record name of the object at position 0.
  package var firstRecord: String
  /// The record name of the object at position 1.
  package var secondRecord: String

  package init(relationship: EdgeRelationship, firstRecord: String, secondRecord: String) {
    self.relationship = relationship
    // A relationship that is its own inverse has one record for both directions.
    let isSwapped =
      relationship.isSymmetric
      && secondRecord.utf8.lexicographicallyPrecedes(firstRecord.utf8)
    self.firstRecord = isSwapped ? secondRecord : firstRecord
    self.secondRecord = isSwapped ? firstRecord : secondRecord
  }

  /// Reads an edge record; nil if a field is missing or does not have exactly two parts.
  package init?(fields: FieldBag) {
    guard let entities = Self.parts(fields[MirrorNames.edgeEntityNames]),
      let records = Self.parts(fields[MirrorNames.edgeRecordNames]),
      let relationships = Self.parts(fields[MirrorNames.edgeRelationships])
    else { return nil }
    let one = EdgeRelationship.Side(entityName: entities.0, relationship: relationships.0)
    let other = EdgeRelationship.Side(entityName: entities.1, relationship: relationships.1)
    let relationship = EdgeRelationship(one, other)
    // Another client may have written another order; ours is used.
    let isInOrder = relationship.first == one
    self.init(
      relationship: relationship,
      firstRecord: isInOrder ? records.0 : records.1,
      secondRecord: isInOrder ? records.1 : records.0
    )
  }

  /// The fields of the record.
  package var fields: FieldBag {
    FieldBag([
      MirrorNames.edgeEntityNames:
        .string("\(relationship.first.entityName):\(relationship.second.entityName)"),
      MirrorNames.edgeRecordNames: .string("\(firstRecord):\(secondRecord)"),
      MirrorNames.edgeRelationships:
        .string("\(relationship.first.relationship):\(relationship.second.relationship)"),
    ])
  }

  /// The name of the record that we write: the same on every device, so that an edge created on two
  /// devices is one record.
  package func recordName(zone: String) -> String {
    let text = [
      zone, relationship.first.relationship, relationship.second.relationship, firstRecord,
      secondRecord,
    ].joined(separator: "\n")
    return NameBasedUUID.make(namespace: Self.namespace, name: text).uuidString
  }

  private static let namespace = UUID(
    uuid: (
      0x6F, 0x1D, 0x1C, 0x5A, 0x53, 0x0E, 0x4B, 0x1B, 0x9C, 0x2A, 0x8E, 0x41, 0xD7, 0x3B, 0x90, 0x55
    )
  )

  /// Apple's text says semicolon but its example has a colon: both are read.
  private static func parts(_ value: MirrorValue?) -> (String, String)? {
    guard case .string(let text) = value else { return nil }
    let separator: Character = text.contains(":") ? ":" : ";"
    let parts = text.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    return (parts[0], parts[1])
  }
}

/// UUIDs of version 5, made from a name (RFC 9562, 5.5).
package enum NameBasedUUID {
  package static func make(namespace: UUID, name: String) -> UUID {
    var hasher = Insecure.SHA1()
    withUnsafeBytes(of: namespace.uuid) { hasher.update(bufferPointer: $0) }
    hasher.update(data: Data(name.utf8))
    var bytes = Array(hasher.finalize().prefix(16))
    bytes[6] = bytes[6] & 0x0F | 0x50
    bytes[8] = bytes[8] & 0x3F | 0x80
    return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}
