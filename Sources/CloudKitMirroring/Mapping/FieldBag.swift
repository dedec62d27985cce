import Foundation

/// The fields of a record by key, with a compact encoding for the metadata.
package struct FieldBag: Hashable, Sendable {
  package var values: [String: MirrorValue]

  /// The length in bytes above which a base copy keeps a value as its fingerprint.
  static let fingerprintThreshold = 256

  package init(_ values: [String: MirrorValue] = [:]) {
    self.values = values
  }

  package subscript(key: String) -> MirrorValue? {
    get { values[key] }
    set { values[key] = newValue }
  }

  /// The names of the files that the values have.
  package var files: [String] {
    values.values.compactMap { value in
      if case .asset(let asset) = value { asset.file } else { nil }
    }
  }

  /// The number of bytes in the files that the values have.
  var fileBytes: Int64 {
    values.values.reduce(0) { sum, value in
      if case .asset(let asset) = value { sum + asset.fingerprint.size } else { sum }
    }
  }

  /// The bag as the base of later merges: those only compare, so large values are replaced with
  /// digests.
  package var asBase: FieldBag {
    FieldBag(
      values.mapValues { value in
        if case .asset(let asset) = value {
          return .asset(MirrorAsset(fingerprint: asset.fingerprint, file: ""))
        }
        guard value.byteCount > Self.fingerprintThreshold, let print = value.fingerprint else {
          return value
        }
        return .fingerprint(print)
      }
    )
  }

  /// The approximate size of the record in a request, in bytes.
  package var byteCount: Int {
    values.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount }
  }

  /// The content of a property: its field, or else its file.
  package func content(of property: String) -> MirrorValue? {
    if let inline = values[MirrorNames.field(property)], !inline.isEmptyText { return inline }
    return values[MirrorNames.assetField(property)] ?? values[MirrorNames.field(property)]
  }

  /// Takes all fields of a property from another bag.
  mutating func copyContent(of property: String, from other: FieldBag) {
    for key in [
      MirrorNames.field(property), MirrorNames.assetField(property),
      MirrorNames.exactField(property),
    ] { values[key] = other.values[key] }
  }

  /// Removes all fields of a property.
  package mutating func removeContent(of property: String) {
    values[MirrorNames.field(property)] = nil
    values[MirrorNames.assetField(property)] = nil
    values[MirrorNames.exactField(property)] = nil
  }

  /// The exact text of a property's decimal, if the number beside it equals the text: a client that
  /// does not know the text field edits the number alone.
  package func exactText(of property: String) -> String? {
    guard case .string(let text)? = values[MirrorNames.exactField(property)],
      let number = Double(text)
    else { return nil }
    switch values[MirrorNames.field(property)] {
    case .double(number)?: return text
    // A whole number may be returned as an integer.
    case .integer(let integer)? where Double(integer) == number: return text
    default: return nil
    }
  }

  /// Whether both bags have the same content under the same keys.
  package func hasSameFields(as other: FieldBag) -> Bool {
    guard values.count == other.values.count else { return false }
    return values.allSatisfy { key, value in
      other.values[key].map { value.hasSameContent(as: $0) } ?? false
    }
  }

  /// Whether a property has the same content in both bags.
  package func agrees(with other: FieldBag, on property: String) -> Bool {
    guard exactText(of: property) == other.exactText(of: property) else { return false }
    return switch (content(of: property), other.content(of: property)) {
    case (nil, nil): true
    case (let left?, let right?): left.hasSameContent(as: right)
    default: false
    }
  }
}

extension MirrorValue {
  /// Apple's documentation says to read the asset field if the inline one is empty.
  var isEmptyText: Bool {
    switch self {
    case .string(let text): text.isEmpty
    case .data(let data): data.isEmpty
    default: false
    }
  }
}
