import Foundation
import OpenCoreData

/// The fields of an object's record with its current values, large ones in files.
package struct SerializedRecord: Sendable {
  package var recordType: String
  /// All fields that have values; assets have no file name yet.
  package var fields: FieldBag
  /// The contents of the files, by asset field.
  package var fileContents: [String: Data]
  /// The fields to be stored in the encrypted values.
  package var encryptedKeys: Set<String>
}

/// Converts the row of an object to the fields of its record.
package struct RecordSerializer: Sendable {
  package var budget: AssetBudget

  package init(budget: AssetBudget = AssetBudget()) {
    self.budget = budget
  }

  /// Serializes the values of a row.
  ///
  /// The values are by row index, and the mapping is that of the object's concrete entity. A
  /// destination that has no record name is left out. `base` is the last copy that the server is known to
  /// have, where the record is about to be sent: its fields under former names stay there and count.
  package func serialize(
    _ values: [RowValue],
    _ mapping: EntityMapping,
    base: FieldBag? = nil,
    recordName: (RowReference) throws -> String?
  ) rethrows -> SerializedRecord {
    var fields = FieldBag([MirrorNames.entityName: .string(mapping.entityName)])
    for toOne in mapping.toOnes {
      guard case .reference(let reference) = values[toOne.index] else { continue }
      if let name = try recordName(reference) { fields[toOne.field] = .string(name) }
    }
    var movable: [(attribute: AttributeMapping, value: MirrorValue)] = []
    for attribute in mapping.attributes {
      guard let value = attribute.mirrorValue(values[attribute.index]) else { continue }
      if let exactField = attribute.exactField {
        fields[exactField] = attribute.exactText(values[attribute.index])
      }
      if attribute.assetField == nil {
        fields[attribute.field] = value
      } else {
        movable.append((attribute, value))
      }
    }
    let former = mapping.formerBytes(in: base)
    let moved = budget.movedOut(
      fixedBytes: fields.byteCount + former.values.reduce(0, +),
      lengths: movable.map { attribute, value in
        // A text counts by its UTF-8 bytes, as at the service; Core Data counts UTF-16 units. The value is
        // written under its former name too, in place of the one there.
        let length = value.byteCount
        let second = former[attribute.name].map { max(0, length - $0) } ?? 0
        return (attribute.field, length + second)
      }
    )
    var fileContents: [String: Data] = [:]
    for (attribute, value) in movable {
      if moved.contains(attribute.field), let assetField = attribute.assetField,
        let contents = AttributeMapping.fileContents(value)
      {
        let print = MirrorFingerprint(of: contents)
        fields[assetField] = .asset(MirrorAsset(fingerprint: print, file: ""))
        fileContents[assetField] = contents
      } else {
        fields[attribute.field] = value
      }
    }
    return SerializedRecord(
      recordType: mapping.recordType,
      fields: fields,
      fileContents: fileContents,
      encryptedKeys: Set(
        mapping.attributes.filter(\.isEncrypted).flatMap { attribute in
          [attribute.field] + (attribute.exactField.map { [$0] } ?? [])
            + (mapping.formerNames[attribute.name].map(MirrorNames.field).map { [$0] } ?? [])
        }
      )
    )
  }
}
