import Foundation

/// The hashes by which a store identifies the model that it was written with.
///
/// The digests of plain attributes, relationships and entities equal Core Data's. Core Data's
/// digests of derived and composite attributes are unknown; these are stable and change with the
/// stored form.
enum VersionHash {
  static func base(of property: NSPropertyDescription) -> Data {
    var input = Data(property.name.utf8)
    input.append(property.isOptional ? 1 : 0)
    input.append(property.isTransient ? 1 : 0)
    if let modifier = property.versionHashModifier { input.append(contentsOf: modifier.utf8) }
    return SHA2.digest256(input)
  }

  static func attribute(_ attribute: NSAttributeDescription) -> Data {
    var input = base(of: attribute)
    append(Int32(truncatingIfNeeded: attribute.attributeType.rawValue), to: &input)
    if attribute.allowsExternalBinaryDataStorage { input.append(1) }
    if attribute.preservesValueInHistoryOnDeletion { input.append(1) }
    if let derived = attribute as? NSDerivedAttributeDescription {
      input.append(contentsOf: (derived.derivationFormat ?? "").utf8)
      input.append(contentsOf: (derived.filteringSource?.format ?? "").utf8)
    }
    if let composite = attribute as? NSCompositeAttributeDescription {
      for element in composite.elements.sorted(by: { precedes($0.name, $1.name) }) {
        input.append(element.versionHash)
      }
    }
    return SHA2.digest256(input)
  }

  static func relationship(_ relationship: NSRelationshipDescription) -> Data {
    var input = base(of: relationship)
    input.append(contentsOf: (relationship.destinationEntity?.name ?? "").utf8)
    if let inverse = relationship.inverseRelationship, inverse !== relationship {
      input.append(contentsOf: inverse.name.utf8)
    }
    append(Int32(truncatingIfNeeded: relationship.maxCount), to: &input)
    append(Int32(truncatingIfNeeded: relationship.minCount), to: &input)
    if relationship.isOrdered { input.append(contentsOf: [1, 0]) }
    return SHA2.digest256(input)
  }

  static func entity(_ entity: NSEntityDescription) -> Data {
    var input = Data((entity.name ?? "").utf8)
    input.append(entity.isAbstract ? 1 : 0)
    if let parent = entity.superentity { input.append(parent.versionHash) }
    let stored = entity.propertiesByName.values
      .filter { !$0.isTransient && !($0 is NSFetchedPropertyDescription) }
      .sorted { precedes($0.name, $1.name) }
    for property in stored { input.append(property.versionHash) }
    if let modifier = entity.versionHashModifier { input.append(contentsOf: modifier.utf8) }
    let constraints = entity.uniquenessConstraintNames.map { $0.joined(separator: ".") }
    for constraint in constraints.sorted(by: precedes) { input.append(contentsOf: constraint.utf8) }
    return SHA2.digest256(input)
  }

  /// `NSStoreModelVersionHashesDigest` of a store's metadata.
  static func metadataDigest(of hashes: [String: Data]) -> String {
    var input = Data()
    for (name, hash) in hashes.sorted(by: { precedes($0.key, $1.key) }) {
      input.append(contentsOf: name.utf8)
      input.append(hash)
    }
    return SHA2.digest512(input).base64EncodedString()
  }

  /// `NSStoreModelVersionChecksumKey` of a store's metadata.
  static func checksum(of hashes: [String: Data]) -> String {
    var input = Data()
    for (_, hash) in hashes.sorted(by: { precedes($0.key, $1.key) }) { input.append(hash) }
    return SHA2.digest256(input).base64EncodedString()
  }

  /// Byte order, the order of every list that is hashed.
  static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  private static func append(_ number: Int32, to input: inout Data) {
    withUnsafeBytes(of: number.littleEndian) { input.append(contentsOf: $0) }
  }
}
