/// Properties whose fields have the name that an earlier version of the model gave them.
///
/// A record that an earlier version wrote has only the former field. Once this version has edited the
/// property the record has both, and versions that run side by side go on writing the ones they know.
extension EntityMapping {
  /// A record's fields as this model names them.
  package struct Reading {
    /// The fields, those of renamed properties under their present names.
    package var fields: FieldBag
    /// What the server holds under the present names, for the next comparison.
    package var base: FieldBag
    /// Properties whose newest value stands in the former field alone although there is a present one.
    package var adopted: Set<String> = []
  }

  /// Reads the fields of a record; `base` is the last copy that both sides agreed on.
  package func reading(_ fields: FieldBag, since base: FieldBag? = nil) -> Reading {
    var reading = Reading(fields: fields, base: fields)
    for (property, former) in formerNames where manyToMany(property) == nil {
      let isPresent = fields.content(of: property) != nil
      if isPresent {
        // Another version edited the former field after this version wrote the present one.
        guard let base, !fields.agrees(with: base, on: former),
          fields.agrees(with: base, on: property)
        else { continue }
        reading.adopted.insert(property)
      }
      for (key, formerKey) in [
        (MirrorNames.field(property), MirrorNames.field(former)),
        (MirrorNames.assetField(property), MirrorNames.assetField(former)),
      ] {
        reading.fields[key] = fields[formerKey]
        if !isPresent { reading.base[key] = fields[formerKey] }
      }
    }
    return reading
  }
}
