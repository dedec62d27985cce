import OpenCoreData

/// Records that were written under the names of an earlier version of the model.
extension MirrorSession {
  /// Marks properties for export whose values a record has only under former names.
  ///
  /// The next version of the model knows this version's names and no earlier ones: a device that
  /// starts with it would read no value from the former fields. A property is skipped while the
  /// object does not have the record's value, as with a link to an object that has not arrived yet.
  ///
  /// `base` is the copy that was agreed on before, and `local` are the values that the object had then.
  func writePresentNames(
    _ name: String,
    since base: FieldBag? = nil,
    local: FieldBag? = nil
  ) throws {
    guard let record = try metadata.record(named: name), let fields = record.base,
      let entity = mapping.entity(named: record.entityName)
    else { return }
    var names: Set<String> = []
    if mapping.isFormerName(fields[MirrorNames.entityName], of: entity) {
      names.insert(MirrorNames.entityName)
    }
    let reading = entity.reading(fields, since: base, local: local)
    if !reading.outdated.isEmpty, let reference = reference(of: record),
      let row = try rows.row(reference)
    {
      let now = try serialize(row, entity).fields
      names.formUnion(reading.outdated.filter { now.agrees(with: reading.fields, on: $0) })
    }
    if !names.isSubset(of: record.unconfirmed) { try mark(record, names) }
  }

  /// The present values of an object, where they show which of two agreed values of a renamed property it has.
  func valuesOfFormerNames(_ known: RecordMetadata?, _ entity: EntityMapping) throws -> FieldBag? {
    guard !context.effects.has(.ownFormerEdits), let known, let base = known.base,
      entity.hasTwoValues(base),
      known.entityName == entity.entityName, let reference = reference(of: known),
      let row = try rows.row(reference)
    else { return nil }
    return try serialize(row, entity).fields
  }
}
