import Foundation

/// One step of `records/modify`.
package struct RecordOperation: Hashable, Sendable {
  package var operationType: RecordOperationType
  package var record: RecordDictionary
  /// Shapes only the reply; overrides the request's.
  package var desiredKeys: [String]?
  /// Shapes only the reply; overrides the request's.
  package var numbersAsStrings: Bool?
  /// Why the record could not be read, where it could not; then `record` has its name and zone only.
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

  /// What is wrong with one record is that record's fault, and says nothing of the others.
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

  /// As much of an unreadable record as says which one it is.
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
