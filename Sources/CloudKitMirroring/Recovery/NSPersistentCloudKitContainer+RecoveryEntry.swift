import Foundation
import OpenCloudKit
import OpenCoreData

extension NSPersistentCloudKitContainer {
  /// Values that another device or the server replaced in a store, kept for the app.
  ///
  /// An entry is an object that another device deleted while it had edits that no server had, values
  /// that a restored server's older ones or a restored store's replaced, or a link.
  ///
  /// **Differs from Core Data:** Core Data has no such list; it loses the values.
  public struct RecoveryEntry: Identifiable, Sendable {
    /// The number of the entry in its store.
    public let id: Int64
    /// The store that keeps the entry.
    public let storeIdentifier: String
    /// The record of the object.
    public let recordID: CKRecord.ID
    /// The entity of the object, with its name when the entry was created.
    public let entityName: String
    /// Why the values were replaced.
    public let reason: String
    /// When the entry was created.
    public let date: Date
    /// The names of the properties with values in the entry, sorted; values under names that the model has no
    /// property for are not among them.
    public let propertyNames: [String]
    private let fields: FieldBag
    private let entity: EntityMapping?

    init(
      _ edit: RecoveredEdit,
      _ mapping: ModelMapping,
      storeIdentifier: String,
      zoneID: CKRecordZone.ID
    ) {
      id = edit.id
      self.storeIdentifier = storeIdentifier
      recordID = CKRecord.ID(recordName: edit.record, zoneID: zoneID)
      entityName = edit.entityName
      reason = edit.reason
      date = Date(timeIntervalSinceReferenceDate: edit.noted)
      let entity = mapping.entity(
        recordType: MirrorNames.prefix + edit.entityName,
        entityName: edit.entityName
      )
      let fields = entity?.reading(edit.fields).fields ?? edit.fields
      self.entity = entity
      self.fields = fields
      let properties = entity?.fieldProperties.filter { fields.content(of: $0) != nil }
      let relationships = entity?.manyToManys.filter {
        entity?.linkedNames($0, in: fields) != nil
      }
      propertyNames = ((properties ?? []) + (relationships ?? []).map(\.name)).sorted()
    }

    /// The value of a property: an attribute's as in key-value coding, the record identifier of a
    /// to-one relationship's object, and those of a many-to-many relationship's objects as a set.
    ///
    /// Nil if the entry has none.
    public func value(forKey key: String) -> Any? {
      guard let entity else { return nil }
      if let attribute = entity.attribute(key) {
        let content = fields.content(of: key)
        guard let value = content.flatMap({ attribute.rowValue($0, in: fields) }) else {
          return nil
        }
        return entity.layout.attributes[attribute.index].object(value)
      }
      if let toOne = entity.toOne(key) {
        guard case .string(let name)? = fields[toOne.field], !name.isEmpty else { return nil }
        return CKRecord.ID(recordName: name, zoneID: recordID.zoneID)
      }
      return entity.manyToMany(key).flatMap { entity.linkedNames($0, in: fields) }.map { names in
        Set(names.map { CKRecord.ID(recordName: $0, zoneID: recordID.zoneID) })
      }
    }
  }
}
