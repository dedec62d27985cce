import Foundation

/// One sort key of a query.
package struct QuerySort: Codable, Hashable, Sendable {
  package var fieldName: String?
  package var systemFieldName: String?
  /// Absent means true.
  package var ascending: Bool?
  /// Sorts by the distance from this location.
  package var relativeLocation: LocationValue?

  package init(
    fieldName: String? = nil,
    systemFieldName: String? = nil,
    ascending: Bool? = nil,
    relativeLocation: LocationValue? = nil
  ) {
    self.fieldName = fieldName
    self.systemFieldName = systemFieldName
    self.ascending = ascending
    self.relativeLocation = relativeLocation
  }

  private enum CodingKeys: String, CodingKey {
    case fieldName, systemFieldName, ascending, relativeLocation
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    fieldName = try container.decodeIfPresent(String.self, forKey: .fieldName)
    systemFieldName = try container.decodeIfPresent(String.self, forKey: .systemFieldName)
    ascending = try container.decodeIfPresent(Bool.self, forKey: .ascending)
    // Clients send either a location field or the bare location.
    if let bare = try? container.decode(LocationValue.self, forKey: .relativeLocation) {
      relativeLocation = bare
    } else if let field = try container.decodeIfPresent(FieldValue.self, forKey: .relativeLocation)
    {
      guard let location = field.content.location else {
        throw DecodingError.dataCorruptedError(
          forKey: .relativeLocation,
          in: container,
          debugDescription: "Expected a location"
        )
      }
      relativeLocation = location
    }
  }
}
