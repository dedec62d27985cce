/// What an entity's properties are in an entry of the recovery list, which another version of the model may have made.
extension EntityMapping {
  /// The record names of a many-to-many relationship's objects; nil if the entry has none under the relationship's
  /// present or former name.
  func linkedNames(_ relationship: ManyToManyMapping, in fields: FieldBag) -> [String]? {
    for key in [relationship.name, formerNames[relationship.name]] {
      guard let key, case .string(let names)? = fields[key] else { continue }
      return names.split(separator: "\n").map(String.init)
    }
    return nil
  }

  /// The fields that no property reads: a later version of the model has them, or an earlier one under a name that
  /// this one does not know.
  func unreadFields(of fields: FieldBag) -> FieldBag {
    let present = fieldProperties + manyToManys.map(\.name)
    var read: Set<String> = [MirrorNames.entityName, MirrorNames.moveReceipt]
    for name in present + present.compactMap({ formerNames[$0] }) {
      read.formUnion([
        name, MirrorNames.field(name), MirrorNames.assetField(name), MirrorNames.exactField(name),
      ])
    }
    return FieldBag(fields.values.filter { !read.contains($0.key) })
  }
}
