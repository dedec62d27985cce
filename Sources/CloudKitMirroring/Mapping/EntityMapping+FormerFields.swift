/// Properties whose fields have the name of an earlier version of the model.
///
/// A record that an earlier version wrote has only the former field. Each version writes the fields
/// under the names that it knows: a version that renames the property once more knows one former
/// name and not the one before it. Versions that are used at the same time read and write the
/// fields that they know.
extension EntityMapping {
  /// A record's fields under the names of this model.
  ///
  /// Only for comparison: the server has the record's own fields, and a save has to change those.
  package struct Reading {
    /// The fields, those of renamed properties under their present names.
    package var fields: FieldBag
    /// Properties whose newest value is only in the former field: the present field is missing, or
    /// an earlier version of the app has edited the former one since.
    package var outdated: Set<String> = []
    /// The outdated properties whose present field has another value, which nothing shows to be older: it is
    /// kept for recovery.
    package var doubtful: Set<String> = []
    /// Properties whose present field is a file that this device has never read, with another value than the
    /// agreed one in the former field: it is taken for newer, which nothing shows.
    package var unreadFiles: Set<String> = []
  }

  /// The sizes of a record's former fields in bytes, by the present names of their properties.
  func formerBytes(in base: FieldBag?) -> [String: Int] {
    guard let base else { return [:] }
    var bytes: [String: Int] = [:]
    for (property, former) in formerNames where base.content(of: former) != nil {
      bytes[property] = base[MirrorNames.field(former)]?.byteCount ?? 0
    }
    return bytes
  }

  /// Reads the fields of a record; `base` is the last copy that both sides agreed on, and `local` are the values
  /// that the object had before the record was read; see ``agreed(_:local:)``.
  package func reading(
    _ fields: FieldBag,
    since base: FieldBag? = nil,
    local: FieldBag? = nil
  ) -> Reading {
    var reading = Reading(fields: fields)
    let agreed = base.map { self.agreed($0, local: local) }
    for (property, former) in formerNames where manyToMany(property) == nil {
      if fields.content(of: property) == nil {
        guard fields.content(of: former) != nil else { continue }
      } else {
        guard let base, let agreed else { continue }
        if haveBothChanged(property, former, in: fields, since: base, agreed) {
          reading.doubtful.insert(property)
        } else if base.content(of: property) != nil, !agreed.agrees(with: base, on: property) {
          // Another device may have written the agreed value under the present name meanwhile.
          guard
            fields.agrees(with: base, on: property)
              || (fields.agrees(with: agreed, on: property)
                && !fields.agrees(with: base, on: former))
          else { continue }
        } else if isUnread(property, former, fields, base) {
          reading.doubtful.insert(property)
        } else {
          if isUnreadFile(property, former, fields, base) { reading.unreadFiles.insert(property) }
          // Another version edited the former field after this version wrote the present one.
          guard !fields.agrees(with: base, on: former), fields.agrees(with: agreed, on: property)
          else { continue }
        }
      }
      reading.outdated.insert(property)
      takeFormer(former, of: property, in: &reading.fields)
    }
    return reading
  }

  /// The values of the last copy that both sides agreed on, under the names of this model.
  ///
  /// That copy may have two values of a renamed property. If an earlier version of the app edited the former field,
  /// the object has that value. It does not count as a local edit before this device sends it under the present name.
  package func agreed(_ base: FieldBag, local: FieldBag?) -> FieldBag {
    var agreed = reading(base).fields
    guard let local else { return agreed }
    for (property, former) in formerNames where hasTwoValues(property, former, base) {
      var other = agreed
      takeFormer(former, of: property, in: &other)
      if other.agrees(with: local, on: property) { agreed = other }
    }
    return agreed
  }

  /// Whether a copy of a record has two values of a renamed property.
  func hasTwoValues(_ base: FieldBag) -> Bool {
    formerNames.contains { hasTwoValues($0.key, $0.value, base) }
  }

  /// Whether a copy of a record has two values of a property, under its two names.
  func hasTwoValues(of property: String, in base: FieldBag) -> Bool {
    formerNames[property].map { hasTwoValues(property, $0, base) } ?? false
  }

  private func hasTwoValues(_ property: String, _ former: String, _ base: FieldBag) -> Bool {
    guard manyToMany(property) == nil, base.content(of: property) != nil,
      base.content(of: former) != nil
    else { return false }
    var other = base
    takeFormer(former, of: property, in: &other)
    return !other.agrees(with: base, on: property)
  }

  /// Gives a property the fields that it has under its former name.
  private func takeFormer(_ former: String, of property: String, in fields: inout FieldBag) {
    fields[MirrorNames.field(property)] = fields[MirrorNames.field(former)]
    fields[MirrorNames.assetField(property)] = fields[MirrorNames.assetField(former)]
    if attribute(property)?.exactField != nil {
      fields[MirrorNames.exactField(property)] = fields[MirrorNames.exactField(former)]
    }
  }

  /// Whether both fields have values that this device has not read, different ones.
  ///
  /// Devices with this version write both fields, as long as the former one can hold the value and the value is
  /// in no file. So a device with the former version wrote its field later, unless a still later version, which
  /// does not know that field, wrote the present one.
  private func haveBothChanged(
    _ property: String,
    _ former: String,
    in fields: FieldBag,
    since base: FieldBag,
    _ agreed: FieldBag
  ) -> Bool {
    guard !fields.agrees(with: base, on: former), !fields.agrees(with: base, on: property),
      !fields.agrees(with: agreed, on: property),
      fields[MirrorNames.assetField(property)] == nil,
      let present = fields[MirrorNames.field(property)], let earlier = fields.content(of: former)
    else { return false }
    return earlier.canHold(present) && !present.hasSameContent(as: earlier)
  }

  /// Whether a device that was updated to this version finds a present field that it has never read, with
  /// another value than the former one, which it knows.
  ///
  /// Devices with this version that write the present field write the former one too, and remove its file,
  /// as long as the former field can hold the value. So a device with the former version wrote the former
  /// field or its file later, unless a still later version, which does not know it, wrote the present one.
  private func isUnread(
    _ property: String,
    _ former: String,
    _ fields: FieldBag,
    _ base: FieldBag
  ) -> Bool {
    guard base.content(of: property) == nil, base.content(of: former) != nil,
      fields.agrees(with: base, on: former),
      // A value in a file is written under the present name alone.
      fields[MirrorNames.assetField(property)] == nil,
      let present = fields[MirrorNames.field(property)], let earlier = fields.content(of: former)
    else { return false }
    return earlier.canHold(present) && !present.hasSameContent(as: earlier)
  }

  /// Whether a device that was updated to this version finds a file under the present name that it has never
  /// read, with another value than the former field, which it knows.
  ///
  /// Either may be newer: a device with this version does not write a value in a file to the former field.
  private func isUnreadFile(
    _ property: String,
    _ former: String,
    _ fields: FieldBag,
    _ base: FieldBag
  ) -> Bool {
    guard base.content(of: property) == nil, fields.agrees(with: base, on: former),
      let present = fields[MirrorNames.assetField(property)],
      let earlier = fields.content(of: former)
    else { return false }
    return !present.hasSameContent(as: earlier)
  }
}

extension MirrorValue {
  /// Whether a field of this value's type can hold another value exactly; see ``FieldKinds``.
  fileprivate func canHold(_ other: MirrorValue) -> Bool {
    switch (self, other) {
    case (.integer, .double(let number)): Int64(exactly: number) != nil
    case (.double, .integer(let number)): Int64(exactly: Double(number)) == number
    default: true
    }
  }
}
