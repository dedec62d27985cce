/// The fields of a record that a save sends: those that differ from the last agreed copy.
package struct ChangedFields: Hashable, Sendable {
  /// The new values.
  package var set: [String: MirrorValue] = [:]
  /// The fields whose value is removed.
  package var removed: Set<String> = []

  /// Files that are also written under a former name: the former asset field, and the present one.
  package var formerFiles: [String: String] = [:]

  package var isEmpty: Bool { self.set.isEmpty && removed.isEmpty }

  package init(set: [String: MirrorValue], removed: Set<String>) {
    self.set = set
    self.removed = removed
  }

  /// The fields of a record that does not exist on the server.
  ///
  /// If the server had the record before, `base` is the last copy that both sides agreed on: a
  /// former field in it is written again, for versions of the app that read only that field.
  package init(creating record: SerializedRecord, base: FieldBag?, mapping: EntityMapping) {
    set = record.fields.values
    guard let base else { return }
    for (property, former) in mapping.formerNames where base.content(of: former) != nil {
      let present = MirrorNames.assetField(property)
      if let value = record.fields[MirrorNames.field(property)] {
        set[MirrorNames.field(former)] = value
      } else if let file = record.fields[present] {
        let field = MirrorNames.assetField(former)
        set[field] = file
        formerFiles[field] = present
      }
    }
  }

  /// The fields that change the server's copy to the object's values.
  ///
  /// `base` is the last copy that both sides agreed on, with the record's own field names;
  /// `properties` are those with edits that have not been exported, and the field of the entity's
  /// name if that is to be written again.
  package init(
    updating record: SerializedRecord,
    base: FieldBag,
    properties: Set<String>,
    mapping: EntityMapping
  ) {
    for attribute in mapping.attributes {
      // An unedited value may have to move into a file when another one has grown.
      let mustMoveOut =
        attribute.assetField.map { record.fields[$0] != nil && base[attribute.field] != nil }
        ?? false
      guard properties.contains(attribute.name) || mustMoveOut else { continue }
      compare(attribute.field, record, base)
      if let assetField = attribute.assetField { compare(assetField, record, base) }
      if let exactField = attribute.exactField { compare(exactField, record, base) }
      follow(attribute.name, record, base, mapping)
    }
    if properties.contains(MirrorNames.entityName) {
      compare(MirrorNames.entityName, record, base)
    }
    for toOne in mapping.toOnes where properties.contains(toOne.name) {
      compare(toOne.field, record, base)
      follow(toOne.name, record, base, mapping)
    }
  }

  /// Writes a renamed property's former field too if the record has it, because earlier versions of
  /// the app read it.
  ///
  /// A value in a file is not written twice; those versions then keep the last value that they
  /// read.
  private mutating func follow(
    _ property: String,
    _ record: SerializedRecord,
    _ base: FieldBag,
    _ mapping: EntityMapping
  ) {
    guard let former = mapping.formerNames[property], base.content(of: former) != nil else {
      return
    }
    let (field, asset) = (MirrorNames.field(former), MirrorNames.assetField(former))
    if let value = record.fields[MirrorNames.field(property)] {
      if base[field].map({ !value.hasSameContent(as: $0) }) ?? true { self.set[field] = value }
      if base[asset] != nil { removed.insert(asset) }
    } else if record.fields[MirrorNames.assetField(property)] == nil {
      for key in [field, asset] where base[key] != nil { removed.insert(key) }
    }
  }

  private mutating func compare(_ key: String, _ record: SerializedRecord, _ base: FieldBag) {
    switch (record.fields[key], base[key]) {
    case (nil, nil): break
    case (nil, _?): removed.insert(key)
    case (let value?, nil): set[key] = value
    case (let value?, let known?):
      if !value.hasSameContent(as: known) { set[key] = value }
    }
  }

  /// The base after the server took these fields.
  package func applied(to base: FieldBag) -> FieldBag {
    var result = base
    for (key, value) in set { result[key] = value }
    for key in removed { result[key] = nil }
    return result.asBase
  }
}
