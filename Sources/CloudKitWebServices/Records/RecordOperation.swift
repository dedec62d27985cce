import Foundation

/// One operation of `records/modify`.
package struct RecordOperation: Hashable, Sendable {
  package var operationType: RecordOperationType
  package var record: RecordDictionary
  /// Affects the reply only; overrides the request's.
  package var desiredKeys: [String]?
  /// Affects the reply only; overrides the request's.
  package var numbersAsStrings: Bool?
  /// Why the record could not be decoded, if so; then `record` has only its name and zone.
  package private(set) var fault: String?

  package init(
    operationType: RecordOperationType,
    record: RecordDictionary,
    desiredKeys: [String]? = nil,
    numbersAsStrings: Bool? = nil
  ) {
    self.operationType = operationType
    self.record = record
    self.desiredKeys = desiredKeys
    self.numbersAsStrings = numbersAsStrings
  }
}

extension RecordOperation: Codable {
  private enum CodingKeys: String, CodingKey {
    case operationType, record, desiredKeys, numbersAsStrings
  }

  /// An error in one record fails this operation only, not the others.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    operationType = try container.decode(RecordOperationType.self, forKey: .operationType)
    desiredKeys = try container.decodeIfPresent([String].self, forKey: .desiredKeys)
    numbersAsStrings = try container.decodeIfPresent(Bool.self, forKey: .numbersAsStrings)
    do {
      record = try container.decode(RecordDictionary.self, forKey: .record)
    } catch {
      guard let named = try? container.decode(NamedRecord.self, forKey: .record) else {
        throw error
      }
      record = RecordDictionary(recordName: named.recordName, zoneID: named.zoneID)
      fault = MalformedBody(error, below: container.codingPath.count + 1).description
    }
  }

  /// The name and zone of a record that could not be decoded.
  private struct NamedRecord: Decodable {
    var recordName: String?
    var zoneID: ZoneID?

    private enum CodingKeys: String, CodingKey { case recordName, zoneID }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      recordName = try? container.decodeIfPresent(String.self, forKey: .recordName)
      zoneID = try? container.decodeIfPresent(ZoneID.self, forKey: .zoneID)
    }
  }
}
